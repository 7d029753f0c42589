//! A second self-timed execution, which follows the definition literally: it looks at every actor at each instant.

use std::collections::BTreeMap;

use crate::budget::Meter;
use crate::{Error, Graph, Ratio, Throughput, repetition_vector};

/// The throughput with these capacities, none of which is below the initial tokens.
pub(super) fn throughput(graph: &Graph, capacities: &[u64], meter: &mut Meter) -> Result<Throughput, Error> {
    let firings = repetition_vector(graph)?.firings;
    let times: Vec<Vec<u64>> =
        graph.actors().iter().map(|actor| actor.execution_times.iter().collect()).collect();
    if times.iter().flatten().all(|&time| time == 0) {
        return Ok(Throughput::Unbounded);
    }
    let mut slowest = Ratio::ZERO;
    for members in connected(graph) {
        let mut now = Instant::new(graph, &members);
        let (first, mut begun) = (members[0], 0);
        let mut seen = BTreeMap::new();
        if members.iter().all(|&actor| times[actor].iter().all(|&time| time == 0)) {
            continue;
        }
        loop {
            while now.act(graph, capacities, &members, &times, meter)? {}
            if now.started[first] / firings[first] > begun {
                begun = now.started[first] / firings[first];
                let state = now.state(&members, &firings, begun);
                meter.spend(4 * state.len() as u64)?;
                if let Some((time, before)) = seen.insert(state, (now.time, begun)) {
                    let period = Ratio::new(now.time - time, u128::from(begun - before));
                    slowest = slowest.max(period.unwrap_or(Ratio::ZERO));
                    break;
                }
            }
            let next = members.iter().filter_map(|&actor| now.ends[actor].first().copied()).min();
            match next {
                Some(next) => now.time = next,
                None => return Ok(Throughput::Finite(Ratio::ZERO)),
            }
        }
    }
    Ok(slowest.inverse().map_or(Throughput::Unbounded, Throughput::Finite))
}

/// The actors of each part that shares channels.
fn connected(graph: &Graph) -> Vec<Vec<usize>> {
    let mut part: Vec<usize> = (0..graph.actors().len()).collect();
    let mut changed = true;
    while changed {
        changed = false;
        for channel in graph.channels().iter().filter(|channel| channel.production.total() > 0) {
            for reader in &channel.readers {
                let (left, right) = (channel.producer.index(), reader.actor.index());
                let least = part[left].min(part[right]);
                changed |= part[left] != part[right];
                (part[left], part[right]) = (least, least);
            }
        }
    }
    let mut parts: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (actor, &part) in part.iter().enumerate() {
        parts.entry(part).or_default().push(actor);
    }
    parts.into_values().collect()
}

struct Instant {
    time: u128,
    started: Vec<u64>,
    /// Ends of the firings under way, by actor.
    ends: Vec<Vec<u128>>,
    /// By channel and reader: tokens that are unread, and tokens whose space is claimed.
    unread: Vec<Vec<u128>>,
    claimed: Vec<Vec<u128>>,
    production: Vec<Vec<u64>>,
    acquire: Vec<Vec<Vec<u64>>>,
    release: Vec<Vec<Vec<u64>>>,
    /// Channels that each actor reads or writes.
    touched: Vec<Vec<usize>>,
}

impl Instant {
    fn new(graph: &Graph, members: &[usize]) -> Instant {
        let channels = graph.channels();
        let initial =
            channels.iter().map(|channel| vec![u128::from(channel.initial_tokens); channel.readers.len()]);
        let initial: Vec<Vec<u128>> = initial.collect();
        let mut touched = vec![Vec::new(); graph.actors().len()];
        for (index, channel) in channels.iter().enumerate() {
            let readers = channel.readers.iter().map(|reader| reader.actor.index());
            for actor in readers.chain([channel.producer.index()]) {
                touched[actor].push(index);
            }
        }
        touched.iter_mut().for_each(|channels: &mut Vec<usize>| channels.dedup());
        let mut of_members = vec![false; touched.len()];
        members.iter().for_each(|&actor| of_members[actor] = true);
        let written = |index: usize| of_members[channels[index].producer.index()];
        let reader_rates = |which: fn(&crate::Reader) -> &crate::Rates| -> Vec<Vec<Vec<u64>>> {
            let of = |index: usize| {
                let readers = channels[index].readers.iter().filter(|_| written(index));
                readers.map(|reader| which(reader).iter().collect()).collect()
            };
            (0..channels.len()).map(of).collect()
        };
        Instant {
            time: 0,
            started: vec![0; touched.len()],
            ends: vec![Vec::new(); touched.len()],
            unread: initial.clone(),
            claimed: initial,
            production: channels.iter().map(|channel| channel.production.iter().collect()).collect(),
            acquire: reader_rates(|reader| &reader.acquire),
            release: reader_rates(|reader| &reader.release),
            touched,
        }
    }

    /// For each actor once, ends firings that end now and starts firings that can start. Returns whether anything
    /// happened.
    fn act(
        &mut self,
        graph: &Graph,
        capacities: &[u64],
        members: &[usize],
        times: &[Vec<u64>],
        meter: &mut Meter,
    ) -> Result<bool, Error> {
        let mut happened = false;
        for &actor in members {
            meter.spend(1)?;
            while self.ends[actor].first().is_some_and(|&end| end <= self.time) {
                let firing = self.started[actor] - self.ends[actor].len() as u64;
                self.ends[actor].remove(0);
                self.settle(graph, actor, firing);
                happened = true;
            }
            let under_way = self.ends[actor].len() as u64;
            if under_way < graph.actors()[actor].concurrency.get() && self.fits(graph, capacities, actor) {
                let firing = self.started[actor];
                self.claim(graph, actor, firing);
                self.started[actor] += 1;
                let end = self.time + u128::from(rate_at(&times[actor], firing));
                let before = self.ends[actor].last().copied().unwrap_or(0);
                self.ends[actor].push(end.max(before));
                happened = true;
            }
        }
        Ok(happened)
    }

    fn fits(&self, graph: &Graph, capacities: &[u64], actor: usize) -> bool {
        let firing = self.started[actor];
        self.touched[actor].iter().all(|&index| {
            let channel = &graph.channels()[index];
            let made = rate_at(&self.production[index], firing);
            let space = channel.producer.index() != actor
                || made == 0
                || self.claimed[index]
                    .iter()
                    .all(|claimed| claimed + u128::from(made) <= u128::from(capacities[index]));
            let mut readers = channel.readers.iter().enumerate();
            space
                && readers.all(|(place, reader)| {
                    reader.actor.index() != actor
                        || u128::from(rate_at(&self.acquire[index][place], firing))
                            <= self.unread[index][place]
                })
        })
    }

    fn claim(&mut self, graph: &Graph, actor: usize, firing: u64) {
        for &index in &self.touched[actor] {
            let channel = &graph.channels()[index];
            for (place, reader) in channel.readers.iter().enumerate() {
                if channel.producer.index() == actor {
                    self.claimed[index][place] += u128::from(rate_at(&self.production[index], firing));
                }
                if reader.actor.index() == actor {
                    self.unread[index][place] -= u128::from(rate_at(&self.acquire[index][place], firing));
                }
            }
        }
    }

    fn settle(&mut self, graph: &Graph, actor: usize, firing: u64) {
        for &index in &self.touched[actor] {
            let channel = &graph.channels()[index];
            for (place, reader) in channel.readers.iter().enumerate() {
                if channel.producer.index() == actor {
                    self.unread[index][place] += u128::from(rate_at(&self.production[index], firing));
                }
                if reader.actor.index() == actor {
                    self.claimed[index][place] -= u128::from(rate_at(&self.release[index][place], firing));
                }
            }
        }
    }

    /// The state, which determines everything that follows: how far each actor is beyond whole iterations, and which
    /// firings are under way.
    fn state(&self, members: &[usize], firings: &[u64], iterations: u64) -> Vec<i128> {
        let mut state = Vec::new();
        for &actor in members {
            let whole = i128::from(iterations) * i128::from(firings[actor]);
            state.push(i128::from(self.started[actor]) - whole);
            state.push(self.ends[actor].len() as i128);
            state.extend(self.ends[actor].iter().map(|end| (end - self.time) as i128));
        }
        state
    }
}

fn rate_at(rates: &[u64], firing: u64) -> u64 {
    rates[(firing % rates.len() as u64) as usize]
}
