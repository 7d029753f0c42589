//! Convolution as a matrix product whose left matrix, a pixel's window a row, is never made: the micro-kernel reads the
//! input pixels where they lie.

use core::ops::Range;

use super::super::arch::{Job, Simd};
use super::super::indirect::{InPlace, Load, Sums, Table};
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::pre::{BLOCK, Before, Loaded};
use super::window::{Parts, Pixels, Window};
use super::{Conv, inside};

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Dense<'a> {
    pub p: &'a Conv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    /// The image, or what its channels are, part by part.
    pub parts: &'a [Rows<'a>],
    /// What is added to the sums.
    pub residual: Option<Rows<'a>>,
    /// What becomes of the input as it is loaded.
    pub before: Option<Before<'a>>,
    pub weights: &'a [f32],
    pub output: SharedRows<'a>,
}

impl Job for Dense<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let has_parts = self.parts.len() > 1;
        #[allow(unsafe_code, reason = "vector instructions")]
        // SAFETY: this is within a job of this instruction set.
        unsafe {
            match (self.before, has_parts) {
                (None, false) => self.make::<S, _, false>(&mut InPlace),
                (None, true) => S::call(AsItIs(self)),
                (Some(before), false) => S::call(WithBefore::<false>(self, before)),
                (Some(before), true) => S::call(WithBefore::<true>(self, before)),
            }
        }
    }
}

/// The same of several parts.
struct AsItIs<'a>(Dense<'a>);

impl Job for AsItIs<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        self.0.make::<S, _, true>(&mut InPlace);
    }
}

/// The same, where something becomes of the input: a function of its own, so that no other has the block on its stack.
struct WithBefore<'a, const PARTS: bool>(Dense<'a>, Before<'a>);

impl<const PARTS: bool> Job for WithBefore<'_, PARTS> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let WithBefore(dense, before) = self;
        let mut block = [0.0; BLOCK];
        let channels = dense.p.channels / dense.p.groups;
        dense.make::<S, _, PARTS>(&mut Loaded::new(before, channels, &mut block));
    }
}

impl Dense<'_> {
    /// Makes everything from elements that come before the micro-kernel so, of one image or several `PARTS`.
    #[inline(always)]
    fn make<S: Simd, L: Load, const PARTS: bool>(&self, load: &mut L) {
        let Dense { p, weights, output, .. } = *self;
        let sums = Sums { panels: p.panels(), weights, activation: p.activation, output };
        let mut table = Table::new();
        for run in sums.runs::<S>(self.tiles.clone(), self.y.len() * output.width()) {
            let group = run.start / sums.panels.per_group();
            self.tiles::<S>(|y, x, count, taps| {
                let pixels = Pixels::new(&output, [y, x], count);
                table.start(count, |i| {
                    let (row, x) = pixels.at[i];
                    output.pixel(pixels.starts[row], x)
                });
                if let Some(residual) = self.residual {
                    let (mut last, mut row): (usize, &[f32]) = (usize::MAX, &[]);
                    table.add_residuals(p.filters, |i| {
                        let (below, x) = pixels.at[i];
                        if below != last {
                            (last, row) = (below, residual.row(y + below));
                        }
                        &row[x * residual.shape.channels..]
                    });
                }
                #[allow(unsafe_code, reason = "vector instructions")]
                // SAFETY: this is within a job of this instruction set; the caller of the convolution has the elements.
                unsafe {
                    if PARTS {
                        sums.make::<S, _>(&run, &mut table, &Parts::new(self, &pixels, taps), load);
                    } else {
                        sums.make::<S, _>(&run, &mut table, &Window::new(self, group, &pixels, taps), load);
                    }
                }
            });
        }
    }

    /// Calls `f` with the first row and column, the number of pixels, and the rows of the filter that lie within the input
    /// of each tile. Rows go together for which those are the same.
    #[inline(always)]
    fn tiles<S: Simd>(&self, mut f: impl FnMut(usize, usize, usize, Range<usize>)) {
        let Dense { p, y, parts, output, .. } = self;
        let height = parts[0].shape.height;
        let taps = |y: usize| inside(y * p.stride[0], p.pads[0], p.kernel[0], p.dilation[0], height);
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
