//! `csdfc check`: whether a plan keeps the rules, and whether its layers are those of its models.

use csdfc_plan::check as checker;
use csdfc_planner::saved::reload;

use super::output;
use super::read::read_plan;
use crate::cli::{CheckArgs, Format};
use crate::error::{Error, Outcome};
use crate::report;

/// Maximum number of violations of a refused plan that are shown.
const VIOLATION_LINES: usize = 20;

/// Checks a plan: its replay finds nothing wrong, and its layers are those of its models.
///
/// # Errors
/// When the plan or a model cannot be read, or a model is not the one that the plan was made from.
pub fn check(args: &CheckArgs) -> Result<Outcome, Error> {
    let (plan, name, folder) = read_plan(&args.plan)?;
    let replayed = tracing::info_span!("replay").in_scope(|| checker::check(&plan));
    let verdict = match replayed {
        Ok(report) => {
            match tracing::info_span!("compare").in_scope(|| reload::differences(&plan, &folder))? {
                none if none.is_empty() => Ok(report),
                differences => Err(differences),
            }
        }
        Err(violations) => Err(violations.iter().map(ToString::to_string).collect()),
    };
    let text = match (args.format, &verdict) {
        (Format::Text, Ok(report)) => report::check::accepted(&plan, report),
        (Format::Text, Err(violations)) => report::check::refused(&name, violations, VIOLATION_LINES),
        (Format::Json, verdict) => output::json(&report::check::verdict(verdict))?,
        (Format::Ron, verdict) => output::ron(&report::check::verdict(verdict))?,
    };
    output::print(&text)?;
    Ok(if verdict.is_ok() { Outcome::Yes } else { Outcome::No })
}
