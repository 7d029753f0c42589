//! The command line of `csdfc select`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use csdfc_input::app::Origin;
use csdfc_input::app::spec::AppSpec;
use csdfc_input::device;
use csdfc_input::units::{self, Nanoseconds};
use csdfc_select::{Method, Quantity};

use super::load::LoadArgs;
use super::{Format, apply_max_primitive_error, values};

/// What makes no sense with a table of costs.
const OF_APPLICATIONS: [&str; 8] =
    ["cnn", "device", "threads", "max_primitive_error", "no_fuse", "shapes", "instance_out", "plan_out"];

/// Arguments of `csdfc select`.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("source").required(true).args(["app", "instance"]))]
pub struct SelectArgs {
    /// An application file, `-` for one on standard input, FILE.onnx, FILE.tflite, or builtin:NAME: its layers on a device
    #[arg(value_name = "APP|MODEL")]
    pub app: Option<String>,
    /// A table of costs in place of an application; `-` for standard input
    #[arg(long, value_name = "FILE.json", conflicts_with_all = OF_APPLICATIONS)]
    pub instance: Option<PathBuf>,
    /// Which of the application's CNNs, if it has several
    #[arg(long, value_name = "NAME")]
    pub cnn: Option<String>,
    /// Name or path of the device profile
    #[arg(long, value_name = "NAME|FILE")]
    pub device: Option<String>,
    /// Workers that share each convolution
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Largest error of a primitive, as a share of the largest sum of absolute products: 1e-4 by default
    #[arg(long, value_name = "SHARE")]
    pub max_primitive_error: Option<f64>,
    /// Options of the models.
    #[command(flatten)]
    pub load: LoadArgs,
    /// Write the application's table of costs to this file, `-` for standard output, and select nothing
    #[arg(long, value_name = "FILE.json")]
    pub instance_out: Option<PathBuf>,
    /// Write a plan that runs the selection to this file, each layer in one firing; `-` for standard output
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["front", "pass_converts", "instance_out"])]
    pub plan_out: Option<PathBuf>,
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

impl SelectArgs {
    /// Writes the options over what the application file says.
    ///
    /// # Errors
    /// As [`LoadArgs::apply`].
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), crate::error::Error> {
        self.load.apply(spec, origin)?;
        apply_max_primitive_error(self.max_primitive_error, spec, origin);
        if let Some(threads) = self.threads {
            spec.threads = threads;
            origin.replaced.push(("threads", "--threads"));
        }
        if let Some(device) = &self.device {
            spec.device = Some(device::from_here(device));
        }
        Ok(())
    }
}
