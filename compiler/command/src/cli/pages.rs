//! Arguments of `csdfc completions` and `csdfc man`, and what they are about: the command line itself.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;

/// Arguments of `csdfc completions`.
#[derive(Debug, Clone, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `csdfc man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// The folder to write them into
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
}

/// The script with which a shell completes csdfc's arguments.
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "csdfc", &mut script);
    script
}

/// Writes the manual pages, one for each command, into a folder.
///
/// # Errors
/// When one cannot be written.
pub fn manual(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(Cli::command(), folder)
}
