//! The code of a plan as a module of another crate, for a build script.
//!
//! It is the code of an emitted crate with another root. An emitted crate leaves some decisions to its features; here
//! they are made: the weights are embedded, there is no C interface, and the caller says whether there is a standard
//! library.

use std::path::{Path, PathBuf};

use super::error::EmitError;
use super::files::Crate;
use super::names::{self, Names};

/// Options of a module.
#[derive(Debug, Clone)]
pub struct ModuleOptions<'a> {
    /// Its path from the root of the crate that it becomes part of: `net`, or `nets::net`.
    pub path: &'a str,
    /// Whether that crate has the standard library: then vector code is chosen at start, and there are threads.
    pub std: bool,
}

/// The name of a module for a CNN or application of this name: in snake_case, and no word of Rust.
pub fn module_name(name: &str) -> String {
    Names::except(&["core", "std", "alloc", "test"]).give(name)
}

impl ModuleOptions<'_> {
    /// Checks that the path is one of a module.
    pub(super) fn verify(&self) -> Result<(), EmitError> {
        let is_name = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && name != "_"
                && !names::is_word(name)
        };
        match self.path.split("::").all(is_name) {
            true => Ok(()),
            false => Err(EmitError::ModulePath { path: self.path.into() }),
        }
    }

    /// A source of a crate, changed into a source of the module.
    fn adapt(&self, text: &str) -> String {
        text.replace("crate::", &format!("crate::{}::", self.path))
            .replace("feature = \"std\"", &self.std.to_string())
            .replace("feature = \"weights\"", "true")
    }
}

impl Crate<'_> {
    /// All files of a module, in the order of their paths. Its root is `src/mod.rs`.
    pub(super) fn module(self, options: &ModuleOptions<'_>) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = vec![(PathBuf::from("src/lib.rs"), self.library(false).into_bytes())];
        self.sources(&mut files);
        for (path, content) in &mut files {
            if let Ok(text) = std::str::from_utf8(content) {
                *content = options.adapt(text).into_bytes();
            }
            if path == Path::new("src/lib.rs") {
                *path = "src/mod.rs".into();
            }
        }
        if self.is_streamed() {
            files.push(("store.bin".into(), self.packed.store));
        }
        files.push(("weights.bin".into(), self.packed.weights));
        files.sort();
        files
    }
}
