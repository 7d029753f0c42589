//! What the commands do: results on standard output, what could not be reached on standard error.

mod analyze;
mod device;
pub mod emit;
mod offload;
mod pack;
mod plan;
mod reproduce;
mod run;
mod watcher;

use std::io::Read;
use std::path::{Path, PathBuf};

use csdfc_codegen::check as checker;
use csdfc_codegen::plan::{Plan, StorageModel};

use crate::app::open::Opened;
use crate::cli::{CheckArgs, Format, InspectArgs};
use crate::error::{Error, Outcome};
use crate::{output, reload, report};

pub use analyze::analyze;
pub use emit::emit;
pub use offload::offload;
pub use pack::pack;
pub use plan::plan;
pub use reproduce::reproduce;
pub use run::run;

/// Violations that are shown of a plan that is refused.
const VIOLATION_LINES: usize = 20;

/// Shows the layers of an application and what they need.
///
/// # Errors
/// When the application cannot be read or analysed or standard output cannot be written.
pub fn inspect(args: &InspectArgs, mut app: Opened) -> Result<Outcome, Error> {
    let own = app.resolve()?;
    // Which layers there are depends on the storage model.
    app.spec.search.method = None;
    app.spec.storage = Some(match own.storage {
        StorageModel::Tensors => StorageModel::Edges,
        StorageModel::Edges => StorageModel::Tensors,
    });
    let inspection = report::inspect::inspect(&own, &app.resolve()?)?;
    let text = match args.format {
        Format::Text => report::inspect::text(&inspection),
        Format::Json => output::json(&inspection)?,
        Format::Ron => output::ron(&inspection)?,
    };
    output::print(&text)?;
    Ok(Outcome::Yes)
}

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

/// A plan from a file or, for `-`, from standard input; the name of where it comes from, and the folder that the paths
/// of its models start from.
fn read_plan(path: &Path) -> Result<(Plan, PathBuf, PathBuf), Error> {
    let help = "give a plan that `csdfc plan -o FILE` wrote";
    let (text, name) = read_text(path, help)?;
    let folder = match path.as_os_str() == "-" {
        true => PathBuf::new(),
        false => path.parent().map(Path::to_path_buf).unwrap_or_default(),
    };
    let plan = Plan::parse(&text).map_err(|error| Error::Input {
        message: format!("{}: {error}", name.display()),
        help: Some(help.into()),
    })?;
    Ok((plan, name, folder))
}

/// The text of a file or, for `-`, of standard input, and the name of where it comes from. `help` says what file to give.
fn read_text(path: &Path, help: &str) -> Result<(String, PathBuf), Error> {
    let from_stdin = path.as_os_str() == "-";
    let name = if from_stdin { PathBuf::from("standard input") } else { path.to_path_buf() };
    let mut bytes = Vec::new();
    let read = if from_stdin {
        std::io::stdin().read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Error::read(&name, error))?;
    let text = String::from_utf8(bytes).map_err(|_| Error::Input {
        message: format!("{} is not text", name.display()),
        help: Some(help.into()),
    })?;
    Ok((text, name))
}
