//! Convolution by its definition, with the loops in several orders. The sizes and the layouts of the tensors decide
//! which order is fast.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::direct::{Direct, LoopOrder};
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
//! let kernel = Direct { scenario, order: LoopOrder::Pixel };
//! let image = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
//! let input = Rows { data: Span::new(&image), shape: RowShape::dense(3, 3, 1, 3) }; // an image of 3 × 3 pixels, HWC
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 2, 1, 2) }; // 2 × 2
//! let context = &mut Context::alone(Isa::PORTABLE);
//! kernel.rows(context, 0..2, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [12.0, 16.0, 24.0, 28.0]);
//! ```

use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::kernel::{Context, RowKernel};
use super::super::layout::ImageLine;
use super::super::rows::{Rows, RowsMut};
use super::scenario::Scenario;

/// A convolution by loops of this order.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Direct {
    /// The convolution.
    pub scenario: Scenario,
    /// The order of the loops.
    pub order: LoopOrder,
}

/// Orders of loops. M, C, H, W are filters, channels, rows and columns of the output, and K are the taps. The loop in
/// brackets is in registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum LoopOrder {
    /// M C H W K: a plane of the output is the sum of single channels (SUM2D of "Optimal DNN primitive selection with
    /// partitioned boolean quadratic programming", Anderson and Gregg, 2018). [`Filters::Planes`](super::scenario::Filters).
    Sum2d,
    /// K M C H W: the image is shifted by each tap. Columns of the output are contiguous. `Filters::Planes`.
    Shift,
    /// H M C K W: as `Shift`, row by row.
    Row,
    /// H M W C K \[W\]: 16 columns at once. `Filters::Planes`.
    Columns,
    /// H W M K C \[M\]: 16 filters at once. `Filters::Steps`.
    FilterTile,
    /// H W K C M: filters of the output are contiguous. `Filters::Steps`.
    Pixel,
    /// H W M K \[C\]: products of runs that are contiguous in the input, which is HWC. `Filters::Lines`.
    Dot,
}

/// Sums that are held in registers.
const LANES: usize = 16;
/// Tap rows that [`LoopOrder::Sum2d`] adds up before it stores a sum. Few kernels have more.
const TAP_ROWS: usize = 16;

/// One operand; the constant is packed by [`Scenario::pack`]. No workspace.
impl RowKernel for Direct {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let (bias, filters) = self.scenario.constants(constants);
        let source = Source { scenario: &self.scenario, input: operands[0], bias, filters };
        let rows = self.scenario.output_rows(y.clone());
        context.isa.run(Loops { order: self.order, source, rows, output });
        self.scenario.activate(context.isa, y, output);
    }
}

/// The tensors that are read.
#[derive(Clone, Copy)]
struct Source<'a> {
    scenario: &'a Scenario,
    input: Rows<'a>,
    bias: &'a [f32],
    filters: &'a [f32],
}

impl<'a> Source<'a> {
    /// The weight of a filter at a channel and a tap.
    #[inline(always)]
    fn weight(&self, filter: usize, channel: usize, [ky, kx]: [usize; 2]) -> f32 {
        let [m, c, row, column] =
            self.scenario.filters.strides(&self.scenario.conv, self.scenario.conv.filters);
        self.filters[filter * m + channel * c + ky * row + kx * column]
    }

    /// The input row that a tap row of an output row reads.
    #[inline(always)]
    fn row(&self, y: usize, ky: usize) -> Option<ImageLine<&'a [f32]>> {
        self.scenario.input_row(&self.input, y, ky)
    }

    /// Calls `f` with the input elements of each step of the sum of a pixel, and the weights of all filters there.
    #[inline(always)]
    fn steps(&self, y: usize, x: usize, mut f: impl FnMut(f32, &'a [f32])) {
        let conv = &self.scenario.conv;
        let [_, step, row, column] = self.scenario.filters.strides(conv, conv.filters);
        let filters = self.filters;
        for ky in self.scenario.taps(0, y) {
            let Some(line) = self.row(y, ky) else { continue };
            for kx in self.scenario.taps(1, x) {
                let at = x * conv.stride[1] + kx * conv.dilation[1] - conv.pads[1];
                let weights = filters[ky * row + kx * column..].chunks_exact(step);
                let from = line.data[at * line.column..].iter().step_by(line.channel);
                weights.zip(from).take(conv.channels).for_each(|(weights, x)| f(*x, weights));
            }
        }
    }
}

/// The loops as work for an instruction set.
struct Loops<'a, 'o, 'd> {
    order: LoopOrder,
    source: Source<'a>,
    rows: Range<usize>,
    output: &'o mut RowsMut<'d>,
}

impl Job for Loops<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(mut self) {
        match self.order {
            LoopOrder::Sum2d => self.sum2d(),
            LoopOrder::Shift => self.shift(),
            LoopOrder::Row => self.row(),
            LoopOrder::Columns => self.columns(),
            LoopOrder::FilterTile => self.filter_tile(),
            LoopOrder::Pixel => self.pixel(),
            LoopOrder::Dot => self.dot(),
        }
    }
}

impl Loops<'_, '_, '_> {
    /// Row `y` of the output.
    #[inline(always)]
    fn made(&mut self, y: usize) -> ImageLine<&mut [f32]> {
        let Scenario { output, layouts, .. } = *self.source.scenario;
        layouts[1].line_mut(self.output, output[1], y)
    }

    /// Row `y` of one channel of the output, whose columns are contiguous.
    #[inline(always)]
    fn plane_row(&mut self, filter: usize, y: usize) -> &mut [f32] {
        let width = self.source.scenario.output[1];
        let ImageLine { data, channel, .. } = self.made(y);
        &mut data[filter * channel..][..width]
    }

    #[inline(always)]
    fn sum2d(&mut self) {
        let Source { scenario, bias, filters, .. } = self.source;
        let conv = &scenario.conv;
        let [step, dilation, pad] = [conv.stride[1], conv.dilation[1], conv.pads[1]];
        let [plane, size] = [conv.channels, 1].map(|n| n * conv.kernel[0] * conv.kernel[1]);
        // Columns of the output for which all tap columns lie within the input.
        let (first, last) = (scenario.columns(0).0, scenario.columns(conv.kernel[1] - 1).0);
        let inner = first.start.max(last.start)..first.end.min(last.end);
        for (filter, &bias) in bias.iter().enumerate() {
            self.rows.clone().for_each(|y| self.plane_row(filter, y).fill(bias));
            for (channel, weights) in filters[filter * plane..][..plane].chunks_exact(size).enumerate() {
                for y in self.rows.clone() {
                    let taps = scenario.taps(0, y);
                    for group in taps.clone().step_by(TAP_ROWS) {
                        // The input row of each tap row, and its weights.
                        let mut lines = [(&[][..], &[][..]); TAP_ROWS];
                        let (mut count, mut column) = (0, 1);
                        for ky in group..taps.end.min(group + TAP_ROWS) {
                            let Some(line) = self.source.row(y, ky) else { continue };
                            column = line.column;
                            let weights = &weights[ky * conv.kernel[1]..][..conv.kernel[1]];
                            lines[count] = (&line.data[channel * line.channel..], weights);
                            count += 1;
                        }
                        for (x, to) in self.plane_row(filter, y).iter_mut().enumerate() {
                            let taps =
                                if inner.contains(&x) { 0..conv.kernel[1] } else { scenario.taps(1, x) };
                            let mut sum = 0.0;
                            for (from, weights) in &lines[..count] {
                                for kx in taps.clone() {
                                    sum += from[(x * step + kx * dilation - pad) * column] * weights[kx];
                                }
                            }
                            *to += sum;
                        }
                    }
                }
            }
        }
    }

    /// Adds the products of one channel and one filter at a tap to row `y`.
    #[inline(always)]
    fn add_row(&mut self, filter: usize, channel: usize, [ky, kx]: [usize; 2], y: usize) {
        let Some(line) = self.source.row(y, ky) else { return };
        let (columns, first) = self.source.scenario.columns(kx);
        if columns.is_empty() {
            return;
        }
        let weight = self.source.weight(filter, channel, [ky, kx]);
        let from = &line.data[channel * line.channel + first * line.column..];
        let stride = self.source.scenario.conv.stride[1] * line.column;
        let to = &mut self.plane_row(filter, y)[columns];
        match stride {
            1 => to.iter_mut().zip(from).for_each(|(sum, x)| *sum += x * weight),
            _ => to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(sum, x)| *sum += x * weight),
        }
    }

    #[inline(always)]
    fn shift(&mut self) {
        let conv = self.source.scenario.conv;
        for filter in 0..conv.filters {
            let bias = self.source.bias[filter];
            self.rows.clone().for_each(|y| self.plane_row(filter, y).fill(bias));
        }
        for (ky, kx) in index_pairs([conv.kernel[0], conv.kernel[1]]) {
            for (filter, channel) in index_pairs([conv.filters, conv.channels]) {
                self.rows.clone().for_each(|y| self.add_row(filter, channel, [ky, kx], y));
            }
        }
    }

    #[inline(always)]
    fn row(&mut self) {
        let conv = self.source.scenario.conv;
        for y in self.rows.clone() {
            for filter in 0..conv.filters {
                let bias = self.source.bias[filter];
                self.plane_row(filter, y).fill(bias);
                for channel in 0..conv.channels {
                    index_pairs(conv.kernel).for_each(|(ky, kx)| self.add_row(filter, channel, [ky, kx], y));
                }
            }
        }
    }

    #[inline(always)]
    fn columns(&mut self) {
        let Scenario { conv, input, output: [_, width], .. } = *self.source.scenario;
        let [stride, dilation, pad] = [conv.stride[1], conv.dilation[1], conv.pads[1]];
        for y in self.rows.clone() {
            for (filter, tile) in index_pairs([conv.filters, width.div_ceil(LANES)]) {
                let (x, count) = (tile * LANES, LANES.min(width - tile * LANES));
                let reach = (x + LANES - 1) * stride + (conv.kernel[1] - 1) * dilation;
                let is_within = x * stride >= pad && reach - pad < input[1];
                let mut sums = [self.source.bias[filter]; LANES];
                for (channel, ky) in index_pairs([conv.channels, conv.kernel[0]]) {
                    let Some(line) = self.source.row(y, ky) else { continue };
                    let row = &line.data[channel * line.channel..];
                    for kx in 0..conv.kernel[1] {
                        let weight = self.source.weight(filter, channel, [ky, kx]);
                        if is_within {
                            let from = &row[x * stride + kx * dilation - pad..];
                            add_strided(&mut sums, from, stride, weight);
                            continue;
                        }
                        for (lane, sum) in sums.iter_mut().enumerate().take(count) {
                            let at = ((x + lane) * stride + kx * dilation).wrapping_sub(pad);
                            *sum += if at < input[1] { row[at] * weight } else { 0.0 };
                        }
                    }
                }
                self.plane_row(filter, y)[x..][..count].copy_from_slice(&sums[..count]);
            }
        }
    }

    #[inline(always)]
    fn filter_tile(&mut self) {
        let Scenario { conv, output: [_, width], .. } = *self.source.scenario;
        for y in self.rows.clone() {
            for (x, tile) in index_pairs([width, conv.filters.div_ceil(LANES)]) {
                let (filter, count) = (tile * LANES, LANES.min(conv.filters - tile * LANES));
                let mut sums = [0.0; LANES];
                sums[..count].copy_from_slice(&self.source.bias[filter..][..count]);
                match count {
                    LANES => {
                        self.source.steps(y, x, |x, weights| add_strided(&mut sums, &weights[filter..], 1, x))
                    }
                    _ => self.source.steps(y, x, |x, weights| {
                        let weights = &weights[filter..][..count];
                        sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
                    }),
                }
                let ImageLine { data, channel, column } = self.made(y);
                let to = data[x * column + filter * channel..].iter_mut().step_by(channel);
                to.zip(&sums[..count]).for_each(|(to, sum)| *to = *sum);
            }
        }
    }

    #[inline(always)]
    fn pixel(&mut self) {
        let Scenario { conv, output: [_, width], .. } = *self.source.scenario;
        for y in self.rows.clone() {
            for x in 0..width {
                let source = self.source;
                let pixel = &mut self.made(y).data[x * conv.filters..][..conv.filters];
                pixel.copy_from_slice(source.bias);
                source.steps(y, x, |x, weights| {
                    pixel.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
                });
            }
        }
    }

    #[inline(always)]
    fn dot(&mut self) {
        let Scenario { conv, output: [_, width], .. } = *self.source.scenario;
        let channels = conv.channels;
        for y in self.rows.clone() {
            for (x, filter) in index_pairs([width, conv.filters]) {
                let (mut sums, mut rest) = ([0.0; LANES], self.source.bias[filter]);
                let taps = self.source.scenario.taps(1, x);
                // Contiguous taps are one run.
                let runs = if conv.dilation[1] == 1 { 1 } else { taps.len() };
                let len = taps.len() / runs.max(1) * channels;
                for ky in self.source.scenario.taps(0, y) {
                    let Some(line) = self.source.row(y, ky) else { continue };
                    for kx in taps.clone().take(runs) {
                        let at = x * conv.stride[1] + kx * conv.dilation[1] - conv.pads[1];
                        let from = line.data[at * channels..][..len].chunks_exact(LANES);
                        let start = ((filter * conv.kernel[0] + ky) * conv.kernel[1] + kx) * channels;
                        let weights = self.source.filters[start..][..len].chunks_exact(LANES);
                        let last = from.remainder().iter().zip(weights.remainder());
                        rest += last.map(|(x, weight)| x * weight).sum::<f32>();
                        for (from, weights) in from.zip(weights) {
                            for (sum, (x, weight)) in sums.iter_mut().zip(from.iter().zip(weights)) {
                                *sum += x * weight;
                            }
                        }
                    }
                }
                let sum = rest + sums.iter().sum::<f32>();
                let ImageLine { data, channel, column } = self.made(y);
                data[x * column + filter * channel] = sum;
            }
        }
    }
}

/// All pairs of indices.
#[inline(always)]
fn index_pairs([outer, inner]: [usize; 2]) -> impl Iterator<Item = (usize, usize)> {
    (0..outer).flat_map(move |i| (0..inner).map(move |j| (i, j)))
}

/// Adds `factor` times every `stride`th element to the sums.
#[inline(always)]
fn add_strided(sums: &mut [f32; LANES], from: &[f32], stride: usize, factor: f32) {
    let from = &from[..(LANES - 1) * stride + 1];
    match stride {
        1 => sums.iter_mut().zip(from).for_each(|(sum, x)| *sum += x * factor),
        _ => sums.iter_mut().enumerate().for_each(|(lane, sum)| *sum += from[lane * stride] * factor),
    }
}
