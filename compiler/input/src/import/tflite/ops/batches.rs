//! `SPACE_TO_BATCH_ND` and `BATCH_TO_SPACE_ND`. They make batches, which csdfc does not have, so they are taken only around
//! a convolution, where [`Part`] says how each changes.

use crate::import::error::Fault;
use crate::import::node::Value;
use crate::import::tflite::dilated::Part;
use crate::import::tflite::op::{Op, dims};

/// An operator of a chain that is one convolution. `import` imports it if it is neither the first nor the last.
pub(super) fn part(
    op: &mut Op,
    part: &Part,
    import: fn(&mut Op) -> Result<Vec<Value>, Fault>,
) -> Result<Vec<Value>, Fault> {
    match part {
        Part::Image { added } => {
            let x = op.viewed_operand(0)?;
            let mut wanted = dims(&x);
            if let Some(axis) = added.filter(|axis| *axis <= wanted.len()) {
                wanted.insert(axis, 1);
            }
            Ok(vec![op.reshaped(x, wanted)?])
        }
        Part::Same => Ok(vec![op.viewed_operand(0)?]),
        Part::Convolution(_) => import(op),
        Part::Cropped { before, after, removed } => {
            let mut y = op.viewed_operand(0)?;
            if [before, after].into_iter().flatten().any(|crop| *crop > 0) {
                let starts = vec![0, before[0], before[1], 0];
                let end = |(axis, dim): (usize, usize)| match axis {
                    1 | 2 => dim as i64 - after[axis - 1],
                    _ => dim as i64,
                };
                let ends = dims(&y).into_iter().enumerate().map(end).collect();
                y = super::movement::sliced(op, y, starts, ends, vec![1; 4])?;
            }
            let mut wanted = dims(&y);
            if let Some(axis) = removed.filter(|axis| *axis < wanted.len()) {
                wanted.remove(axis);
            }
            Ok(vec![op.reshaped(y, wanted)?])
        }
    }
}

/// One of the two operators anywhere else.
pub(super) fn alone(_: &mut Op) -> Result<Vec<Value>, Fault> {
    Err(Fault::new("it makes batches, but csdfc plans one frame at a time").help(
        "csdfc reads SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND with equal blocks around one convolution of stride 1, as a \
         dilated convolution",
    ))
}
