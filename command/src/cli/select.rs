//! The command line of `csdfc select`.

use std::path::PathBuf;

use clap::Args;
use csdfc::units::{self, Nanoseconds};
use csdfc_select::{Method, Quantity};

use super::{Format, values};

/// Arguments of `csdfc select`.
#[derive(Debug, Clone, Args)]
pub struct SelectArgs {
    /// The layers with what computes them, and the conversions between them; `-` for standard input
    #[arg(long, value_name = "FILE.json")]
    pub instance: PathBuf,
    /// What is minimised
    #[arg(long, value_parser = values::objective(), default_value = "time")]
    pub objective: Quantity,
    /// Most memory, summed over layers [default: the file's memory_budget, if --objective is time]
    #[arg(long, value_name = "SIZE", value_parser = units::parse)]
    pub mem: Option<u64>,
    /// Most memory of a layer
    #[arg(long, value_name = "SIZE", value_parser = units::parse)]
    pub workspace: Option<u64>,
    /// Most time, of layers and conversions: 5ms, 300us [default: the file's time_budget, unless --objective is time]
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<Nanoseconds>,
    /// Let layers that are no convolutions convert layouts for nothing, as in the PBQP paper
    #[arg(long)]
    pub pass_converts: bool,
    /// How the selection is made
    #[arg(long, value_parser = values::selection(), default_value = "exact")]
    pub method: Method,
    /// Print all trade-offs: of memory and time, or of workspace and time if --objective is workspace
    #[arg(long, conflicts_with = "method")]
    pub front: bool,
    /// Write the result to this file as JSON, or as RON if it ends in .ron; `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}
