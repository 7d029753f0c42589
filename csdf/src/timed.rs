//! Self-timed execution.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use crate::budget::Meter;
use crate::layout::Layout;
use crate::liveness::check_capacities;
use crate::{Budget, Error, Graph, MAX_FIRINGS, repetition_vector};

/// A self-timed schedule, for as many processors as there are firings at a time. It has a start-up, and then a period
/// that repeats for ever. Times are in the unit of [`Actor::execution_times`](crate::Actor::execution_times).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTimed {
    /// By actor, the start times of its firings before the period.
    pub transient: Vec<Vec<u64>>,
    /// By actor, the start times of its firings in the first period.
    pub periodic: Vec<Vec<u64>>,
    /// Time after which the period repeats; 0 if the graph deadlocks, and then `periodic` is empty.
    pub period: u64,
}

/// The self-timed schedule of `graph` with these capacities (`None` is unbounded), one per channel. The rules are
/// those of [`throughput`](crate::throughput()).
///
/// # Errors
/// Those of [`throughput`](crate::throughput()); [`Error::Exhausted`] if no state comes back within the budget and
/// [`MAX_FIRINGS`], as where a fast actor fills an unbounded channel.
pub fn self_timed(graph: &Graph, capacities: &[Option<u64>], budget: &Budget) -> Result<SelfTimed, Error> {
    check_capacities(graph, capacities)?;
    let repetition = repetition_vector(graph)?;
    let layout = Layout::of_graph(graph, &repetition)?;
    let mut starts = vec![Vec::new(); layout.actors.len()];
    let mut recorded = 0;
    let recurrence = recurrence(&layout, capacities, &mut Meter::new(budget), |actor, time| {
        recorded += 1;
        starts[actor].push(time);
        if recorded > MAX_FIRINGS { Err(Error::Exhausted) } else { Ok(()) }
    })?;
    let Some(recurrence) = recurrence else {
        return Ok(SelfTimed {
            transient: starts,
            periodic: vec![Vec::new(); layout.actors.len()],
            period: 0,
        });
    };
    let mut transient = Vec::new();
    let mut periodic = Vec::new();
    for (mut starts, (from, to)) in starts.into_iter().zip(recurrence.started) {
        // What is recorded fits the memory, so that its length fits.
        starts.truncate(to as usize);
        periodic.push(starts.split_off(from as usize));
        transient.push(starts);
    }
    Ok(SelfTimed { transient, periodic, period: recurrence.period })
}

/// A state that came back.
pub(crate) struct Recurrence {
    /// Time between the two meetings.
    pub(crate) period: u64,
    /// By actor, its firings started when the state was met first, and when it was met again.
    pub(crate) started: Vec<(u64, u64)>,
}

/// Executes a layout, self-timed, until a state comes back; none if it deadlocks. `start` is told the
/// actor and time of each firing.
///
/// States are compared when some actor begins an iteration. A state consists of the firings begun beyond those of whole
/// iterations, and of the times that are left of the firings under way. It determines everything that follows.
pub(crate) fn recurrence(
    layout: &Layout,
    capacities: &[Option<u64>],
    meter: &mut Meter,
    mut start: impl FnMut(usize, u64) -> Result<(), Error>,
) -> Result<Option<Recurrence>, Error> {
    let mut execution = TimedState::new(layout, capacities);
    let mut seen: BTreeMap<Vec<u64>, (u64, Vec<u64>)> = BTreeMap::new();
    let mut size = 0;
    loop {
        execution.start_all(meter, &mut start)?;
        if std::mem::take(&mut execution.begins) {
            let state = execution.state();
            size += 2 * state.len() as u64;
            meter.spend(2 * state.len() as u64)?;
            if size > MAX_FIRINGS {
                return Err(Error::Exhausted);
            }
            let now = (execution.now, execution.started.clone());
            if let Some((time, started)) = seen.insert(state, now) {
                return Ok(Some(Recurrence {
                    period: execution.now - time,
                    started: started.into_iter().zip(execution.started).collect(),
                }));
            }
        }
        if !execution.advance(meter)? {
            return Ok(None);
        }
    }
}

struct TimedState<'l> {
    layout: &'l Layout,
    capacities: &'l [Option<u64>],
    now: u64,
    started: Vec<u64>,
    /// Ends of the firings under way, in their order, by actor.
    under_way: Vec<VecDeque<u64>>,
    /// Times at which actors have a firing to end.
    ends: BinaryHeap<Reverse<(u64, usize)>>,
    /// Tokens to be read, by link.
    unread: Vec<u128>,
    /// Tokens for which the link's reader keeps space, by link.
    stored: Vec<u128>,
    /// Actors that may be able to start.
    queue: VecDeque<usize>,
    queued: Vec<bool>,
    /// Whether an actor has begun an iteration since this was last asked.
    begins: bool,
    /// The first actor of each actor's connected part.
    root: Vec<usize>,
}

impl<'l> TimedState<'l> {
    fn new(layout: &'l Layout, capacities: &'l [Option<u64>]) -> TimedState<'l> {
        let actors = layout.actors.len();
        let initial: Vec<u128> =
            layout.links.iter().map(|link| u128::from(layout.channels[link.channel].initial)).collect();
        TimedState {
            layout,
            capacities,
            now: 0,
            started: vec![0; actors],
            under_way: vec![VecDeque::new(); actors],
            ends: BinaryHeap::new(),
            unread: initial.clone(),
            stored: initial,
            queue: (0..actors).collect(),
            queued: vec![true; actors],
            begins: false,
            root: roots(layout),
        }
    }

    /// Starts every firing that can start now, including firings that take no time.
    fn start_all(
        &mut self,
        meter: &mut Meter,
        start: &mut impl FnMut(usize, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while let Some(actor) = self.queue.pop_front() {
            self.queued[actor] = false;
            meter.spend(1)?;
            while self.can_start(actor) {
                start(actor, self.now)?;
                self.start(actor)?;
                meter.spend(1)?;
            }
        }
        Ok(())
    }

    fn can_start(&self, actor: usize) -> bool {
        let part = &self.layout.actors[actor];
        let firing = (self.started[actor] % part.firings as u64) as usize;
        (self.under_way[actor].len() as u64) < part.concurrency
            && part.inputs.iter().all(|&link| {
                let acquired = &self.layout.links[link].acquired;
                u128::from(acquired[firing + 1] - acquired[firing]) <= self.unread[link]
            })
            && part.outputs.iter().all(|&channel| {
                let channel = &self.layout.channels[channel];
                let made = u128::from(channel.produced[firing + 1] - channel.produced[firing]);
                let most = channel.links.clone().map(|link| self.stored[link]).max().unwrap_or(0);
                made == 0
                    || self.capacities[channel.id].is_none_or(|capacity| most + made <= u128::from(capacity))
            })
    }

    fn start(&mut self, actor: usize) -> Result<(), Error> {
        let part = &self.layout.actors[actor];
        let firing = (self.started[actor] % part.firings as u64) as usize;
        for &link in &part.inputs {
            let acquired = &self.layout.links[link].acquired;
            self.unread[link] -= u128::from(acquired[firing + 1] - acquired[firing]);
        }
        for channel in part.outputs.iter().map(|&channel| &self.layout.channels[channel]) {
            let made = u128::from(channel.produced[firing + 1] - channel.produced[firing]);
            channel.links.clone().for_each(|link| self.stored[link] += made);
        }
        self.started[actor] += 1;
        self.begins |= firing == 0;
        let overflow = || Error::Overflow { what: "time", of: format!("actor {}", part.id) };
        let end = self.now.checked_add(part.time(firing)).ok_or_else(overflow)?;
        // It takes effect after the firings before it.
        let end = self.under_way[actor].back().map_or(end, |&before| end.max(before));
        self.under_way[actor].push_back(end);
        if end == self.now {
            self.end(actor);
        } else {
            self.ends.push(Reverse((end, actor)));
        }
        Ok(())
    }

    /// Ends the oldest firing under way.
    fn end(&mut self, actor: usize) {
        let part = &self.layout.actors[actor];
        let ended = self.started[actor] - self.under_way[actor].len() as u64;
        let firing = (ended % part.firings as u64) as usize;
        self.under_way[actor].pop_front();
        for &link in &part.inputs {
            let link_of = &self.layout.links[link];
            let released = &link_of.released;
            self.stored[link] -= u128::from(released[firing + 1] - released[firing]);
            self.notice(self.layout.channels[link_of.channel].producer);
        }
        for channel in part.outputs.iter().map(|&channel| &self.layout.channels[channel]) {
            let made = u128::from(channel.produced[firing + 1] - channel.produced[firing]);
            for link in channel.links.clone() {
                self.unread[link] += made;
                self.notice(self.layout.links[link].reader);
            }
        }
        self.notice(actor);
    }

    fn notice(&mut self, actor: usize) {
        if !self.queued[actor] {
            self.queued[actor] = true;
            self.queue.push_back(actor);
        }
    }

    /// Goes to the next time at which a firing ends; false if none is under way.
    fn advance(&mut self, meter: &mut Meter) -> Result<bool, Error> {
        let Some(&Reverse((time, _))) = self.ends.peek() else { return Ok(false) };
        self.now = time;
        while let Some(&Reverse((end, actor))) = self.ends.peek().filter(|next| next.0.0 == time) {
            debug_assert_eq!(end, time);
            self.ends.pop();
            self.end(actor);
            meter.spend(1)?;
        }
        Ok(true)
    }

    fn state(&self) -> Vec<u64> {
        let mut state = Vec::with_capacity(2 * self.started.len());
        for (actor, part) in self.layout.actors.iter().enumerate() {
            let root = self.root[actor];
            let iterations = self.started[root] / self.layout.actors[root].firings as u64;
            // The difference may be negative; what counts is that it is the same.
            state.push(self.started[actor].wrapping_sub(iterations.wrapping_mul(part.firings as u64)));
            state.push(self.under_way[actor].len() as u64);
            state.extend(self.under_way[actor].iter().map(|end| end - self.now));
        }
        state
    }
}

/// The first actor of each actor's connected part.
fn roots(layout: &Layout) -> Vec<usize> {
    let mut neighbours = vec![Vec::new(); layout.actors.len()];
    for link in &layout.links {
        let producer = layout.channels[link.channel].producer;
        neighbours[producer].push(link.reader);
        neighbours[link.reader].push(producer);
    }
    let mut roots = vec![usize::MAX; layout.actors.len()];
    for root in 0..roots.len() {
        let mut open = vec![root];
        while let Some(actor) = open.pop() {
            if roots[actor] == usize::MAX {
                roots[actor] = root;
                open.extend(&neighbours[actor]);
            }
        }
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    fn check(text: &str, capacities: &[Option<u64>], transient: &[&[u64]], periodic: &[&[u64]], period: u64) {
        let found = self_timed(&graph(text), capacities, &Budget::default()).unwrap();
        assert_eq!(
            (found.transient, found.periodic, found.period),
            (
                transient.iter().map(|starts| starts.to_vec()).collect(),
                periodic.iter().map(|starts| starts.to_vec()).collect(),
                period,
            ),
            "{text} {capacities:?}"
        );
    }

    #[test]
    fn start_times() {
        // The example of Stuijk, Geilen and Basten 2006 in 4 and 2 tokens.
        let example = "a:1@1 b:1@2 c:1@2  a 2 > b 3  b 1 > c 2";
        let four_two = [Some(4), Some(2)];
        check(example, &four_two, &[&[0, 1], &[2], &[]], &[&[4, 7, 8], &[5, 9], &[7]], 7);
        check("a:1@2 b:1@3  a 1 > b 1", &[Some(2)], &[&[0, 2], &[2]], &[&[5], &[5]], 3);
        check("a:1@2^2", &[], &[&[0, 0]], &[&[2, 2]], 2);
        check("a:1@2 b:1@1  a 1 > b 1  b 1 > a 1", &[None, None], &[&[], &[]], &[&[], &[]], 0);
    }

    #[test]
    fn without_end() {
        let budget = Budget { work: 100_000, time: None, stop: None };
        let fills = graph("a:1@1 b:1@2  a 1 > b 1");
        assert_eq!(self_timed(&fills, &[None], &budget), Err(Error::Exhausted));
        let instant = graph("a:1@0");
        assert_eq!(self_timed(&instant, &[], &budget), Err(Error::Exhausted));
    }
}
