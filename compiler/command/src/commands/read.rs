//! Files that a command is given, or standard input in place of one.

use std::io::Read;
use std::path::{Path, PathBuf};

use csdfc_plan::plan::Plan;

use crate::error::Error;

/// Reads a plan from a file or, for `-`, from standard input. Returns the plan, the name of its source, and the folder
/// from which the paths of its models start.
pub(crate) fn read_plan(path: &Path) -> Result<(Plan, PathBuf, PathBuf), Error> {
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

/// Reads the text of a file or, for `-`, of standard input. Returns the text and the name of its source. `help` says
/// which file to give.
pub(super) fn read_text(path: &Path, help: &str) -> Result<(String, PathBuf), Error> {
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
