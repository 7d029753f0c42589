//! How long the analyses take on the graphs of convolutional networks.
//!
//! Each analysis runs several times; the least, the median and the most of a run are printed.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark of a wrong answer is worth nothing")]
#![expect(clippy::print_stdout, reason = "the times are the result")]

mod networks;

use std::hint::black_box;
use std::time::{Duration, Instant};

use csdf::{Budget, Goal, Graph, StorageOptions, smallest, throughput};

/// Runs of an analysis that are timed: as many as take this long, but at least [`LEAST`].
const PATIENCE: Duration = Duration::from_secs(2);

/// The fewest runs for which a median is meaningful.
const LEAST: usize = 10;

/// Times an analysis, after one run that is not counted.
fn time<T>(name: &str, mut analysis: impl FnMut() -> T) {
    black_box(analysis());
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < LEAST || start.elapsed() < PATIENCE {
        let one = Instant::now();
        black_box(analysis());
        times.push(one.elapsed());
    }
    times.sort();
    let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
    println!("{name}: {median:.1?} (of {} runs, {least:.1?} to {most:.1?})", times.len());
}

/// Times both ends of the storage space of a graph, each of which must be proven.
fn both_ends(name: &str, graph: &Graph) {
    let options = StorageOptions::default();
    for (end, goal) in [("deadlock-free", Goal::DeadlockFree), ("full throughput", Goal::Maximal)] {
        time(&format!("{name}, {end}"), || {
            let storage = smallest(black_box(graph), goal, &options).unwrap();
            if storage.total * 20 > storage.bound * 21 {
                panic!("{name}, {end}: {} is more than 5 % above the bound {}", storage.total, storage.bound);
            }
            storage
        });
    }
}

fn main() {
    for layers in [5, 20, 60] {
        both_ends(&format!("chain of {layers}"), &networks::window_chain(layers));
    }
    both_ends("skip of 32 rows", &networks::skip(32));
    both_ends("residual", &networks::residual());
    both_ends("dense", &networks::dense());

    let graph = networks::large();
    let unbounded = graph.capacities();
    time("600 actors, 20 million firings, throughput", || {
        throughput(black_box(&graph), &unbounded, &Budget::default()).unwrap()
    });
}
