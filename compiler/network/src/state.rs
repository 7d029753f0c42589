//! State: inputs that are outputs of the frame before.
//!
//! Some models keep nothing from frame to frame themselves. What a recurrent network remembers, or the rows that a
//! convolution still needs, go out as an output, and the caller hands them back as an input of the next frame. Once such a
//! pair is bound, the network keeps it: the caller sees neither.
//!
//! ```
//! use csdfc_network::state::bind;
//! use csdfc_network::{Layer, Network, NetworkOutput, Operand};
//! use csdfc_plan::operator::{Binary, BinaryFunction, Input, InputElement, Operator};
//! use csdfc_plan::shape::Shape;
//!
//! // A sum over all frames: sum_out = sum_in + x.
//! let row = Shape::new([1, 8]);
//! let layer = |name: &str, operator, inputs| Layer {
//!     name: name.into(),
//!     onnx_nodes: Vec::new(),
//!     operator,
//!     inputs,
//!     parameters: Vec::new(),
//!     output: name.into(),
//!     shape: row.clone(),
//!     primitive: None,
//!     quantization: None,
//! };
//! let mut network = Network::default();
//! let input = || Operator::Input(Input { element: InputElement::F32, camera: None });
//! let reads = |layer| Operand { layer, shape: row.clone() };
//! let (x, sum_in) = (network.add(layer("x", input(), vec![])), network.add(layer("sum_in", input(), vec![])));
//! let add = Operator::Binary(Binary { function: BinaryFunction::Add, constant: None, activation: None });
//! let sum = network.add(layer("add", add, vec![reads(sum_in), reads(x)]));
//! for name in ["y", "sum_out"] {
//!     network.outputs.push(NetworkOutput::new(name, reads(sum)));
//! }
//!
//! let network = bind(network, &[("sum_out".into(), "sum_in".into())])?;
//! assert!(network.state_of_input("sum_in").is_some());
//! assert!(network.callers_outputs().map(|output| &output.name).eq(["y"]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_plan::operator::{InputElement, Operator, Transpose};
use csdfc_plan::shape::Shape;

use crate::pass::names::Names;
use crate::{Layer, Network, NetworkOutput, Operand, suggest};

/// An input and an output that the network keeps between frames. In each frame, the input is what the output was in the
/// frame before.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The name of the input's layer.
    pub input: String,
    /// The name of the output.
    pub output: String,
    /// What all elements of the input are in the first frame.
    pub initial: f32,
}

/// Why an output cannot be an input of the next frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// There is no such output.
    #[error("the model has no output `{output}`")]
    NoOutput {
        /// The name given.
        output: String,
        /// Which outputs there are.
        known: String,
    },
    /// There is no such input.
    #[error("the model has no input `{input}`")]
    NoInput {
        /// The name given.
        input: String,
        /// Which inputs there are.
        known: String,
    },
    /// An input or an output is in two pairs.
    #[error("`{name}` is in two states")]
    Twice {
        /// The input or output.
        name: String,
    },
    /// Their shapes differ.
    #[error("output `{output}` of shape {} cannot be input `{input}` of shape {} in the next frame", shapes[0], shapes[1])]
    Shapes {
        /// The output.
        output: String,
        /// The input.
        input: String,
        /// Their shapes.
        shapes: Box<[Shape; 2]>,
        /// The inputs of the output's shape.
        fitting: Vec<String>,
    },
    /// The input takes the bytes of a camera.
    #[error("input `{input}` takes bytes, and output `{output}` has floats")]
    Bytes {
        /// The input.
        input: String,
        /// The output.
        output: String,
    },
    /// Nothing is left for the caller.
    #[error("every {what} of the model would be kept, and none is left for the caller")]
    NothingLeft {
        /// `input` or `output`.
        what: &'static str,
    },
    /// The output has indices.
    #[error("output `{output}` has integers, and input `{input}` takes floats")]
    Integers {
        /// The output.
        output: String,
        /// The input.
        input: String,
    },
}

impl StateError {
    /// What would work.
    pub fn help(&self) -> Option<String> {
        match self {
            StateError::NoOutput { known, .. } | StateError::NoInput { known, .. } => Some(known.clone()),
            StateError::Shapes { fitting, shapes, .. } if fitting.is_empty() => {
                Some(format!("no input has the shape {}", shapes[0]))
            }
            StateError::Shapes { fitting, shapes, .. } => {
                Some(format!("the inputs of shape {} are {}", shapes[0], fitting.join(", ")))
            }
            StateError::Bytes { .. } => Some("leave out `inputs` of this input".into()),
            StateError::Twice { .. } | StateError::NothingLeft { .. } | StateError::Integers { .. } => None,
        }
    }
}

impl Network {
    /// The state that an input is, by the name of its layer.
    pub fn state_of_input(&self, layer: &str) -> Option<&State> {
        self.states.iter().find(|state| state.input == layer)
    }

    /// The outputs that the caller gets: all but those of states.
    pub fn callers_outputs(&self) -> impl Iterator<Item = &NetworkOutput> {
        self.outputs.iter().filter(|output| self.states.iter().all(|state| state.output != output.name))
    }

    /// Whether the tensor of a layer is an input of the next frame.
    pub fn is_kept(&self, layer: crate::LayerId) -> bool {
        let is = |output: &NetworkOutput| output.operand.layer == layer;
        self.states.iter().any(|state| self.outputs.iter().any(|o| o.name == state.output && is(o)))
    }
}

/// The network that keeps these pairs of an output and an input from frame to frame, beside those that it keeps already.
/// Names are those of the model. In the first frame the inputs are 0.
///
/// # Errors
/// Why a pair cannot be one; [`StateError::help`] says what would work.
pub fn bind(mut network: Network, pairs: &[(String, String)]) -> Result<Network, StateError> {
    for (output, input) in pairs {
        let state = pair(&network, output, input)?;
        network.states.push(state);
    }
    let is_left = |layer: &Layer| layer.is_input() && network.state_of_input(&layer.name).is_none();
    if !pairs.is_empty() && !network.layers.iter().any(is_left) {
        return Err(StateError::NothingLeft { what: "input" });
    }
    if !pairs.is_empty() && network.callers_outputs().next().is_none() {
        return Err(StateError::NothingLeft { what: "output" });
    }
    // In the order of inputs, whatever the order in which they are given.
    let mut states = std::mem::take(&mut network.states);
    states.sort_by_key(|state| network.find(&state.input));
    network.states = states;
    Ok(in_order_of_inputs(network))
}

fn pair(network: &Network, output: &str, input: &str) -> Result<State, StateError> {
    let mut inputs = network.layers.iter().filter(|layer| layer.is_input());
    let outputs = || network.outputs.iter().map(|output| output.name.as_str());
    let Some(to) = network.outputs.iter().find(|known| known.name == output) else {
        let known = suggest::help(output, "its outputs are", outputs());
        return Err(StateError::NoOutput { output: output.into(), known });
    };
    let Some(from) = inputs.clone().find(|layer| layer.name == input || layer.output == input) else {
        let known = suggest::help(input, "its inputs are", inputs.map(|layer| layer.name.as_str()));
        return Err(StateError::NoInput { input: input.into(), known });
    };
    let names = [&from.name, &to.name].map(Clone::clone);
    for state in &network.states {
        let twice = [(&state.input, &names[0]), (&state.output, &names[1])];
        if let Some((name, _)) = twice.into_iter().find(|(known, name)| known == name) {
            return Err(StateError::Twice { name: name.clone() });
        }
    }
    let [input, output] = names;
    if matches!(&from.operator, Operator::Input(input) if input.element != InputElement::F32) {
        return Err(StateError::Bytes { input, output });
    }
    if network.layer(to.operand.layer).operator.makes_indices() {
        return Err(StateError::Integers { output, input });
    }
    if to.operand.shape.dims != from.shape.dims {
        let fits = |layer: &&Layer| layer.shape.dims == to.operand.shape.dims;
        let fitting = inputs.by_ref().filter(fits).map(|layer| layer.name.clone()).collect();
        let shapes = Box::new([to.operand.shape.clone(), from.shape.clone()]);
        return Err(StateError::Shapes { output, input, shapes, fitting });
    }
    Ok(State { input, output, initial: 0.0 })
}

/// Adds a layer for each output of a state whose elements do not lie as those of its input, or that is itself an input.
fn in_order_of_inputs(mut network: Network) -> Network {
    let mut names = Names::new(&network);
    for state in network.states.clone() {
        let places = (
            network.find(&state.input),
            network.outputs.iter().position(|output| output.name == state.output),
        );
        let (Some(input), Some(at)) = places else { continue };
        let (input, made) = (network.layer(input), network.outputs[at].operand.clone());
        let own = network.layer(made.layer);
        let lies_alike = made.shape == input.shape && own.shape.lies_as(&input.shape);
        if lies_alike && made.shape.lies_as(&own.shape) && !own.is_input() {
            continue;
        }
        let shape = input.shape.clone();
        let layer = Layer {
            name: names.unique(format!("{}_copy", state.output)),
            output: names.unique(format!("{}_copy", own.output)),
            onnx_nodes: Vec::new(),
            operator: Operator::Transpose(Transpose::new((0..shape.rank()).collect::<Vec<_>>())),
            inputs: vec![made],
            parameters: Vec::new(),
            shape: shape.clone(),
            primitive: None,
            quantization: None,
        };
        network.outputs[at].operand = Operand { layer: network.add(layer), shape };
    }
    network
}
