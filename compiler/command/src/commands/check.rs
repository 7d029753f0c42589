//! `csdfc check`: whether a plan keeps the rules, and whether its layers are those of its models.

use std::path::Path;

use csdfc_plan::check::{self as checker, Report};
use csdfc_plan::plan::Plan;
use csdfc_planner::saved::reload;

use super::output;
use super::read::read_plan;
use crate::cli::{CheckArgs, Format};
use crate::error::{Error, Outcome};
use crate::report;

/// Maximum number of violations of a refused plan that are shown.
const VIOLATION_LINES: usize = 20;

/// Checks a plan: its replay finds nothing wrong, and its layers are those of its models. A plan that is safe passes even if
/// it misses limits that it was asked to keep; they are printed.
///
/// # Errors
/// When the plan or a model cannot be read, or a model is not the one that the plan was made from.
pub fn check(args: &CheckArgs) -> Result<Outcome, Error> {
    let (plan, name, folder) = read_plan(&args.plan)?;
    let verdict = verdict(&plan, &folder)?;
    let text = match (args.format, &verdict) {
        (Format::Text, Ok(report)) => report::check::accepted(&plan, report),
        (Format::Text, Err(violations)) => report::check::refused(&name, violations, VIOLATION_LINES),
        (Format::Json, verdict) => output::json(&report::check::verdict(&plan, verdict))?,
        (Format::Ron, verdict) => output::ron(&report::check::verdict(&plan, verdict))?,
    };
    output::print(&text)?;
    Ok(if verdict.is_ok() { Outcome::Yes } else { Outcome::No })
}

/// What the replay of a plan counts, or what is wrong with the plan. Paths of its models start from `folder`.
///
/// # Errors
/// When a model cannot be read, or is not the one that the plan was made from.
pub(crate) fn verdict(plan: &Plan, folder: &Path) -> Result<Result<Report, Vec<String>>, Error> {
    let replayed = tracing::info_span!("replay").in_scope(|| checker::check(plan));
    let report = match replayed {
        Ok(report) => report,
        Err(violations) => return Ok(Err(violations.iter().map(ToString::to_string).collect())),
    };
    let differences = tracing::info_span!("compare").in_scope(|| reload::differences(plan, folder))?;
    Ok(if differences.is_empty() { Ok(report) } else { Err(differences) })
}
