//! Instances on which elimination is a relaxation: here because tables may have few cells.

use csdfc_select::budget::{Nothing, solve};
use csdfc_select::descent::descend;
use csdfc_select::model::Model;
use csdfc_select::quantity::Axis;
use csdfc_select::{Instance, Problem};
use rand::RngExt;

use crate::brute::{All, Quantity as Q};
use crate::draw::{GRAPHS, draw, random};

#[test]
fn bounds_hold_where_elimination_is_not_exact() {
    let (mut relaxed, mut proven, mut open) = (0, 0, 0);
    for (graph, seed) in GRAPHS.into_iter().flat_map(|graph| (0..80).map(move |seed| (graph, seed))) {
        let mut random = random(4000 + seed);
        let text = draw(graph, &mut random);
        let instance = Instance::parse(&text).unwrap();
        let problem = Problem::new(&instance, false).unwrap();
        let all = All::of(&text, false);
        let edges: Vec<usize> = (0..instance.edges.len()).collect();
        let model = Model::of_edges(&problem, &problem.all(), &edges, random.random_range(1..20));
        relaxed += usize::from(!model.tree.is_exact());
        // Small enough for the search to go through all of it.
        match solve(&problem, &model, Axis::Time, None) {
            Ok(found) => {
                let best = all.best(Q::Time, Q::Memory, &[None; 3]).unwrap();
                let cost = problem.cost(&found.selection).unwrap();
                assert_eq!((problem.times.value(cost.time), problem.memories.value(cost.memory)), best);
                assert_eq!(found.bound, cost.time);
            }
            Err(nothing) => {
                assert!(nothing == Nothing::NoPath || nothing == Nothing::Unknown);
                assert!(all.selections.is_empty(), "{graph:?} {seed}: {nothing:?}");
                continue;
            }
        }
        let budget = all.selections[random.random_range(0..all.selections.len())].1[1];
        let best = problem.times.whole(all.best(Q::Time, Q::Memory, &[None, Some(budget), None]).unwrap().0);
        let budget = problem.memories.budget(budget);
        let found = solve(&problem, &model, Axis::Time, Some(budget)).unwrap();
        let cost = problem.cost(&found.selection).unwrap();
        assert!(cost.memory <= budget && found.bound <= best && best <= cost.time, "{graph:?} {seed}");
        *(if found.bound == cost.time { &mut proven } else { &mut open }) += 1;
    }
    assert!(relaxed > 100 && proven > 100 && open > 10, "{relaxed} {proven} {open}");
}

#[test]
fn a_descent_ends_where_no_single_change_helps() {
    let mut improved = 0;
    for (graph, seed) in GRAPHS.into_iter().flat_map(|graph| (0..40).map(move |seed| (graph, seed))) {
        let mut random = random(6000 + seed);
        let text = draw(graph, &mut random);
        let instance = Instance::parse(&text).unwrap();
        let problem = Problem::new(&instance, false).unwrap();
        let all = All::of(&text, false);
        if all.selections.is_empty() {
            continue;
        }
        let (start, [time, memory, _]) = all.selections[random.random_range(0..all.selections.len())].clone();
        let budget = problem.memories.whole(memory);
        let found = descend(&problem, &problem.all(), Axis::Time, budget, start);
        let [least, within, _] = all.cost(&found).unwrap();
        assert!(least <= time && within <= memory);
        improved += usize::from(least < time);
        for layer in 0..found.len() {
            for place in 0..problem.candidates[layer].len() {
                let mut changed = found.clone();
                changed[layer] = place;
                let helps = all.cost(&changed).is_some_and(|[other, taken, _]| {
                    taken <= memory && (other < least || other == least && taken < within)
                });
                assert!(!helps, "{graph:?} {seed}: layer {layer}, candidate {place}");
            }
        }
    }
    assert!(improved > 50, "{improved}");
}
