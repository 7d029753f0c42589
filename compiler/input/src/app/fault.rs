//! What is wrong with an application, where in its text, and what to do about it.

use std::ops::Range;

use miette::{Diagnostic, NamedSource, SourceSpan};

use super::locate::{self, PathStep};
use csdfc_network::suggest::clip;

/// Longest line of an app file that a message shows, in bytes.
const MAX_LINE_LEN: usize = 400;

/// Where an application comes from, so that errors can point into it.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// Name of the file, as messages show it.
    pub name: String,
    /// Its text. `None` for a model that was given in place of an application file.
    pub text: Option<String>,
    /// Fields that options on the command line replaced, each with the option. Errors in these fields do not point into
    /// the file.
    pub replaced: Vec<(&'static str, &'static str)>,
}

/// What is wrong with an application, where, and what to do about it.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
#[diagnostic(code(csdfc::app))]
pub struct AppError {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    text: Option<NamedSource<String>>,
    #[label("{label}")]
    pub(super) span: Option<SourceSpan>,
    label: String,
    #[source]
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What is wrong with an item of an app file, before the item is found in the text.
#[derive(Debug)]
pub struct AppFault {
    path: Vec<PathStep>,
    message: String,
    label: &'static str,
    help: Option<String>,
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl AppFault {
    /// A fault of the item at `path`, which the text will show with the label.
    pub fn new(path: &[PathStep], message: impl Into<String>, label: &'static str) -> Self {
        AppFault { path: path.to_vec(), message: message.into(), label, help: None, cause: None }
    }

    /// With what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With the error that it comes from.
    pub fn cause(mut self, cause: Box<dyn std::error::Error + Send + Sync>) -> Self {
        self.cause = Some(cause);
        self
    }

    /// The fault as an error that points into the application's text where it can.
    pub fn at(self, origin: &Origin) -> Box<AppError> {
        let option = origin
            .replaced
            .iter()
            .find(|(field, _)| self.path.iter().any(|segment| *segment == PathStep::from(*field)))
            .map(|(_, option)| *option);
        let span = match (&origin.text, option) {
            (Some(text), None) => locate::locate(text, &self.path),
            _ => None,
        };
        let message = match option {
            Some(option) => format!("{option}: {}", self.message),
            None => self.message,
        };
        Box::new(AppError {
            cause: self.cause,
            ..AppError::new(origin, message, self.help, span, self.label)
        })
    }
}

impl AppError {
    /// An error of the bytes `span` of the application's text.
    pub(super) fn new(
        origin: &Origin,
        message: String,
        help: Option<String>,
        span: Option<Range<usize>>,
        label: &str,
    ) -> Self {
        let mut error = AppError { message, help, text: None, span: None, label: label.into(), cause: None };
        let (Some(text), Some(span)) = (&origin.text, span) else {
            return error;
        };
        let start = text[..span.start].rfind('\n').map_or(0, |i| i + 1);
        let lines = text[start..].split('\n').take(2).chain(text[..start].lines().next_back());
        if lines.map(str::len).max() <= Some(MAX_LINE_LEN) {
            let end = text[span.clone()].find('\n').map_or(span.end, |i| span.start + i);
            error.text = Some(NamedSource::new(clip(&origin.name), text.clone()));
            error.span = Some((span.start, end - span.start).into());
        } else {
            let line = text[..span.start].matches('\n').count() + 1;
            let column = text[start..span.start].chars().count() + 1;
            error.message = format!("{}:{line}:{column}: {}", clip(&origin.name), error.message);
        }
        error
    }
}
