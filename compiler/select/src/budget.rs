//! The least of one quantity under a budget of the other: time under a budget of memory (TASO paper, Eq. 13) or memory
//! under a budget of time (Eq. 14).
//!
//! Without the budget, elimination gives the least. If that exceeds the budget, a weighted sum of both quantities is
//! minimised (a Lagrangian relaxation). For any weights, elimination gives a selection on the convex hull of all
//! selections, and a lower bound. Newton's method finds the two neighbours on the hull between which the budget lies.
//! The first keeps to the budget, and the second gives the bound. The optimum is between the two. It need not be on the
//! hull, so the undominated sums (`front`) are enumerated. A sum is given up as soon as it cannot lead to a selection
//! that keeps to the budget and costs at most a certain amount. This amount starts next to the bound, and rises until a
//! selection is found. Few sums are left then, because few selections lie so near to the hull.
//!
//! If elimination is not exact, there is too much to enumerate, or somebody asks for the end, the bound still holds. The
//! selection is then the best that was met on the way, improved by [`crate::descent`].
//!
//! ```
//! use csdfc_select::budget::{Nothing, least_within_budget};
//! use csdfc_select::quantity::Axis;
//! use csdfc_select::{Instance, Problem};
//!
//! let instance = Instance::parse(
//!     r#"{"layers": [{"name": "conv1", "kind": "conv", "options": [
//!             {"primitive": "sum2d", "in": "CHW", "out": "CHW", "time": 90, "memory": 10},
//!             {"primitive": "im2col", "in": "CHW", "out": "CHW", "time": 40, "memory": 80}]}],
//!         "edges": []}"#,
//! )?;
//! let problem = Problem::new(&instance, false)?;
//! let fastest = |kib| least_within_budget(&problem, &problem.all(), Axis::Time, Some(problem.memories.budget(kib)));
//! assert_eq!(fastest(80.0).map(|least| least.selection), Ok(vec![1]));
//! assert_eq!(fastest(50.0).map(|least| least.selection), Ok(vec![0]));
//! assert!(matches!(fastest(5.0), Err(Nothing::OverBudget(_))));
//! # Ok::<(), csdfc_select::InstanceError>(())
//! ```

use crate::descent::descend;
use crate::front::{Limits, SumRange, undominated};
use crate::model::{Model, Weights};
use crate::problem::{Allowed, Problem, Selection};
use crate::quantity::Axis;

/// A selection, and a bound on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Least {
    /// The selection.
    pub selection: Selection,
    /// No selection that keeps to the budget costs less than this.
    pub bound: u64,
}

/// Why there is no selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nothing {
    /// No selection has a path of conversions on every edge.
    NoPath,
    /// None was found. It is not known whether there is one.
    Unknown,
    /// Somebody asked for the end before one was found.
    Stopped,
    /// None keeps to the budget. This one takes the least of the limited quantity.
    OverBudget(Least),
}

/// Steps of a search if elimination is not exact.
const STEPS: usize = 200_000;

/// The most pairs of sums that are looked at for one answer, which take some seconds.
const WORK: u64 = 40_000_000;

/// The most iterations of Newton's method if elimination is not exact.
const TURNS: usize = 64;

/// A selection by weight.
struct Lightest {
    selection: Selection,
    own: u64,
    other: u64,
    /// No selection is lighter.
    bound: u128,
}

/// The selection of these candidates with the least of `axis` whose other quantity is within the budget. Of equal ones,
/// it has the least of the other quantity.
///
/// # Errors
/// When there is no such selection, or none was found.
pub fn least_within_budget(
    problem: &Problem<'_>,
    allowed: &Allowed,
    axis: Axis,
    budget: Option<u64>,
) -> Result<Least, Nothing> {
    solve(problem, &Model::new(problem, allowed), axis, budget)
}

/// [`least_within_budget`], of a model of the candidates.
///
/// # Errors
/// As [`least_within_budget`].
pub fn solve(
    problem: &Problem<'_>,
    model: &Model,
    axis: Axis,
    budget: Option<u64>,
) -> Result<Least, Nothing> {
    solve_within(problem, model, axis, budget, WORK)
}

/// [`solve`], with a limit on the pairs of sums that may be looked at.
///
/// # Errors
/// As [`least_within_budget`].
pub fn solve_within(
    problem: &Problem<'_>,
    model: &Model,
    axis: Axis,
    budget: Option<u64>,
    work: u64,
) -> Result<Least, Nothing> {
    let free = lightest(problem, model, axis, axis.first())?;
    let bound = (free.bound >> 64) as u64;
    let Some(budget) = budget.filter(|budget| free.other > *budget) else {
        return Ok(Least { selection: free.selection, bound });
    };
    let tightest = lightest(problem, model, axis, axis.other().first())?;
    if tightest.other > budget {
        let bound = (tightest.bound >> 64) as u64;
        if bound <= budget {
            return Err(unknown(problem));
        }
        return Err(Nothing::OverBudget(Least { selection: tightest.selection, bound }));
    }
    // Neighbours on the hull: `over` exceeds the budget, `within` keeps to it.
    let (mut over, mut within) = (free, tightest);
    let mut best = Least { selection: within.selection.clone(), bound };
    let mut best_cost = (within.own, within.other);
    let (mut turns, mut hull) = (0, None);
    while within.own > over.own && (turns < TURNS || model.tree.is_exact()) {
        turns += 1;
        let own_weight = u128::from(over.other - within.other);
        let other_weight = u128::from(within.own - over.own);
        let weights = axis.weights(own_weight, other_weight);
        let found = match lightest(problem, model, axis, weights) {
            Err(Nothing::Stopped) => return Ok(best),
            found => found?,
        };
        let of_budget = other_weight * u128::from(budget);
        best.bound = best.bound.max(found.bound.saturating_sub(of_budget).div_ceil(own_weight) as u64);
        if found.other <= budget && (found.own, found.other) < best_cost {
            best_cost = (found.own, found.other);
            best.selection.clone_from(&found.selection);
        }
        let weight =
            |point: &Lightest| own_weight * u128::from(point.own) + other_weight * u128::from(point.other);
        if weight(&found) >= weight(&over) {
            hull = Some(weights);
            break;
        }
        match found.other <= budget {
            true => within = found,
            false => over = found,
        }
    }
    let better = descend(problem, &model.candidates(), axis, budget, best.selection.clone());
    if let Some(cost) = problem.cost(&better) {
        best_cost = (axis.amount(&cost), axis.other().amount(&cost));
        best.selection = better;
    }
    if let Some(weights) = hull.filter(|_| model.tree.is_exact()) {
        let task = Enumeration { axis, budget, weights, best_cost, work };
        enumerate(problem, model, &task, &mut best);
    }
    Ok(best)
}

/// Why nothing is known.
fn unknown(problem: &Problem<'_>) -> Nothing {
    if problem.stop.is_asked() { Nothing::Stopped } else { Nothing::Unknown }
}

/// The lightest selection, or a light one if elimination is not exact.
fn lightest(problem: &Problem<'_>, model: &Model, axis: Axis, weights: Weights) -> Result<Lightest, Nothing> {
    let tables = model.weighed(weights);
    let messages = model.tree.messages_until(&tables, problem.stop).ok_or(Nothing::Stopped)?;
    if messages.bound == u128::MAX {
        return Err(Nothing::NoPath);
    }
    let found = model.tree.search(&tables, &messages, STEPS, problem.stop);
    let found = found.ok_or(unknown(problem))?;
    let selection = model.selection(&found.values, weights).ok_or(Nothing::Unknown)?;
    let cost = problem.cost(&selection).ok_or(Nothing::Unknown)?;
    let bound = if found.optimal { weights.weighted(cost.time, cost.memory) } else { messages.bound };
    Ok(Lightest { own: axis.amount(&cost), other: axis.other().amount(&cost), bound, selection })
}

/// The task of [`enumerate`].
struct Enumeration {
    axis: Axis,
    budget: u64,
    /// Weights of the best bound.
    weights: Weights,
    /// The cost of the best known selection, in the axis and in the other quantity.
    best_cost: (u64, u64),
    /// Maximum number of pairs of sums that may be looked at.
    work: u64,
}

/// Looks for the optimum between the bound and the best known selection.
fn enumerate(problem: &Problem<'_>, model: &Model, task: &Enumeration, best: &mut Least) {
    let Enumeration { axis, budget, weights, best_cost, mut work } = *task;
    let tables = model.weighed(weights);
    let stop = problem.stop;
    let Some(messages) = model.tree.messages_until(&tables, stop) else { return };
    let Some(least_with) = model.tree.least_with(&tables, &messages, stop) else { return };
    let (own_weight, other_weight) = match axis {
        Axis::Time => (weights.time, weights.memory),
        Axis::Memory => (weights.memory, weights.time),
    };
    let start = best.bound;
    let gap = best_cost.0.saturating_sub(start);
    let mut reach = gap / 256;
    loop {
        let most = start + reach;
        let band = SumRange {
            weights,
            tables: &tables,
            messages: &messages,
            least_with: &least_with,
            most: own_weight * u128::from(most) + other_weight * u128::from(budget),
        };
        let limits = match axis {
            Axis::Time => Limits { time: most, memory: budget, work, stop },
            Axis::Memory => Limits { time: budget, memory: most, work, stop },
        };
        let Some(front) = undominated(model, Some(&band), limits) else { return };
        let own = |sum: &&crate::front::Sum| match axis {
            Axis::Time => (sum.time, sum.memory),
            Axis::Memory => (sum.memory, sum.time),
        };
        if let Some(sum) = front.points.iter().min_by_key(own) {
            best.bound = own(&sum).0;
            best.selection = front.selection(sum, problem.instance.layers.len());
            return;
        }
        // The gap itself reaches the best known selection, so the loop ends.
        if reach >= gap {
            return;
        }
        best.bound = best.bound.max(most + 1);
        work -= front.work;
        reach = gap.min(4 * reach.max(1));
    }
}
