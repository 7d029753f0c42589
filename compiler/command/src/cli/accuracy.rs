//! The options that limit the error of a plan, and that say on which frames it is measured.

use std::path::PathBuf;

use clap::Args;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::AppSpec;
use csdfc_runtime::file_name::file_name;

use crate::error::Error;

/// What may be lost, and on which frames that is measured.
#[derive(Debug, Clone, Args)]
pub struct AccuracyArgs {
    /// Largest error of an output that precision auto may cause, relative to fp32: 1e-2 by default
    #[arg(long, value_name = "ERROR")]
    pub max_error: Option<f64>,
    /// Frames on which csdfc measures that error, or folders of frames, as `csdfc quantize` takes them. If several CNNs
    /// have precision auto, give a folder that has a folder for each of these CNNs
    #[arg(long, value_name = "FILE.npy|DIR", num_args = 1..)]
    pub calibrate: Vec<PathBuf>,
    /// Measure that error on N random frames, drawn by --seed: at most 4 by default. Frames from real use are better
    #[arg(long, value_name = "N", conflicts_with = "calibrate", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub random: Option<u64>,
}

impl AccuracyArgs {
    /// Writes the options over what the application file says of the CNNs with precision auto.
    ///
    /// # Errors
    /// When an option is given and no CNN has precision auto.
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), Error> {
        if !spec.has_auto_precision() {
            let given = [
                ("--max-error", self.max_error.is_some()),
                ("--calibrate", !self.calibrate.is_empty()),
                ("--random", self.random.is_some()),
            ];
            if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
                return Err(Error::Input {
                    message: format!(
                        "{option} is for CNNs with precision auto, and the application has none"
                    ),
                    help: Some("add --precision auto".into()),
                });
            }
            return Ok(());
        }
        if self.max_error.is_some() {
            origin.replaced.push(("max_error", "--max-error"));
        }
        let several = spec.cnns.iter().filter(|cnn| cnn.has_auto_precision()).count() > 1;
        for cnn in spec.cnns.iter_mut().filter(|cnn| cnn.has_auto_precision()) {
            let (name, accuracy) = (cnn.name(), &mut cnn.accuracy);
            accuracy.max_error = self.max_error.unwrap_or(accuracy.max_error);
            if !self.calibrate.is_empty() {
                let path = |path: &PathBuf| {
                    let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                    if several { path.join(file_name(&name)) } else { path }
                };
                (accuracy.calibrate, accuracy.random) = (self.calibrate.iter().map(path).collect(), None);
            }
            if self.random.is_some() {
                (accuracy.calibrate, accuracy.random) = (Vec::new(), self.random);
            }
        }
        Ok(())
    }
}
