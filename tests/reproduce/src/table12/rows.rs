//! The plans behind a row of Table 12, and the table itself.

use std::fmt::Write;

use csdfc_command::error::Error;
use csdfc_input::app::spec::Method;
use csdfc_input::units::MemoryGoal;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_planner::search::budget::Budget;
use csdfc_planner::search::watch::Watch;

use super::cuts::{self, Cut};
use super::fronts::{self, Extended};
use super::plans::{BASELINES, opened, plan, size};
use super::printed::{Application, Figures};
use crate::Tell;
use crate::table12::offsets;

/// Deviations up to this many per cent count as none.
const SMALL: f64 = 1.0;

/// An application's plans and figures.
pub struct Row {
    /// The paper's figures.
    pub printed: &'static Application,
    /// The plans of [`BASELINES`].
    pub baselines: Vec<Plan>,
    /// Megabytes with \[23\] as published: a place for every edge, and for every tensor.
    pub offsets: [f64; 2],
    /// Algorithm 2, under each constraint.
    pub paper: Vec<Plan>,
    /// Algorithm 2 as printed, under each constraint.
    pub as_printed: Vec<Plan>,
    /// Other cuts of its CNN.
    pub cuts: Vec<Cut>,
    extended: Extended,
}

impl Row {
    /// Plans an application by all methods.
    ///
    /// # Errors
    /// When it cannot be planned.
    pub fn new(printed: &'static Application, seed: u64, tell: Tell<'_>) -> Result<Self, Error> {
        let step = |what: &str| tell(&format!("application {}: {what}", printed.name));
        step("baselines");
        let baselines = baselines(printed)?;
        let offsets = offsets(printed, &baselines)?;
        step("Algorithm 2");
        let paper = constrained(printed, seed, Method::Paper, tell)?;
        step("Algorithm 2 as printed");
        let as_printed = constrained(printed, seed, Method::PaperPrinted, tell)?;
        step("other cuts");
        let cuts = cuts::cuts(printed, seed, tell)?;
        step("the default method");
        let extended = Extended::new(printed, seed, tell)?;
        Ok(Row { printed, baselines, offsets, paper, as_printed, cuts, extended })
    }

    /// The default method compared with Algorithm 2 at its least memory, which the last of the constraints asks for.
    pub fn fronts(&self) -> String {
        match (self.baselines.first(), self.paper.last()) {
            (Some(none), Some(paper)) => fronts::line(self.printed, none, paper, &self.extended),
            _ => String::new(),
        }
    }

    /// The lines of the table: the memory constraint; for each method the printed figures and csdfc's plan; and
    /// Algorithm 2 as printed.
    fn lines(&self) -> impl Iterator<Item = (Option<u64>, Vec<(Figures, &Plan)>, &Plan)> {
        let printed = self.printed;
        let plans = self.paper.iter().zip(&self.as_printed);
        printed.paper.iter().zip(plans).map(|((limit, figures), (paper, as_printed))| {
            let baselines = printed.baselines.iter().copied().zip(&self.baselines);
            (*limit, baselines.chain([(*figures, paper)]).collect(), as_printed)
        })
    }
}

/// The plans of [`BASELINES`].
///
/// # Errors
/// When the application cannot be planned.
pub fn baselines(printed: &Application) -> Result<Vec<Plan>, Error> {
    let plan = |method: &Method| plan(printed.file, 1, *method, None, &Watch::unwatched());
    BASELINES.iter().map(plan).collect()
}

/// Megabytes with \[23\] as published, by edges and by tensors.
///
/// # Errors
/// When the application cannot be read.
pub fn offsets(printed: &Application, baselines: &[Plan]) -> Result<[f64; 2], Error> {
    let application = opened(printed.file)?.resolve()?;
    let parameters = baselines.first().map_or(0, |plan| plan.memory.parameters);
    let megabytes = |model| {
        let bytes = offsets::arenas(&application, model)?;
        Ok::<f64, Error>((parameters + bytes) as f64 / 1e6)
    };
    Ok([megabytes(StorageModel::Edges)?, megabytes(StorageModel::Tensors)?])
}

/// The plans of Algorithm 2 under each memory constraint. It searches only if reusing buffers is not enough. Then it
/// takes the smallest plan that it finds, whatever the constraint, so one search is enough.
fn constrained(printed: &Application, seed: u64, method: Method, tell: Tell<'_>) -> Result<Vec<Plan>, Error> {
    let told = |progress: &csdfc_planner::search::watch::Progress<'_>| {
        let name = method.name();
        tell(&format!("application {}: {name}, {} chromosomes", printed.name, progress.evaluations));
    };
    let watch = Watch { progress: &told, ..Watch::unwatched() };
    let least = plan(printed.file, seed, method, Some(MemoryGoal::Min), &watch)?;
    let of = |limit: Option<u64>| {
        let Some(megabytes) = limit else { return Ok(least.clone()) };
        let goal = MemoryGoal::Bytes(megabytes * 1_000_000);
        let quick = Watch { budget: Budget::Evaluations(1), ..Watch::unwatched() };
        let reused = plan(printed.file, seed, method, Some(goal), &quick)?;
        Ok(if reused.search.evaluations == 1 { reused } else { least.clone() })
    };
    printed.paper.iter().map(|(limit, _)| of(*limit)).collect()
}

/// The printed figure, csdfc's figure, and the deviation of the latter.
pub fn beside(printed: f64, ours: f64, decimals: usize) -> String {
    let deviation = 100.0 * (ours / printed - 1.0);
    let decimals_of_deviation = usize::from(deviation.abs() < SMALL);
    format!("{printed} / {ours:.decimals$} ({deviation:+.decimals_of_deviation$})")
}

fn limit(limit: Option<u64>) -> String {
    limit.map_or("min".into(), |megabytes| megabytes.to_string())
}

/// Table 12's columns of memory.
pub fn memory(rows: &[Row]) -> String {
    let mut text = String::from(
        "| application | ≤ MB | no reduction | \\[23\\], stand-in | \\[17\\] | Algorithm 2 | as printed |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        for (bound, methods, as_printed) in row.lines() {
            let cells: Vec<String> =
                methods.iter().map(|(printed, plan)| beside(printed.memory, size(plan), 2)).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {} | {} | {} | {:.2} |",
                row.printed.name,
                limit(bound),
                cells.join(" | "),
                size(as_printed)
            );
        }
    }
    text
}

/// The beginning of an application's last line in the table of memory: all that is known without a search.
pub fn beginning(printed: &Application, baselines: &[Plan]) -> String {
    let cells: Vec<String> = printed
        .baselines
        .iter()
        .zip(baselines)
        .map(|(printed, plan)| beside(printed.memory, size(plan), 2))
        .collect();
    format!("| {} | min | {} | ", printed.name, cells.join(" | "))
}

/// \[23\] as published, compared with its stand-in.
pub fn published(printed: &Application, baselines: &[Plan], offsets: &[f64; 2]) -> String {
    let print = printed.baselines[1].memory;
    let stand_in = baselines.get(1).map_or(f64::NAN, size);
    let [edges, tensors] = offsets.map(|megabytes| beside(print, megabytes, 2));
    format!("| {} | {} | {edges} | {tensors} |\n", printed.name, beside(print, stand_in, 2))
}

/// Table 12's columns of throughput.
pub fn rates(rows: &[Row]) -> String {
    let mut text = String::from(
        "## Table 12: throughput\n\nFrames per second, as above.\n\n\
         | application | CNN | ≤ MB | no reduction | \\[23\\] | \\[17\\] | Algorithm 2 | as printed |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for row in rows {
        for (bound, methods, as_printed) in row.lines() {
            for (i, cnn) in row.printed.cnns.iter().enumerate() {
                let cells: Vec<String> = methods
                    .iter()
                    .map(|(printed, plan)| beside(printed.fps[i], plan.cnns[i].fps, 1))
                    .collect();
                let (name, bound, fps) = (row.printed.name, limit(bound), as_printed.cnns[i].fps);
                let _ = writeln!(text, "| {name} | {cnn} | {bound} | {} | {fps:.1} |", cells.join(" | "));
            }
        }
    }
    text
}
