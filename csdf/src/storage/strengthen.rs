//! Conflicts made as strong as they can be: fewer channels, higher limits.

use super::conflict::Target;
use super::problem::SizingProblem;
use crate::Error;
use crate::budget::Meter;
use crate::layout::Scope;
use crate::throughput::cycle_ratio::Cycle;

/// A cycle that exists as long as none of the variables whose space it waits for exceeds its limit.
pub(crate) struct StrongCycle {
    pub(crate) cycle: Cycle,
    /// By variable; `None` for a variable that the cycle does not wait for.
    limits: Vec<Option<u64>>,
}

impl StrongCycle {
    /// A cycle that exists at a point.
    fn new(problem: &SizingProblem, cycle: Cycle, point: &[Option<u64>]) -> StrongCycle {
        let mut limits = vec![None; point.len()];
        for variable in problem.variables_of(&cycle) {
            limits[variable] = point[variable];
        }
        StrongCycle { cycle, limits }
    }

    /// Variables with their limits.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.limits.iter().enumerate().filter_map(|(variable, &limit)| Some((variable, limit?)))
    }
}

/// Starts from a cycle that exists at a point, and returns one that waits for few variables, with limits that cannot be
/// raised. First each variable is left out if there still is a cycle without it. Then each limit is raised as far as
/// there still is a cycle. Only the actors of the first cycle are considered. So the function may miss a stronger
/// conflict, but its result is always a conflict.
pub(crate) fn strengthen(
    problem: &SizingProblem,
    cycle: Cycle,
    point: &[Option<u64>],
    target: Target,
    meter: &mut Meter,
) -> Result<StrongCycle, Error> {
    let scope = problem.scope_around(&cycle);
    let mut strong = StrongCycle::new(problem, cycle, point);
    let variables: Vec<usize> = strong.limits().map(|(variable, _)| variable).collect();
    for &variable in &variables {
        if strong.limits[variable].is_some() && strong.limits().count() > 1 {
            strong = with_stronger_limit(problem, &scope, &strong, (variable, None), target, meter)?
                .unwrap_or(strong);
        }
    }
    for variable in variables {
        strong = raise(problem, &scope, strong, variable, target, meter)?;
    }
    Ok(strong)
}

/// Raises one limit: by doubled strides while the cycle still exists, then by halved ones.
fn raise(
    problem: &SizingProblem,
    scope: &Scope,
    mut strong: StrongCycle,
    variable: usize,
    target: Target,
    meter: &mut Meter,
) -> Result<StrongCycle, Error> {
    let step = problem.steps[variable];
    // In steps.
    let (mut stride, mut growing) = (1u64, true);
    while stride > 0 {
        let Some(limit) = strong.limits[variable] else { break };
        let next = stride.checked_mul(step).and_then(|more| limit.checked_add(more));
        let higher = match next {
            Some(next) => {
                with_stronger_limit(problem, scope, &strong, (variable, Some(next)), target, meter)?
            }
            None => None,
        };
        growing &= higher.is_some();
        stride = if growing { stride.saturating_mul(2) } else { stride / 2 };
        strong = higher.unwrap_or(strong);
    }
    Ok(strong)
}

/// A cycle with another limit for one variable, if there is one.
fn with_stronger_limit(
    problem: &SizingProblem,
    scope: &Scope,
    strong: &StrongCycle,
    (variable, limit): (usize, Option<u64>),
    target: Target,
    meter: &mut Meter,
) -> Result<Option<StrongCycle>, Error> {
    let mut limits = strong.limits.clone();
    limits[variable] = limit;
    let cycle = problem.conflicts(scope, &limits, target, meter)?.into_iter().next();
    Ok(cycle.map(|cycle| StrongCycle::new(problem, cycle, &limits)))
}
