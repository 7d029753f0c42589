//! `csdfc report`: a plan, or two, as a page for people, and its modelled frame as a trace.

use std::path::{Path, PathBuf};

use csdfc_plan::plan::Plan;
use csdfc_plan::timeline::{self, Timeline};
use csdfc_planner::saved::front::SavedFront;

use super::output;
use super::read::{read_plan, read_text};
use crate::cli::report::ReportArgs;
use crate::error::{Error, Outcome};
use crate::{page, trace};

/// Writes the page and the trace of plans.
///
/// # Errors
/// When a plan or a front cannot be read, a plan is not safe, or a file cannot be written.
pub fn report(args: &ReportArgs) -> Result<Outcome, Error> {
    let is_stdout = |path: &&Path| path.as_os_str() == "-";
    let page = match (args.output.as_deref(), &args.trace) {
        (None, Some(_)) => None,
        (output, _) => Some(output.unwrap_or(Path::new("-"))),
    };
    let trace = args.trace.as_deref();
    if page.as_ref().is_some_and(is_stdout) && trace.as_ref().is_some_and(is_stdout) {
        return Err(Error::Input {
            message: "--output and --trace both go to standard output".into(),
            help: Some("give one of them a file".into()),
        });
    }
    if trace.is_some() && args.plans.len() > 1 {
        return Err(Error::Input {
            message: "--trace writes the frame of one plan, but two plans are given".into(),
            help: Some("give the plan whose trace you want".into()),
        });
    }
    let read = args.plans.iter().chain(&args.front).map(PathBuf::as_path);
    output::expect_apart(page.into_iter().chain(trace), read)?;
    let plans: Vec<(Plan, Timeline)> =
        args.plans.iter().map(|path| self::read(path)).collect::<Result<_, _>>()?;
    let front = args.front.as_deref().map(read_front).transpose()?;
    if let (Some(path), Some((plan, timeline))) = (trace, plans.first()) {
        output::write(path, &trace::json(plan, timeline)?)?;
    }
    if let Some(path) = page {
        output::write(path, &page::page(&plans, front.as_ref())?)?;
    }
    Ok(Outcome::Yes)
}

/// A plan that the checker accepts, and its timeline.
fn read(path: &Path) -> Result<(Plan, Timeline), Error> {
    let (plan, name, _) = read_plan(path)?;
    let timeline = timeline(&plan, &name.display().to_string())?;
    Ok((plan, timeline))
}

/// The timeline of a plan of this name.
///
/// # Errors
/// When the plan is not safe.
pub(crate) fn timeline(plan: &Plan, name: &str) -> Result<Timeline, Error> {
    let timeline = tracing::info_span!("replay").in_scope(|| timeline::timeline(plan));
    timeline.map_err(|violations| Error::Input {
        message: format!(
            "{name}: the plan cannot be drawn: {}",
            violations.first().map(ToString::to_string).unwrap_or_default()
        ),
        help: Some("`csdfc check` says all that is wrong with it".into()),
    })
}

fn read_front(path: &Path) -> Result<SavedFront, Error> {
    let (text, name) = read_text(path, "give a front that `csdfc plan --pareto FILE.json` wrote, or a plan")?;
    Ok(SavedFront::parse(&text, &name.display().to_string())?)
}
