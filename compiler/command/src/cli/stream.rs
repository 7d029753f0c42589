//! The options that make a CNN a stream.

use std::str::FromStr;

use clap::Args;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::{AppSpec, StreamSpec};

use crate::error::Error;

/// Options that make a CNN a stream.
#[derive(Debug, Clone, Default, Args)]
pub struct StreamArgs {
    /// The input never ends: its rows follow each other in time, and a frame is a hop, which takes the next rows and
    /// computes only what is new. AXIS is the dimension that counts rows. Repeat it for each input
    #[arg(long = "stream", value_name = "[CNN/]INPUT[=AXIS]")]
    pub inputs: Vec<StreamedInput>,
    /// Rows of a hop; the fewest that make whole rows of every tensor if it is not given
    #[arg(long, value_name = "ROWS", requires = "inputs")]
    pub hop: Option<usize>,
    /// Rows of the input over which layers look that need all of time, such as a global pool
    #[arg(long, value_name = "ROWS", requires = "inputs")]
    pub window: Option<usize>,
}

/// `[CNN/]INPUT[=AXIS]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamedInput {
    /// The input, perhaps `CNN/INPUT`.
    pub input: String,
    /// The dimension that counts rows.
    pub axis: Option<usize>,
}

impl FromStr for StreamedInput {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (input, axis) = match text.rsplit_once('=') {
            None => (text, None),
            Some((input, axis)) => {
                let axis = axis.trim().parse();
                (input, Some(axis.map_err(|_| "give an input and the dimension that counts rows: `x=2`")?))
            }
        };
        match input {
            "" => Err("give the name of an input: `x`, or `x=2`".into()),
            input => Ok(StreamedInput { input: input.into(), axis }),
        }
    }
}

impl StreamArgs {
    /// Writes the options over what the application file says.
    ///
    /// # Errors
    /// When an input does not say which CNN's it is.
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), Error> {
        for StreamedInput { input, axis } in &self.inputs {
            let (cnn, name) = super::cnn_of(spec, input, "--stream", "INPUT")?;
            let stream = cnn.stream.get_or_insert_with(StreamSpec::default);
            stream.inputs.insert(name, *axis);
            stream.hop = self.hop.or(stream.hop);
            stream.window = self.window.or(stream.window);
            origin.replaced.push(("stream", "--stream"));
        }
        Ok(())
    }
}
