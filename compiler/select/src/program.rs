//! The integer program of the TASO paper (Eq. 12–15), in a form that solvers like.
//!
//! A binary variable says whether a layer is computed by a candidate; each layer takes one. The paper's Eq. 11 has a
//! product of two variables for each edge and each pair of primitives. Here, each edge has a *flow* for each pair of
//! layouts between which there is a path. The flow out of a layout is the sum of the producer's candidates that write
//! it. The flow into a layout is the sum of the consumer's candidates that read it. Flows need not be declared binary.
//! The relaxation is as strong as the strongest of the paper's, and much smaller. Candidates are left out if another
//! one with the same layouts beats them in time and memory.
//!
//! The program is not needed to solve instances. It serves as a comparison for the exact method.

#[cfg(feature = "highs")]
use good_lp::solvers::highs::highs as solver;
#[cfg(not(feature = "highs"))]
use good_lp::solvers::microlp::microlp as solver;
use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable, constraint, variable,
};

use crate::instance::Layout;
use crate::problem::{Allowed, Problem, Selection};
use crate::quantity::Quantity;

/// Why the program gives no selection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// No selection keeps to the budgets.
    #[error("the integer program has no solution")]
    Infeasible,
    /// The solver failed.
    #[error("the solver of the integer program failed: {0}")]
    Solver(String),
}

/// Budgets in whole numbers of the problem's scales.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Maximum time.
    pub time: Option<u64>,
    /// Maximum memory, summed over layers.
    pub memory: Option<u64>,
}

/// A selection of least time, memory or workspace. Of selections of the same cost, it is any.
///
/// # Errors
/// When no selection keeps to the limits, or the solver fails.
pub fn solve(
    problem: &Problem<'_>,
    allowed: &Allowed,
    minimise: Quantity,
    limits: Limits,
) -> Result<Selection, ProgramError> {
    let mut variables = ProblemVariables::new();
    let layers: Vec<Vec<(usize, Variable)>> = (0..allowed.len())
        .map(|layer| {
            let kept = undominated(problem, allowed, layer).into_iter();
            kept.map(|place| (place, variables.add(variable().binary()))).collect()
        })
        .collect();
    let flows = flows(problem, &layers, &mut variables);
    let workspace = variables.add(variable().min(0.0));

    // Costs are near 1, where the solver's tolerances make sense.
    let unit = |of: fn(&crate::problem::Candidate) -> u64| {
        let largest = problem.candidates.iter().flatten().map(of).max().unwrap_or(1);
        1.0 / largest.max(1) as f64
    };
    let (time_unit, memory_unit) = (unit(|candidate| candidate.time), unit(|candidate| candidate.memory));
    let layer_memory = |layer: usize| -> Expression {
        let candidates = layers[layer].iter();
        let memory = |place: &usize| problem.candidates[layer][*place].memory as f64 * memory_unit;
        candidates.map(|(place, taken)| memory(place) * *taken).sum()
    };
    let memory: Expression = (0..layers.len()).map(layer_memory).sum();
    let mut time = Expression::with_capacity(0);
    for (layer, candidates) in layers.iter().enumerate() {
        for (place, taken) in candidates {
            time += problem.candidates[layer][*place].time as f64 * time_unit * *taken;
        }
    }
    for flow in &flows {
        time += flow.time as f64 * time_unit * flow.variable;
    }

    let objective = match minimise {
        Quantity::Time => time.clone(),
        Quantity::Memory => memory.clone(),
        Quantity::Workspace => workspace.into(),
    };
    let mut program = variables.minimise(objective).using(solver);
    for candidates in &layers {
        let taken: Expression = candidates.iter().map(|(_, taken)| *taken).sum();
        program = program.with(constraint!(taken == 1.0));
    }
    for constraint in balances(problem, &layers, &flows) {
        program = program.with(constraint);
    }
    if let Some(limit) = limits.time {
        program = program.with(constraint!(time <= limit as f64 * time_unit));
    }
    if let Some(limit) = limits.memory {
        program = program.with(constraint!(memory <= limit as f64 * memory_unit));
    }
    if minimise == Quantity::Workspace {
        for layer in 0..layers.len() {
            program = program.with(constraint!(layer_memory(layer) <= workspace));
        }
    }
    let solution = program.solve().map_err(|error| match error {
        ResolutionError::Infeasible => ProgramError::Infeasible,
        other => ProgramError::Solver(other.to_string()),
    })?;
    let chosen = |candidates: &Vec<(usize, Variable)>| {
        candidates.iter().find(|(_, taken)| solution.value(*taken) > 0.5).map(|(place, _)| *place)
    };
    let selection: Option<Selection> = layers.iter().map(chosen).collect();
    let fractional = || ProgramError::Solver("a layer takes no candidate as a whole".into());
    let selection = selection.ok_or_else(fractional)?;
    let cost = problem.cost(&selection).ok_or_else(fractional)?;
    let exceeds = |limit: Option<u64>, value: u64| limit.is_some_and(|limit| value > limit);
    if exceeds(limits.time, cost.time) || exceeds(limits.memory, cost.memory) {
        return Err(ProgramError::Solver(
            "its solution exceeds a budget, within the solver's tolerance".into(),
        ));
    }
    Ok(selection)
}

/// A tensor that is written in one layout and read in another.
struct Flow {
    edge: usize,
    from: Layout,
    to: Layout,
    time: u64,
    variable: Variable,
}

/// The candidates of a layer that no other with the same layouts beats.
fn undominated(problem: &Problem<'_>, allowed: &Allowed, layer: usize) -> Vec<usize> {
    let mut places = allowed[layer].clone();
    let of = |place: &usize| &problem.candidates[layer][*place];
    places.sort_by_key(|place| {
        let candidate = of(place);
        (candidate.input, candidate.output, candidate.time, candidate.memory)
    });
    let mut kept: Vec<usize> = Vec::new();
    for place in places {
        let beaten = kept.last().map(of).is_some_and(|last| {
            (last.input, last.output) == (of(&place).input, of(&place).output)
                && last.memory <= of(&place).memory
        });
        if !beaten {
            kept.push(place);
        }
    }
    kept
}

fn flows(
    problem: &Problem<'_>,
    layers: &[Vec<(usize, Variable)>],
    variables: &mut ProblemVariables,
) -> Vec<Flow> {
    let mut flows = Vec::new();
    for (edge, ends) in problem.instance.edges.iter().enumerate() {
        for from in layouts(problem, layers, ends.from, true) {
            for to in layouts(problem, layers, ends.to, false) {
                if let Some(time) = problem.paths[edge].time(from, to) {
                    let variable = variables.add(variable().clamp(0.0, 1.0));
                    flows.push(Flow { edge, from, to, time, variable });
                }
            }
        }
    }
    flows
}

/// Layouts that a layer may write or read.
fn layouts(
    problem: &Problem<'_>,
    layers: &[Vec<(usize, Variable)>],
    layer: usize,
    written: bool,
) -> Vec<Layout> {
    let candidates = layers[layer].iter().map(|(place, _)| &problem.candidates[layer][*place]);
    let mut layouts: Vec<Layout> =
        candidates.map(|candidate| if written { candidate.output } else { candidate.input }).collect();
    layouts.sort_unstable();
    layouts.dedup();
    layouts
}

/// A tensor that is written in a layout flows out of it, and a tensor that flows into a layout is read in it.
fn balances(
    problem: &Problem<'_>,
    layers: &[Vec<(usize, Variable)>],
    flows: &[Flow],
) -> Vec<good_lp::Constraint> {
    let mut of_edge: Vec<Vec<&Flow>> = vec![Vec::new(); problem.instance.edges.len()];
    for flow in flows {
        of_edge[flow.edge].push(flow);
    }
    let mut constraints = Vec::new();
    for (ends, flows) in problem.instance.edges.iter().zip(of_edge) {
        for (layer, written) in [(ends.from, true), (ends.to, false)] {
            for layout in layouts(problem, layers, layer, written) {
                let in_layout = |place: &usize| {
                    let candidate = &problem.candidates[layer][*place];
                    layout == if written { candidate.output } else { candidate.input }
                };
                let taken = layers[layer].iter().filter(|(place, _)| in_layout(place));
                let taken: Expression = taken.map(|(_, taken)| *taken).sum();
                let through = flows.iter().filter(|flow| layout == if written { flow.from } else { flow.to });
                let through: Expression = through.map(|flow| flow.variable).sum();
                constraints.push(constraint!(through == taken));
            }
        }
    }
    constraints
}
