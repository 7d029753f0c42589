//! The integer program of the paper's section 5, for layers of a few patches.
//!
//! Binary variables say which patch is in which group (Eq. 2–4). A pixel is in a group if and only if one of its
//! patches is. Each patch bounds the pixel's variable from below, and their sum bounds it from above (Eq. 6; the paper
//! leaves the second half to the reader). So the pixel's variable is 0 or 1 without being declared binary. A pixel is
//! loaded if it is in a group and not in the one before (Eq. 7, 8). It is loaded at least once, and at most as often as
//! the bound on loads allows (Eq. 9). Groups fit the memory (Eq. 12).
//!
//! Two things make the program smaller. Pixels that the same patches cover share their variables. A strategy and its reverse
//! cost the same, so the first patch must be in the first half of the steps.
//!
//! ```
//! use csdfc_offload::problem::Options;
//! use csdfc_offload::shapes::{Heuristic, unbounded};
//! use csdfc_offload::{Accelerator, Convolution, Problem, Spec, program};
//!
//! // A 2×2 window over 3×4 pixels. The best strategy loads each of the 12 pixels once, in three steps.
//! let layer = Convolution::new(Spec::new([3, 4], 1, [2, 2], 1))?;
//! let options = Options { group: Some(2), ..Options::default() };
//! let problem = Problem::new(layer, Accelerator::default(), &options)?;
//! let start = unbounded(&problem, Heuristic::Baseline).groups;
//! let answer = program::solve(&problem, &start, std::time::Duration::from_secs(60), None).ok_or("too large")?;
//! assert_eq!(answer.groups.map(|groups| problem.cost(&groups).duration), Some(15));
//! assert!(answer.proved);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use good_lp::solvers::SolutionStatus;
use good_lp::solvers::microlp::microlp;
use good_lp::{
    Expression, ProblemVariables, ResolutionError, Solution, SolverModel, Variable, WithInitialSolution,
    WithTimeLimit, constraint, variable,
};

use super::exact::Grid;
use super::problem::Problem;
use super::stop::is_asked;
use super::strategy::Groups;

/// Maximum number of patches of a layer that is solved.
pub const MAX_PATCHES: usize = 16;

/// Maximum number of patches of a layer that the program is known to solve within its time. With 16 patches in groups
/// of two or three it is not done after 50 s; the paper's solver, a commercial one, took hours for 12×12 inputs.
pub const SOLVED_PATCHES: usize = 9;

/// How often the program is asked whether to end while its solver works.
const LOOK: Duration = Duration::from_millis(20);

/// The answer of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramAnswer {
    /// Groups of less duration than those to beat, if there are any.
    pub groups: Option<Groups>,
    /// Whether no strategy beats the better of the two.
    pub proved: bool,
}

/// The variables of a program for a number of steps, by step.
struct Variables {
    /// P_g: patch in group.
    patch: Vec<Vec<Variable>>,
    /// pxl_g: pixel in group.
    pixel: Vec<Vec<Variable>>,
    /// pxl_I: pixel loaded.
    load: Vec<Vec<Variable>>,
}

/// Solves the program for every number of steps that could beat these groups, which keep the problem's bounds. `None`
/// if the method does not apply: too many patches, or filters that are loaded in passes. Once `stop` is true, it ends with
/// what it has; the solver, which knows no such thing, goes on in a thread of its own until the limit.
pub fn solve(
    problem: &Problem,
    start: &Groups,
    limit: Duration,
    stop: Option<&AtomicBool>,
) -> Option<ProgramAnswer> {
    let grid = Arc::new(Grid::new(problem).filter(|grid| grid.patches() <= MAX_PATCHES)?);
    let deadline = Instant::now().checked_add(limit)?;
    let mut best = problem.cost(start).duration;
    let mut groups: Option<Groups> = None;
    for steps in problem.fewest_groups()..=grid.patches() {
        if problem.duration(grid.covered(), steps as u64) >= best {
            break;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let known = groups.as_ref().unwrap_or(start).clone();
        let task =
            Task { problem: problem.clone(), grid: Arc::clone(&grid), steps, known, best, limit: left };
        match with_steps_until(task, stop) {
            Some(Ok((found, is_optimal))) => {
                let duration = problem.cost(&found).duration;
                if duration < best {
                    (best, groups) = (duration, Some(found));
                }
                if !is_optimal {
                    return Some(ProgramAnswer { groups, proved: false });
                }
            }
            Some(Err(ResolutionError::Infeasible)) => {}
            Some(Err(_)) | None => return Some(ProgramAnswer { groups, proved: false }),
        }
    }
    Some(ProgramAnswer { groups, proved: true })
}

/// The best groups with some number of steps, and whether they are proved to be the best.
type Solved = Result<(Groups, bool), ResolutionError>;

/// One program: groups with `steps` steps that beat the known ones.
struct Task {
    problem: Problem,
    grid: Arc<Grid>,
    steps: usize,
    known: Groups,
    best: u64,
    limit: Duration,
}

/// [`with_steps`], or `None` if somebody asks for the end before that.
fn with_steps_until(task: Task, stop: Option<&AtomicBool>) -> Option<Solved> {
    let (sender, answer) = mpsc::channel();
    // If nobody waits any more, the answer is not needed.
    let solver = thread::spawn(move || drop(sender.send(with_steps(&task))));
    loop {
        match answer.recv_timeout(LOOK) {
            Ok(solved) => return Some(solved),
            Err(RecvTimeoutError::Timeout) if is_asked(stop) => return None,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => match solver.join() {
                Ok(()) => return None,
                Err(panic) => std::panic::resume_unwind(panic),
            },
        }
    }
}

fn with_steps(task: &Task) -> Solved {
    let Task { problem, grid, steps, known, best, limit } = task;
    let steps = *steps;
    let mut all = ProblemVariables::new();
    let v = Variables::new(&mut all, grid, steps);
    let load_cycles = problem.load_cycles() as f64;
    let loads: Expression = v.load.iter().map(|step| weighed(grid, step)).sum();
    let own: u64 = (0..grid.patches() as u32).map(|patch| grid.own(patch)).sum();
    let fixed = problem.duration(own, steps as u64);
    let mut model = all.minimise(loads.clone()).using(microlp);
    for constraint in v.constraints(problem, grid) {
        model = model.with(constraint);
    }
    // The known groups serve as a start if they have as many steps, and as a limit otherwise.
    let start = (known.len() == steps).then(|| v.values(grid, known));
    match start {
        Some(values) => model = model.with_initial_solution(values),
        None => {
            let worth = best.saturating_sub(1).saturating_sub(fixed) as f64;
            model = model.with(constraint!(loads * load_cycles <= worth));
        }
    }
    let solution = model.with_time_limit(limit.as_secs_f64()).solve()?;
    let member = |step: &Vec<Variable>| -> Vec<u32> {
        (0..grid.patches())
            .filter(|patch| solution.value(step[*patch]) > 0.5)
            .map(|patch| patch as u32)
            .collect()
    };
    let groups = v.patch.iter().map(member).filter(|group| !group.is_empty()).collect();
    Ok((groups, matches!(solution.status(), SolutionStatus::Optimal)))
}

/// Pixels of the classes of one step, weighed by these variables.
fn weighed(grid: &Grid, step: &[Variable]) -> Expression {
    step.iter().enumerate().map(|(class, variable)| grid.weight(1 << class) as f64 * *variable).sum()
}

impl Variables {
    fn new(all: &mut ProblemVariables, grid: &Grid, steps: usize) -> Self {
        let mut table =
            |width: usize, definition: fn() -> good_lp::VariableDefinition| -> Vec<Vec<Variable>> {
                (0..steps).map(|_| (0..width).map(|_| all.add(definition())).collect()).collect()
            };
        Variables {
            patch: table(grid.patches(), || variable().binary()),
            pixel: table(grid.classes(), || variable().clamp(0.0, 1.0)),
            load: table(grid.classes(), || variable().clamp(0.0, 1.0)),
        }
    }

    fn constraints(&self, problem: &Problem, grid: &Grid) -> Vec<good_lp::Constraint> {
        let mut constraints = Vec::new();
        let steps = self.patch.len();
        for patch in 0..grid.patches() {
            let groups: Expression = self.patch.iter().map(|step| step[patch]).sum();
            constraints.push(constraint!(groups == 1.0));
        }
        // A strategy and its reverse cost the same.
        let late: Expression = self.patch[steps.div_ceil(2)..].iter().map(|step| step[0]).sum();
        constraints.push(constraint!(late <= 0.0));
        for step in 0..steps {
            let members: Expression = self.patch[step].iter().sum();
            constraints.push(constraint!(members.clone() <= problem.group as f64));
            for class in 0..grid.classes() {
                let pixel = self.pixel[step][class];
                let patches = || grid.patches_of(class).map(|patch| self.patch[step][patch as usize]);
                constraints.extend(patches().map(|patch| constraint!(pixel >= patch)));
                constraints.push(constraint!(pixel <= patches().sum::<Expression>()));
                let before: Expression = match step {
                    0 => 0.0.into(),
                    _ => self.pixel[step - 1][class].into(),
                };
                constraints.push(constraint!(self.load[step][class] >= pixel - before));
            }
            if let Some(mem) = problem.accelerator.mem {
                let spec = problem.convolution.spec();
                let own = self.patch[step].iter().zip(0..);
                let own: Expression = own.map(|(member, patch)| grid.own(patch) as f64 * *member).sum();
                let pixels = (own + weighed(grid, &self.pixel[step])) * spec.channels as f64;
                let room = mem.saturating_sub(problem.memory(0, 0)) as f64;
                constraints.push(constraint!(pixels + members * problem.filters_at_once as f64 <= room));
            }
        }
        for class in 0..grid.classes() {
            let loads: Expression = self.load.iter().map(|step| step[class]).sum();
            constraints.push(constraint!(loads.clone() >= 1.0));
            if let Some(reload) = problem.reload {
                constraints.push(constraint!(loads <= f64::from(reload)));
            }
        }
        constraints
    }

    /// The values of all variables for these groups, or their reverse.
    fn values(&self, grid: &Grid, groups: &Groups) -> Vec<(Variable, f64)> {
        let mut groups = groups.clone();
        if groups
            .iter()
            .position(|group| group.contains(&0))
            .is_some_and(|step| step >= groups.len().div_ceil(2))
        {
            groups.reverse();
        }
        let mut values = Vec::new();
        let mut before = 0;
        for (step, group) in groups.iter().enumerate() {
            let value = |set: bool| f64::from(u8::from(set));
            let covered = group.iter().map(|patch| grid.cover(*patch)).fold(0, |all, cover| all | cover);
            for (patch, variable) in (0..).zip(&self.patch[step]) {
                values.push((*variable, value(group.contains(&patch))));
            }
            for class in 0..grid.classes() {
                let (now, then) = (covered >> class & 1 == 1, before >> class & 1 == 1);
                values.push((self.pixel[step][class], value(now)));
                values.push((self.load[step][class], value(now && !then)));
            }
            before = covered;
        }
        values
    }
}
