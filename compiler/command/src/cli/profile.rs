//! The command line of `csdfc profile`.

use std::path::PathBuf;

use clap::Args;

use super::Format;
use super::load::LoadArgs;

/// Arguments of `csdfc profile`.
#[derive(Debug, Clone, Args)]
pub struct ProfileArgs {
    /// An application file, `-` for one on standard input, FILE.onnx, FILE.tflite, or builtin:NAME: its layers are measured
    #[arg(value_name = "APP|MODEL")]
    pub app: String,
    /// File of the device profile; by default that of this machine, which `plan --device host` reads
    #[arg(long, value_name = "FILE.ron")]
    pub device_out: Option<PathBuf>,
    /// Workers that share each firing; by default as the application says
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// How often each layer is timed with each primitive
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: u16,
    /// Measure only primitives whose name contains this, and the first one of each layer
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Also measure the store that this folder is in, from which streamed weights are read; 64 MiB are written there and removed
    #[arg(long, value_name = "FOLDER")]
    pub store: Option<PathBuf>,
    /// Measure nothing here, but write a crate into this folder that measures a board and prints its device profile
    #[arg(long, value_name = "DIR", conflicts_with_all = ["device_out", "store", "format"])]
    pub emit: Option<PathBuf>,
    /// Options of the models.
    #[command(flatten)]
    pub load: LoadArgs,
    /// What to print: a table of the layers, or the device profile
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}
