//! A checker's verdict, for people and for machines.

use std::fmt::Write;
use std::path::Path;

use csdfc_input::units::{self, grouped};
use csdfc_plan::check::Report;
use csdfc_plan::plan::Plan;
use serde::Serialize;

use super::board::{self, Board};
use super::limits;

/// A verdict as data.
#[derive(Debug, Serialize)]
pub struct Verdict<'a> {
    /// Whether the plan is safe.
    pub accepted: bool,
    /// The counts of the replay, if it is safe.
    pub replayed: Option<&'a Report>,
    /// The limits that it was asked to keep and does not keep, if it is safe.
    pub missed: Option<Vec<String>>,
    /// What it takes of flash and stack, if it is safe, and for a microcontroller that csdfc knows.
    pub board: Option<Board>,
    /// The violations, if it is not safe.
    pub violations: &'a [String],
}

/// The verdict on a plan as data.
pub fn verdict<'a>(plan: &Plan, verdict: &'a Result<Report, Vec<String>>) -> Verdict<'a> {
    Verdict {
        accepted: verdict.is_ok(),
        replayed: verdict.as_ref().ok(),
        missed: verdict.is_ok().then(|| limits::missed(plan)),
        board: verdict.is_ok().then(|| board::of_its_device(plan)).flatten(),
        violations: verdict.as_ref().err().map_or(&[], Vec::as_slice),
    }
}

/// The text for a plan that is accepted.
pub fn accepted(plan: &Plan, report: &Report) -> String {
    let claimed = match plan.certificate.claimed {
        Some(claimed) => format!(
            "  not checked: by the planner's exhaustive search, this schedule needs at least {} bytes\n",
            grouped(claimed)
        ),
        None => String::new(),
    };
    let missed: String =
        limits::missed(plan).iter().map(|limit| format!("  limit NOT met: {limit}\n")).collect();
    let board = board::text_on_its_device(plan).map_or_else(String::new, |board| format!("\n{board}"));
    format!(
        "{}: safe\n  replayed {} firings, {} rows written, {} rows read, each found intact\n  \
         {} in {}; all stated sums are right\n  every layer matches its model\n{claimed}{missed}{board}",
        plan.application,
        grouped(report.firings),
        grouped(report.rows_written),
        grouped(report.rows_read),
        if report.rings == 1 { "1 ring".into() } else { format!("{} rings", report.rings) },
        units::bytes(plan.memory.arena),
    )
}

/// The text for a plan that is refused.
pub fn refused(name: &Path, violations: &[String], most: usize) -> String {
    let mut text = format!("{}: REFUSED\n", name.display());
    for violation in violations.iter().take(most) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {violation}");
    }
    if violations.len() > most {
        let _ = writeln!(text, "  and {} more", violations.len() - most);
    }
    text
}
