//! One node of the graph with its operands resolved, and typed access to its attributes.

use rten_onnx::onnx::{AttributeProto, AttributeType, DataType, NodeProto};

use super::constant::Constant;
use super::error::{Fault, fault};
use csdfc_network::Operand;

/// What a name of the graph stands for.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Constant(Constant),
    Tensor(Tensor),
}

/// A tensor of the network as a node sees it.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub operand: Operand,
    /// The nodes of the views between the layer and here.
    pub views: Vec<usize>,
    /// The type of its elements in the model, if they are integers there. In the network, floats hold these integers.
    pub integers: Option<DataType>,
    /// Number of frames that the model has of it, one after another along the first dimension; this is one of them.
    pub batch: usize,
}

/// A node about to be imported.
pub(super) struct Node<'a> {
    pub proto: &'a NodeProto,
    /// Its place in the graph.
    pub index: usize,
    pub operator: &'a str,
    /// Version of the operator set.
    pub opset: i64,
    /// Its operands; `None` where an optional one is left out.
    pub inputs: Vec<Option<Value>>,
}

impl Tensor {
    pub fn dims(&self) -> &[usize] {
        &self.operand.shape.dims
    }

    pub fn rank(&self) -> usize {
        self.operand.shape.rank()
    }

    /// The same tensor, as floats that hold integers of this type.
    pub fn as_integers(&self, element: DataType) -> Tensor {
        Tensor { integers: Some(element), ..self.clone() }
    }

    /// The same tensor as floats, whatever its elements are in the model.
    pub fn as_floats(&self) -> Tensor {
        Tensor { integers: None, ..self.clone() }
    }
}

impl Node<'_> {
    pub fn input(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index).and_then(Option::as_ref)
    }

    /// Operand `index`, which must be a tensor of the network.
    pub fn tensor(&self, index: usize) -> Result<&Tensor, Fault> {
        match self.input(index) {
            Some(Value::Tensor(tensor)) => Ok(tensor),
            Some(Value::Constant(_)) => {
                let text = format!("operand {index} is a constant beside others that the network computes");
                Err(Fault::new(text).help(format!(
                    "csdfc takes only a tensor of the network there; make the constant an input of the model, or compute \
                     {} without it",
                    self.operator
                )))
            }
            None => fault!("operand {index} is missing"),
        }
    }

    /// Operand `index`, which must be known at import. `what` is its name in the operator's documentation.
    pub fn constant(&self, index: usize, what: &str) -> Result<&Constant, Fault> {
        self.optional(index, what)?.map_or_else(|| fault!("operand {index}, its {what}, is missing"), Ok)
    }

    /// Operand `index`, which must be known at import if it is there.
    pub fn optional(&self, index: usize, what: &str) -> Result<Option<&Constant>, Fault> {
        match self.input(index) {
            Some(Value::Constant(constant)) => Ok(Some(constant)),
            Some(Value::Tensor(_)) => Err(Fault::new(format!(
                "operand {index}, its {what} ({}), is computed by the network",
                self.proto.input.get(index).map_or("", String::as_str)
            ))
            .help("csdfc needs a constant there; simplify the model, fix its input shapes at export, or give the value of an input: --value INPUT=…")),
            None => Ok(None),
        }
    }

    /// Whether all operands that are there are constants.
    pub fn is_constant(&self) -> bool {
        self.inputs.iter().flatten().all(|value| matches!(value, Value::Constant(_)))
    }

    pub fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.proto.attribute.iter().find(|attribute| attribute.name.as_deref() == Some(name))
    }

    pub fn has(&self, name: &str) -> bool {
        self.attribute(name).is_some()
    }

    pub fn int(&self, name: &str, default: i64) -> Result<i64, Fault> {
        // Writers may leave out a value of 0.
        self.scalar_attribute(name, AttributeType::INT, default, |attribute| attribute.i)
    }

    pub fn float(&self, name: &str, default: f32) -> Result<f32, Fault> {
        let value = self.scalar_attribute(name, AttributeType::FLOAT, default, |attribute| attribute.f)?;
        if value.is_finite() { Ok(value) } else { fault!("attribute {name} is {value}") }
    }

    pub fn text(&self, name: &str, default: &'static str) -> Result<&str, Fault> {
        match self.attribute(name) {
            None => Ok(default),
            Some(attribute) => match &attribute.s {
                Some(text) => Ok(text),
                None => fault!("attribute {name} is no string"),
            },
        }
    }

    pub fn ints(&self, name: &str) -> Result<Option<&[i64]>, Fault> {
        match self.attribute(name) {
            None => Ok(None),
            Some(attribute) if attribute.r#type.is_none_or(|kind| kind == AttributeType::INTS) => {
                Ok(Some(&attribute.ints))
            }
            Some(_) => fault!("attribute {name} is no list of integers"),
        }
    }

    pub fn flag(&self, name: &str, default: bool) -> Result<bool, Fault> {
        Ok(self.int(name, i64::from(default))? != 0)
    }

    /// Integers that are an attribute before opset `since`, and an operand from then on.
    pub fn ints_since(&self, name: &str, since: i64, index: usize) -> Result<Option<Vec<i64>>, Fault> {
        if self.opset < since {
            Ok(self.ints(name)?.map(<[i64]>::to_vec))
        } else {
            self.optional(index, name)?.map(Constant::to_ints).transpose()
        }
    }

    /// A list of integers as a pair of counts for height and width.
    pub fn pair(&self, name: &str, default: usize) -> Result<[usize; 2], Fault> {
        match self.ints(name)? {
            None => Ok([default; 2]),
            Some(values) => pair(values, name),
        }
    }

    fn scalar_attribute<T: Default>(
        &self,
        name: &str,
        kind: AttributeType,
        default: T,
        get: impl Fn(&AttributeProto) -> Option<T>,
    ) -> Result<T, Fault> {
        let Some(attribute) = self.attribute(name) else { return Ok(default) };
        match get(attribute) {
            Some(value) => Ok(value),
            None if attribute.r#type == Some(kind) => Ok(T::default()),
            None => fault!("attribute {name} is no number"),
        }
    }
}

/// Two integers as counts for height and width.
pub(super) fn pair(values: &[i64], name: &str) -> Result<[usize; 2], Fault> {
    match values {
        &[y, x] => match (usize::try_from(y), usize::try_from(x)) {
            (Ok(y), Ok(x)) => Ok([y, x]),
            _ => fault!("{name} is {values:?}; negative numbers are not supported"),
        },
        _ => fault!("{name} has {} numbers; only 2-D images are supported", values.len()),
    }
}

/// An axis counted from 0; negative ones count from the end.
pub(super) fn axis(axis: i64, rank: usize) -> Result<usize, Fault> {
    // Ranks are at most 8, before and after a dimension is added.
    let from_start = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    match from_start.and_then(|axis| usize::try_from(axis).ok()).filter(|axis| *axis < rank) {
        Some(axis) => Ok(axis),
        None => fault!("axis {axis} is out of range: the tensor has rank {rank}"),
    }
}

/// Axes counted from 0, ascending, each once.
pub(super) fn axes(list: &[i64], rank: usize) -> Result<Vec<usize>, Fault> {
    let mut axes = list.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    axes.sort_unstable();
    if axes.windows(2).any(|pair| pair[0] == pair[1]) {
        return fault!("axes {list:?} name a dimension twice");
    }
    Ok(axes)
}

/// The permutation of a `Transpose`; without one it reverses the dimensions.
pub(super) fn permutation(node: &Node, rank: usize) -> Result<Vec<usize>, Fault> {
    let Some(perm) = node.ints("perm")? else { return Ok((0..rank).rev().collect()) };
    let perm = perm.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?;
    let mut sorted = perm.clone();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..rank) {
        Ok(perm)
    } else {
        fault!("perm {perm:?} does not permute {rank} dimensions")
    }
}

/// The node with no operands.
pub(super) fn plain<'a>(node: &Node<'a>) -> Node<'a> {
    Node { inputs: Vec::new(), ..*node }
}

/// The node as one of another operator and other operands.
pub(super) fn with_operands<'a, const N: usize>(
    node: &Node<'a>,
    operator: &'a str,
    inputs: [Option<Value>; N],
    last: Option<Constant>,
) -> Node<'a> {
    let inputs = inputs.into_iter().chain(last.map(|last| Some(last.into()))).collect();
    Node { operator, inputs, ..plain(node) }
}
