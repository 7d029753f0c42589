//! Optima by trying every order, compared with those of the search.

use proptest::prelude::*;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::instances::{check_lawful, life, random};
use super::solve;
use crate::bound;
use crate::budget::{Budget, Meter};
use crate::decompose::pack;
use crate::infeasible::core;
use crate::lives::{Gap, Life, problem};
use crate::problem::{Block, Link, Problem};

/// Enough for any problem of this file.
const STEPS: u64 = 1_000_000;

/// The least height of all packings in which buffers, in some order, each lie on those before it: every packing can be
/// pushed down to one of these. `conflict` says whether two may not share an address.
fn least(blocks: &[Block], conflict: &dyn Fn(usize, usize) -> bool) -> Option<u64> {
    fn extend(
        blocks: &[Block],
        conflict: &dyn Fn(usize, usize) -> bool,
        placed: &mut Vec<(usize, u64)>,
        best: &mut Option<u64>,
    ) {
        if placed.len() == blocks.len() {
            let height = placed.iter().map(|(i, at)| at + blocks[*i].bytes).max().unwrap_or(0);
            *best = Some(best.map_or(height, |best| best.min(height)));
        }
        for i in 0..blocks.len() {
            if placed.iter().any(|(j, _)| *j == i) {
                continue;
            }
            let below = placed.iter().filter(|(j, _)| conflict(i, *j)).map(|(j, at)| at + blocks[*j].bytes);
            let support = below.max().unwrap_or(0);
            let at = match blocks[i].offset {
                Some(fixed) if fixed < support => continue,
                Some(fixed) => fixed,
                None => support.next_multiple_of(blocks[i].alignment),
            };
            placed.push((i, at));
            extend(blocks, conflict, placed, best);
            placed.pop();
        }
    }
    let mut best = None;
    extend(blocks, conflict, &mut Vec::new(), &mut best);
    best
}

pub(super) fn least_of(lives: &[Life]) -> u64 {
    let blocks: Vec<Block> = lives.iter().map(|life| life.block).collect();
    let used = |life: &Life, at: i64| {
        let gap = life.gaps.iter().any(|gap| gap.lower <= at && at < gap.upper);
        life.lower <= at && at < life.upper && !gap && life.block.bytes > 0
    };
    let meet = |i: &Life, j: &Life| (-20..40).any(|at| used(i, at) && used(j, at));
    let conflicts: Vec<Vec<bool>> =
        lives.iter().map(|i| lives.iter().map(|j| meet(i, j)).collect()).collect();
    least(&blocks, &|i, j| conflicts[i][j]).unwrap()
}

pub(super) fn lives(random: &mut ChaCha8Rng, most: usize, sizes: u64) -> Vec<Life> {
    let count = random.random_range(1..=most);
    let one = |_| {
        let lower = random.random_range(0..8);
        life(lower, lower + random.random_range(1..6), random.random_range(1..=sizes))
    };
    (0..count).map(one).collect()
}

#[test]
fn a_thousand_optima_are_those_of_every_order() {
    for seed in 0..1000 {
        let lives = lives(&mut random(seed), 7, if seed % 2 == 0 { 4 } else { 40 });
        let solution = solve(&lives, STEPS);
        assert_eq!(
            (solution.packing.bytes, solution.proven()),
            (least_of(&lives), true),
            "seed {seed}: {lives:?}"
        );
    }
}

#[test]
fn so_are_those_with_alignments_offsets_and_gaps() {
    for seed in 0..600 {
        let random = &mut random(seed);
        let mut lives = lives(random, 6, 9);
        for life in &mut lives {
            if seed % 3 != 0 {
                life.block.alignment = [1, 1, 2, 3, 4, 8][random.random_range(0..6)];
            }
            if seed % 3 != 1 && life.upper - life.lower > 2 && random.random_range(0..2) == 0 {
                let lower = random.random_range(life.lower + 1..life.upper - 1);
                life.gaps = vec![Gap { lower, upper: lower + 1, window: None }];
            }
        }
        // One alone cannot contradict another.
        if seed % 2 == 0 {
            let life = &mut lives[0];
            life.block.offset = Some(life.block.alignment * random.random_range(0..12));
        }
        let solution = solve(&lives, STEPS);
        assert_eq!(
            (solution.packing.bytes, solution.proven()),
            (least_of(&lives), true),
            "seed {seed}: {lives:?}"
        );
    }
}

/// Blocks of which some conflict, pair by pair.
fn graph(seed: u64) -> (Vec<Block>, Vec<Vec<usize>>, Problem) {
    let random = &mut random(seed);
    let count = random.random_range(1..=7);
    let blocks: Vec<Block> = (0..count).map(|_| Block::of_bytes(random.random_range(1..12))).collect();
    let mut conflicts = vec![Vec::new(); count];
    let mut pairs = Vec::new();
    for i in 0..count {
        for j in 0..i {
            if random.random_range(0..10) < 3 + seed % 5 {
                conflicts[i].push(j);
                conflicts[j].push(i);
                pairs.push(vec![j, i]);
            }
        }
    }
    let problem = Problem::new(blocks.clone(), &conflicts, &pairs).unwrap();
    (blocks, conflicts, problem)
}

#[test]
fn so_are_those_of_any_conflicts() {
    for seed in 0..600 {
        let (blocks, conflicts, problem) = graph(seed);
        let solution = pack(&problem, &mut Meter::new(Budget::Work(STEPS)));
        let expected = least(&blocks, &|i, j| conflicts[i].contains(&j)).unwrap();
        assert!(problem.accepts(&solution.packing.offsets));
        assert_eq!(
            (solution.packing.bytes, solution.bound),
            (expected, expected),
            "seed {seed}: {conflicts:?}"
        );
    }
}

/// The least height over all ways of laying each pair that conflicts, one above the other: the longest path upwards, from
/// the ground through distances, to offsets that are aligned.
pub(super) fn least_apart(blocks: &[Block], pairs: &[Pair]) -> u64 {
    let mut best = u64::MAX;
    'ways: for way in 0..1u32 << pairs.len() {
        let mut offsets = vec![0i64; blocks.len()];
        let mut changed = true;
        let mut rounds = 0;
        while std::mem::take(&mut changed) {
            rounds += 1;
            if rounds > 4 * blocks.len() + 1 {
                continue 'ways;
            }
            for (bit, &(i, j, above, below)) in pairs.iter().enumerate() {
                let (lower, upper, apart) = if way >> bit & 1 == 0 { (i, j, above) } else { (j, i, below) };
                if offsets[lower] + apart > offsets[upper] {
                    let least = (offsets[lower] + apart).unsigned_abs();
                    offsets[upper] = least.next_multiple_of(blocks[upper].alignment) as i64;
                    changed = true;
                }
            }
        }
        let ends = offsets.iter().zip(blocks).map(|(at, block)| *at as u64 + block.bytes);
        best = best.min(ends.max().unwrap_or(0));
    }
    best
}

/// Two blocks that conflict, how much higher the second lies at least than the first, or the first than the second.
pub(super) type Pair = (usize, usize, i64, i64);

/// Blocks of which some are in use in part, each with one of these alignments.
pub(super) fn in_part(seed: u64, alignments: &[u64]) -> (Vec<Block>, Vec<Pair>, Problem) {
    let random = &mut random(seed);
    let count = random.random_range(2..=5);
    let mut blocks: Vec<Block> = (0..count).map(|_| Block::of_bytes(random.random_range(1..12))).collect();
    if let [_, _, ..] = alignments {
        for block in &mut blocks {
            block.alignment = alignments[random.random_range(0..alignments.len())];
        }
    }
    let size = |i: usize| blocks[i].bytes as i64;
    let mut pairs = Vec::new();
    for i in 0..count {
        for j in 0..i {
            let mut apart = [size(i), size(j)];
            if random.random_range(0..2) == 0 {
                // In use in part: less than the size, and rarely what starts lower may lie above.
                let least = if seed.is_multiple_of(3) { 1 - size(j) } else { 1 };
                apart[0] = random.random_range(least..=size(i));
                apart[1] = random.random_range((1 - apart[0]).max(1)..=size(j));
                if random.random_range(0..2) == 0 && apart[1] <= size(i) && apart[0] <= size(j) {
                    apart.swap(0, 1);
                }
            }
            if random.random_range(0..10) < 6 {
                pairs.push((i, j, apart[0], apart[1]));
            }
        }
    }
    let mut links = vec![Vec::new(); count];
    for &(i, j, above, below) in &pairs {
        links[i].push(Link { other: j, above, below, is_exact: true });
        links[j].push(Link { other: i, above: below, below: above, is_exact: true });
    }
    let problem = Problem::from_links(blocks.clone(), links, Vec::new()).unwrap();
    (blocks, pairs, problem)
}

#[test]
fn so_are_those_of_blocks_that_overlap_in_part() {
    let (mut lower, mut unproven) = (0, 0);
    for (seed, alignments) in (0..1500).flat_map(|seed| [(seed, &[1][..]), (seed, &[1, 2, 4])]) {
        let (blocks, pairs, problem) = in_part(seed, alignments);
        let solution = pack(&problem, &mut Meter::new(Budget::Work(STEPS)));
        let expected = least_apart(&blocks, &pairs);
        assert!(problem.accepts(&solution.packing.offsets));
        // With alignments, not every least height is proven.
        let is_proven = solution.bound == expected || alignments.len() > 1 && solution.bound < expected;
        unproven += u64::from(solution.bound < expected);
        assert!(
            solution.packing.bytes == expected && is_proven,
            "seed {seed}: {expected}, {solution:?}: {blocks:?} {pairs:?}"
        );
        let size = |i: usize| blocks[i].bytes as i64;
        let sizes: Vec<Pair> = pairs.iter().map(|&(i, j, ..)| (i, j, size(i), size(j))).collect();
        lower += u64::from(expected < least_apart(&blocks, &sizes));
    }
    assert!(lower > 200 && unproven < 100, "{lower}, {unproven}");
}

#[test]
fn what_does_not_fit_is_named() {
    let mut at_one_moment = 0;
    for seed in 0..300 {
        let (blocks, conflicts, problem) = graph(seed);
        let some = |kept: &[usize]| {
            let blocks: Vec<Block> = kept.iter().map(|i| blocks[*i]).collect();
            least(&blocks, &|i, j| conflicts[kept[i]].contains(&kept[j])).unwrap()
        };
        let all = some(&(0..blocks.len()).collect::<Vec<_>>());
        let find = |capacity| core(&problem, capacity, &mut Meter::new(Budget::Work(STEPS)));
        assert_eq!(find(all), None, "seed {seed}");
        let core = find(all - 1).unwrap();
        assert!(core.irreducible && some(&core.blocks) >= all, "seed {seed}: {core:?}");
        for i in &core.blocks {
            let others: Vec<usize> = core.blocks.iter().copied().filter(|j| j != i).collect();
            assert!(some(&others) < all, "seed {seed}: {core:?} without {i}");
        }
        at_one_moment += u64::from(bound::liveness(&problem) == all);
    }
    assert!((20..280).contains(&at_one_moment), "{at_one_moment}");
}

proptest! {
    #[test]
    fn buffers_in_use_in_part_do_not_overlap(
        raw in prop::collection::vec((0i64..12, 3i64..9, 1u64..20, 1i64..3, 0u64..20, 0u64..20), 1..14),
    ) {
        let lives: Vec<Life> = raw
            .into_iter()
            .map(|(lower, span, bytes, from, low, high)| {
                let (low, high) = (low.min(high) % (bytes + 1), low.max(high).min(bytes));
                let window = (low <= high).then_some((low, high));
                let gaps = vec![Gap { lower: lower + from, upper: lower + from + 1, window }];
                Life { gaps, ..life(lower, lower + span, bytes) }
            })
            .collect();
        let problem = problem(&lives).unwrap();
        let solution = pack(&problem, &mut Meter::new(Budget::Work(20_000)));
        check_lawful(&lives, &solution.packing.offsets, solution.packing.bytes);
        prop_assert!(solution.bound <= solution.packing.bytes);
    }
}
