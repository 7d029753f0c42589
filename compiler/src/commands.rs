//! What the commands do: results on standard output, what could not be reached on standard error.

mod analyze;
mod device;
pub mod emit;
mod offload;
mod pack;
mod reproduce;
mod run;
mod watcher;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use csdfc_codegen::check as checker;
use csdfc_codegen::plan::Plan;

use crate::app::resolve::Application;
use crate::cli::{CheckArgs, Format, InspectArgs, PlanArgs};
use crate::cost::DeviceProfile;
use crate::error::{Error, Outcome};
use crate::search::watch::{Limit, Watch};
use crate::{driver, identity, output, report};

pub use analyze::analyze;
pub use emit::emit;
pub use offload::offload;
pub use pack::pack;
pub use reproduce::reproduce;
pub use run::run;
use watcher::Watcher;

/// Where a plan goes that our own checker refuses, unless `-o` names a file.
const REFUSED_PLAN: &str = "csdfc-refused-plan.json";

/// Violations that are shown of a plan that is refused.
const VIOLATION_LINES: usize = 20;

/// Shows the layers of an application and what they need.
///
/// # Errors
/// When the application cannot be analysed or standard output cannot be written.
pub fn inspect(args: &InspectArgs, application: &Application) -> Result<Outcome, Error> {
    let inspection = report::inspect::inspect(application)?;
    let text = match args.format {
        Format::Text => report::inspect::text(&inspection),
        Format::Json => output::json(&inspection)?,
        Format::Ron => output::ron(&inspection)?,
    };
    output::print(&text)?;
    Ok(Outcome::Yes)
}

/// Plans an application, checks the plan, prints it and writes it. `folder` is what relative paths in the
/// application start from.
///
/// # Errors
/// When the application cannot be planned, or the plan cannot be written, or, a bug, our checker refuses it.
pub fn plan(args: &PlanArgs, application: &Application, folder: &Path) -> Result<Outcome, Error> {
    let device = DeviceProfile::find(&application.device, folder)?;
    let file = args.output.as_deref().filter(|path| path.as_os_str() != "-");
    let plan_folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    let paths = application.cnns.iter().map(|cnn| identity::path_from(plan_folder, &cnn.model)).collect();
    let watcher = Watcher::start();
    let watch = Watch {
        limit: args.budget.map_or(Limit::Default, Limit::from),
        stop: &watcher.stop,
        progress: &|progress| watcher.show(progress),
    };
    let planned = driver::plan_watched(application, &device, paths, &watch);
    watcher.done();
    let driver::Outcome { plan, shortfall } = planned?;

    let verdict = tracing::info_span!("check").in_scope(|| checker::check(&plan));
    if let Err(violations) = verdict {
        let path = file.unwrap_or(Path::new(REFUSED_PLAN));
        output::write(path, &plan.to_json())?;
        let first = violations.first().map(ToString::to_string).unwrap_or_default();
        return Err(Error::Bug(format!(
            "csdfc made a plan that its own checker refuses: {first}; the plan is saved in {}",
            path.display()
        )));
    }

    match args.output.as_deref() {
        Some(path) if path.extension().is_some_and(|extension| extension == "ron") => {
            output::write(path, &plan.to_ron())?;
        }
        Some(path) => output::write(path, &plan.to_json())?,
        None => {}
    }
    // `-o -` has printed the plan already: nothing else may stand on standard output.
    if args.output.is_none() || file.is_some() {
        output::print(&match args.format {
            Format::Text => report::plan::text(&plan),
            Format::Json => plan.to_json(),
            Format::Ron => plan.to_ron(),
        })?;
    }
    match shortfall {
        None => Ok(Outcome::Yes),
        Some(nearest) => {
            // Nobody is left to tell if standard error is closed; the exit code says it too.
            let _ = writeln!(std::io::stderr(), "csdfc: {}", report::plan::shortfall(&plan, &nearest));
            Ok(Outcome::No)
        }
    }
}

/// Checks a plan: its models are those that it was made from, and its replay finds nothing wrong.
///
/// # Errors
/// When the plan or a model cannot be read, or a model is not the one that the plan was made from.
pub fn check(args: &CheckArgs) -> Result<Outcome, Error> {
    let (plan, name, folder) = read_plan(&args.plan)?;
    for cnn in &plan.cnns {
        identity::verify(&folder, cnn)?;
    }
    let verdict = tracing::info_span!("replay").in_scope(|| checker::check(&plan));
    let text = match (args.format, &verdict) {
        (Format::Text, Ok(report)) => report::check::accepted(&plan, report),
        (Format::Text, Err(violations)) => report::check::refused(&name, violations, VIOLATION_LINES),
        (Format::Json, verdict) => output::json(&report::check::verdict(verdict))?,
        (Format::Ron, verdict) => output::ron(&report::check::verdict(verdict))?,
    };
    output::print(&text)?;
    Ok(if verdict.is_ok() { Outcome::Yes } else { Outcome::No })
}

/// A plan from a file or, for `-`, from standard input; the name of where it comes from, and the folder that the paths
/// of its models start from.
fn read_plan(path: &Path) -> Result<(Plan, PathBuf, PathBuf), Error> {
    let from_stdin = path.as_os_str() == "-";
    let (name, folder) = if from_stdin {
        (PathBuf::from("standard input"), PathBuf::new())
    } else {
        (path.to_path_buf(), path.parent().map(Path::to_path_buf).unwrap_or_default())
    };
    let mut bytes = Vec::new();
    let read = if from_stdin {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Error::read(&name, error))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::Input {
        message: format!("{} is not text", name.display()),
        help: Some("give a plan that `csdfc plan -o FILE` wrote".into()),
    })?;
    let plan = Plan::parse(&text).map_err(|error| Error::Input {
        message: format!("{}: {error}", name.display()),
        help: Some("give a plan that `csdfc plan -o FILE` wrote".into()),
    })?;
    Ok((plan, name, folder))
}
