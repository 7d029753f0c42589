//! Fronts, and how the answers to several queries go together.

use csdfc_select::{Answer, Chosen, Instance, Method, Problem, Quantity, Query, answer, front};
use rand::RngExt;

use crate::brute::{All, Quantity as Q};
use crate::draw::{GRAPHS, draw, random};
use crate::query;

fn met(problem: &Problem<'_>, query: &Query) -> Option<Chosen> {
    match answer(problem, query) {
        Ok(Answer::Met(chosen)) => Some(chosen),
        _ => None,
    }
}

/// Undominated pairs of all selections, by the rising first.
fn undominated(all: &All, first: Q, second: Q) -> Vec<(f64, f64)> {
    let mut pairs: Vec<(f64, f64)> =
        all.selections.iter().map(|(_, cost)| (cost[first as usize], cost[second as usize])).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut front: Vec<(f64, f64)> = Vec::new();
    for pair in pairs {
        if front.last().is_none_or(|last| pair.1 < last.1) {
            front.push(pair);
        }
    }
    front
}

#[test]
fn fronts_are_those_of_all_selections() {
    for (graph, seed) in GRAPHS.into_iter().flat_map(|graph| (0..40).map(move |seed| (graph, seed))) {
        let mut random = random(1000 + seed);
        let text = draw(graph, &mut random);
        let instance = Instance::parse(&text).unwrap();
        let problem = Problem::new(&instance, false).unwrap();
        let all = All::of(&text, false);
        for (minimise, axis) in
            [(Quantity::Time, Q::Memory), (Quantity::Memory, Q::Memory), (Quantity::Workspace, Q::Workspace)]
        {
            let expected = undominated(&all, axis, Q::Time);
            let found = match front(&problem, &query(minimise)) {
                Ok(found) => found,
                Err(why) => {
                    assert!(matches!(why, Answer::Blocked(_)) && expected.is_empty(), "{why:?}");
                    continue;
                }
            };
            let (times, memories) = (problem.times, problem.memories);
            let points: Vec<(f64, f64)> =
                found.points.iter().map(|(m, t)| (memories.value(*m), times.value(*t))).collect();
            assert!(found.complete);
            assert_eq!(points, expected, "{graph:?} {seed} {minimise:?}");
            // Within a budget, the front ends there.
            let budget = expected[random.random_range(0..expected.len())];
            let within = match axis {
                Q::Memory => Query { memory: Some(budget.0), ..query(Quantity::Time) },
                _ => Query { workspace: Some(budget.0), ..query(Quantity::Workspace) },
            };
            let within = front(&problem, &within).unwrap().points.len();
            assert_eq!(within, expected.iter().filter(|point| point.0 <= budget.0).count());
            for (memory, time) in points {
                invert(&problem, axis, memory, time);
            }
        }
    }
}

/// At a point of a front, the least time in its memory is its time, and the least memory in its time its memory.
fn invert(problem: &Problem<'_>, axis: Q, memory: f64, time: f64) {
    let (in_memory, in_time) = match axis {
        Q::Memory => (
            Query { memory: Some(memory), ..query(Quantity::Time) },
            Query { time: Some(time), ..query(Quantity::Memory) },
        ),
        _ => (
            Query { workspace: Some(memory), ..query(Quantity::Time) },
            Query { time: Some(time), ..query(Quantity::Workspace) },
        ),
    };
    let (fast, small) = (met(problem, &in_memory).unwrap().cost, met(problem, &in_time).unwrap().cost);
    assert_eq!(problem.times.value(fast.time), time);
    let least = if axis == Q::Memory { small.memory } else { small.workspace };
    assert_eq!(problem.memories.value(least), memory);
    assert_eq!(problem.times.value(small.time), time);
}

#[test]
fn no_baseline_is_better_than_the_optimum() {
    let mut seen = [0; 3];
    for (graph, seed) in GRAPHS.into_iter().flat_map(|graph| (0..60).map(move |seed| (graph, seed))) {
        let mut random = random(2000 + seed);
        let text = draw(graph, &mut random);
        let instance = Instance::parse(&text).unwrap();
        let problem = Problem::new(&instance, false).unwrap();
        let Some(best) = met(&problem, &query(Quantity::Time)) else { continue };
        // TASO with no bound on memory is PBQP.
        let unlimited = Query { memory: Some(1e12), ..query(Quantity::Time) };
        assert_eq!(met(&problem, &unlimited).unwrap().selection, best.selection);
        let by = |method: Method, memory: Option<f64>| {
            met(&problem, &Query { method, memory, ..query(Quantity::Time) })
        };
        for method in [Method::Sum2d, Method::Families, Method::LocalOptimal] {
            if let Some(found) = by(method, None) {
                seen[0] += usize::from(found.cost.time > best.cost.time);
                assert!(found.cost.time >= best.cost.time && found.bound == best.cost.time);
            }
        }
        assert_eq!(by(Method::Greedy, None), Some(best));
        let all = All::of(&text, false);
        let memory = all.selections[random.random_range(0..all.selections.len())].1[1];
        let exact = by(Method::Exact, Some(memory)).unwrap();
        match by(Method::Greedy, Some(memory)) {
            Some(greedy) => {
                assert!(
                    greedy.cost.time >= exact.cost.time
                        && problem.memories.value(greedy.cost.memory) <= memory
                );
                seen[1] += usize::from(greedy.cost.time > exact.cost.time);
            }
            None => seen[2] += 1,
        }
    }
    // Each of these happens.
    assert!(seen[0] > 50 && seen[1] > 20 && seen[2] > 5, "{seen:?}");
}

#[test]
fn without_conversions_each_layer_is_by_itself() {
    for seed in 0..40 {
        let text = draw(GRAPHS[3], &mut random(3000 + seed));
        let mut instance = Instance::parse(&text).unwrap();
        // All conversions cost nothing.
        let layouts: Vec<_> = (0..instance.layouts.len() as u8).map(csdfc_select::instance::Layout).collect();
        for edge in &mut instance.edges {
            edge.conversions = layouts
                .iter()
                .flat_map(|input| layouts.iter().map(move |output| (*input, *output)))
                .map(|(input, output)| csdfc_select::instance::Conversion { input, output, time: 0.0 })
                .collect();
        }
        let problem = Problem::new(&instance, false).unwrap();
        let fastest = |layer: &csdfc_select::instance::Layer| {
            layer.options.iter().map(|option| option.time).fold(f64::INFINITY, f64::min)
        };
        let expected: f64 = instance.layers.iter().map(fastest).sum();
        let found = met(&problem, &query(Quantity::Time)).unwrap();
        assert_eq!(problem.times.value(found.cost.time), expected);
    }
}
