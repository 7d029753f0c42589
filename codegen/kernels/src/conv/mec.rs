//! MEC: "MEC: Memory-efficient convolution for deep neural network" (Cho and Brand, 2017).
//!
//! The lowered matrix L holds, for each column of the output, the columns of the padded input that it reads, from the
//! first row to the last: o_w · i_h · k_w · i_c elements, where a patch matrix has k_h / s times as many rows. The windows
//! of an output row are a part of it, which lies with a leading dimension of its own (Algorithm 2, lines 12 and 25).
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::mec::{Mec, Solution};
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::scenario::{Filters, Scenario};
//! use csdfc_kernels::layout::Layout;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [2, 2], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let scenario = Scenario {
//!     conv, input: [3, 3], output: [2, 2], layouts: [Layout::Hwc; 2], filters: Filters::Steps,
//! };
//! let mut packed = vec![0.0; scenario.packed_len()];
//! scenario.pack(&[1.0; 4], &[], &mut packed);
//! let kernel = Mec { scenario, solution: Solution::B, strip: 2 };
//! let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let input = Rows { data: Span::new(&image), shape: RowShape::dense(3, 3, 1, 3) }; // an image of 3 × 3 pixels, HWC
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // 2 × 2
//! let mut room = vec![0.0; kernel.workspace_len()];
//! let context = &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut room };
//! kernel.rows(context, 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [12.0, 16.0, 24.0, 28.0]);
//! ```

use core::ops::Range;

use super::super::kernel::{Context, RowKernel};
use super::super::layout::{Layout, copy};
use super::super::rows::{Rows, RowsMut};
use super::scenario::{Patches, Scenario, Steps};

/// A convolution by MEC, of one image, without dilation of rows.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Mec {
    /// The convolution.
    pub scenario: Scenario,
    /// The solution that makes the output from L.
    pub solution: Solution,
    /// Rows of the output for which L is made at a time; with all of them, it is as in the paper.
    pub strip: usize,
}

/// How the output is made from the lowered matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Solution {
    /// Solution A: the output is made pixel by pixel, whatever its layout. Then it is copied into L, which is no longer
    /// needed, and from there into its layout. (In the paper, it goes from h-n-w-c to n-h-w-c, which are the same for
    /// one image. So A is useful if the output is not HWC.)
    A,
    /// Solution B: the output is made in its layout. If that is not HWC, L is transposed, so that the columns of the
    /// output are contiguous.
    B,
}

/// The paper's bound T on the columns of the output of solution A (section 3.3).
pub const T: usize = 100;

impl Mec {
    /// Rows of the padded input that `rows` rows of the output read.
    const fn read(&self, rows: usize) -> usize {
        let conv = &self.scenario.conv;
        (rows - 1) * conv.stride[0] + conv.kernel[0]
    }

    /// Rows of the padded input, i_h.
    pub(super) const fn padded(&self) -> usize {
        let Scenario { conv, input, .. } = &self.scenario;
        input[0] + conv.pads[0] + conv.pads[2]
    }

    /// Elements of the workspace, L: for the whole padded input (Eq. 3, with i_c for k_c), or for the rows that a strip
    /// reads.
    pub fn workspace_len(&self) -> usize {
        let Scenario { conv, output: [height, width], .. } = self.scenario;
        let rows = if self.strip < height { self.read(self.strip) } else { self.padded() };
        width * rows * conv.kernel[1] * conv.channels
    }

    /// Whether solution A is possible: the output has no more than `t` columns and no more elements than L (Algorithm 2,
    /// line 8).
    pub fn suits_a(&self, t: usize) -> bool {
        let Scenario { conv, output: [height, width], .. } = self.scenario;
        width <= t && height * width * conv.filters <= self.workspace_len()
    }
}

/// One operand; the constant is packed by [`Scenario::pack`], its filters as steps or, for solution B of an output that is
/// not HWC, as lines or steps. The workspace has [`Mec::workspace_len`] elements.
impl RowKernel for Mec {
    /// # Panics
    /// Also if solution A has to bring an output of more elements than L into its layout.
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let scenario = &self.scenario;
        let Scenario { conv, output: [_, width], layouts: [_, layout], .. } = *scenario;
        let (bias, filters) = scenario.constants(constants);
        let all = Steps { filters, first: 0, count: scenario.steps(), bias: Some(bias) };
        let lowered = &mut context.workspace[..self.workspace_len()];
        // Elements of L from a row to the next of the padded input, for one column.
        let each = conv.kernel[1] * conv.channels;
        let image = scenario.output_rows(y.clone());
        for start in image.clone().step_by(self.strip) {
            let strip = start..image.end.min(start + self.strip);
            let rows = self.read(strip.len());
            let is_transposed = layout != Layout::Hwc && self.solution == Solution::B;
            let [step, pixel] = if is_transposed { [width, 1] } else { [1, rows * each] };
            self.lower(&operands[0], strip.start, rows, lowered, [step, pixel]);
            for y in strip.clone() {
                let elements = &lowered[(y - strip.start) * conv.stride[0] * each * step..];
                let patches = Patches { elements, step, pixel };
                match self.solution {
                    Solution::B => {
                        let line = layout.line_mut(output, width, y);
                        scenario.multiply(context.isa, all, patches, width, line);
                    }
                    Solution::A => {
                        let made = row_elements(layout, output, width * conv.filters, y);
                        scenario.by_pixels(context.isa, all, patches, width, made, conv.filters);
                    }
                }
            }
            if self.solution == Solution::A && layout != Layout::Hwc {
                let len = width * conv.filters;
                assert!(strip.len() * len <= lowered.len(), "an output larger than L");
                for (y, to) in strip.clone().zip(lowered.chunks_exact_mut(len)) {
                    to.copy_from_slice(row_elements(layout, output, len, y));
                }
                for (y, from) in strip.zip(lowered.chunks_exact(len)) {
                    let line = layout.line_mut(output, width, y);
                    let strides = [line.channel, line.column];
                    copy(from, [1, conv.filters], line.data, strides, [conv.filters, width]);
                }
            }
        }
    }
}

impl Mec {
    /// Makes L from `rows` rows of the padded input on, the first of which output row `y` reads.
    pub(super) fn lower(&self, input: &Rows<'_>, y: usize, rows: usize, to: &mut [f32], strides: [usize; 2]) {
        let Scenario { conv, input: [height, width], layouts: [layout, _], .. } = self.scenario;
        for row in 0..rows {
            let place = (y * conv.stride[0] + row).checked_sub(conv.pads[0]).filter(|row| *row < height);
            let line = place.map(|row| layout.line(input, width, row));
            for kx in 0..conv.kernel[1] {
                let first = (row * conv.kernel[1] + kx) * conv.channels;
                self.scenario.lower(line, kx, &mut to[first * strides[0]..], strides);
            }
        }
    }
}

/// As many elements of the output as its row `y` has, regardless of their meaning.
fn row_elements<'a>(layout: Layout, output: &'a mut RowsMut<'_>, len: usize, y: usize) -> &'a mut [f32] {
    match layout {
        Layout::Chw => &mut output.row(0)[y * len..][..len],
        Layout::Hcw | Layout::Hwc => output.row(y),
    }
}
