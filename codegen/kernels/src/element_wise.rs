//! Functions of each element, batch normalisation, and PRelu by slopes of any shape.
//!
//! A PRelu is never an [`Activation`] here: where one is fused into an operator it follows in place.

use core::ops::Range;

use super::activation::Activation;
use super::arch::Isa;
use super::binary::zip_rows;
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::pixels::{pixel, pixels, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A function of each element, PRelu excepted.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ElementWise {
    /// The function.
    pub function: Activation,
}

/// One operand.
impl RowKernel for ElementWise {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        _: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let input = operands[0];
        for y in y {
            let result = output.row(y);
            result.copy_from_slice(input.row(y));
            activate(context.isa, self.function, result);
        }
    }
}

/// One operand.
impl ElementKernel for ElementWise {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (function, input) = (self.function, &operands[0]);
        output.fill(y, |index| function.apply(input.at(index), 0.0));
    }
}

/// `x·scale + shift`, per channel, with an activation. Its constants are the scale and the shift of each channel.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct BatchNorm {
    /// Applied to every output element.
    pub activation: Activation,
}

/// One operand.
impl RowKernel for BatchNorm {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let input = operands[0];
        let [scale, shift] = [0, 1].map(|i| constants[i].row(0));
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let row = output.row(y);
            for (pixel, result) in pixels(input.row(y), &shape).zip(pixels_mut(row, &out)) {
                let constants = scale.iter().zip(shift);
                for ((r, &x), (scale, shift)) in result.iter_mut().zip(pixel).zip(constants) {
                    *r = x * scale + shift;
                }
            }
            activate(context.isa, self.activation, row);
        }
    }
}

/// One operand, whose dimension 1 counts the channels.
impl ElementKernel for BatchNorm {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        constants: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (activation, input) = (self.activation, &operands[0]);
        let [scale, shift] = [0, 1].map(|i| constants[i].values());
        output.fill(y, |index| {
            let channel = index[1];
            activation.apply(input.at(index) * scale[channel] + shift[channel], 0.0)
        });
    }
}

/// PRelu in place of the output, as the activation of another kernel that has made the same rows just before. It has no
/// operands; its constant is the slopes, as those of [`PRelu`].
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PReluInPlace;

/// No operands.
impl RowKernel for PReluInPlace {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        _: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let slopes = constants[0];
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
}

/// PRelu. Its constant is the slopes: by rows of one height, width and channel or as many as the output, element by
/// element of dimensions that broadcast to it.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PRelu;

/// One operand.
impl RowKernel for PRelu {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        zip_rows(context.isa, y, operands[0], constants[0], output, p_relu_of);
    }
}

/// One operand.
impl ElementKernel for PRelu {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        constants: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (input, slopes) = (&operands[0], &constants[0]);
        let rank = output.shape.dims.rank;
        output.fill(y, |index| {
            let slope = slopes.at(&slopes.seen.broadcast(rank, index));
            let x = input.at(index);
            p_relu_of(x, slope)
        });
    }
}

/// No operands.
impl ElementKernel for PReluInPlace {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        _: &[Elements<'_>],
        constants: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let slopes = &constants[0];
        let shape = output.shape;
        shape.for_each(y, |index| {
            let r = output.at(index);
            *r = p_relu_of(*r, slopes.at(&slopes.seen.broadcast(shape.dims.rank, index)));
        });
    }
}

/// The activation of every element of a row.
#[inline]
pub(crate) fn activate(isa: Isa, activation: Activation, row: &mut [f32]) {
    if activation != Activation::None {
        activation.apply_all(isa, row, &[]);
    }
}

#[inline]
fn p_relu_of(x: f32, slope: f32) -> f32 {
    if x < 0.0 { x * slope } else { x }
}
