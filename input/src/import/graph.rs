//! Turns a decoded model into a network: finds the nodes that matter, their order, and the value that every name stands
//! for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use csdfc_plan::operator::Operator;
use rten_onnx::onnx::{DataType, GraphProto, ModelProto, NodeProto, TensorProto};

use super::builder::{Builder, FROM_FIRST, MAX_LAYERS, NodeName};
use super::error::{Fault, ImportError, UnsupportedNode};
use super::inputs::{self, InputSeat};
use super::node::{Node, Tensor, Value};
use super::ops::{integers, is_onnx, layout};
use super::{ImportOptions, constant, ops};
use csdfc_network::{LayerId, Network, NetworkOutput, Operand};

/// Oldest operator set that is understood: the first with ONNX's broadcasting.
const OLDEST_OPSET: i64 = 7;

/// Newest operator set that there is.
const NEWEST_OPSET: i64 = 28;

/// The network of a model.
pub(super) fn build(
    model: &str,
    proto: &ModelProto,
    folder: Option<&Path>,
    options: &ImportOptions,
) -> Result<Network, ImportError> {
    let Some(graph) = &proto.graph else {
        return Err(ImportError::NotOnnx { model: model.to_string(), reason: "it has no graph".into() });
    };
    let opset = opset(model, proto)?;
    let graph = ModelGraph::new(model, graph)?;
    let order = graph.order()?;
    graph.check_supported(&order)?;
    let names: Vec<&str> = graph.inputs.iter().copied().collect();
    inputs::check_names(model, &names, options)?;

    let name = |node: &NodeProto| NodeName {
        label: label(node).to_string(),
        output: first_output(node).unwrap_or_else(|| label(node)).to_string(),
    };
    let mut builder = Builder::new(graph.nodes.iter().map(name).collect());
    let reads = graph.reads(&order);
    let mut values: BTreeMap<&str, Value> = BTreeMap::new();
    for info in &graph.proto.input {
        let name = info.name.as_deref().unwrap_or_default();
        if let Some((name, channels_last)) = reads.get_key_value(name) {
            let seat = InputSeat { name, info, channels_last: *channels_last };
            values.insert(name, Value::Tensor(inputs::add(model, &mut builder, &seat, options)?));
        }
    }
    for &index in &order {
        let proto = &graph.nodes[index];
        for name in proto.input.iter().filter(|name| !name.is_empty()) {
            if let Some(tensor) = graph.initializers.get(name.as_str())
                && !values.contains_key(name.as_str())
            {
                let value =
                    constant::read(tensor, folder).map_err(|fault| graph.tensor_error(name, fault))?;
                values.insert(name, Value::Constant(value));
            }
        }
        let inputs = proto.input.iter().map(|name| values.get(name.as_str()).cloned()).collect();
        let operator = proto.op_type.as_deref().unwrap_or_default();
        let node = Node { proto, index, operator, opset, inputs };
        let first_layer = builder.network.layers.len();
        let outputs = ops::import(&mut builder, &node).map_err(|fault| graph.node_error(proto, fault))?;
        for (name, value) in proto.output.iter().zip(outputs) {
            if !name.is_empty() {
                if let Value::Tensor(tensor) = &value
                    && tensor.views.is_empty()
                {
                    builder.name_tensor(tensor.operand.layer, name, first_layer);
                }
                values.insert(name, value);
            }
        }
    }
    for info in &graph.proto.output {
        let name = info.name.as_deref().unwrap_or_default();
        let (Some(Value::Tensor(tensor)), Some(&index)) = (values.get(name), graph.producers.get(name))
        else {
            continue;
        };
        // The caller gets the integers as floats.
        let kind = info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref()?.elem_type);
        let proto = &graph.nodes[index];
        let node = Node { proto, index, operator: "", opset, inputs: Vec::new() };
        let is_signed = kind == Some(DataType::INT8);
        let held = integers::as_floats(&mut builder, &node, tensor, is_signed);
        let held = held.map_err(|fault| graph.node_error(proto, fault))?;
        let is_input = matches!(builder.network.layer(held.operand.layer).operator, Operator::Input(_));
        let copy = if is_input { layout::copy(&mut builder, &node, &held) } else { Ok(held) };
        values.insert(name, Value::Tensor(copy.map_err(|fault| graph.node_error(proto, fault))?));
    }
    let mut network = builder.network;
    for info in &graph.proto.output {
        let name = info.name.as_deref().unwrap_or_default();
        let operand = graph.output(name, &values, &network)?;
        network.outputs.push(NetworkOutput { name: name.to_string(), operand });
    }
    Ok(without_dead_layers(network))
}

fn opset(model: &str, proto: &ModelProto) -> Result<i64, ImportError> {
    let stated = proto.opset_import.iter().find(|set| is_onnx(set.domain.as_deref()));
    let version = stated.and_then(|set| set.version);
    let reason = match version {
        Some(version) if (OLDEST_OPSET..=NEWEST_OPSET).contains(&version) => return Ok(version),
        Some(version) if version > NEWEST_OPSET => format!("opset {version} is newer than csdfc knows"),
        Some(version) => format!("opset {version} is older than csdfc reads"),
        None => "it does not state its version of the ONNX operators".into(),
    };
    let help = format!("export it with an opset from {OLDEST_OPSET} to {NEWEST_OPSET}");
    Err(ImportError::Opset { model: model.to_string(), reason, help })
}

/// A node's name, or that of its first output.
fn label(node: &NodeProto) -> &str {
    let name = node.name.as_deref().filter(|name| !name.is_empty());
    name.or_else(|| first_output(node)).unwrap_or("?")
}

fn first_output(node: &NodeProto) -> Option<&str> {
    node.output.iter().map(String::as_str).find(|name| !name.is_empty())
}

/// The graph with its names looked up.
struct ModelGraph<'a> {
    model: &'a str,
    proto: &'a GraphProto,
    nodes: &'a [NodeProto],
    initializers: BTreeMap<&'a str, &'a TensorProto>,
    inputs: BTreeSet<&'a str>,
    /// The node that computes each name.
    producers: BTreeMap<&'a str, usize>,
}

impl<'a> ModelGraph<'a> {
    fn new(model: &'a str, proto: &'a GraphProto) -> Result<Self, ImportError> {
        let mut graph = ModelGraph {
            model,
            proto,
            nodes: &proto.node,
            initializers: BTreeMap::new(),
            inputs: BTreeSet::new(),
            producers: BTreeMap::new(),
        };
        if proto.output.is_empty() {
            return Err(graph.wrong("the graph has no outputs".into()));
        }
        if proto.node.is_empty() {
            return Err(graph.wrong("the graph has no nodes".into()));
        }
        for tensor in &proto.initializer {
            let name = tensor.name.as_deref().unwrap_or_default();
            if graph.initializers.insert(name, tensor).is_some() {
                return Err(graph.wrong(format!("two constants are named {name}")));
            }
        }
        for info in &proto.input {
            let name = info.name.as_deref().unwrap_or_default();
            // Models of IR version 3 list their constants as inputs too.
            if graph.initializers.contains_key(name) {
                continue;
            }
            if !graph.inputs.insert(name) {
                return Err(graph.wrong(format!("two inputs are named {name}")));
            }
        }
        for (index, node) in proto.node.iter().enumerate() {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                let taken = graph.inputs.contains(output.as_str())
                    || graph.initializers.contains_key(output.as_str())
                    || graph.producers.insert(output, index).is_some();
                if taken {
                    return Err(graph.wrong(format!("two tensors are named {output}")));
                }
            }
        }
        Ok(graph)
    }

    /// The nodes on which the outputs depend, in the model's order, except that each node comes after those on which it
    /// depends.
    fn order(&self) -> Result<Vec<usize>, ImportError> {
        let needed = self.needed()?;
        if needed.len() > MAX_LAYERS {
            return Err(self.wrong(format!("the graph has more than {MAX_LAYERS} nodes")));
        }
        let mut readers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut waits: BTreeMap<usize, usize> = BTreeMap::new();
        for &index in &needed {
            let mut count = 0;
            for producer in self.sources(index) {
                readers.entry(producer).or_default().push(index);
                count += 1;
            }
            waits.insert(index, count);
        }
        let mut ready: BTreeSet<usize> =
            waits.iter().filter(|(_, count)| **count == 0).map(|(index, _)| *index).collect();
        let mut order = Vec::with_capacity(needed.len());
        while let Some(index) = ready.pop_first() {
            order.push(index);
            waits.remove(&index);
            for reader in readers.get(&index).into_iter().flatten() {
                if let Some(count) = waits.get_mut(reader) {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert(*reader);
                    }
                }
            }
        }
        match waits.keys().next() {
            None => Ok(order),
            Some(stuck) => {
                let node = label(&self.nodes[self.on_cycle(*stuck, &waits)]);
                Err(self.wrong(format!("node {node} depends on its own output")))
            }
        }
    }

    /// A node on a cycle, found from a node that waits for one.
    fn on_cycle(&self, stuck: usize, waits: &BTreeMap<usize, usize>) -> usize {
        let mut seen = BTreeSet::new();
        let mut node = stuck;
        while seen.insert(node) {
            match self.sources(node).find(|source| waits.contains_key(source)) {
                Some(source) => node = source,
                None => break,
            }
        }
        node
    }

    /// The nodes that the outputs depend on.
    fn needed(&self) -> Result<BTreeSet<usize>, ImportError> {
        let mut needed = BTreeSet::new();
        let mut open: Vec<usize> = Vec::new();
        for info in &self.proto.output {
            let name = info.name.as_deref().unwrap_or_default();
            self.check_known(name, "the graph's outputs")?;
            open.extend(self.producers.get(name));
        }
        while let Some(index) = open.pop() {
            if !needed.insert(index) {
                continue;
            }
            let node = &self.nodes[index];
            for name in node.input.iter().filter(|name| !name.is_empty()) {
                self.check_known(name, label(node))?;
            }
            open.extend(self.sources(index));
        }
        Ok(needed)
    }

    /// The nodes that a node reads, once for each operand.
    fn sources(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        self.nodes[index].input.iter().filter_map(|name| self.producers.get(name.as_str()).copied())
    }

    fn check_known(&self, name: &str, reader: &str) -> Result<(), ImportError> {
        let known = self.producers.contains_key(name)
            || self.inputs.contains(name)
            || self.initializers.contains_key(name);
        if known { Ok(()) } else { Err(self.wrong(format!("no node computes {name}, which {reader} needs"))) }
    }

    fn check_supported(&self, order: &[usize]) -> Result<(), ImportError> {
        let mut unsupported: Vec<usize> = order.to_vec();
        unsupported.retain(|index| {
            let node = &self.nodes[*index];
            !ops::is_supported(node.domain.as_deref(), node.op_type.as_deref().unwrap_or_default())
        });
        if unsupported.is_empty() {
            return Ok(());
        }
        unsupported.sort_unstable();
        let nodes = unsupported.iter().map(|index| {
            let node = &self.nodes[*index];
            let operator = node.op_type.as_deref().unwrap_or("no operator");
            let operator = match node.domain.as_deref().filter(|domain| !is_onnx(Some(domain))) {
                Some(domain) => format!("{domain}.{operator}"),
                None => operator.to_string(),
            };
            UnsupportedNode { node: label(node).to_string(), operator }
        });
        Err(ImportError::Unsupported {
            model: self.model.to_string(),
            nodes: nodes.collect(),
            help: format!(
                "csdfc reads {} operators of ONNX: docs/guide/src/operators.md",
                ops::SUPPORTED.len()
            ),
        })
    }

    /// The inputs that are read. The flag says whether only Transposes to channels-first read the input.
    fn reads(&self, order: &[usize]) -> BTreeMap<&'a str, bool> {
        let to_first = FROM_FIRST.map(|axis| axis as i64);
        let mut reads = BTreeMap::new();
        for node in order.iter().map(|index| &self.nodes[*index]) {
            let perm = node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some("perm"));
            let transposes = node.op_type.as_deref() == Some("Transpose")
                && perm.is_some_and(|perm| perm.ints == to_first);
            for name in node.input.iter().filter(|name| self.inputs.contains(name.as_str())) {
                *reads.entry(name.as_str()).or_insert(true) &= transposes;
            }
        }
        reads
    }

    /// The operand that a network output is.
    fn output(
        &self,
        name: &str,
        values: &BTreeMap<&str, Value>,
        network: &Network,
    ) -> Result<Operand, ImportError> {
        let wrong = |reason: &str, help: &str| ImportError::Output {
            model: self.model.to_string(),
            output: name.to_string(),
            reason: reason.to_string(),
            help: help.to_string(),
        };
        match values.get(name) {
            Some(Value::Tensor(Tensor { operand, .. })) => {
                if matches!(network.layer(operand.layer).operator, Operator::Input(_)) {
                    return Err(wrong(
                        "it is an input of the network, with no layer between",
                        "remove it from the outputs",
                    ));
                }
                Ok(operand.clone())
            }
            Some(Value::Constant(_)) => {
                Err(wrong("it is a constant, whatever the input", "remove it from the outputs"))
            }
            None if self.inputs.contains(name) => Err(wrong(
                "it is an input of the network, with no layer between",
                "remove it from the outputs",
            )),
            None if self.initializers.contains_key(name) => {
                Err(wrong("it is a constant, whatever the input", "remove it from the outputs"))
            }
            None => Err(wrong(
                "csdfc does not compute this output of its node",
                "csdfc computes only the first output of a node, but all outputs of Split",
            )),
        }
    }

    fn node_error(&self, node: &NodeProto, fault: Fault) -> ImportError {
        ImportError::Node {
            model: self.model.to_string(),
            node: label(node).to_string(),
            operator: node.op_type.clone().unwrap_or_default(),
            reason: fault.reason,
            help: fault.help,
        }
    }

    fn tensor_error(&self, name: &str, fault: Fault) -> ImportError {
        ImportError::Tensor {
            model: self.model.to_string(),
            tensor: name.to_string(),
            reason: fault.reason,
            help: fault.help,
        }
    }

    fn wrong(&self, reason: String) -> ImportError {
        ImportError::Graph {
            model: self.model.to_string(),
            reason,
            help: "the model is damaged or was written wrongly; onnx.checker tells more".into(),
        }
    }
}

/// The network without the layers on which no output depends, for instance those that are read for their shape only.
pub(super) fn without_dead_layers(network: Network) -> Network {
    let mut live = vec![false; network.layers.len()];
    for output in &network.outputs {
        live[output.operand.layer.0] = true;
    }
    for id in (0..network.layers.len()).rev() {
        if live[id] {
            for input in &network.layers[id].inputs {
                live[input.layer.0] = true;
            }
        }
    }
    let mut ids = vec![LayerId(0); network.layers.len()];
    let mut kept = Network { layers: Vec::new(), outputs: network.outputs };
    for (id, mut layer) in network.layers.into_iter().enumerate() {
        if live[id] {
            for input in &mut layer.inputs {
                input.layer = ids[input.layer.0];
            }
            ids[id] = kept.add(layer);
        }
    }
    for output in &mut kept.outputs {
        output.operand.layer = ids[output.operand.layer.0];
    }
    kept
}
