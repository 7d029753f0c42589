//! Workspace: the memory of the layer that takes most (TASO paper, section 4.5, Eq. 15).
//!
//! A workspace is the memory of some candidate, and a selection is within it if all its candidates are. So candidates
//! above a threshold are left out, and the rest is solved as if there were no limit on workspace.

use crate::budget::{self, Least, Nothing};
use crate::problem::{Allowed, Problem};
use crate::quantity::Axis;

/// The least workspace, and the fastest selection within it, such that memory and time are within these limits. `bound`
/// is that of the workspace.
///
/// # Errors
/// When there is no such selection. [`Nothing::OverBudget`] has the fastest one if that exceeds the time, otherwise the one
/// of least memory.
pub fn least_workspace(
    problem: &Problem<'_>,
    allowed: &Allowed,
    memory: Option<u64>,
    time: Option<u64>,
) -> Result<Least, Nothing> {
    let fastest = |workspace: u64| {
        budget::least_within_budget(
            problem,
            &problem.within_workspace(allowed, workspace),
            Axis::Time,
            memory,
        )
    };
    let in_time = |least: &Least| {
        let cost = problem.cost(&least.selection);
        cost.is_some_and(|cost| time.is_none_or(|limit| cost.time <= limit))
    };
    let mut best = fastest(u64::MAX)?;
    if !in_time(&best) {
        // If somebody has asked for the end, a faster selection may exist.
        let is_proven = time.is_some_and(|limit| best.bound > limit) || !problem.stop.is_asked();
        return Err(if is_proven { Nothing::OverBudget(best) } else { Nothing::Stopped });
    }
    let values = values(problem, allowed);
    // Every workspace below this was shown to be too small.
    let mut bound = 0;
    // Thresholds below `low` are too small, `high` is enough.
    let (mut low, mut high) = (0, values.len().saturating_sub(1));
    let mut proven = true;
    while low < high {
        let middle = low + (high - low) / 2;
        match fastest(values[middle]) {
            Ok(least) if in_time(&least) => (best, high) = (least, middle),
            Err(Nothing::Stopped) => return Ok(Least { selection: best.selection, bound }),
            found => {
                // If elimination is not exact, a selection that was not found may exist.
                let excluded = match &found {
                    Ok(least) => time.is_some_and(|limit| least.bound > limit),
                    Err(Nothing::NoPath | Nothing::OverBudget(_)) => true,
                    Err(Nothing::Unknown | Nothing::Stopped) => false,
                };
                proven = proven && excluded;
                low = middle + 1;
                if proven {
                    bound = values[low];
                }
            }
        }
    }
    if proven {
        bound = values.get(high).copied().unwrap_or(0);
    }
    Ok(Least { selection: best.selection, bound })
}

/// A selection of the least time within a workspace. Among equally fast ones, it has the least workspace, and among
/// these the least memory.
///
/// # Errors
/// When there is none.
pub fn fastest(
    problem: &Problem<'_>,
    allowed: &Allowed,
    workspace: u64,
    memory: Option<u64>,
) -> Result<Least, Nothing> {
    let within = problem.within_workspace(allowed, workspace);
    let fastest = budget::least_within_budget(problem, &within, Axis::Time, memory)?;
    let time = problem.cost(&fastest.selection).map(|cost| cost.time);
    match least_workspace(problem, &within, memory, time) {
        Err(Nothing::Stopped) => Ok(fastest),
        smallest => Ok(Least { selection: smallest?.selection, bound: fastest.bound }),
    }
}

/// All undominated pairs of a workspace and a time, in whole numbers, by rising workspace, and whether they are proven to be
/// all.
///
/// # Errors
/// When there is no selection at all.
pub fn front(
    problem: &Problem<'_>,
    allowed: &Allowed,
    memory: Option<u64>,
) -> Result<(Vec<(u64, u64)>, bool), Nothing> {
    let mut points: Vec<(u64, u64)> = Vec::new();
    let mut complete = true;
    let mut within = allowed.clone();
    let mut found = Ok(budget::least_within_budget(problem, &within, Axis::Time, memory)?);
    while let Ok(least) = found {
        let Some(cost) = problem.cost(&least.selection) else { break };
        complete = complete && least.bound == cost.time;
        match points.last_mut() {
            // Equally fast with less workspace.
            Some(last) if last.1 == cost.time => last.0 = cost.workspace,
            _ => points.push((cost.workspace, cost.time)),
        }
        let Some(below) = cost.workspace.checked_sub(1) else { break };
        within = problem.within_workspace(&within, below);
        found = budget::least_within_budget(problem, &within, Axis::Time, memory);
        complete = complete && !matches!(found, Err(Nothing::Unknown | Nothing::Stopped));
    }
    points.reverse();
    Ok((points, complete))
}

/// The memories of all candidates, rising.
fn values(problem: &Problem<'_>, allowed: &Allowed) -> Vec<u64> {
    let of_layer = |(candidates, places): (&Vec<crate::problem::Candidate>, &Vec<usize>)| {
        places.iter().map(|place| candidates[*place].memory).collect::<Vec<_>>()
    };
    let mut values: Vec<u64> = problem.candidates.iter().zip(allowed).flat_map(of_layer).collect();
    values.sort_unstable();
    values.dedup();
    values
}
