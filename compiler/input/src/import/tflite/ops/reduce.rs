//! Reductions over dimensions, and normalisations along one.

use crate::import::attribute::int;
use crate::import::error::{Fault, fault};
use crate::import::node::Value;
use crate::import::tflite::op::{Op, dims, list, scalar};

pub(super) fn mean(op: &mut Op) -> Result<Vec<Value>, Fault> {
    reduction(op, "ReduceMean")
}

pub(super) fn sum(op: &mut Op) -> Result<Vec<Value>, Fault> {
    reduction(op, "ReduceSum")
}

pub(super) fn max(op: &mut Op) -> Result<Vec<Value>, Fault> {
    reduction(op, "ReduceMax")
}

pub(super) fn min(op: &mut Op) -> Result<Vec<Value>, Fault> {
    reduction(op, "ReduceMin")
}

pub(super) fn prod(op: &mut Op) -> Result<Vec<Value>, Fault> {
    reduction(op, "ReduceProd")
}

fn reduction(op: &mut Op, operator: &str) -> Result<Vec<Value>, Fault> {
    let (x, axes) = (op.number(0)?, op.ints(1, "axes")?);
    if axes.is_empty() {
        return fault!("it reduces no dimension");
    }
    let rank = dims(&x).len();
    let mut chosen = Vec::new();
    for axis in axes {
        let axis = op.axis(axis, rank, false)? as i64;
        // TFLite takes an axis that is named twice for one.
        if !chosen.contains(&axis) {
            chosen.push(axis);
        }
    }
    let keep = int("keepdims", i64::from(op.flag(0)?));
    Ok(vec![op.node(operator, [x, list(chosen)], vec![keep])?])
}

pub(super) fn arg_max(op: &mut Op) -> Result<Vec<Value>, Fault> {
    place_of(op, "ArgMax")
}

pub(super) fn arg_min(op: &mut Op) -> Result<Vec<Value>, Fault> {
    place_of(op, "ArgMin")
}

fn place_of(op: &mut Op, operator: &str) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let axis = op.constant(1, "axis")?.scalar_int()?;
    let attributes = vec![int("axis", axis), int("keepdims", 0)];
    Ok(vec![op.node(operator, [x], attributes)?])
}

/// `CUMSUM` along a dimension.
pub(super) fn cumulative_sum(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let (axis, rank) = (op.constant(1, "axis")?.scalar_int()?, dims(&x).len());
    let (x, is_first) = op.first_if_last(x)?;
    let axis = list(vec![op.axis(axis, rank, is_first)? as i64]);
    let attributes = vec![int("exclusive", i64::from(op.flag(0)?)), int("reverse", i64::from(op.flag(1)?))];
    let y = op.node("CumSum", [x, axis], attributes)?;
    Ok(vec![op.last_if(is_first, y)?])
}

/// `TOPK_V2` along the last dimension.
pub(super) fn top_k(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let count = op.constant(1, "k")?.scalar_int()?;
    op.nodes("TopK", [x, list(vec![count])], vec![int("axis", -1)], 2)
}

/// `SOFTMAX` along the last dimension, of the operand times beta.
pub(super) fn softmax(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let beta = op.float(0, 0.0)?;
    along_last(op, |op, x, axis| {
        let x = if beta == 1.0 { x } else { op.node("Mul", [x, scalar(beta)], Vec::new())? };
        op.node("Softmax", [x], vec![int("axis", axis)])
    })
}

pub(super) fn log_softmax(op: &mut Op) -> Result<Vec<Value>, Fault> {
    along_last(op, |op, x, axis| op.node("LogSoftmax", [x], vec![int("axis", axis)]))
}

pub(super) fn l2_normalization(op: &mut Op) -> Result<Vec<Value>, Fault> {
    along_last(op, |op, x, axis| {
        let y = op.node("LpNormalization", [x], vec![int("axis", axis), int("p", 2)])?;
        op.activated(y, 0)
    })
}

fn along_last(
    op: &mut Op,
    make: impl FnOnce(&mut Op, Value, i64) -> Result<Value, Fault>,
) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let (x, is_first) = op.first_if_last(x)?;
    let axis = op.axis(-1, dims(&x).len(), is_first)?;
    let y = make(op, x, axis as i64)?;
    Ok(vec![op.last_if(is_first, y)?])
}
