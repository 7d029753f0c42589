//! The best strategy: heuristics first, then the methods that prove or improve them.
//!
//! For a small layer, a proof that no strategy is faster:
//!
//! ```
//! use csdfc_offload::optimise::{Budget, prove};
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec};
//!
//! let layer = Convolution::new(Spec::new([5, 5], 1, [3, 3], 1))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(layer, Accelerator::default(), &options)?;
//! let answer = prove(&problem, Budget::Default)?;
//! assert_eq!((problem.cost(&answer.strategy.groups).duration, answer.bound), (31, 31));
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::anneal::{Schedule, anneal};
use super::error::OffloadError;
use super::exact::{self, Limits};
use super::problem::Problem;
use super::shapes::{self, HEURISTICS};
use super::strategy::{Groups, Strategy};
use super::{bound, program};

/// Chains of the annealer, each with a seed of its own.
const CHAINS: u64 = 4;

/// Changes that a chain proposes per patch, by default.
const CHANGES_PER_PATCH: u64 = 10_000;

/// Minimum and maximum number of changes that a chain proposes by default.
const CHANGES: [u64; 2] = [20_000, 1_000_000];

/// Pixels that one chain may visit by default.
const VISITS: u64 = 1 << 29;

/// Limits of the exact search by default.
const LIMITS: Limits = Limits { work: 20_000_000, states: 1_000_000, deadline: None };

/// Longest time of the integer program, if no other is asked for.
const MAX_PROGRAM_TIME: Duration = Duration::from_secs(60);

/// Changes of a chain between two rounds, if only the clock ends the search.
const PER_ROUND: u64 = 1_000_000;

/// How much is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// By the size of the layer.
    Default,
    /// The number of changes in each annealing chain, and the number of groups that the exact search tries.
    Work(u64),
    /// Wall time. The result then depends on the machine.
    Time(Duration),
}

/// A strategy, and a bound on all strategies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The strategy.
    pub strategy: Strategy,
    /// No strategy has a smaller duration.
    pub bound: u64,
    /// Whether the clock ended the search.
    pub stopped_by_time: bool,
}

/// The best strategy that is found within the budget: by the heuristics, by annealing from the best of them, and, if
/// the layer is small, by an exact search.
///
/// # Errors
/// When nothing is found that keeps the problem's bounds. The error says what the nearest heuristic needs.
pub fn optimise(problem: &Problem, budget: Budget, seed: u64) -> Result<Answer, OffloadError> {
    let started = Instant::now();
    let deadline = limits(budget, started).deadline;
    let duration = |groups: &Groups| problem.cost(groups).duration;
    let (mut best, mut starts, unmet) = match heuristics(problem) {
        Ok(mut found) => {
            found.sort_by_key(|strategy| duration(&strategy.groups));
            (found.first().cloned(), found, None)
        }
        // If pixels are loaded too often, annealing mends that on the way.
        Err(error) => (None, vec![nearest(problem)], Some(error)),
    };
    starts.truncate(2);
    let mut bound = bound::lower_bound(problem);
    let to_beat =
        |best: &Option<Strategy>| best.as_ref().map_or(u64::MAX, |strategy| duration(&strategy.groups));

    let mut stopped_by_time = false;
    let mut round = 0;
    while to_beat(&best) > bound {
        let changes = match budget {
            Budget::Default => default_changes(problem),
            Budget::Work(work) => work,
            Budget::Time(_) => PER_ROUND,
        };
        let chain = |number: u64| {
            let seed = seed.wrapping_add((round * CHAINS + number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let from = match &best {
                Some(best) if round > 0 => best,
                _ => &starts[number as usize % starts.len()],
            };
            let schedule = Schedule { changes, deadline, seed, warm: number >= CHAINS / 2 };
            let groups = anneal(problem, &from.groups, &schedule);
            (duration(&groups), groups)
        };
        let chains: Vec<(u64, Groups)> = (0..CHAINS).into_par_iter().map(chain).collect();
        let found = chains.into_iter().filter(|(_, groups)| problem.admits(&problem.cost(groups))).min();
        if let Some((_, groups)) = found.filter(|(found, _)| *found < to_beat(&best)) {
            best = Some(Strategy { name: "annealed".into(), shape: None, groups });
        }
        if round == 0
            && to_beat(&best) > bound
            && let Some(outcome) = exact::search(problem, to_beat(&best), limits(budget, started))
        {
            bound = bound.max(outcome.bound.min(to_beat(&best)));
            if let Some(groups) = outcome.groups {
                best = Some(Strategy { name: "exact".into(), shape: None, groups });
            }
        }
        round += 1;
        stopped_by_time = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if deadline.is_none() || stopped_by_time {
            break;
        }
    }
    match (best, unmet) {
        (Some(mut strategy), _) => {
            strategy.groups.iter_mut().for_each(|group| group.sort_unstable());
            Ok(Answer { strategy, bound, stopped_by_time })
        }
        (None, Some(error)) => Err(error),
        (None, None) => Err(OffloadError::Zero { what: "number of heuristics" }),
    }
}

/// The heuristic strategy whose most frequently loaded pixel is loaded least often; the shortest of several. It is the
/// nearest strategy if none keeps the bound on loads. It fits the memory, since a group of one patch fits.
pub fn nearest(problem: &Problem) -> Strategy {
    let free = Problem { reload: None, ..problem.clone() };
    let found = heuristics(&free).unwrap_or_default();
    let key = |strategy: &Strategy| {
        let cost = free.cost(&strategy.groups);
        (cost.most_loads, cost.duration)
    };
    found
        .into_iter()
        .min_by_key(key)
        .unwrap_or_else(|| shapes::unbounded(problem, shapes::Heuristic::Baseline))
}

/// The best heuristic, or better groups, with the best bound that the exact search proves within the budget.
///
/// # Errors
/// When the layer is too large for it, or no heuristic keeps the problem's bounds.
pub fn prove(problem: &Problem, budget: Budget) -> Result<Answer, OffloadError> {
    let mut best = best_heuristic(problem)?;
    let duration = problem.cost(&best.groups).duration;
    let limits = limits(budget, Instant::now());
    let outcome = exact::search(problem, duration, limits).ok_or(OffloadError::Method {
        method: "exact",
        most: exact::MAX_PATCHES,
        patches: problem.convolution.patches(),
    })?;
    if let Some(groups) = outcome.groups {
        best = Strategy { name: "exact".into(), shape: None, groups };
    }
    let bound = bound::lower_bound(problem).max(outcome.bound);
    Ok(Answer { strategy: best, bound, stopped_by_time: false })
}

/// The best heuristic, or better groups by the integer program, and whether the program proves them optimal.
///
/// # Errors
/// When the layer is too large for it, or no heuristic keeps the problem's bounds.
pub fn by_program(problem: &Problem, budget: Budget) -> Result<Answer, OffloadError> {
    let mut best = best_heuristic(problem)?;
    let limit = match budget {
        Budget::Time(limit) => limit,
        _ => MAX_PROGRAM_TIME,
    };
    let outcome = program::solve(problem, &best.groups, limit).ok_or(OffloadError::Method {
        method: "program",
        most: program::MAX_PATCHES,
        patches: problem.convolution.patches(),
    })?;
    if let Some(groups) = outcome.groups {
        best = Strategy { name: "program".into(), shape: None, groups };
    }
    let bound = match outcome.proved {
        true => problem.cost(&best.groups).duration,
        false => bound::lower_bound(problem),
    };
    Ok(Answer { strategy: best, bound, stopped_by_time: !outcome.proved })
}

/// The heuristic strategy of least duration.
///
/// # Errors
/// When none keeps the problem's bounds.
pub fn best_heuristic(problem: &Problem) -> Result<Strategy, OffloadError> {
    let found = heuristics(problem)?;
    let best = found.into_iter().min_by_key(|strategy| problem.cost(&strategy.groups).duration);
    Ok(best.unwrap_or_else(|| shapes::unbounded(problem, shapes::Heuristic::Row)))
}

/// The best strategy of every kind that keeps the bounds.
fn heuristics(problem: &Problem) -> Result<Vec<Strategy>, OffloadError> {
    let all: Vec<Result<Strategy, OffloadError>> =
        HEURISTICS.par_iter().map(|(_, kind)| shapes::best(problem, *kind)).collect();
    if all.iter().all(Result::is_err) {
        return all.into_iter().collect();
    }
    Ok(all.into_iter().flatten().collect())
}

/// Limits of the exact search. If the clock ends it, the number of groups is not limited.
fn limits(budget: Budget, started: Instant) -> Limits {
    match budget {
        Budget::Default => LIMITS,
        Budget::Work(work) => Limits { work, ..LIMITS },
        Budget::Time(duration) => {
            Limits { work: u64::MAX, deadline: started.checked_add(duration), ..LIMITS }
        }
    }
}

fn default_changes(problem: &Problem) -> u64 {
    let patches = problem.convolution.patches() as u64;
    let taps = 10 * (problem.group * problem.convolution.pixels_per_patch()) as u64;
    (patches * CHANGES_PER_PATCH).clamp(CHANGES[0], CHANGES[1]).min(VISITS / taps.max(1)).max(1000)
}
