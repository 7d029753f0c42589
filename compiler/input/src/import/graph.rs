//! Graphs of a model with their names looked up: the nodes that matter, and their order.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_plan::operator::Operator;
use rten_onnx::onnx::{GraphProto, NodeProto, TensorProto};

use super::builder::{CHANNELS_LAST_TO_FIRST, MAX_LAYERS};
use super::error::{ImportError, UnsupportedNode};
use super::messages::{Function, SparseTensor};
use super::node::{Tensor, Value};
use super::ops::{self, is_onnx};
use csdfc_network::{LayerId, Network, Operand};

/// A node's name, or that of its first output.
pub(super) fn label(node: &NodeProto) -> &str {
    let name = node.name.as_deref().filter(|name| !name.is_empty());
    name.or_else(|| first_output(node)).unwrap_or("?")
}

pub(super) fn first_output(node: &NodeProto) -> Option<&str> {
    node.output.iter().map(String::as_str).find(|name| !name.is_empty())
}

/// The names that a node reads: its operands, and what graphs among its attributes take from the graph around them.
pub(super) fn names_read(node: &NodeProto) -> impl Iterator<Item = &str> {
    let inner = node.attribute.iter().filter_map(|attribute| attribute.g.as_ref()).flat_map(captured);
    node.input.iter().map(String::as_str).filter(|name| !name.is_empty()).chain(inner)
}

/// Help for a model that cannot be planned as a whole, with the option for the part that ends at these tensors.
pub(super) fn with_part_before(help: Option<String>, tensors: &[&str]) -> Option<String> {
    let option = option_of_part("--outputs", tensors, "before");
    match help {
        Some(help) => Some(help + &option),
        None => option.strip_prefix("; ").map(str::to_owned),
    }
}

/// The same help, and if there is no part that ends before, the option for the part that begins at the tensors `after`.
pub(super) fn with_part(help: String, before: &[&str], after: &[&str]) -> String {
    match before {
        [] => help + &option_of_part("--inputs", after, "after"),
        before => help + &option_of_part("--outputs", before, "before"),
    }
}

/// A node of a graph, in an order in which nodes can be computed: what it reads and makes, of what is computed of the frame.
pub(super) struct Step<T> {
    /// Whether csdfc knows its operator.
    pub is_known: bool,
    pub reads: Vec<T>,
    pub makes: Vec<T>,
}

/// The tensors at which the part ends that depends on no node that csdfc does not know: what others read of it, and those of
/// the outputs that it makes.
pub(super) fn part_before<T: Ord + Copy>(steps: &[Step<T>], outputs: impl Iterator<Item = T>) -> Vec<T> {
    let (mut made, mut after) = (BTreeSet::<T>::new(), BTreeSet::<T>::new());
    let mut ends = Vec::new();
    for step in steps {
        if step.is_known && !step.reads.iter().any(|read| after.contains(read)) {
            made.extend(&step.makes);
        } else {
            ends.extend(step.reads.iter().filter(|read| made.contains(read)));
            after.extend(&step.makes);
        }
    }
    ends.extend(outputs.filter(|output| made.contains(output)));
    let mut seen = BTreeSet::new();
    ends.retain(|tensor| seen.insert(*tensor));
    ends
}

/// The tensors at which the part begins that leads to no node that csdfc does not know, in the order in which it reads them.
pub(super) fn part_after<T: Ord + Copy>(steps: &[Step<T>]) -> Vec<T> {
    let (mut leads, mut made) = (BTreeSet::<T>::new(), BTreeSet::<T>::new());
    let mut after = Vec::new();
    for step in steps.iter().rev() {
        if step.is_known && !step.makes.iter().any(|tensor| leads.contains(tensor)) {
            after.push(step);
        } else {
            leads.extend(&step.reads);
            made.extend(&step.makes);
        }
    }
    let mut begins: Vec<T> = after.into_iter().rev().flat_map(|step| step.reads.iter().copied()).collect();
    let mut seen = BTreeSet::new();
    begins.retain(|tensor| made.contains(tensor) && seen.insert(*tensor));
    begins
}

/// The option for the part that ends or begins at these tensors, unless they are too many for a head that was cut off.
fn option_of_part(option: &str, tensors: &[&str], place: &str) -> String {
    const MOST: usize = 8;
    let names = tensors.join(",");
    if !(1..=MOST).contains(&tensors.len()) || tensors.iter().any(|name| name.contains([',', '\''])) {
        return String::new();
    }
    // Names of TFLite have semicolons, which a shell would take for its own.
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:,".contains(c);
    let quote = if names.chars().all(is_plain) { "" } else { "'" };
    format!("; {option} {quote}{names}{quote} takes the part of the model {place} that")
}

/// The names that a graph reads and does not define.
fn captured(graph: &GraphProto) -> Vec<&str> {
    let infos = graph.input.iter().filter_map(|info| info.name.as_deref());
    let stored = graph.initializer.iter().filter_map(|tensor| tensor.name.as_deref());
    let made = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
    let own: BTreeSet<&str> = infos.chain(stored).chain(made).collect();
    let outputs = graph.output.iter().filter_map(|info| info.name.as_deref());
    // A list of names, since an opaque type cannot contain itself.
    let read: Vec<&str> = graph.node.iter().flat_map(|node| names_read(node).collect::<Vec<_>>()).collect();
    read.into_iter().chain(outputs).filter(|name| !own.contains(name)).collect()
}

/// A tensor that the model stores.
#[derive(Clone, Copy)]
pub(super) enum Stored<'a> {
    Dense(&'a TensorProto),
    Sparse(&'a SparseTensor),
}

/// The graph of a model, a body among the attributes of a node, or a function, with its names looked up.
pub(super) struct Graph<'a> {
    model: &'a str,
    pub nodes: &'a [NodeProto],
    pub initializers: BTreeMap<&'a str, Stored<'a>>,
    pub inputs: BTreeSet<&'a str>,
    pub outputs: Vec<&'a str>,
    /// The node that computes each name.
    pub producers: BTreeMap<&'a str, usize>,
}

impl<'a> Graph<'a> {
    pub fn new(
        model: &'a str,
        proto: &'a GraphProto,
        sparse: &'a [SparseTensor],
    ) -> Result<Self, ImportError> {
        let mut graph = Graph {
            model,
            nodes: &proto.node,
            initializers: BTreeMap::new(),
            inputs: BTreeSet::new(),
            outputs: proto.output.iter().map(|info| info.name.as_deref().unwrap_or_default()).collect(),
            producers: BTreeMap::new(),
        };
        if proto.output.is_empty() {
            return Err(graph.wrong("the graph has no outputs".into()));
        }
        let dense = proto.initializer.iter().map(|tensor| (&tensor.name, Stored::Dense(tensor)));
        let sparse = sparse.iter().map(|tensor| (&tensor.values.name, Stored::Sparse(tensor)));
        for (name, tensor) in dense.chain(sparse) {
            let name = name.as_deref().unwrap_or_default();
            if graph.initializers.insert(name, tensor).is_some() {
                return Err(graph.wrong(format!("two constants are named {name}")));
            }
        }
        let inputs = proto.input.iter().map(|info| info.name.as_deref().unwrap_or_default());
        graph.with_inputs(inputs)?.with_producers()
    }

    /// The graph of a function.
    pub fn of_function(model: &'a str, function: &'a Function) -> Result<Self, ImportError> {
        let graph = Graph {
            model,
            nodes: &function.nodes,
            initializers: BTreeMap::new(),
            inputs: BTreeSet::new(),
            outputs: function.outputs.iter().map(String::as_str).collect(),
            producers: BTreeMap::new(),
        };
        graph.with_inputs(function.inputs.iter().map(String::as_str))?.with_producers()
    }

    fn with_inputs(mut self, names: impl Iterator<Item = &'a str>) -> Result<Self, ImportError> {
        for name in names {
            // Models of IR version 3 list their constants as inputs too.
            if !self.initializers.contains_key(name) && !self.inputs.insert(name) {
                return Err(self.wrong(format!("two inputs are named {name}")));
            }
        }
        Ok(self)
    }

    fn with_producers(mut self) -> Result<Self, ImportError> {
        for (index, node) in self.nodes.iter().enumerate() {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                let taken = self.inputs.contains(output.as_str())
                    || self.initializers.contains_key(output.as_str())
                    || self.producers.insert(output, index).is_some();
                if taken {
                    return Err(self.wrong(format!("two tensors are named {output}")));
                }
            }
        }
        Ok(self)
    }

    /// The nodes on which the outputs depend, in the model's order, except that each node comes after those on which it
    /// depends. `is_around` says which names the graph may take from around it.
    pub fn order(&self, is_around: &dyn Fn(&str) -> bool) -> Result<Vec<usize>, ImportError> {
        let needed = self.needed(is_around)?;
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
    fn needed(&self, is_around: &dyn Fn(&str) -> bool) -> Result<BTreeSet<usize>, ImportError> {
        let mut needed = BTreeSet::new();
        let mut open: Vec<usize> = Vec::new();
        for name in &self.outputs {
            self.check_known(name, "the graph's outputs", is_around)?;
            open.extend(self.producers.get(name));
        }
        while let Some(index) = open.pop() {
            if !needed.insert(index) {
                continue;
            }
            let node = &self.nodes[index];
            for name in names_read(node) {
                self.check_known(name, label(node), is_around)?;
            }
            open.extend(self.sources(index));
        }
        Ok(needed)
    }

    /// The nodes that a node reads, once for each time.
    fn sources(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        names_read(&self.nodes[index]).filter_map(|name| self.producers.get(name).copied())
    }

    fn check_known(
        &self,
        name: &str,
        reader: &str,
        is_around: &dyn Fn(&str) -> bool,
    ) -> Result<(), ImportError> {
        let known = self.producers.contains_key(name)
            || self.inputs.contains(name)
            || self.initializers.contains_key(name)
            || is_around(name);
        if known { Ok(()) } else { Err(self.wrong(format!("no node computes {name}, which {reader} needs"))) }
    }

    /// Checks that csdfc knows the operators of these nodes. `is_known` says which ones it knows besides ONNX's.
    pub fn check_supported(
        &self,
        order: &[usize],
        path: &str,
        is_known: &dyn Fn(&NodeProto) -> bool,
    ) -> Result<(), ImportError> {
        let mut unsupported: Vec<usize> = order.to_vec();
        unsupported.retain(|index| {
            let node = &self.nodes[*index];
            let operator = node.op_type.as_deref().unwrap_or_default();
            !ops::is_supported(node.domain.as_deref(), operator) && !is_known(node)
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
            UnsupportedNode { node: format!("{path}{}", label(node)), operator }
        });
        let nodes: Vec<UnsupportedNode> = nodes.collect();
        let steps = if path.is_empty() { self.steps(order, &unsupported) } else { Vec::new() };
        let outputs = self.outputs.iter().copied();
        let is_fused = |node: &UnsupportedNode| node.operator.starts_with("com.microsoft");
        let help = match nodes.iter().any(is_fused) {
            true => "ONNX Runtime fused operators when it optimised the model; save it anew with \
                     SessionOptions.graph_optimization_level = ORT_ENABLE_BASIC, or use the model as it was exported"
                .into(),
            false => {
                format!("csdfc reads {} operators of ONNX: docs/guide/src/operators.md", ops::SUPPORTED.len())
            }
        };
        let help = with_part(help, &part_before(&steps, outputs), &part_after(&steps));
        Err(ImportError::Unsupported { model: self.model.to_string(), nodes, help })
    }

    /// The nodes that compute something of the frame, and these that are not supported.
    fn steps(&self, order: &[usize], unsupported: &[usize]) -> Vec<Step<&'a str>> {
        // Shapes are known beforehand, so what depends on them alone is a constant.
        let of_shapes = [Some("Shape"), Some("Size")];
        let mut is_frame: BTreeSet<&str> = self.inputs.clone();
        let mut steps = Vec::new();
        for &index in order {
            let (node, is_known) = (&self.nodes[index], !unsupported.contains(&index));
            let reads: Vec<&'a str> = names_read(node).filter(|name| is_frame.contains(name)).collect();
            if is_known && (reads.is_empty() || of_shapes.contains(&node.op_type.as_deref())) {
                continue;
            }
            let makes: Vec<&'a str> = node.output.iter().map(String::as_str).collect();
            is_frame.extend(&makes);
            steps.push(Step { is_known, reads, makes });
        }
        steps
    }

    /// The inputs that are read. The flag says whether only Transposes to channels-first read the input.
    pub fn reads(&self, order: &[usize]) -> BTreeMap<&'a str, bool> {
        let to_first = CHANNELS_LAST_TO_FIRST.map(|axis| axis as i64);
        let mut reads = BTreeMap::new();
        for node in order.iter().map(|index| &self.nodes[*index]) {
            let perm = node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some("perm"));
            let transposes = node.op_type.as_deref() == Some("Transpose")
                && perm.is_some_and(|perm| perm.ints == to_first);
            for name in names_read(node).filter(|name| self.inputs.contains(name)) {
                *reads.entry(name).or_insert(true) &= transposes;
            }
        }
        reads
    }

    /// The operand that a network output is.
    pub fn output(
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

    pub fn wrong(&self, reason: String) -> ImportError {
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
    let Network { layers, outputs, states, .. } = network;
    let mut kept = Network { outputs, states, ..Network::default() };
    for (id, mut layer) in layers.into_iter().enumerate() {
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
