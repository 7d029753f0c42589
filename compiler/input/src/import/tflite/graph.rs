//! Turns the first subgraph of a model into a network.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use csdfc_plan::operator::Operator;
use rten_onnx::onnx::{
    DataType, Dimension, NodeProto, TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};

use super::op::{Op, Operand};
use super::schema::{File, Model, Operator as Stated};
use super::variables::{self, Access, Key, Variables};
use super::{SUPPORTED, ops};
use super::{cut, dilated, frames};
use crate::import::ImportOptions;
use crate::import::batch;
use crate::import::builder::{Builder, MAX_LAYERS, Names, NodeName};
use crate::import::error::{Fault, ImportError, UnsupportedNode};
use crate::import::graph::{Step, part_after, part_before, with_part, without_dead_layers};
use crate::import::inputs::{self, Given, InputSeat};
use crate::import::node::{Node, Value};
use crate::import::ops::{integers, layout};
use csdfc_network::state::State;
use csdfc_network::{Network, NetworkOutput};

/// The network of one frame of a model of this batch whose bytes these are, and the inputs on which none of its outputs depends. Its weights are
/// read later from `path`, if there is one.
pub(in crate::import) fn build(
    model: &str,
    bytes: &[u8],
    path: Option<&Path>,
    options: &ImportOptions,
    batch: usize,
) -> Result<(Network, Vec<String>), ImportError> {
    let file = File { bytes, path };
    let mut stated = Model::read(bytes)
        .map_err(|fault| ImportError::NotTflite { model: model.to_string(), reason: fault.reason })?;
    cut::cut(model, &mut stated, &options.part)?;
    let graph = Graph { model, stated: &stated, file };
    let name = |operator: &Stated| {
        let label = graph.label(operator);
        NodeName { output: label.clone(), label }
    };
    let mut builder = Builder::new(stated.operators.iter().map(name).collect());
    let variables = Variables::read(&stated, file, &mut builder).map_err(|fault| ImportError::Graph {
        model: model.to_string(),
        reason: fault.reason,
        help: fault.help.unwrap_or_else(|| "csdfc keeps variables that begin with one number".into()),
    })?;
    let needed = graph.needed(&variables)?;
    graph.check_supported(&needed)?;
    graph.network(builder, &needed, variables, options, batch)
}

struct Graph<'a, 'b> {
    model: &'b str,
    stated: &'b Model<'a>,
    file: File<'a>,
}

impl<'a> Graph<'a, '_> {
    /// The operators on which the outputs depend, in the file's order.
    fn needed(&self, variables: &Variables<'_>) -> Result<Vec<usize>, ImportError> {
        if self.stated.outputs.is_empty() {
            return Err(self.wrong("the model has no outputs".into()));
        }
        if self.stated.operators.len() > MAX_LAYERS {
            return Err(self.wrong(format!("the model has more than {MAX_LAYERS} operators")));
        }
        let operators = &self.stated.operators;
        let mut makers: Vec<Vec<usize>> = vec![Vec::new(); self.stated.tensors.len()];
        for (index, operator) in operators.iter().enumerate() {
            operator.outputs.iter().for_each(|output| makers[*output].push(index));
        }
        let mut is_needed = vec![false; operators.len()];
        let mut tensors = self.stated.outputs.clone();
        let mut seen = vec![false; self.stated.tensors.len()];
        while let Some(tensor) = tensors.pop() {
            if std::mem::replace(&mut seen[tensor], true) {
                continue;
            }
            let mut makers = makers[tensor].clone();
            while let Some(index) = makers.pop() {
                if std::mem::replace(&mut is_needed[index], true) {
                    continue;
                }
                let operator = &operators[index];
                tensors.extend(operator.inputs.iter().flatten());
                // What a variable is depends on all that assigns it, perhaps in the frame before.
                if variables::access(operator) == Some(Access::Read) {
                    let key = variables.key(operator).map_err(|fault| self.error(operator, fault))?;
                    makers.extend(variables.assigned(key));
                }
            }
        }
        Ok((0..operators.len()).filter(|index| is_needed[*index]).collect())
    }

    fn check_supported(&self, needed: &[usize]) -> Result<(), ImportError> {
        let operators = || needed.iter().map(|index| &self.stated.operators[*index]);
        let is_known =
            |operator: &Stated| ops::is_supported(operator.kind) || variables::access(operator).is_some();
        let nodes: Vec<UnsupportedNode> = operators()
            .filter(|operator| !is_known(operator))
            .map(|operator| UnsupportedNode {
                node: self.label(operator),
                operator: operator.kind.to_string(),
            })
            .collect();
        if nodes.is_empty() {
            return Ok(());
        }
        let count = SUPPORTED.len();
        let help = format!("csdfc reads {count} operators of TFLite: docs/guide/src/operators.md");
        let step = |operator: &Stated| Step {
            is_known: is_known(operator),
            reads: operator.inputs.iter().flatten().copied().collect(),
            makes: operator.outputs.clone(),
        };
        let steps: Vec<Step<usize>> = operators().map(step).collect();
        let outputs = self.stated.outputs.iter().copied();
        let [before, after] = [part_before(&steps, outputs), part_after(&steps)].map(|part| {
            part.iter().map(|index| self.stated.tensors[*index].name.as_str()).collect::<Vec<_>>()
        });
        let help = with_part(help, &before, &after);
        Err(ImportError::Unsupported { model: self.model.to_string(), nodes, help })
    }

    fn network<'s>(
        &'s self,
        mut builder: Builder,
        needed: &[usize],
        mut variables: Variables<'s>,
        options: &ImportOptions,
        batch: usize,
    ) -> Result<(Network, Vec<String>), ImportError> {
        let tensors = &self.stated.tensors;
        let mut values: Vec<Option<Value>> = vec![None; tensors.len()];
        let names: Vec<&str> = self.stated.inputs.iter().map(|index| tensors[*index].name.as_str()).collect();
        // Those of variables have the shapes that a plan states. Dimensions have no names.
        let operators = needed.iter().map(|index| &self.stated.operators[*index]);
        let of_variables = operators.flat_map(|operator| match variables::access(operator) {
            Some(Access::Read) => operator.outputs.clone(),
            _ => operator
                .inputs
                .iter()
                .flatten()
                .copied()
                .filter(|input| tensors[*input].is_variable)
                .collect::<Vec<_>>(),
        });
        let of_variables = of_variables.map(|index| tensors[index].name.as_str());
        let stated: Vec<_> = names.iter().copied().chain(of_variables).map(|name| (name, None)).collect();
        let given = inputs::given(self.model, &stated, options, batch)?;
        let read: BTreeSet<usize> = needed
            .iter()
            .flat_map(|index| &self.stated.operators[*index].inputs)
            .flatten()
            .copied()
            .collect();
        for &index in self.stated.inputs.iter().filter(|index| read.contains(index)) {
            if values[index].is_some() {
                return Err(
                    self.wrong(format!("tensor {} is listed twice among the inputs", tensors[index].name))
                );
            }
            let (tensor, info) = (&tensors[index], self.info(index));
            let seat = InputSeat { name: &tensor.name, info: &info, channels_last: true };
            let input = inputs::add(self.model, &mut builder, &seat, &given)?;
            values[index] = Some(match (input, tensor.integers()) {
                (Value::Tensor(x), Some((element, quantization))) => {
                    Value::Tensor(builder.input_of_integers(x, element, quantization))
                }
                (input, _) => input,
            });
        }
        let mut constant = |index: usize| {
            let stored = self.stated.constant(&mut builder, self.file, &tensors[index]);
            stored.ok().flatten()?.to_ints().ok()
        };
        let parts = dilated::find(self.stated, needed, &mut constant);
        let mut numbers = BTreeMap::new();
        for &index in needed {
            let operator = &self.stated.operators[index];
            if variables::access(operator).is_some() {
                self.access(&mut builder, &mut values, &mut variables, &given, operator)?;
                continue;
            }
            let first_layer = builder.network.layers.len();
            let mut inputs = Vec::with_capacity(operator.inputs.len());
            for input in &operator.inputs {
                inputs.push(match *input {
                    None => None,
                    Some(input) => {
                        if tensors[input].is_variable && values[input].is_none() {
                            let value =
                                self.begin(&mut builder, &mut variables, &given, Key::Tensor(input), input)?;
                            values[input] = Some(value);
                        }
                        let value = self.value(&mut builder, &mut values, input, operator)?;
                        Some(Operand { index: input, stated: &tensors[input], value })
                    }
                });
            }
            let outputs = operator.outputs.iter().map(|output| &tensors[*output]).collect();
            let mut op = Op {
                builder: &mut builder,
                index,
                options: operator.options,
                custom: operator.custom,
                inputs,
                outputs,
                part: parts.get(&index),
                numbers: &mut numbers,
                kept: Vec::new(),
            };
            let made = ops::import(&mut op, operator.kind).map_err(|fault| self.error(operator, fault))?;
            for (index, value) in std::mem::take(&mut op.kept) {
                variables.assign(Key::Tensor(index), value, &tensors[index]);
            }
            let of_batch = op.inputs.iter().flatten().any(|input| batch::batched(&input.value).is_some());
            for (at, (value, &output)) in made.into_iter().zip(&operator.outputs).enumerate() {
                let value = op.output(at, value).map_err(|fault| self.error(operator, fault))?;
                if of_batch {
                    frames::expect(operator.kind, &value, &tensors[output].dims, batch)
                        .map_err(|fault| self.error(operator, fault))?;
                }
                if values[output].is_some() {
                    let name = &tensors[output].name;
                    return Err(self.wrong(format!("tensor {name} is computed twice, or is an input")));
                }
                if let Value::Tensor(tensor) = &value
                    && tensor.views.is_empty()
                {
                    op.builder.name_tensor(tensor.operand.layer, &tensors[output].name, first_layer);
                }
                values[output] = Some(value);
            }
        }
        for &index in &self.stated.outputs {
            batch::check_output(self.model, &tensors[index].name, values[index].as_ref(), batch)?;
        }
        let network = self.outputs(builder, &values, &variables)?;
        if batch > 1 && !network.states.is_empty() {
            return Err(self.wrong("each frame of its batch has variables of its own".into()));
        }
        let unused = inputs::unused(&names, &network);
        Ok((network, unused))
    }

    /// Reads or assigns a variable. What it is when a frame begins comes from an input, whose name is that of the tensor
    /// that reads it first.
    fn access<'s>(
        &'s self,
        builder: &mut Builder,
        values: &mut [Option<Value>],
        variables: &mut Variables<'s>,
        given: &Given<'_>,
        operator: &Stated,
    ) -> Result<(), ImportError> {
        let fail = |fault: Fault| self.error(operator, fault);
        let access = variables::access(operator).filter(|access| *access != Access::Handle);
        let Some(access) = access else { return Ok(()) };
        let key = variables.key(operator).map_err(fail)?.clone();
        let of =
            |found: Option<usize>| found.ok_or_else(|| fail(Fault::new("an operand or output is missing")));
        if access == Access::Assign {
            let index = of(operator.inputs.get(1).copied().flatten())?;
            let value = self.value(builder, values, index, operator)?;
            variables.assign(key, value, &self.stated.tensors[index]);
            return Ok(());
        }
        let output = of(operator.outputs.first().copied())?;
        let value = match variables.now(&key) {
            Some((value, _)) => value.clone(),
            None => self.begin(builder, variables, given, key, output)?,
        };
        values[output] = Some(value);
        Ok(())
    }

    /// An input for what a variable is when a frame begins. It is stated as this tensor.
    fn begin<'s>(
        &'s self,
        builder: &mut Builder,
        variables: &mut Variables<'s>,
        given: &Given<'_>,
        key: Key,
        tensor: usize,
    ) -> Result<Value, ImportError> {
        let (stated, info) = (&self.stated.tensors[tensor], self.info(tensor));
        let seat = InputSeat { name: &stated.name, info: &info, channels_last: false };
        let input = inputs::add(self.model, builder, &seat, given)?;
        variables.begin(key.clone(), &stated.name);
        variables.assign(key, input.clone(), stated);
        Ok(input)
    }

    /// The value of a tensor that an operator reads.
    fn value(
        &self,
        builder: &mut Builder,
        values: &mut [Option<Value>],
        index: usize,
        reader: &Stated,
    ) -> Result<Value, ImportError> {
        if let Some(value) = &values[index] {
            return Ok(value.clone());
        }
        let tensor = &self.stated.tensors[index];
        let stored =
            self.stated.constant(builder, self.file, tensor).map_err(|fault| ImportError::Tensor {
                model: self.model.to_string(),
                tensor: tensor.name.clone(),
                reason: fault.reason,
                help: fault.help,
            })?;
        match stored {
            Some(constant) => Ok(values[index].insert(constant.into()).clone()),
            None => {
                let (name, reader) = (&tensor.name, self.label(reader));
                let reason =
                    format!("no operator before {reader} computes tensor {name}, and it has no data");
                Err(self.wrong(reason))
            }
        }
    }

    fn outputs(
        &self,
        mut builder: Builder,
        values: &[Option<Value>],
        variables: &Variables<'_>,
    ) -> Result<Network, ImportError> {
        let mut outputs: Vec<NetworkOutput> = Vec::new();
        let mut names = Names::default();
        for &index in &self.stated.outputs {
            let stated = &self.stated.tensors[index];
            let wrong = |reason: &str| ImportError::Output {
                model: self.model.to_string(),
                output: stated.name.clone(),
                reason: reason.into(),
                help: "remove it from the outputs".into(),
            };
            if self.stated.inputs.contains(&index) {
                return Err(wrong("it is an input of the network, with no layer between"));
            }
            let tensor = match &values[index] {
                Some(Value::Tensor(tensor)) => tensor,
                Some(Value::Constant(_)) => return Err(wrong("it is a constant, whatever the input")),
                None => return Err(wrong("no operator computes it")),
            };
            let proto = NodeProto::default();
            let producer =
                self.stated.operators.iter().position(|operator| operator.outputs.contains(&index));
            let node = Node {
                proto: &proto,
                index: producer.unwrap_or(0),
                operator: "",
                opset: 0,
                inputs: Vec::new(),
            };
            let fault = |fault: Fault| wrong(&fault.reason);
            let (held, integers) =
                integers::output(&mut builder, &node, tensor, stated.element).map_err(fault)?;
            let is_input = matches!(builder.network.layer(held.operand.layer).operator, Operator::Input(_));
            let held = if is_input { layout::copy(&mut builder, &node, &held).map_err(fault)? } else { held };
            // A tensor may be several outputs.
            let name = names.unique(&stated.name);
            outputs.push(NetworkOutput { name, operand: held.operand, integers });
        }
        let mut states = Vec::new();
        for (key, input, initial) in variables.read_first() {
            let Some((value, stated)) = variables.now(key) else { continue };
            let wrong = |reason: &str| self.wrong(format!("{key}, read as {input}, {reason}"));
            let Value::Tensor(tensor) = value else { return Err(wrong("becomes a constant")) };
            let node =
                Node { proto: &NodeProto::default(), index: 0, operator: "", opset: 0, inputs: Vec::new() };
            let is_signed = stated.element == DataType::INT8;
            let held = integers::as_floats(&mut builder, &node, tensor, is_signed)
                .map_err(|fault| wrong(&fault.reason))?;
            let output = names.unique(&format!("{input}_next"));
            outputs.push(NetworkOutput::new(output.clone(), held.operand));
            states.push(State { input: input.into(), output, initial });
        }
        let mut network = builder.network;
        network.outputs = outputs;
        network.states = states;
        Ok(without_dead_layers(network))
    }

    /// An input as ONNX states it.
    fn info(&self, index: usize) -> ValueInfoProto {
        let tensor = &self.stated.tensors[index];
        let dim =
            |dim: &i32| Dimension { dim_value: (*dim >= 0).then_some(i64::from(*dim)), dim_param: None };
        let shape = TensorShapeProto { dim: tensor.dims.iter().map(dim).collect() };
        let tensor_type = Some(TypeProtoTensor { elem_type: Some(tensor.element), shape: Some(shape) });
        let kind = TypeProto { tensor_type, ..TypeProto::default() };
        ValueInfoProto { name: Some(tensor.name.clone()), r#type: Some(kind) }
    }

    /// The label of an operator: the name of its first output.
    fn label(&self, operator: &Stated) -> String {
        operator
            .outputs
            .first()
            .map_or_else(|| "?".into(), |output| self.stated.tensors[*output].name.clone())
    }

    fn error(&self, operator: &Stated, fault: Fault) -> ImportError {
        ImportError::Node {
            model: self.model.to_string(),
            node: self.label(operator),
            operator: operator.kind.to_string(),
            reason: fault.reason,
            help: fault.help,
        }
    }

    fn wrong(&self, reason: String) -> ImportError {
        ImportError::Graph {
            model: self.model.to_string(),
            reason,
            help: "the model is damaged or was written wrongly; convert it anew".into(),
        }
    }
}
