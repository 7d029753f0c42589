//! Nodes that are parts of another node, of tensors and constants alike.

use rten_onnx::onnx::NodeProto;

use crate::import::builder::Builder;
use crate::import::constant::{Constant, count};
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{Node, Tensor, Value};

/// The version of ONNX's operators that parts are of.
const OPSET: i64 = 21;

/// What an operator without attributes makes of these operands.
pub(super) fn part<const N: usize>(
    builder: &mut Builder,
    node: &Node,
    operator: &str,
    inputs: [Value; N],
) -> Result<Value, Fault> {
    let proto = NodeProto::default();
    let inputs = inputs.into_iter().map(Some).collect();
    let part = Node { proto: &proto, index: node.index, operator, opset: OPSET, inputs };
    super::import(builder, &part)?.into_iter().next().map_or_else(|| fault!("{operator} makes nothing"), Ok)
}

/// The tensor that a value is.
pub(super) fn tensor(x: Value) -> Result<Tensor, Fault> {
    match x {
        Value::Tensor(x) => Ok(x),
        Value::Constant(_) => fault!("all its operands are constants"),
    }
}

/// One number as a constant.
pub(super) fn number(value: f32) -> Value {
    Constant::floats([], vec![value]).into()
}

/// The dimensions of a value.
pub(super) fn dims(value: &Value) -> &[usize] {
    match value {
        Value::Tensor(tensor) => tensor.dims(),
        Value::Constant(constant) => &constant.dims,
    }
}

/// The same elements in other dimensions.
pub(super) fn reshaped(
    builder: &mut Builder,
    node: &Node,
    x: &Value,
    wanted: Vec<usize>,
) -> Result<Value, Fault> {
    match x {
        _ if dims(x) == wanted => Ok(x.clone()),
        Value::Tensor(x) => Ok(builder.reshape(node, x, wanted)?.into()),
        Value::Constant(x) if count(&wanted)? == x.elements() => Ok(x.reshaped(wanted).into()),
        Value::Constant(x) => fault!("a constant of {:?} cannot be seen as {wanted:?}", x.dims),
    }
}

/// The dimensions in another order.
pub(super) fn transposed(
    builder: &mut Builder,
    node: &Node,
    x: &Value,
    perm: Vec<usize>,
) -> Result<Value, Fault> {
    match x {
        _ if perm.is_sorted() => Ok(x.clone()),
        Value::Tensor(x) => Ok(builder.transpose(node, x, perm)?.into()),
        Value::Constant(x) => Ok(x.transposed(&perm)?.into()),
    }
}

/// The elements from `start` to before `end` along a dimension.
pub(super) fn cut(
    builder: &mut Builder,
    node: &Node,
    x: &Value,
    axis: usize,
    [start, end]: [usize; 2],
) -> Result<Value, Fault> {
    match x {
        Value::Tensor(x) => {
            let mut ranges = Range::whole(x.dims());
            ranges[axis] = Range { start, step: 1, length: end - start };
            Ok(super::layout::take(builder, node, x, &ranges)?.into())
        }
        Value::Constant(_) => {
            let list = |value: usize| Value::from(Constant::ints([1], vec![value as i64]));
            part(builder, node, "Slice", [x.clone(), list(start), list(end), list(axis)])
        }
    }
}
