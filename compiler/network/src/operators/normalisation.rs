//! Batch, instance and local response normalisation; softmax.

use csdfc_plan::operator::{InstanceNorm, Lrn, Softmax};
use csdfc_plan::shape::Shape;

use super::facts::{ShapeError, fail};
use super::reduce::check_axes;

pub(super) fn per_channel_shape(channels: usize, x: &Shape) -> Result<Shape, ShapeError> {
    match x.channel_axis() {
        Some(axis) if x.dims[axis] == channels => Ok(x.clone()),
        _ => fail(format!("a normalisation of {channels} channels cannot take {x}")),
    }
}

pub(super) fn instance_norm_shape(norm: &InstanceNorm, x: &Shape) -> Result<Shape, ShapeError> {
    if x.rank() < 3 {
        return fail(format!("instance_norm needs a tensor of rank 3 or more, got {x}"));
    }
    per_channel_shape(norm.channels, x)
}

pub(super) fn softmax_shape(softmax: &Softmax, x: &Shape) -> Result<Shape, ShapeError> {
    check_axes(&softmax.axes, x)?;
    Ok(x.clone())
}

pub(super) fn lrn_shape(lrn: &Lrn, x: &Shape) -> Result<Shape, ShapeError> {
    if lrn.size == 0 {
        return fail("lrn over 0 channels".into());
    }
    if x.rank() < 3 {
        return fail(format!("lrn needs a tensor of rank 3 or more, got {x}"));
    }
    Ok(x.clone())
}
