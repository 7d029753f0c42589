//! Commands as functions of another program, such as the Python package: they take the options of the command line and
//! give the same answers as data. They print nothing, and a flag takes the place of Ctrl-C.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! let options = ["builtin:lenet5", "--mem", "min"].map(Into::into);
//! let planned = csdfc_command::call::plan(options, &AtomicBool::new(false))?;
//! assert!(planned.unmet.is_none() && planned.plan.memory.arena < 16_000);
//! # Ok::<(), csdfc_command::error::Error>(())
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use csdfc_emit::Options;
use csdfc_input::export::export;
use csdfc_plan::plan::Plan;
use csdfc_plan::timeline::Timeline;
use csdfc_planner::explain::limits;
use csdfc_planner::saved::reload;
use csdfc_precision::quantize::Report;

use crate::cli::{Cli, Command};
use crate::commands::{check as checks, emit as crates, logging, output, plan as plans, profile as profiles};
use crate::commands::{quantize as quantizing, read, report as reports};
use crate::error::Error;
use crate::report::board;
pub use crate::report::board::Board;
use crate::{page as pages, picture};

/// A plan, and whether it does what was asked.
#[derive(Debug)]
pub struct Planned {
    /// The plan. Paths of its models are relative to the current folder.
    pub plan: Plan,
    /// What it misses of what was asked, what can be reached, and which tensors take most of the memory; `None` if it
    /// misses nothing.
    pub unmet: Option<String>,
}

/// A quantized model.
#[derive(Debug)]
pub struct Quantized {
    /// The bytes of its ONNX file.
    pub onnx: Vec<u8>,
    /// How much it errs.
    pub report: Report,
}

/// What was measured of this machine.
#[derive(Debug)]
pub struct Profiled {
    /// The file of the device profile, whose name plans take as their device.
    pub path: PathBuf,
    /// Whether nothing was left out because somebody asked for the end.
    pub is_complete: bool,
}

/// Does work, and returns what it warns of besides what it returns: what the command logs as warnings. Only warnings of this
/// thread count.
///
/// ```
/// use std::sync::atomic::AtomicBool;
///
/// use csdfc_command::call;
///
/// let options = ["builtin:lenet5", "--threads", "5"].map(Into::into);
/// let (planned, warnings) = call::with_warnings(|| call::plan(options, &AtomicBool::new(false)));
/// assert_eq!(planned?.plan.threads, 5);
/// assert_eq!(warnings, ["5 workers share each firing, but device generic has 4 cores"]);
/// # Ok::<(), csdfc_command::error::Error>(())
/// ```
pub fn with_warnings<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    logging::with_warnings(work)
}

/// Plans as `csdfc plan` with these options does. Once `stop` is true, the search ends with the best plan so far.
///
/// # Errors
/// When an option is wrong, or the application cannot be read or planned. It is a bug if our checker refuses the plan.
pub fn plan(options: impl IntoIterator<Item = OsString>, stop: &AtomicBool) -> Result<Planned, Error> {
    let Command::Plan(args) = parsed("plan", options)? else { return Err(another()) };
    let chosen = plans::chosen(&args, Path::new(""), stop)?;
    if let Some(why) = &chosen.planned.refused {
        return Err(Error::Bug(why.to_string()));
    }
    plans::warn_of(&chosen);
    let footprint = board::footprint(&chosen.planned.plan, &chosen.device)?;
    let unmet = plans::unmet(&chosen, footprint.as_ref(), &args.words);
    let planned = chosen.planned;
    let unmet = unmet.map(|text| format!("{text}\n{}", limits::text(&planned.plan)));
    Ok(Planned { plan: planned.plan, unmet })
}

/// Quantizes as `csdfc quantize` with these options does, without writing the model.
///
/// # Errors
/// When an option is wrong, the model or a frame cannot be read or does not fit, or the model cannot be quantized.
pub fn quantize(options: impl IntoIterator<Item = OsString>) -> Result<Quantized, Error> {
    let Command::Quantize(args) = parsed("quantize", options)? else { return Err(another()) };
    let quantized = quantizing::quantized(&args)?;
    Ok(Quantized { onnx: export(&quantized.network)?, report: quantized.report })
}

/// Measures this machine as `csdfc profile` with these options does. Once `stop` is true, what has been measured so far is
/// saved.
///
/// # Errors
/// When an option is wrong, the application or the profile cannot be read, a layer cannot be run, or the profile cannot
/// be written.
pub fn profile(options: impl IntoIterator<Item = OsString>, stop: &AtomicBool) -> Result<Profiled, Error> {
    let Command::Profile(args) = parsed("profile", options)? else { return Err(another()) };
    let measured = profiles::measured(&args, stop)?;
    Ok(Profiled { path: measured.path, is_complete: measured.is_complete })
}

/// Reads a plan from a file. Returns the plan and the folder from which the paths of its models start.
///
/// # Errors
/// When the file cannot be read, or holds no plan.
pub fn load(file: &Path) -> Result<(Plan, PathBuf), Error> {
    read::read_plan(file).map(|(plan, _, folder)| (plan, folder))
}

/// Writes a plan to a file: RON if the name ends in `.ron`, JSON otherwise. The file appears whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn save(plan: &Plan, file: &Path) -> Result<(), Error> {
    plans::write(file, plan)
}

/// Writes bytes to a file, which appears whole or not at all.
///
/// # Errors
/// When it cannot be written.
pub fn write(file: &Path, content: &[u8]) -> Result<(), Error> {
    Ok(output::write_file(file, content)?)
}

/// What is wrong with a plan whose models lie in `folder`: nothing if a replay of it is safe and its layers are those of
/// its models.
///
/// # Errors
/// When a model cannot be read, or is not the one that the plan was made from.
pub fn check(plan: &Plan, folder: &Path) -> Result<Vec<String>, Error> {
    Ok(checks::verdict(plan, folder)?.err().unwrap_or_default())
}

/// When what lies where in the arena.
///
/// # Errors
/// When the plan is not safe.
pub fn timeline(plan: &Plan) -> Result<Timeline, Error> {
    reports::timeline(plan, &plan.application)
}

/// The plan as a page for a browser, as `csdfc report` writes it.
///
/// # Errors
/// When the plan is not safe.
pub fn page(plan: &Plan) -> Result<String, Error> {
    let timeline = timeline(plan)?;
    pages::page(&[(plan.clone(), timeline)], None)
}

/// The memory map of the plan as a picture in SVG.
///
/// # Errors
/// When the plan is not safe.
pub fn map(plan: &Plan) -> Result<String, Error> {
    Ok(picture::memory::map(&plan.application, plan.memory.arena, &timeline(plan)?))
}

/// What a plan takes on the microcontroller that its device profile is of, beside its arena: `None` if the plan is for
/// something else, or if the profile is in a file.
pub fn board(plan: &Plan) -> Option<Board> {
    board::of_its_device(plan)
}

/// Writes a plan, whose models lie in `models`, as a crate into a folder. Without a name, the crate is called as the
/// application is.
///
/// # Errors
/// When a model cannot be read, a layer cannot be emitted, a file of the folder is not csdfc's, or one cannot be written.
pub fn emit(
    plan: &Plan,
    models: &Path,
    folder: &Path,
    crate_name: Option<String>,
    image_files: bool,
) -> Result<(), Error> {
    let networks = reload::reload(plan, models)?;
    let parameters = |cnn, layer, parameter| networks.parameter(cnn, layer, parameter);
    crates::warn_if_missed(plan);
    let files = csdfc_emit::emit(plan, &parameters, &Options { crate_name, image_files })?;
    crates::write_crate(folder, &files)?;
    crates::warn_of_crate(plan);
    Ok(())
}

/// The call of a command with these options.
fn parsed(command: &str, options: impl IntoIterator<Item = OsString>) -> Result<Command, Error> {
    let call = ["csdfc".into(), command.into()].into_iter().chain(options);
    let cli = Cli::parsed(call).map_err(|message| Error::Input { message, help: None })?;
    Ok(cli.command)
}

/// The error of a call that the command line understands as another command, which it never does.
fn another() -> Error {
    Error::Bug("the command line calls another command".into())
}
