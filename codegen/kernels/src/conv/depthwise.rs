//! Depthwise convolution: each channel has a filter of its own, and channels lie side by side in vectors.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::super::activation::Apply;
use super::super::arch::{Job, PANEL, Simd};
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::super::tile::{Ending, finish, load, panel_vectors};
use super::pre::Before;
use super::{Conv, inside};

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Depthwise<'a> {
    pub p: &'a Conv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a>,
    /// What becomes of the input as it is loaded.
    pub before: Option<Before<'a>>,
    pub weights: &'a [f32],
    pub output: SharedRows<'a>,
}

impl Job for Depthwise<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        if self.tiles.is_empty() {
            return;
        }
        for y in self.y.clone() {
            // SAFETY: this is within a job of this instruction set.
            unsafe {
                // Filters of the usual widths have code of their own.
                match (self.before, self.p.kernel[1]) {
                    (Some(_), _) => S::call(Row::<0, true> { conv: &self, y }),
                    (None, 3) => S::call(Row::<3, false> { conv: &self, y }),
                    (None, 5) => S::call(Row::<5, false> { conv: &self, y }),
                    (None, _) => S::call(Row::<0, false> { conv: &self, y }),
                }
            }
        }
    }
}

/// Input rows whose places are looked up once for an output row; taps beyond look theirs up each time.
const CACHED: usize = 8;

/// One output row of a convolution whose filters are `K` wide, or of any width if that is 0; `PRE` if something becomes
/// of its input.
struct Row<'a, const K: usize, const PRE: bool> {
    conv: &'a Depthwise<'a>,
    y: usize,
}

impl<const K: usize, const PRE: bool> Job for Row<'_, K, PRE> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Depthwise { p, input, output, .. } = self.conv;
        let (width, size) = (output.width(), input.shape.width);
        let whole = |x: usize| columns(p, x, size).len() == p.kernel[1];
        let mut x = 0;
        while x < width {
            let Row { conv, y } = self;
            // SAFETY: this is within a job of this instruction set.
            unsafe {
                // The windows between two inner ones are inner ones.
                if whole(x) && x + 8 <= width && whole(x + 7) {
                    S::call(Pixels::<K, 8, 1, PRE> { conv, y, x });
                    x += 8;
                } else if whole(x) && x + 4 <= width && whole(x + 3) {
                    S::call(Pixels::<K, 4, 2, PRE> { conv, y, x });
                    x += 4;
                } else {
                    S::call(Pixels::<0, 1, 4, PRE> { conv, y, x });
                    x += 1;
                }
            }
        }
    }
}

/// Columns of the filters that lie within the input for the window of column `x`.
#[inline(always)]
fn columns(p: &Conv, x: usize, size: usize) -> Range<usize> {
    inside(x * p.stride[1], p.pads[1], p.kernel[1], p.dilation[1], size)
}

/// `M` pixels of row `y` from column `x` on, which all have the same columns of the filters within the input: `V` vectors
/// of channels at a time while there are as many.
struct Pixels<'a, const K: usize, const M: usize, const V: usize, const PRE: bool> {
    conv: &'a Depthwise<'a>,
    y: usize,
    x: usize,
}

impl<const K: usize, const M: usize, const V: usize, const PRE: bool> Job for Pixels<'_, K, M, V, PRE> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Depthwise { p, tiles, input, weights, output, .. } = self.conv;
        let shape = &input.shape;
        let first = tiles.start * PANEL;
        let channels = (tiles.end * PANEL).min(p.filters).saturating_sub(first);
        let panels = p.panels();
        let columns = columns(p, self.x, shape.width);
        let taps = if K == 0 { columns.len() } else { K };
        let (advance, step) = (p.stride[1] * shape.channels, p.dilation[1] * shape.channels);
        let top = self.y * p.stride[0];
        let rows = inside(top, p.pads[0], p.kernel[0], p.dilation[0], shape.height);
        let window = |ky: usize| {
            let left = self.x * p.stride[1] + columns.start * p.dilation[1] - p.pads[1];
            let begin = left * shape.channels + first;
            let span = (M - 1) * advance + (taps - 1) * step + channels;
            input.row(top + ky * p.dilation[0] - p.pads[0])[begin..][..span].as_ptr()
        };
        let rows = if taps == 0 { 0..0 } else { rows };
        let mut windows = [weights.as_ptr(); CACHED];
        for (window_at, ky) in windows.iter_mut().zip(rows.clone()) {
            *window_at = window(ky);
        }
        let between = output.pixel(0, 1) - output.pixel(0, 0);
        let start = output.pixel(output.start(self.y), self.x) + first;
        let filters = Filters {
            ending: Ending::of(p.activation),
            taps: panels.steps,
            step,
            advance,
            between,
            before: Loads::new(self.conv.before, first, channels),
        };
        let weights = &weights[first * panels.each()..][..panels.reach(channels)];
        // SAFETY: this is within a job of this instruction set. The elements of the windows and of the output are there, and
        // the latter are the caller's. Vectors are of channels that have panels, which hold biases, weights of all taps, and
        // slopes; a narrow panel, which is the last one, may be read as far as `Panels::reach` says.
        unsafe {
            let out = output.pointer(start, (M - 1) * between + channels);
            let at = |channel: usize| {
                let vector = channel / S::LANES;
                let per_panel = const { panel_vectors::<S>() };
                weights
                    .as_ptr()
                    .wrapping_add(vector / per_panel * panels.stride() + vector % per_panel * S::LANES)
            };
            let mut channel = 0;
            while channel < channels {
                let (left, many) = (channels - channel, V * S::LANES);
                let taps_of = Taps {
                    rows: rows.clone(),
                    windows: &windows,
                    window: &window,
                    first: columns.start,
                    width: p.kernel[1],
                    count: taps,
                };
                let out = out.add(channel);
                // Vectors of several panels are of full ones: they begin at a multiple of their channels.
                let width = PANEL.min(channels - channel / PANEL * PANEL);
                if left >= many {
                    let at: [*const f32; V] = core::array::from_fn(|v| at(channel + v * S::LANES));
                    filters.make::<S, K, M, V, PRE, false>(&taps_of, (at, width), channel, out, many);
                    channel += many;
                } else if left >= S::LANES {
                    let at = ([at(channel)], width);
                    filters.make::<S, K, M, 1, PRE, false>(&taps_of, at, channel, out, S::LANES);
                    channel += S::LANES;
                } else {
                    let at = ([at(channel)], width);
                    filters.make::<S, K, M, 1, PRE, true>(&taps_of, at, channel, out, left);
                    channel += left;
                }
            }
            if !Ending::of(p.activation).is_all(p.activation) {
                let dense = between == channels;
                let len = if dense { M * channels } else { channels };
                for i in (0..M).step_by(if dense { M } else { 1 }) {
                    let values = output.elements(start + i * between, len);
                    S::call(Apply { activation: p.activation, values, slopes: &[] });
                }
            }
        }
    }
}

/// Which taps lie within the input.
struct Taps<'a, F> {
    rows: Range<usize>,
    /// Elements of the first windows' rows, from the first tap and channel on.
    windows: &'a [*const f32; CACHED],
    /// Finds those of a row.
    window: &'a F,
    /// First column.
    first: usize,
    /// Columns of a filter.
    width: usize,
    count: usize,
}

/// What all channels have in common.
struct Filters<'a> {
    ending: Ending,
    /// Taps of a filter.
    taps: usize,
    /// Elements from tap to tap, and from pixel to pixel, of input and output.
    step: usize,
    advance: usize,
    between: usize,
    before: Loads<'a>,
}

/// What becomes of the input as it is loaded.
struct Loads<'a> {
    /// Scales and shifts, from the first channel on.
    constants: Option<[&'a [f32]; 2]>,
    bounds: [f32; 2],
}

impl<'a> Loads<'a> {
    fn new(before: Option<Before<'a>>, first: usize, channels: usize) -> Self {
        let constants = before.and_then(|before| before.constants);
        let bounds = before.map(|before| before.activation.bounds());
        Loads {
            constants: constants.map(|constants| constants.map(|values| &values[first..][..channels])),
            #[expect(clippy::expect_used, reason = "documented with the kernel")]
            bounds: bounds.map_or([f32::NEG_INFINITY, f32::INFINITY], |bounds| bounds.expect("bounds")),
        }
    }

    /// Scales and shifts of `V` vectors from `channel` on, whose channels number `count`.
    ///
    /// # Safety
    /// In [`Job::run`].
    #[inline(always)]
    unsafe fn vectors<S: Simd, const V: usize, const PART: bool>(
        &self,
        channel: usize,
        count: usize,
    ) -> [[S::V; V]; 2] {
        // SAFETY: the caller's; a slice is good for its elements.
        unsafe {
            // These leave every element as it is.
            let mut vectors = [[S::splat(1.0); V], [S::splat(-0.0); V]];
            if let Some(constants) = self.constants {
                for (vectors, values) in vectors.iter_mut().zip(constants) {
                    let values = values[channel..][..count].as_ptr();
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        let at = values.add(v * S::LANES);
                        *vector = if PART { S::load_part(at, count) } else { S::load(at) };
                    }
                }
            }
            vectors
        }
    }
}

impl Filters<'_> {
    /// Makes the `count` channels of `V` vectors from `channel` on, which only a `PART` may not fill; their weights are `at`,
    /// from tap to tap in panels of this `width`.
    ///
    /// # Safety
    /// In [`Job::run`]; the elements are there.
    #[inline(always)]
    unsafe fn make<
        S: Simd,
        const K: usize,
        const M: usize,
        const V: usize,
        const PRE: bool,
        const PART: bool,
    >(
        &self,
        taps: &Taps<'_, impl Fn(usize) -> *const f32>,
        (at, width): ([*const f32; V], usize),
        channel: usize,
        out: *mut f32,
        count: usize,
    ) {
        let columns = if K == 0 { taps.count } else { K };
        // SAFETY: the caller's.
        unsafe {
            let mut sums = [load::<S, V>(&at, 0); M];
            let [scale, shift] = match PRE {
                true => self.before.vectors::<S, V, PART>(channel, count),
                false => [[S::splat(0.0); V]; 2],
            };
            let [low, high] = self.before.bounds;
            let [low, high] = [S::splat(low), S::splat(high)];
            for (i, ky) in taps.rows.clone().enumerate() {
                let mut pixels = if i < CACHED { taps.windows[i] } else { (taps.window)(ky) }.add(channel);
                let mut tap = width * (1 + ky * taps.width + taps.first);
                for _ in 0..columns {
                    let w = load::<S, V>(&at, tap);
                    let mut pixel = pixels;
                    for sums in &mut sums {
                        for v in 0..V {
                            let x = pixel.add(v * S::LANES);
                            let mut x = if PART { S::load_part(x, count) } else { S::load(x) };
                            if PRE {
                                // Rounded twice, as the batch norm's own product and sum are: −0 leaves a product, and
                                // 1 a summand, as it is.
                                x = S::mul_add(x, scale[v], S::splat(-0.0));
                                x = S::mul_add(x, S::splat(1.0), shift[v]);
                                x = S::at_most(high, S::at_least(low, x));
                            }
                            sums[v] = S::mul_add(x, w[v], sums[v]);
                        }
                        pixel = pixel.wrapping_add(self.advance);
                    }
                    pixels = pixels.wrapping_add(self.step);
                    tap += width;
                }
            }
            let slopes = at.map(|p| p.wrapping_add(width * (1 + self.taps)));
            for (i, sums) in sums.iter().enumerate() {
                finish::<S, V>(sums, self.ending, &slopes, out.add(i * self.between), count);
            }
        }
    }
}
