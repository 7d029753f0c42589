//! Simulated annealing of a strategy. A change moves patches between groups, or a run of groups to another place.
//!
//! The number of loaded pixels is the sum of the pixels that each group covers, less the pixels that neighbouring
//! groups share. So the cost of a change depends only on a few groups and their neighbours. The loads of one pixel are
//! counted in the same way: the groups that cover it, less the pairs of neighbours that both cover it. If these loads
//! are bounded, each load beyond the bound adds a penalty.

mod loads;
mod overlaps;
mod state;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use self::state::{Candidate, Change};
use super::problem::Problem;
use super::stop::is_asked;
use super::strategy::Groups;

/// Probability that a change is accepted at the start if it costs one more load, for cold and for warm chains.
///
/// The heuristics are good. Cold chains improve their results a little, and now and then a warm chain finds a quite
/// different strategy.
const ACCEPTED: [f64; 2] = [0.02, 0.2];

/// That chance at the end.
const ACCEPTED_LAST: f64 = 0.001;

/// Changes between two looks at the clock.
const PER_LOOK: u64 = 4096;

/// How long to anneal.
#[derive(Debug, Clone, Copy)]
pub struct Schedule<'s> {
    /// Changes proposed.
    pub changes: u64,
    /// When to stop at the latest.
    pub deadline: Option<Instant>,
    /// Once this is true, the chain ends.
    pub stop: Option<&'s AtomicBool>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether changes for the worse are accepted more freely.
    pub warm: bool,
}

/// The best groups seen on the way from these groups: among those that keep the problem's bounds, the ones of the
/// shortest duration.
///
/// Deterministic in the seed unless a deadline or somebody cuts it.
pub fn anneal(problem: &Problem, start: &Groups, schedule: &Schedule<'_>) -> Groups {
    let mut random = ChaCha8Rng::seed_from_u64(schedule.seed);
    let mut state = Candidate::new(problem, start);
    let mut best = (state.energy(), start.clone());
    // Copying all groups is then no more work than the changes between.
    let per_copy = (start.len() as u64 / 4).max(1);
    let first = ACCEPTED[usize::from(schedule.warm)];
    let unit = problem.load_cycles().max(1) as i64;
    for number in 0..schedule.changes {
        if number % per_copy == 0 && state.energy() < best.0 {
            best = (state.energy(), state.groups());
        }
        let is_late = || schedule.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if number % PER_LOOK == 0 && (is_late() || is_asked(schedule.stop)) {
            break;
        }
        let progress = number as f64 / schedule.changes as f64;
        let per_load = first + (ACCEPTED_LAST - first) * progress;
        let Some(change) = propose(&state, &mut random) else { continue };
        let before = state.energy();
        if !state.apply(&change) {
            continue;
        }
        let worse = state.energy() - before;
        if worse > 0 {
            let loads = (worse + unit - 1) / unit;
            let chance = if loads < 64 { power(per_load, loads as u32) } else { 0.0 };
            if f64::from(random.next_u32()) >= chance * 4_294_967_296.0 {
                state.revert();
                continue;
            }
        }
    }
    if state.energy() < best.0 {
        best = (state.energy(), state.groups());
    }
    best.1
}

/// Multiplication gives the same result on every machine; the exponential function does not.
fn power(base: f64, exponent: u32) -> f64 {
    (0..exponent).fold(1.0, |product, _| product * base)
}

/// A random number below `end`, which is above 0.
fn random_below(random: &mut ChaCha8Rng, end: usize) -> usize {
    ((u64::from(random.next_u32()) * end as u64) >> 32) as usize
}

/// A random change about two patches that lie close to each other.
fn propose(state: &Candidate<'_>, random: &mut ChaCha8Rng) -> Option<Change> {
    let [rows, columns] = state.output();
    let one = random_below(random, rows * columns);
    let near = |place: usize, end: usize, random: &mut ChaCha8Rng| {
        let moved = place as i64 + random_below(random, 7) as i64 - 3;
        usize::try_from(moved).ok().filter(|moved| *moved < end)
    };
    let row = near(one / columns, rows, random)?;
    let column = near(one % columns, columns, random)?;
    let (one, two) = (one as u32, (row * columns + column) as u32);
    let (from, to) = (state.group_of(one), state.group_of(two));
    if from == to {
        return None;
    }
    match random_below(random, 16) {
        0..11 => Some(Change::Swap { one, two }),
        11..13 => Some(Change::Move { patch: one, to }),
        13..15 => Some(Change::Reverse { from, to }),
        _ => Some(Change::Relocate { group: from, beside: to, length: 1 + random_below(random, 3) }),
    }
}
