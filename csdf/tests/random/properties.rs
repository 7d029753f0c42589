//! Random graphs: what the analyses say against exhaustive search and against each other.

use std::collections::BTreeSet;

use csdf::{
    ActorId, Channel, Error, Graph, Rates, Reader, RepetitionVector, Wait, check_liveness, compress, firings,
    repetition_vector, sequential, verify,
};
use proptest::prelude::*;

use crate::choices::{Choices, choices};

/// Tokens that a rate sequence moves in the first `count` firings.
fn moved(rates: &Rates, count: u64) -> u64 {
    rates.iter().cycle().take(count as usize).sum()
}

/// Whether any order of firing at all completes an iteration within the capacities: every set of counts of
/// firings that can be reached is visited.
fn some_schedule_exists(graph: &Graph, repetition: &RepetitionVector, capacities: &[Option<u64>]) -> bool {
    let can_fire = |fired: &[u64], id: ActorId| {
        let actor = id.index();
        fired[actor] < repetition.firings[actor]
            && graph.channels().iter().zip(capacities).all(|(channel, capacity)| {
                let produced = |count| channel.initial_tokens + moved(&channel.production, count);
                let available = produced(fired[channel.producer.index()]);
                let readable = channel
                    .readers
                    .iter()
                    .filter(|reader| reader.actor == id)
                    .all(|reader| moved(&reader.acquire, fired[actor] + 1) <= available);
                let released = |reader: &Reader| moved(&reader.release, fired[reader.actor.index()]);
                let oldest = channel.readers.iter().map(released).min().unwrap();
                let fits = channel.producer != id
                    || capacity.is_none_or(|capacity| produced(fired[actor] + 1) - oldest <= capacity);
                readable && fits
            })
    };
    let mut seen = BTreeSet::new();
    let mut open = vec![vec![0; graph.actors().len()]];
    while let Some(fired) = open.pop() {
        if fired == repetition.firings {
            return true;
        }
        for id in graph.actor_ids().filter(|&id| can_fire(&fired, id)) {
            let mut next = fired.clone();
            next[id.index()] += 1;
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}

/// The least that one reader needs of a channel by itself: the producer fires only when the reader lacks
/// tokens, the reader whenever it can.
fn bound(channel: &Channel, reader: &Reader, repetition: &RepetitionVector) -> u64 {
    let firings = |actor: ActorId| repetition.firings[actor.index()];
    let (mut produced, mut peak) = (channel.initial_tokens, channel.initial_tokens);
    let (mut acquired, mut released, mut fired) = (0, 0, 0);
    let mut production = channel.production.iter().cycle().take(firings(channel.producer) as usize);
    let rates = reader.acquire.iter().cycle().zip(reader.release.iter().cycle());
    for (acquire, release) in rates.take(firings(reader.actor) as usize) {
        acquired += acquire;
        while produced < acquired {
            produced += production.next().unwrap();
            fired += 1;
            peak = peak.max(produced - released);
        }
        released += release;
    }
    assert!(fired <= firings(channel.producer));
    peak
}

/// Whether each actor waits for the next, and the last for the first.
fn closes(cycle: &[Wait]) -> bool {
    let next = cycle.iter().cycle().skip(1);
    !cycle.is_empty() && cycle.iter().zip(next).all(|(wait, next)| wait.waits_for == next.actor)
}

fn some(capacities: &[u64]) -> Vec<Option<u64>> {
    capacities.iter().copied().map(Some).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn chains_get_the_least_capacities(bytes in choices()) {
        let graph = Choices(bytes.into_iter()).chain();
        let repetition = repetition_vector(&graph).unwrap();
        let states: u64 = repetition.firings.iter().map(|count| count + 1).product();
        prop_assume!(states <= 3000);
        let execution = sequential(&graph, &[graph.actor_ids().collect()]).unwrap();
        let steps = compress(&execution.firings);
        prop_assert_eq!(verify(&graph, &execution.capacities, &steps), Ok(()));
        prop_assert!(some_schedule_exists(&graph, &repetition, &some(&execution.capacities)));
        for (index, &capacity) in execution.capacities.iter().enumerate() {
            // Below its initial tokens a channel's capacity has no meaning.
            if capacity == graph.channels()[index].initial_tokens {
                continue;
            }
            let mut fewer = vec![None; execution.capacities.len()];
            fewer[index] = Some(capacity - 1);
            prop_assert!(!some_schedule_exists(&graph, &repetition, &fewer), "channel {} of {:?}", index, execution);
            let blocked = matches!(check_liveness(&graph, &fewer), Err(Error::Deadlock { .. }));
            prop_assert!(blocked);
        }
    }

    #[test]
    fn acyclic_graphs_get_enough(bytes in choices()) {
        let mut choices = Choices(bytes.into_iter());
        let (graph, cycles) = choices.acyclic(8, 4);
        let segments = choices.segments(&graph);
        let repetition = repetition_vector(&graph).unwrap();
        // The graph is connected, so that the cycles it was made for are a multiple of the least.
        let multiple = cycles[0] / repetition.cycles[0];
        let least: Vec<u64> = cycles.iter().map(|count| count / multiple).collect();
        prop_assert_eq!(&repetition.cycles, &least);
        for segments in [segments, vec![graph.actor_ids().collect()]] {
            let execution = sequential(&graph, &segments).unwrap();
            let steps = compress(&execution.firings);
            prop_assert_eq!(&firings(&steps).collect::<Vec<_>>(), &execution.firings);
            prop_assert_eq!(verify(&graph, &execution.capacities, &steps), Ok(()));
            prop_assert_eq!(check_liveness(&graph, &some(&execution.capacities)), Ok(()));
            for (index, channel) in graph.channels().iter().enumerate() {
                for reader in &channel.readers {
                    prop_assert!(execution.capacities[index] >= bound(channel, reader, &repetition));
                }
                if execution.capacities[index] > channel.initial_tokens {
                    let mut fewer = execution.capacities.clone();
                    fewer[index] -= 1;
                    let overfull = matches!(verify(&graph, &fewer, &steps), Err(Error::Overfull { .. }));
                    prop_assert!(overfull, "channel {}", index);
                }
            }
            let mut segment_of = vec![0; graph.actors().len()];
            for (index, segment) in segments.iter().enumerate() {
                segment.iter().for_each(|actor| segment_of[actor.index()] = index);
            }
            prop_assert!(execution.firings.is_sorted_by_key(|actor| segment_of[actor.index()]));
        }
    }

    #[test]
    fn cycles_run_or_say_why_not(bytes in choices()) {
        let mut choices = Choices(bytes.into_iter());
        let (mut graph, cycles) = choices.acyclic(8, 4);
        choices.feed_back(&mut graph, &cycles);
        let unbounded = vec![None; graph.channels().len()];
        let live = check_liveness(&graph, &unbounded);
        match sequential(&graph, &[graph.actor_ids().collect()]) {
            Ok(execution) => {
                prop_assert_eq!(live, Ok(()));
                prop_assert_eq!(verify(&graph, &execution.capacities, &compress(&execution.firings)), Ok(()));
            }
            Err(Error::Deadlock { cycle }) => {
                let blocked = matches!(live, Err(Error::Deadlock { .. }));
                prop_assert!(blocked, "{:?}", live);
                prop_assert!(closes(&cycle), "{:?}", cycle);
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
    #[test]
    fn liveness_is_that_of_exhaustive_search(bytes in choices()) {
        let mut choices = Choices(bytes.into_iter());
        let (mut graph, cycles) = choices.acyclic(4, 2);
        if choices.pick(0, 2) == 0 {
            choices.feed_back(&mut graph, &cycles);
        }
        let repetition = repetition_vector(&graph).unwrap();
        let states: u64 = repetition.firings.iter().map(|count| count + 1).product();
        prop_assume!(states <= 2000);
        let capacities: Vec<Option<u64>> = graph
            .channels()
            .iter()
            .map(|channel| {
                let capacity = channel.initial_tokens + choices.pick(1, 16);
                (choices.pick(0, 3) > 0).then_some(capacity)
            })
            .collect();
        match check_liveness(&graph, &capacities) {
            Ok(()) => prop_assert!(some_schedule_exists(&graph, &repetition, &capacities)),
            Err(Error::Deadlock { cycle }) => {
                prop_assert!(closes(&cycle), "{:?}", cycle);
                prop_assert!(!some_schedule_exists(&graph, &repetition, &capacities));
            }
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}
