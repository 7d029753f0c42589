//! How long the analyses take on the graphs of convolutional networks.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark of a wrong answer is worth nothing")]

mod networks;

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use csdf::{Budget, Goal, Graph, StorageOptions, smallest, throughput};

/// Benchmarks both ends of the storage space of a graph, each of which must be proven.
fn both_ends(criterion: &mut Criterion, name: &str, graph: &Graph) {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let options = StorageOptions::default();
    for (end, goal) in [("deadlock-free", Goal::DeadlockFree), ("full throughput", Goal::Maximal)] {
        group.bench_function(end, |bencher| {
            bencher.iter(|| {
                let storage = smallest(black_box(graph), goal, &options).unwrap();
                if storage.total * 20 > storage.bound * 21 {
                    panic!(
                        "{name}, {end}: {} is more than 5 % above the bound {}",
                        storage.total, storage.bound
                    );
                }
                storage
            });
        });
    }
    group.finish();
}

fn chains(criterion: &mut Criterion) {
    for layers in [5, 20, 60] {
        both_ends(criterion, &format!("chain of {layers}"), &networks::window_chain(layers));
    }
}

fn branches(criterion: &mut Criterion) {
    both_ends(criterion, "skip of 32 rows", &networks::skip(32));
    both_ends(criterion, "residual", &networks::residual());
    both_ends(criterion, "dense", &networks::dense());
}

fn large(criterion: &mut Criterion) {
    let graph = networks::large();
    let unbounded = graph.capacities();
    let mut group = criterion.benchmark_group("600 actors, 20 million firings");
    group.sample_size(10);
    group.bench_function("throughput", |bencher| {
        bencher.iter(|| throughput(black_box(&graph), &unbounded, &Budget::default()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, chains, branches, large);
criterion_main!(benches);
