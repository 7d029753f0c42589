//! How long instances of the size of GoogLeNet take: `cargo bench -p csdfc-select --bench sizes`. Files of other instances may
//! follow, as `-- FILE.json`.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints what it measures")]

#[path = "../tests/instances/large.rs"]
mod large;

use std::time::Instant;

use csdfc_select::{Answer, Instance, Method, Problem, Quantity, Query, answer, front};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

fn main() {
    let files: Vec<String> =
        std::env::args().skip(1).filter(|argument| argument.ends_with(".json")).collect();
    for file in &files {
        println!("{file}");
        let instance = Instance::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
        measure(&Problem::new(&instance, false).unwrap());
    }
    if !files.is_empty() {
        return;
    }
    for (name, pools) in [("57 convolutions × 57", false), ("70 layers × 57", true)] {
        for seed in 1..4 {
            let text = large::googlenet(pools, ChaCha8Rng::seed_from_u64(seed));
            let began = Instant::now();
            let instance = Instance::parse(&text).unwrap();
            let problem = Problem::new(&instance, false).unwrap();
            println!("{name}, seed {seed}: read in {:.4} s", began.elapsed().as_secs_f64());
            measure(&problem);
        }
    }
}

fn measure(problem: &Problem<'_>) {
    let free =
        Query { minimise: Quantity::Time, time: None, memory: None, workspace: None, method: Method::Exact };
    let timed = |what: &str, query: &Query| {
        let began = Instant::now();
        let Ok(Answer::Met(found)) = answer(problem, query) else { return None };
        let (seconds, cost) = (began.elapsed().as_secs_f64(), found.cost);
        let (time, memory) = (problem.times.value(cost.time), problem.memories.value(cost.memory));
        let gap = query.minimise.of(&cost) - found.bound;
        let proof = if gap == 0 { "" } else { ", not proven" };
        println!("  {what:<28} {seconds:.4} s  {time:.0} us, {memory:.0} KiB{proof}");
        Some((time, memory, problem.memories.value(cost.workspace)))
    };
    let (Some(fast), Some(small)) =
        (timed("time", &free), timed("memory", &Query { minimise: Quantity::Memory, ..free }))
    else {
        return;
    };
    for share in [0.02, 0.1, 0.2, 0.4, 0.6, 0.8, 0.95] {
        let between = |low: f64, high: f64| Some(low * (1.0 - share) + high * share);
        let memory = between(small.1, fast.1);
        timed(&format!("time, memory at {share}"), &Query { memory, ..free });
        let time = between(fast.0, small.0);
        timed(&format!("memory, time at {share}"), &Query { minimise: Quantity::Memory, time, ..free });
    }
    let time = Some(fast.0 * 1.2);
    timed("workspace, time 1.2", &Query { minimise: Quantity::Workspace, time, ..free });
    timed("time, workspace half", &Query { workspace: Some(fast.2 / 2.0), ..free });
    timed("program", &Query { method: Method::Program, ..free });
    if std::env::args().any(|argument| argument == "--program") {
        let memory = Some((small.1 + fast.1) / 2.0);
        timed("program, memory at 0.5", &Query { memory, method: Method::Program, ..free });
    }
    for (what, minimise) in [("workspace", Quantity::Workspace), ("memory", Quantity::Time)] {
        let began = Instant::now();
        let front = front(problem, &Query { minimise, ..free }).unwrap();
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "  {:<28} {seconds:.4} s  {} points, all: {}",
            format!("front of {what}"),
            front.points.len(),
            front.complete
        );
    }
}
