//! The command line of `csdfc report`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `csdfc report`.
#[derive(Debug, Clone, Args)]
pub struct ReportArgs {
    /// The plan, JSON or RON, or two plans to compare; `-` for standard input
    #[arg(value_name = "PLAN", num_args = 1..=2, required = true)]
    pub plans: Vec<PathBuf>,
    /// Draw this front, which `csdfc plan --pareto` saved, in place of the plan's own
    #[arg(long, value_name = "FILE.json")]
    pub front: Option<PathBuf>,
    /// Write the modelled frame to this file, as a trace that Perfetto and Chrome show, `-` for standard output; then no page
    /// is written unless --output asks for it
    #[arg(long, value_name = "FILE.json")]
    pub trace: Option<PathBuf>,
    /// Write the page to this file; by default, or for `-`, to standard output
    #[arg(short, long, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
}
