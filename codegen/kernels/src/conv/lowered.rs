//! Convolution as a matrix product with an explicit patch matrix, the windows of the pixels: im2col and im2row ("High
//! performance convolutional neural networks for document processing", Chellapilla et al., 2006), all at once or a
//! strip of rows at a time, between any layouts.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::lowered::{Lowered, PatchMatrix};
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
//! let kernel = Lowered { scenario, patches: PatchMatrix::Rows, strip: 2 };
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
use super::super::layout::ImageLine;
use super::super::rows::{Rows, RowsMut};
use super::scenario::{Patches, Scenario, Steps};

/// A convolution by a patch matrix.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Lowered {
    /// The convolution.
    pub scenario: Scenario,
    /// How the patch matrix lies. It may lie as rows only if the output is HWC.
    pub patches: PatchMatrix,
    /// Rows of the output whose windows the workspace holds at a time.
    pub strip: usize,
}

/// How a patch matrix lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum PatchMatrix {
    /// `[kernel_y · kernel_x · channels, pixels]`: im2col.
    Columns,
    /// `[pixels, kernel_y · kernel_x · channels]`: im2row.
    Rows,
}

impl Lowered {
    /// Elements of the workspace: the windows of a strip.
    pub const fn workspace_len(&self) -> usize {
        let [_, width] = self.scenario.output;
        self.strip * width * self.scenario.steps()
    }
}

/// One operand; the constant is packed by [`Scenario::pack`], its filters as lines or steps, or, for an output in HWC, as
/// steps or panels. The workspace has [`Lowered::workspace_len`] elements.
impl RowKernel for Lowered {
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
        let (bias, filters) = scenario.constants(constants);
        let workspace = &mut context.workspace[..self.workspace_len()];
        let ([_, width], steps) = (scenario.output, scenario.steps());
        let all = Steps { filters, first: 0, count: steps, bias: Some(bias) };
        let y = scenario.output_rows(y);
        for start in y.clone().step_by(self.strip) {
            let strip = start..y.end.min(start + self.strip);
            let [step, pixel] = match self.patches {
                PatchMatrix::Columns => [strip.len() * width, 1],
                PatchMatrix::Rows => [1, steps],
            };
            for (row, y) in strip.clone().enumerate() {
                self.lower(&operands[0], y, &mut workspace[row * width * pixel..], [step, pixel]);
            }
            let mut y = strip.clone();
            while !y.is_empty() {
                let (line, rows) = scenario.layouts[1].lines_mut(output, width, &y);
                let elements = &workspace[(y.start - strip.start) * width * pixel..];
                scenario.multiply(context.isa, all, Patches { elements, step, pixel }, rows * width, line);
                y.start += rows;
            }
        }
    }
}

impl Lowered {
    /// Copies the windows of the pixels of output row `y`.
    fn lower(&self, input: &Rows<'_>, y: usize, to: &mut [f32], strides: [usize; 2]) {
        let Scenario { conv, .. } = self.scenario;
        for ky in 0..conv.kernel[0] {
            let line: Option<ImageLine<&[f32]>> = self.scenario.input_row(input, y, ky);
            for kx in 0..conv.kernel[1] {
                let first = (ky * conv.kernel[1] + kx) * conv.channels;
                self.scenario.lower(line, kx, &mut to[first * strides[0]..], strides);
            }
        }
    }
}
