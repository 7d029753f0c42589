//! Turns a decoded model into a network: imports the nodes of its graph, and of the bodies and functions inside, in order.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use csdfc_plan::operator::Operator;
use rten_onnx::onnx::{AttributeProto, DataType, ModelProto, NodeProto, ValueInfoProto};

use super::ImportOptions;
use super::batch;
use super::builder::{Builder, MAX_LAYERS, NodeName};
use super::constant;
use super::error::{Fault, ImportError, OnnxError};
use super::graph::{Graph, Stored, first_output, label, names_read, with_part_before, without_dead_layers};
use super::inputs::{self, InputSeat};
use super::messages::{Function, Model, referred};
use super::node::{Node, Value};
use super::ops::{integers, is_onnx, layout, recurrent};
use csdfc_network::{Network, NetworkOutput};

/// The operators of ONNX that run bodies.
const WITH_BODIES: [&str; 2] = ["If", "Loop"];

/// Oldest operator set that is understood: the first with ONNX's broadcasting.
const OLDEST_OPSET: i64 = 7;

/// Newest operator set that there is.
const NEWEST_OPSET: i64 = 28;

/// The network of one frame of a model of this batch, and the inputs on which none of its outputs depends.
pub(super) fn build(
    model: &str,
    stated: &Model,
    folder: Option<&Path>,
    options: &ImportOptions,
    batch: usize,
) -> Result<(Network, Vec<String>), ImportError> {
    let Some(proto) = &stated.proto.graph else {
        return Err(ImportError::NotOnnx { model: model.to_string(), reason: OnnxError::NoGraph });
    };
    let opset = opset(model, &stated.proto)?;
    let graph = Graph::new(model, proto, &stated.sparse)?;
    if graph.nodes.is_empty() {
        return Err(graph.wrong("the graph has no nodes".into()));
    }
    let mut importer = Importer {
        model,
        folder,
        opset,
        functions: BTreeMap::new(),
        builder: Builder::new(Vec::new()),
        imported: 0,
        kept: Vec::new(),
    };
    for function in &stated.functions {
        importer.functions.entry([&function.domain, &function.name]).or_default().push(function);
    }
    let order = graph.order(&|_| false)?;
    graph.check_supported(&order, "", &|node| importer.inlines(node))?;
    let names: Vec<&str> = graph.inputs.iter().copied().collect();
    let stated =
        proto.input.iter().map(|info| (info.name.as_deref().unwrap_or_default(), inputs::declared(info)));
    let stated: Vec<_> = stated.filter(|(name, _)| graph.inputs.contains(name)).collect();
    let given = inputs::given(model, &stated, options, batch)?;

    let mut scope = Scope {
        values: BTreeMap::new(),
        around: None,
        path: String::new(),
        opset,
        attributes: &[],
        depth: 0,
    };
    let reads = graph.reads(&order);
    for info in &proto.input {
        let name = info.name.as_deref().unwrap_or_default();
        if let Some((name, channels_last)) = reads.get_key_value(name) {
            let seat = InputSeat { name, info, channels_last: *channels_last };
            let input = inputs::add(model, &mut importer.builder, &seat, &given)?;
            scope.values.insert(name, input);
        }
    }
    importer.nodes(&graph, &order, &mut scope)?;
    for name in &graph.outputs {
        batch::check_output(model, name, scope.values.get(name), batch)?;
    }
    let network = importer.network(&graph, &proto.output, scope)?;
    let unused = inputs::unused(&names, &network);
    Ok((network, unused))
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

/// A model on its way to a network.
pub(super) struct Importer<'a> {
    pub model: &'a str,
    folder: Option<&'a Path>,
    /// Version of ONNX's operators.
    pub opset: i64,
    /// The functions that the model defines, by domain and name.
    pub functions: BTreeMap<[&'a str; 2], Vec<&'a Function>>,
    pub builder: Builder,
    /// Nodes imported so far, those of bodies and functions as often as they run.
    imported: usize,
    /// Nodes of functions with the attributes of a call. They live as long as `builder`, which knows stored tensors by
    /// their places.
    kept: Vec<Rc<NodeProto>>,
}

/// What the names of a graph stand for.
pub(super) struct Scope<'s, 'a> {
    pub values: BTreeMap<&'a str, Value>,
    /// The graph around a body.
    pub around: Option<&'s Scope<'s, 'a>>,
    /// What the names of nodes begin with.
    pub path: String,
    /// Version of ONNX's operators.
    pub opset: i64,
    /// The attributes of the function's call.
    pub attributes: &'s [AttributeProto],
    /// How many bodies and functions this is within.
    pub depth: usize,
}

impl Scope<'_, '_> {
    /// What a name stands for, here or around.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).or_else(|| self.around.and_then(|around| around.get(name)))
    }
}

impl<'a> Importer<'a> {
    /// The function that a node calls, the first of those that have its name.
    fn function(&self, node: &NodeProto) -> Option<&'a Function> {
        let name = [&node.domain, &node.op_type].map(|name| name.as_deref().unwrap_or_default());
        self.functions.get(&name)?.first().copied()
    }

    /// Whether a node stands for nodes of a body or of a function.
    fn inlines(&self, node: &NodeProto) -> bool {
        let operator = node.op_type.as_deref().unwrap_or_default();
        self.function(node).is_some() || (is_onnx(node.domain.as_deref()) && WITH_BODIES.contains(&operator))
    }

    /// Counts nodes, or iterations of a loop.
    pub fn count(&mut self, nodes: usize) -> Result<(), Fault> {
        self.imported = self.imported.saturating_add(nodes);
        match self.imported {
            0..=MAX_LAYERS => Ok(()),
            _ => Err(Fault::new(format!("with what it runs, the model has more than {MAX_LAYERS} nodes"))
                .help("its loops or functions run too often to be unrolled; export the model without them")),
        }
    }

    /// Imports nodes of a graph. The scope has the values of its inputs.
    fn nodes(
        &mut self,
        graph: &Graph<'a>,
        order: &[usize],
        scope: &mut Scope<'_, 'a>,
    ) -> Result<(), ImportError> {
        for &index in order {
            let stated = &graph.nodes[index];
            self.count(1).map_err(|fault| self.error(stated, scope, fault))?;
            self.read(graph, names_read(stated), scope)?;
            let resolved = self.resolved(stated, scope);
            let proto = resolved.as_deref().unwrap_or(stated);
            let node = Node {
                proto,
                index: self.named(stated, scope),
                operator: stated.op_type.as_deref().unwrap_or_default(),
                opset: scope.opset,
                inputs: stated.input.iter().map(|name| scope.get(name).cloned()).collect(),
            };
            let first_layer = self.builder.network.layers.len();
            let outputs = match self.function(stated) {
                Some(function) => self.call(function, &node, scope)?,
                None if self.inlines(stated) => self.controlled(stated, &node, scope)?,
                None => batch::import(&mut self.builder, &node)
                    .map_err(|fault| self.error(stated, scope, fault))?,
            };
            for (name, value) in stated.output.iter().zip(outputs) {
                if !name.is_empty() {
                    if let Value::Tensor(tensor) = &value
                        && tensor.views.is_empty()
                    {
                        let named = format!("{}{name}", scope.path);
                        self.builder.name_tensor(tensor.operand.layer, &named, first_layer);
                    }
                    scope.values.insert(name, value);
                }
            }
        }
        Ok(())
    }

    /// The values of a body's or a function's outputs.
    pub fn inlined(
        &mut self,
        graph: &Graph<'a>,
        mut scope: Scope<'_, 'a>,
    ) -> Result<Vec<Value>, ImportError> {
        let around = scope.around;
        let order = graph.order(&|name| around.is_some_and(|around| around.get(name).is_some()))?;
        graph.check_supported(&order, &scope.path, &|node| self.inlines(node))?;
        self.nodes(graph, &order, &mut scope)?;
        self.read(graph, graph.outputs.iter().copied(), &mut scope)?;
        let value = |name: &&str| {
            let missing = || graph.wrong(format!("{}{name} has no value", scope.path));
            scope.get(name).cloned().ok_or_else(missing)
        };
        graph.outputs.iter().map(value).collect()
    }

    /// Reads those of these names that are stored tensors of the graph.
    fn read<'n>(
        &mut self,
        graph: &Graph<'a>,
        names: impl Iterator<Item = &'n str>,
        scope: &mut Scope<'_, 'a>,
    ) -> Result<(), ImportError> {
        for name in names {
            let Some((&name, stored)) = graph.initializers.get_key_value(name) else { continue };
            if scope.values.contains_key(name) {
                continue;
            }
            let value = match stored {
                Stored::Dense(tensor) => self.builder.stored(tensor, self.folder),
                Stored::Sparse(tensor) => constant::sparse(&mut self.builder, tensor, self.folder),
            };
            let value = value.map_err(|fault| ImportError::Tensor {
                model: self.model.to_string(),
                tensor: name.to_string(),
                reason: fault.reason,
                help: fault.help,
            })?;
            scope.values.insert(name, Value::Constant(value));
        }
        Ok(())
    }

    /// A node of a function whose attributes refer to those of the call, with these attributes.
    fn resolved(&mut self, node: &NodeProto, scope: &Scope<'_, 'a>) -> Option<Rc<NodeProto>> {
        node.attribute.iter().find_map(referred)?;
        let attribute = |attribute: &AttributeProto| match referred(attribute) {
            None => Some(attribute.clone()),
            Some(name) => {
                let mut given = scope.attributes.iter();
                let given = given.find(|given| given.name.as_deref() == Some(name))?;
                Some(AttributeProto { name: attribute.name.clone(), ..given.clone() })
            }
        };
        let resolved = Rc::new(NodeProto {
            domain: node.domain.clone(),
            name: node.name.clone(),
            input: node.input.clone(),
            output: node.output.clone(),
            op_type: node.op_type.clone(),
            attribute: node.attribute.iter().filter_map(attribute).collect(),
        });
        self.kept.push(Rc::clone(&resolved));
        Some(resolved)
    }

    /// The index by which the builder knows a node.
    fn named(&mut self, node: &NodeProto, scope: &Scope<'_, 'a>) -> usize {
        let output = first_output(node).unwrap_or_else(|| label(node));
        let [label, output] = [label(node), output].map(|name| format!("{}{name}", scope.path));
        self.builder.node(NodeName { label, output })
    }

    /// The network, with its outputs as the caller gets them.
    fn network(
        mut self,
        graph: &Graph<'a>,
        outputs: &'a [ValueInfoProto],
        mut scope: Scope<'_, 'a>,
    ) -> Result<Network, ImportError> {
        let mut of_bytes = BTreeMap::new();
        for info in outputs {
            let name = info.name.as_deref().unwrap_or_default();
            let (Some(Value::Tensor(tensor)), Some(&index)) =
                (scope.values.get(name).cloned(), graph.producers.get(name))
            else {
                continue;
            };
            let kind = info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref()?.elem_type);
            let proto = &graph.nodes[index];
            let index = self.named(proto, &scope);
            let node = Node { proto, index, operator: "", opset: self.opset, inputs: Vec::new() };
            let element = kind.unwrap_or(DataType::FLOAT);
            let (mut held, integers) = integers::output(&mut self.builder, &node, &tensor, element)
                .map_err(|fault| self.error(proto, &scope, fault))?;
            of_bytes.extend(integers.map(|integers| (name, integers)));
            if matches!(self.builder.network.layer(held.operand.layer).operator, Operator::Input(_)) {
                held = layout::copy(&mut self.builder, &node, &held)
                    .map_err(|fault| self.error(proto, &scope, fault))?;
            }
            scope.values.insert(name, Value::Tensor(held));
        }
        let mut network = self.builder.network;
        for name in &graph.outputs {
            // An output that is listed twice is one tensor of one name.
            if network.outputs.iter().all(|output| output.name != *name) {
                let operand = graph.output(name, &scope.values, &network)?;
                let integers = of_bytes.get(name).copied();
                network.outputs.push(NetworkOutput { name: name.to_string(), operand, integers });
            }
        }
        let network = recurrent::without_unread_memories(without_dead_layers(network));
        Ok(without_dead_layers(network))
    }

    pub fn error(&self, node: &NodeProto, scope: &Scope<'_, 'a>, fault: Fault) -> ImportError {
        let is_computed = |name: &&str| match scope.values.get(name) {
            Some(Value::Tensor(tensor)) => {
                !matches!(self.builder.network.layer(tensor.operand.layer).operator, Operator::Input(_))
            }
            _ => false,
        };
        let before: Vec<&str> = match scope.path.is_empty() {
            true => names_read(node).filter(is_computed).collect(),
            false => Vec::new(),
        };
        ImportError::Node {
            model: self.model.to_string(),
            node: format!("{}{}", scope.path, label(node)),
            operator: node.op_type.clone().unwrap_or_default(),
            reason: fault.reason,
            help: with_part_before(fault.help, &before),
        }
    }
}
