//! The command line of `csdfc analyze`.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use csdf::Ratio;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::{AppSpec, RowsSpec};

use super::budget::SearchBudget;
use super::load::LoadArgs;
use super::{Format, rows};
use crate::error::Error;

/// Arguments of `csdfc analyze`.
#[derive(Debug, Clone, Args)]
pub struct AnalyzeArgs {
    /// A graph in SDF3 XML, an application file, `-` for either on standard input, FILE.onnx, FILE.tflite, or builtin:NAME
    #[arg(value_name = "FILE.xml|APP")]
    pub source: String,
    /// Find all trade-offs between storage and throughput
    #[arg(long)]
    pub pareto: bool,
    /// Find the order of firings on one processor, and the start times on many
    #[arg(long)]
    pub schedule: bool,
    /// Find the smallest storage for this throughput: `1/40`, `0.025`
    #[arg(long, value_name = "THROUGHPUT")]
    pub at: Option<Ratio>,
    /// Count storage in bytes, not in tokens
    #[arg(long)]
    pub bytes: bool,
    /// Limit of all analyses together: a time (`10s`), or a number of steps
    #[arg(long, value_name = "10s|N")]
    pub budget: Option<SearchBudget>,
    /// Most firings of an actor at a time, for a graph in SDF3 XML
    #[arg(long, value_name = "N", default_value = "1")]
    pub concurrency: NonZero<u64>,
    /// Rows per firing, for an application: no layer by parts, every layer row by row, or the rows of each layer
    /// [default: those of the file, or all]
    #[arg(long, value_name = "none|all|[CNN/]LAYER=R,…", value_parser = rows)]
    pub rows: Option<RowsSpec>,
    /// Options of the models.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Write the graph to this file as GraphViz DOT; `-` for standard output instead of the analyses
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Write the graph to this file as SDF3 XML; `-` for standard output instead of the analyses
    #[arg(long, value_name = "FILE", conflicts_with = "dot")]
    pub sdf3: Option<PathBuf>,
    /// What to print
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

impl AnalyzeArgs {
    /// Writes the options over what the application file says. If neither gives rows, every layer goes by rows, since
    /// without parts there is little to analyse.
    ///
    /// # Errors
    /// As [`LoadArgs::apply`].
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), Error> {
        self.load.apply(spec, origin)?;
        match &self.rows {
            Some(rows) => {
                spec.rows = rows.clone();
                origin.replaced.push(("rows", "--rows"));
            }
            None if spec.rows == RowsSpec::default() => spec.rows = RowsSpec::All,
            None => {}
        }
        Ok(())
    }
}
