//! Convolution as a matrix product. The left matrix is made for one row of the output at a time: im2row, as in "High
//! performance convolutional neural networks for document processing" (Chellapilla et al., 2006), in strips of one row.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::im2row::Im2row;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [2, 2], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let mut packed = vec![0.0; conv.packed_len()];
//! conv.pack(&[1.0; 4], &[], &[], [&[], &[]], &mut packed);
//! let kernel = Im2row { conv };
//! let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let input = Rows { data: Span::new(&image), shape: RowShape::dense(3, 3, 1, 3) }; // an image of 3 × 3 pixels, HWC
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // 2 × 2
//! let mut room = vec![0.0; 2 * 4];
//! let context = &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut room };
//! kernel.rows(context, 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [12.0, 16.0, 24.0, 28.0]);
//! ```

use core::ops::Range;

use super::super::kernel::{Context, RowKernel, Sharing};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::super::span::Span;
use super::Conv;

/// A [`Conv`] of one group and one operand, without [`Conv::pre`]. It is computed as a 1×1 convolution of a row whose
/// pixels are the windows of the output's pixels.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Im2row {
    /// The convolution.
    pub conv: Conv,
}

impl Im2row {
    /// Elements of a window, `[kernel_y, kernel_x, channels]`.
    const fn window(&self) -> usize {
        self.conv.kernel[0] * self.conv.kernel[1] * self.conv.channels
    }

    /// Copies the windows of the pixels of output row `y`, with zeros beyond the input.
    fn lower(&self, input: &Rows<'_>, y: usize, windows: &mut [f32]) {
        let Conv { channels, kernel, stride, dilation, pads, .. } = self.conv;
        let place = |at: usize, axis: usize, tap: usize, size: usize| {
            (at * stride[axis] + tap * dilation[axis]).checked_sub(pads[axis]).filter(|at| *at < size)
        };
        for (x, window) in windows.chunks_exact_mut(self.window()).enumerate() {
            for (tap, pixel) in window.chunks_exact_mut(channels).enumerate() {
                let row = place(y, 0, tap / kernel[1], input.shape.height);
                match row.zip(place(x, 1, tap % kernel[1], input.shape.width)) {
                    Some((row, column)) => {
                        pixel.copy_from_slice(&input.row(row)[column * channels..][..channels]);
                    }
                    None => pixel.fill(0.0),
                }
            }
        }
    }
}

/// One operand; the constant is packed by [`Conv::pack`]. The workspace holds the windows of one row of the output,
/// `[width, kernel_y, kernel_x, channels]`.
///
/// Workers share the product of a row, as in any convolution.
impl RowKernel for Im2row {
    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        RowKernel::<f32>::sharing(&self.conv, rows, workers, output)
    }

    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let (kernel, stride, dilation, pads) = ([1, 1], [1, 1], [1, 1], [0; 4]);
        let product = Conv { channels: self.window(), kernel, stride, dilation, pads, ..self.conv };
        let RowShape { height, width, .. } = output.shape;
        let windows = &mut context.workspace[..width * product.channels];
        for y in y {
            self.lower(&operands[0], y, windows);
            // Any row lies in the only slot.
            let row =
                Rows { data: Span::new(windows), shape: RowShape::dense(height, width, product.channels, 1) };
            let workers = context.workers.as_deref_mut();
            let mut context = Context { isa: context.isa, workers, workspace: &mut [] };
            product.rows(&mut context, y..y + 1, &[row], constants, output);
        }
    }
}
