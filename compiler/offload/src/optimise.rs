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

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::anneal::{Schedule, anneal};
use super::error::OffloadError;
use super::exact::{self, Limits};
use super::problem::Problem;
use super::shapes::{self, HEURISTICS};
use super::stop::is_asked;
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
const LIMITS: Limits<'_> = Limits { work: 20_000_000, states: 1_000_000, deadline: None, stop: None };

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

/// How much is searched, and who can end it before that.
#[derive(Debug, Clone, Copy)]
pub struct Effort<'s> {
    /// How much is searched.
    pub budget: Budget,
    /// Once this is true, the search ends with the best strategy so far.
    pub stop: Option<&'s AtomicBool>,
}

impl From<Budget> for Effort<'_> {
    fn from(budget: Budget) -> Self {
        Effort { budget, stop: None }
    }
}

/// What ended a search before it had an answer that another run would find again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The clock.
    Time,
    /// Somebody asked for the end.
    Asked,
}

/// A strategy, and a bound on all strategies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The strategy.
    pub strategy: Strategy,
    /// No strategy has a smaller duration.
    pub bound: u64,
    /// What ended the search, if that was neither a proof nor the number of steps.
    pub stopped: Option<Stopped>,
}

/// The best strategy that is found within the budget: by the heuristics, by annealing from the best of them, and, if
/// the layer is small, by an exact search. The effort is a budget, which somebody may cut short.
///
/// # Errors
/// When nothing is found that keeps the problem's bounds. The error says what the nearest heuristic needs.
pub fn optimise<'s>(
    problem: &Problem,
    effort: impl Into<Effort<'s>>,
    seed: u64,
) -> Result<Answer, OffloadError> {
    let Effort { budget, stop } = effort.into();
    let limits = limits(budget, stop, Instant::now());
    let deadline = limits.deadline;
    let duration = |groups: &Groups| problem.cost(groups).duration;
    let (mut best, mut starts, unmet) = match heuristics(problem, stop) {
        Ok(mut found) => {
            found.sort_by_key(|strategy| duration(&strategy.groups));
            (found.first().cloned(), found, None)
        }
        // If pixels are loaded too often, annealing mends that on the way.
        Err(error) => (None, vec![nearest_until(problem, stop)], Some(error)),
    };
    starts.truncate(2);
    let mut bound = bound::lower_bound(problem);
    let to_beat =
        |best: &Option<Strategy>| best.as_ref().map_or(u64::MAX, |strategy| duration(&strategy.groups));

    let mut stopped = None;
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
            let schedule = Schedule { changes, deadline, stop, seed, warm: number >= CHAINS / 2 };
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
            && let Some(outcome) = exact::search(problem, to_beat(&best), limits)
        {
            bound = bound.max(outcome.bound.min(to_beat(&best)));
            if let Some(groups) = outcome.groups {
                best = Some(Strategy { name: "exact".into(), shape: None, groups });
            }
        }
        round += 1;
        if is_asked(stop) {
            stopped = Some(Stopped::Asked);
        } else if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            stopped = Some(Stopped::Time);
        }
        if deadline.is_none() || stopped.is_some() {
            break;
        }
    }
    stopped = stopped.filter(|why| *why == Stopped::Time || to_beat(&best) > bound);
    match (best, unmet) {
        (Some(mut strategy), _) => {
            strategy.groups.iter_mut().for_each(|group| group.sort_unstable());
            Ok(Answer { strategy, bound, stopped })
        }
        (None, Some(error)) => Err(error),
        (None, None) => Err(OffloadError::Zero { what: "number of heuristics" }),
    }
}

/// The heuristic strategy whose most frequently loaded pixel is loaded least often; the shortest of several. It is the
/// nearest strategy if none keeps the bound on loads. It fits the memory, since a group of one patch fits.
pub fn nearest(problem: &Problem) -> Strategy {
    nearest_until(problem, None)
}

fn nearest_until(problem: &Problem, stop: Option<&AtomicBool>) -> Strategy {
    let free = Problem { reload: None, ..problem.clone() };
    let found = heuristics(&free, stop).unwrap_or_default();
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
pub fn prove<'s>(problem: &Problem, effort: impl Into<Effort<'s>>) -> Result<Answer, OffloadError> {
    let Effort { budget, stop } = effort.into();
    let mut best = best_heuristic_until(problem, stop)?;
    let duration = problem.cost(&best.groups).duration;
    let limits = limits(budget, stop, Instant::now());
    let outcome = exact::search(problem, duration, limits).ok_or(OffloadError::Method {
        method: "exact",
        most: exact::MAX_PATCHES,
        patches: problem.convolution.patches(),
    })?;
    if let Some(groups) = outcome.groups {
        best = Strategy { name: "exact".into(), shape: None, groups };
    }
    let bound = bound::lower_bound(problem).max(outcome.bound);
    let is_cut_short = is_asked(stop) && problem.cost(&best.groups).duration > bound;
    Ok(Answer { strategy: best, bound, stopped: is_cut_short.then_some(Stopped::Asked) })
}

/// The best heuristic, or better groups by the integer program, and whether the program proves them optimal.
///
/// # Errors
/// When the layer is too large for it, or no heuristic keeps the problem's bounds.
pub fn by_program<'s>(problem: &Problem, effort: impl Into<Effort<'s>>) -> Result<Answer, OffloadError> {
    let Effort { budget, stop } = effort.into();
    let mut best = best_heuristic_until(problem, stop)?;
    let limit = match budget {
        Budget::Time(limit) => limit,
        _ => MAX_PROGRAM_TIME,
    };
    let outcome = program::solve(problem, &best.groups, limit, stop).ok_or(OffloadError::Method {
        method: "program",
        most: program::MAX_PATCHES,
        patches: problem.convolution.patches(),
    })?;
    if let Some(groups) = outcome.groups {
        best = Strategy { name: "program".into(), shape: None, groups };
    }
    let duration = problem.cost(&best.groups).duration;
    let bound = if outcome.proved { duration } else { bound::lower_bound(problem) };
    let why = if is_asked(stop) { Stopped::Asked } else { Stopped::Time };
    Ok(Answer { strategy: best, bound, stopped: (duration > bound).then_some(why) })
}

/// The heuristic strategy of least duration.
///
/// # Errors
/// When none keeps the problem's bounds.
pub fn best_heuristic(problem: &Problem) -> Result<Strategy, OffloadError> {
    best_heuristic_until(problem, None)
}

/// The same of those that are tried until somebody asks for the end.
pub(crate) fn best_heuristic_until(
    problem: &Problem,
    stop: Option<&AtomicBool>,
) -> Result<Strategy, OffloadError> {
    let found = heuristics(problem, stop)?;
    let best = found.into_iter().min_by_key(|strategy| problem.cost(&strategy.groups).duration);
    Ok(best.unwrap_or_else(|| shapes::unbounded(problem, shapes::Heuristic::Row)))
}

/// The best strategy of every kind that keeps the bounds.
fn heuristics(problem: &Problem, stop: Option<&AtomicBool>) -> Result<Vec<Strategy>, OffloadError> {
    let all: Vec<Result<Strategy, OffloadError>> =
        HEURISTICS.par_iter().map(|(_, kind)| shapes::best_until(problem, *kind, stop)).collect();
    if all.iter().all(Result::is_err) {
        return all.into_iter().collect();
    }
    Ok(all.into_iter().flatten().collect())
}

/// Limits of the exact search. If the clock ends it, the number of groups is not limited.
fn limits(budget: Budget, stop: Option<&AtomicBool>, started: Instant) -> Limits<'_> {
    let limits = Limits { stop, ..LIMITS };
    match budget {
        Budget::Default => limits,
        Budget::Work(work) => Limits { work, ..limits },
        Budget::Time(duration) => {
            Limits { work: u64::MAX, deadline: started.checked_add(duration), ..limits }
        }
    }
}

fn default_changes(problem: &Problem) -> u64 {
    let patches = problem.convolution.patches() as u64;
    let taps = 10 * (problem.group * problem.convolution.pixels_per_patch()) as u64;
    (patches * CHANGES_PER_PATCH).clamp(CHANGES[0], CHANGES[1]).min(VISITS / taps.max(1)).max(1000)
}
