//! Functions of each element, batch normalisation, and PRelu by slopes of any shape.
//!
//! A PRelu is never an [`Activation`] here: where one is fused into an operator it follows in place.

use core::ops::Range;

use super::activation::Activation;
use super::arch::Isa;
use super::binary::zip_rows;
use super::elements::{Elements, ElementsMut};
use super::pixels::{copy, is_dense, pixel, pixels, pixels_mut};
use super::rows::{RowShape, Rows, RowsMut};

/// Output rows `y` of a function of each element, PRelu excepted.
#[inline]
pub fn element_wise(
    isa: Isa,
    function: Activation,
    y: Range<usize>,
    input: Rows<'_>,
    output: &mut RowsMut<'_>,
) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        let (row, result) = (input.row(y), output.row(y));
        copy(row, &shape, result, &out);
        activate(isa, function, result, &out);
    }
}

/// Output rows `y` of a function of each element, PRelu excepted.
#[inline]
pub fn element_wise_elements(
    function: Activation,
    y: Range<usize>,
    input: &Elements<'_>,
    output: &mut ElementsMut<'_>,
) {
    output.fill(y, |index| function.apply(input.at(index), 0.0));
}

/// Output rows `y` of `x·scale + shift`, per channel, with an activation.
#[inline]
pub fn batch_norm(
    isa: Isa,
    activation: Activation,
    y: Range<usize>,
    input: Rows<'_>,
    scale: &[f32],
    shift: &[f32],
    output: &mut RowsMut<'_>,
) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        let row = output.row(y);
        for (pixel, result) in pixels(input.row(y), &shape).zip(pixels_mut(row, &out)) {
            let constants = scale.iter().zip(shift);
            for ((r, &x), (scale, shift)) in result.iter_mut().zip(pixel).zip(constants) {
                *r = x * scale + shift;
            }
        }
        activate(isa, activation, row, &out);
    }
}

/// Output rows `y` of `x·scale + shift` where dimension 1 counts the channels, with an activation.
#[inline]
pub fn batch_norm_elements(
    activation: Activation,
    y: Range<usize>,
    input: &Elements<'_>,
    scale: &[f32],
    shift: &[f32],
    output: &mut ElementsMut<'_>,
) {
    output.fill(y, |index| {
        let channel = index[1];
        activation.apply(input.at(index) * scale[channel] + shift[channel], 0.0)
    });
}

/// PRelu in place of output rows `y`, as the activation of another operator of this crate's; slopes as in [`p_relu`].
#[inline]
pub fn p_relu_in_place(y: Range<usize>, slopes: Rows<'_>, output: &mut RowsMut<'_>) {
    let (shape, out) = (slopes.shape, output.shape);
    for y in y {
        let slopes = slopes.row(if shape.height == 1 { 0 } else { y });
        for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
            let slopes = pixel(slopes, &shape, if shape.width == 1 { 0 } else { x });
            match slopes {
                &[slope] => result.iter_mut().for_each(|r| *r = p_relu_of(*r, slope)),
                slopes => result.iter_mut().zip(slopes).for_each(|(r, &slope)| *r = p_relu_of(*r, slope)),
            }
        }
    }
}

/// Output rows `y` of PRelu. The slopes are rows of one height, width and channel or as many as the input.
#[inline]
pub fn p_relu(isa: Isa, y: Range<usize>, input: Rows<'_>, slopes: Rows<'_>, output: &mut RowsMut<'_>) {
    zip_rows(isa, y, input, slopes, output, p_relu_of);
}

/// Output rows `y` of PRelu, with slopes that broadcast to it.
#[inline]
pub fn p_relu_elements(
    y: Range<usize>,
    input: &Elements<'_>,
    slopes: &Elements<'_>,
    output: &mut ElementsMut<'_>,
) {
    let rank = output.shape.dims.rank;
    output.fill(y, |index| {
        let slope = slopes.at(&slopes.seen.broadcast(rank, index));
        let x = input.at(index);
        p_relu_of(x, slope)
    });
}

/// PRelu in place of output rows `y`, with slopes that broadcast to the output.
#[inline]
pub fn p_relu_in_place_elements(y: Range<usize>, slopes: &Elements<'_>, output: &mut ElementsMut<'_>) {
    let shape = output.shape;
    shape.for_each(y, |index| {
        let r = output.at(index);
        *r = p_relu_of(*r, slopes.at(&slopes.seen.broadcast(shape.dims.rank, index)));
    });
}

/// The activation of every pixel of a row.
#[inline]
pub(crate) fn activate(isa: Isa, activation: Activation, row: &mut [f32], shape: &RowShape) {
    if activation == Activation::None {
        return;
    }
    if is_dense(shape) {
        activation.apply_all(isa, row, &[]);
    } else {
        pixels_mut(row, shape).for_each(|pixel| activation.apply_all(isa, pixel, &[]));
    }
}

#[inline]
fn p_relu_of(x: f32, slope: f32) -> f32 {
    if x < 0.0 { x * slope } else { x }
}
