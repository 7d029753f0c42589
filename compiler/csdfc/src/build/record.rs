//! What a build script read and what it was asked, so that its next run knows whether anything has changed.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use csdfc_planner::error::Error;
use csdfc_planner::saved::identity::sha256;
use serde::{Deserialize, Serialize};

/// The file of a record, in the module's folder. It is written last, so if it exists, so do the files that it names.
const FILE: &str = "inputs.json";

/// What a module was made from.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Record {
    /// What was asked.
    asked: String,
    /// The program that made it, a build script with csdfc in it: its size in bytes, and when it was made.
    program: String,
    /// The files that were read, each with its SHA-256.
    pub files: BTreeMap<PathBuf, String>,
}

impl Record {
    /// The record of this question, and of these files as they are now.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn new(asked: String, files: &[PathBuf]) -> Result<Self, Error> {
        let hash = |file: &PathBuf| {
            let (_, hash) = sha256(file).map_err(|error| Error::read(file, error))?;
            Ok((file.clone(), hash))
        };
        let files = files.iter().map(hash).collect::<Result<_, Error>>()?;
        Ok(Record { asked, program: program(), files })
    }

    /// The record in a folder, if there is one.
    pub fn read(folder: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(FILE)).ok()?).ok()
    }

    /// Whether the same would be made again.
    pub fn holds(&self, asked: &str) -> bool {
        let is_same = |(file, hash): (&PathBuf, &String)| sha256(file).is_ok_and(|(_, now)| now == *hash);
        self.asked == asked && self.program == program() && self.files.iter().all(is_same)
    }

    /// Writes it into a folder.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Bug(error.to_string()))?;
        let file = folder.join(FILE);
        std::fs::write(&file, text).map_err(|error| Error::write(&file, error))
    }

    /// Removes the record of a folder whose other files are about to change.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(folder: &Path) -> Result<(), Error> {
        let file = folder.join(FILE);
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::write(&file, error)),
            _ => Ok(()),
        }
    }
}

/// This program's size and the time at which it was made, where the system tells them.
fn program() -> String {
    let meta = std::env::current_exe().and_then(std::fs::metadata);
    meta.map(|meta| format!("{} bytes, {:?}", meta.len(), meta.modified().ok())).unwrap_or_default()
}
