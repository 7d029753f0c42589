//! Convolution 1×1 of stride 1 as one matrix product of the tensors where they lie.

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
