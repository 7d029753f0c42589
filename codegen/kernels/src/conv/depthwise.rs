//! Depthwise convolution: each channel has a filter of its own, and channels lie side by side in vectors.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::super::arch::{Job, PANEL, Simd};
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::super::tile::finish;
use super::Conv;

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Depthwise<'a> {
    pub p: &'a Conv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a>,
    pub weights: &'a [f32],
    pub output: SharedRows<'a>,
}

impl Job for Depthwise<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        for y in self.y.clone() {
            // SAFETY: this is within a job of this instruction set.
            unsafe { S::call(Row { conv: &self, y }) }
        }
    }
}

/// Taps `start .. end` of a kernel that, from `at = output · stride`, lie within `size` elements.
#[inline(always)]
fn inside(at: usize, pad: usize, kernel: usize, dilation: usize, size: usize) -> Range<usize> {
    let start = pad.saturating_sub(at).div_ceil(dilation).min(kernel);
    let end = (size + pad).saturating_sub(at).div_ceil(dilation).min(kernel);
    start..end.max(start)
}

/// Input rows whose places are looked up once for an output row; taps beyond look theirs up each time.
const CACHED: usize = 8;

/// One output row.
struct Row<'a> {
    conv: &'a Depthwise<'a>,
    y: usize,
}

impl Job for Row<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Depthwise { p, input, output, .. } = self.conv;
        let width = output.width();
        let top = self.y * p.stride[0];
        let taps = inside(top, p.pads[0], p.kernel[0], p.dilation[0], input.shape.height);
        let row = |ky: usize| input.row(top + ky * p.dilation[0] - p.pads[0]);
        let cached: [&[f32]; CACHED] =
            core::array::from_fn(|ky| if taps.contains(&ky) { row(ky) } else { &[] });
        let windows = Windows {
            conv: self.conv,
            taps,
            row: |ky: usize| if ky < CACHED { cached[ky] } else { row(ky) },
            start: output.start(self.y),
        };
        let whole = |x: usize| {
            inside(x * p.stride[1], p.pads[1], p.kernel[1], p.dilation[1], input.shape.width).len()
                == p.kernel[1]
        };
        let mut x = 0;
        while x < width {
            // The windows between two inner ones are inner ones.
            if whole(x) && x + 8 <= width && whole(x + 7) {
                windows.pixels::<S, 8>(x);
                x += 8;
            } else if whole(x) && x + 4 <= width && whole(x + 3) {
                windows.pixels::<S, 4>(x);
                x += 4;
            } else {
                windows.pixels::<S, 1>(x);
                x += 1;
            }
        }
    }
}

/// The windows of an output row.
struct Windows<'a, R> {
    conv: &'a Depthwise<'a>,
    /// Kernel rows that lie within the input.
    taps: Range<usize>,
    /// The input row of a kernel row.
    row: R,
    /// The element at which the output row begins.
    start: usize,
}

impl<'a, R: Fn(usize) -> &'a [f32]> Windows<'a, R> {
    /// `M` pixels from column `x`, with the same taps inside the input's width.
    #[inline(always)]
    fn pixels<S: Simd, const M: usize>(&self, x: usize) {
        let p = self.conv.p;
        for panel in self.conv.tiles.clone() {
            let channels = (p.filters - panel * PANEL).min(PANEL);
            for lane in (0..channels).step_by(S::LANES) {
                // Full vectors have code of their own.
                let count = channels - lane;
                if count >= S::LANES {
                    self.vectors::<S, M>(x, panel, lane, S::LANES);
                } else {
                    self.vectors::<S, M>(x, panel, lane, count);
                }
            }
        }
    }

    /// The `count` channels of `panel` from `lane` on.
    #[inline(always)]
    fn vectors<S: Simd, const M: usize>(&self, x: usize, panel: usize, lane: usize, count: usize) {
        let Depthwise { p, input, weights, output, .. } = self.conv;
        let (panels, shape) = (p.panels(), &input.shape);
        let left = x * p.stride[1];
        let columns = inside(left, p.pads[1], p.kernel[1], p.dilation[1], shape.width);
        let advance = p.stride[1] * shape.pixel_stride;
        let weights = &weights[panel * panels.stride()..][..panels.stride()];
        let first = panel * PANEL + lane;
        let offset = shape.channel_offset + first;
        // SAFETY: this is within a job of this instruction set; pixels and weights come from slices of that many elements,
        // and `load_part` reads no more than `count`.
        unsafe {
            let mut sums = [[S::load(weights[lane..][..S::LANES].as_ptr())]; M];
            for ky in self.taps.clone() {
                let row = (self.row)(ky);
                for kx in columns.clone() {
                    let tap = PANEL * (1 + ky * p.kernel[1] + kx) + lane;
                    let w = S::load(weights[tap..][..S::LANES].as_ptr());
                    let start = (left + kx * p.dilation[1] - p.pads[1]) * shape.pixel_stride + offset;
                    let pixels = &row[start..][..(M - 1) * advance + count];
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let v = load_part::<S>(pixels.as_ptr().add(i * advance), count);
                        sum[0] = S::mul_add(v, w, sum[0]);
                    }
                }
            }
            let slopes =
                if panels.slopes { &weights[panels.stride() - PANEL + lane..][..count] } else { &[] };
            for (i, sum) in sums.iter().enumerate() {
                let out = output.channels(self.start, x + i, first, count);
                finish::<S, 1>(sum, p.activation, slopes, out);
            }
        }
    }
}

/// The `count` elements at `p`, the rest of the vector zero.
///
/// # Safety
/// As [`Simd::load`], but `p` need be good for `count` elements only.
#[inline(always)]
unsafe fn load_part<S: Simd>(p: *const f32, count: usize) -> S::V {
    // SAFETY: the caller's.
    unsafe {
        if count == S::LANES {
            return S::load(p);
        }
        let mut whole = [0.0; PANEL];
        core::ptr::copy_nonoverlapping(p, whole.as_mut_ptr(), count);
        S::load(whole.as_ptr())
    }
}
