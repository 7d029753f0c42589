//! Smaller rings than those of an execution on demand, by the dataflow engine's search.
//!
//! On a chain of layers, an execution on demand has the smallest possible rings. Where branches come together, it may
//! let one branch run ahead of the other. Then the engine looks for smaller capacities and an order of firings that
//! keeps to them. This order replaces the order within the segment. This takes time, so it is done only for the
//! design points that are worth choosing, in storage model `tensors`.

use std::collections::BTreeMap;

use csdf::{ActorId, Budget, Channel, Execution, Expanded, Goal, Graph, StorageOptions, Unit};

/// The budget of the search for one segment, in steps, so that the answer is the same on any machine.
const BUDGET: Budget = Budget { work: 1 << 28, time: None, stop: None };

/// The execution with another order for some segments, so that the rings within each of them take fewer bytes together.
/// `None` if there is no such order, or if none was found within the budget. A tensor that a later segment reads stays
/// whole.
///
/// # Errors
/// Those of the dataflow analyses. There are none if `execution` is an execution of this graph.
pub fn tighten(
    graph: &Graph,
    segments: &[Vec<ActorId>],
    execution: &Execution,
) -> Result<Option<Execution>, csdf::Error> {
    let repetition = csdf::repetition_vector(graph)?;
    let mut firings = Vec::with_capacity(execution.firings.len());
    let mut rest = execution.firings.as_slice();
    let mut tighter = false;
    for segment in segments {
        // Segments run one after another, each all firings of its actors.
        let length: u64 = segment.iter().map(|actor| repetition.firings[actor.index()]).sum();
        let (own, others) = rest.split_at(rest.len().min(length as usize));
        rest = others;
        match order(graph, segment, &execution.capacities)? {
            Some(order) => {
                tighter = true;
                firings.extend(order);
            }
            None => firings.extend(own),
        }
    }
    if tighter { Expanded::new(graph)?.replay(firings).map(Some) } else { Ok(None) }
}

/// An order of one segment's firings whose rings take fewer bytes than these capacities.
fn order(
    graph: &Graph,
    segment: &[ActorId],
    capacities: &[u64],
) -> Result<Option<Vec<ActorId>>, csdf::Error> {
    let mut part = Graph::new();
    let mut ids = BTreeMap::new();
    for &actor in segment {
        ids.insert(actor, part.add_actor(graph.actors()[actor.index()].clone())?);
    }
    let mut present = 0;
    let mut free = Vec::new();
    for (channel, &capacity) in graph.channels().iter().zip(capacities) {
        let Some(&producer) = ids.get(&channel.producer) else { continue };
        let within = |reader: &csdf::Reader| {
            ids.get(&reader.actor).map(|&actor| csdf::Reader { actor, ..reader.clone() })
        };
        let readers: Vec<csdf::Reader> = channel.readers.iter().filter_map(within).collect();
        if readers.is_empty() {
            continue;
        }
        let stays = readers.len() < channel.readers.len();
        if !stays {
            present += u128::from(capacity) * u128::from(channel.token_bytes);
        }
        free.push(!stays);
        let stated = stays.then_some(capacity);
        part.add_channel(Channel { producer, readers, capacity: stated, ..channel.clone() })?;
    }
    if !free.contains(&true) {
        return Ok(None);
    }
    let options = StorageOptions { unit: Unit::Bytes, budget: BUDGET, ..StorageOptions::default() };
    let storage = match csdf::smallest(&part, Goal::DeadlockFree, &options) {
        Err(csdf::Error::Exhausted) => return Ok(None),
        found => found?,
    };
    let found: u128 = part
        .channels()
        .iter()
        .zip(&storage.capacities)
        .zip(&free)
        .filter(|(_, free)| **free)
        .map(|((channel, &capacity), _)| u128::from(capacity) * u128::from(channel.token_bytes))
        .sum();
    if found >= present {
        return Ok(None);
    }
    let schedule = csdf::firings(&storage.certificate.schedule);
    Ok(Some(schedule.map(|actor| segment[actor.index()]).collect()))
}

#[cfg(test)]
mod tests {
    use csdf::{Actor, Rates, Reader};

    use super::*;

    /// Two branches that both read `a` and halve the rows: a pair of 3×3 layers, and one 1×1 layer.
    fn branches() -> Graph {
        let mut graph = Graph::new();
        let mut actor = |name: &str, rows| graph.add_actor(Actor::new(name, rows)).unwrap();
        let (a, b, c, d, e) = (actor("a", 8), actor("b", 4), actor("c", 4), actor("d", 4), actor("e", 4));
        let window = |actor, acquire: &str, release: &str| Reader {
            actor,
            acquire: acquire.parse().unwrap(),
            release: release.parse().unwrap(),
        };
        let row = |actor| Reader::consuming(actor, Rates::constant(4, 1));
        let mut channel = |name, from, rows, readers| {
            let production = Rates::constant(rows, 1);
            graph.add_channel(Channel::new(name, from, production, readers)).unwrap();
        };
        channel("a", a, 8, vec![window(b, "2,3*2", "1,2*2,3"), Reader::consuming(d, Rates::constant(4, 2))]);
        channel("b", b, 4, vec![window(c, "2,2*1,0", "0,2*1,2")]);
        channel("c", c, 4, vec![row(e)]);
        channel("d", d, 4, vec![row(e)]);
        graph
    }

    fn bytes(execution: &Execution) -> u64 {
        execution.capacities.iter().sum()
    }

    #[test]
    fn never_larger_and_still_valid() {
        let graph = branches();
        let all: Vec<ActorId> = graph.actor_ids().collect();
        for segments in [vec![all.clone()], vec![all[..2].to_vec(), all[2..].to_vec()]] {
            let execution = csdf::sequential(&graph, &segments).unwrap();
            let least = csdf::smallest(&graph, Goal::DeadlockFree, &StorageOptions::default()).unwrap();
            if let Some(tight) = tighten(&graph, &segments, &execution).unwrap() {
                assert!(bytes(&tight) < bytes(&execution));
                csdf::verify(&graph, &tight.capacities, &csdf::compress(&tight.firings)).unwrap();
            } else if segments.len() == 1 {
                assert_eq!(bytes(&execution), least.total);
            }
        }
    }

    #[test]
    fn a_chain_stays_as_it_is() {
        let mut graph = Graph::new();
        let a = graph.add_actor(Actor::new("a", 4)).unwrap();
        let b = graph.add_actor(Actor::new("b", 2)).unwrap();
        let reader = Reader::consuming(b, Rates::constant(2, 2));
        graph.add_channel(Channel::new("c", a, Rates::constant(4, 1), vec![reader])).unwrap();
        let segments = [vec![a, b]];
        let execution = csdf::sequential(&graph, &segments).unwrap();
        assert_eq!(tighten(&graph, &segments, &execution).unwrap(), None);
    }
}
