//! Convolution as a matrix product. The left matrix is made for one row of the output at a time: im2row, as in "High
//! performance convolutional neural networks for document processing" (Chellapilla et al., 2006), in strips of one row.

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
