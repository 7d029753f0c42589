//! The durations of the paper's section 7.

use super::*;
use crate::optimise::{Budget, optimise};
use crate::shapes::{self, Heuristic};

fn duration(problem: &Problem, kind: Heuristic) -> u64 {
    problem.cost(&shapes::unbounded(problem, kind).groups).duration
}

/// Figure 11: the first layer of LeNet-5 under both heuristics.
#[test]
fn lenet_layer_1() {
    let table: Vec<[u64; 3]> = (1..=32)
        .map(|group| {
            let problem = problem([32, 32], [5, 5], group, None);
            [group as u64, duration(&problem, Heuristic::Row), duration(&problem, Heuristic::ZigZag)]
        })
        .collect();
    assert_eq!((table[0], table[27]), ([1, 5264, 4724], [28, 1052, 1052]));
    for [group, row, zigzag] in &table {
        assert!(if *group <= 16 { zigzag < row } else { row < zigzag || *group == 28 }, "{group}");
    }
    let lines = table.iter().map(|[group, row, zigzag]| format!("{group:>2} {row:>4} {zigzag:>4}\n"));
    insta::assert_snapshot!("lenet_layer_1", lines.collect::<String>());
}

#[test]
fn sliding_columns() {
    let check = |input: [usize; 2], group, most| {
        let problem = problem(input, [3, 3], group, Some(2));
        let strategy = shapes::best(&problem, Heuristic::Column).unwrap();
        let duration = plain_duration(&problem, &strategy.groups).unwrap();
        assert!(duration <= most, "{input:?}, {group}: {duration}");
    };
    check([32, 32], 4, 1655);
    check([32, 32], 8, 1311);
    check([56, 56], 8, 4137);
}

/// Where a group holds a row of patches, nothing is loaded twice.
#[test]
fn wide_groups_load_every_pixel_once() {
    for size in 4..=12 {
        for group in size - 2..=10 {
            let problem = problem([size, size], [3, 3], group, Some(2));
            let answer = optimise(&problem, Budget::Default, 1).unwrap();
            let steps = ((size - 2) * (size - 2)).div_ceil(group);
            let duration = plain_duration(&problem, &answer.strategy.groups).unwrap();
            assert_eq!((duration, answer.bound), ((size * size + steps) as u64, duration), "{size} {group}");
        }
    }
}

/// More work never makes an answer worse than the heuristics, and the same seed gives the same answer.
#[test]
fn annealing_is_repeatable_and_no_worse_than_its_start() {
    let problem = problem([14, 14], [3, 3], 4, Some(2));
    let column = problem.cost(&shapes::best(&problem, Heuristic::Column).unwrap().groups).duration;
    let answer = optimise(&problem, Budget::Work(60_000), 7).unwrap();
    assert_eq!(optimise(&problem, Budget::Work(60_000), 7), Ok(answer.clone()));
    let duration = plain_duration(&problem, &answer.strategy.groups).unwrap();
    assert!(duration < column, "{duration} {column}");
}
