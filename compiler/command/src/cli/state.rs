//! The option that keeps an output as an input of the next frame.

use std::str::FromStr;

use clap::Args;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::AppSpec;

use crate::error::Error;

/// Options that keep state from frame to frame.
#[derive(Debug, Clone, Default, Args)]
pub struct StateArgs {
    /// In each frame, input IN is what output OUT was in the frame before, and 0 in the first. The caller sees neither.
    /// Repeat it for each pair
    #[arg(long = "state", value_name = "[CNN/]OUT:IN")]
    pub states: Vec<StatePair>,
}

/// `[CNN/]OUT:IN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatePair {
    /// The output, perhaps `CNN/OUTPUT`.
    pub output: String,
    /// The input.
    pub input: String,
}

impl FromStr for StatePair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Names may have a `:` of their own, as TensorFlow's do (`state:0`): the one in the middle parts them.
        let colons: Vec<usize> = text.match_indices(':').map(|(at, _)| at).collect();
        let middle = colons.get(colons.len() / 2).filter(|_| colons.len() % 2 == 1);
        match middle.map(|at| (&text[..*at], &text[at + 1..])) {
            Some((output, input)) if !output.is_empty() && !input.is_empty() => {
                Ok(StatePair { output: output.into(), input: input.into() })
            }
            _ => Err("give an output and the input that it is in the next frame: `h_out:h_in`".into()),
        }
    }
}

impl StateArgs {
    /// Writes the options over what the application file says.
    ///
    /// # Errors
    /// When an output does not say which CNN's it is.
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), Error> {
        for StatePair { output, input } in &self.states {
            let (cnn, name) = super::cnn_of(spec, output, "--state", "OUT:IN")?;
            cnn.states.insert(name, input.clone());
            origin.replaced.push(("states", "--state"));
        }
        Ok(())
    }
}
