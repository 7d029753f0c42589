//! The network: a typed graph of layers, each with one output tensor, in topological order.
//!
//! The ONNX importer and the built-in architectures both make one through [`Network::add`]. Passes rewrite it. Lowering
//! to dataflow reads it. Each layer has one output, so a tensor and the layer that makes it share an id. A `Split`
//! becomes several layers, a slice for each of its outputs that is read. Views (reshape, flatten, squeeze, identity,
//! dropout) are not layers. An [`Operand`] says in which shape a layer sees the tensor that it reads.
//!
//! ```
//! use csdfc_network::{Layer, Network, Operand};
//! use csdfc_plan::operator::{ElementWise, Function, Input, InputElement, Operator};
//! use csdfc_plan::shape::Shape;
//!
//! let image = Shape::image(3, 32, 32);
//! let layer = |name: &str, operator, inputs| Layer {
//!     name: name.into(),
//!     onnx_nodes: Vec::new(),
//!     operator,
//!     inputs,
//!     parameters: Vec::new(),
//!     output: name.into(),
//!     shape: image.clone(),
//!     primitive: None,
//!     quantization: None,
//! };
//! let mut network = Network::default();
//! let input = Operator::Input(Input { element: InputElement::F32, camera: None });
//! let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
//! let x = network.add(layer("x", input, vec![]));
//! let y = network.add(layer("relu", relu, vec![Operand { layer: x, shape: image.clone() }]));
//! assert_eq!(network.readers(), [vec![y], vec![]]);
//! assert_eq!((network.layer(y).rows(), network.layer(y).row_bytes()), (32, 3 * 32 * 4));
//! ```

pub mod component;
pub mod operators;
pub mod pass;
pub mod sharing;
pub mod state;
pub mod stream;
pub mod suggest;
pub mod weights;

use std::borrow::Cow;

use csdfc_plan::format::{Element, Format, Layout, Quantization};
use csdfc_plan::operator::{InputElement, Operator};
use csdfc_plan::plan::Stream;
use csdfc_plan::shape::Shape;
use csdfc_runtime::ParameterError;
use csdfc_runtime::bind::Primitive;

use self::state::State;
use self::weights::Weights;

/// Index of a layer, and of the tensor that it produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerId(pub usize);

/// A CNN: layers in topological order. Network inputs are layers with [`Operator::Input`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Network {
    /// The layers; every operand of a layer is an earlier layer.
    pub layers: Vec<Layer>,
    /// The network's outputs, in the model's order.
    pub outputs: Vec<NetworkOutput>,
    /// The inputs that are outputs of the frame before.
    pub states: Vec<State>,
    /// What makes it a stream, of which a frame is a hop ([`stream`](mod@stream)).
    pub stream: Option<Stream>,
}

/// One layer and its output tensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Its name, which is unique. It is the name of its first ONNX node or, if the node has none, of its output.
    pub name: String,
    /// The ONNX nodes that it stands for.
    pub onnx_nodes: Vec<String>,
    /// What it computes.
    pub operator: Operator,
    /// The tensors that it reads, in the operator's order; constants are in `parameters`.
    pub inputs: Vec<Operand>,
    /// Weights, biases and other constants, in the order that the operator's documentation states.
    pub parameters: Vec<Weights>,
    /// Name of the tensor that it produces.
    pub output: String,
    /// Shape of that tensor.
    pub shape: Shape,
    /// The primitive that was chosen to compute it. `None` stands for the first primitive that does.
    pub primitive: Option<Primitive>,
    /// Which numbers the elements of that tensor stand for, if its primitive makes 8-bit integers.
    pub quantization: Option<Quantization>,
}

/// A tensor as one layer reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operand {
    /// The layer that produces it.
    pub layer: LayerId,
    /// The shape in which it is seen: the producer's own, or a view of it with as many elements.
    pub shape: Shape,
}

/// A network output: a tensor, perhaps seen through a view.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkOutput {
    /// Its name in the model.
    pub name: String,
    /// The tensor.
    pub operand: Operand,
    /// If the caller gets 8-bit integers: what they stand for. Otherwise it gets floats, or indices.
    pub integers: Option<Quantization>,
}

impl NetworkOutput {
    /// An output of floats or indices.
    pub fn new(name: impl Into<String>, operand: Operand) -> Self {
        NetworkOutput { name: name.into(), operand, integers: None }
    }
}

impl Network {
    /// Appends a layer and returns its id.
    pub fn add(&mut self, layer: Layer) -> LayerId {
        debug_assert!(layer.inputs.iter().all(|input| input.layer.0 < self.layers.len()));
        self.layers.push(layer);
        LayerId(self.layers.len() - 1)
    }

    /// Values of a parameter of a layer, in the order of the operator's documentation. After them come the scales of
    /// weights that its primitive keeps as the model's file has them.
    ///
    /// # Errors
    /// When there is no such parameter, or its values cannot be read.
    pub fn parameter(&self, layer: usize, parameter: usize) -> Result<Cow<'_, [f32]>, ParameterError> {
        let scales = self.layers.get(layer).filter(|layer| layer.parameters.len() == parameter);
        if let Some((_, scales)) = scales.and_then(pass::stored_weights) {
            return Ok(scales.into());
        }
        let weights = self.layers.get(layer).and_then(|layer| layer.parameters.get(parameter));
        let weights = weights.ok_or(ParameterError::Missing { parameter })?;
        weights.read().map_err(|error| ParameterError::Read { parameter, error })
    }

    /// The same network with its weights in memory ([`Weights::in_memory`]), for those who pack them several times.
    ///
    /// # Errors
    /// The name of a layer whose weights cannot be read, and why.
    pub fn in_memory(mut self) -> Result<Network, (String, std::io::Error)> {
        for layer in &mut self.layers {
            for weights in &mut layer.parameters {
                *weights = weights.in_memory().map_err(|error| (layer.name.clone(), error))?;
            }
        }
        Ok(self)
    }

    /// The layer of this id.
    pub fn layer(&self, id: LayerId) -> &Layer {
        &self.layers[id.0]
    }

    /// All ids, in topological order.
    pub fn ids(&self) -> impl Iterator<Item = LayerId> + use<> {
        (0..self.layers.len()).map(LayerId)
    }

    /// For each layer, the layers that read its tensor, ascending, each once.
    pub fn readers(&self) -> Vec<Vec<LayerId>> {
        let mut readers = vec![Vec::new(); self.layers.len()];
        for id in self.ids() {
            for operand in &self.layer(id).inputs {
                let list: &mut Vec<LayerId> = &mut readers[operand.layer.0];
                if list.last() != Some(&id) {
                    list.push(id);
                }
            }
        }
        readers
    }

    /// The same network with its layers in another topological order, which lists each once.
    pub fn reordered(mut self, order: &[LayerId]) -> Network {
        let mut place = vec![LayerId(0); order.len()];
        order.iter().enumerate().for_each(|(at, id)| place[id.0] = LayerId(at));
        let mut layers: Vec<(LayerId, Layer)> =
            place.iter().copied().zip(std::mem::take(&mut self.layers)).collect();
        layers.sort_by_key(|(at, _)| *at);
        let layers = layers.into_iter().map(|(_, layer)| layer).collect();
        let mut network = Network { layers, ..self };
        let operands = network.layers.iter_mut().flat_map(|layer| &mut layer.inputs);
        for operand in operands.chain(network.outputs.iter_mut().map(|output| &mut output.operand)) {
            operand.layer = place[operand.layer.0];
        }
        network
    }

    /// The layer of this name.
    pub fn find(&self, name: &str) -> Option<LayerId> {
        self.layers.iter().position(|layer| layer.name == name).map(LayerId)
    }

    /// Multiply-accumulates of one frame ([`operators::macs`]).
    pub fn macs(&self) -> u64 {
        let of = |layer: &Layer| operators::macs(&layer.operator, &layer.input_shapes(), &layer.shape);
        self.layers.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Elements of all weights and biases.
    pub fn parameters(&self) -> u64 {
        self.layers.iter().map(Layer::parameter_elements).sum()
    }

    /// Bytes of all weights and biases, in the precision of each layer.
    pub fn parameter_bytes(&self) -> u64 {
        self.layers.iter().map(Layer::parameter_bytes).sum()
    }
}

impl Layer {
    /// Whether it computes on 8-bit integers.
    pub fn is_of_integers(&self) -> bool {
        self.primitive.is_some_and(|primitive| primitive.elements() == [Element::U8; 2])
    }

    /// Whether this is a network input.
    pub fn is_input(&self) -> bool {
        matches!(self.operator, Operator::Input(_))
    }

    /// Elements of its weights, biases and other constants.
    pub fn parameter_elements(&self) -> u64 {
        self.parameters.iter().map(|weights| weights.elements() as u64).sum()
    }

    /// Bytes of its weights, biases and other constants, in the precision of its primitive.
    pub fn parameter_bytes(&self) -> u64 {
        // Only a chosen primitive keeps other elements than 32-bit floats.
        let elements = self.parameter_elements();
        self.primitive.map_or(elements * Element::F32.bytes(), |primitive| {
            let inputs: Vec<&Shape> = self.inputs.iter().map(|operand| &operand.shape).collect();
            primitive.parameter_bytes(&self.operator, &inputs, elements)
        })
    }

    /// The shapes in which it sees its inputs.
    pub fn input_shapes(&self) -> Vec<Shape> {
        self.inputs.iter().map(|operand| operand.shape.clone()).collect()
    }

    /// The primitive that computes it.
    pub fn primitive(&self) -> Primitive {
        let inputs: Vec<&Shape> = self.inputs.iter().map(|operand| &operand.shape).collect();
        self.primitive.unwrap_or_else(|| Primitive::new(&self.operator, &inputs))
    }

    /// Bytes of workspace that its primitive needs for one worker.
    pub fn workspace_bytes(&self) -> u64 {
        let Some(chosen) = self.primitive else {
            return Primitive::first_workspace_bytes(&self.operator, &self.shape);
        };
        let inputs: Vec<&Shape> = self.inputs.iter().map(|operand| &operand.shape).collect();
        chosen.workspace_bytes(&self.operator, &inputs, &self.shape)
    }

    /// How its output tensor lies in memory, and what its elements are.
    pub fn format(&self) -> Format {
        // Only a chosen primitive makes other layouts or elements.
        let element = if self.operator.makes_indices() { Element::I64 } else { Element::F32 };
        let first = Format { layout: Layout::Hwc, element };
        self.primitive.map_or(first, |primitive| primitive.makes(&self.operator))
    }

    /// Rows of its output tensor.
    pub fn rows(&self) -> usize {
        self.format().rows(&self.shape)
    }

    /// Bytes of one row of its output tensor.
    pub fn row_bytes(&self) -> u64 {
        let format = self.format();
        format.row_elements(&self.shape) as u64 * format.element.bytes()
    }

    /// Bytes of its whole output tensor.
    pub fn tensor_bytes(&self) -> u64 {
        self.rows() as u64 * self.row_bytes()
    }

    /// Whether it is an input that layers read in the caller's memory if the caller hands over the whole frame. Layers
    /// read floats there. Bytes are converted into a ring first.
    pub fn is_read_in_place(&self) -> bool {
        matches!(&self.operator, Operator::Input(input) if input.element == InputElement::F32)
    }

    /// Whether the caller holds its tensor and layers read it there. It must be an input that is read in place and
    /// delivered whole. `rows` is its number of rows per firing.
    pub fn is_held_by_caller(&self, rows: u64) -> bool {
        self.is_read_in_place() && rows >= self.rows() as u64
    }
}
