//! Why given capacities miss a goal: cycles of firings that wait for each other.

use std::collections::VecDeque;

use crate::budget::Meter;
use crate::layout::{Layout, Scope};
use crate::throughput::cycle_ratio::{Cycle, WaitGraph};
use crate::{ActorId, ChannelId, Dependency, Error, Ratio, Reason};

/// The goal of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// No deadlock.
    Live,
    /// An iteration takes at most this long.
    Within(Ratio),
    /// An iteration takes less than that.
    Below(Ratio),
}

/// Cycles of the scope that keep it from the target, no channel in two of them; none if it is met.
pub(crate) fn conflicts(
    layout: &Layout,
    scope: &Scope,
    capacities: &[Option<u64>],
    target: Target,
    meter: &mut Meter,
) -> Result<Vec<Cycle>, Error> {
    let run = layout.run(scope, capacities, meter)?;
    if !run.is_complete(scope) {
        return deadlocks(layout, scope, capacities, &run.fired, meter);
    }
    let mut cycles = match target {
        Target::Live => return Ok(Vec::new()),
        Target::Within(period) => {
            WaitGraph::new(layout, scope, capacities, &run.order)?.slower_than(period, meter)?
        }
        Target::Below(period) => {
            WaitGraph::new(layout, scope, capacities, &run.order)?.as_slow_as(period, meter)?
        }
    };
    // Small conflicts first, since they exclude most.
    cycles.sort_by_key(|cycle| (cycle.channels().len(), cycle.steps.len()));
    let mut used = Vec::new();
    cycles.retain(|cycle| {
        let channels = cycle.channels();
        let apart = channels.iter().all(|channel| !used.contains(channel));
        used.extend(channels);
        apart
    });
    Ok(cycles)
}

/// A blocked actor waits for a firing of another actor, which is blocked too.
#[derive(Clone, Copy)]
struct BlockedBy {
    on: usize,
    firing: usize,
    reason: Reason,
}

/// Cycles of blocked actors, each with few channels whose space is waited for, and no such channel in two of
/// them.
fn deadlocks(
    layout: &Layout,
    scope: &Scope,
    capacities: &[Option<u64>],
    fired: &[usize],
    meter: &mut Meter,
) -> Result<Vec<Cycle>, Error> {
    let mut waits = vec![Vec::new(); layout.actors.len()];
    for &actor in scope.actors.iter().filter(|&&actor| fired[actor] < layout.actors[actor].firings) {
        waits[actor] = waits_of(layout, scope, capacities, fired, actor);
    }
    let mut cycles = Vec::new();
    loop {
        let mut best: Option<(usize, Vec<(usize, BlockedBy)>)> = None;
        for &actor in &scope.actors {
            if waits[actor].is_empty() || best.as_ref().is_some_and(|&(length, _)| length <= 1) {
                continue;
            }
            meter.spend(scope.actors.len() as u64)?;
            if let Some(found) = shortest_cycle(&waits, actor)
                && best.as_ref().is_none_or(|&(length, _)| found.0 < length)
            {
                best = Some(found);
            }
        }
        let Some((length, path)) = best else { return Ok(cycles) };
        let cycle = cycle_of(layout, fired, &path);
        let channels = cycle.channels();
        cycles.push(cycle);
        if length == 0 {
            return Ok(cycles);
        }
        for waits in &mut waits {
            waits.retain(|wait| match wait.reason {
                Reason::Space(channel) => !channels.contains(&channel.index()),
                _ => true,
            });
        }
    }
}

/// Everything that a blocked actor waits for.
fn waits_of(
    layout: &Layout,
    scope: &Scope,
    capacities: &[Option<u64>],
    fired: &[usize],
    actor: usize,
) -> Vec<BlockedBy> {
    let part = &layout.actors[actor];
    let firing = fired[actor];
    let mut waits = Vec::new();
    for link in part.inputs.iter().map(|&link| &layout.links[link]) {
        let channel = &layout.channels[link.channel];
        let needed = link.acquired[firing + 1].saturating_sub(channel.initial);
        if scope.has(channel.producer) && needed > channel.produced[fired[channel.producer]] {
            let firing = channel.produced.partition_point(|&produced| produced < needed) - 1;
            let reason = Reason::Tokens(ChannelId(channel.id as u32));
            waits.push(BlockedBy { on: channel.producer, firing, reason });
        }
    }
    for channel in part.outputs.iter().map(|&channel| &layout.channels[channel]) {
        let Some(capacity) = capacities[channel.id] else { continue };
        let needed = (channel.initial + channel.produced[firing + 1]).saturating_sub(capacity);
        if channel.produced[firing + 1] == channel.produced[firing] {
            continue;
        }
        for link in layout.links[channel.links.clone()].iter().filter(|link| scope.has(link.reader)) {
            if needed > link.released[fired[link.reader]] {
                let firing = link.released.partition_point(|&released| released < needed) - 1;
                waits.push(BlockedBy {
                    on: link.reader,
                    firing,
                    reason: Reason::Space(ChannelId(channel.id as u32)),
                });
            }
        }
    }
    waits
}

/// The cycle through an actor with fewest waits for space, and how many those are.
fn shortest_cycle(waits: &[Vec<BlockedBy>], root: usize) -> Option<(usize, Vec<(usize, BlockedBy)>)> {
    let mut distance = vec![usize::MAX; waits.len()];
    let mut came: Vec<Option<(usize, BlockedBy)>> = vec![None; waits.len()];
    // The root itself is reached only by coming back to it.
    let mut queue = VecDeque::from([(0, root)]);
    let mut first = true;
    while let Some((length, actor)) = queue.pop_front() {
        if !first && actor == root {
            break;
        }
        if !first && length > distance[actor] {
            continue;
        }
        first = false;
        for &wait in &waits[actor] {
            let space = usize::from(matches!(wait.reason, Reason::Space(_)));
            if length + space < distance[wait.on] {
                distance[wait.on] = length + space;
                came[wait.on] = Some((actor, wait));
                if space == 0 {
                    queue.push_front((length, wait.on));
                } else {
                    queue.push_back((length + 1, wait.on));
                }
            }
        }
    }
    let mut path = Vec::new();
    let mut at = root;
    loop {
        let (from, wait) = came[at]?;
        path.push((from, wait));
        at = from;
        if at == root {
            break;
        }
    }
    // As found, each waits for the one before it; the last firing comes first.
    Some((distance[root], path))
}

/// The waits, each `(actor, what it waits for)`, as dependencies. An awaited actor comes before the actor that waits
/// for it.
fn cycle_of(layout: &Layout, fired: &[usize], path: &[(usize, BlockedBy)]) -> Cycle {
    let mut steps = Vec::new();
    let mut time = 0;
    for &(_, wait) in path {
        let part = &layout.actors[wait.on];
        let actor = ActorId(part.id as u32);
        if wait.firing > fired[wait.on] {
            steps.push(Dependency { actor, firing: fired[wait.on] as u64, reason: Reason::Starts });
        }
        steps.push(Dependency { actor, firing: wait.firing as u64, reason: wait.reason });
        time += u128::from(part.time(wait.firing));
    }
    Cycle { steps, iterations: 0, time }
}
