//! Small random instances, compared with all selections that there are.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod brute;
mod draw;
mod fronts;
mod large;
mod sizes;
mod stopped;
mod traps;
mod wide;

use brute::{All, Quantity as Q};
use csdfc_select::{Answer, Chosen, Instance, Method, Problem, Quantity, Query, answer};
use draw::{GRAPHS, Graph, draw, random};
use rand::RngExt;

/// Instances of each kind of graph.
const INSTANCES: u64 = 240;

fn query(minimise: Quantity) -> Query {
    Query { minimise, time: None, memory: None, workspace: None, method: Method::Exact }
}

/// The crate's answer. Checks that its selection has the stated cost.
fn asked(problem: &Problem<'_>, all: &All, query: &Query) -> Answer {
    let found = answer(problem, query).unwrap();
    if let Answer::Met(chosen) | Answer::Unmet { nearest: chosen, .. } = &found {
        let cost = all.cost(&chosen.selection).unwrap();
        assert_eq!(cost, costs(problem, chosen));
    }
    found
}

/// Time, memory and workspace.
fn costs(problem: &Problem<'_>, chosen: &Chosen) -> [f64; 3] {
    let cost = chosen.cost;
    let memory = |whole| problem.memories.value(whole);
    [problem.times.value(cost.time), memory(cost.memory), memory(cost.workspace)]
}

/// Compares one query with all selections.
fn compare(problem: &Problem<'_>, all: &All, query: &Query, case: &str) {
    let (minimised, first, second) = match (query.minimise, query.workspace) {
        (Quantity::Time, None) => (0, Q::Time, Q::Memory),
        (Quantity::Time, Some(_)) => (0, Q::Time, Q::Workspace),
        (Quantity::Memory, _) => (1, Q::Memory, Q::Time),
        (Quantity::Workspace, _) => (2, Q::Workspace, Q::Time),
    };
    let limits = [query.time, query.memory, query.workspace];
    let best = all.best(first, second, &limits);
    match (best, asked(problem, all, query)) {
        (Some(best), Answer::Met(chosen)) => {
            let found = costs(problem, &chosen);
            assert_eq!((found[first as usize], found[second as usize]), best, "{case} {query:?}");
            let units = [problem.times, problem.memories, problem.memories];
            assert_eq!(units[minimised].value(chosen.bound), best.0, "{case} {query:?}");
        }
        (None, Answer::Unmet { quantity, nearest }) => {
            // The least of the quantity whose budget is broken.
            let at = quantity as usize;
            let [mut time, mut memory, mut workspace] = limits;
            match quantity {
                Quantity::Time => time = None,
                Quantity::Memory => {
                    (memory, time) = (None, time.filter(|_| query.minimise == Quantity::Memory))
                }
                Quantity::Workspace => (time, memory, workspace) = (None, None, None),
            }
            let least = all.best([Q::Time, Q::Memory, Q::Workspace][at], Q::Time, &[time, memory, workspace]);
            assert_eq!(Some(costs(problem, &nearest)[at]), least.map(|least| least.0), "{case} {query:?}");
            assert!(limits[at].is_some_and(|limit| limit < costs(problem, &nearest)[at]), "{case} {query:?}");
        }
        (None, Answer::Blocked(edges)) => {
            assert!(all.selections.is_empty() && !edges.is_empty(), "{case} {query:?}");
            assert!(edges.iter().any(|edge| !edge.pairs.is_empty()), "{case}");
        }
        (best, found) => unreachable!("{case} {query:?}: {best:?}, but {found:?}"),
    }
    // The program finds as much. It minimises nothing else.
    let by_program = answer(problem, &Query { method: Method::Program, ..*query });
    match (best, by_program.unwrap()) {
        (Some(best), Answer::Met(chosen)) => {
            let found = costs(problem, &chosen)[minimised];
            assert!((found - best.0).abs() <= 1e-9 * best.0.max(1.0), "{case} {query:?}: {found}, {best:?}");
        }
        (None, Answer::Unmet { .. } | Answer::Blocked(_)) => {}
        (best, found) => unreachable!("{case} {query:?}: {best:?}, but the program says {found:?}"),
    }
}

fn exhaustively(graph: Graph) {
    let (mut met, mut unmet) = (0, 0);
    for seed in 0..INSTANCES {
        let mut random = random(seed);
        let text = draw(graph, &mut random);
        let case = format!("{graph:?} {seed}");
        let instance = Instance::parse(&text).unwrap_or_else(|error| unreachable!("{case}: {error}"));
        let converts = random.random_range(0..4) == 0;
        let problem = Problem::new(&instance, converts).unwrap();
        let all = All::of(&text, converts);
        compare(&problem, &all, &query(Quantity::Time), &case);
        compare(&problem, &all, &query(Quantity::Memory), &case);
        compare(&problem, &all, &query(Quantity::Workspace), &case);
        if all.selections.is_empty() {
            unmet += 1;
            continue;
        }
        met += 1;
        // A budget is what some selection takes, or a little less, so that some cannot be kept.
        let mut budget = |quantity: Q| {
            let cost = all.selections[random.random_range(0..all.selections.len())].1;
            let less = if random.random_range(0..3) == 0 { 0.125 } else { 0.0 };
            Some((cost[quantity as usize] - less).max(0.0))
        };
        let (time, memory, workspace) = (budget(Q::Time), budget(Q::Memory), budget(Q::Workspace));
        let lowest = all.best(Q::Memory, Q::Time, &[None; 3]).unwrap().0 - 0.125;
        for query in [
            Query { memory, ..query(Quantity::Time) },
            Query { workspace, ..query(Quantity::Time) },
            Query { workspace, memory, ..query(Quantity::Time) },
            Query { time, ..query(Quantity::Memory) },
            Query { time, workspace, ..query(Quantity::Memory) },
            Query { time, ..query(Quantity::Workspace) },
            Query { time, memory, ..query(Quantity::Workspace) },
            Query { memory: Some(lowest.max(0.0)), ..query(Quantity::Time) },
        ] {
            compare(&problem, &all, &query, &case);
        }
    }
    assert!(met >= 100, "{graph:?}: {met} instances can be solved, {unmet} cannot");
    assert!(met >= 200 || graph == Graph::Broken, "{graph:?}: {met}");
    assert!(unmet >= 20 || graph != Graph::Broken, "{graph:?}: {unmet} cannot be solved");
}

#[test]
fn chains() {
    exhaustively(GRAPHS[0]);
}

#[test]
fn inception_modules() {
    exhaustively(GRAPHS[1]);
}

#[test]
fn residual_blocks() {
    exhaustively(GRAPHS[2]);
}

#[test]
fn dense_blocks() {
    exhaustively(GRAPHS[3]);
}

#[test]
fn broken_transformation_graphs() {
    exhaustively(GRAPHS[4]);
}
