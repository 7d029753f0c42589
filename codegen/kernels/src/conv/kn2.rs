//! Convolution as a sum of 1×1 convolutions, one for each tap, shifted: kn2row and kn2col, which accumulate in place
//! ("Low-memory GEMM-based convolution algorithms for deep neural networks", Anderson et al., 2017), and kn2row as it was
//! first ("Parallel multi channel convolution using general matrix multiplication", Vasudevan et al., 2017), whose
//! products of several taps are made at once and added then; here a row of the output at a time.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::kn2::Kn2Accumulate;
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
//! let kernel = Kn2Accumulate { scenario };
//! let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let input = Rows { data: Span::new(&image), shape: RowShape::dense(3, 3, 1, 3) }; // an image of 3 × 3 pixels, HWC
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // 2 × 2
//! let context = &mut Context::alone(Isa::PORTABLE);
//! kernel.rows(context, 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [12.0, 16.0, 24.0, 28.0]);
//! ```

use core::ops::Range;

use super::super::activation::Activation;
use super::super::kernel::{Context, RowKernel};
use super::super::layout::{ImageLine, Layout};
use super::super::product::{Left, Product, Right, Start};
use super::super::rows::{Rows, RowsMut};
use super::scenario::{Patches, Scenario, Steps};

/// A convolution of stride 1 whose taps are summed in the output. Columns of the output may be contiguous only if those
/// of the input are.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Kn2Accumulate {
    /// The convolution.
    pub scenario: Scenario,
}

/// One operand; the constant is packed by [`Scenario::pack`], its filters as lines or steps, or, for an output in HWC, as
/// steps or panels. No workspace.
impl RowKernel for Kn2Accumulate {
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
        for y in scenario.output_rows(y.clone()) {
            let mut line = layout.line_mut(output, width, y);
            begin(layout, bias, width, &mut line);
            for ky in 0..conv.kernel[0] {
                let Some(from) = scenario.input_row(&operands[0], y, ky) else { continue };
                for kx in 0..conv.kernel[1] {
                    let (columns, first) = scenario.columns(kx);
                    if columns.is_empty() {
                        continue;
                    }
                    let step = (ky * conv.kernel[1] + kx) * conv.channels;
                    let tap = Steps { filters, first: step, count: conv.channels, bias: None };
                    let elements = &from.data[first * from.column..];
                    let patches = Patches { elements, step: from.channel, pixel: from.column };
                    let to = &mut line.data[columns.start * line.column..];
                    let to = ImageLine { data: to, channel: line.channel, column: line.column };
                    scenario.multiply(context.isa, tap, patches, columns.len(), to);
                }
            }
        }
        scenario.activate(context.isa, y, output);
    }
}

/// A convolution of stride 1 whose taps of a row are made at once and then summed in the output. Columns of input and
/// output are contiguous.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Kn2Separate {
    /// The convolution.
    pub scenario: Scenario,
}

impl Kn2Separate {
    /// Elements of the workspace: the products of all taps of a row and a row of the input.
    pub const fn workspace_len(&self) -> usize {
        let Scenario { conv, input, .. } = &self.scenario;
        conv.kernel[1] * conv.filters * input[1]
    }
}

/// One operand; the constant is packed by [`Scenario::pack`], its filters as taps. The workspace has
/// [`Kn2Separate::workspace_len`] elements.
impl RowKernel for Kn2Separate {
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
        let Scenario { conv, input: [_, read], output: [_, width], layouts: [_, layout], .. } = *scenario;
        let (bias, filters) = scenario.constants(constants);
        let products = &mut context.workspace[..self.workspace_len()];
        for y in scenario.output_rows(y.clone()) {
            let mut line = layout.line_mut(output, width, y);
            begin(layout, bias, width, &mut line);
            for ky in 0..conv.kernel[0] {
                let Some(from) = scenario.input_row(&operands[0], y, ky) else { continue };
                let taps = conv.kernel[1] * conv.filters;
                let product = Product {
                    size: [taps, read, conv.channels],
                    left: Left {
                        elements: &filters[ky * taps * conv.channels..],
                        row: conv.channels,
                        step: 1,
                    },
                    right: Right::Rows { elements: from.data, row: from.channel },
                    start: Start::Zero,
                    activation: Activation::None,
                };
                product.make(context.isa, products, read);
                for (tap, made) in products.chunks_exact(read).enumerate() {
                    let (columns, first) = scenario.columns(tap / conv.filters);
                    let to = &mut line.data[tap % conv.filters * line.channel..][columns];
                    to.iter_mut().zip(&made[first..]).for_each(|(sum, x)| *sum += x);
                }
            }
        }
        scenario.activate(context.isa, y, output);
    }
}

/// Begins the sums of a row with the biases.
fn begin(layout: Layout, bias: &[f32], width: usize, line: &mut ImageLine<&mut [f32]>) {
    if layout == Layout::Hwc {
        line.data.chunks_exact_mut(bias.len()).for_each(|pixel| pixel.copy_from_slice(bias));
    } else {
        for (filter, bias) in bias.iter().enumerate() {
            line.data[filter * line.channel..][..width].fill(*bias);
        }
    }
}
