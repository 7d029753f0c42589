//! Small random graphs that are consistent by construction.

use std::num::NonZero;

use csdf::{Actor, ActorId, Channel, Graph, Rates, Reader};

/// The features of a random graph other than rates, times and initial tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Nothing: cyclo-static dataflow with one reader a channel, one firing of an actor at a time.
    Plain,
    /// Windows (release later than acquire) and channels with several readers.
    Windowed,
    /// Actors with several firings at a time, by their concurrency or by self-loops.
    Concurrent,
    /// Token sizes, and capacities that are given.
    Sized,
}

/// Chains, skips, forks and joins, parallel channels, and cycles with initial tokens, of 2 to 4 actors.
pub fn random(seed: u64, flavour: Flavour) -> Graph {
    // States that neighbouring seeds do not come to.
    let mut draw = Draw(Draw(seed.wrapping_mul(4) + flavour as u64).next());
    let shape = draw.below(6);
    let count = match shape {
        0 => 2 + draw.below(3),
        4 => 2,
        2 => 4,
        _ => 3,
    };
    let mut maker = Maker { draw, flavour, graph: Graph::new(), ids: Vec::new(), cycles: Vec::new() };
    for index in 0..count {
        maker.actor(index);
    }
    for reader in 1..count as usize {
        let producer = if shape == 2 { (reader - 1) / 2 } else { reader - 1 };
        let skips = flavour == Flavour::Windowed && reader + 1 < count as usize && maker.draw.one_in(2);
        maker.channel(producer, if skips { vec![reader, reader + 1] } else { vec![reader] }, 0);
    }
    match shape {
        // A skip past the middle, a join, a second channel, a channel back.
        1 => maker.channel(0, vec![2], 0),
        2 => maker.channel(1, vec![3], 0),
        3 => maker.back(2, 0),
        4 => maker.channel(0, vec![1], 0),
        5 => maker.back(1, 0),
        _ => {}
    }
    if flavour == Flavour::Concurrent || maker.draw.one_in(6) {
        maker.self_loop();
    }
    maker.graph
}

/// Numbers drawn from a seed (the SplitMix generator of Steele, Lea and Flood, 2014).
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// `total` tokens over `phases` phases: evenly, in one lump and the rest evenly, or anyhow.
    fn share(&mut self, total: u64, phases: u64) -> Vec<u64> {
        let mut rates = vec![0; phases as usize];
        let lump = if self.one_in(3) { total / 2 } else { 0 };
        rates[self.below(phases) as usize] += lump;
        let evenly = self.one_in(2);
        for token in 0..total - lump {
            let phase = if evenly { token % phases } else { self.below(phases) };
            rates[phase as usize] += 1;
        }
        rates
    }
}

struct Maker {
    draw: Draw,
    flavour: Flavour,
    graph: Graph,
    ids: Vec<ActorId>,
    /// Cycles of each actor for which all rates balance.
    cycles: Vec<u64>,
}

impl Maker {
    fn actor(&mut self, index: u64) {
        let draw = &mut self.draw;
        let phases = 1 + draw.below(3);
        let times: Vec<u64> =
            (0..phases).map(|_| if draw.one_in(6) { 0 } else { 1 + draw.below(4) }).collect();
        let several = self.flavour == Flavour::Concurrent && draw.one_in(2);
        let concurrency = NonZero::new(if several { 2 } else { 1 }).unwrap();
        self.cycles.push([1, 1, 2, 3][draw.below(4) as usize]);
        let name = char::from(b'a' + index as u8).to_string();
        let execution_times = Rates::from_sequence(&times);
        let actor = Actor { execution_times, concurrency, ..Actor::new(name, phases) };
        self.ids.push(self.graph.add_actor(actor).unwrap());
    }

    /// Tokens that a channel between these actors carries in the time for which the rates balance.
    fn flow(&mut self, actors: &[usize]) -> u64 {
        let common =
            actors.iter().fold(1, |common, &actor| least_common_multiple(common, self.cycles[actor]));
        common * (1 + self.draw.below(3))
    }

    fn reader(&mut self, actor: usize, flow: u64) -> Reader {
        let phases = self.graph.actors()[actor].phases;
        let acquire = self.draw.share(flow / self.cycles[actor], phases);
        if self.flavour != Flavour::Windowed || self.draw.one_in(3) {
            return Reader::consuming(self.ids[actor], Rates::from_sequence(&acquire));
        }
        let (mut held, mut release) = (0, Vec::new());
        for (phase, tokens) in acquire.iter().enumerate() {
            held += tokens;
            let freed = if phase + 1 == acquire.len() { held } else { self.draw.below(held + 1) };
            release.push(freed);
            held -= freed;
        }
        let (acquire, release) = (Rates::from_sequence(&acquire), Rates::from_sequence(&release));
        Reader { actor: self.ids[actor], acquire, release }
    }

    fn channel(&mut self, producer: usize, readers: Vec<usize>, initial: u64) {
        let flow = self.flow(&[&readers[..], &[producer]].concat());
        let phases = self.graph.actors()[producer].phases;
        let production = self.draw.share(flow / self.cycles[producer], phases);
        let readers = readers.into_iter().map(|reader| self.reader(reader, flow)).collect();
        let stray = if self.draw.one_in(5) { 1 + self.draw.below(3) } else { 0 };
        let initial_tokens = if initial > 0 { initial } else { stray };
        let name = format!("c{}", self.graph.channels().len());
        let channel = Channel::new(name, self.ids[producer], Rates::from_sequence(&production), readers);
        let (mut token_bytes, mut capacity) = (1, None);
        if self.flavour == Flavour::Sized {
            token_bytes = 1 + self.draw.below(4);
            capacity = self.draw.one_in(4).then(|| initial_tokens + flow + self.draw.below(4));
        }
        self.graph.add_channel(Channel { initial_tokens, token_bytes, capacity, ..channel }).unwrap();
    }

    /// A channel against the order of the actors, mostly with tokens enough.
    fn back(&mut self, producer: usize, reader: usize) {
        let tokens = 1 + self.draw.below(9);
        self.channel(producer, vec![reader], tokens);
    }

    /// A channel from an actor to itself, with one token or more.
    fn self_loop(&mut self) {
        let actor = self.draw.below(self.ids.len() as u64) as usize;
        let tokens = 1 + self.draw.below(2);
        let one = Rates::constant(1, 1);
        let readers = vec![Reader::consuming(self.ids[actor], one.clone())];
        let channel = Channel::new("loop", self.ids[actor], one, readers);
        self.graph.add_channel(Channel { initial_tokens: tokens, ..channel }).unwrap();
    }
}

fn least_common_multiple(left: u64, right: u64) -> u64 {
    (1..).map(|times| times * left).find(|multiple| multiple % right == 0).unwrap()
}
