//! A part of a graph laid out over one iteration of its own, rates accumulated firing by firing.
//!
//! This is one of two flat forms of a graph; the other is `expand`. It holds *sums* of rates of a strongly connected
//! part, so the tokens produced after k firings are one look-up. Firings can then be timed, compared across iterations,
//! and made nodes of a cycle's graph. The memory that it takes grows with the number of firings, as that of timed
//! analyses does anyway.
//!
//! Each form has a loop that fires what it can. The loop of `Layout::run` looks at each port once and lists the order
//! of firings. The loop of `check_liveness` may look at a port again, and names the actors that wait for each other.

use std::collections::VecDeque;

use num_integer::gcd;

use crate::budget::Meter;
use crate::{Error, Graph, MAX_FIRINGS, RepetitionVector};

/// Some actors of a graph and the channels among them.
///
/// Everything is counted over the smallest iteration of the part. Tokens are counted by the ends of the firings that
/// move them, so the tokens produced after k firings are one look-up.
pub(crate) struct Layout {
    pub(crate) actors: Vec<PartActor>,
    /// Channels that move tokens and have a reader within the part.
    pub(crate) channels: Vec<Pipe>,
    pub(crate) links: Vec<Link>,
    /// How often the part's iteration happens in one of the graph.
    pub(crate) repeats: u64,
}

/// An actor of a part.
pub(crate) struct PartActor {
    /// Its place in the graph.
    pub(crate) id: usize,
    /// Firings in an iteration of the part.
    pub(crate) firings: usize,
    /// Execution times, cyclic.
    pub(crate) times: Vec<u64>,
    pub(crate) concurrency: u64,
    /// Links that it reads.
    pub(crate) inputs: Vec<usize>,
    /// Channels that it writes.
    pub(crate) outputs: Vec<usize>,
}

impl PartActor {
    pub(crate) fn time(&self, firing: usize) -> u64 {
        self.times[firing % self.times.len()]
    }
}

/// A channel of a part.
pub(crate) struct Pipe {
    /// Its place in the graph.
    pub(crate) id: usize,
    pub(crate) producer: usize,
    pub(crate) initial: u64,
    /// Tokens in an iteration.
    pub(crate) total: u64,
    /// Tokens produced by the first k firings, at k.
    pub(crate) produced: Vec<u64>,
    /// Its readers within the part.
    pub(crate) links: std::ops::Range<usize>,
}

/// A reader of a channel.
pub(crate) struct Link {
    pub(crate) channel: usize,
    pub(crate) reader: usize,
    /// Tokens acquired by the first k firings, at k.
    pub(crate) acquired: Vec<u64>,
    /// Tokens released by the first k firings, at k.
    pub(crate) released: Vec<u64>,
}

/// The data that all layouts of parts of one graph share.
pub(crate) struct Index<'g> {
    graph: &'g Graph,
    repetition: &'g RepetitionVector,
    /// Channels that each actor writes.
    written: Vec<Vec<usize>>,
    /// Place of each actor in the part being laid out; the greatest number for actors outside the part.
    place: Vec<usize>,
}

impl<'g> Index<'g> {
    pub(crate) fn new(graph: &'g Graph, repetition: &'g RepetitionVector) -> Index<'g> {
        let mut written = vec![Vec::new(); graph.actors().len()];
        for (id, channel) in graph.channels().iter().enumerate() {
            written[channel.producer.index()].push(id);
        }
        let place = vec![usize::MAX; written.len()];
        Index { graph, repetition, written, place }
    }
}

impl Layout {
    /// Lays out all of a graph.
    pub(crate) fn of_graph(graph: &Graph, repetition: &RepetitionVector) -> Result<Layout, Error> {
        let all: Vec<usize> = (0..graph.actors().len()).collect();
        Layout::new(&mut Index::new(graph, repetition), &all)
    }

    /// Lays out the actors that `members` lists, with the channels among them.
    pub(crate) fn new(index: &mut Index, members: &[usize]) -> Result<Layout, Error> {
        members.iter().enumerate().for_each(|(place, &id)| index.place[id] = place);
        let layout = Layout::placed(index, members);
        members.iter().for_each(|&id| index.place[id] = usize::MAX);
        layout
    }

    fn placed(index: &Index, members: &[usize]) -> Result<Layout, Error> {
        let Index { graph, repetition, place, .. } = index;
        let repeats =
            members.iter().fold(0, |common, &id| gcd(common, u128::from(repetition.cycles[id]))).max(1);
        let firings = |id: usize| u128::from(repetition.firings[id]) / repeats;
        let mut size = 0;
        let mut actors = Vec::with_capacity(members.len());
        for &id in members {
            size += firings(id);
            let actor = &graph.actors()[id];
            // Lists of times are bounded by phases, and so by firings.
            let times = if size <= u128::from(MAX_FIRINGS) {
                actor.execution_times.iter().collect()
            } else {
                Vec::new()
            };
            actors.push(PartActor {
                id,
                firings: firings(id) as usize,
                times,
                concurrency: actor.concurrency.get(),
                inputs: Vec::new(),
                outputs: Vec::new(),
            });
        }
        let within = |id: usize| place[id] != usize::MAX;
        let mut rates = 0;
        let mut channels: Vec<usize> = members.iter().flat_map(|&id| &index.written[id]).copied().collect();
        channels.sort_unstable();
        for channel in channels.iter().map(|&id| &graph.channels()[id]) {
            let readers = channel.readers.iter().filter(|reader| within(reader.actor.index()));
            rates += firings(channel.producer.index())
                + readers.map(|reader| 2 * firings(reader.actor.index())).sum::<u128>();
        }
        for (what, count) in [("a number of firings", size), ("a number of rates", rates)] {
            if count > u128::from(MAX_FIRINGS) {
                return Err(Error::TooLong { what, count, limit: MAX_FIRINGS });
            }
        }
        let mut layout = Layout { actors, channels: Vec::new(), links: Vec::new(), repeats: repeats as u64 };
        for id in channels {
            layout.add_channel(graph, id, place)?;
        }
        Ok(layout)
    }

    fn add_channel(&mut self, graph: &Graph, id: usize, place: &[usize]) -> Result<(), Error> {
        let channel = &graph.channels()[id];
        let producer = place[channel.producer.index()];
        let readers: Vec<_> =
            channel.readers.iter().filter(|reader| place[reader.actor.index()] != usize::MAX).collect();
        if readers.is_empty() || channel.production.total() == 0 {
            return Ok(());
        }
        let firings = self.actors[producer].firings;
        let total = channel.production.total() * (firings as u128 / u128::from(channel.production.len()));
        let fits = total.checked_add(u128::from(channel.initial_tokens)).is_some_and(|most| most <= 1 << 63);
        if !fits {
            return Err(Error::Overflow { what: "count of tokens", of: channel.name.clone() });
        }
        let index = self.channels.len();
        self.actors[producer].outputs.push(index);
        let from = self.links.len();
        for reader in readers {
            let actor = place[reader.actor.index()];
            let firings = self.actors[actor].firings;
            self.actors[actor].inputs.push(self.links.len());
            self.links.push(Link {
                channel: index,
                reader: actor,
                acquired: accumulate(reader.acquire.iter(), firings),
                released: accumulate(reader.release.iter(), firings),
            });
        }
        self.channels.push(Pipe {
            id,
            producer,
            initial: channel.initial_tokens,
            // Checked to fit just above.
            total: total as u64,
            produced: accumulate(channel.production.iter(), firings),
            links: from..self.links.len(),
        });
        Ok(())
    }

    /// All of it.
    pub(crate) fn scope(&self) -> Scope {
        self.scope_of(&vec![true; self.actors.len()])
    }

    /// The actors that are marked and the channels among them.
    pub(crate) fn scope_of(&self, marked: &[bool]) -> Scope {
        let mut first = vec![usize::MAX; self.actors.len()];
        let mut actors = Vec::new();
        let mut firings = 0;
        for (actor, part) in self.actors.iter().enumerate().filter(|&(actor, _)| marked[actor]) {
            first[actor] = firings;
            firings += part.firings;
            actors.push(actor);
        }
        Scope { actors, first, firings }
    }

    /// Fires every actor that can fire, from the initial tokens on, until an iteration is complete or no actor can
    /// fire. Channels that lead into the scope or out of it are no obstacle. Any order ends in the same way, since no
    /// firing disables another.
    pub(crate) fn run(
        &self,
        scope: &Scope,
        capacities: &[Option<u64>],
        meter: &mut Meter,
    ) -> Result<FiringOrder, Error> {
        meter.spend(scope.firings as u64)?;
        let mut run =
            FiringOrder { fired: vec![0; self.actors.len()], order: Vec::with_capacity(scope.firings) };
        let mut queue: VecDeque<usize> = scope.actors.iter().copied().collect();
        // Tokens and space that a firing has found remain available. So each firing looks at each port once, and goes
        // on from this port.
        let mut port = vec![0; self.actors.len()];
        // The actors that wait for a firing of each actor. An actor waits for one thing at a time.
        let mut waiting = vec![Vec::new(); self.actors.len()];
        while let Some(actor) = queue.pop_front() {
            let before = run.fired[actor];
            while run.fired[actor] < self.actors[actor].firings {
                match self.obstacle(scope, capacities, &run.fired, actor, port[actor]) {
                    Some((at, other)) => {
                        port[actor] = at;
                        waiting[other].push(actor);
                        break;
                    }
                    None => {
                        port[actor] = 0;
                        run.order.push((scope.first[actor] + run.fired[actor]) as u32);
                        run.fired[actor] += 1;
                    }
                }
            }
            if run.fired[actor] > before {
                queue.extend(waiting[actor].drain(..));
            }
        }
        Ok(run)
    }

    /// The first port from `from` on, inputs before outputs, that lacks something for the actor's next firing, and
    /// the actor that has to bring it.
    fn obstacle(
        &self,
        scope: &Scope,
        capacities: &[Option<u64>],
        fired: &[usize],
        actor: usize,
        from: usize,
    ) -> Option<(usize, usize)> {
        let part = &self.actors[actor];
        let firing = fired[actor];
        let inputs = part.inputs.len();
        for (place, &link) in part.inputs.iter().enumerate().skip(from) {
            let link = &self.links[link];
            let channel = &self.channels[link.channel];
            let producer = channel.producer;
            if scope.has(producer)
                && link.acquired[firing + 1] > channel.initial + channel.produced[fired[producer]]
            {
                return Some((place, producer));
            }
        }
        for (place, &channel) in part.outputs.iter().enumerate().skip(from.saturating_sub(inputs)) {
            let channel = &self.channels[channel];
            let Some(capacity) = capacities[channel.id] else { continue };
            let stored = channel.initial + channel.produced[firing + 1];
            if stored <= capacity || channel.produced[firing] == channel.produced[firing + 1] {
                continue;
            }
            for link in &self.links[channel.links.clone()] {
                if scope.has(link.reader) && stored - link.released[fired[link.reader]] > capacity {
                    return Some((inputs + place, link.reader));
                }
            }
        }
        None
    }
}

/// A set of actors of a layout, with their firings numbered one actor after the other.
pub(crate) struct Scope {
    pub(crate) actors: Vec<usize>,
    /// The number of each actor's first firing; the greatest number for an actor outside.
    pub(crate) first: Vec<usize>,
    pub(crate) firings: usize,
}

impl Scope {
    pub(crate) fn has(&self, actor: usize) -> bool {
        self.first[actor] != usize::MAX
    }

    /// Actor and firing of a number.
    pub(crate) fn firing(&self, number: usize) -> (usize, usize) {
        let place = self.actors.partition_point(|&actor| self.first[actor] <= number) - 1;
        let actor = self.actors[place];
        (actor, number - self.first[actor])
    }
}

/// The progress of an iteration.
pub(crate) struct FiringOrder {
    /// Firings, by actor.
    pub(crate) fired: Vec<usize>,
    /// The numbers of the firings, in their order.
    pub(crate) order: Vec<u32>,
}

impl FiringOrder {
    pub(crate) fn is_complete(&self, scope: &Scope) -> bool {
        self.order.len() == scope.firings
    }
}

fn accumulate(rates: impl Iterator<Item = u64> + Clone, firings: usize) -> Vec<u64> {
    let mut sums = Vec::with_capacity(firings + 1);
    let mut sum = 0;
    sums.push(sum);
    for rate in rates.cycle().take(firings) {
        sum += rate;
        sums.push(sum);
    }
    sums
}

/// The strongly connected parts of a graph, as lists of actors. Channels with a capacity connect both ways.
pub(crate) fn strong_parts(graph: &Graph, capacities: &[Option<u64>]) -> Vec<Vec<usize>> {
    let mut edges = Vec::new();
    for (channel, capacity) in graph.channels().iter().zip(capacities) {
        if channel.production.total() == 0 {
            continue;
        }
        let producer = channel.producer.index() as u32;
        for reader in &channel.readers {
            let reader = reader.actor.index() as u32;
            edges.push((producer, reader));
            if capacity.is_some() {
                edges.push((reader, producer));
            }
        }
    }
    let mut connected: petgraph::graph::DiGraph<(), ()> =
        petgraph::graph::DiGraph::with_capacity(graph.actors().len(), edges.len());
    for _ in graph.actors() {
        connected.add_node(());
    }
    connected.extend_with_edges(edges);
    petgraph::algo::kosaraju_scc(&connected)
        .into_iter()
        .map(|part| {
            let mut members: Vec<usize> = part.into_iter().map(petgraph::graph::NodeIndex::index).collect();
            members.sort_unstable();
            members
        })
        .collect()
}
