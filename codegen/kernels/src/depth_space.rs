//! Blocks of channels become blocks of pixels, and the other way round.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::depth_space::DepthToSpace;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[1.0, 2.0, 3.0, 4.0]), shape: RowShape::dense(1, 1, 4, 1) }; // [1, 1, 4]
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // [2, 2, 1]
//! DepthToSpace { block: 2, depth_first: true }.rows(&mut Context::alone(Isa::PORTABLE), 0..2, &[input], &[], &mut output);
//! assert_eq!(made, [1.0, 2.0, 3.0, 4.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::pixels::{pixel, pixel_mut, pixels_mut};
use super::rows::{Rows, RowsMut};

/// Channels that become pixels.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DepthToSpace {
    /// Side of the square of pixels that `block²` channels become.
    pub block: usize,
    /// Whether the block index varies slower than the channel (ONNX mode DCR) or faster (CRD).
    pub depth_first: bool,
}

/// One operand, by rows.
impl<T: Copy> RowKernel<T, T> for DepthToSpace {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, T>],
        _: &[Rows<'_, T>],
        output: &mut RowsMut<'_, T>,
    ) {
        let input = operands[0];
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let row = input.row(y / self.block);
            for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
                let pixel = pixel(row, &shape, x / self.block);
                let within = y % self.block * self.block + x % self.block;
                if self.depth_first {
                    result.copy_from_slice(&pixel[within * out.channels..][..out.channels]);
                } else {
                    let every = pixel[within..].iter().step_by(self.block * self.block);
                    result.iter_mut().zip(every).for_each(|(r, &x)| *r = x);
                }
            }
        }
    }
}

/// One operand, `[N, C, H, W]`, whatever the batch.
impl<T: Copy> ElementKernel<T, T> for DepthToSpace {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, T>],
        _: &[Elements<'_, T>],
        output: &mut ElementsMut<'_, T>,
    ) {
        let (p, input) = (self, &operands[0]);
        let channels = output.shape.dims.sizes[1];
        output.fill(y, |index| {
            let &[n, channel, y, x, ..] = index;
            let within = y % p.block * p.block + x % p.block;
            let channel = if p.depth_first {
                within * channels + channel
            } else {
                channel * p.block * p.block + within
            };
            input.at(&[n, channel, y / p.block, x / p.block, 0, 0])
        });
    }
}

/// Squares of pixels that become channels.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SpaceToDepth {
    /// Side of a square.
    pub block: usize,
}

/// One operand, by rows.
impl<T: Copy> RowKernel<T, T> for SpaceToDepth {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, T>],
        _: &[Rows<'_, T>],
        output: &mut RowsMut<'_, T>,
    ) {
        let (block, input) = (self.block, operands[0]);
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            for i in 0..block {
                let (row, result) = (input.row(y * block + i), output.row(y));
                for x in 0..out.width {
                    let part = i * block * shape.channels;
                    let result = &mut pixel_mut(result, &out, x)[part..][..block * shape.channels];
                    for (j, result) in result.chunks_exact_mut(shape.channels).enumerate() {
                        result.copy_from_slice(pixel(row, &shape, x * block + j));
                    }
                }
            }
        }
    }
}

/// One operand, `[N, C, H, W]`, whatever the batch.
impl<T: Copy> ElementKernel<T, T> for SpaceToDepth {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, T>],
        _: &[Elements<'_, T>],
        output: &mut ElementsMut<'_, T>,
    ) {
        let (block, input) = (self.block, &operands[0]);
        let channels = input.seen.sizes[1];
        output.fill(y, |index| {
            let &[n, channel, y, x, ..] = index;
            let within = channel / channels;
            input.at(&[n, channel % channels, y * block + within / block, x * block + within % block, 0, 0])
        });
    }
}
