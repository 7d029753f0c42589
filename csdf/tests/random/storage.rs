//! Random graphs: throughput by either method, and storage against all distributions that there are.

use std::num::NonZero;

use csdf::{
    Actor, Budget, Channel, Error, Goal, Graph, Method, Rates, Ratio, Storage, StorageOptions, Throughput,
    Unit, check_liveness, pareto, repetition_vector, self_timed, smallest, throughput, throughput_by,
    verify_storage,
};
use proptest::prelude::*;

use crate::choices::{Choices, choices};

const BUDGET: Budget = Budget { work: 1 << 26, time: None, stop: None };

/// The graph with other execution times, and now and then several firings of an actor at once.
fn with_times(choices: &mut Choices, graph: &Graph, most_concurrency: u64) -> Graph {
    let mut timed = Graph::new();
    for actor in graph.actors() {
        let times: Vec<u64> = (0..actor.phases).map(|_| choices.pick(0, 3)).collect();
        let concurrency = NonZero::new(choices.pick(1, 5).min(most_concurrency)).unwrap();
        let execution_times = Rates::from_sequence(&times);
        timed.add_actor(Actor { execution_times, concurrency, ..actor.clone() }).unwrap();
    }
    for channel in graph.channels() {
        timed.add_channel(channel.clone()).unwrap();
    }
    timed
}

fn small(choices: &mut Choices, most_actors: u64, most_phases: u64) -> Graph {
    let (mut graph, cycles) = choices.acyclic(most_actors, most_phases);
    if choices.pick(0, 2) == 0 {
        choices.feed_back(&mut graph, &cycles);
    }
    let most_concurrency = choices.pick(1, 3);
    with_times(choices, &graph, most_concurrency)
}

fn is_own(channel: &Channel) -> bool {
    channel.readers.iter().all(|reader| reader.actor == channel.producer)
}

/// Calls `visit` with every way to share `total` among the channels that count, none below its initial tokens.
fn all_distributions(graph: &Graph, total: u64, visit: &mut impl FnMut(&[Option<u64>])) {
    let channels = graph.channels();
    let counted: Vec<usize> = (0..channels.len()).filter(|&channel| !is_own(&channels[channel])).collect();
    let least: u64 = counted.iter().map(|&channel| channels[channel].initial_tokens).sum();
    let Some(extra) = total.checked_sub(least) else { return };
    let mut capacities: Vec<Option<u64>> = vec![None; channels.len()];
    share(graph, &counted, extra, &mut capacities, visit);
}

fn share(
    graph: &Graph,
    counted: &[usize],
    extra: u64,
    capacities: &mut Vec<Option<u64>>,
    visit: &mut impl FnMut(&[Option<u64>]),
) {
    let Some((&channel, rest)) = counted.split_first() else { return visit(capacities) };
    let initial = graph.channels()[channel].initial_tokens;
    // More capacity never harms, so that all of the total is spent.
    for more in if rest.is_empty() { extra..=extra } else { 0..=extra } {
        capacities[channel] = Some(initial + more);
        share(graph, rest, extra - more, capacities, visit);
    }
}

/// The greatest throughput of all distributions of a total.
fn fastest(graph: &Graph, total: u64) -> Throughput {
    let mut best = Throughput::Finite(Ratio::ZERO);
    all_distributions(graph, total, &mut |capacities| {
        let found = throughput_by(Method::StateSpace, graph, capacities, &BUDGET).unwrap();
        best = best.max(found);
    });
    best
}

fn distributions(graph: &Graph, total: u64) -> u64 {
    let counted = graph.channels().iter().filter(|channel| !is_own(channel));
    let (channels, least) =
        counted.fold((0, 0), |(count, sum), channel| (count + 1, sum + channel.initial_tokens));
    // Binomial (extra + channels - 1) over (channels - 1).
    (1..channels).fold(1, |count, place| count * (total.saturating_sub(least) + place) / place)
}

/// The graph for a message.
fn text(graph: &Graph) -> String {
    let actors = graph.actors().iter().map(|actor| {
        format!("{}:{}@{}^{} ", actor.name, actor.phases, actor.execution_times, actor.concurrency)
    });
    let channels = graph.channels().iter().map(|channel| {
        let readers = channel
            .readers
            .iter()
            .map(|reader| format!(" | {} {}/{}", reader.actor.index(), reader.acquire, reader.release));
        let readers: String = readers.collect();
        format!("\n{} {}{readers} +{}", channel.producer.index(), channel.production, channel.initial_tokens)
    });
    actors.chain(channels).collect()
}

fn bounded(storage: &Storage) -> Vec<Option<u64>> {
    storage.capacities.iter().copied().map(Some).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn both_methods_agree_and_capacity_never_harms(bytes in choices()) {
        let mut choices = Choices(bytes.into_iter());
        let graph = small(&mut choices, 6, 4);
        let mut capacities: Vec<Option<u64>> = graph
            .channels()
            .iter()
            .map(|channel| (choices.pick(0, 3) > 0).then(|| channel.initial_tokens + choices.pick(1, 20)))
            .collect();
        let cycles = throughput_by(Method::CycleRatio, &graph, &capacities, &BUDGET).unwrap();
        let states = throughput_by(Method::StateSpace, &graph, &capacities, &BUDGET).unwrap();
        prop_assert_eq!(cycles, states);
        prop_assert_eq!(throughput(&graph, &capacities, &BUDGET).unwrap(), cycles);
        let dead = check_liveness(&graph, &capacities).is_err();
        prop_assert_eq!(dead, cycles == Throughput::Finite(Ratio::ZERO));
        if let Some(place) = (0..capacities.len()).find(|_| choices.pick(0, 1) == 0) {
            capacities[place] = capacities[place].map(|capacity| capacity + choices.pick(1, 3));
            prop_assert!(throughput(&graph, &capacities, &BUDGET).unwrap() >= cycles);
        }
    }

    #[test]
    fn nothing_smaller_serves(bytes in choices()) {
        let mut choices = Choices(bytes.into_iter());
        let graph = small(&mut choices, 4, 3);
        let options = StorageOptions { budget: BUDGET, ..StorageOptions::default() };
        let maximal = throughput(&graph, &vec![None; graph.channels().len()], &BUDGET).unwrap();
        let found = smallest(&graph, Goal::DeadlockFree, &options);
        if maximal == Throughput::Finite(Ratio::ZERO) {
            prop_assert!(matches!(found, Err(Error::Deadlock { .. })), "{:?}", found);
            return Ok(());
        }
        let least = found.unwrap();
        let best = smallest(&graph, Goal::Maximal, &options).unwrap();
        prop_assume!(distributions(&graph, best.total) <= 2000);
        for (goal, storage) in [(Goal::DeadlockFree, &least), (Goal::Maximal, &best)] {
            prop_assert!(storage.proven);
            prop_assert_eq!(verify_storage(&graph, goal, &options, storage), Ok(()), "{}", text(&graph));
            prop_assert_eq!(throughput(&graph, &bounded(storage), &BUDGET).unwrap(), storage.throughput);
        }
        prop_assert_eq!(best.throughput, maximal);
        if let Some(fewer) = least.total.checked_sub(1) {
            prop_assert_eq!(fastest(&graph, fewer), Throughput::Finite(Ratio::ZERO));
        }
        if let Some(fewer) = best.total.checked_sub(1) {
            prop_assert!(fastest(&graph, fewer) < maximal);
        }

        let front = pareto(&graph, &options).unwrap();
        prop_assert!(front.complete);
        prop_assert_eq!(front.points[0].total, least.total);
        prop_assert_eq!(front.points.last().unwrap().throughput, maximal);
        for point in &front.points {
            if let Throughput::Finite(ratio) = point.throughput {
                prop_assert_eq!(verify_storage(&graph, Goal::AtLeast(ratio), &options, point), Ok(()));
            }
        }
        for pair in front.points.windows(2) {
            prop_assert!(pair[0].throughput < pair[1].throughput && pair[0].total < pair[1].total);
            // All of the totals between, and the first one's own.
            prop_assert_eq!(fastest(&graph, pair[1].total - 1), pair[0].throughput);
        }
    }

    #[test]
    fn bytes_and_granularity(bytes in choices()) {
        let mut choices = Choices(bytes.into_iter());
        let plain = small(&mut choices, 4, 3);
        let mut graph = Graph::new();
        for actor in plain.actors() {
            graph.add_actor(actor.clone()).unwrap();
        }
        for channel in plain.channels() {
            graph.add_channel(Channel { token_bytes: choices.pick(1, 3), ..channel.clone() }).unwrap();
        }
        let granularity = graph.channels().iter().map(|_| choices.pick(1, 3)).collect();
        let options = StorageOptions { unit: Unit::Bytes, budget: BUDGET, granularity };
        prop_assume!(check_liveness(&graph, &graph.capacities()).is_ok());
        for goal in [Goal::DeadlockFree, Goal::Maximal] {
            let storage = smallest(&graph, goal, &options).unwrap();
            prop_assert!(storage.proven);
            prop_assert_eq!(verify_storage(&graph, goal, &options, &storage), Ok(()), "{}", text(&graph));
            // If a budget ends too early, the results so far are still true.
            let work = choices.pick(1, 250) * 40;
            let hasty = StorageOptions { budget: Budget { work, time: None, stop: None }, ..options.clone() };
            match smallest(&graph, goal, &hasty) {
                Ok(found) => {
                    prop_assert!(found.bound <= storage.total && found.total >= storage.total);
                    prop_assert_eq!(verify_storage(&graph, goal, &options, &found), Ok(()));
                }
                Err(error) => prop_assert_eq!(error, Error::Exhausted),
            }
        }
    }

    #[test]
    fn start_times_keep_the_rules(bytes in choices()) {
        let mut choices = Choices(bytes.into_iter());
        let graph = small(&mut choices, 5, 3);
        let unbounded = vec![None; graph.channels().len()];
        prop_assume!(check_liveness(&graph, &unbounded).is_ok());
        prop_assume!(graph.actors().iter().all(|actor| actor.execution_times.iter().any(|time| time > 0)));
        let options = StorageOptions { budget: BUDGET, ..StorageOptions::default() };
        let storage = smallest(&graph, Goal::DeadlockFree, &options).unwrap();
        let schedule = self_timed(&graph, &bounded(&storage), &BUDGET).unwrap();
        let firings = repetition_vector(&graph).unwrap().firings;
        let iterations = schedule.periodic[0].len() as u64 / firings[0];
        let speed = Ratio::new(u128::from(iterations), u128::from(schedule.period)).unwrap();
        prop_assert_eq!(Throughput::Finite(speed), storage.throughput);
        // The transient and two periods, as intervals of start and end.
        let spans: Vec<Vec<(u64, u64)>> = graph
            .actors()
            .iter()
            .enumerate()
            .map(|(actor, of)| {
                let again = schedule.periodic[actor].iter().map(|start| start + schedule.period);
                let starts = schedule.transient[actor].iter().chain(&schedule.periodic[actor]).copied();
                let mut ended = 0;
                let times = of.execution_times.iter().cycle();
                starts.chain(again).zip(times).map(|(start, time)| { ended = ended.max(start + time); (start, ended) }).collect()
            })
            .collect();
        for (channel, &capacity) in graph.channels().iter().zip(&storage.capacities) {
            let producer = channel.producer.index();
            for reader in &channel.readers {
                let consumer = reader.actor.index();
                let mut acquired = 0;
                for (&(start, _), acquire) in spans[consumer].iter().zip(reader.acquire.iter().cycle()) {
                    acquired += acquire;
                    let made = spans[producer].iter().zip(channel.production.iter().cycle());
                    let there: u64 = made.filter(|((_, end), _)| *end <= start).map(|(_, rate)| rate).sum();
                    prop_assert!(acquire == 0 || acquired <= channel.initial_tokens + there);
                }
                let mut claimed = channel.initial_tokens;
                for (&(start, _), made) in spans[producer].iter().zip(channel.production.iter().cycle()) {
                    claimed += made;
                    let freed = spans[consumer].iter().zip(reader.release.iter().cycle());
                    let freed: u64 = freed.filter(|((_, end), _)| *end <= start).map(|(_, rate)| rate).sum();
                    prop_assert!(made == 0 || claimed <= capacity + freed, "{}", channel.name);
                }
            }
        }
    }
}
