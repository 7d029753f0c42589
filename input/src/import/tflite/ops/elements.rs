//! Functions of each element, of one operand and of two.

use crate::import::attribute::{float, text};
use crate::import::error::Fault;
use crate::import::node::Value;
use crate::import::tflite::op::{Op, scalar};

/// An operator of one operand that is a single ONNX node.
macro_rules! functions {
    ($($name:ident: $operator:literal),* $(,)?) => {
        $(
            pub(super) fn $name(op: &mut Op) -> Result<Vec<Value>, Fault> {
                function(op, |op, x| op.node($operator, [x], Vec::new()))
            }
        )*
    };
}

/// An operator of two operands that is a single ONNX node, and the activation fused into it.
macro_rules! functions_of_two {
    ($($name:ident: $operator:literal),* $(,)?) => {
        $(
            pub(super) fn $name(op: &mut Op) -> Result<Vec<Value>, Fault> {
                of_many(op, |op, all| {
                    let y = op.node($operator, all, Vec::new())?;
                    op.activated(y, 0)
                })
            }
        )*
    };
}

functions! {
    abs: "Abs",
    ceil: "Ceil",
    elu: "Elu",
    exp: "Exp",
    floor: "Floor",
    hard_swish: "HardSwish",
    log: "Log",
    logistic: "Sigmoid",
    neg: "Neg",
    relu: "Relu",
    round: "Round",
    sqrt: "Sqrt",
    tanh: "Tanh",
}

functions_of_two! { add: "Add", div: "Div", mul: "Mul", sub: "Sub" }

pub(super) fn add_n(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| op.node("Sum", all, Vec::new()))
}

pub(super) fn maximum(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| op.node("Max", all, Vec::new()))
}

pub(super) fn minimum(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| op.node("Min", all, Vec::new()))
}

pub(super) fn pow(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| op.node("Pow", all, Vec::new()))
}

pub(super) fn squared_difference(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| {
        let difference = op.node("Sub", all, Vec::new())?;
        op.node("Mul", [difference.clone(), difference], Vec::new())
    })
}

pub(super) fn square(op: &mut Op) -> Result<Vec<Value>, Fault> {
    function(op, |op, x| op.node("Mul", [x.clone(), x], Vec::new()))
}

pub(super) fn rsqrt(op: &mut Op) -> Result<Vec<Value>, Fault> {
    function(op, |op, x| {
        let root = op.node("Sqrt", [x], Vec::new())?;
        op.node("Reciprocal", [root], Vec::new())
    })
}

pub(super) fn relu_6(op: &mut Op) -> Result<Vec<Value>, Fault> {
    function(op, |op, x| op.clipped(x, 0.0, 6.0))
}

pub(super) fn relu_0_to_1(op: &mut Op) -> Result<Vec<Value>, Fault> {
    function(op, |op, x| op.clipped(x, 0.0, 1.0))
}

pub(super) fn relu_n1_to_1(op: &mut Op) -> Result<Vec<Value>, Fault> {
    function(op, |op, x| op.clipped(x, -1.0, 1.0))
}

pub(super) fn leaky_relu(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let alpha = op.float(0, 0.0)?;
    function(op, |op, x| op.node("LeakyRelu", [x], vec![float("alpha", alpha)]))
}

pub(super) fn gelu(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let approximate = if op.flag(0)? { "tanh" } else { "none" };
    function(op, |op, x| op.node("Gelu", [x], vec![text("approximate", approximate)]))
}

/// `PRELU` with constant slopes. With slopes that the network computes, it is `max(x, 0) + slope · min(x, 0)`.
pub(super) fn p_relu(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| {
        let [x, slope] = <[Value; 2]>::try_from(all).map_err(|_| Fault::new("it needs two operands"))?;
        if matches!(slope, Value::Constant(_)) {
            return op.node("PRelu", [x, slope], Vec::new());
        }
        let positive = op.node("Max", [x.clone(), scalar(0.0)], Vec::new())?;
        let negative = op.node("Min", [x, scalar(0.0)], Vec::new())?;
        let sloped = op.node("Mul", [negative, slope], Vec::new())?;
        op.node("Add", [positive, sloped], Vec::new())
    })
}

fn function(
    op: &mut Op,
    make: impl FnOnce(&mut Op, Value) -> Result<Value, Fault>,
) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let (x, is_first) = op.first_if_last(x)?;
    let y = make(op, x)?;
    Ok(vec![op.last_if(is_first, y)?])
}

fn of_many(
    op: &mut Op,
    make: impl FnOnce(&mut Op, Vec<Value>) -> Result<Value, Fault>,
) -> Result<Vec<Value>, Fault> {
    let all = op.all_numbers()?;
    let (all, is_first) = op.aligned(all)?;
    let y = make(op, all)?;
    Ok(vec![op.last_if(is_first, y)?])
}
