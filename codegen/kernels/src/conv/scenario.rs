//! A convolution among tensors in any layouts: the code that the families of primitives share which are generic over
//! layouts.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::scenario::{Filters, Scenario};
//! use csdfc_kernels::layout::Layout;
//! use csdfc_kernels::Activation;
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [2, 2], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let scenario = Scenario {
//!     conv, input: [3, 3], output: [2, 2], layouts: [Layout::Hwc; 2], filters: Filters::Steps,
//! };
//! let mut packed = vec![0.0; scenario.packed_len()];
//! scenario.pack(&[1.0, 2.0, 3.0, 4.0], &[0.5], &mut packed);
//! assert_eq!(packed, [0.5, 1.0, 2.0, 3.0, 4.0]); // the bias and the four taps
//! ```

use core::ops::Range;

use super::super::activation::Activation;
use super::super::arch::{Isa, PANEL};
use super::super::layout::{ImageLine, Layout, copy, fill};
use super::super::product::{Left, Product, Right, Start};
use super::super::rows::{Rows, RowsMut};
use super::parameters::{Conv, inside, pack_biases};

/// A convolution of one operand and one group, without [`Conv::pre`], [`Conv::residual`] and a PRelu, with the sizes
/// and layouts of its tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Scenario {
    /// The convolution.
    pub conv: Conv,
    /// Height and width of the input.
    pub input: [usize; 2],
    /// Height and width of the output.
    pub output: [usize; 2],
    /// Layouts of the input and of the output.
    pub layouts: [Layout; 2],
    /// How the filters are kept.
    pub filters: Filters,
}

/// Order in which filters are kept, after the biases of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Filters {
    /// `[filter, channel, kernel_y, kernel_x]`.
    Planes,
    /// `[filter, kernel_y, kernel_x, channel]`: a line for each filter.
    Lines,
    /// `[kernel_y, kernel_x, channel, filter]`: a line for each step of the sum.
    Steps,
    /// `[kernel_y, kernel_x, filter, channel]`: a matrix for each tap.
    Taps,
    /// As `Steps`, but filters are divided into panels of 16, which lie one after another.
    Panels,
}

impl Filters {
    /// Distances in elements from filter to filter, channel to channel, row to row and column to column of a filter;
    /// within a panel of `width` filters, if they are in panels.
    #[inline(always)]
    pub(super) const fn strides(self, conv: &Conv, width: usize) -> [usize; 4] {
        let &Conv { channels, filters, kernel: [rows, columns], .. } = conv;
        match self {
            Filters::Planes => [channels * rows * columns, rows * columns, columns, 1],
            Filters::Lines => [rows * columns * channels, 1, columns * channels, channels],
            Filters::Steps => [1, filters, columns * channels * filters, channels * filters],
            Filters::Taps => [channels, 1, columns * filters * channels, filters * channels],
            Filters::Panels => [1, width, columns * channels * width, channels * width],
        }
    }

    /// The place of a weight.
    const fn place(self, conv: &Conv, [filter, channel, ky, kx]: [usize; 4]) -> usize {
        let (first, width) = match self {
            Filters::Panels => {
                let first = filter / PANEL * PANEL;
                let left = conv.filters - first;
                (first, if left < PANEL { left } else { PANEL })
            }
            _ => (0, conv.filters),
        };
        let [m, c, row, column] = self.strides(conv, width);
        let before = first * conv.channels * conv.kernel[0] * conv.kernel[1];
        before + (filter - first) * m + channel * c + ky * row + kx * column
    }
}

/// Windows or pixels as a matrix: the element of a step of the sum and a pixel is at `step · s + pixel · x`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patches<'a> {
    pub elements: &'a [f32],
    pub step: usize,
    pub pixel: usize,
}

/// Some products of every sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Steps<'a> {
    /// The filters as packed.
    pub filters: &'a [f32],
    /// The first step, and how many there are.
    pub first: usize,
    pub count: usize,
    /// The biases with which the sums begin. Without biases, the sums begin with the content of the output.
    pub bias: Option<&'a [f32]>,
}

/// A strip has this many pixels or somewhat more, since a product with fewer would be slow.
const STRIP: usize = 64;

impl Scenario {
    /// Rows of a strip of the output: those of 64 pixels, or all.
    pub fn strip(&self) -> usize {
        let [height, width] = self.output;
        STRIP.div_ceil(width).min(height)
    }

    /// Elements of the biases and filters as packed.
    pub const fn packed_len(&self) -> usize {
        let Conv { channels, filters, kernel, .. } = self.conv;
        filters * (1 + channels * kernel[0] * kernel[1])
    }

    /// Packs `weights` (`[filters, channels, kernel_y, kernel_x]`) and `bias` (`[filters]`, or empty) into `out`, which
    /// holds [`Scenario::packed_len`] elements.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(&self, weights: &[f32], bias: &[f32], out: &mut [f32]) {
        let Conv { channels, filters, kernel, .. } = self.conv;
        assert_eq!(out.len(), self.packed_len(), "length of packed filters");
        let (biases, packed) = out.split_at_mut(filters);
        pack_biases(bias, biases);
        let sizes = [filters, channels, kernel[0], kernel[1]];
        for (i, &weight) in weights.iter().enumerate() {
            let (mut rest, mut at) = (i, [0; 4]);
            for axis in (0..4).rev() {
                (at[axis], rest) = (rest % sizes[axis], rest / sizes[axis]);
            }
            packed[self.filters.place(&self.conv, at)] = weight;
        }
    }

    /// Biases and filters.
    ///
    /// # Panics
    /// If there are fewer than are packed.
    #[inline]
    pub(super) fn constants<'a>(&self, constants: &[Rows<'a>]) -> (&'a [f32], &'a [f32]) {
        constants[0].row(0)[..self.packed_len()].split_at(self.conv.filters)
    }

    /// The rows of the output's image in the rows `y` of its tensor.
    #[inline]
    pub(super) fn output_rows(&self, y: Range<usize>) -> Range<usize> {
        self.layouts[1].image_rows(self.output[0], y)
    }

    /// The row of the input that tap row `ky` of output row `y` reads, unless it is padding.
    #[inline(always)]
    pub(super) fn input_row<'a>(
        &self,
        input: &Rows<'a>,
        y: usize,
        ky: usize,
    ) -> Option<ImageLine<&'a [f32]>> {
        let Conv { stride, dilation, pads, .. } = self.conv;
        let row = (y * stride[0] + ky * dilation[0]).checked_sub(pads[0])?;
        (row < self.input[0]).then(|| self.layouts[0].line(input, self.input[1], row))
    }

    /// Taps along an axis that lie within the input at place `at` of the output.
    #[inline(always)]
    pub(super) fn taps(&self, axis: usize, at: usize) -> Range<usize> {
        let Conv { kernel, stride, dilation, pads, .. } = self.conv;
        inside(at * stride[axis], pads[axis], kernel[axis], dilation[axis], self.input[axis])
    }

    /// Columns of the output for which tap column `kx` lies within the input, and the input column of the first.
    #[inline(always)]
    pub(super) fn columns(&self, kx: usize) -> (Range<usize>, usize) {
        let Conv { stride: [_, stride], dilation, pads, .. } = self.conv;
        let (reach, pad) = (kx * dilation[1], pads[1]);
        let end = (self.input[1] + pad).saturating_sub(reach).div_ceil(stride).min(self.output[1]);
        let start = pad.saturating_sub(reach).div_ceil(stride);
        if start >= end {
            return (0..0, 0);
        }
        (start..end, start * stride + reach - pad)
    }

    /// Products of a sum.
    #[inline(always)]
    pub const fn steps(&self) -> usize {
        self.conv.channels * self.conv.kernel[0] * self.conv.kernel[1]
    }

    /// Copies the elements of a row of the input that tap column `kx` of every output column reads, or zeros, into a
    /// matrix of channels and columns of the output with these strides.
    pub(super) fn lower(
        &self,
        line: Option<ImageLine<&[f32]>>,
        kx: usize,
        to: &mut [f32],
        [step, pixel]: [usize; 2],
    ) {
        let (channels, width) = (self.conv.channels, self.output[1]);
        let (columns, first) = match line {
            Some(_) => self.columns(kx),
            None => (0..0, 0),
        };
        let mut zero = |columns: Range<usize>| {
            if !columns.is_empty() {
                fill(&mut to[columns.start * pixel..], [step, pixel], [channels, columns.len()], 0.0);
            }
        };
        zero(0..columns.start);
        zero(columns.end..width);
        if let Some(ImageLine { data, channel, column }) = line.filter(|_| !columns.is_empty()) {
            let (from, to) = (&data[first * column..], &mut to[columns.start * pixel..]);
            let strides = [channel, self.conv.stride[1] * column];
            copy(from, strides, to, [step, pixel], [channels, columns.len()]);
        }
    }

    /// Adds products to columns of the output, by [`Scenario::by_pixels`] or [`Scenario::by_filters`].
    #[inline]
    pub(super) fn multiply(
        &self,
        isa: Isa,
        steps: Steps<'_>,
        patches: Patches<'_>,
        columns: usize,
        line: ImageLine<&mut [f32]>,
    ) {
        match self.layouts[1] {
            Layout::Hwc => self.by_pixels(isa, steps, patches, columns, line.data, line.column),
            _ => self.by_filters(isa, steps, patches, columns, line.data, line.channel),
        }
    }

    /// Patches by filters, which are kept as [`Filters::Steps`] or [`Filters::Panels`]: makes `[columns, filters]`, whose
    /// rows lie `row` elements from each other.
    pub(super) fn by_pixels(
        &self,
        isa: Isa,
        steps: Steps<'_>,
        patches: Patches<'_>,
        columns: usize,
        made: &mut [f32],
        row: usize,
    ) {
        let filters = self.conv.filters;
        let right = match self.filters {
            Filters::Panels => {
                Right::Panels { elements: steps.filters, before: steps.first, each: self.steps() }
            }
            _ => Right::Rows { elements: &steps.filters[steps.first * filters..], row: filters },
        };
        let product = Product {
            size: [columns, filters, steps.count],
            left: Left { elements: patches.elements, row: patches.pixel, step: patches.step },
            right,
            start: steps.bias.map_or(Start::Old, Start::Columns),
            activation: self.ending(&steps),
        };
        product.make(isa, made, row);
    }

    /// Filters, which are kept as [`Filters::Lines`] or [`Filters::Steps`], by patches, whose pixels are contiguous:
    /// makes `[filters, columns]`, whose rows lie `row` elements from each other.
    fn by_filters(
        &self,
        isa: Isa,
        steps: Steps<'_>,
        patches: Patches<'_>,
        columns: usize,
        made: &mut [f32],
        row: usize,
    ) {
        let filters = self.conv.filters;
        let left = match self.filters {
            Filters::Steps => {
                Left { elements: &steps.filters[steps.first * filters..], row: 1, step: filters }
            }
            _ => Left { elements: &steps.filters[steps.first..], row: self.steps(), step: 1 },
        };
        let product = Product {
            size: [filters, columns, steps.count],
            left,
            right: Right::Rows { elements: patches.elements, row: patches.step },
            start: steps.bias.map_or(Start::Old, Start::Rows),
            activation: self.ending(&steps),
        };
        product.make(isa, made, row);
    }

    /// The activation of complete sums.
    fn ending(&self, steps: &Steps<'_>) -> Activation {
        if steps.bias.is_some() { self.conv.activation } else { Activation::None }
    }

    /// Applies the activation to rows `y` of the output's tensor.
    pub(super) fn activate(&self, isa: Isa, y: Range<usize>, output: &mut RowsMut<'_>) {
        for y in y {
            self.conv.activation.apply_all(isa, output.row(y), &[]);
        }
    }
}
