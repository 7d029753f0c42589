//! The options that make a CNN a stream.

use std::str::FromStr;

use clap::Args;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::{AppSpec, CnnSpec, StreamSpec};
use csdfc_network::suggest::clip;

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
            let prefix = |cnn: &CnnSpec| {
                let rest = input.strip_prefix(cnn.name().as_str())?.strip_prefix('/')?;
                Some(input.len() - rest.len())
            };
            let single = spec.cnns.len() == 1;
            let of = spec.cnns.iter().position(|cnn| prefix(cnn).is_some()).or(single.then_some(0));
            let Some(cnn) = of.and_then(|of| spec.cnns.get_mut(of)) else {
                return Err(Error::Input {
                    message: format!(
                        "--stream {}: the application has several CNNs, and none is named",
                        clip(input)
                    ),
                    help: Some("say which CNN's input it is: --stream CNN/INPUT".into()),
                });
            };
            let name = input[prefix(cnn).unwrap_or(0)..].to_owned();
            let stream = cnn.stream.get_or_insert_with(StreamSpec::default);
            stream.inputs.insert(name, *axis);
            stream.hop = self.hop.or(stream.hop);
            stream.window = self.window.or(stream.window);
            origin.replaced.push(("stream", "--stream"));
        }
        Ok(())
    }
}
