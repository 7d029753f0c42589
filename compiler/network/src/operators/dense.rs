//! Fully connected layers and matrix products.

use csdfc_plan::operator::Gemm;
use csdfc_plan::shape::Shape;

use super::element_wise::broadcast;
use super::facts::{ShapeError, fail};

pub(super) fn gemm_shape(gemm: &Gemm, x: &Shape) -> Result<Shape, ShapeError> {
    match x.dims.as_slice() {
        [outer @ .., last] if *last == gemm.inner => {
            let mut dims = outer.to_vec();
            dims.push(gemm.units);
            Ok(Shape { dims, order: x.order })
        }
        _ => fail(format!("gemm needs a last dimension of {}, got {x}", gemm.inner)),
    }
}

pub(super) fn gemm_parameters(gemm: &Gemm) -> Vec<Vec<usize>> {
    let weights = if gemm.transposed { [gemm.units, gemm.inner] } else { [gemm.inner, gemm.units] };
    let mut dims = vec![weights.to_vec()];
    if gemm.bias {
        dims.push(vec![gemm.units]);
    }
    dims
}

/// NumPy's rule: a vector on the left is a row, and a vector on the right is a column. A vector leaves no dimension in
/// the output.
pub(super) fn mat_mul_shape(inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let [a, b] = inputs else { return fail(format!("mat_mul takes 2 inputs, got {}", inputs.len())) };
    let (Some((&a_last, a_outer)), Some((&b_last, b_outer))) = (a.dims.split_last(), b.dims.split_last())
    else {
        return fail("mat_mul cannot take a scalar".into());
    };
    let (inner, columns, b_batch) = match b_outer.split_last() {
        Some((&rows, batch)) => (rows, Some(b_last), batch),
        None => (b_last, None, b_outer),
    };
    let (rows, a_batch) = match a_outer.split_last() {
        Some((&rows, batch)) => (Some(rows), batch),
        None => (None, a_outer),
    };
    if a_last != inner {
        return fail(format!("mat_mul of {a} and {b}: the inner dimensions {a_last} and {inner} differ"));
    }
    let mut dims = broadcast(a_batch, b_batch)?;
    dims.extend(rows);
    dims.extend(columns);
    Ok(Shape::new(dims))
}
