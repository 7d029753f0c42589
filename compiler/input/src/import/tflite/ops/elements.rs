//! Functions of each element, of one operand and of two.

use crate::import::attribute::{float, text};
use crate::import::error::Fault;
use crate::import::node::Value;
use crate::import::tflite::op::{Op, dims};

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

/// An operator of several operands that is a single ONNX node.
macro_rules! functions_of_many {
    ($($name:ident: $operator:literal),* $(,)?) => {
        $(
            pub(super) fn $name(op: &mut Op) -> Result<Vec<Value>, Fault> {
                of_many(op, |op, all| op.node($operator, all, Vec::new()))
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
    cos: "Cos",
    elu: "Elu",
    exp: "Exp",
    floor: "Floor",
    hard_swish: "HardSwish",
    log: "Log",
    logical_not: "Not",
    logistic: "Sigmoid",
    neg: "Neg",
    relu: "Relu",
    round: "Round",
    sign: "Sign",
    sin: "Sin",
    sqrt: "Sqrt",
    tanh: "Tanh",
}

functions_of_many! {
    equal: "Equal",
    floor_mod: "Mod",
    greater: "Greater",
    greater_equal: "GreaterOrEqual",
    less: "Less",
    less_equal: "LessOrEqual",
    logical_and: "And",
    logical_or: "Or",
    maximum: "Max",
    minimum: "Min",
    pow: "Pow",
    p_relu: "PRelu",
    select_v2: "Where",
}

functions_of_two! { add: "Add", div: "Div", mul: "Mul", sub: "Sub" }

pub(super) fn add_n(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| op.node("Sum", all, Vec::new()))
}

pub(super) fn not_equal(op: &mut Op) -> Result<Vec<Value>, Fault> {
    of_many(op, |op, all| {
        let equal = op.node("Equal", all, Vec::new())?;
        op.node("Not", [equal], Vec::new())
    })
}

/// `SELECT`, whose condition may also be a vector with one truth value for each index of the first dimension.
pub(super) fn select(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let mut all = op.all_numbers()?;
    if let [condition, x, ..] = all.as_mut_slice()
        && let (&[length], &[first, _, ..]) = (dims(condition).as_slice(), dims(x).as_slice())
        && length == first
    {
        let mut wanted = vec![1; dims(x).len()];
        wanted[0] = length;
        *condition = op.reshaped(condition.clone(), wanted)?;
    }
    of_values(op, all, |op, all| op.node("Where", all, Vec::new()))
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
    of_values(op, all, make)
}

fn of_values(
    op: &mut Op,
    all: Vec<Value>,
    make: impl FnOnce(&mut Op, Vec<Value>) -> Result<Value, Fault>,
) -> Result<Vec<Value>, Fault> {
    let (all, is_first) = op.aligned(all)?;
    let y = make(op, all)?;
    Ok(vec![op.last_if(is_first, y)?])
}
