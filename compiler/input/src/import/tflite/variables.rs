//! Variables: tensors that a model reads and assigns by a handle, and that keep their elements from frame to frame. They
//! become states of the network.

use std::collections::BTreeMap;

use super::codes::OperatorCode;
use super::schema::{File, Model, Operator, Tensor};
use crate::import::builder::Builder;
use crate::import::error::{Fault, fault};
use crate::import::node::Value;

/// A variable's container and name, which several handles may share.
pub(super) type Key = [String; 2];

/// What an operator does with a variable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Makes a handle of it.
    Handle,
    /// Reads it by a handle.
    Read,
    /// Assigns it by a handle.
    Assign,
}

/// What an operator does with a variable, if it is one of those.
pub(super) fn access(operator: &Operator<'_>) -> Option<Access> {
    match operator.kind {
        OperatorCode::Own("VAR_HANDLE") => Some(Access::Handle),
        OperatorCode::Own("READ_VARIABLE") => Some(Access::Read),
        OperatorCode::Own("ASSIGN_VARIABLE") => Some(Access::Assign),
        _ => None,
    }
}

/// The variables of a model.
pub(super) struct Variables<'a> {
    /// By the tensor of a handle.
    handles: BTreeMap<usize, Key>,
    /// Where operators assign each, by their places.
    assigned: BTreeMap<Key, Vec<usize>>,
    /// What all elements of each are in the first frame.
    initial: BTreeMap<Key, f32>,
    /// The variables that are read before they are assigned, each with the input that it then comes from.
    read_first: Vec<(Key, String)>,
    /// By variable that was read or assigned: what it is now, and the tensor as which the file states it.
    now: BTreeMap<Key, (Value, &'a Tensor<'a>)>,
}

impl<'a> Variables<'a> {
    /// Those of a model, with the elements that the subgraphs that run once give them.
    pub fn read(model: &Model<'_>, file: File<'_>, builder: &mut Builder) -> Result<Self, Fault> {
        let handles = handles(model)?;
        let mut variables = Variables {
            handles,
            assigned: BTreeMap::new(),
            initial: BTreeMap::new(),
            read_first: Vec::new(),
            now: BTreeMap::new(),
        };
        for (at, operator) in model.operators.iter().enumerate() {
            if access(operator) == Some(Access::Assign) {
                variables.assigned.entry(variables.key(operator)?.clone()).or_default().push(at);
            }
        }
        let once = |operator: &&Operator<'_>| matches!(operator.kind, OperatorCode::Own("CALL_ONCE"));
        for operator in model.operators.iter().filter(once) {
            let index = operator.options.map(|options| options.int(0, 0)).transpose()?.unwrap_or(0);
            // The first subgraph is the network itself.
            let Some(index) = usize::try_from(index).ok().filter(|index| *index > 0) else {
                return fault!("it runs subgraph {index} once, which is no initialisation");
            };
            variables.initialise(&Model::of_subgraph(file.bytes, index)?, file, builder)?;
        }
        Ok(variables)
    }

    /// Notes what a subgraph that runs once assigns.
    fn initialise(&mut self, once: &Model<'_>, file: File<'_>, builder: &mut Builder) -> Result<(), Fault> {
        let handles = handles(once)?;
        for operator in once.operators.iter().filter(|operator| access(operator) == Some(Access::Assign)) {
            let key = key(&handles, operator)?;
            let value = operator.inputs.get(1).copied().flatten().map(|index| &once.tensors[index]);
            let constant = value.map(|value| once.constant(builder, file, value)).transpose()?.flatten();
            let values = constant.map(|constant| match constant.to_ints() {
                Ok(values) => Ok(values.into_iter().map(|value| value as f32).collect()),
                Err(_) => constant.to_floats(),
            });
            let values: Vec<f32> = values.transpose()?.unwrap_or_default();
            match values.split_first() {
                Some((first, rest)) if rest.iter().all(|value| value == first) => {
                    self.initial.insert(key.clone(), *first);
                }
                _ => return fault!("variable {} does not begin with elements that are all the same", key[1]),
            }
        }
        Ok(())
    }

    /// The variable of an operator that reads or assigns it.
    pub fn key(&self, operator: &Operator<'_>) -> Result<&Key, Fault> {
        key(&self.handles, operator)
    }

    /// The places of the operators that assign a variable.
    pub fn assigned(&self, key: &Key) -> &[usize] {
        self.assigned.get(key).map_or(&[], Vec::as_slice)
    }

    /// Notes that a variable is read before it is assigned, and comes from an input then.
    pub fn begin(&mut self, key: Key, input: &str) {
        self.read_first.push((key, input.into()));
    }

    /// The variables that are read before they are assigned: their inputs, and what all elements are in the first frame.
    pub fn read_first(&self) -> impl Iterator<Item = (&Key, &str, f32)> {
        let initial = |key: &Key| self.initial.get(key).copied().unwrap_or(0.0);
        self.read_first.iter().map(move |(key, input)| (key, input.as_str(), initial(key)))
    }

    /// What a variable is now, if it was read or assigned before.
    pub fn now(&self, key: &Key) -> Option<&(Value, &'a Tensor<'a>)> {
        self.now.get(key)
    }

    /// Notes what a variable is from now on.
    pub fn assign(&mut self, key: Key, value: Value, stated: &'a Tensor<'a>) {
        self.now.insert(key, (value, stated));
    }
}

/// The handles of a subgraph, by tensor.
fn handles(model: &Model<'_>) -> Result<BTreeMap<usize, Key>, Fault> {
    let mut handles = BTreeMap::new();
    for operator in model.operators.iter().filter(|operator| access(operator) == Some(Access::Handle)) {
        let name = |field| operator.options.map_or(Ok(String::new()), |options| options.text(field));
        let key = [name(0)?, name(1)?];
        if let Some(&output) = operator.outputs.first() {
            handles.insert(output, key);
        }
    }
    Ok(handles)
}

fn key<'k>(handles: &'k BTreeMap<usize, Key>, operator: &Operator<'_>) -> Result<&'k Key, Fault> {
    let handle = operator.inputs.first().copied().flatten();
    let key = handle.and_then(|handle| handles.get(&handle));
    key.map_or_else(|| fault!("its operand 0 is no handle of a variable"), Ok)
}
