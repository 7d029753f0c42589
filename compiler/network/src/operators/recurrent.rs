//! Recurrent networks.

use csdfc_plan::operator::{Cell, Function, Recurrent};
use csdfc_plan::shape::Shape;

use super::facts::{ShapeError, fail};

/// The states of all steps, and the memories if the output has them.
pub(super) fn shape(recurrent: &Recurrent, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let Recurrent { cell, size, activations, clip, .. } = recurrent;
    let (Some(x), Some(axis)) = (inputs.first(), inputs.first().and_then(Shape::channel_axis)) else {
        return fail("recurrent takes no scalar".into());
    };
    let with_channels = |channels: usize| {
        let mut shape = x.clone();
        shape.dims[axis] = channels;
        shape
    };
    if !x.is_image() || *size == 0 || size.checked_mul(cell.gates()) != Some(x.channels()) {
        return fail(format!(
            "recurrent of size {size} needs an image of {} channels for each, got {x}",
            cell.gates()
        ));
    }
    let mut first = with_channels(*size);
    if let Some(row) = x.row_axis() {
        first.dims[row] = 1;
    }
    if let Some(other) = inputs[1..].iter().find(|initial| **initial != first) {
        return fail(format!("recurrent needs a first state {first}, got {other}"));
    }
    let has_slopes = |function: &Function| matches!(function, Function::PRelu { .. });
    if activations.len() != cell.functions() || activations.iter().any(has_slopes) {
        return fail(format!("recurrent needs {} functions, got {activations:?}", cell.functions()));
    }
    if clip.is_some_and(|clip| clip.is_nan() || clip <= 0.0) {
        return fail(format!("recurrent clips at a positive number, got {clip:?}"));
    }
    Ok(with_channels(if matches!(cell, Cell::Lstm { memory: true, .. }) { 2 * size } else { *size }))
}

/// The weights of the state, and what the cell has beside them.
pub(super) fn parameters(recurrent: &Recurrent) -> Vec<Vec<usize>> {
    let &Recurrent { cell, size, .. } = recurrent;
    let mut dims = vec![vec![size, cell.gates() * size]];
    match cell {
        Cell::Gru { linear_before_reset: true } => dims.push(vec![size]),
        Cell::Lstm { peepholes: true, .. } => dims.push(vec![3 * size]),
        _ => {}
    }
    dims
}
