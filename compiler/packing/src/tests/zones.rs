//! The search along time, compared with all ways of laying pairs one above the other, and with the search by offset.

use rand::RngExt;

use super::instances::{life, random};
use super::optima::{in_part, least_apart};
use crate::budget::{Budget, Meter};
use crate::decompose::pack;
use crate::lives::{Gap, Life, problem};
use crate::problem::{Block, Problem};
use crate::search::Answer;
use crate::subproblem::Subproblem;
use crate::{bound, zones};

fn part(problem: &Problem) -> Subproblem {
    Subproblem::new(problem, &(0..problem.blocks().len()).collect::<Vec<_>>())
}

fn unlimited() -> Meter {
    Meter::new(Budget::Work(u64::MAX))
}

fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let random = &mut random(seed);
    let mut order: Vec<usize> = (0..count).collect();
    for at in 1..count {
        order.swap(at, random.random_range(0..=at));
    }
    order
}

/// In any order, a height that is large enough is met, and any other height is refuted. If zones are left out, this
/// still holds.
#[test]
fn every_height_is_met_or_refuted() {
    let mut unknown = 0;
    for seed in 0..1500 {
        let (blocks, pairs, problem) = in_part(seed, &[1]);
        let (part, order) = (part(&problem), shuffled(blocks.len(), seed));
        let least = least_apart(&blocks, &pairs);
        for (width, height) in [(usize::MAX, least), (usize::MAX, least - 1), (1, least), (1, least - 1)] {
            match zones::search(&part, &order, height, width, &mut unlimited()) {
                Answer::Packed(offsets) => {
                    assert!(height == least && problem.accepts(&offsets), "seed {seed}: {offsets:?}");
                    let ends = offsets.iter().zip(&blocks).map(|(at, block)| at + block.bytes);
                    assert!(ends.max() <= Some(height), "seed {seed}");
                }
                Answer::Impossible => assert_eq!(height, least - 1, "seed {seed}"),
                Answer::Unknown => {
                    assert_eq!(width, 1, "seed {seed}");
                    unknown += 1;
                }
            }
        }
    }
    assert!((1..1500).contains(&unknown), "{unknown}");
}

/// Where alignments matter, what is found is aligned, and what can be met is not refuted. Most heights are settled.
#[test]
fn aligned_heights_are_not_refuted_that_can_be_met() {
    let mut unknown = 0;
    for seed in 0..1500 {
        let (blocks, pairs, problem) = in_part(seed, &[1, 2, 4]);
        let (part, order) = (part(&problem), shuffled(blocks.len(), seed));
        let least = least_apart(&blocks, &pairs);
        for height in [least, least - 1] {
            match zones::search(&part, &order, height, usize::MAX, &mut unlimited()) {
                Answer::Packed(offsets) => {
                    assert!(height == least && problem.accepts(&offsets), "seed {seed}: {offsets:?}");
                }
                Answer::Impossible => assert_eq!(height, least - 1, "seed {seed}"),
                Answer::Unknown => unknown += 1,
            }
        }
    }
    assert!((1..300).contains(&unknown), "{unknown}");
}

/// Buffers of which a few are in use at any time, filling and draining as they come and go.
fn chain(seed: u64, count: i64) -> Vec<Life> {
    let random = &mut random(seed);
    let one = |at: i64| {
        let bytes = random.random_range(4..40u64);
        let (lower, upper) = (2 * at, 2 * at + random.random_range(3..9));
        let gap = |from: i64, window| Gap { lower: from, upper: from + 1, window: Some(window) };
        let gaps = vec![gap(lower, (0, bytes / 2)), gap(upper - 1, (bytes / 2, bytes))];
        Life { block: Block::of_bytes(bytes), gaps, ..life(lower, upper, bytes) }
    };
    (0..count).map(one).collect()
}

/// Long chains are packed as low as can be, which the search by offset does not contradict.
#[test]
fn long_chains_are_packed_as_low_as_can_be() {
    let mut above = 0;
    for seed in 0..40 {
        let problem = problem(&chain(seed, 60)).unwrap();
        let solution = pack(&problem, &mut Meter::new(Budget::Work(3_000_000)));
        assert!(problem.accepts(&solution.packing.offsets), "seed {seed}");
        assert!(solution.proven(), "seed {seed}: {} of {}", solution.packing.bytes, solution.bound);
        above += u64::from(solution.packing.bytes > bound::liveness(&problem));
    }
    assert!(above > 2, "{above}");
}

/// Where zones were left out before blocks that do not fit by themselves, there is no packing all the same.
#[test]
fn what_came_since_may_be_too_much() {
    let mut lives: Vec<Life> = (1..=6).map(|bytes| life(0, 2, bytes)).collect();
    lives.extend([life(1, 4, 1), life(3, 6, 1)]);
    lives.extend([8, 8, 8].map(|bytes| life(5, 7, bytes)));
    let part = part(&problem(&lives).unwrap());
    let order: Vec<usize> = (0..lives.len()).collect();
    let search = |height| zones::search(&part, &order, height, 16, &mut unlimited());
    assert_eq!(search(24), Answer::Impossible);
    assert!(matches!(search(25), Answer::Packed(_)));
}
