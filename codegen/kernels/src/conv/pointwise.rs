//! Convolution 1×1 of stride 1 as one matrix product of the tensors where they lie.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::pointwise::Pointwise;
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::scenario::{Filters, Scenario};
//! use csdfc_kernels::layout::Layout;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 2, kernel: [1, 1], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let scenario = Scenario {
//!     conv, input: [1, 2], output: [1, 2], layouts: [Layout::Hwc; 2], filters: Filters::Steps,
//! };
//! let mut packed = vec![0.0; scenario.packed_len()];
//! scenario.pack(&[1.0, 10.0], &[], &mut packed);
//! let input = Rows { data: Span::new(&[3.0, 4.0]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 2, 1) }; // [1, 2, 2]
//! let kernel = Pointwise { scenario };
//! kernel.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [3.0, 30.0, 4.0, 40.0]);
//! ```

use core::ops::Range;

use super::super::kernel::{Context, RowKernel};
use super::super::rows::{Rows, RowsMut};
use super::scenario::{Patches, Scenario, Steps};

/// A 1×1 convolution of stride 1 without padding. Columns of the output may be contiguous only if those of the input
/// are.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Pointwise {
    /// The convolution.
    pub scenario: Scenario,
}

/// One operand; the constant is packed by [`Scenario::pack`], its filters as lines or steps, or, for an output in HWC, as
/// steps or panels. No workspace.
impl RowKernel for Pointwise {
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
        let Scenario { output: [_, width], layouts: [reads, writes], .. } = *scenario;
        let (bias, filters) = scenario.constants(constants);
        let all = Steps { filters, first: 0, count: scenario.steps(), bias: Some(bias) };
        let mut y = scenario.output_rows(y);
        while !y.is_empty() {
            // As many rows as form one line in both tensors.
            let (from, read) = reads.lines(&operands[0], width, &y);
            let (line, written) = writes.lines_mut(output, width, &y);
            let rows = read.min(written);
            let patches = Patches { elements: from.data, step: from.channel, pixel: from.column };
            scenario.multiply(context.isa, all, patches, rows * width, line);
            y.start += rows;
        }
    }
}
