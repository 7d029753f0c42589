//! Why an application cannot be planned, profiled or read again.
//!
//! ```
//! use csdfc_planner::error::Error;
//! use csdfc_planner::open::open;
//!
//! let error = open("no-such-file.ron").unwrap_err();
//! assert!(matches!(error, Error::Io { action: "read", .. }));
//! assert_eq!(error.to_string(), "cannot read no-such-file.ron");
//! ```

use std::path::{Path, PathBuf};

use csdfc_input::app::AppError;
use csdfc_input::app::load::LoadError;
use csdfc_input::device::DeviceError;
use csdfc_runtime::run::RunError;
use miette::Diagnostic;

/// Why an application cannot be planned, profiled or read again.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[non_exhaustive]
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
    /// There is no such device profile.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Device(#[from] DeviceError),
    /// A dataflow analysis refuses a graph, for instance because it is inconsistent or too large.
    #[error("the dataflow analysis refuses the graph")]
    #[diagnostic(code(csdfc::dataflow))]
    Dataflow(#[from] csdf::Error),
    /// A mistake of csdfc's own.
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
}

/// An error, its causes, and what to do about it, a line each.
pub fn explained(error: &dyn Diagnostic) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text += &format!("\n  caused by: {next}");
        cause = next.source();
    }
    if let Some(help) = error.help() {
        text += &format!("\n  help: {help}");
    }
    text
}
