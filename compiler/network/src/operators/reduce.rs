//! Reductions over whole dimensions.

use csdfc_plan::operator::{ArgMax, GatherElements, NonMaxSuppression, Reduce, TopK};
use csdfc_plan::shape::Shape;

use super::facts::{ShapeError, fail};

/// The order of dimensions stays, if all of them do.
pub(super) fn reduce_shape(reduce: &Reduce, x: &Shape) -> Result<Shape, ShapeError> {
    let shape = reduced_shape(&reduce.axes, reduce.keep_dims, x)?;
    Ok(if reduce.keep_dims { Shape { order: x.order, ..shape } } else { shape })
}

pub(super) fn arg_max_shape(arg_max: &ArgMax, x: &Shape) -> Result<Shape, ShapeError> {
    reduced_shape(&[arg_max.axis], arg_max.keep_dims, x)
}

fn reduced_shape(axes: &[usize], keep_dims: bool, x: &Shape) -> Result<Shape, ShapeError> {
    check_axes(axes, x)?;
    let dims = x.dims.iter().enumerate();
    let dims: Vec<usize> = if keep_dims {
        dims.map(|(axis, &dim)| if axes.contains(&axis) { 1 } else { dim }).collect()
    } else {
        dims.filter(|(axis, _)| !axes.contains(axis)).map(|(_, &dim)| dim).collect()
    };
    Ok(Shape::new(dims))
}

pub(super) fn top_k_shape(top: &TopK, x: &Shape) -> Result<Shape, ShapeError> {
    check_axes(&[top.axis], x)?;
    let mut dims = x.dims.clone();
    let size = std::mem::replace(&mut dims[top.axis], top.count);
    if top.count > size {
        return fail(format!("it takes {} of {size} elements", top.count));
    }
    Ok(Shape::new(dims))
}

pub(super) fn gather_elements_shape(gather: &GatherElements, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let [x, indices] = inputs else { return fail("a gather_elements reads a tensor and indices".into()) };
    check_axes(&[gather.axis], x)?;
    let fits = |(axis, (index, dim)): (usize, (&usize, &usize))| axis == gather.axis || index <= dim;
    if indices.rank() != x.rank() || !indices.dims.iter().zip(&x.dims).enumerate().all(fits) {
        return fail(format!("indices {indices} along dimension {} of {x}", gather.axis));
    }
    Ok(Shape::new(indices.dims.clone()))
}

pub(super) fn suppression_shape(
    suppression: &NonMaxSuppression,
    inputs: &[Shape],
) -> Result<Shape, ShapeError> {
    let [boxes, scores] = inputs else { return fail("a non_max_suppression reads boxes and scores".into()) };
    match (&boxes.dims[..], &scores.dims[..]) {
        (&[n, count, 4], &[batch, classes, each]) if n == batch && count == each => {
            if !(1..=count.min(NonMaxSuppression::MAX_BOXES)).contains(&suppression.most) {
                return fail(format!("it keeps {} of {count} boxes", suppression.most));
            }
            Ok(Shape::new([n.saturating_mul(classes).saturating_mul(suppression.most), 3]))
        }
        _ => fail(format!("a non_max_suppression of boxes {boxes} with scores {scores}")),
    }
}

pub(super) fn check_axes(axes: &[usize], x: &Shape) -> Result<(), ShapeError> {
    if let Some(axis) = axes.iter().find(|axis| **axis >= x.rank()) {
        return fail(format!("a tensor of shape {x} has no dimension {axis}"));
    }
    if axes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return fail("dimensions must be ascending, each once".into());
    }
    Ok(())
}
