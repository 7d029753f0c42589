//! How high cliques stack, compared with every assignment and every way to place a few buffers.

use rand::RngExt;

use super::instances::{in_use, life, random};
use crate::budget::{Budget, Meter};
use crate::lives::{Gap, Life, problem};
use crate::subproblem::Subproblem;
use crate::{assignment, bound};

fn unlimited() -> Meter {
    Meter::new(Budget::Work(u64::MAX))
}

/// The most over all ways to give each row a column of its own, or none.
fn most(worth: &[Vec<i64>], taken: &mut Vec<usize>) -> i64 {
    let Some((row, rest)) = worth.split_first() else { return 0 };
    let mut best = most(rest, taken);
    for (column, worth) in row.iter().enumerate() {
        if !taken.contains(&column) {
            taken.push(column);
            best = best.max(worth + most(rest, taken));
            taken.pop();
        }
    }
    best
}

#[test]
fn assignments_are_worth_most() {
    for seed in 0..500 {
        let random = &mut random(seed);
        let (rows, columns) = (random.random_range(0..=5), random.random_range(1..=5));
        // Mostly nothing, as distances spare something with a few neighbours only.
        let least = -random.random_range(0..20);
        let mut row = || (0..columns).map(|_| random.random_range(least..10).max(0)).collect::<Vec<i64>>();
        let worth: Vec<Vec<i64>> = (0..rows).map(|_| row()).collect();
        let expected = most(&worth, &mut Vec::new());
        assert_eq!(
            assignment::max_worth(&worth, u64::MAX, &mut unlimited()),
            Some(expected),
            "seed {seed}: {worth:?}"
        );
    }
}

#[test]
fn what_the_budget_cuts_short_says_nothing() {
    let worth = vec![vec![1, 2, 3]; 3];
    assert_eq!(assignment::max_worth(&worth, u64::MAX, &mut Meter::new(Budget::Work(2))), None);
    assert_eq!(assignment::max_worth(&worth, 2, &mut unlimited()), None);
}

/// A few buffers that fill as they begin and drain as they end, or, every other time, are in use in any part.
fn filling(seed: u64) -> Vec<Life> {
    let random = &mut random(seed);
    let count = random.random_range(2..5);
    let fills = seed.is_multiple_of(2);
    let one = |_| {
        let bytes = random.random_range(1..8);
        let (lower, upper) = (random.random_range(0..4), random.random_range(6..9));
        let mut gap = |from: i64, to: i64, begins: bool, ends: bool| {
            let ends_at = [0, 1].map(|_| random.random_range(0..=bytes));
            let low = if begins && fills { 0 } else { ends_at[0].min(ends_at[1]) };
            let high = if ends && fills { bytes } else { ends_at[0].max(ends_at[1]) };
            Gap { lower: from, upper: to, window: Some((low, high)) }
        };
        let gaps = vec![
            gap(lower, lower + 1, true, false),
            gap(lower + 1, 5, false, false),
            gap(upper - 1, upper, false, true),
        ];
        Life { gaps, ..life(lower, upper, bytes) }
    };
    (0..count).map(one).collect()
}

/// Whether these lives, of which some have offsets, fit a height: every offset is tried, every moment looked at.
fn fit(lives: &[Life], height: u64, offsets: &mut Vec<u64>) -> bool {
    let at = offsets.len();
    let clear = |offsets: &[u64], at: usize| {
        (0..at).all(|other| {
            (0..10).all(|moment| match (in_use(&lives[at], moment), in_use(&lives[other], moment)) {
                (Some((low, high)), Some((from, to))) if low < high && from < to => {
                    offsets[at] + high <= offsets[other] + from || offsets[other] + to <= offsets[at] + low
                }
                _ => true,
            })
        })
    };
    if at == lives.len() {
        return true;
    }
    (0..=height.saturating_sub(lives[at].block.bytes)).any(|offset| {
        offsets.push(offset);
        let is_met =
            offset + lives[at].block.bytes <= height && clear(offsets, at) && fit(lives, height, offsets);
        offsets.pop();
        is_met
    })
}

/// No placement at all is lower, with a third way for two buffers to lie or without one; and often one is as low.
#[test]
fn nothing_is_lower_than_the_stacks() {
    let (mut above, mut met, mut inexact) = (0, 0, 0);
    for seed in 0..3000 {
        let lives = filling(seed);
        let problem = problem(&lives).unwrap();
        let part = Subproblem::new(&problem, &(0..lives.len()).collect::<Vec<_>>());
        let stacks = bound::of_stacks(&part, u64::MAX, &mut unlimited());
        let liveness = bound::liveness(&problem);
        if stacks > liveness {
            assert!(!fit(&lives, stacks - 1, &mut Vec::new()), "seed {seed}: {stacks}: {lives:?}");
            above += 1;
            met += u64::from(fit(&lives, stacks, &mut Vec::new()));
            inexact += u64::from(!part.two_ways);
        }
    }
    assert!(above > 300 && met > 250 && inexact > 10, "{above} above, {met} met, {inexact} inexact");
}
