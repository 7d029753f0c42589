//! Floats as bytes, and bytes as floats.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::quantized::cast::Quantize;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[-1.0, 0.0, 0.5]), shape: RowShape::dense(1, 1, 3, 1) }; // [1, 1, 3]
//! let mut made = [0_u8; 3];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 3, 1) }; // [1, 1, 3]
//! Quantize { scale: 0.5, zero_point: 128 }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [126, 128, 129]);
//! ```

use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::elements::{Elements, ElementsMut};
use super::super::kernel::{Context, ElementKernel, RowKernel};
use super::super::rows::{Rows, RowsMut};
use super::Requantize;

/// Floats become bytes: `clamp(round_half_even(x / scale) + zero_point, 0, 255)`. NaN becomes the zero point.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Quantize {
    /// The number that one step of an element stands for; above 0.
    pub scale: f32,
    /// The element that stands for 0.
    pub zero_point: u8,
}

/// Bytes become floats: `scale · (q − zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Dequantize {
    /// What one step of an element stands for.
    pub scale: f32,
    /// The element that stands for 0.
    pub zero_point: u8,
}

/// A function of an element.
pub(super) trait Function<O, I>: Copy {
    fn apply(self, x: I) -> O;
}

impl Function<u8, f32> for Quantize {
    #[inline(always)]
    fn apply(self, x: f32) -> u8 {
        let x = x / self.scale;
        let x = if x.is_nan() { 0.0 } else { x };
        Requantize { zero_point: self.zero_point, low: 0, high: u8::MAX }.round(x)
    }
}

impl Function<f32, u8> for Dequantize {
    #[inline(always)]
    fn apply(self, q: u8) -> f32 {
        self.scale * f32::from(i16::from(q) - i16::from(self.zero_point))
    }
}

/// A function of rows as work for an instruction set.
struct CastWork<'a, 'o, 'd, O, I, F> {
    y: Range<usize>,
    input: Rows<'a, I>,
    output: &'o mut RowsMut<'d, O>,
    f: F,
}

impl<O, I: Copy, F: Function<O, I>> Job for CastWork<'_, '_, '_, O, I, F> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let CastWork { y, input, output, f } = self;
        for y in y {
            output.row(y).iter_mut().zip(input.row(y)).for_each(|(r, &x)| *r = f.apply(x));
        }
    }
}

/// One operand, of the output's shape.
impl RowKernel<u8, f32> for Quantize {
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        _: &[Rows<'_>],
        output: &mut RowsMut<'_, u8>,
    ) {
        context.isa.run(CastWork { y, input: operands[0], output, f: *self });
    }
}

/// One operand, of the output's dimensions.
impl ElementKernel<u8, f32> for Quantize {
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_, u8>,
    ) {
        output.fill(y, |index| self.apply(operands[0].at(index)));
    }
}

/// One operand, of the output's shape.
impl RowKernel<f32, u8> for Dequantize {
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        _: &[Rows<'_, u8>],
        output: &mut RowsMut<'_>,
    ) {
        context.isa.run(CastWork { y, input: operands[0], output, f: *self });
    }
}

/// One operand, of the output's dimensions.
impl ElementKernel<f32, u8> for Dequantize {
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, u8>],
        _: &[Elements<'_, u8>],
        output: &mut ElementsMut<'_>,
    ) {
        output.fill(y, |index| self.apply(operands[0].at(index)));
    }
}
