//! The graph under construction: names of tensors, nodes, constants and views.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_plan::format::Element;
use csdfc_plan::shape::{Order, Shape};
use rten_onnx::onnx::{
    AttributeProto, DataType, Dimension, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto,
    TypeProtoTensor, ValueInfoProto,
};

use super::{ExportError, MAX_BYTES, constants};
use crate::import::attribute::ints;
use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand};

/// A graph that grows.
#[derive(Default)]
pub(super) struct Graph {
    pub proto: GraphProto,
    /// Bytes of the constants.
    bytes: u64,
    tensors: Names,
    nodes: Names,
    /// Names of the layers' tensors, and their shapes.
    pub made: Vec<(String, Shape)>,
    /// Names of tensors seen in other shapes.
    views: BTreeMap<(LayerId, Shape), String>,
}

/// Names that are taken.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// The name itself, or with a number after it if it is taken.
    fn unique(&mut self, name: &str) -> String {
        let numbered = (2_u64..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.to_string()).chain(numbered).find(|name| !self.0.contains(name));
        let free = free.unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}

impl Graph {
    /// Names the tensors of all layers. A tensor that is a network output has the name of that output.
    pub fn name_tensors(&mut self, network: &Network) {
        self.tensors.0.extend(network.outputs.iter().map(|output| output.name.clone()));
        let inputs = network.layers.iter().filter(|layer| layer.is_input());
        self.tensors.0.extend(inputs.map(|layer| layer.name.clone()));
        for (id, layer) in network.ids().zip(&network.layers) {
            let whole = Operand { layer: id, shape: layer.shape.clone() };
            let is_it = |output: &&NetworkOutput| {
                output.operand == whole
                    && (output.integers.is_none() || layer.quantization == output.integers)
            };
            let outputs = network.outputs.iter().filter(is_it);
            let mut names = outputs.map(|output| &output.name);
            let name = match names.clone().find(|name| **name == layer.output).or_else(|| names.next()) {
                // Runtimes require that a node makes each output.
                _ if layer.is_input() => layer.name.clone(),
                Some(name) => name.clone(),
                None => self.tensors.unique(&layer.output),
            };
            self.made.push((name, layer.shape.clone()));
        }
    }

    /// The tensor of an operand in the shape in which it is seen.
    pub fn operand(&mut self, operand: &Operand) -> String {
        let (name, own) = self.made[operand.layer.0].clone();
        let seen = &operand.shape;
        if *seen == own {
            return name;
        }
        let key = (operand.layer, seen.clone());
        if let Some(view) = self.views.get(&key) {
            return view.clone();
        }
        let view = self.tensors.unique(&format!("{name}/view"));
        let node = self.nodes.unique(&view);
        if own.rank() == 4 && seen.rank() == 4 && own.order != seen.order {
            let perm = match own.order {
                Order::ChannelsFirst => [0, 2, 3, 1],
                Order::ChannelsLast => [0, 3, 1, 2],
            };
            self.node("Transpose", node, vec![name], view.clone(), vec![ints("perm", perm)]);
        } else {
            let shape = self.constant(constants::of_ints(&format!("{view}/shape"), &seen.dims));
            self.node("Reshape", node, vec![name, shape], view.clone(), Vec::new());
        }
        self.views.insert(key, view.clone());
        view
    }

    pub fn node(
        &mut self,
        operator: &str,
        name: String,
        input: Vec<String>,
        output: String,
        attribute: Vec<AttributeProto>,
    ) {
        self.proto.node.push(NodeProto {
            op_type: Some(operator.into()),
            name: Some(name),
            input,
            output: vec![output],
            attribute,
            ..NodeProto::default()
        });
    }

    /// Adds an output to the last node. Returns its name, which is like this one.
    pub fn another_output(&mut self, name: &str) -> String {
        let output = self.tensors.unique(name);
        self.proto.node.last_mut().into_iter().for_each(|node| node.output.push(output.clone()));
        output
    }

    /// Adds a constant, by its name or one like it.
    pub fn constant(&mut self, mut tensor: TensorProto) -> String {
        let name = self.tensors.unique(tensor.name.as_deref().unwrap_or_default());
        tensor.name = Some(name.clone());
        self.proto.initializer.push(tensor);
        name
    }

    /// Counts bytes of constants before they are made.
    pub fn charge(&mut self, bytes: usize) -> Result<(), ExportError> {
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > MAX_BYTES { Err(ExportError::TooLarge) } else { Ok(()) }
    }

    pub fn unique_tensor(&mut self, name: &str) -> String {
        self.tensors.unique(name)
    }

    pub fn unique_node(&mut self, name: &str) -> String {
        self.nodes.unique(name)
    }

    /// Gives the tensor of a node that no layer reads yet another name.
    pub fn rename(&mut self, made: &str, name: String) {
        let nodes = self.proto.node.iter_mut().rev();
        if let Some(output) = nodes.flat_map(|node| &mut node.output).find(|output| *output == made) {
            *output = name;
        }
    }
}

/// Type of the elements of a layer's tensor.
pub(super) fn element(layer: &Layer) -> DataType {
    match layer.format().element {
        Element::I64 => DataType::INT64,
        Element::U8 => DataType::UINT8,
        Element::F32 | Element::F16 => DataType::FLOAT,
    }
}

pub(super) fn value(name: &str, element: DataType, shape: &Shape) -> ValueInfoProto {
    let dim = |dim: &usize| Dimension { dim_value: Some(*dim as i64), dim_param: None };
    let shape = Some(TensorShapeProto { dim: shape.dims.iter().map(dim).collect() });
    let tensor_type = Some(TypeProtoTensor { elem_type: Some(element), shape });
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }),
    }
}
