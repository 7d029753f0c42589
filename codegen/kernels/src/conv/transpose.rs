//! Transposed convolution, each output pixel gathering the input pixels that reach it.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::transpose::ConvTranspose;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = ConvTranspose {
//!     channels: 1, filters: 1, kernel: [1, 2], stride: [1, 2], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, activation: Activation::None,
//! };
//! let mut packed = vec![0.0; conv.packed_len()];
//! conv.pack(&[1.0, 10.0], &[], &[], &mut packed);
//! let input = Rows { data: Span::new(&[3.0, 4.0]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 4, 1, 1) }; // [1, 4, 1]
//! conv.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [3.0, 30.0, 4.0, 40.0]);
//! ```
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::super::activation::Activation;
use super::super::arch::{Job, Simd};
use super::super::indirect::{InPlace, PADDED_SPAN, Spans, Sums, Table};
use super::super::kernel::{Context, RowKernel};
use super::super::panel::Panels;
use super::super::rows::{Rows, RowsMut};
use super::super::shared::SharedRows;

/// A 2-D transposed convolution, `[H, W, channels]` → `[H', W', filters]`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ConvTranspose {
    /// Input channels.
    pub channels: usize,
    /// Output channels.
    pub filters: usize,
    /// Height and width of the filters.
    pub kernel: [usize; 2],
    /// Stride in y and x.
    pub stride: [usize; 2],
    /// Dilation in y and x.
    pub dilation: [usize; 2],
    /// `[top, left, bottom, right]`, cropped from the full result. Bottom and right follow from the tensors' sizes, and
    /// so does the output padding.
    pub pads: [usize; 4],
    /// Groups.
    pub groups: usize,
    /// Applied to every output element.
    pub activation: Activation,
}

impl ConvTranspose {
    const fn panels(&self) -> Panels {
        let steps = self.kernel[0] * self.kernel[1] * (self.channels / self.groups);
        Panels::new(self.groups, self.filters / self.groups, steps, self.activation)
    }

    /// Elements of the packed weights, biases and slopes.
    pub const fn packed_len(&self) -> usize {
        self.panels().len()
    }

    /// Packs `weights` (`[channels, filters / groups, kernel_y, kernel_x]`), `bias` (`[filters]`, or empty) and the
    /// `slopes` of a PRelu (`[filters]` or `[1]`, else empty) into `out`, which holds [`ConvTranspose::packed_len`]
    /// elements.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(&self, weights: &[f32], bias: &[f32], slopes: &[f32], out: &mut [f32]) {
        let taps = self.kernel[0] * self.kernel[1];
        let (channels, filters) = (self.channels / self.groups, self.filters / self.groups);
        let weight = |filter: usize, step: usize| {
            let channel = filter / filters * channels + step % channels;
            weights[(channel * filters + filter % filters) * taps + step / channels]
        };
        self.panels().pack(weight, bias, slopes, out);
    }
}

/// One operand; the constant is packed by [`ConvTranspose::pack`].
impl RowKernel for ConvTranspose {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let weights = &constants[0].row(0)[..self.packed_len()];
        context.isa.run(Gather { p: self, y, input: operands[0], weights, output: SharedRows::new(output) });
    }
}

/// The rows `y`.
struct Gather<'a> {
    p: &'a ConvTranspose,
    y: Range<usize>,
    input: Rows<'a>,
    weights: &'a [f32],
    output: SharedRows<'a>,
}

impl Job for Gather<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Gather { p, weights, output, .. } = self;
        let sums = Sums { panels: p.panels(), weights, activation: p.activation, output };
        let (step, width) = (p.stride[1], output.width());
        let mut table = Table::new();
        for run in sums.runs::<S>(0..sums.panels.count(), width.div_ceil(step)) {
            let group = run.start / sums.panels.per_group();
            for y in self.y.clone() {
                let start = output.start(y);
                // The same taps reach all pixels that are a stride apart.
                for phase in 0..step.min(width) {
                    let pixels = (width - phase).div_ceil(step);
                    let tiles = pixels.div_ceil(S::PIXELS);
                    for tile in 0..tiles {
                        let (from, to) = (tile * pixels / tiles, (tile + 1) * pixels / tiles);
                        let window = Window::new(&self, group, y, phase + from * step);
                        table.start();
                        let pixel_stride = output.pixel(0, step);
                        table.add_pixels(to - from, output.pixel(start, window.x), pixel_stride);
                        // SAFETY: this is in `Job::run`. A span is a part of a tap, of which a panel has all steps, and
                        // there are no residuals. `output` borrows the rows, for this job alone.
                        unsafe { sums.make::<S, _>(&run, &mut table, &window, &mut InPlace) }
                    }
                }
            }
        }
    }
}

/// The taps with which one in `stride` input places reaches `at`: every `each`th tap from `first` on, `len` of them.
/// Each reads `pixel_stride` places before the one that the previous tap reads. The first reads `place`, which may lie beyond
/// the input, or before it.
#[derive(Clone, Copy)]
struct Taps {
    first: usize,
    each: usize,
    len: usize,
    place: isize,
    pixel_stride: isize,
}

impl Taps {
    #[inline(always)]
    fn reaching(at: usize, pad: usize, kernel: usize, dilation: usize, stride: usize) -> Self {
        let stride = stride as isize;
        let distance = |tap: usize| (at + pad) as isize - (tap * dilation) as isize;
        let reaches = |tap: &usize| distance(*tap).rem_euclid(stride) == 0;
        let mut taps = (0..kernel).filter(reaches);
        let Some(first) = taps.next() else {
            return Taps { first: 0, each: 1, len: 0, place: 0, pixel_stride: 0 };
        };
        let each = taps.next().map_or(kernel, |second| second - first);
        let pixel_stride = (each * dilation) as isize / stride;
        Taps {
            first,
            each,
            len: (kernel - first).div_ceil(each),
            place: distance(first) / stride,
            pixel_stride,
        }
    }

    /// Keeps only the taps that read within `size` places.
    #[inline(always)]
    fn within_size(mut self, size: usize) -> Self {
        while self.len > 0 && self.place >= size as isize {
            (self.first, self.place, self.len) =
                (self.first + self.each, self.place - self.pixel_stride, self.len - 1);
        }
        while self.len > 0 && self.place < (self.len as isize - 1) * self.pixel_stride {
            self.len -= 1;
        }
        self
    }

    #[inline(always)]
    fn tap(&self, i: usize) -> usize {
        self.first + i * self.each
    }

    /// The place that a tap reads. Before the input, it wraps.
    #[inline(always)]
    fn source(&self, i: usize) -> usize {
        (self.place - i as isize * self.pixel_stride) as usize
    }
}

/// The input pixels that reach pixels a stride apart, from column `x` on.
struct Window<'a> {
    conv: &'a Gather<'a>,
    x: usize,
    rows: Taps,
    columns: Taps,
    /// Channels of a group, and first one.
    channels: usize,
    offset: usize,
}

impl<'a> Window<'a> {
    #[inline(always)]
    fn new(conv: &'a Gather<'a>, group: usize, y: usize, x: usize) -> Self {
        let Gather { p, input, .. } = conv;
        let taps = |axis: usize, at: usize| {
            Taps::reaching(at, p.pads[axis], p.kernel[axis], p.dilation[axis], p.stride[axis])
        };
        let channels = p.channels / p.groups;
        let offset = group * channels;
        let rows = taps(0, y).within_size(input.shape.height);
        Window { conv, x, rows, columns: taps(1, x), channels, offset }
    }

    /// Tap in y, tap in x, and channel of a span.
    #[inline(always)]
    fn place(&self, span: usize) -> [usize; 3] {
        let pieces = self.channels.div_ceil(PADDED_SPAN);
        let tap = span / pieces;
        [tap / self.columns.len, tap % self.columns.len, span % pieces * PADDED_SPAN]
    }
}

impl<'a> Spans<'a, f32> for Window<'a> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.rows.len * self.columns.len * self.channels.div_ceil(PADDED_SPAN)
    }

    #[inline(always)]
    fn steps(&self, span: usize) -> (usize, usize) {
        let [i, j, channel] = self.place(span);
        let tap = self.rows.tap(i) * self.conv.p.kernel[1] + self.columns.tap(j);
        (tap * self.channels + channel, PADDED_SPAN.min(self.channels - channel))
    }

    #[inline(always)]
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [f32]> {
        let shape = &self.conv.input.shape;
        let [i, j, channel] = self.place(span);
        let row = self.conv.input.row(self.rows.source(i));
        let first = self.columns.source(j);
        move |i| {
            let ix = first.wrapping_add(i);
            (ix < shape.width).then(|| &row[ix * shape.channels + self.offset + channel..])
        }
    }
}
