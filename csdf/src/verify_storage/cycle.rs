//! Checks that a cycle of dependencies exists and is too slow.

use crate::{
    Actor, ActorId, Channel, Conflict, Dependency, Error, Graph, Rates, Ratio, Reason, Throughput,
    repetition_vector,
};

/// Checks that each dependency of a conflict holds within its limits, and that the cycle keeps the graph from
/// `required`, or is a deadlock.
pub(super) fn check(graph: &Graph, conflict: &Conflict, required: Throughput) -> Result<(), Error> {
    let repetition = repetition_vector(graph)?;
    let Some(last) = conflict.cycle.last() else { return Error::bad_certificate("no dependencies") };
    // A dependency with reason `Ends` leads to the end of the next firing, any other to its start.
    let mut at_end = last.reason == Reason::Ends;
    let (mut time, mut waits) = (0u128, false);
    for (index, step) in conflict.cycle.iter().enumerate() {
        let actor = actor_of(graph, step.actor)?;
        let next = match conflict.cycle.get(index + 1) {
            Some(&next) => next,
            None => {
                let first = conflict.cycle[0];
                actor_of(graph, first.actor)?;
                let shift = repetition.firings[first.actor.index()].checked_mul(conflict.iterations);
                let firing = shift.and_then(|shift| shift.checked_add(first.firing));
                let Some(firing) = firing else {
                    return Error::bad_certificate("too great a number of firings");
                };
                Dependency { firing, ..first }
            }
        };
        let holds = match step.reason {
            Reason::Starts => !at_end && next.actor == step.actor && next.firing >= step.firing,
            Reason::Ends => next.actor == step.actor && next.firing >= step.firing,
            Reason::Order => {
                next.actor == step.actor
                    && next.firing.checked_sub(step.firing).is_some_and(|by| by >= actor.concurrency.get())
            }
            Reason::Tokens(channel) => needs_tokens(graph.channels().get(channel.index()), *step, next),
            Reason::Space(channel) => {
                let limit = conflict.limits.iter().find(|limit| limit.0 == channel).map(|limit| limit.1);
                let channel = graph.channels().get(channel.index());
                let limit = channel.and_then(|channel| channel.capacity).or(limit);
                needs_space(channel, limit, *step, next)
            }
        };
        if !holds {
            return Error::bad_certificate(format!(
                "firing {} of `{}` is not waited for",
                step.firing, actor.name
            ));
        }
        if step.reason == Reason::Starts {
            continue;
        }
        if !at_end {
            let several = step.reason == Reason::Order && actor.concurrency.get() == 1;
            let until = if several { next.firing } else { step.firing.saturating_add(1) };
            time += sum(&actor.execution_times, until) - sum(&actor.execution_times, step.firing);
        }
        at_end = step.reason == Reason::Ends;
        waits |= !at_end;
    }
    if !waits {
        return Error::bad_certificate("nothing waits for an end");
    }
    let ratio = Ratio::new(time, u128::from(conflict.iterations));
    let period = match required {
        Throughput::Finite(ratio) => ratio.inverse(),
        Throughput::Unbounded => Some(Ratio::ZERO),
    };
    match (ratio, period) {
        (None, _) => Ok(()),
        (Some(ratio), Some(period)) if ratio > period => Ok(()),
        _ => Error::bad_certificate("its cycle is no slower than the goal"),
    }
}

fn actor_of(graph: &Graph, id: ActorId) -> Result<&Actor, Error> {
    let unknown = || Error::UnknownActor { context: "a conflict".to_owned(), index: id.index() };
    graph.actors().get(id.index()).ok_or_else(unknown)
}

/// Whether the tokens that were there before `step` are not enough for `next`.
fn needs_tokens(channel: Option<&Channel>, step: Dependency, next: Dependency) -> bool {
    channel.is_some_and(|channel| {
        let there = u128::from(channel.initial_tokens) + sum(&channel.production, step.firing);
        channel.producer == step.actor
            && channel.readers.iter().any(|reader| {
                reader.actor == next.actor && sum(&reader.acquire, next.firing.saturating_add(1)) > there
            })
    })
}

/// Whether `next` does not fit before `step` has freed anything.
fn needs_space(channel: Option<&Channel>, limit: Option<u64>, step: Dependency, next: Dependency) -> bool {
    let (Some(channel), Some(limit)) = (channel, limit) else { return false };
    let claimed = sum(&channel.production, next.firing.saturating_add(1));
    let stored = u128::from(channel.initial_tokens) + claimed;
    channel.producer == next.actor
        && claimed > sum(&channel.production, next.firing)
        && channel.readers.iter().any(|reader| {
            reader.actor == step.actor && stored > u128::from(limit) + sum(&reader.release, step.firing)
        })
}

/// Sum of the first `count` rates of a cyclic sequence. Counts come from a search that walked through the firings. A
/// forged count may be arbitrarily large, and then so is the sum.
fn sum(rates: &Rates, count: u64) -> u128 {
    let length = rates.len().max(1);
    let mut sum = rates.total().saturating_mul(u128::from(count / length));
    let mut left = count % length;
    for run in rates.runs() {
        let pattern = run.pattern.len() as u64;
        let whole = (left / pattern).min(run.times);
        let total: u128 = run.pattern.iter().map(|&rate| u128::from(rate)).sum();
        sum = sum.saturating_add(total * u128::from(whole));
        left -= whole * pattern;
        if whole < run.times {
            let rest = run.pattern.iter().take(left as usize);
            return sum.saturating_add(rest.map(|&rate| u128::from(rate)).sum());
        }
    }
    sum
}
