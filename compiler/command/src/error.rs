//! What can end a command, and with which exit code.
//!
//! Each library has one error enum, whose variants carry names and numbers. The command turns them into diagnostics
//! with a code, a place and a help.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done |
//! | 1 | an error: something in the input is wrong |
//! | 2 | an answer, not an error: no plan meets the constraints, or `check` refuses a plan |
//! | 3 | a bug in csdfc: our checker refuses our plan, which is saved for a report |
//! | 130 | Ctrl-C ended the command before there was a result |
//!
//! ```
//! use csdfc_command::error::Error;
//!
//! let missing = Error::read("plan.json", std::io::ErrorKind::NotFound.into());
//! assert_eq!(missing.exit_code(), 1);
//! assert_eq!(missing.to_string(), "cannot read plan.json");
//! ```

use std::path::Path;

use csdfc_emit::EmitError;
use csdfc_input::app::AppError;
use csdfc_input::device::DeviceError;
use csdfc_input::export::ExportError;
use csdfc_offload::OffloadError;
use csdfc_planner::error::Error as PlannerError;
use csdfc_precision::error::Error as PrecisionError;
use csdfc_runtime::run::RunError;
use miette::Diagnostic;

/// The exit code that shells report for a command that Ctrl-C ended.
pub(crate) const INTERRUPTED: u8 = 130;

/// The answer of a command that did what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Yes: exit code 0.
    Yes,
    /// An honest no: no plan meets the constraints, or `check` refuses the plan. Exit code 2.
    No,
}

/// Why a command could not do what it was asked.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[non_exhaustive]
pub enum Error {
    /// The application cannot be planned, profiled, run or read again.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Planner(#[from] PlannerError),
    /// Precisions cannot be chosen, or a model cannot be quantized.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Precision(#[from] PrecisionError),
    /// A file or an option is wrong.
    #[error("{message}")]
    #[diagnostic(code(csdfc::input))]
    Input {
        /// What is wrong.
        message: String,
        /// What to do about it.
        #[help]
        help: Option<String>,
    },
    /// A plan cannot be written as a crate.
    #[error(transparent)]
    #[diagnostic(code(csdfc::input))]
    Emit(#[from] EmitError),
    /// A network cannot be written as an ONNX model.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Export(#[from] ExportError),
    /// Ctrl-C ended the command before there was a result: exit code 130.
    #[error("interrupted; nothing was written")]
    #[diagnostic(code(csdfc::interrupted))]
    Interrupted,
    /// A bug in csdfc: exit code 3.
    #[error("{0}")]
    #[diagnostic(
        code(csdfc::bug),
        help("this is a bug in csdfc, not a mistake in its input: please report it")
    )]
    Bug(String),
}

impl Error {
    /// The error of a file that cannot be read.
    pub fn read(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        PlannerError::read(path, source).into()
    }

    /// The error of a file that cannot be written.
    pub fn write(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        PlannerError::write(path, source).into()
    }

    /// 3 for a bug in csdfc, 130 after Ctrl-C, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Bug(_)
            | Error::Planner(PlannerError::Bug(_))
            | Error::Precision(PrecisionError::Planner(PlannerError::Bug(_))) => 3,
            Error::Interrupted => INTERRUPTED,
            _ => 1,
        }
    }
}

impl From<Box<AppError>> for Error {
    fn from(error: Box<AppError>) -> Self {
        PlannerError::from(error).into()
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        PlannerError::from(error).into()
    }
}

impl From<csdf::Error> for Error {
    fn from(error: csdf::Error) -> Self {
        PlannerError::from(error).into()
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        PlannerError::from(error).into()
    }
}

impl From<OffloadError> for Error {
    fn from(error: OffloadError) -> Self {
        Error::Input { message: error.to_string(), help: error.help() }
    }
}

impl Outcome {
    /// 0 for yes, 2 for an honest no.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Outcome::Yes => 0,
            Outcome::No => 2,
        }
    }
}
