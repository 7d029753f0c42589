//! Packing at size: without waste, as networks do it, and of the networks themselves.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::time::{Duration, Instant};

use csdfc_input::builtin;
use csdfc_input::units::MemoryGoal;
use csdfc_packing::{Block, Budget, Life, Meter, Problem, Solution, Stopped, greedy, lives, pack};
use csdfc_plan::plan::StorageModel;
use csdfc_planner::frame::choice::Choice;
use csdfc_planner::frame::execution;
use csdfc_planner::frame::execution::Rings;
use csdfc_planner::frame::lower::RateTable;
use csdfc_planner::frame::task;
use csdfc_planner::open;
use csdfc_planner::storage::{Effort, Storage, arrange};
use csdfc_tests::{app, application, plan};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

fn life(lower: i64, upper: i64, bytes: u64) -> Life {
    Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() }
}

/// A rectangle cut across, again and again, at random places: the pieces can be packed without waste.
fn guillotine(count: usize, width: i64, height: u64, seed: u64) -> Vec<Life> {
    let random = &mut ChaCha8Rng::seed_from_u64(seed);
    let mut pieces = vec![(0, width, height)];
    while pieces.len() < count {
        // One of the larger of a few.
        let few: Vec<usize> = (0..4).map(|_| random.random_range(0..pieces.len())).collect();
        let area = |i: &usize| (pieces[*i].1 - pieces[*i].0) as u64 * pieces[*i].2;
        let Some(i) = few.into_iter().max_by_key(area) else { continue };
        let (from, to, high) = pieces[i];
        if random.random_range(0..2) == 0 && to - from > 1 {
            let cut = random.random_range(from + 1..to);
            pieces[i] = (from, cut, high);
            pieces.push((cut, to, high));
        } else if high > 1 {
            let cut = random.random_range(1..high);
            pieces[i] = (from, to, cut);
            pieces.push((from, to, high - cut));
        }
    }
    for i in (1..pieces.len()).rev() {
        pieces.swap(i, random.random_range(0..=i));
    }
    pieces.into_iter().map(|(from, to, high)| life(from, to, high)).collect()
}

/// Buffers like those of networks in public benchmarks: large buffers live for few steps, small ones for many.
fn network(count: usize, steps: i64, seed: u64) -> Vec<Life> {
    let random = &mut ChaCha8Rng::seed_from_u64(seed);
    let buffer = |_| {
        let from = random.random_range(0..steps);
        let span = if random.random_range(0..2) == 0 {
            random.random_range(1..8)
        } else {
            1 << random.random_range(0..8)
        };
        let kilobytes: u64 = if span < 10 { random.random_range(1..250) } else { random.random_range(1..30) };
        life(from, steps.min(from + span), kilobytes * 1024)
    };
    (0..count).map(buffer).collect()
}

fn solve(lives: &[Life], steps: u64) -> (Problem, Solution) {
    let problem = lives::problem(lives).unwrap();
    let solution = pack(&problem, &mut Meter::new(Budget::Work(steps)));
    assert!(problem.accepts(&solution.packing.offsets) && solution.bound <= solution.packing.bytes);
    (problem, solution)
}

#[test]
fn packings_without_waste_are_found() {
    for (count, width, height) in [(12, 100, 100), (40, 60, 200), (80, 1000, 1000), (150, 10_000, 5_000)] {
        for seed in 0..3 {
            let solution = solve(&guillotine(count, width, height, seed), 30_000_000).1;
            println!("{count} rectangles, {width} x {height}, seed {seed}: {} steps", solution.work);
            let found = (solution.packing.bytes, solution.bound);
            assert_eq!(found, (height, height), "{count} rectangles, seed {seed}");
        }
    }
}

#[test]
fn networks_of_200_steps_are_packed_lower_than_by_size() {
    let (mut proven, mut lower) = (0, 0);
    println!("buffers  by size    packed     bound      steps");
    for (seed, count) in (0..).zip([60, 90, 120, 150, 180, 210]) {
        let (problem, solution) = solve(&network(count, 200, seed), 3_000_000);
        let by_size = greedy::by_size(&problem);
        assert!(problem.accepts(&by_size.offsets) && solution.packing.bytes <= by_size.bytes, "seed {seed}");
        let Solution { packing, bound, work, .. } = &solution;
        println!("{count:7}  {:9}  {:9}  {bound:9}  {work:9}", by_size.bytes, packing.bytes);
        proven += u64::from(solution.proven());
        lower += u64::from(packing.bytes < by_size.bytes);
    }
    assert!(proven >= 5 && lower >= 3, "{proven} proven, {lower} lower than by size");
}

#[test]
fn a_budget_of_steps_says_all() {
    let lives = guillotine(150, 60, 200, 0);
    let (once, again) = (solve(&lives, 100_000).1, solve(&lives, 100_000).1);
    assert_eq!(once, again);
    assert!(!once.proven() && once.stopped == Stopped::Work);
    assert!(solve(&lives, 1_000_000).1.packing.bytes <= once.packing.bytes);
}

#[test]
fn time_ends_a_search() {
    let problem = lives::problem(&guillotine(150, 60, 200, 0)).unwrap();
    let solution = pack(&problem, &mut Meter::new(Budget::Until(Instant::now())));
    assert_eq!((solution.work, solution.stopped), (0, Stopped::Time));
    assert!(problem.accepts(&solution.packing.offsets));
}

/// Every network with no parts and with all parts: the rings lie as low as possible, with rows made one by one.
#[test]
fn networks_are_packed_as_low_as_can_be() {
    for name in builtin::NAMES {
        let application = open::open(&format!("builtin:{name}")).unwrap().resolve().unwrap();
        let task = &task::tasks(&application)[0];
        for choice in [Choice::none(task.network), Choice::all(task.network)] {
            let rates = RateTable::new(task.network);
            let model = StorageModel::Tensors;
            let mut execution = execution::execute(task, &rates, &choice, model, Rings::OnDemand).unwrap();
            execution.one_by_one = execution.costly();
            let storage = Storage { executions: vec![&execution], elements: &[] };
            let start = Instant::now();
            let packed = arrange(&storage, StorageModel::Tensors, Effort::Final);
            let time: Duration = start.elapsed();
            let (bytes, bound) = (packed.bytes, packed.bound.bytes);
            println!("{name} {}: {bytes}, bound {bound}, least {}, {time:.1?}", choice.name, packed.least);
            assert_eq!(bytes, packed.least, "{name} {}", choice.name);
        }
    }
}

/// Partitions that run at the same time lie one above the other, each packed for itself.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn applications_are_packed_as_low_as_can_be() {
    let together = r#"(
        name: "together", rows: all, parallel: [["a", "b"]],
        cnns: [(name: "a", model: "builtin:mobilenet_v2"), (name: "b", model: "builtin:squeezenet1_0")],
    )"#;
    let [three, pipeline] = ["three_cnns.ron", "pipeline.ron"].map(|name| app(name).resolve().unwrap());
    for mut application in [three, pipeline, application(together)] {
        // At full speed rows are made at once, which may take more.
        application.constraints.memory = Some(MemoryGoal::Min);
        let plan = plan(&application);
        let least = plan.certificate.claimed.unwrap_or(plan.memory.bound);
        println!("{}: {}, least {least}", application.name, plan.memory.buffers);
        assert_eq!(plan.memory.buffers, least, "{}", application.name);
    }
}
