//! How long the analyses take on the graphs of convolutional networks: `cargo bench --bench storage`.

#![expect(clippy::unwrap_used, reason = "a benchmark of a wrong answer is worth nothing")]

mod networks;

use csdf::{Budget, Goal, Graph, Storage, StorageOptions, smallest, throughput};
use divan::Bencher;

fn main() {
    divan::main();
}

/// The smallest capacities of a graph, which must be proven to be within 5 % of the least.
fn proven(graph: &Graph, goal: Goal) -> Storage {
    let storage = smallest(graph, goal, &StorageOptions::default()).unwrap();
    assert!(storage.total * 20 <= storage.bound * 21, "{} bytes, bound {}", storage.total, storage.bound);
    storage
}

/// A name, and the graph of this name.
type Named = (&'static str, fn() -> Graph);

/// The graphs whose capacities are searched for.
const GRAPHS: [Named; 6] = [
    ("chain of 5", || networks::window_chain(5)),
    ("chain of 20", || networks::window_chain(20)),
    ("chain of 60", || networks::window_chain(60)),
    ("skip of 32 rows", || networks::skip(32)),
    ("residual", networks::residual),
    ("dense", networks::dense),
];

fn graph(name: &str) -> Graph {
    GRAPHS.iter().find(|(known, _)| *known == name).map(|(_, make)| make()).unwrap()
}

#[divan::bench(args = GRAPHS.map(|(name, _)| name))]
fn free_of_deadlock(bencher: Bencher<'_, '_>, name: &str) {
    let graph = graph(name);
    bencher.bench(|| proven(divan::black_box(&graph), Goal::DeadlockFree));
}

#[divan::bench(args = GRAPHS.map(|(name, _)| name))]
fn full_throughput(bencher: Bencher<'_, '_>, name: &str) {
    let graph = graph(name);
    bencher.bench(|| proven(divan::black_box(&graph), Goal::Maximal));
}

/// The throughput of 600 actors that fire 20 million times in an iteration.
#[divan::bench(sample_count = 10)]
fn throughput_of_many_firings(bencher: Bencher<'_, '_>) {
    let graph = networks::large();
    let unbounded = graph.capacities();
    bencher.bench(|| throughput(divan::black_box(&graph), &unbounded, &Budget::default()).unwrap());
}
