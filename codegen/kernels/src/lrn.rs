//! Local response normalisation across channels:
//! `y = x / (bias + alpha / size · Σ x²)^beta`, the sum over `size` channels around the element's.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::lrn::Lrn;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[3.0]), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! let mut made = [0.0; 1];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! Lrn { size: 1, alpha: 1.0, beta: 1.0, bias: 0.0 }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [1.0 / 3.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::math;
use super::pixels::{pixels, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A local response normalisation, by its ONNX definition.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[allow(missing_docs, reason = "each is ONNX's attribute of that name")]
pub struct Lrn {
    pub size: usize,
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
}

/// One operand, by rows.
impl RowKernel for Lrn {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        _: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let input = operands[0];
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            for (pixel, result) in pixels(input.row(y), &shape).zip(pixels_mut(output.row(y), &out)) {
                for (channel, (r, &x)) in result.iter_mut().zip(pixel).enumerate() {
                    *r = self.normalise(x, pixel[self.window(channel, pixel.len())].iter().copied());
                }
            }
        }
    }
}

/// One operand, whose dimension 1 counts the channels.
impl ElementKernel for Lrn {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let input = &operands[0];
        output.fill(y, |index| {
            let around = self.window(index[1], input.seen.sizes[1]).map(|channel| {
                let mut at = *index;
                at[1] = channel;
                input.at(&at)
            });
            self.normalise(input.at(index), around)
        });
    }
}

impl Lrn {
    #[inline]
    fn window(&self, channel: usize, channels: usize) -> Range<usize> {
        let before = (self.size - 1) / 2;
        let after = self.size - 1 - before;
        channel.saturating_sub(before)..channels.min(channel + after + 1)
    }

    #[inline]
    fn normalise(&self, x: f32, around: impl Iterator<Item = f32>) -> f32 {
        let squares = around.fold(0.0, |sum, x| sum + x * x);
        x / self.power(self.bias + self.alpha / self.size as f32 * squares)
    }

    /// `base^beta`; the exponents of the known networks are made of square roots.
    #[inline]
    fn power(&self, base: f32) -> f32 {
        let root = math::sqrt(base);
        if self.beta == 0.75 {
            root * math::sqrt(root)
        } else if self.beta == 0.5 {
            root
        } else {
            math::pow(base, self.beta)
        }
    }
}
