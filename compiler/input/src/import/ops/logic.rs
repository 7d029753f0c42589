//! Comparisons, functions of truth values, and choices by them. Floats hold truth values: 1 and 0.

use csdfc_plan::operator::{Function, Operator, Where};
use rten_onnx::onnx::DataType;

use super::{binary, element_wise};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, with_operands};

/// `Equal`, `Greater`, `GreaterOrEqual`, `Less` and `LessOrEqual`.
pub(super) fn compare(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let [a, b] = [numbers(builder, node, 0)?, numbers(builder, node, 1)?].map(Some);
    let (operator, sides) = match node.operator {
        "Less" => ("Greater", [b, a]),
        "LessOrEqual" => ("GreaterOrEqual", [b, a]),
        other => (other, [a, b]),
    };
    truth(binary::binary(builder, &with_operands(node, operator, sides, None)))
}

/// `Not`, `And`, `Or` and `Xor`.
pub(super) fn logic(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let a = numbers(builder, node, 0)?;
    if node.operator == "Not" {
        return not(builder, node, a);
    }
    let sides = [a, numbers(builder, node, 1)?].map(Some);
    let function = match node.operator {
        "And" => "Mul",
        "Or" => "Max",
        _ => "Equal",
    };
    let made = binary::binary(builder, &with_operands(node, function, sides, None))?;
    if node.operator == "Xor" { not(builder, node, made.into()) } else { truth(Ok(made)) }
}

/// `IsNaN`: whether each element differs from itself.
pub(super) fn is_nan(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = numbers(builder, node, 0)?;
    let same = binary::binary(builder, &with_operands(node, "Equal", [x.clone(), x].map(Some), None))?;
    not(builder, node, same.into())
}

/// `IsInf`: whether each element, its size, or its negative is ∞.
pub(super) fn is_infinite(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?.clone();
    let infinity = |value: f32| Some(Constant::floats([], vec![value]));
    let (x, value) = match (node.flag("detect_negative", true)?, node.flag("detect_positive", true)?) {
        (true, true) => (element_wise::layer(builder, node, &x, Function::Abs)?, f32::INFINITY),
        (false, true) => (x, f32::INFINITY),
        (true, false) => (x, f32::NEG_INFINITY),
        (false, false) => return fault!("it detects neither ∞ nor −∞"),
    };
    truth(binary::binary(builder, &with_operands(node, "Equal", [Some(x.into())], infinity(value))))
}

/// Whether each element is 0.
pub(super) fn not(builder: &mut Builder, node: &Node, x: Value) -> Result<Tensor, Fault> {
    let zero = Constant::floats([], vec![0.0]);
    truth(binary::binary(builder, &with_operands(node, "Equal", [Some(x)], Some(zero))))
}

fn truth(made: Result<Tensor, Fault>) -> Result<Tensor, Fault> {
    Ok(made?.as_integers(DataType::BOOL))
}

/// `Where`: by a condition, elements of the second or of the third operand. Each of the three may be a constant.
pub(super) fn choose(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let integers = node.inputs.iter().skip(1).flatten().find_map(|taken| match taken {
        Value::Tensor(tensor) => Some(tensor.integers),
        Value::Constant(_) => None,
    });
    let (mut tensors, mut parameters) = (Vec::new(), Vec::new());
    let mut dims = [None, None, None];
    for (index, dims) in dims.iter_mut().enumerate() {
        match numbers(builder, node, index)? {
            Value::Tensor(tensor) => tensors.push(tensor),
            Value::Constant(constant) => {
                let weights = constant.weights()?;
                *dims = Some(weights.dims.clone());
                parameters.push(weights);
            }
        }
    }
    let [condition, x, y] = dims;
    let operator = Operator::Where(Where { condition, x, y });
    let chosen = builder.layer(node, operator, &tensors.iter().collect::<Vec<_>>(), parameters)?;
    Ok(Tensor { integers: integers.flatten(), ..chosen })
}

/// The type of a tensor's integers or truth values, if floats hold them.
pub(super) fn whole_numbers(builder: &Builder, x: &Tensor) -> Option<DataType> {
    let element = if builder.has_indices(x) { Some(DataType::INT64) } else { x.integers };
    element.filter(|element| matches!(*element, DataType::INT32 | DataType::INT64 | DataType::BOOL))
}

/// Operand `index` as floats, which hold integers and truth values.
pub(super) fn numbers(builder: &mut Builder, node: &Node, index: usize) -> Result<Value, Fault> {
    match node.input(index) {
        Some(x) => as_floats(builder, x),
        None => fault!("operand {index} is missing"),
    }
}

/// A value as floats, which hold integers and truth values.
pub(super) fn as_floats(builder: &mut Builder, x: &Value) -> Result<Value, Fault> {
    Ok(match x {
        Value::Tensor(x) => builder.without_indices(x)?.as_floats().into(),
        Value::Constant(x) => match x.data {
            Data::Bools(_) => Constant::floats(x.dims.clone(), x.to_floats()?).into(),
            _ => x.clone().into(),
        },
    })
}
