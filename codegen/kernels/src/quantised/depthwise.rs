//! Depthwise convolution: each channel has a filter of its own, and channels lie side by side in vectors.
//!
//! Two or four taps, one above the other, go together. Beyond the image a tap reads zero points, so that all windows have the
//! same sum of weights, whose part the biases are without.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::super::arch::PANEL;
use super::super::conv::Conv;
use super::super::pixels::pixel;
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::conv::QConv;
use super::integers::{Integers, LANES, MOST_DEPTH, Work, requantise};
use super::panels::Panel;

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Depthwise<'a> {
    pub q: &'a QConv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a, u8>,
    pub packed: &'a [u8],
    pub output: SharedRows<'a, u8>,
}

/// Bytes of the image that stay near the core while the panels pass by.
const NEAR: usize = 32 * 1024;
/// The most rows of a filter whose taps go together.
const MOST_ROWS: usize = 8;
/// The most groups of taps of a filter that go together.
const MOST_GROUPS: usize = 32;

impl Work for Depthwise<'_> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let Depthwise { q, ref y, ref tiles, input, packed, .. } = self;
        let Conv { kernel, stride, .. } = q.conv;
        if kernel[0] > MOST_ROWS || kernel[0].div_ceil(S::DEPTH) * kernel[1] > MOST_GROUPS {
            return self.tap_by_tap();
        }
        let panels = q.panels();
        let together = (NEAR / (stride[0] * input.shape.row_stride()).max(1)).max(1);
        for start in y.clone().step_by(together) {
            let y = start..y.end.min(start + together);
            for tile in tiles.clone() {
                let first = tile * PANEL;
                let panel = Panel::of(&panels, packed, first);
                let rows = PanelRows { conv: &self, y: y.clone(), panel, first };
                // SAFETY: this is within a job of this instruction set.
                unsafe {
                    if const { S::LANES == PANEL } {
                        rows.call::<S, 1, 7>();
                    } else if panel.width > LANES {
                        rows.call::<S, 2, 4>();
                    } else {
                        rows.call::<S, 1, 4>();
                    }
                }
            }
        }
    }
}

impl Depthwise<'_> {
    /// Makes everything one product at a time, for the largest filters.
    #[inline(always)]
    fn tap_by_tap(self) {
        let Depthwise { q, y, tiles, input, packed, output } = self;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let (shape, panels) = (&input.shape, q.panels());
        let zeros = [q.zero_point; PANEL];
        for y in y {
            for tile in tiles.clone() {
                let first = tile * PANEL;
                let panel = Panel::of(&panels, packed, first);
                for x in 0..output.width() {
                    let mut sums: [i32; PANEL] =
                        core::array::from_fn(|lane| if lane < panel.width { panel.bias(lane) } else { 0 });
                    for ky in 0..kernel[0] {
                        let iy = (y * stride[0] + ky * dilation[0]).wrapping_sub(pads[0]);
                        for kx in 0..kernel[1] {
                            let ix = (x * stride[1] + kx * dilation[1]).wrapping_sub(pads[1]);
                            let elements = match iy < shape.height && ix < shape.width {
                                true => &pixel(input.row(iy), shape, ix)[first..][..panel.width],
                                false => &zeros[..panel.width],
                            };
                            let weights = &panel.weights()[(ky * kernel[1] + kx) * panel.width..];
                            for ((sum, &x), &weight) in sums.iter_mut().zip(elements).zip(weights) {
                                *sum = sum.wrapping_add(i32::from(x) * i32::from(weight.cast_signed()));
                            }
                        }
                    }
                    let start = output.pixel(output.start(y), x) + first;
                    // SAFETY: the caller has these elements of the output.
                    let made = unsafe { output.elements(start, panel.width) };
                    for (lane, (byte, sum)) in made.iter_mut().zip(sums).enumerate() {
                        *byte = q.requantise.apply(sum, panel.multiplier(lane));
                    }
                }
            }
        }
    }
}

/// Rows of the output by the channels of a panel, of which `first` is the first.
struct PanelRows<'b, 'a> {
    conv: &'b Depthwise<'a>,
    y: Range<usize>,
    panel: Panel<'b>,
    first: usize,
}

/// The weights of a panel, in groups of taps one above the other, and what else makes elements of sums.
struct Filters<S: Integers, const V: usize> {
    weights: [MaybeUninit<[S::Factors; V]>; MOST_GROUPS],
    biases: [S::Sums; V],
    scales: [S::Scales; V],
    ends: S::Ends,
    /// Channels.
    lanes: usize,
}

/// Where the row of a tap lies, from the panel's first channel on, and how far from there the next pixel is.
type Place = (*const u8, usize);

impl PanelRows<'_, '_> {
    /// Makes them with `V` vectors of channels and, for filters and strides of the usual sizes, `P` pixels at once.
    ///
    /// # Safety
    /// In [`Work::run`]; `V` vectors hold the panel's channels.
    #[inline(always)]
    unsafe fn call<S: Integers, const V: usize, const P: usize>(self) {
        let Conv { kernel, stride, dilation, .. } = self.conv.q.conv;
        let is_whole = S::HAS_PARTS || self.panel.width == V * S::LANES;
        // SAFETY: the caller's.
        unsafe {
            match (is_whole, kernel, stride[1], dilation[1]) {
                (true, [3, 3], 1, 1) => S::call(Whole::<V, P, 3, 1>(self)),
                (true, [3, 3], 2, 1) => S::call(Whole::<V, P, 3, 2>(self)),
                (true, [5, 5], 1, 1) => S::call(Whole::<V, P, 5, 1>(self)),
                (true, [5, 5], 2, 1) => S::call(Whole::<V, P, 5, 2>(self)),
                (true, ..) => S::call(Each::<V, false>(self)),
                (false, ..) => S::call(Each::<V, true>(self)),
            }
        }
    }

    /// # Safety
    /// As [`PanelRows::call`].
    #[inline(always)]
    unsafe fn filters<S: Integers, const V: usize>(&self) -> Filters<S, V> {
        let (q, panel) = (self.conv.q, self.panel);
        let [height, width] = q.conv.kernel;
        let lanes = panel.width;
        // SAFETY: the caller's. Vectors of a narrow panel reach no further beyond it than `Panels::reach` says.
        unsafe {
            let mut biases = [S::sums(panel.bytes.as_ptr(), lanes); V];
            let mut scales = [S::scales(panel.multipliers(), lanes); V];
            if V == 2 {
                biases[1] = S::sums(panel.bytes.as_ptr().add(4 * S::LANES), lanes);
                scales[1] = S::scales(panel.multipliers().add(4 * S::LANES), lanes);
            }
            let mut all = [const { MaybeUninit::uninit() }; MOST_GROUPS];
            let mut groups = all.iter_mut();
            for ky in (0..height).step_by(S::DEPTH) {
                for (kx, group) in groups.by_ref().take(width).enumerate() {
                    let at =
                        |i: usize| panel.weights().as_ptr().wrapping_add(((ky + i) * width + kx) * lanes);
                    let rows: [_; MOST_DEPTH] = core::array::from_fn(at);
                    group.write(S::weight_rows::<V>(&rows[..S::DEPTH.min(height - ky)], lanes));
                }
            }
            Filters { weights: all, biases, scales, ends: S::ends(q.requantise), lanes }
        }
    }

    /// The rows of the taps of row `y` of the output; those beyond the image are `beyond`.
    #[inline(always)]
    fn places(&self, y: usize, beyond: Place) -> [Place; MOST_ROWS] {
        let Depthwise { q, input, .. } = self.conv;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let mut places = [beyond; MOST_ROWS];
        for (ky, place) in places.iter_mut().enumerate().take(kernel[0]) {
            let iy = (y * stride[0] + ky * dilation[0]).wrapping_sub(pads[0]);
            if iy < input.shape.height {
                *place = (input.row(iy)[self.first..].as_ptr(), input.shape.channels);
            }
        }
        places
    }

    /// The output's pixels of row `y`, from the panel's first channel on.
    #[inline(always)]
    fn outputs(&self, y: usize) -> *mut u8 {
        let output = &self.conv.output;
        let start = output.start(y);
        let end = output.pixel(start, output.width());
        output.pointer(start, end - start).wrapping_add(self.first)
    }
}

/// Makes the rows pixel by pixel, `V` vectors of channels, which a `PART` does not fill.
struct Each<'b, 'a, const V: usize, const PART: bool>(PanelRows<'b, 'a>);

impl<const V: usize, const PART: bool> Work for Each<'_, '_, V, PART> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let rows = self.0;
        let zeros = [rows.conv.q.zero_point; PANEL];
        // SAFETY: this is within a job of this instruction set.
        unsafe {
            let filters = rows.filters::<S, V>();
            for y in rows.y.clone() {
                let places = rows.places(y, (zeros.as_ptr(), 0));
                edge::<S, V, PART>(&rows, &filters, &places, y, 0..rows.conv.output.width(), &zeros);
            }
        }
    }
}

/// Makes the rows of `V` vectors of channels, whose filters are `K` high and wide and whose stride is `STRIDE`, `P` pixels at
/// a time.
struct Whole<'b, 'a, const V: usize, const P: usize, const K: usize, const STRIDE: usize>(PanelRows<'b, 'a>);

impl<const V: usize, const P: usize, const K: usize, const STRIDE: usize> Work
    for Whole<'_, '_, V, P, K, STRIDE>
{
    #[inline(always)]
    fn run<S: Integers>(self) {
        let rows = self.0;
        let Depthwise { q, input, output, .. } = rows.conv;
        let zeros = [q.zero_point; PANEL];
        let (width, pad) = (output.width(), q.conv.pads[1]);
        // SAFETY: this is within a job of this instruction set.
        unsafe {
            let filters = rows.filters::<S, V>();
            for y in rows.y.clone() {
                let places = rows.places(y, (zeros.as_ptr(), 0));
                if width < P {
                    edge::<S, V, false>(&rows, &filters, &places, y, 0..width, &zeros);
                    continue;
                }
                let out = rows.outputs(y);
                for x in (0..width).step_by(P) {
                    // The last ones are made with some before them, once more.
                    let x = x.min(width - P);
                    let left = (x * STRIDE).wrapping_sub(pad);
                    let columns = (P - 1) * STRIDE + K;
                    let is_inside = left.checked_add(columns).is_some_and(|end| end <= input.shape.width);
                    let sums = if is_inside {
                        filters.sums::<P, K, STRIDE>(|ky, column| {
                            let (place, step) = places[ky];
                            place.wrapping_add((left + column) * step)
                        })
                    } else {
                        filters.sums::<P, K, STRIDE>(|ky, column| {
                            let ((place, step), x) = (places[ky], left.wrapping_add(column));
                            if x < input.shape.width { place.wrapping_add(x * step) } else { zeros.as_ptr() }
                        })
                    };
                    let first = out.wrapping_add(x * q.conv.filters);
                    requantise::<S, V, P>(&sums, &filters.scales, &filters.ends, filters.lanes, |m| {
                        first.wrapping_add(m * q.conv.filters)
                    });
                }
            }
        }
    }
}

/// The most columns of windows that [`Filters::sums`] takes.
const MOST_COLUMNS: usize = 17;

impl<S: Integers, const V: usize> Filters<S, V> {
    /// The sums of `P` pixels, whose windows' rows and columns are at these places.
    ///
    /// # Safety
    /// In [`Work::run`]; the columns are there.
    #[inline(always)]
    unsafe fn sums<const P: usize, const K: usize, const STRIDE: usize>(
        &self,
        place: impl Fn(usize, usize) -> *const u8,
    ) -> [[S::Sums; V]; P] {
        const { assert!((P - 1) * STRIDE + K <= MOST_COLUMNS) };
        let mut sums = [self.biases; P];
        for (group, weights) in self.weights[..K.div_ceil(S::DEPTH) * K].chunks_exact(K).enumerate() {
            let (first, count) = (group * S::DEPTH, S::DEPTH.min(K - group * S::DEPTH));
            // Column by column, each as code of its own, so that the sums stay in registers.
            macro_rules! columns {
                ($($column:literal)*) => {
                    $(if const { $column < (P - 1) * STRIDE + K } {
                        let rows = [0, 1, 2, 3].map(|i| place((first + i).min(K - 1), $column));
                        // SAFETY: the caller's.
                        unsafe {
                            let taps = S::rows::<V>(&rows[..count], self.lanes);
                            add_column::<S, V, P, K, STRIDE, $column>(&mut sums, &taps, weights);
                        }
                    })*
                };
            }
            columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
        }
        sums
    }
}

/// Adds what a column's taps add to the pixels in whose windows it lies.
///
/// # Safety
/// In [`Work::run`]; there are `K` weights.
#[inline(always)]
unsafe fn add_column<
    S: Integers,
    const V: usize,
    const P: usize,
    const K: usize,
    const STRIDE: usize,
    const COLUMN: usize,
>(
    sums: &mut [[S::Sums; V]; P],
    taps: &[S::Factors; V],
    weights: &[MaybeUninit<[S::Factors; V]>],
) {
    for (m, sums) in sums.iter_mut().enumerate() {
        let kx = COLUMN.wrapping_sub(m * STRIDE);
        if kx < K {
            // SAFETY: the caller's.
            unsafe {
                let weights = weights[kx].assume_init_ref();
                for v in 0..V {
                    sums[v] = S::add_products(sums[v], taps[v], weights[v]);
                }
            }
        }
    }
}

/// Makes pixels `x` of row `y` one by one, whatever of their windows lies within the image.
///
/// # Safety
/// In [`Work::run`]; the panel's channels number `V` vectors, or fewer if it is a `PART`.
#[inline(always)]
unsafe fn edge<S: Integers, const V: usize, const PART: bool>(
    rows: &PanelRows<'_, '_>,
    filters: &Filters<S, V>,
    places: &[Place; MOST_ROWS],
    y: usize,
    x: Range<usize>,
    zeros: &[u8; PANEL],
) {
    let Depthwise { q, input, .. } = rows.conv;
    let Conv { kernel, stride, dilation, pads, .. } = q.conv;
    let out = rows.outputs(y);
    for x in x {
        // SAFETY: the caller's. Elements within the image are there, and the output's are the caller's.
        unsafe {
            let mut sums = filters.biases;
            for (group, first) in (0..kernel[0]).step_by(S::DEPTH).enumerate() {
                for kx in 0..kernel[1] {
                    let ix = (x * stride[1] + kx * dilation[1]).wrapping_sub(pads[1]);
                    let is_inside = ix < input.shape.width;
                    let mut rooms = [[0; PANEL]; MOST_DEPTH];
                    let mut taps = [zeros.as_ptr(); MOST_DEPTH];
                    let count = S::DEPTH.min(kernel[0] - first);
                    for ((tap, room), &(place, step)) in
                        taps.iter_mut().zip(&mut rooms).zip(&places[first..]).take(count)
                    {
                        if is_inside {
                            *tap = place.wrapping_add(ix * step);
                        }
                        if PART {
                            room.as_mut_ptr().copy_from_nonoverlapping(*tap, filters.lanes);
                            *tap = room.as_ptr();
                        }
                    }
                    let taps = S::rows::<V>(&taps[..count], filters.lanes);
                    let weights = filters.weights[group * kernel[1] + kx].assume_init_ref();
                    for v in 0..V {
                        sums[v] = S::add_products(sums[v], taps[v], weights[v]);
                    }
                }
            }
            let to = out.wrapping_add(x * q.conv.filters);
            let mut room = [0; PANEL];
            let made = if PART { room.as_mut_ptr() } else { to };
            requantise::<S, V, 1>(&[sums], &filters.scales, &filters.ends, filters.lanes, |_| made);
            if PART {
                to.copy_from_nonoverlapping(room.as_ptr(), filters.lanes);
            }
        }
    }
}
