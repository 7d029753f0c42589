//! Convolution as a matrix product whose left matrix, a pixel's window a row, is never made: the micro-kernel reads the
//! input pixels where they lie (indirect convolution: Dukhan, "The Indirect Convolution Algorithm", 2019).
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::super::arch::{Job, PANEL, Simd};
use super::super::panel::Block;
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::super::tile::{TileWork, accumulate, call, finish, most_panels, panel_pointers, slopes};
use super::{Conv, ZEROS};

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Dense<'a> {
    pub p: &'a Conv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a>,
    pub weights: &'a [f32],
    pub output: SharedRows<'a>,
}

/// Elements of weights that surely stay in a cache near the core while the pixels pass by.
const NEAR: usize = 16 * 1024;

impl Job for Dense<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let panels = self.p.panels();
        let blocks = || panels.blocks(self.tiles.clone(), most_panels::<S>());
        let make = |block: &Block, y: usize, x: usize, pixels: usize| {
            // SAFETY: this is within a job of this instruction set.
            unsafe { call::<S, _>(Pixels { conv: &self, block, y, x }, pixels, block.panels.len()) }
        };
        // Either the weights or the pixels are gone through once only.
        if self.tiles.len() * panels.stride() <= NEAR {
            self.pixels::<S>(|y, x, pixels| blocks().for_each(|block| make(&block, y, x, pixels)));
        } else {
            blocks().for_each(|block| self.pixels::<S>(|y, x, pixels| make(&block, y, x, pixels)));
        }
    }
}

impl Dense<'_> {
    /// Calls `f` with the first row and column and the number of pixels of each tile. Rows go together that have the same
    /// rows of the window within the input.
    #[inline(always)]
    fn pixels<S: Simd>(&self, mut f: impl FnMut(usize, usize, usize)) {
        let Dense { p, y, input, output, .. } = self;
        let reach = (p.kernel[0] - 1) * p.dilation[0];
        let inside = |y: usize| {
            let top = y * p.stride[0];
            top >= p.pads[0] && top - p.pads[0] + reach < input.shape.height
        };
        let width = output.width();
        let mut row = y.start;
        while row < y.end {
            let mut end = row + 1;
            while end < y.end && inside(row) && inside(end) {
                end += 1;
            }
            let pixels = (end - row) * width;
            let tiles = pixels.div_ceil(S::PIXELS);
            for tile in 0..tiles {
                let (from, to) = (tile * pixels / tiles, (tile + 1) * pixels / tiles);
                f(row + from / width, from % width, to - from);
            }
            row = end;
        }
    }
}

/// Pixels of rows on end, from column `x` of row `y`.
#[derive(Clone, Copy)]
struct Pixels<'a> {
    conv: &'a Dense<'a>,
    block: &'a Block,
    y: usize,
    x: usize,
}

impl TileWork for Pixels<'_> {
    #[inline(always)]
    fn run<S: Simd, const M: usize, const N: usize>(self) {
        let Dense { p, input, output, .. } = self.conv;
        let panels = p.panels();
        let channels = p.channels / p.groups;
        let shape = &input.shape;
        let width = output.width();
        // Output coordinates of each pixel.
        let (mut y, mut x) = (self.y, self.x);
        let at: [(usize, usize); M] = core::array::from_fn(|_| {
            let here = (y, x);
            x += 1;
            if x == width {
                (y, x) = (y + 1, 0);
            }
            here
        });
        let within = at.iter().all(|&(_, x)| {
            let left = x * p.stride[1];
            left >= p.pads[1] && left - p.pads[1] + (p.kernel[1] - 1) * p.dilation[1] < shape.width
        });
        let dense = p.kernel[1] == 1 || p.dilation[1] == 1 && shape.pixel_stride == channels;
        // A window's row is one run of elements if its pixels lie on end.
        let (taps, run) = if within && dense { (1, p.kernel[1] * channels) } else { (p.kernel[1], channels) };
        let chunk = if within { run } else { ZEROS.len() };
        let offset = shape.channel_offset + self.block.group * channels;

        let stride = panels.stride();
        let weights = &self.conv.weights[self.block.panels.start * stride..self.block.panels.end * stride];
        // SAFETY: this is within a job of this instruction set; the slices have the lengths that the micro-kernel reads.
        unsafe {
            let bias = panel_pointers::<S, N>(weights, stride, 0, PANEL).map(|b| S::load(b));
            let mut sums = [bias; M];
            for ky in 0..p.kernel[0] {
                let (mut last, mut row) = (usize::MAX, None);
                let rows: [Option<&[f32]>; M] = core::array::from_fn(|i| {
                    if at[i].0 != last {
                        last = at[i].0;
                        let iy = (last * p.stride[0] + ky * p.dilation[0]).wrapping_sub(p.pads[0]);
                        row = (iy < shape.height).then(|| input.row(iy));
                    }
                    row
                });
                if rows.iter().all(Option::is_none) {
                    continue;
                }
                for kx in 0..taps {
                    let mut c = 0;
                    while c < run {
                        let len = chunk.min(run - c);
                        let pixels = core::array::from_fn(|i| {
                            let ix = (at[i].1 * p.stride[1] + kx * p.dilation[1]).wrapping_sub(p.pads[1]);
                            match rows[i] {
                                Some(row) if ix < shape.width => {
                                    row[ix * shape.pixel_stride + offset + c..][..len].as_ptr()
                                }
                                _ => ZEROS[..len].as_ptr(),
                            }
                        });
                        let step = (ky * p.kernel[1] + kx) * channels + c;
                        let w = panel_pointers::<S, N>(weights, stride, PANEL * (1 + step), PANEL * len);
                        accumulate::<S, M, N>(&mut sums, &pixels, &w, PANEL, len);
                        c += len;
                    }
                }
            }
            let count = (panels.filters - self.block.first).min(N * S::LANES);
            let first = self.block.group * panels.filters + self.block.first;
            let slopes = slopes(&panels, weights);
            let (mut last, mut start) = (self.y, output.start(self.y));
            for (sums, (y, x)) in sums.iter().zip(at) {
                if y != last {
                    (last, start) = (y, output.start(y));
                }
                let out = output.channels(start, x, first, count);
                finish::<S, N>(sums, p.activation, &slopes[..count], out);
            }
        }
    }
}
