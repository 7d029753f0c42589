//! Nodes that stand for other nodes: `If` and `Loop`, where import knows what they run, and calls of the model's functions.

use rten_onnx::onnx::{GraphProto, NodeProto};

use super::attribute;
use super::batch;
use super::constant::Constant;
use super::error::{Fault, ImportError, fault};
use super::graph::{Graph, label};
use super::importer::{Importer, Scope};
use super::messages::Function;
use super::node::{Node, Value};
use super::ops::is_onnx;

/// Maximum number of bodies and functions within each other.
const MAX_DEPTH: usize = 32;

/// What a `Loop` repeats.
struct Repetition<'a> {
    /// It has an output for the condition and for each value carried, and then those that are collected.
    body: &'a GraphProto,
    /// Maximum number of iterations.
    count: Option<i64>,
    condition: Option<bool>,
    /// What goes from each iteration to the next.
    carried: Vec<Value>,
}

impl<'a> Repetition<'a> {
    fn new(stated: &'a NodeProto, node: &Node) -> Result<Self, Fault> {
        let known = |index, what| node.optional(index, what)?.map(Constant::scalar_int).transpose();
        let body = body(stated, "body")?;
        let mut carried = Vec::new();
        for (index, value) in node.inputs.iter().enumerate().skip(2) {
            carried.push(value.clone().map_or_else(|| fault!("operand {index} is missing"), Ok)?);
        }
        if body.output.len() < 1 + carried.len() {
            return fault!("its body has {} outputs for {} values", body.output.len(), carried.len());
        }
        let condition = known(1, "condition")?.map(|holds| holds != 0);
        Ok(Repetition { body, count: known(0, "number of iterations")?, condition, carried })
    }
}

impl<'a> Importer<'a> {
    /// The outputs of an `If` or a `Loop`. `stated` is the node, of which `node` has the operands.
    pub(super) fn controlled(
        &mut self,
        stated: &'a NodeProto,
        node: &Node,
        scope: &Scope<'_, 'a>,
    ) -> Result<Vec<Value>, ImportError> {
        match node.operator {
            "If" => self.branch(stated, node, scope),
            _ => self.unrolled(stated, node, scope),
        }
    }

    /// The branch of an `If` that its condition takes.
    fn branch(
        &mut self,
        stated: &'a NodeProto,
        node: &Node,
        scope: &Scope<'_, 'a>,
    ) -> Result<Vec<Value>, ImportError> {
        let of = |importer: &Self, fault| importer.error(stated, scope, fault);
        let condition = node.constant(0, "condition").and_then(Constant::scalar_int);
        let name = match condition.map_err(|fault| of(self, fault))? {
            0 => "else_branch",
            _ => "then_branch",
        };
        let branch = body(stated, name).map_err(|fault| of(self, fault))?;
        self.body(stated, branch, Vec::new(), label(stated), scope)
    }

    /// A `Loop` as its iterations one after another: a number of them, or as long as a condition holds that is known.
    fn unrolled(
        &mut self,
        stated: &'a NodeProto,
        node: &Node,
        scope: &Scope<'_, 'a>,
    ) -> Result<Vec<Value>, ImportError> {
        let of = |importer: &Self, fault| importer.error(stated, scope, fault);
        let Repetition { body, count, condition, mut carried } =
            Repetition::new(stated, node).map_err(|fault| of(self, fault))?;
        let mut goes_on = condition.unwrap_or(true);
        let mut collected: Vec<Vec<Value>> = vec![Vec::new(); body.output.len() - 1 - carried.len()];
        let mut iteration = 0;
        while goes_on && count.is_none_or(|count| iteration < count) {
            self.count(1).map_err(|fault| of(self, fault))?;
            let number = Constant::ints([], vec![iteration]).into();
            let holds = Constant::bools([], vec![true]).into();
            let inputs = [number, holds].into_iter().chain(carried.iter().cloned()).collect();
            let step = format!("{}/{iteration}", label(stated));
            let mut made = self.body(stated, body, inputs, &step, scope)?;
            for (all, value) in collected.iter_mut().zip(made.split_off(1 + carried.len())) {
                all.push(value);
            }
            carried = made.split_off(1);
            // The body's condition counts only if there is one before the first iteration.
            if condition.is_some() {
                goes_on = holds_still(&made).map_err(|fault| of(self, fault))?;
            }
            iteration += 1;
        }
        let named = stated.output.len().saturating_sub(carried.len());
        for values in collected.into_iter().take(named) {
            carried.push(self.stacked(node, values).map_err(|fault| of(self, fault))?);
        }
        Ok(carried)
    }

    /// The values of the outputs of a node's body. `step` is what the names of the body's nodes begin with.
    fn body(
        &mut self,
        node: &NodeProto,
        body: &'a GraphProto,
        inputs: Vec<Value>,
        step: &str,
        around: &Scope<'_, 'a>,
    ) -> Result<Vec<Value>, ImportError> {
        let graph = Graph::new(self.model, body, &[])?;
        let names = body.input.iter().map(|info| info.name.as_deref().unwrap_or_default());
        let scope = Scope {
            values: names.zip(inputs).collect(),
            around: Some(around),
            path: format!("{}{step}/", around.path),
            opset: around.opset,
            attributes: around.attributes,
            depth: self.deeper(node, around)?,
        };
        self.inlined(&graph, scope)
    }

    /// Values one after another along a new first dimension.
    fn stacked(&mut self, node: &Node, values: Vec<Value>) -> Result<Value, Fault> {
        let mut parts = Vec::with_capacity(values.len());
        for value in values {
            parts.push(Some(match value {
                Value::Constant(constant) => constant.reshaped([&[1], &*constant.dims].concat()).into(),
                Value::Tensor(tensor) => {
                    let dims = [&[1], tensor.dims()].concat();
                    self.builder.reshape(node, &tensor, dims)?.into()
                }
            }));
        }
        if parts.is_empty() {
            return fault!("it runs no iteration, so that what it collects is empty");
        }
        let proto = NodeProto { attribute: vec![attribute::int("axis", 0)], ..NodeProto::default() };
        let concat =
            Node { proto: &proto, operator: "Concat", inputs: parts, index: node.index, opset: node.opset };
        let stacked = batch::import(&mut self.builder, &concat)?;
        stacked.into_iter().next().map_or_else(|| fault!("it collects nothing"), Ok)
    }

    /// The depth of a body or a function that a node runs.
    pub(super) fn deeper(&self, node: &NodeProto, scope: &Scope<'_, 'a>) -> Result<usize, ImportError> {
        if scope.depth < MAX_DEPTH {
            return Ok(scope.depth + 1);
        }
        let fault = Fault::new(format!("bodies and functions run each other more than {MAX_DEPTH} deep"));
        Err(self.error(node, scope, fault))
    }

    /// The nodes of a function instead of its call.
    pub(super) fn call(
        &mut self,
        function: &'a Function,
        node: &Node,
        scope: &Scope<'_, 'a>,
    ) -> Result<Vec<Value>, ImportError> {
        let name = [&*function.domain, &*function.name];
        if self.functions.get(&name).is_some_and(|functions| functions.len() > 1) {
            let fault =
                Fault::new("the model has several functions of this name, and csdfc reads no overloads")
                    .help("export the model with its functions inlined");
            return Err(self.error(node.proto, scope, fault));
        }
        let graph = Graph::of_function(self.model, function)?;
        let mut attributes = node.proto.attribute.clone();
        for default in &function.defaults {
            if node.attribute(default.name.as_deref().unwrap_or_default()).is_none() {
                attributes.push(default.clone());
            }
        }
        let operands = function.inputs.iter().map(String::as_str).zip(&node.inputs);
        let stated = function.opsets.iter().find(|set| is_onnx(set.domain.as_deref()));
        let inner = Scope {
            values: operands.filter_map(|(name, value)| Some((name, value.clone()?))).collect(),
            around: None,
            path: format!("{}{}/", scope.path, label(node.proto)),
            opset: stated.and_then(|set| set.version).unwrap_or(self.opset),
            attributes: &attributes,
            depth: self.deeper(node.proto, scope)?,
        };
        self.inlined(&graph, inner)
    }
}

/// A body among the attributes of a node.
fn body<'a>(node: &'a NodeProto, name: &str) -> Result<&'a GraphProto, Fault> {
    let found = node.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name));
    match found.and_then(|attribute| attribute.g.as_ref()) {
        Some(body) => Ok(body),
        None => fault!("it has no {name}"),
    }
}

/// Whether a loop goes on, by the outputs of its body.
fn holds_still(made: &[Value]) -> Result<bool, Fault> {
    match made.first() {
        Some(Value::Constant(condition)) => Ok(condition.scalar_int()? != 0),
        _ => Err(Fault::new("the network computes whether it goes on").help(
            "csdfc unrolls loops whose number of iterations follows from shapes and constants; export the \
                   model with a fixed number",
        )),
    }
}
