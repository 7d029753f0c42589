//! Functions of two or more tensors element by element, with broadcasting.

use csdfc_plan::operator::{Binary, BinaryFunction, ConstantOperand, Operator};
use rten_onnx::onnx::DataType;

use super::logic;
use super::parts::{number, part, tensor};
use crate::import::builder::Builder;
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::fold::arithmetic;
use crate::import::node::{Node, Tensor, Value, with_operands};

/// `Add`, `Sub`, `Mul`, `Div`, `Pow`, `Mod`, and `Sum`, `Max`, `Min` of any number of operands, as a chain of pairs.
pub(super) fn binary(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let function = of_node(node)?;
    if let (BinaryFunction::Div, Some(element)) = (function, whole_numbers(builder, node)) {
        return quotient(builder, node, element);
    }
    if let (BinaryFunction::Mod | BinaryFunction::Fmod, Some(element)) =
        (function, whole_numbers(builder, node))
    {
        return left_over(builder, node, function, element);
    }
    if let (BinaryFunction::Pow, Some(x)) = (function, squared(node)?) {
        return of_two_operands(builder, node, "Mul", &x, x.clone());
    }
    if let (BinaryFunction::Pow, Some(element)) = (function, base(builder, node)) {
        return power(builder, node, element);
    }
    if let Some(element) = exact_integers(builder, node, function) {
        let numbers = (0..node.inputs.len()).map(|index| logic::numbers(builder, node, index).map(Some));
        let numbers = numbers.collect::<Result<_, _>>()?;
        return Ok(binary(builder, &Node { inputs: numbers, ..*node })?.as_integers(element));
    }
    let [first, others @ ..] = node.inputs.as_slice() else { return fault!("it has no operands") };
    let Some(mut result) = first.clone() else { return fault!("operand 0 is missing") };
    if let (Value::Tensor(tensor), []) = (&result, others) {
        return builder.identity(node, tensor);
    }
    for (i, other) in others.iter().enumerate() {
        let Some(other) = other else { return fault!("operand {} is missing", i + 1) };
        result = pair(builder, node, function, &result, other)?;
    }
    match result {
        Value::Tensor(tensor) => Ok(tensor),
        Value::Constant(_) => fault!("it has no operand that is a tensor"),
    }
}

/// The tensor that a `Pow` multiplies by itself.
fn squared(node: &Node) -> Result<Option<Tensor>, Fault> {
    let [Some(Value::Tensor(x)), Some(Value::Constant(exponent))] = node.inputs.as_slice() else {
        return Ok(None);
    };
    let is_square = exponent.dims.len() <= x.rank() && exponent.to_floats()? == [2.0];
    Ok(is_square.then(|| x.clone()))
}

/// The type of an operand's integers, if floats give the same result: they are exact up to 2^24, which indices and counts stay
/// below.
fn exact_integers(builder: &Builder, node: &Node, function: BinaryFunction) -> Option<DataType> {
    use BinaryFunction::{Add, Max, Min, Mul, Sub};
    whole_numbers(builder, node).filter(|_| matches!(function, Add | Sub | Mul | Max | Min))
}

/// The type of the operands' integers, if they are indices or counts.
fn whole_numbers(builder: &Builder, node: &Node) -> Option<DataType> {
    let element = node.inputs.iter().flatten().find_map(|input| match input {
        Value::Tensor(x) => logic::whole_numbers(builder, x),
        Value::Constant(_) => None,
    });
    element.filter(|element| *element != DataType::BOOL)
}

/// The type of the integers of which powers are taken, if they are indices or counts.
fn base(builder: &Builder, node: &Node) -> Option<DataType> {
    match node.input(0)? {
        Value::Tensor(x) => logic::whole_numbers(builder, x).filter(|element| *element != DataType::BOOL),
        Value::Constant(_) => None,
    }
}

/// `Pow` of integers: the power, which is near an integer, or below 1 if the exponent is negative.
fn power(builder: &mut Builder, node: &Node, element: DataType) -> Result<Tensor, Fault> {
    let [x, exponent] = [logic::numbers(builder, node, 0)?, logic::numbers(builder, node, 1)?];
    let power = part(builder, node, "Pow", [x, exponent])?;
    Ok(tensor(part(builder, node, "Round", [power])?)?.as_integers(element))
}

/// `Div` of integers: the quotient, rounded towards 0.
fn quotient(builder: &mut Builder, node: &Node, element: DataType) -> Result<Tensor, Fault> {
    let [a, b] = [logic::numbers(builder, node, 0)?, logic::numbers(builder, node, 1)?];
    let mut sign = part(builder, node, "Sign", [a.clone()])?;
    let size = part(builder, node, "Abs", [a])?;
    let mut divisor = b;
    if !is_positive(&divisor)? {
        let other = part(builder, node, "Sign", [divisor.clone()])?;
        sign = part(builder, node, "Mul", [sign, other])?;
        divisor = part(builder, node, "Abs", [divisor])?;
    }
    let size = rounded_down(builder, node, size, divisor)?;
    Ok(tensor(part(builder, node, "Mul", [size, sign])?)?.as_integers(element))
}

/// `Mod` of integers: what `Div` leaves over, with the sign of the divisor, or with `fmod` that of the dividend.
fn left_over(
    builder: &mut Builder,
    node: &Node,
    function: BinaryFunction,
    element: DataType,
) -> Result<Tensor, Fault> {
    let [a, b] = [logic::numbers(builder, node, 0)?, logic::numbers(builder, node, 1)?];
    let times = if function == BinaryFunction::Fmod {
        Value::from(quotient(builder, node, element)?.as_floats())
    } else if is_positive(&b)? {
        rounded_down(builder, node, a.clone(), b.clone())?
    } else {
        let sign = part(builder, node, "Sign", [b.clone()])?;
        let dividend = part(builder, node, "Mul", [a.clone(), sign])?;
        let divisor = part(builder, node, "Abs", [b.clone()])?;
        rounded_down(builder, node, dividend, divisor)?
    };
    let whole = part(builder, node, "Mul", [times, b])?;
    Ok(tensor(part(builder, node, "Sub", [a, whole])?)?.as_integers(element))
}

/// Whether a divisor is known, and positive.
fn is_positive(divisor: &Value) -> Result<bool, Fault> {
    match divisor {
        Value::Constant(divisor) => Ok(divisor.to_floats()?.iter().all(|size| *size > 0.0)),
        Value::Tensor(_) => Ok(false),
    }
}

/// How often a positive integer goes into another one, rounded down. Half of 1 is added to the dividend, which does not change
/// the result below 2²³: a quotient that is rounded, or computed by a reciprocal, stays on its side of the next integer.
fn rounded_down(builder: &mut Builder, node: &Node, dividend: Value, divisor: Value) -> Result<Value, Fault> {
    let dividend = part(builder, node, "Add", [dividend, number(0.5)])?;
    let quotient = part(builder, node, "Div", [dividend, divisor])?;
    part(builder, node, "Floor", [quotient])
}

/// `Mean`: the sum of the operands, divided by their number.
pub(super) fn mean(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let sum = binary(builder, &Node { operator: "Sum", inputs: node.inputs.clone(), ..*node })?;
    match node.inputs.len() {
        1 => Ok(sum),
        count => of_two_operands(builder, node, "Div", &sum, Constant::floats([], vec![count as f32])),
    }
}

/// A function of two operands. The first is a tensor.
pub(super) fn of_two_operands(
    builder: &mut Builder,
    node: &Node,
    operator: &str,
    x: &Tensor,
    other: impl Into<Value>,
) -> Result<Tensor, Fault> {
    binary(builder, &with_operands(node, operator, [x.clone().into(), other.into()].map(Some), None))
}

/// The function of a node.
pub(in crate::import) fn of_node(node: &Node) -> Result<BinaryFunction, Fault> {
    Ok(match node.operator {
        "Add" | "Sum" => BinaryFunction::Add,
        "Sub" => BinaryFunction::Sub,
        "Mul" => BinaryFunction::Mul,
        "Div" => BinaryFunction::Div,
        "Max" => BinaryFunction::Max,
        "Min" => BinaryFunction::Min,
        "Pow" => BinaryFunction::Pow,
        "Mod" if node.flag("fmod", false)? => BinaryFunction::Fmod,
        "Mod" => BinaryFunction::Mod,
        "Equal" => BinaryFunction::Equal,
        "Greater" => BinaryFunction::Greater,
        "GreaterOrEqual" => BinaryFunction::GreaterOrEqual,
        other => return fault!("{other} is no function of two elements"),
    })
}

fn pair(
    builder: &mut Builder,
    node: &Node,
    function: BinaryFunction,
    left: &Value,
    right: &Value,
) -> Result<Value, Fault> {
    let (tensor, constant, is_left) = match (left, right) {
        (Value::Tensor(a), Value::Tensor(b)) => {
            let operator = Operator::Binary(Binary { function, constant: None, activation: None });
            return Ok(builder.layer(node, operator, &[a, b], Vec::new())?.into());
        }
        (Value::Tensor(tensor), Value::Constant(constant)) => (tensor, constant, false),
        (Value::Constant(constant), Value::Tensor(tensor)) => (tensor, constant, true),
        // In a chain, two constants before the first tensor.
        (Value::Constant(_), Value::Constant(_)) => {
            let pair = with_operands(node, node.operator, [left.clone(), right.clone()].map(Some), None);
            return Ok(arithmetic::binary(builder, &pair)?.into());
        }
    };
    let weights = constant.weights()?;
    let constant = Some(ConstantOperand { dims: weights.dims.clone(), left: is_left, quantization: None });
    let operator = Operator::Binary(Binary { function, constant, activation: None });
    Ok(builder.layer(node, operator, &[tensor], vec![weights])?.into())
}
