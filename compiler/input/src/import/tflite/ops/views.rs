//! Views, changes of an element's type, and shapes.

use rten_onnx::onnx::DataType;

use crate::import::attribute::{int, ints};
use crate::import::batch;
use crate::import::error::{Fault, fault};
use crate::import::node::{self, Value};
use crate::import::tflite::op::{Op, dims, list};

/// `RESHAPE`. The shape is an operand, an option, or the stated shape of the output.
pub(super) fn reshape(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.viewed_operand(0)?;
    let wanted = match op.operand(1).ok().map(|operand| &operand.value) {
        Some(Value::Constant(wanted)) => wanted.to_ints()?,
        _ => {
            let option = op.options.map(|options| options.ints(0, 8)).transpose()?.unwrap_or_default();
            let stated = op.outputs.first().map(|output| output.dims.clone()).unwrap_or_default();
            let wanted = if option.is_empty() { stated } else { option };
            wanted.into_iter().map(i64::from).collect()
        }
    };
    let known: usize =
        wanted.iter().filter_map(|dim| usize::try_from(*dim).ok()).fold(1, usize::saturating_mul);
    let all: usize = batch::all_dims(&x).iter().product();
    let dim = |dim: &i64| match (dim, usize::try_from(*dim)) {
        (-1, _) if known > 0 => Ok(all / known),
        (_, Ok(dim)) => Ok(dim),
        _ => fault!("shape {wanted:?} is not lawful"),
    };
    let wanted = wanted.iter().map(dim).collect::<Result<_, _>>()?;
    let wanted = batch::one_frame(wanted, batch::batched(&x).map_or(1, |x| x.batch))?;
    Ok(vec![op.reshaped(x, wanted)?])
}

pub(super) fn squeeze(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.viewed_operand(0)?;
    let from = dims(&x);
    let chosen = op.options.map(|options| options.ints(0, 8)).transpose()?.unwrap_or_default();
    let chosen: Vec<i64> = chosen.into_iter().map(i64::from).collect();
    let chosen = match chosen.as_slice() {
        [] => (0..from.len()).filter(|axis| from[*axis] == 1).collect(),
        chosen => node::axes(chosen, from.len())?,
    };
    let left = (0..from.len()).filter(|axis| !chosen.contains(axis)).map(|axis| from[axis]).collect();
    Ok(vec![op.reshaped(x, left)?])
}

pub(super) fn expand_dims(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.viewed_operand(0)?;
    let mut wanted = dims(&x);
    let axis = node::axis(op.constant(1, "axis")?.scalar_int()?, wanted.len() + 1)?;
    wanted.insert(axis, 1);
    Ok(vec![op.reshaped(x, wanted)?])
}

pub(super) fn transpose(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let (x, perm) = (op.viewed_operand(0)?, op.ints(1, "perm")?);
    Ok(vec![op.node("Transpose", [x], vec![ints("perm", perm)])?])
}

pub(super) fn broadcast_to(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let (x, shape) = (op.number(0)?, op.ints(1, "shape")?);
    Ok(vec![op.node("Expand", [x, list(shape)], Vec::new())?])
}

/// `SHAPE`, which is known at import.
pub(super) fn shape(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let shape = dims(&op.operand(0)?.value).into_iter().map(|dim| dim as i64).collect();
    Ok(vec![list(shape)])
}

/// `QUANTIZE`: returns the numbers, from which the output's integers are made.
pub(super) fn quantize(op: &mut Op) -> Result<Vec<Value>, Fault> {
    if !op.outputs.iter().all(|output| output.is_quantized()) {
        return fault!("its output is no 8-bit integers with a scale");
    }
    Ok(vec![op.number(0)?])
}

/// `DEQUANTIZE` of integers, or of floats of 16 bits.
pub(super) fn dequantize(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let operand = op.operand(0)?;
    let is_constant = matches!(operand.value, Value::Constant(_));
    if is_constant && operand.stated.element != DataType::FLOAT16 {
        let perm: Vec<usize> = (0..dims(&operand.value).len()).collect();
        return Ok(vec![op.weights(0, &perm)?]);
    }
    Ok(vec![op.number(0)?])
}

/// `DENSIFY`: constants are dense already.
pub(super) fn densify(op: &mut Op) -> Result<Vec<Value>, Fault> {
    Ok(vec![op.constant(0, "operand")?.clone().into()])
}

/// `CAST` between kinds of floats does nothing; constants are converted.
pub(super) fn cast(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let value = op.operand(0)?.value.clone();
    let Some(to) = op.outputs.first().map(|output| output.element) else { return fault!("it has no output") };
    // Constants of 32 bits are as those of 64.
    let to = match value {
        Value::Constant(_) if to == DataType::INT32 => DataType::INT64,
        _ => to,
    };
    Ok(vec![op.node("Cast", [value], vec![int("to", i64::from(to.0))])?])
}
