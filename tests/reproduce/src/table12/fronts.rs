//! The default method's front compared with that of Algorithm 2.

use std::fmt::Write;

use csdfc_command::error::Error;
use csdfc_input::app::spec::Method;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::Plan;
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::compare::{dominates, hypervolume};
use csdfc_planner::search::watch::{Progress, Watch};

use super::plans::{checked, opened};
use super::printed::Application;
use crate::Tell;

/// The plans of an application by the default method.
pub struct Extended {
    /// The plan with the least memory, as `csdfc plan` makes it.
    pub plan: Plan,
    /// The same with about twice the evaluations.
    pub doubled: Plan,
}

impl Extended {
    /// # Errors
    /// When the application cannot be planned.
    pub fn new(application: &Application, seed: u64, tell: Tell<'_>) -> Result<Self, Error> {
        let told = |progress: &Progress<'_>| {
            let Progress { of, evaluations, .. } = progress;
            tell(&format!("application {}: default method, {of}, {evaluations} choices", application.name));
        };
        let unlimited = Watch { progress: &told, ..Watch::unwatched() };
        let mut opened = opened(application.file)?;
        opened.spec.search.seed = seed;
        opened.spec.search.method = Some(Method::Extended);
        opened.spec.constraints.memory = Some(MemoryGoal::Min);
        let plan = checked(&opened, &unlimited)?;
        // The limit counts for each CNN alone.
        let twice = 2 * plan.search.evaluations / (plan.cnns.len() as u64).max(1);
        let watch = Watch { budget: Budget::Evaluations(twice), ..unlimited };
        Ok(Extended { doubled: checked(&opened, &watch)?, plan })
    }
}

/// A line of the table: `none` is the plan without reduction, `paper` the least of Algorithm 2.
pub fn line(application: &Application, none: &Plan, paper: &Plan, extended: &Extended) -> String {
    let volume = |plan: &Plan| hypervolume(&plan.pareto, none.memory.total);
    let verdict = if dominates(&extended.plan.pareto, &paper.pareto) { "yes" } else { "no" };
    let megabytes = |plan: &Plan| plan.memory.total as f64 / 1e6;
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "| {} | {}: {:.2} | {}: {:.2} | {verdict} | {:.3} | {} → {}: {:.4} |",
        application.name,
        paper.pareto.len(),
        megabytes(paper),
        extended.plan.pareto.len(),
        megabytes(&extended.plan),
        volume(&extended.plan) / volume(paper),
        extended.plan.search.evaluations,
        extended.doubled.search.evaluations,
        volume(&extended.doubled) / volume(&extended.plan),
    );
    text
}
