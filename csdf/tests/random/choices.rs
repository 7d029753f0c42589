//! Random graphs that are consistent by construction.

use csdf::{Actor, ActorId, Channel, Graph, Rates, Reader};
use proptest::prelude::*;

/// Numbers drawn from random bytes, so that proptest can shrink a graph.
pub struct Choices(pub std::vec::IntoIter<u8>);

impl Choices {
    /// A number from `low` to `high`.
    pub fn pick(&mut self, low: u64, high: u64) -> u64 {
        low + u64::from(self.0.next().unwrap_or(0)) % (high - low + 1)
    }

    /// `total` tokens shared among `phases` phases.
    pub fn share(&mut self, total: u64, phases: u64) -> Vec<u64> {
        let mut rates = vec![0; phases as usize];
        for _ in 0..total {
            rates[self.pick(0, phases - 1) as usize] += 1;
        }
        rates
    }

    /// Acquire and release rates of `total` tokens in a cycle; tokens are held for a while, or not at all.
    pub fn window(&mut self, actor: ActorId, total: u64, phases: u64) -> Reader {
        let acquire = self.share(total, phases);
        if self.pick(0, 1) == 0 {
            return Reader::consuming(actor, Rates::from_sequence(&acquire));
        }
        let mut release = Vec::new();
        let mut held = 0;
        for (phase, tokens) in acquire.iter().enumerate() {
            held += tokens;
            let freed = if phase + 1 == acquire.len() { held } else { self.pick(0, held) };
            release.push(freed);
            held -= freed;
        }
        Reader { actor, acquire: Rates::from_sequence(&acquire), release: Rates::from_sequence(&release) }
    }

    /// A channel with rates that balance for these cycles of the actors.
    pub fn channel(&mut self, graph: &Graph, cycles: &[u64], producer: usize, readers: &[usize]) -> Channel {
        let ids: Vec<ActorId> = graph.actor_ids().collect();
        let phases = |actor: usize| graph.actors()[actor].phases;
        let flow = cycles[producer] * readers.iter().map(|&reader| cycles[reader]).product::<u64>();
        let flow = flow * self.pick(1, 2);
        let production = Rates::from_sequence(&self.share(flow / cycles[producer], phases(producer)));
        let readers: Vec<Reader> = readers
            .iter()
            .map(|&reader| self.window(ids[reader], flow / cycles[reader], phases(reader)))
            .collect();
        Channel::new(format!("from {producer}"), ids[producer], production, readers)
    }

    pub fn actors(&mut self, count: u64, most_phases: u64) -> (Graph, Vec<u64>) {
        let mut graph = Graph::new();
        let mut cycles = Vec::new();
        for index in 0..count {
            graph.add_actor(Actor::new(index.to_string(), self.pick(1, most_phases))).unwrap();
            cycles.push(self.pick(1, 3));
        }
        (graph, cycles)
    }

    pub fn chain(&mut self) -> Graph {
        let count = self.pick(2, 4);
        let (mut graph, cycles) = self.actors(count, 3);
        for reader in 1..graph.actors().len() {
            let channel = self.channel(&graph, &cycles, reader - 1, &[reader]);
            let initial_tokens = self.pick(0, 9).saturating_sub(6);
            graph.add_channel(Channel { initial_tokens, ..channel }).unwrap();
        }
        graph
    }

    /// Every actor but the first reads one before it; some read two, and some channels have two readers.
    pub fn acyclic(&mut self, most_actors: u64, most_phases: u64) -> (Graph, Vec<u64>) {
        let count = self.pick(3, most_actors);
        let (mut graph, cycles) = self.actors(count, most_phases);
        for reader in 1..count as usize {
            for _ in 0..self.pick(1, 2) {
                let producer = self.pick(0, reader as u64 - 1) as usize;
                let second = self.pick(0, 2 * count) as usize;
                let several = second > producer && second < count as usize;
                let readers = if several { vec![reader, second] } else { vec![reader] };
                let channel = self.channel(&graph, &cycles, producer, &readers);
                let initial_tokens = self.pick(0, 9).saturating_sub(7);
                graph.add_channel(Channel { initial_tokens, ..channel }).unwrap();
            }
        }
        (graph, cycles)
    }

    /// One or two channels against the order of the actors, or from an actor to itself.
    pub fn feed_back(&mut self, graph: &mut Graph, cycles: &[u64]) {
        for _ in 0..self.pick(1, 2) {
            let from = self.pick(0, cycles.len() as u64 - 1) as usize;
            let to = self.pick(0, from as u64) as usize;
            let channel = self.channel(graph, cycles, from, &[to]);
            let initial_tokens = self.pick(0, 12);
            graph.add_channel(Channel { initial_tokens, ..channel }).unwrap();
        }
    }

    pub fn segments(&mut self, graph: &Graph) -> Vec<Vec<ActorId>> {
        let mut segments = vec![Vec::new()];
        for id in graph.actor_ids() {
            if self.pick(0, 3) == 0 {
                segments.push(Vec::new());
            }
            segments.last_mut().unwrap().push(id);
        }
        segments
    }
}

pub fn choices() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}
