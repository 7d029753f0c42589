mod bound;
mod instances;
mod optima;
mod regions;
mod skyline;
mod zones;

use super::budget::{Budget, Meter};
use super::decompose::pack;
use super::lives::{Life, problem};
use super::problem::Solution;
use instances::*;

/// Packs with this many steps, and checks that the packing is valid and no lower than the bound.
fn solve(lives: &[Life], steps: u64) -> Solution {
    let problem = problem(lives).unwrap();
    let solution = pack(&problem, &mut Meter::new(Budget::Work(steps)));
    check_lawful(lives, &solution.packing.offsets, solution.packing.bytes);
    assert!(solution.bound <= solution.packing.bytes);
    solution
}

#[test]
fn nothing_takes_nothing() {
    assert_eq!(solve(&[], 1000).packing.bytes, 0);
    let never = [life(0, 5, 0), life(3, 3, 7)];
    assert_eq!(solve(&never, 1000).packing.bytes, 7);
}

#[test]
fn what_contradicts_itself_is_refused() {
    use super::PackError::*;
    let fixed = |offset, alignment, mut life: Life| {
        (life.block.offset, life.block.alignment) = (Some(offset), alignment);
        life
    };
    let refused = |lives: &[Life]| problem(lives).unwrap_err();
    assert_eq!(refused(&[fixed(6, 4, life(0, 1, 1))]), Misaligned { block: 0, offset: 6, alignment: 4 });
    assert_eq!(refused(&[fixed(0, 0, life(0, 1, 1))]), NoAlignment(0));
    let overlapping = [fixed(0, 1, life(0, 2, 4)), fixed(3, 1, life(1, 2, 4))];
    assert_eq!(refused(&overlapping), FixedOverlap(0, 1));
    assert!(problem(&[fixed(0, 1, life(0, 2, 4)), fixed(4, 1, life(1, 2, 4))]).is_ok());
    assert_eq!(refused(&[life(0, 1, 1 << 61), life(0, 1, 1 << 61)]), TooLarge);
    assert_eq!(refused(&[fixed(u64::MAX, 1, life(0, 1, 1))]), TooLarge);
    // Many buffers may live one after another, but not all at the same time.
    let all = |end: i64| (0..20_000).map(|at| life(at, at + end, 1)).collect::<Vec<_>>();
    assert!(problem(&all(3)).is_ok());
    assert_eq!(refused(&all(20_000)), TooManyPairs);
}
