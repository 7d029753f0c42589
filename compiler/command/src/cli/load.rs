//! The options that say how models are loaded.

use std::num::NonZeroUsize;
use std::str::FromStr;

use clap::Args;
use csdfc_input::app::Origin;
use csdfc_input::app::spec::AppSpec;
use csdfc_network::suggest::clip;
use csdfc_plan::part::ModelPart;

use crate::error::Error;

/// Options that change how models are loaded.
#[derive(Debug, Clone, Default, Args)]
pub struct LoadArgs {
    /// Keep batch norms and activations as layers of their own
    #[arg(long)]
    pub no_fuse: bool,
    /// Shape of an input whose dimensions the model leaves open, by its name, by that of one dimension (`height=224`), or by
    /// none where there is one input
    #[arg(long = "shape", value_name = "[[CNN/]INPUT=]1,3,224,224")]
    pub shapes: Vec<InputShape>,
    /// An input that is one number in every frame, such as a sampling rate. It becomes a constant
    #[arg(long = "value", value_name = "[CNN/]INPUT=NUMBER")]
    pub values: Vec<InputValue>,
    /// Frames that a call takes, one after another: arrays have them along their first dimension. By default the batch that
    /// the model states
    #[arg(long, value_name = "[CNN=]N")]
    pub batch: Vec<CnnBatch>,
    /// Take the part of the model that begins at these tensors: they become inputs, in place of what computes them. Their
    /// shapes are those that the model states, or of --shape
    #[arg(
        long = "inputs",
        id = "part_inputs",
        value_name = "[CNN/]TENSOR,...",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub inputs: Vec<String>,
    /// Take the part of the model that ends at these tensors: they are its outputs, in place of the model's own
    #[arg(
        long = "outputs",
        id = "part_outputs",
        value_name = "[CNN/]TENSOR,...",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub outputs: Vec<String>,
}

/// The tensors at which a part begins, or those at which it ends.
type EndOfPart = fn(&mut ModelPart) -> &mut Vec<String>;

/// `INPUT=1,3,224,224`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputShape {
    /// The input, perhaps `CNN/INPUT`.
    pub input: String,
    /// Its dimensions.
    pub dims: Vec<usize>,
}

/// `INPUT=16000`.
#[derive(Debug, Clone, PartialEq)]
pub struct InputValue {
    /// The input, perhaps `CNN/INPUT`.
    pub input: String,
    /// The number.
    pub value: f64,
}

/// `CNN=4`, or `4` for all CNNs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CnnBatch {
    /// The CNN, if one is named.
    pub cnn: Option<String>,
    /// Its frames.
    pub batch: NonZeroUsize,
}

impl LoadArgs {
    /// Writes the options over what the application file says.
    ///
    /// # Errors
    /// When a shape does not say which CNN's input it is, or when a batch names no CNN that there is.
    pub fn apply(&self, spec: &mut AppSpec, origin: &mut Origin) -> Result<(), Error> {
        if self.no_fuse {
            spec.fuse = false;
        }
        for shape in &self.shapes {
            let (cnn, input) = super::cnn_of(spec, &shape.input, "--shape", "INPUT=…")?;
            cnn.shapes.insert(input, shape.dims.clone());
            origin.replaced.push(("shapes", "--shape"));
        }
        for InputValue { input, value } in &self.values {
            let (cnn, input) = super::cnn_of(spec, input, "--value", "INPUT=…")?;
            cnn.values.insert(input, *value);
            origin.replaced.push(("values", "--value"));
        }
        for CnnBatch { cnn, batch } in &self.batch {
            let is_meant = |name: String| cnn.as_ref().is_none_or(|meant| *meant == name);
            let mut meant = spec.cnns.iter_mut().filter(|cnn| is_meant(cnn.name())).peekable();
            if meant.peek().is_none() {
                return Err(Error::Input {
                    message: format!(
                        "--batch {}={batch}: no such CNN",
                        clip(cnn.as_deref().unwrap_or_default())
                    ),
                    help: Some(
                        "say how many frames each CNN takes: --batch CNN=4, or --batch 4 for all".into(),
                    ),
                });
            }
            meant.for_each(|cnn| cnn.batch = Some(*batch));
            origin.replaced.push(("batch", "--batch"));
        }
        let ends: [(_, _, EndOfPart); 2] = [
            (&self.inputs, "--inputs", |part| &mut part.inputs),
            (&self.outputs, "--outputs", |part| &mut part.outputs),
        ];
        for (tensors, option, end) in ends {
            for tensor in tensors {
                end(&mut super::cnn_of(spec, tensor, option, "TENSOR")?.0.part).clear();
            }
            for tensor in tensors {
                let (cnn, tensor) = super::cnn_of(spec, tensor, option, "TENSOR")?;
                end(&mut cnn.part).push(tensor);
                origin.replaced.push(("part", option));
            }
        }
        Ok(())
    }
}

impl FromStr for InputShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "give an input and its dimensions: `image=1,3,224,224`".to_string();
        // Without a name it is the only input's.
        let (input, dims) = match text.rsplit_once('=') {
            Some(("", _)) => return Err(wrong()),
            Some(named) => named,
            None => ("", text),
        };
        let dims = dims.split([',', 'x']).map(|dim| dim.trim().parse().ok().filter(|dim| *dim > 0));
        let dims = dims.collect::<Option<Vec<usize>>>().ok_or_else(wrong)?;
        Ok(InputShape { input: input.into(), dims })
    }
}

impl FromStr for CnnBatch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (cnn, batch) = match text.rsplit_once('=') {
            Some((cnn, batch)) => (Some(cnn.to_owned()), batch),
            None => (None, text),
        };
        let batch = batch.trim().parse().map_err(|_| "give a number of frames: `4`, or `CNN=4`")?;
        Ok(CnnBatch { cnn, batch })
    }
}

impl FromStr for InputValue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = text.rsplit_once('=').filter(|(input, _)| !input.is_empty());
        let number = named.and_then(|(input, number)| Some((input, number.trim().parse().ok()?)));
        match number.filter(|(_, value): &(_, f64)| value.is_finite()) {
            Some((input, value)) => Ok(InputValue { input: input.into(), value }),
            None => Err("give an input and its number: `sr=16000`".into()),
        }
    }
}
