//! The truth, by brute force: executions straight from the definition, and all storage distributions. It reads the
//! graph's plain data and shares no code with the analyses.

use std::collections::{BTreeMap, VecDeque};

use csdf::{Graph, Rates};

/// Iterations per unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// A reduced fraction; 0/1 for a standstill.
    Finite(u64, u64),
    Unbounded,
}

impl Speed {
    pub const STANDSTILL: Speed = Speed::Finite(0, 1);

    pub fn new(numerator: u64, denominator: u64) -> Speed {
        if denominator == 0 {
            return Speed::Unbounded;
        }
        let divisor = (1..=numerator.max(denominator))
            .rev()
            .find(|divisor| numerator.is_multiple_of(*divisor) && denominator.is_multiple_of(*divisor))
            .unwrap();
        Speed::Finite(numerator / divisor, denominator / divisor)
    }

    pub fn exceeds(self, other: Speed) -> bool {
        match (self, other) {
            (_, Speed::Unbounded) => false,
            (Speed::Unbounded, _) => true,
            (Speed::Finite(a, b), Speed::Finite(c, d)) => a * d > c * b,
        }
    }
}

/// A graph with its rates written out.
pub struct Model {
    pub actors: Vec<ActorModel>,
    pub channels: Vec<ChannelModel>,
}

pub struct ActorModel {
    times: Vec<u64>,
    concurrency: usize,
    /// Firings in one iteration.
    pub firings: u64,
}

pub struct ChannelModel {
    producer: usize,
    production: Vec<u64>,
    readers: Vec<ReaderModel>,
    initial: u64,
    /// The producer alone reads it: it limits nothing and counts for nothing.
    pub own: bool,
}

struct ReaderModel {
    actor: usize,
    acquire: Vec<u64>,
    release: Vec<u64>,
}

impl Model {
    pub fn new(graph: &Graph) -> Model {
        let phases = |actor: usize| graph.actors()[actor].phases as usize;
        let cycle =
            |rates: &Rates, actor: usize| -> Vec<u64> { rates.iter().cycle().take(phases(actor)).collect() };
        let channels: Vec<ChannelModel> = graph
            .channels()
            .iter()
            .map(|channel| {
                let producer = channel.producer.index();
                let readers: Vec<ReaderModel> = channel
                    .readers
                    .iter()
                    .map(|reader| {
                        let actor = reader.actor.index();
                        let (acquire, release) =
                            (cycle(&reader.acquire, actor), cycle(&reader.release, actor));
                        ReaderModel { actor, acquire, release }
                    })
                    .collect();
                ChannelModel {
                    producer,
                    production: cycle(&channel.production, producer),
                    own: readers.iter().all(|reader| reader.actor == producer),
                    readers,
                    initial: channel.initial_tokens,
                }
            })
            .collect();
        let cycles = cycles(graph.actors().len(), &channels);
        let actors = graph
            .actors()
            .iter()
            .enumerate()
            .map(|(index, actor)| ActorModel {
                times: cycle(&actor.execution_times, index),
                concurrency: actor.concurrency.get() as usize,
                firings: cycles[index] * actor.phases,
            })
            .collect();
        Model { actors, channels }
    }

    /// Runs the graph until a state comes back. Channels without a capacity may fill for ever, so that all that
    /// matter must have one.
    pub fn simulate(&self, capacities: &[Option<u64>]) -> Speed {
        let mut run = Run::new(self, capacities);
        let mut seen: BTreeMap<Vec<u64>, (u64, Vec<u64>)> = BTreeMap::new();
        loop {
            if !run.settle() {
                return Speed::Unbounded;
            }
            // A firing takes effect after those before it, so that the oldest of each actor counts.
            let oldest = run.under_way.iter().filter_map(VecDeque::front);
            let Some(&next) = oldest.min() else { return Speed::STANDSTILL };
            if let Some((time, started)) = seen.insert(run.state(), (run.now, run.started.clone())) {
                let fired = |actor: usize| run.started[actor] - started[actor];
                let (slowest, actor) = (0..self.actors.len())
                    .map(|actor| (fired(actor), actor))
                    .min_by(|&(a, i), &(b, j)| {
                        (a * self.actors[j].firings).cmp(&(b * self.actors[i].firings))
                    })
                    .unwrap();
                return Speed::new(slowest, (run.now - time) * self.actors[actor].firings);
            }
            run.now = next;
        }
    }

    /// Whether one iteration runs to its end.
    pub fn is_live(&self, capacities: &[Option<u64>]) -> bool {
        let mut run = Run::new(self, capacities);
        loop {
            let done = |actor: usize| run.started[actor] >= self.actors[actor].firings;
            if (0..self.actors.len()).all(done) {
                return true;
            }
            let Some(actor) = (0..self.actors.len()).find(|&actor| !done(actor) && run.can_start(actor))
            else {
                return false;
            };
            run.start(actor);
            run.end(actor);
        }
    }
}

/// The least whole cycles of each actor that leave all channels as they were; the graph is connected.
fn cycles(actors: usize, channels: &[ChannelModel]) -> Vec<u64> {
    'guess: for guess in 1.. {
        let mut cycles = vec![0; actors];
        cycles[0] = guess;
        for _ in 0..actors {
            for channel in channels {
                let produced: u64 = channel.production.iter().sum();
                for reader in &channel.readers {
                    let acquired: u64 = reader.acquire.iter().sum();
                    let (from, to) = (channel.producer, reader.actor);
                    if cycles[from] > 0
                        && cycles[to] == 0
                        && (cycles[from] * produced).is_multiple_of(acquired)
                    {
                        cycles[to] = cycles[from] * produced / acquired;
                    } else if cycles[to] > 0
                        && cycles[from] == 0
                        && (cycles[to] * acquired).is_multiple_of(produced)
                    {
                        cycles[from] = cycles[to] * acquired / produced;
                    }
                }
            }
        }
        if cycles.contains(&0) {
            continue 'guess;
        }
        return cycles;
    }
    unreachable!()
}

/// A self-timed execution.
struct Run<'m> {
    model: &'m Model,
    capacities: Vec<Option<u64>>,
    now: u64,
    started: Vec<u64>,
    ended: Vec<u64>,
    /// By actor, when its firings under way end, in the order of their starts.
    under_way: Vec<VecDeque<u64>>,
    /// By channel: tokens produced, and tokens for which space was claimed.
    produced: Vec<u64>,
    claimed: Vec<u64>,
    /// By channel and reader.
    acquired: Vec<Vec<u64>>,
    released: Vec<Vec<u64>>,
}

impl Run<'_> {
    fn new<'m>(model: &'m Model, capacities: &[Option<u64>]) -> Run<'m> {
        let initial: Vec<u64> = model.channels.iter().map(|channel| channel.initial).collect();
        let none: Vec<Vec<u64>> =
            model.channels.iter().map(|channel| vec![0; channel.readers.len()]).collect();
        Run {
            model,
            capacities: capacities.to_vec(),
            now: 0,
            started: vec![0; model.actors.len()],
            ended: vec![0; model.actors.len()],
            under_way: vec![VecDeque::new(); model.actors.len()],
            produced: initial.clone(),
            claimed: initial,
            acquired: none.clone(),
            released: none,
        }
    }

    /// Ends and starts all that can at this time; says whether that comes to an end.
    fn settle(&mut self) -> bool {
        let mut rounds = 0;
        loop {
            let mut changed = false;
            for actor in 0..self.model.actors.len() {
                while self.under_way[actor].front().is_some_and(|&end| end <= self.now) {
                    self.under_way[actor].pop_front();
                    self.end(actor);
                    changed = true;
                }
                while self.under_way[actor].len() < self.model.actors[actor].concurrency
                    && self.can_start(actor)
                {
                    let times = &self.model.actors[actor].times;
                    let time = times[self.started[actor] as usize % times.len()];
                    self.start(actor);
                    self.under_way[actor].push_back(self.now + time);
                    changed = true;
                }
            }
            if !changed {
                return true;
            }
            // A graph this small holds tokens for far fewer rounds in which no time passes.
            rounds += 1;
            if rounds > 1000 {
                return false;
            }
        }
    }

    fn can_start(&self, actor: usize) -> bool {
        let firing = self.started[actor] as usize;
        self.model.channels.iter().enumerate().all(|(index, channel)| {
            let readable = channel.readers.iter().enumerate().all(|(place, reader)| {
                let needed = reader.acquire[firing % reader.acquire.len()];
                reader.actor != actor || self.acquired[index][place] + needed <= self.produced[index]
            });
            let fits = channel.producer != actor
                || channel.own
                || self.capacities[index].is_none_or(|capacity| {
                    let freed = self.released[index].iter().min().unwrap();
                    let made = channel.production[firing % channel.production.len()];
                    self.claimed[index] + made - freed <= capacity
                });
            readable && fits
        })
    }

    fn start(&mut self, actor: usize) {
        let firing = self.started[actor] as usize;
        for (index, channel) in self.model.channels.iter().enumerate() {
            for (place, reader) in channel.readers.iter().enumerate().filter(|(_, r)| r.actor == actor) {
                self.acquired[index][place] += reader.acquire[firing % reader.acquire.len()];
            }
            if channel.producer == actor {
                self.claimed[index] += channel.production[firing % channel.production.len()];
            }
        }
        self.started[actor] += 1;
    }

    fn end(&mut self, actor: usize) {
        let firing = self.ended[actor] as usize;
        for (index, channel) in self.model.channels.iter().enumerate() {
            for (place, reader) in channel.readers.iter().enumerate().filter(|(_, r)| r.actor == actor) {
                self.released[index][place] += reader.release[firing % reader.release.len()];
            }
            if channel.producer == actor {
                self.produced[index] += channel.production[firing % channel.production.len()];
            }
        }
        self.ended[actor] += 1;
    }

    /// All on which the future depends.
    fn state(&self) -> Vec<u64> {
        let mut state = Vec::new();
        for (actor, under_way) in self.under_way.iter().enumerate() {
            state.push(self.started[actor] % self.model.actors[actor].times.len() as u64);
            state.push(under_way.len() as u64);
            state.extend(under_way.iter().map(|end| end.saturating_sub(self.now)));
        }
        for (index, produced) in self.produced.iter().enumerate() {
            state.push(self.claimed[index] - produced);
            state.extend(self.acquired[index].iter().map(|acquired| produced - acquired));
            state.extend(self.released[index].iter().map(|released| produced - released));
        }
        state
    }
}
