//! How long instances of the size of GoogLeNet take: `cargo bench --bench sizes`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a benchmark of a wrong answer is worth nothing")]

#[path = "../../../compiler/select/tests/instances/large.rs"]
mod large;

use csdfc_select::{Answer, Instance, Method, Problem, Quantity, Query, answer, front};
use divan::Bencher;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// 57 convolutions with 57 primitives each, and with 13 pools among them.
const INSTANCES: [&str; 2] = ["57 convolutions", "70 layers"];

const FASTEST: Query =
    Query { minimise: Quantity::Time, time: None, memory: None, workspace: None, method: Method::Exact };

fn main() {
    divan::main();
}

fn instance(name: &str) -> Instance {
    let text = large::googlenet(name == INSTANCES[1], ChaCha8Rng::seed_from_u64(1));
    Instance::parse(&text).unwrap()
}

/// Times one query of an instance, made for its problem.
fn bench(bencher: Bencher<'_, '_>, name: &str, query: impl Fn(&Problem<'_>) -> Query) {
    let instance = instance(name);
    let problem = Problem::new(&instance, false).unwrap();
    let query = query(&problem);
    bencher.bench(|| {
        let found = answer(divan::black_box(&problem), &query).unwrap();
        assert!(matches!(found, Answer::Met(_)));
        found
    });
}

/// Half way from the memory of the smallest selection to that of the fastest.
fn half_of_the_memory(problem: &Problem<'_>) -> f64 {
    let memory = |query: &Query| match answer(problem, query).unwrap() {
        Answer::Met(found) => problem.memories.value(found.cost.memory),
        other => panic!("{other:?}"),
    };
    f64::midpoint(memory(&FASTEST), memory(&Query { minimise: Quantity::Memory, ..FASTEST }))
}

#[divan::bench(args = INSTANCES)]
fn least_time(bencher: Bencher<'_, '_>, name: &str) {
    bench(bencher, name, |_| FASTEST);
}

#[divan::bench(args = INSTANCES)]
fn least_memory(bencher: Bencher<'_, '_>, name: &str) {
    bench(bencher, name, |_| Query { minimise: Quantity::Memory, ..FASTEST });
}

#[divan::bench(args = INSTANCES, sample_count = 10)]
fn least_time_in_half_of_the_memory(bencher: Bencher<'_, '_>, name: &str) {
    bench(bencher, name, |problem| Query { memory: Some(half_of_the_memory(problem)), ..FASTEST });
}

#[divan::bench(args = INSTANCES, sample_count = 10)]
fn least_time_by_the_integer_program(bencher: Bencher<'_, '_>, name: &str) {
    bench(bencher, name, |_| Query { method: Method::Program, ..FASTEST });
}

#[divan::bench(args = INSTANCES, sample_count = 10)]
fn front_of_time_and_memory(bencher: Bencher<'_, '_>, name: &str) {
    let instance = instance(name);
    let problem = Problem::new(&instance, false).unwrap();
    bencher.bench(|| front(divan::black_box(&problem), &FASTEST).unwrap());
}
