//! Optima: those that the literature and `docs/design.md` name, and small ones by trying every strategy.

use super::*;
use crate::exact::{self, Limits};
use crate::optimise::{Budget, optimise};
use crate::{bound, program};

const LIMITS: Limits<'_> = Limits { work: 50_000_000, states: 1_000_000, deadline: None, stop: None };

/// The least duration over every strategy there is, by exhaustion.
fn least(problem: &Problem) -> Option<u64> {
    fn extend(problem: &Problem, open: &[u32], groups: &mut Groups, best: &mut Option<u64>) {
        if open.is_empty() {
            let duration = plain_duration(problem, groups);
            *best = best.iter().copied().chain(duration).min();
            return;
        }
        for set in 1u32..1 << open.len() {
            if set.count_ones() as usize > problem.group {
                continue;
            }
            let of = |inside: bool| -> Vec<u32> {
                let members = open.iter().enumerate().filter(|(place, _)| (set >> place & 1 == 1) == inside);
                members.map(|(_, patch)| *patch).collect()
            };
            groups.push(of(true));
            extend(problem, &of(false), groups, best);
            groups.pop();
        }
    }
    let mut best = None;
    let open: Vec<u32> = (0..problem.convolution.patches() as u32).collect();
    extend(problem, &open, &mut Groups::new(), &mut best);
    best
}

#[test]
fn named_optima_are_found_and_proved() {
    let check = |input, filter, group, optimum| {
        for reload in [None, Some(2)] {
            let problem = problem(input, filter, group, reload);
            let answer = optimise(&problem, Budget::Default, 1).unwrap();
            let cost = problem.cost(&answer.strategy.groups);
            assert_eq!((cost.duration, answer.bound), (optimum, optimum), "{input:?} {group}");
            assert!(problem.admits(&cost));
        }
    };
    check([5, 5], [3, 3], 2, 31);
    check([5, 5], [3, 3], 3, 28);
    check([6, 6], [3, 3], 2, 48);
    check([4, 8], [3, 3], 2, 38);
    check([6, 6], [5, 5], 2, 38);
}

/// Small layers of every kind under every kind of bound: the exact search finds the least of all strategies, and no
/// bound is above it.
#[test]
fn no_strategy_beats_the_exact_search() {
    let mut infeasible = 0;
    let mut improved = 0;
    for seed in 0..120 {
        let mut draw = Draw::new(seed);
        let convolution = draw.layer(6);
        let group = draw.number(1, 4);
        let free = Problem::new(
            convolution,
            Accelerator {
                tl: draw.number(0, 3) as u64,
                tacc: draw.number(0, 4) as u64,
                ..Accelerator::default()
            },
            &Options { group: Some(group), ..Options::default() },
        )
        .unwrap();
        let one = free.memory(free.convolution.pixels_per_patch(), 1);
        let mem = (draw.number(0, 1) == 1).then(|| one + draw.number(0, 12) as u64);
        let reload = [None, Some(1), Some(2), Some(3)][draw.number(0, 3)];
        let problem =
            Problem { reload, accelerator: Accelerator { mem, ..free.accelerator.clone() }, ..free };
        let least = least(&problem);
        let outcome = exact::search(&problem, u64::MAX, LIMITS).unwrap();
        let found = outcome.groups.as_ref().map(|groups| plain_duration(&problem, groups).unwrap());
        assert_eq!(found, least, "seed {seed}: {problem:?}");
        let Some(least) = least else {
            infeasible += 1;
            continue;
        };
        assert_eq!(outcome.bound, least);
        assert!(bound::lower_bound(&problem) <= least, "seed {seed}");
        // Asked to beat the optimum, it proves that nothing does.
        let beaten = exact::search(&problem, least, LIMITS).unwrap();
        assert_eq!((beaten.groups, beaten.bound), (None, least));
        if let Ok(answer) = optimise(&problem, Budget::Work(200), seed) {
            let duration = plain_duration(&problem, &answer.strategy.groups).unwrap();
            assert!(answer.bound <= least && least <= duration, "seed {seed}");
            improved += usize::from(answer.strategy.name == "annealed" || answer.strategy.name == "exact");
        }
    }
    println!("{infeasible} without a strategy, {improved} better than the heuristics");
    assert!(infeasible > 0 && improved > 2);
}

/// The integer program finds and proves what the exact search does.
#[test]
fn the_program_agrees_with_the_exact_search() {
    let mut improved = 0;
    for seed in 0..60 {
        let mut draw = Draw::new(1000 + seed);
        let convolution = draw.layer(6);
        let patches = convolution.patches();
        let options = Options { group: Some(draw.number(1, 3)), ..Options::default() };
        let accelerator = Accelerator { tacc: draw.number(0, 2) as u64, ..Accelerator::default() };
        let free = Problem::new(convolution, accelerator, &options).unwrap();
        let start = draw.groups(patches, free.group);
        let cost = free.cost(&start);
        let reload = (draw.number(0, 1) == 1).then_some(cost.most_loads);
        let mem = (draw.number(0, 1) == 1).then_some(cost.memory);
        let problem =
            Problem { reload, accelerator: Accelerator { mem, ..free.accelerator.clone() }, ..free };
        let solved = program::solve(&problem, &start, std::time::Duration::from_secs(60), None).unwrap();
        let searched = exact::search(&problem, cost.duration, LIMITS).unwrap();
        let duration = |groups: &Groups| plain_duration(&problem, groups).unwrap();
        let best = solved.groups.as_ref().map_or(cost.duration, duration);
        assert!(solved.proved);
        assert_eq!(best, searched.bound, "seed {seed}: {problem:?}");
        improved += usize::from(best < cost.duration);
    }
    assert!(improved > 20, "{improved}");
}

#[test]
fn a_search_that_is_cut_short_still_bounds() {
    let problem = problem([6, 6], [3, 3], 2, None);
    let mut last = 0;
    for work in [1, 100, 1000, 10_000, 50_000_000] {
        let outcome = exact::search(&problem, 51, Limits { work, ..LIMITS }).unwrap();
        assert!((last..=48).contains(&outcome.bound), "{}", outcome.bound);
        last = outcome.bound;
    }
    assert_eq!(last, 48);
    // One state has more groups than could ever be tried.
    let many =
        exact::search(&super::problem([10, 10], [3, 3], 20, None), u64::MAX, Limits { work: 1000, ..LIMITS });
    assert!(many.is_some_and(|many| many.work <= 1001 && many.groups.is_none()));
    assert!(exact::search(&super::problem([32, 32], [3, 3], 2, None), 9, LIMITS).is_none());
}
