//! The analyses against an exhaustive search that shares no code with them, on random graphs.
//!
//! It tries every storage distribution of hundreds of small graphs by an execution of its own, and once more by cycle
//! ratios of its own. The analyses must agree in everything.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a panic is how a test fails; what was checked is said"
)]

mod cycles;
mod oracle;
mod random;
mod search;

use std::fmt::Write;

use csdf::{
    Actor, Budget, Channel, Error, Goal, Graph, Method, Rates, Ratio, Reader, Storage, StorageOptions,
    Throughput, Unit, pareto, repetition_vector, smallest, throughput_by, verify_storage,
};
use oracle::{Model, Speed};
use random::{Flavour, random};
use search::{Truth, truth};

fn speed(throughput: Throughput) -> Speed {
    match throughput {
        Throughput::Finite(ratio) => Speed::new(ratio.numerator() as u64, ratio.denominator() as u64),
        Throughput::Unbounded => Speed::Unbounded,
    }
}

/// The differences between the analyses and the truth, one line each.
#[derive(Default)]
struct Differences(String);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: T, expected: T) {
        if found != expected {
            writeln!(self.0, "  {what}: {found:?}, not {expected:?}").unwrap();
        }
    }

    fn throughputs(&mut self, graph: &Graph, model: &Model, truth: &Truth, seed: u64) {
        let budget = Budget::default();
        let by = |method, capacities: &[Option<u64>]| {
            throughput_by(method, graph, capacities, &budget).map(speed).map_err(|error| error.to_string())
        };
        for method in [Method::StateSpace, Method::CycleRatio] {
            self.compare(
                &format!("throughput by {method:?}"),
                by(method, &graph.capacities()),
                Ok(truth.maximal),
            );
        }
        let firings: Vec<u64> = model.actors.iter().map(|actor| actor.firings).collect();
        for round in 0..4 {
            let capacities: Vec<Option<u64>> = graph
                .channels()
                .iter()
                .enumerate()
                .map(|(index, channel)| {
                    let more =
                        (seed.wrapping_mul(31).wrapping_add(index as u64 * 7) >> round) % (4 + 4 * round);
                    let capacity = channel.capacity.unwrap_or(channel.initial_tokens + 1 + more);
                    Some(capacity).filter(|_| !model.channels[index].own)
                })
                .collect();
            let expected = model.simulate(&capacities);
            if model.is_live(&capacities) {
                // The oracle's own two ways agree.
                assert_eq!(
                    cycles::throughput(graph, &firings, &capacities),
                    expected,
                    "{graph:?} {capacities:?}"
                );
            }
            for method in [Method::StateSpace, Method::CycleRatio] {
                self.compare(
                    &format!("throughput by {method:?} with {capacities:?}"),
                    by(method, &capacities),
                    Ok(expected),
                );
            }
        }
    }

    fn storage(
        &mut self,
        (graph, model): (&Graph, &Model),
        options: &StorageOptions,
        goal: Goal,
        expected: Option<(u64, Speed)>,
    ) {
        let what = format!("{goal:?}");
        let found = smallest(graph, goal, options);
        let Some((total, at_least)) = expected else {
            let deadlock = matches!(found, Err(Error::Deadlock { .. }));
            return self.compare(&what, deadlock, true);
        };
        match found {
            Err(error) => self.compare(&what, Err(error.to_string()), Ok(total)),
            Ok(storage) => {
                self.compare(
                    &format!("{what} total"),
                    (storage.total, storage.bound, storage.proven),
                    (total, total, true),
                );
                self.distribution(graph, model, options, &storage, &what);
                let reached = speed(storage.throughput);
                let enough = reached != Speed::STANDSTILL && !at_least.exceeds(reached);
                self.compare(&format!("{what} reached"), enough, true);
                self.compare(
                    &format!("{what} certificate"),
                    verify_storage(graph, goal, options, &storage),
                    Ok(()),
                );
            }
        }
    }

    /// The figures that a distribution states.
    fn distribution(
        &mut self,
        graph: &Graph,
        model: &Model,
        options: &StorageOptions,
        storage: &Storage,
        what: &str,
    ) {
        let mut total = 0;
        for (index, channel) in graph.channels().iter().enumerate().filter(|(i, _)| !model.channels[*i].own) {
            let capacity = storage.capacities[index];
            let weight = if options.unit == Unit::Bytes { channel.token_bytes } else { 1 };
            total += weight * capacity;
            match channel.capacity {
                Some(stated) => self.compare(&format!("{what}: stated capacity"), capacity, stated),
                None => {
                    let step = options.granularity.get(index).copied().unwrap_or(1);
                    self.compare(&format!("{what}: remainder of a step"), capacity % step, 0);
                }
            }
        }
        self.compare(&format!("{what}: sum of capacities"), storage.total, total);
        let capacities: Vec<Option<u64>> = storage.capacities.iter().copied().map(Some).collect();
        self.compare(&format!("{what}: throughput"), speed(storage.throughput), model.simulate(&capacities));
    }

    fn trade_off(&mut self, graph: &Graph, model: &Model, options: &StorageOptions, truth: &Truth) {
        match pareto(graph, options) {
            Err(Error::Deadlock { .. }) => self.compare("pareto", true, truth.pareto.is_empty()),
            Err(error) => self.compare("pareto", error.to_string(), format!("{:?}", truth.pareto)),
            Ok(found) => {
                let points: Vec<(u64, Speed)> =
                    found.points.iter().map(|point| (point.total, speed(point.throughput))).collect();
                self.compare("pareto", (points, found.complete), (truth.pareto.clone(), true));
                for (number, point) in found.points.iter().enumerate() {
                    self.distribution(graph, model, options, point, &format!("pareto point {number}"));
                }
            }
        }
    }
}

/// Compares all answers on one graph.
fn differences(graph: &Graph, options: &StorageOptions, seed: u64, truth: &Truth) -> String {
    let model = Model::new(graph);
    let mut differences = Differences::default();
    let firings: Vec<u64> = model.actors.iter().map(|actor| actor.firings).collect();
    differences.compare("repetition vector", repetition_vector(graph).unwrap().firings, firings);
    differences.throughputs(graph, &model, truth, seed);
    let both = (graph, &model);
    // It need not be the fastest of the distributions with the smallest total.
    let smallest = truth.pareto.first().map(|&(total, _)| (total, Speed::STANDSTILL));
    differences.storage(both, options, Goal::DeadlockFree, smallest);
    differences.storage(both, options, Goal::Maximal, truth.pareto.last().copied());
    if let Some(&(total, at_least)) = truth.pareto.get(truth.pareto.len() / 2)
        && let Speed::Finite(numerator, denominator) = at_least
    {
        let goal = Goal::AtLeast(Ratio::new(numerator.into(), denominator.into()).unwrap());
        differences.storage(both, options, goal, Some((total, at_least)));
    }
    differences.trade_off(graph, &model, options, truth);
    differences.0
}

/// Compares all answers on this many graphs whose truth is known.
fn check(flavour: Flavour, count: usize) {
    let mut wrong = String::new();
    let (mut checked, mut unknown, mut failed, mut points, mut deadlocks, mut tried) = (0, 0, 0, 0, 0, 0);
    for seed in 0.. {
        let graph = random(seed, flavour);
        let options = match flavour {
            Flavour::Sized => StorageOptions {
                unit: if seed % 3 == 0 { Unit::Tokens } else { Unit::Bytes },
                granularity: graph.channels().iter().zip(seed..).map(|(_, n)| 1 + n % 4 / 2).collect(),
                ..StorageOptions::default()
            },
            _ => StorageOptions::default(),
        };
        let model = Model::new(&graph);
        let Some(known) = truth(&graph, &model, &options) else {
            unknown += 1;
            continue;
        };
        points += known.pareto.len();
        deadlocks += usize::from(known.pareto.is_empty());
        tried += known.tried;
        let text = differences(&graph, &options, seed, &known);
        if !text.is_empty() {
            failed += 1;
            if failed <= 5 {
                write!(wrong, "seed {seed}, {}\n{text}", describe(&graph)).unwrap();
            }
        }
        checked += 1;
        if checked == count {
            break;
        }
    }
    println!(
        "{flavour:?}: {checked} graphs, {points} Pareto points, {deadlocks} deadlocks, {unknown} left out, {tried} \
         distributions"
    );
    assert!(deadlocks * 5 < count && points > count && unknown < count);
    assert!(failed == 0, "{failed} of {checked} graphs differ:\n{wrong}");
}

/// A graph on a few lines, from which it can be made again.
fn describe(graph: &Graph) -> String {
    let name = |index: usize| graph.actors()[index].name.as_str();
    let mut text = String::new();
    for actor in graph.actors() {
        let concurrency = actor.concurrency;
        write!(
            text,
            "{}: {} phases, times {}, concurrency {concurrency}; ",
            actor.name, actor.phases, actor.execution_times
        )
        .unwrap();
    }
    for channel in graph.channels() {
        write!(text, "\n  {} {} >", name(channel.producer.index()), channel.production).unwrap();
        for reader in &channel.readers {
            write!(text, " {} {}/{}", name(reader.actor.index()), reader.acquire, reader.release).unwrap();
        }
        let (initial, bytes, capacity) = (channel.initial_tokens, channel.token_bytes, channel.capacity);
        write!(text, " +{initial}, {bytes} bytes, capacity {capacity:?}").unwrap();
    }
    text + "\n"
}

#[test]
fn the_oracle_knows_a_known_value() {
    let mut graph = Graph::new();
    let a = graph.add_actor(Actor::new("a", 3)).unwrap();
    let b = graph.add_actor(Actor::new("b", 2)).unwrap();
    let reader = Reader::consuming(b, Rates::constant(2, 4));
    graph.add_channel(Channel::new("c", a, "6,1,1".parse().unwrap(), vec![reader])).unwrap();
    let known = truth(&graph, &Model::new(&graph), &StorageOptions::default()).unwrap();
    assert_eq!(known.pareto, [(6, Speed::Finite(1, 5)), (7, Speed::Finite(1, 4)), (10, Speed::Finite(1, 3))]);
}

#[test]
fn plain_graphs() {
    check(Flavour::Plain, 400);
}

#[test]
fn windows_and_several_readers() {
    check(Flavour::Windowed, 150);
}

#[test]
fn several_firings_at_a_time() {
    check(Flavour::Concurrent, 100);
}

#[test]
fn sizes_and_given_capacities() {
    check(Flavour::Sized, 100);
}

#[test]
#[ignore = "about a minute in release"]
fn thousands() {
    for flavour in [Flavour::Plain, Flavour::Windowed, Flavour::Concurrent, Flavour::Sized] {
        check(flavour, 8000);
    }
}
