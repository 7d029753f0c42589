//! Products of matrices.

use crate::import::attribute::{int, ints};
use crate::import::error::{Fault, fault};
use crate::import::node::Value;
use crate::import::tflite::op::{Op, dims};

/// `FULLY_CONNECTED`: on rows with as many elements as the weights have inputs or, with the option `keep_num_dims`, on
/// the last dimension.
pub(super) fn fully_connected(op: &mut Op) -> Result<Vec<Value>, Fault> {
    if op.code(1)? != 0 {
        return fault!("its weights are shuffled");
    }
    let mut x = op.number(0)?;
    let from = dims(&x);
    let mut weights = match &op.operand(1)?.value {
        Value::Constant(_) => op.weights(1, &[0, 1])?,
        Value::Tensor(_) => op.number(1)?,
    };
    let &[units, inner] = dims(&weights).as_slice() else { return fault!("its weights are no matrix") };
    if inner == 0 {
        return fault!("its weights are empty");
    }
    let elements = from.iter().product::<usize>();
    match (from.as_slice(), &weights) {
        // The weights take the order of the image, so that nothing moves at run time.
        (&[1, rows, columns, channels], Value::Constant(_))
            if elements == inner && rows * columns > 1 && channels > 1 && !is_quantized(op) =>
        {
            let cube = op.reshaped(weights, vec![units, rows, columns, channels])?;
            let cube = op.node("Transpose", [cube], vec![ints("perm", [0, 3, 1, 2])])?;
            weights = op.reshaped(cube, vec![units, inner])?;
            x = op.first(x)?;
        }
        _ if elements % inner != 0 => return fault!("{from:?} cannot be seen as rows of {inner} elements"),
        _ => {}
    }
    let x = op.reshaped(x, vec![elements / inner, inner])?;
    let bias = if op.has(2) { Some(op.weights(2, &[0])?) } else { None };
    let y = op.node("Gemm", [Some(x), Some(weights), bias], vec![int("transB", 1)])?;
    let y = op.activated(y, 0)?;
    let y = match (op.flag(2)?, from.split_last()) {
        (true, Some((_, outer))) => op.reshaped(y, outer.iter().copied().chain([units]).collect())?,
        _ => y,
    };
    Ok(vec![y])
}

fn is_quantized(op: &Op) -> bool {
    op.operand(1).is_ok_and(|weights| weights.stated.quantization.is_some())
}

pub(super) fn batch_mat_mul(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let mut operands = op.all_numbers()?;
    for (id, operand) in operands.iter_mut().enumerate() {
        let rank = dims(operand).len();
        if id < 2 && op.flag(id)? {
            if rank < 2 {
                return fault!("its operand {id} is no matrix");
            }
            let mut perm: Vec<i64> = (0..rank as i64).collect();
            perm.swap(rank - 2, rank - 1);
            *operand = op.node("Transpose", [operand.clone()], vec![ints("perm", perm)])?;
        }
    }
    Ok(vec![op.node("MatMul", operands, Vec::new())?])
}
