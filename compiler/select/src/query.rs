//! Queries and their answers.

use crate::baselines::{self, FamilyBaseline, NoBaseline, SUM2D};
use crate::blocked::{Blocked, blocked};
use crate::budget::{self, Nothing};
use crate::front::{self, Limits};
use crate::model::Model;
use crate::problem::{Allowed, Cost, Problem, Selection};
use crate::program::{self, ProgramError};
use crate::quantity::{Axis, Quantity};
use crate::workspace;

/// How the selection is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By elimination.
    Exact,
    /// By the integer program.
    Program,
    /// From the time optimum, the largest primitives are replaced.
    Greedy,
    /// All tensors in CHW.
    LocalOptimal,
    /// The best family of primitives.
    Families,
    /// The sum of single channels.
    Sum2d,
}

/// A query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Query {
    /// The quantity that is minimised. Among equal selections, a least time has the least memory, a least memory or
    /// workspace has the least time, and a least time within a workspace has the least workspace.
    pub minimise: Quantity,
    /// Maximum time, in µs.
    pub time: Option<f64>,
    /// Maximum memory, summed over layers, in KiB.
    pub memory: Option<f64>,
    /// Maximum memory of a layer, in KiB.
    pub workspace: Option<f64>,
    /// The method.
    pub method: Method,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A selection that keeps to all budgets.
    Met(Chosen),
    /// No selection keeps to a budget; or the selection of the baseline that was asked for does not.
    Unmet {
        /// The quantity of the budget.
        quantity: Quantity,
        /// The selection that needs the least of this quantity under the other budgets, or the baseline's.
        nearest: Chosen,
    },
    /// No selection has a path of conversions on every edge.
    Blocked(Vec<Blocked>),
    /// The baseline makes no selection.
    NoBaseline(NoBaseline),
    /// No selection was found, but there may be one: the graph is too dense for an exact answer.
    Unknown,
    /// Somebody asked for the end before a selection was found.
    Stopped,
}

/// A selection.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// A candidate for each layer.
    pub selection: Selection,
    /// Its cost.
    pub cost: Cost,
    /// No selection that keeps to the budgets has less of the minimised quantity. If a budget is unmet: no selection
    /// has less of the budget's quantity.
    pub bound: u64,
    /// All families, if they were asked for.
    pub bars: Vec<FamilyBaseline>,
}

/// Undominated selections.
#[derive(Debug, Clone, PartialEq)]
pub struct FrontAnswer {
    /// Memory or workspace, and time, in whole numbers of the problem's scales, by rising memory.
    pub points: Vec<(u64, u64)>,
    /// Whether there are no others.
    pub complete: bool,
}

/// Maximum number of pairs of sums that are looked at for a front.
const FRONT_WORK: u64 = 200_000_000;

/// If a front is too large to be computed as a whole, it is computed at this number of budgets.
const SAMPLES: u64 = 64;

/// Maximum number of pairs of sums that are looked at for each of them.
const SAMPLE_WORK: u64 = 2_000_000;

impl Quantity {
    /// Its part of a cost.
    pub fn amount(self, cost: &Cost) -> u64 {
        match self {
            Quantity::Time => cost.time,
            Quantity::Memory => cost.memory,
            Quantity::Workspace => cost.workspace,
        }
    }
}

/// Budgets in whole numbers.
struct Budgets {
    time: Option<u64>,
    memory: Option<u64>,
    workspace: Option<u64>,
}

impl Budgets {
    fn new(problem: &Problem<'_>, query: &Query) -> Budgets {
        Budgets {
            time: query.time.map(|time| problem.times.budget(time)),
            memory: query.memory.map(|memory| problem.memories.budget(memory)),
            workspace: query.workspace.map(|workspace| problem.memories.budget(workspace)),
        }
    }

    /// A quantity whose budget a cost exceeds.
    fn exceeded(&self, cost: &Cost) -> Option<Quantity> {
        let budgets = [
            (Quantity::Workspace, self.workspace),
            (Quantity::Memory, self.memory),
            (Quantity::Time, self.time),
        ];
        let exceeds = |(quantity, budget): &(Quantity, Option<u64>)| {
            budget.is_some_and(|budget| quantity.amount(cost) > budget)
        };
        budgets.into_iter().find(exceeds).map(|(quantity, _)| quantity)
    }
}

/// Answers a query. If somebody asks for the end ([`Problem::stopped_by`]), the exact method and the baselines give the best
/// selection that they have by then, and the bound says what is known of the optimum. The integer program goes on.
///
/// # Errors
/// When the integer program, if that is the method, fails or disagrees with the exact method.
pub fn answer(problem: &Problem<'_>, query: &Query) -> Result<Answer, ProgramError> {
    let budgets = Budgets::new(problem, query);
    let all = problem.all();
    let exact = |allowed: &Allowed| exact(problem, allowed, query, &budgets);
    let baseline = |selection: Result<Selection, NoBaseline>| {
        Ok(match selection {
            Err(NoBaseline::Stopped) => Answer::Stopped,
            Err(why) => Answer::NoBaseline(why),
            Ok(selection) => judged(problem, query.minimise, &budgets, selection, exact(&all)),
        })
    };
    match query.method {
        Method::Exact => Ok(exact(&all)),
        Method::Program => {
            let within = problem.within_workspace(&all, budgets.workspace.unwrap_or(u64::MAX));
            let limits = program::Limits { time: budgets.time, memory: budgets.memory };
            match program::solve(problem, &within, query.minimise, limits) {
                Ok(selection) => Ok(chosen(problem, selection, |cost| query.minimise.amount(cost), vec![])),
                // The program does not say why, so the exact method is asked.
                Err(ProgramError::Infeasible) => match exact(&all) {
                    Answer::Met(_) => Err(ProgramError::Infeasible),
                    other => Ok(other),
                },
                Err(error) => Err(error),
            }
        }
        Method::LocalOptimal => match baselines::canonical(problem, &all) {
            Err(why) => Ok(Answer::NoBaseline(why)),
            Ok(allowed) => Ok(match exact(&allowed) {
                Answer::Met(found) => judged(problem, query.minimise, &budgets, found.selection, exact(&all)),
                other => other,
            }),
        },
        Method::Greedy => {
            let start = match budget::least_within_budget(problem, &all, Axis::Time, None) {
                Ok(start) => start.selection,
                Err(nothing) => return Ok(unmet(problem, &all, Quantity::Time, nothing)),
            };
            let holds = |selection: &Selection| {
                let cost = problem.cost_of_layers(selection);
                let exceeds = |budget: Option<u64>, value: u64| budget.is_some_and(|budget| value > budget);
                !exceeds(budgets.memory, cost.memory) && !exceeds(budgets.workspace, cost.workspace)
            };
            baseline(baselines::greedy(problem, &all, start, holds))
        }
        Method::Sum2d => baseline(baselines::everywhere(problem, &all, SUM2D)),
        Method::Families => {
            let bars = baselines::families(problem, &all, SUM2D);
            let cost = |bar: &&FamilyBaseline| {
                let cost = bar.selection.as_ref().ok().and_then(|selection| problem.cost(selection));
                cost.map_or((true, 0), |cost| (false, query.minimise.amount(&cost)))
            };
            let Some(best) = bars.iter().min_by_key(cost).cloned() else { return Ok(exact(&all)) };
            let mut answer = baseline(best.selection)?;
            if let Answer::Met(found) | Answer::Unmet { nearest: found, .. } = &mut answer {
                found.bars = bars;
            }
            Ok(answer)
        }
    }
}

/// The undominated selections within the budgets: memory and time, or workspace and time if that is minimised. The method
/// does not matter. If somebody asks for the end, those that were found by then.
///
/// # Errors
/// The answer to the query, where that is no selection.
pub fn front(problem: &Problem<'_>, query: &Query) -> Result<FrontAnswer, Answer> {
    let budgets = Budgets::new(problem, query);
    let found = match exact(problem, &problem.all(), query, &budgets) {
        Answer::Met(found) => found,
        other => return Err(other),
    };
    let allowed = problem.within_workspace(&problem.all(), budgets.workspace.unwrap_or(u64::MAX));
    let front = match query.minimise {
        Quantity::Workspace => workspace::front(problem, &allowed, budgets.memory),
        Quantity::Time | Quantity::Memory => memory_front(problem, &allowed),
    };
    let (mut points, complete) = match front {
        Err(Nothing::Stopped) => (Vec::new(), false),
        front => front.map_err(|nothing| unmet(problem, &allowed, query.minimise, nothing))?,
    };
    if problem.stop.is_asked() && !complete {
        let of = if query.minimise == Quantity::Workspace { Quantity::Workspace } else { Quantity::Memory };
        points.push((of.amount(&found.cost), found.cost.time));
        keep_undominated(&mut points);
    }
    points.retain(|(memory, time)| {
        let memory_holds =
            query.minimise == Quantity::Workspace || budgets.memory.is_none_or(|budget| *memory <= budget);
        memory_holds && budgets.time.is_none_or(|budget| *time <= budget)
    });
    Ok(FrontAnswer { points, complete })
}

/// All undominated pairs of a memory and a time, by rising memory. If there are too many, the pairs that are found at
/// evenly spaced budgets, or by the time that somebody asks for the end.
fn memory_front(problem: &Problem<'_>, allowed: &Allowed) -> Result<(Vec<(u64, u64)>, bool), Nothing> {
    let model = Model::new(problem, allowed);
    let cost = |least: &budget::Least| {
        problem.cost(&least.selection).map(|cost| (cost.memory, cost.time)).ok_or(Nothing::Unknown)
    };
    // The ends of the front, which are there if somebody asks for the end.
    let fastest = cost(&budget::solve(problem, &model, Axis::Time, None)?)?;
    let smallest = match budget::solve(problem, &model, Axis::Memory, None) {
        Err(Nothing::Stopped) => return Ok((vec![fastest], false)),
        smallest => cost(&smallest?)?,
    };
    let limits = Limits { time: u64::MAX, memory: u64::MAX, work: FRONT_WORK, stop: problem.stop };
    if model.tree.is_exact()
        && let Some(front) = front::undominated(&model, None, limits)
    {
        return Ok((front.points.iter().rev().map(|sum| (sum.memory, sum.time)).collect(), true));
    }
    let mut points = vec![fastest, smallest];
    for sample in 1..SAMPLES {
        let memory = smallest.0 + (fastest.0.saturating_sub(smallest.0)) / SAMPLES * sample;
        let sampled = budget::solve_within(problem, &model, Axis::Time, Some(memory), SAMPLE_WORK);
        if let Ok(least) = sampled {
            points.push(cost(&least)?);
        }
    }
    keep_undominated(&mut points);
    Ok((points, false))
}

/// Keeps the undominated pairs of a memory and a time, by rising memory.
fn keep_undominated(points: &mut Vec<(u64, u64)>) {
    points.sort_unstable();
    let mut fastest = None;
    points.retain(|(_, time)| {
        let faster = fastest.is_none_or(|fastest| *time < fastest);
        if faster {
            fastest = Some(*time);
        }
        faster
    });
}

fn exact(problem: &Problem<'_>, allowed: &Allowed, query: &Query, budgets: &Budgets) -> Answer {
    let within = problem.within_workspace(allowed, budgets.workspace.unwrap_or(u64::MAX));
    let found = match query.minimise {
        Quantity::Time => match budgets.workspace {
            None => budget::least_within_budget(problem, &within, Axis::Time, budgets.memory),
            Some(workspace) => workspace::fastest(problem, &within, workspace, budgets.memory),
        },
        Quantity::Memory => budget::least_within_budget(problem, &within, Axis::Memory, budgets.time),
        Quantity::Workspace => workspace::least_workspace(problem, &within, budgets.memory, budgets.time),
    };
    match found {
        Ok(least) => {
            let bound = least.bound;
            match chosen(problem, least.selection, |_| bound, vec![]) {
                // The minimised quantity may have a budget too.
                Answer::Met(found) => match budgets.exceeded(&found.cost) {
                    None => Answer::Met(found),
                    Some(quantity) => Answer::Unmet { quantity, nearest: found },
                },
                other => other,
            }
        }
        Err(nothing) => {
            // If no candidates are left within the workspace, the workspace is too small.
            if budgets.workspace.is_some()
                && matches!(nothing, Nothing::NoPath | Nothing::Unknown)
                && let Ok(least) = workspace::least_workspace(problem, allowed, None, None)
            {
                return match chosen(problem, least.selection, |_| least.bound, vec![]) {
                    Answer::Met(nearest) => Answer::Unmet { quantity: Quantity::Workspace, nearest },
                    other => other,
                };
            }
            let limited = match query.minimise {
                Quantity::Time => Quantity::Memory,
                Quantity::Memory => Quantity::Time,
                Quantity::Workspace => match &nothing {
                    Nothing::OverBudget(nearest) => {
                        let cost = problem.cost(&nearest.selection);
                        cost.and_then(|cost| budgets.exceeded(&cost)).unwrap_or(Quantity::Time)
                    }
                    _ => Quantity::Time,
                },
            };
            unmet(problem, &within, limited, nothing)
        }
    }
}

/// The answer if there is no selection.
fn unmet(problem: &Problem<'_>, allowed: &Allowed, quantity: Quantity, nothing: Nothing) -> Answer {
    match nothing {
        Nothing::NoPath => Answer::Blocked(blocked(problem, allowed)),
        Nothing::Unknown => Answer::Unknown,
        Nothing::Stopped => Answer::Stopped,
        Nothing::OverBudget(nearest) => match chosen(problem, nearest.selection, |_| nearest.bound, vec![]) {
            Answer::Met(nearest) => Answer::Unmet { quantity, nearest },
            other => other,
        },
    }
}

/// A baseline's selection compared with the exact answer.
fn judged(
    problem: &Problem<'_>,
    minimise: Quantity,
    budgets: &Budgets,
    selection: Selection,
    exact: Answer,
) -> Answer {
    let bound = match &exact {
        Answer::Met(best) => best.bound,
        _ => 0,
    };
    match chosen(problem, selection, |_| bound, vec![]) {
        Answer::Met(found) => match budgets.exceeded(&found.cost) {
            None => Answer::Met(found),
            Some(quantity) => {
                let bound = if quantity == minimise { found.bound } else { 0 };
                Answer::Unmet { quantity, nearest: Chosen { bound, ..found } }
            }
        },
        other => other,
    }
}

fn chosen(
    problem: &Problem<'_>,
    selection: Selection,
    bound: impl FnOnce(&Cost) -> u64,
    bars: Vec<FamilyBaseline>,
) -> Answer {
    match problem.cost(&selection) {
        None => Answer::Unknown,
        Some(cost) => Answer::Met(Chosen { bound: bound(&cost), selection, cost, bars }),
    }
}
