//! The command line of `csdfc pack`.

use std::path::PathBuf;

use clap::Args;
use csdfc_input::units;

use super::Format;
use super::budget::SearchBudget;

/// Arguments of `csdfc pack`.
#[derive(Debug, Clone, Args)]
pub struct PackArgs {
    /// The buffers, `-` for standard input
    #[arg(value_name = "FILE.csv")]
    pub file: PathBuf,
    /// Most bytes that the buffers may span
    #[arg(long, value_name = "SIZE", value_parser = units::parse)]
    pub capacity: Option<u64>,
    /// How long to search: a time (10s, 500ms), or a number of steps, which gives the same result on every machine
    #[arg(long, value_name = "TIME|STEPS")]
    pub budget: Option<SearchBudget>,
    /// Write the buffers with their offsets to this file, `-` for standard output
    #[arg(short, long, value_name = "FILE.csv")]
    pub output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}
