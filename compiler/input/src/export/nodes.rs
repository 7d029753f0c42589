//! The nodes of one layer, and their attributes.

use csdfc_plan::format::Quantization;
use rten_onnx::onnx::{AttributeProto, TensorProto};

use super::graph::Graph;
use super::{ExportError, constants};
use crate::import::attribute::int;
use csdfc_network::Layer;

/// The nodes that a layer becomes: a chain, whose last makes the layer's tensor.
pub(super) struct Nodes<'a> {
    graph: &'a mut Graph,
    pub layer: &'a Layer,
    /// Which numbers the operands' elements stand for, if they are 8-bit integers.
    pub read: Vec<Option<Quantization>>,
}

impl<'a> Nodes<'a> {
    pub fn new(graph: &'a mut Graph, layer: &'a Layer, read: Vec<Option<Quantization>>) -> Self {
        Nodes { graph, layer, read }
    }

    /// Adds a node. The first has the layer's name, and further ones have names like it. Returns the name of its
    /// tensor.
    pub fn node<I: Into<String>>(
        &mut self,
        operator: &str,
        inputs: impl IntoIterator<Item = I>,
        attributes: Vec<AttributeProto>,
    ) -> String {
        self.named(&self.layer.name, operator, inputs, attributes)
    }

    /// Adds a node of two outputs. Returns the names of their tensors.
    pub fn add_with_two_outputs<I: Into<String>>(
        &mut self,
        operator: &str,
        inputs: impl IntoIterator<Item = I>,
        attributes: Vec<AttributeProto>,
    ) -> [String; 2] {
        let first = self.node(operator, inputs, attributes);
        [first.clone(), self.graph.another_output(&first)]
    }

    fn named<I: Into<String>>(
        &mut self,
        name: &str,
        operator: &str,
        inputs: impl IntoIterator<Item = I>,
        attributes: Vec<AttributeProto>,
    ) -> String {
        let output = self.graph.unique_tensor(&format!("{name}/{operator}"));
        let name = self.graph.unique_node(name);
        let inputs = inputs.into_iter().map(Into::into).collect();
        self.graph.node(operator, name, inputs, output.clone(), attributes);
        output
    }

    /// Adds a constant and returns its name.
    pub fn constant(&mut self, tensor: TensorProto) -> String {
        self.graph.constant(tensor)
    }

    /// Adds one number as a constant.
    pub fn number(&mut self, what: &str, value: f32) -> String {
        let name = self.called(what);
        self.constant(constants::of_floats(&name, &[], &[value]))
    }

    /// Adds a list of integers as a constant.
    pub fn list(&mut self, what: &str, values: &[impl Copy + TryInto<i64>]) -> String {
        let name = self.called(what);
        self.constant(constants::of_ints(&name, values))
    }

    /// Adds a parameter of the layer as a constant: floats, or integers behind a DequantizeLinear.
    pub fn parameter(&mut self, index: usize, what: &str) -> Result<String, ExportError> {
        let Some(weights) = self.layer.parameters.get(index) else {
            return Err(self.refused(format!("it has no parameter {index}")));
        };
        self.graph.charge(constants::bytes(weights))?;
        let name = self.called(what);
        if let Some(integers) = constants::integers(&name, weights) {
            let inputs: Vec<String> =
                integers.tensors.into_iter().map(|tensor| self.graph.constant(tensor)).collect();
            let axis = integers.axis.map(|axis| int("axis", axis));
            return Ok(self.named(&name, "DequantizeLinear", inputs, axis.into_iter().collect()));
        }
        let failed = |source| ExportError::Weights { layer: self.layer.name.clone(), source };
        let values = weights.values().map_err(failed)?;
        Ok(self.constant(constants::of_floats(&name, &weights.dims, &values)))
    }

    /// The name of a constant of this layer.
    pub fn called(&self, what: &str) -> String {
        format!("{}.{what}", self.layer.name)
    }

    /// Why the layer cannot be written.
    pub fn refused(&self, reason: String) -> ExportError {
        ExportError::Layer { layer: self.layer.name.clone(), reason }
    }

    /// Gives the last tensor of the chain the name of the layer's.
    pub fn finish(self, made: &str, name: String) {
        self.graph.rename(made, name);
    }
}
