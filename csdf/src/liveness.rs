//! Whether an iteration runs to its end.

use std::collections::VecDeque;

use crate::expand::State;
use crate::{Error, Expanded, Graph, Missing, Wait};

/// Checks that one iteration of `graph` runs to its end with these capacities in tokens, one per channel (`None` is
/// unbounded). An iteration takes the graph back to its initial tokens, so the graph then runs for ever.
///
/// Any order of firings gives the same answer, since firing one actor never disables another. This function fires every
/// actor that can fire. It takes at most O(f · d²) time, for f firings in an iteration and d ports and readers at an
/// actor.
///
/// ```
/// use csdf::{Actor, Channel, Error, Graph, Rates, Reader, check_liveness};
///
/// // A makes 2 tokens per firing, B reads 3, and a firing of B frees nothing before it ends.
/// let mut graph = Graph::new();
/// let [a, b] = [graph.add_actor(Actor::new("A", 1))?, graph.add_actor(Actor::new("B", 1))?];
/// let reader = Reader::consuming(b, Rates::constant(1, 3));
/// graph.add_channel(Channel::new("AB", a, Rates::constant(1, 2), vec![reader]))?;
///
/// assert!(check_liveness(&graph, &[Some(4)]).is_ok());
/// let Err(Error::Deadlock { cycle }) = check_liveness(&graph, &[Some(3)]) else { panic!("it runs") };
/// assert_eq!(cycle.iter().map(|wait| wait.actor.as_str()).collect::<Vec<_>>(), ["A", "B"]);
/// # Ok::<(), csdf::Error>(())
/// ```
///
/// # Errors
/// [`Error::Deadlock`] names the actors that wait for each other; [`Error::CapacityBelowInitial`];
/// [`Error::CapacityCount`]; those of [`Expanded::new`].
pub fn check_liveness(graph: &Graph, capacities: &[Option<u64>]) -> Result<(), Error> {
    check_capacities(graph, capacities)?;
    let expanded = Expanded::new(graph)?;
    let mut state = State::new(&expanded);
    let actors = graph.actors().len();
    let mut queue: VecDeque<usize> = (0..actors).collect();
    let mut queued = vec![true; actors];
    while let Some(actor) = queue.pop_front() {
        queued[actor] = false;
        let before = state.fired[actor];
        while !state.finished(actor) && obstacle(&expanded, &state, capacities, actor).is_none() {
            state.fire(actor);
        }
        if state.fired[actor] == before {
            continue;
        }
        let readers = expanded.outputs_of(actor).iter().flat_map(|output| {
            expanded.inputs_of_channel(output.channel).iter().map(|&input| expanded.actor_of_input(input))
        });
        let producers =
            expanded.input_range(actor).map(|input| expanded.producer(expanded.inputs[input].channel));
        for neighbour in readers.chain(producers) {
            if !queued[neighbour] {
                queued[neighbour] = true;
                queue.push_back(neighbour);
            }
        }
    }
    match (0..actors).find(|&actor| !state.finished(actor)) {
        None => Ok(()),
        Some(blocked) => Err(deadlock(&expanded, &state, capacities, blocked)),
    }
}

/// Whether there is one capacity per channel, and none below the initial tokens.
pub(crate) fn check_capacities(graph: &Graph, capacities: &[Option<u64>]) -> Result<(), Error> {
    let channels = graph.channels();
    if capacities.len() != channels.len() {
        return Err(Error::CapacityCount { given: capacities.len(), channels: channels.len() });
    }
    for (channel, &capacity) in channels.iter().zip(capacities) {
        if let Some(capacity) = capacity.filter(|&capacity| capacity < channel.initial_tokens) {
            let initial = channel.initial_tokens;
            return Err(Error::CapacityBelowInitial { channel: channel.name.clone(), capacity, initial });
        }
    }
    Ok(())
}

/// The reason why an actor cannot fire.
struct Obstacle {
    channel: usize,
    missing: Missing,
    waits_for: usize,
}

fn obstacle(
    expanded: &Expanded,
    state: &State,
    capacities: &[Option<u64>],
    actor: usize,
) -> Option<Obstacle> {
    if let Some((input, missing)) = state.missing_tokens(actor, expanded.input_range(actor).start) {
        let channel = expanded.inputs[input].channel;
        let waits_for = expanded.producer(channel);
        return Some(Obstacle { channel, missing: Missing::Tokens(missing), waits_for });
    }
    let (channel, missing) = state.missing_space(actor, capacities)?;
    let never = capacities[channel].is_some_and(|capacity| state.next_production(actor, channel) > capacity);
    let holder = state
        .holders(channel)
        .map(|input| expanded.actor_of_input(input))
        .find(|&reader| !state.finished(reader));
    let waits_for = holder.filter(|_| !never).unwrap_or(actor);
    Some(Obstacle { channel, missing: Missing::Space(missing), waits_for })
}

/// Follows the waits from a blocked actor until they form a cycle. They always do: every unfinished actor lacks
/// something, and an actor that is waited for is unfinished, since a consistent iteration brings every token and place.
fn deadlock(expanded: &Expanded, state: &State, capacities: &[Option<u64>], blocked: usize) -> Error {
    let mut met_at = vec![None; state.fired.len()];
    let mut waits = Vec::new();
    let mut actor = blocked;
    while met_at[actor].is_none() {
        met_at[actor] = Some(waits.len());
        let Some(obstacle) = obstacle(expanded, state, capacities, actor) else { break };
        waits.push(Wait {
            actor: expanded.actor_name(actor),
            channel: expanded.channel_name(obstacle.channel),
            missing: obstacle.missing,
            waits_for: expanded.actor_name(obstacle.waits_for),
        });
        actor = obstacle.waits_for;
    }
    let cycle = waits.split_off(met_at[actor].unwrap_or(0).min(waits.len()));
    Error::Deadlock { cycle }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::graph;

    fn check(text: &str, capacities: &[Option<u64>], expected: Option<&str>) {
        let found = check_liveness(&graph(text), capacities).err().map(|error| error.to_string());
        assert_eq!(found.as_deref(), expected, "{text} {capacities:?}");
    }

    #[test]
    fn unbounded() {
        check("a:1 b:1  a 1 > b 1", &[None], None);
        check("a:1 b:1  a 1 > b 1  b 1 > a 1 +1", &[None, None], None);
        check(
            "a:1 b:1  a 1 > b 1  b 1 > a 1",
            &[None, None],
            Some(
                "deadlock: `a` lacks 1 token of channel `b>a` and waits for `b`; `b` lacks 1 token of channel `a>b` and waits for `a`",
            ),
        );
        check("a:2  a 0,1 > a 1,0 +1", &[None], None);
        check(
            "a:2  a 1 > a 2,0 +1",
            &[None],
            Some("deadlock: `a` lacks 1 token of channel `a>a`, which no firing can bring"),
        );
    }

    #[test]
    fn bounded() {
        check("a:3 b:2  a 6,1,1 > b 4", &[Some(6)], None);
        check(
            "a:3 b:2  a 6,1,1 > b 4",
            &[Some(5)],
            Some("deadlock: `a` lacks 1 place of channel `a>b`, which no firing can bring"),
        );
        check("a:1 b:1  a 2 > b 3", &[Some(4)], None);
        check(
            "a:1 b:1  a 2 > b 3",
            &[Some(3)],
            Some(
                "deadlock: `a` lacks 1 place of channel `a>b` and waits for `b`; `b` lacks 1 token of channel `a>b` and waits for `a`",
            ),
        );
        // The slower reader holds the tokens that the faster one has released.
        check("a:4 b:4 c:1  a 1 > b 1 | c 4", &[Some(4)], None);
        check(
            "a:4 b:4 c:1  a 1 > b 1 | c 4",
            &[Some(3)],
            Some(
                "deadlock: `a` lacks 1 place of channel `a>b` and waits for `c`; `c` lacks 1 token of channel `a>b` and waits for `a`",
            ),
        );
    }

    #[test]
    fn bad_capacities() {
        check("a:1 b:1  a 1 > b 1", &[], Some("0 capacities for 1 channels"));
        check("a:1 b:1  a 1 > b 1 +3", &[Some(2)], Some("channel `a>b` has capacity 2 but 3 initial tokens"));
        check(
            "a:1 b:1  a 100000000 > b 1",
            &[None],
            Some(
                "one iteration has a number of firings of 100000001, but csdf walks through at most 67108864",
            ),
        );
    }
}
