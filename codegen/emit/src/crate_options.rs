//! Options of a crate, and its name.

use csdfc_plan::plan::Plan;

use super::error::EmitError;
use super::names::{self, Names};

/// Options of a crate.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the crate; that of the application if absent.
    pub crate_name: Option<String>,
    /// The program also takes PNG and JPEG files, by the crate `image`. Without this, the crate needs no other crate.
    pub image_files: bool,
}

/// Names that a crate cannot have: those of Rust's own.
const TAKEN: [&str; 4] = ["alloc", "core", "std", "test"];

impl Options {
    /// The name of the crate of a plan.
    pub(super) fn name_for(&self, plan: &Plan) -> Result<String, EmitError> {
        let is_name = |name: &str| {
            name.len() <= 64
                && name.starts_with(|first: char| first.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        };
        match &self.crate_name {
            Some(name) if is_name(name) && !names::is_word(name) && !TAKEN.contains(&name.as_str()) => {
                Ok(name.clone())
            }
            Some(name) => Err(EmitError::CrateName { name: name.clone() }),
            None => Ok(Names::except(&TAKEN).give(&plan.application).replace('_', "-")),
        }
    }
}
