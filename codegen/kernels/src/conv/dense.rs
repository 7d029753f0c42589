//! Convolution as a matrix product whose left matrix, a pixel's window a row, is never made: the micro-kernel reads the
//! input pixels where they lie.

use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::indirect::{InPlace, Load, MOST_PIXELS, PADDED_SPAN, Spans, Sums, Table};
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::pre::{BLOCK, Before, Loaded};
use super::{Conv, inside};

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Dense<'a> {
    pub p: &'a Conv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a>,
    /// What becomes of the input as it is loaded.
    pub before: Option<Before<'a>>,
    pub weights: &'a [f32],
    pub output: SharedRows<'a>,
}

impl Job for Dense<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        if self.before.is_some() {
            #[allow(unsafe_code, reason = "vector instructions")]
            // SAFETY: this is within a job of this instruction set.
            unsafe {
                S::call(WithBefore(self));
            }
        } else {
            self.make::<S, _>(&mut InPlace);
        }
    }
}

/// The same, where something becomes of the input: a function of its own, so that no other has the block on its stack.
struct WithBefore<'a>(Dense<'a>);

impl Job for WithBefore<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let WithBefore(dense) = self;
        let Some(before) = dense.before else { return };
        let mut block = [0.0; BLOCK];
        let channels = dense.p.channels / dense.p.groups;
        dense.make::<S, _>(&mut Loaded::new(before, channels, &mut block));
    }
}

impl Dense<'_> {
    /// Makes everything from elements that come before the micro-kernel so.
    #[inline(always)]
    fn make<S: Simd, L: Load>(&self, load: &mut L) {
        let Dense { p, weights, output, .. } = *self;
        let sums = Sums { panels: p.panels(), weights, activation: p.activation, output };
        let mut table = Table::new();
        for run in sums.runs::<S>(self.tiles.clone(), self.y.len() * output.width()) {
            let group = run.start / sums.panels.per_group();
            self.tiles::<S>(|y, x, count, taps| {
                let window = Window::new(self, group, [y, x], count, taps);
                table.start(count, |i| {
                    let (row, x) = window.at[i];
                    output.pixel(window.starts[row], x)
                });
                #[allow(unsafe_code, reason = "vector instructions")]
                // SAFETY: this is within a job of this instruction set; the caller of the convolution has the elements.
                unsafe {
                    sums.make::<S, _>(&run, &mut table, &window, load);
                }
            });
        }
    }

    /// Calls `f` with the first row and column, the number of pixels, and the rows of the filter that lie within the input
    /// of each tile. Rows go together for which those are the same.
    #[inline(always)]
    fn tiles<S: Simd>(&self, mut f: impl FnMut(usize, usize, usize, Range<usize>)) {
        let Dense { p, y, input, output, .. } = self;
        let taps =
            |y: usize| inside(y * p.stride[0], p.pads[0], p.kernel[0], p.dilation[0], input.shape.height);
        let width = output.width();
        let mut row = y.start;
        while row < y.end {
            let here = taps(row);
            let mut end = row + 1;
            while end < y.end && taps(end) == here {
                end += 1;
            }
            let pixels = (end - row) * width;
            let tiles = pixels.div_ceil(S::PIXELS);
            for tile in 0..tiles {
                let (from, to) = (tile * pixels / tiles, (tile + 1) * pixels / tiles);
                f(row + from / width, from % width, to - from, here.clone());
            }
            row = end;
        }
    }
}

/// The windows of the pixels of a tile.
struct Window<'a> {
    conv: &'a Dense<'a>,
    /// Rows of the filter that lie within the input.
    taps: Range<usize>,
    /// First row of the tile.
    y: usize,
    /// Row within the tile, and column, of each pixel.
    at: [(usize, usize); MOST_PIXELS],
    /// Where each output row of the tile begins.
    starts: [usize; MOST_PIXELS],
    /// Spans of a row of a filter, of a pixel, and their longest.
    spans: [usize; 2],
    longest: usize,
    /// Elements of a row of a filter that lie on end.
    run: usize,
    /// First channel of the group.
    offset: usize,
}

impl<'a> Window<'a> {
    #[inline(always)]
    fn new(conv: &'a Dense<'a>, group: usize, [y, x]: [usize; 2], count: usize, taps: Range<usize>) -> Self {
        let Dense { p, input, output, .. } = conv;
        let (shape, width) = (&input.shape, output.width());
        let channels = p.channels / p.groups;
        let (mut at, mut starts) = ([(0, 0); MOST_PIXELS], [0; MOST_PIXELS]);
        let (mut row, mut column) = (0, x);
        starts[0] = output.start(y);
        for at in &mut at[..count] {
            if column == width {
                (row, column) = (row + 1, 0);
                starts[row] = output.start(y + row);
            }
            *at = (row, column);
            column += 1;
        }
        let reach = (p.kernel[1] - 1) * p.dilation[1];
        let is_within = |x: usize| {
            let left = x * p.stride[1];
            left >= p.pads[1] && left - p.pads[1] + reach < shape.width
        };
        let within = at[..count].iter().all(|&(_, x)| is_within(x));
        let as_they_are = conv.before.is_none();
        let on_end = p.kernel[1] == 1 || as_they_are && p.dilation[1] == 1 && shape.pixel_stride == channels;
        // A window's row is one run of elements if its pixels lie on end, and are taken as they are.
        let (columns, run) =
            if within && on_end { (1, p.kernel[1] * channels) } else { (p.kernel[1], channels) };
        let longest = if within && as_they_are { run } else { PADDED_SPAN };
        let offset = shape.channel_offset + group * channels;
        Window { conv, taps, y, at, starts, spans: [columns, run.div_ceil(longest)], longest, run, offset }
    }
}

impl<'a> Spans<'a> for Window<'a> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.taps.len() * self.spans[0] * self.spans[1]
    }

    #[inline(always)]
    fn steps(&self, span: usize) -> (usize, usize) {
        let p = self.conv.p;
        let [columns, pieces] = self.spans;
        let (tap, piece) = (span / pieces, span % pieces * self.longest);
        let (ky, kx) = (self.taps.start + tap / columns, tap % columns);
        let step = (ky * p.kernel[1] + kx) * (p.channels / p.groups) + piece;
        (step, self.longest.min(self.run - piece))
    }

    #[inline(always)]
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [f32]> {
        let Dense { p, input, .. } = self.conv;
        let shape = &input.shape;
        let [columns, pieces] = self.spans;
        let (tap, piece) = (span / pieces, span % pieces * self.longest);
        let (ky, kx) = (self.taps.start + tap / columns, tap % columns);
        let right = kx * p.dilation[1];
        let (mut last, mut row): (usize, &'a [f32]) = (usize::MAX, &[]);
        move |i| {
            let (below, x) = self.at[i];
            if below != last {
                last = below;
                row = input.row((self.y + below) * p.stride[0] + ky * p.dilation[0] - p.pads[0]);
            }
            let ix = (x * p.stride[1] + right).wrapping_sub(p.pads[1]);
            (ix < shape.width).then(|| &row[ix * shape.pixel_stride + self.offset + piece..])
        }
    }
}
