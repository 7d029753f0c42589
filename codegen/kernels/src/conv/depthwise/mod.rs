//! Depthwise convolution: each channel has a filter of its own, and channels lie side by side in vectors.
//!
//! Filters 3 or 5 wide have code of their own for whole lines (`line`). This file has the code for all filters.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

mod line;
mod work;

use core::ops::Range;

use super::super::arch::{Job, PANEL, Simd};
use super::super::element::Element;
use super::super::features;
use super::super::tile::{Accumulators, Ending, Epilogue, MAX_CHANNELS, Tile, begin, finish};
use super::super::weight::{Lanes, Weight};
use super::parameters::{Conv, inside};
use super::pre::Prologue;
use line::Line;
pub(super) use work::Depthwise;
use work::{activate, columns, lanes};

impl<E: Element, W: Weight> Job for Depthwise<'_, E, W> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        if self.tiles.is_empty() {
            return;
        }
        for y in self.y.clone() {
            // SAFETY: this is in `Job::run`, as `Simd::call` asks.
            unsafe {
                if features::PROLOGUES && self.prologue.is_some() {
                    S::call(Row::<_, _, true> { conv: &self, y });
                } else {
                    S::call(Row::<_, _, false> { conv: &self, y });
                }
            }
        }
    }
}

/// Input rows whose places are looked up once for an output row. Taps of further rows look up their places each time.
const CACHED: usize = 8;

/// One output row; `PRE` if there is a prologue.
struct Row<'a, E, W, const PRE: bool> {
    conv: &'a Depthwise<'a, E, W>,
    y: usize,
}

impl<E: Element, W: Weight, const PRE: bool> Job for Row<'_, E, W, PRE> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Depthwise { p, input, output, .. } = self.conv;
        let (width, size) = (output.width(), input.shape.width);
        let whole = whole(p, size, width);
        let tiles = self.conv.tiles.clone();
        let line = if PRE || !S::SPECIAL { None } else { Line::new(self.conv, self.y, &whole) };
        // The panels of which there is a line, and the others.
        let between = line.as_ref().map_or(tiles.start, Line::end_tile);
        let mut accumulators = Accumulators::new();
        for (tiles, line) in [(tiles.start..between, line), (between..tiles.end, None)] {
            let mut x = 0;
            while x < width && !tiles.is_empty() {
                let (Row { conv, y }, accumulators, tiles) = (&self, &mut accumulators, tiles.clone());
                // SAFETY: this is in `Job::run`, as `Line::call` and `Simd::call` ask.
                unsafe {
                    if let Some(line) = line.as_ref().filter(|line| line.begin() == x) {
                        if const { S::SPECIAL } {
                            line.call::<S>();
                        }
                        x = line.end();
                    } else if whole.contains(&x) && whole.end - x >= 8 {
                        S::call(Pixels::<_, _, 8, 1, PRE> { conv, tiles, y: *y, x, accumulators });
                        x += 8;
                    } else {
                        S::call(Pixels::<_, _, 1, 4, PRE> { conv, tiles, y: *y, x, accumulators });
                        x += 1;
                    }
                }
            }
        }
    }
}

/// The output columns whose windows have all their columns within the input.
#[inline(always)]
fn whole(p: &Conv, size: usize, width: usize) -> Range<usize> {
    let reach = (p.kernel[1] - 1) * p.dilation[1];
    let end = (size + p.pads[1]).checked_sub(reach + 1).map_or(0, |last| last / p.stride[1] + 1).min(width);
    p.pads[1].div_ceil(p.stride[1]).min(end)..end
}

/// `M` pixels of row `y` from column `x` on, which all have the same columns of the filters within the input: `V` vectors
/// of channels at a time while there are as many.
struct Pixels<'a, E, W, const M: usize, const V: usize, const PRE: bool> {
    conv: &'a Depthwise<'a, E, W>,
    tiles: Range<usize>,
    y: usize,
    x: usize,
    /// Room for sums that wait.
    accumulators: &'a mut Accumulators,
}

impl<E: Element, W: Weight, const M: usize, const V: usize, const PRE: bool> Job
    for Pixels<'_, E, W, M, V, PRE>
{
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Depthwise { p, panels, input, weights, output, .. } = self.conv;
        let shape = &input.shape;
        let first = self.tiles.start * PANEL;
        let channels = (self.tiles.end * PANEL).min(p.filters).saturating_sub(first);
        let columns = columns(p, self.x, shape.width);
        let taps = columns.len();
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
        let mut windows = [core::ptr::null(); CACHED];
        for (window_at, ky) in windows.iter_mut().zip(rows.clone()) {
            *window_at = window(ky);
        }
        let between = output.pixel_stride();
        let start = output.pixel(output.start(self.y), self.x) + first;
        let filters = Filters {
            ending: Ending::new(p.activation),
            taps: panels.steps,
            step,
            advance,
            between,
            prologue: Loads::new(self.conv.prologue, first, channels),
        };
        let weights = &weights[first * panels.channel_len()..][..panels.reach(channels)];
        // SAFETY: this is in `Job::run`. The elements of the windows and of the output are there, as `window` and
        // `pointer` assert, and no one else uses the latter: `# Safety` of `conv_shared`. Vectors are of channels that
        // have panels, with biases, weights of all taps, and slopes; a narrow panel, the last one, may be read as far
        // as `Panels::reach` says. Of at most 8 pixels, at most `MAX_CHANNELS` channels wait.
        unsafe {
            let out = output.pointer(start, (M - 1) * between + channels);
            let at = |channel: usize| lanes::<S, W>(weights, panels, channels, channel);
            // If an activation is not computed in registers, floats go to the output first, and other elements wait as
            // floats, some channels at a time.
            let has_ended = Ending::new(p.activation).is_all(p.activation);
            let has_output = E::IS_FLOAT || has_ended;
            let (mut channel, mut waits) = (0, 0);
            let (mut widths, mut tiles) = ([0; MAX_CHANNELS / 4], 0);
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
                let to = match has_output {
                    true => Destination::Output(out.add(channel)),
                    false => Destination::Accumulators(self.accumulators.start().add(M * waits)),
                };
                let made = if left >= many {
                    let mut lanes = [at(channel); V];
                    for (v, lanes) in lanes.iter_mut().enumerate() {
                        *lanes = at(channel + v * S::LANES);
                    }
                    filters.make::<S, W, M, V, PRE, false>(&taps_of, &lanes, channel, to, many);
                    many
                } else if left >= S::LANES {
                    let at = [at(channel)];
                    filters.make::<S, W, M, 1, PRE, false>(&taps_of, &at, channel, to, S::LANES);
                    S::LANES
                } else {
                    let at = [at(channel)];
                    filters.make::<S, W, M, 1, PRE, true>(&taps_of, &at, channel, to, left);
                    S::LANES
                };
                channel += made;
                if has_output {
                    continue;
                }
                (widths[tiles], tiles, waits) = (made, tiles + 1, waits + made);
                if waits == MAX_CHANNELS || channel >= channels {
                    let begin = channel - waits;
                    let mut outputs = [out.add(begin); M];
                    for (i, out) in outputs.iter_mut().enumerate() {
                        *out = out.add(i * between);
                    }
                    let (activation, accumulators, channels) =
                        (p.activation, &mut *self.accumulators, channels.min(channel) - begin);
                    let (outputs, widths) = (&outputs, &widths[..tiles]);
                    Epilogue { activation, accumulators, widths, outputs, channels }.call::<S>();
                    (waits, tiles) = (0, 0);
                }
            }
            if E::IS_FLOAT && !has_ended {
                activate::<S, E>(output, start, [M, between, channels], p.activation);
            }
        }
    }
}

/// Where sums go.
#[derive(Clone, Copy)]
enum Destination<E> {
    /// To the first pixel's elements, after their ending.
    Output(*mut E),
    /// To where they wait for an activation.
    Accumulators(*mut f32),
}

/// Which taps lie within the input.
struct Taps<'a, E, F> {
    rows: Range<usize>,
    /// Elements of the first windows' rows, from the first tap and channel on.
    windows: &'a [*const E; CACHED],
    /// Finds those of a row.
    window: &'a F,
    /// First column.
    first: usize,
    /// Columns of a filter.
    width: usize,
    count: usize,
}

/// The data that all channels have in common.
struct Filters<'a, E> {
    ending: Ending,
    /// Taps of a filter.
    taps: usize,
    /// Elements from tap to tap, and from pixel to pixel, of input and output.
    step: usize,
    advance: usize,
    between: usize,
    prologue: Loads<'a, E>,
}

/// The prologue, applied to the input as it is loaded.
struct Loads<'a, E> {
    /// Scales and shifts, from the first channel on.
    constants: Option<[&'a [E]; 2]>,
    bounds: [f32; 2],
}

impl<'a, E: Element> Loads<'a, E> {
    fn new(prologue: Option<Prologue<'a, E>>, first: usize, channels: usize) -> Self {
        let constants = prologue.and_then(|prologue| prologue.constants);
        let bounds = prologue.map(|prologue| prologue.activation.bounds());
        Loads {
            constants: constants.map(|constants| constants.map(|values| &values[first..][..channels])),
            #[expect(clippy::expect_used, reason = "documented with the kernel")]
            bounds: bounds.map_or([f32::NEG_INFINITY, f32::INFINITY], |bounds| bounds.expect("bounds")),
        }
    }

    /// Scales and shifts of `V` vectors from `channel` on, which have `count` channels.
    ///
    /// # Safety
    /// In [`Job::run`]. The `count` channels fill `V` vectors; in a `PART`, `V` is 1 and they do not fill it.
    #[inline(always)]
    unsafe fn vectors<S: Simd, const V: usize, const PART: bool>(
        &self,
        channel: usize,
        count: usize,
    ) -> [[S::V; V]; 2] {
        // SAFETY: this is in `Job::run`: `# Safety` of this function. `values` has `count` elements from `channel` on,
        // and no more are loaded.
        unsafe {
            // These leave every element as it is.
            let mut vectors = [[S::splat(1.0); V], [S::splat(-0.0); V]];
            if let Some(constants) = self.constants {
                for (vectors, values) in vectors.iter_mut().zip(constants) {
                    let values = values[channel..][..count].as_ptr();
                    for (v, vector) in vectors.iter_mut().enumerate() {
                        let at = values.add(v * S::LANES);
                        *vector = if PART { E::load_masked::<S>(at, count) } else { E::load::<S>(at) };
                    }
                }
            }
            vectors
        }
    }
}

impl<E: Element> Filters<'_, E> {
    /// Makes the `count` channels of `V` vectors from `channel` on. Only a `PART` may have fewer channels than the
    /// vectors. Their weights are `at`.
    ///
    /// # Safety
    /// In [`Job::run`]. From `channel` on, windows have `count` channels at all taps of `M` pixels, lanes are of panels
    /// that are there, and `to` is good for `M` pixels. `count` is as for [`Loads::vectors`].
    #[inline(always)]
    unsafe fn make<S: Simd, W: Weight, const M: usize, const V: usize, const PRE: bool, const PART: bool>(
        &self,
        taps: &Taps<'_, E, impl Fn(usize) -> *const E>,
        at: &[Lanes<W>; V],
        channel: usize,
        to: Destination<E>,
        count: usize,
    ) {
        // SAFETY: this is in `Job::run`, windows have `count` channels at all taps of `M` pixels, lanes are of panels,
        // and `to` is good for `M` pixels: `# Safety` of this function.
        unsafe {
            let mut sums = [begin::<S, V, W>(at); M];
            let [scale, shift] = match PRE {
                true => self.prologue.vectors::<S, V, PART>(channel, count),
                false => [[S::splat(0.0); V]; 2],
            };
            let [low, high] = self.prologue.bounds;
            let [low, high] = [S::splat(low), S::splat(high)];
            for (i, ky) in taps.rows.clone().enumerate() {
                let mut pixels = if i < CACHED { taps.windows[i] } else { (taps.window)(ky) }.add(channel);
                let mut weights = [core::ptr::null(); V];
                for v in 0..V {
                    weights[v] = at[v].at(ky * taps.width + taps.first);
                }
                for _ in 0..taps.count {
                    let mut w = [S::splat(0.0); V];
                    for v in 0..V {
                        w[v] = W::load::<S>(weights[v]);
                        weights[v] = weights[v].wrapping_add(at[v].width);
                    }
                    let mut pixel = pixels;
                    for sums in &mut sums {
                        for v in 0..V {
                            let x = pixel.add(v * S::LANES);
                            let mut x = if PART { E::load_masked::<S>(x, count) } else { E::load::<S>(x) };
                            if PRE {
                                // Rounded twice, as the batch norm's own product and sum are: −0 leaves a product, and
                                // 1 a summand, as it is.
                                x = S::mul_add(x, scale[v], S::splat(-0.0));
                                x = S::mul_add(x, S::splat(1.0), shift[v]);
                                x = S::min(high, S::max(low, x));
                            }
                            sums[v] = S::mul_add(x, w[v], sums[v]);
                        }
                        pixel = pixel.wrapping_add(self.advance);
                    }
                    pixels = pixels.wrapping_add(self.step);
                }
            }
            W::end::<S, M, V>(at, &mut sums);
            let out = match to {
                Destination::Output(out) => out,
                Destination::Accumulators(to) => return to.cast::<Tile<S, M, V>>().write_unaligned(sums),
            };
            let slopes = self.ending.slopes::<S, V, W>(at, self.taps);
            for (i, sums) in sums.iter().enumerate() {
                finish::<S, V, E>(sums, self.ending, &slopes, out.add(i * self.between), count);
            }
        }
    }
}
