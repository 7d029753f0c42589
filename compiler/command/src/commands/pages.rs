//! `csdfc completions` and `csdfc man`: the command line, for shells and for `man`.

use super::output;
use crate::cli::pages::{self, CompletionsArgs, ManArgs};
use crate::error::{Error, Outcome};

/// Prints the script of a shell.
///
/// # Errors
/// When it cannot be written.
pub fn completions(args: &CompletionsArgs) -> Result<Outcome, Error> {
    output::print(&String::from_utf8_lossy(&pages::completions(args.shell)))?;
    Ok(Outcome::Yes)
}

/// Writes the manual pages into a folder.
///
/// # Errors
/// When one cannot be written.
pub fn man(args: &ManArgs) -> Result<Outcome, Error> {
    pages::manual(&args.output).map_err(|error| Error::write(&args.output, error))?;
    Ok(Outcome::Yes)
}
