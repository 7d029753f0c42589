//! Operators that keep tensors of their own from frame to frame.

use crate::import::attribute::{int, ints};
use crate::import::constant::Constant;
use crate::import::error::{Fault, fault};
use crate::import::node::Value;
use crate::import::tflite::op::{Op, dims};

/// The code of the activation `TANH`.
const TANH: i8 = 4;

/// `SVDF`: each filter makes a number of the input, remembers the last of these, and weighs them. An output is the sum over
/// some filters.
pub(super) fn svdf(op: &mut Op) -> Result<Vec<Value>, Fault> {
    check_floats(op)?;
    let x = op.number(0)?;
    let [of_input, of_time] = [op.number(1)?, op.number(2)?];
    let (&[batch, _], &[filters, memory]) = (dims(&x).as_slice(), dims(&of_time).as_slice()) else {
        return fault!("its operands are no matrices");
    };
    let rank = usize::try_from(op.int(0, 0)?).ok().filter(|rank| *rank > 0 && filters.is_multiple_of(*rank));
    let Some(rank) = rank else { return fault!("its rank does not divide its {filters} filters") };
    if batch != 1 || memory == 0 {
        return fault!("it has a batch of {batch} and a memory of {memory}");
    }
    let made = op.node("Gemm", [x, of_input], vec![int("transB", 1)])?;
    let made = op.reshaped(made, vec![filters, 1])?;
    let before = op.number(STATE)?;
    let before = op.reshaped(before, vec![filters, memory])?;
    let [starts, ends, axes] =
        [1, memory as i64, 1].map(|bound| Value::from(Constant::ints([1], vec![bound])));
    let now = match memory {
        1 => made,
        _ => {
            let kept = op.node("Slice", [before, starts, ends, axes], Vec::new())?;
            op.node("Concat", [kept, made], vec![int("axis", 1)])?
        }
    };
    let kept = op.reshaped(now.clone(), vec![1, filters * memory])?;
    op.keep(STATE, kept);
    let weighed = op.node("Mul", [now, of_time], Vec::new())?;
    let weighed = op.reshaped(weighed, vec![filters / rank, rank * memory])?;
    let axes = Value::from(Constant::ints([1], vec![1]));
    let sums = op.node("ReduceSum", [weighed, axes], vec![int("keepdims", 0)])?;
    let mut y = op.reshaped(sums, vec![1, filters / rank])?;
    if op.has(3) {
        let bias = op.number(3)?;
        y = op.node("Add", [y, bias], Vec::new())?;
    }
    Ok(vec![op.activated(y, 1)?])
}

/// The operand of `SVDF` that it keeps.
const STATE: usize = 4;

/// `UNIDIRECTIONAL_SEQUENCE_LSTM`: ONNX's `LSTM`, whose gates are in another order.
pub(super) fn sequence_lstm(op: &mut Op) -> Result<Vec<Value>, Fault> {
    check_floats(op)?;
    for (operand, what) in [(16, "a projection"), (20, "layer norms")] {
        if op.has(operand) {
            return fault!("it has {what}");
        }
    }
    if !op.has(1) {
        return fault!("its input gate is coupled to its forget gate");
    }
    if op.float(1, 0.0)? > 0.0 {
        return fault!("it clips its cells");
    }
    if op.code(0)? != TANH {
        return fault!("its activation is not tanh");
    }
    let is_time_major = op.flag(3)?;
    let in_time = |op: &mut Op, x: Value| match is_time_major {
        true => Ok(x),
        false => op.node("Transpose", [x], vec![ints("perm", [1, 0, 2])]),
    };
    let x = op.number(0)?;
    let x = in_time(op, x)?;
    // Gates are input, forget, cell and output here, and input, output, forget and cell in ONNX.
    let weights = of_gates(op, [1, 4, 2, 3])?;
    let recurrent = of_gates(op, [5, 8, 6, 7])?;
    let biases = of_gates(op, [12, 15, 13, 14])?;
    let size = match dims(&recurrent).as_slice() {
        &[_, _, size] => size,
        other => return fault!("its recurrent weights have dimensions {other:?}"),
    };
    let zeros = Value::from(Constant::filled(vec![1, 4 * size], 0.0));
    let biases = op.node("Concat", [biases, zeros], vec![int("axis", 1)])?;
    let peepholes = if op.has(9) { Some(of_gates(op, [9, 11, 10])?) } else { None };
    let [steps, batch, _] = dims(&x)[..] else { return fault!("its input is no sequence of rows") };
    let mut kept = Vec::new();
    for operand in [OUTPUT_STATE, CELL_STATE] {
        let state = op.number(operand)?;
        kept.push(op.reshaped(state, vec![1, batch, size])?);
    }
    let [state, cell] = [kept[0].clone(), kept[1].clone()];
    let operands =
        [Some(x), Some(weights), Some(recurrent), Some(biases), None, Some(state), Some(cell), peepholes];
    let made = op.nodes("LSTM", operands, vec![int("hidden_size", size as i64)], 3)?;
    let Ok([all, state, cell]) = <[Value; 3]>::try_from(made) else {
        return fault!("csdfc does not compute it");
    };
    for (operand, value) in [(OUTPUT_STATE, state), (CELL_STATE, cell)] {
        let value = op.reshaped(value, vec![batch, size])?;
        op.keep(operand, value);
    }
    let all = op.reshaped(all, vec![steps, batch, size])?;
    Ok(vec![in_time(op, all)?])
}

/// The operands of a `UNIDIRECTIONAL_SEQUENCE_LSTM` that it keeps.
const OUTPUT_STATE: usize = 18;
const CELL_STATE: usize = 19;

/// Constants of gates, one after another, of the only direction.
fn of_gates<const N: usize>(op: &mut Op, operands: [usize; N]) -> Result<Value, Fault> {
    let parts = operands.into_iter().map(|operand| op.number(operand)).collect::<Result<Vec<Value>, _>>()?;
    let all = op.node("Concat", parts, vec![int("axis", 0)])?;
    let dims = [&[1][..], &dims(&all)].concat();
    op.reshaped(all, dims)
}

fn check_floats(op: &Op) -> Result<(), Fault> {
    match op.operand(0)?.stated.is_quantized() {
        true => fault!("it computes on integers"),
        false => Ok(()),
    }
}
