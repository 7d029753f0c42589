//! Functions of one and of two tensors element by element.

use csdfc_plan::operator::{Binary, Function, Where};
use csdfc_plan::shape::{Order, Shape};

use super::facts::{ShapeError, fail};

pub(super) fn function_shape(function: &Function, x: &Shape) -> Result<Shape, ShapeError> {
    if let Function::PRelu { slope } = function
        && broadcast(slope, &x.dims)? != x.dims
    {
        return fail(format!("a PRelu slope of {} does not broadcast to {x}", Shape::new(slope.clone())));
    }
    Ok(x.clone())
}

pub(super) fn binary_shape(binary: &Binary, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let (dims, order) = match (&binary.constant, inputs) {
        (Some(constant), [x]) => (broadcast(&x.dims, &constant.dims)?, x.order),
        (None, [a, b]) => {
            (broadcast(&a.dims, &b.dims)?, if a.rank() >= b.rank() { a.order } else { b.order })
        }
        _ => {
            return fail(format!(
                "binary takes one input and a constant or two inputs, got {}",
                inputs.len()
            ));
        }
    };
    // A constant of higher rank would move the meaning of the input's dimensions.
    let kept = inputs.iter().all(|x| x.rank() == dims.len());
    Ok(Shape { dims, order: if kept { order } else { Order::ChannelsFirst } })
}

pub(super) fn where_shape(choice: &Where, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let all = inputs.iter().map(|x| x.dims.as_slice()).chain(choice.constants());
    let dims = all.into_iter().try_fold(Vec::new(), |dims, other| broadcast(&dims, other))?;
    let order = inputs.first().map_or(Order::ChannelsFirst, |condition| condition.order);
    let kept = inputs.iter().all(|x| x.rank() == dims.len() && x.order == order);
    Ok(Shape { dims, order: if kept { order } else { Order::ChannelsFirst } })
}

/// The dimensions to which two tensors broadcast (ONNX: aligned at the last dimension, a 1 repeats).
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Vec<usize>, ShapeError> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut dims = long.to_vec();
    for (dim, &other) in dims.iter_mut().rev().zip(short.iter().rev()) {
        match (*dim, other) {
            (x, y) if x == y => {}
            (1, _) => *dim = other,
            (_, 1) => {}
            _ => {
                let (a, b) = (Shape::new(a), Shape::new(b));
                return fail(format!("shapes {a} and {b} do not broadcast"));
            }
        }
    }
    Ok(dims)
}
