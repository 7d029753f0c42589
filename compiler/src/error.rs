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
//! | 3 | a mistake of csdfc's own: our checker refuses our plan, which is saved for a report |

use std::path::{Path, PathBuf};

use miette::Diagnostic;

use csdfc_codegen::run::RunError;
use csdfc_emit::EmitError;

use crate::app::AppError;
use crate::app::load::LoadError;
use crate::device::DeviceError;
use crate::export::ExportError;
use crate::offload::OffloadError;

/// The answer of a command that did what it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Yes: exit code 0.
    Yes,
    /// An honest no: no plan meets the constraints, or `check` refuses the plan. Exit code 2.
    No,
}

/// Why a command could not do what it was asked.
#[derive(Debug, thiserror::Error, Diagnostic)]
pub enum Error {
    /// The application is wrong.
    #[error(transparent)]
    #[diagnostic(transparent)]
    App(#[from] Box<AppError>),
    /// A file cannot be read or written.
    #[error("cannot {action} {}", .path.display())]
    #[diagnostic(code(csdfc::io))]
    Io {
        /// `read` or `write`.
        action: &'static str,
        /// The file; `standard input` and the like for a stream.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
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
    /// A model cannot be loaded.
    #[error("CNN {cnn}: cannot load {model}")]
    #[diagnostic(code(csdfc::model))]
    Model {
        /// The CNN.
        cnn: String,
        /// The model, as the plan names it.
        model: String,
        /// Why.
        source: Box<LoadError>,
    },
    /// A plan cannot be run.
    #[error(transparent)]
    #[diagnostic(code(csdfc::run))]
    Run(#[from] RunError),
    /// A network cannot be written as an ONNX model.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Export(#[from] ExportError),
    /// There is no such device profile.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(#[from] DeviceError),
    /// A dataflow analysis refuses a graph, for instance because it is inconsistent or too large.
    #[error("the dataflow analysis refuses the graph")]
    #[diagnostic(code(csdfc::dataflow))]
    Dataflow(#[from] csdf::Error),
    /// A mistake of csdfc's own: exit code 3.
    #[error("{0}")]
    #[diagnostic(code(csdfc::bug), help("this is a mistake in csdfc, not in its input: please report it"))]
    Bug(String),
}

impl Error {
    /// The error of a file that cannot be read.
    pub fn read(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io { action: "read", path: path.as_ref().into(), source }
    }

    /// The error of a file that cannot be written.
    pub fn write(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Error::Io { action: "write", path: path.as_ref().into(), source }
    }

    /// The error of a layer's weights that cannot be read.
    pub fn weights(layer: &str, why: &std::io::Error) -> Self {
        Error::Input { message: format!("the weights of layer {layer} cannot be read: {why}"), help: None }
    }

    /// 3 for a mistake of our own, 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Bug(_) => 3,
            _ => 1,
        }
    }
}

impl From<EmitError> for Error {
    fn from(error: EmitError) -> Self {
        Error::Input { message: error.to_string(), help: None }
    }
}

impl From<OffloadError> for Error {
    fn from(error: OffloadError) -> Self {
        Error::Input { message: error.to_string(), help: error.help() }
    }
}

impl Ending {
    /// 0 for yes, 2 for an honest no.
    pub fn exit_code(self) -> u8 {
        match self {
            Ending::Yes => 0,
            Ending::No => 2,
        }
    }
}
