//! Depthwise convolution: each channel has a filter of its own, and channels lie side by side in vectors.
//!
//! Taps go in pairs, one above the other. Beyond the image a tap reads zero points, so all windows have the same sum of
//! weights, which times the zero point is taken from the bias once.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::super::arch::PANEL;
use super::super::conv::{Conv, inside};
use super::super::pixels::pixel;
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::conv::QConv;
use super::integers::{Integers, LANES, Work, requantise};
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
/// The most rows of a filter whose taps go in pairs.
const MOST_ROWS: usize = 8;
/// The most pairs of taps of a filter.
const MOST_PAIRS: usize = 32;
/// Pixels that are made at once, and the most columns of their windows.
const PIXELS: usize = 4;
const MOST_COLUMNS: usize = (PIXELS - 1) * 2 + 5;

impl Work for Depthwise<'_> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let Depthwise { q, ref y, ref tiles, input, packed, .. } = self;
        let Conv { kernel, stride, dilation, .. } = q.conv;
        if kernel[0] > MOST_ROWS || kernel[0].div_ceil(2) * kernel[1] > MOST_PAIRS {
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
                    // Filters and strides of the usual sizes have code of their own.
                    match (panel.width, kernel, stride[1], dilation[1]) {
                        (PANEL, [3, 3], 1, 1) => S::call(Whole::<2, 3, 1>(rows)),
                        (PANEL, [3, 3], 2, 1) => S::call(Whole::<2, 3, 2>(rows)),
                        (PANEL, [5, 5], 1, 1) => S::call(Whole::<2, 5, 1>(rows)),
                        (PANEL, [5, 5], 2, 1) => S::call(Whole::<2, 5, 2>(rows)),
                        (LANES, [3, 3], 1, 1) => S::call(Whole::<1, 3, 1>(rows)),
                        (LANES, [3, 3], 2, 1) => S::call(Whole::<1, 3, 2>(rows)),
                        (LANES, [5, 5], 1, 1) => S::call(Whole::<1, 5, 1>(rows)),
                        (LANES, [5, 5], 2, 1) => S::call(Whole::<1, 5, 2>(rows)),
                        (PANEL, ..) => S::call(Each::<2, false>(rows)),
                        (LANES, ..) => S::call(Each::<1, false>(rows)),
                        (..LANES, ..) => S::call(Each::<1, true>(rows)),
                        _ => S::call(Each::<2, true>(rows)),
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
        for y in y {
            let rows = inside(y * stride[0], pads[0], kernel[0], dilation[0], shape.height);
            for tile in tiles.clone() {
                let first = tile * PANEL;
                let panel = Panel::of(&panels, packed, first);
                for x in 0..output.width() {
                    let columns = inside(x * stride[1], pads[1], kernel[1], dilation[1], shape.width);
                    let mut sums: [i32; PANEL] =
                        core::array::from_fn(|lane| if lane < panel.width { panel.bias(lane) } else { 0 });
                    for ky in rows.clone() {
                        let row = input.row(y * stride[0] + ky * dilation[0] - pads[0]);
                        for kx in columns.clone() {
                            let pixel = pixel(row, shape, x * stride[1] + kx * dilation[1] - pads[1]);
                            let weights = &panel.weights()[(ky * kernel[1] + kx) * panel.width..];
                            let elements = &pixel[first..][..panel.width];
                            for ((sum, &x), &weight) in sums.iter_mut().zip(elements).zip(weights) {
                                let x = i32::from(x) - i32::from(q.zero_point);
                                *sum = sum.wrapping_add(x * i32::from(weight.cast_signed()));
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

/// The weights of a panel in pairs, each of a tap and the one below it, and its biases less what the zero points add.
struct Filters<S: Integers, const V: usize> {
    weights: [MaybeUninit<[S::Pairs; V]>; MOST_PAIRS],
    biases: [S::Sums; V],
    scales: [S::Scales; V],
    ends: S::Ends,
}

/// Where the row of a tap lies, from the panel's first channel on, and how far from there the next pixel is.
type Place = (*const u8, usize);

impl PanelRows<'_, '_> {
    /// # Safety
    /// In [`Work::run`]; the panel's channels number at most `V` vectors.
    #[inline(always)]
    unsafe fn filters<S: Integers, const V: usize>(&self) -> Filters<S, V> {
        let (q, panel) = (self.conv.q, self.panel);
        let [height, width] = q.conv.kernel;
        let zeros = [-i16::from(q.zero_point); 2];
        // SAFETY: the caller's. Vectors of a narrow panel reach no further beyond it than `Panels::reach` says.
        unsafe {
            let mut biases = [S::sums(panel.bytes.as_ptr()); V];
            let mut scales = [S::scales(panel.multipliers()); V];
            if V == 2 {
                biases[1] = S::sums(panel.bytes.as_ptr().add(4 * LANES));
                scales[1] = S::scales(panel.multipliers().add(4 * LANES));
            }
            let zeros = S::pair(zeros.as_ptr());
            let mut all = [const { MaybeUninit::uninit() }; MOST_PAIRS];
            let none = [0; PANEL];
            let at = |tap: usize| panel.weights().as_ptr().wrapping_add(tap * panel.width);
            let mut pairs = all.iter_mut();
            for ky in (0..height).step_by(2) {
                for (kx, pair) in pairs.by_ref().take(width).enumerate() {
                    let upper = at(ky * width + kx);
                    let lower = if ky + 1 < height { at((ky + 1) * width + kx) } else { none.as_ptr() };
                    let weights = S::weight_pairs::<V>(upper, lower);
                    for v in 0..V {
                        biases[v] = S::add_products(biases[v], weights[v], zeros);
                    }
                    pair.write(weights);
                }
            }
            Filters { weights: all, biases, scales, ends: S::ends(q.requantise) }
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

/// Makes the rows of `V` whole vectors of channels, whose filters are `K` high and wide and whose stride is `STRIDE`, some
/// pixels at a time.
struct Whole<'b, 'a, const V: usize, const K: usize, const STRIDE: usize>(PanelRows<'b, 'a>);

impl<const V: usize, const K: usize, const STRIDE: usize> Work for Whole<'_, '_, V, K, STRIDE> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let rows = self.0;
        let Depthwise { q, input, output, .. } = rows.conv;
        let zeros = [q.zero_point; PANEL];
        let (width, pad) = (output.width(), q.conv.pads[1]);
        // SAFETY: this is within a job of this instruction set.
        unsafe {
            let filters = rows.filters::<S, V>();
            let mut copies = [const { MaybeUninit::<[[u8; PANEL]; MOST_COLUMNS]>::uninit() }; MOST_ROWS];
            for y in rows.y.clone() {
                let places = rows.places(y, (zeros.as_ptr(), 0));
                if width < PIXELS {
                    edge::<S, V, false>(&rows, &filters, &places, y, 0..width, &zeros);
                    continue;
                }
                let out = rows.outputs(y);
                for x in (0..width).step_by(PIXELS) {
                    // The last ones are made with some before them, once more.
                    let x = x.min(width - PIXELS);
                    let left = (x * STRIDE).wrapping_sub(pad);
                    let columns = (PIXELS - 1) * STRIDE + K;
                    let mut places: [Place; K] = core::array::from_fn(|ky| places[ky]);
                    if left.checked_add(columns).is_some_and(|end| end <= input.shape.width) {
                        for (place, step) in &mut places {
                            *place = place.wrapping_add(left * *step);
                        }
                    } else {
                        // Copies of what lies within the image.
                        for (copies, (place, step)) in copies.iter_mut().zip(&mut places) {
                            let copies = copies.as_mut_ptr().cast::<u8>();
                            for column in 0..columns {
                                let x = left.wrapping_add(column);
                                let is_inside = x < input.shape.width;
                                let from =
                                    if is_inside { place.wrapping_add(x * *step) } else { zeros.as_ptr() };
                                copies.add(column * PANEL).copy_from_nonoverlapping(from, V * LANES);
                            }
                            (*place, *step) = (copies, PANEL);
                        }
                    }
                    let sums = filters.sums::<K, STRIDE>(&places);
                    for (m, sums) in sums.iter().enumerate() {
                        let to = out.wrapping_add((x + m) * q.conv.filters);
                        requantise::<S, V>(sums, &filters.scales, &filters.ends, to);
                    }
                }
            }
        }
    }
}

impl<S: Integers, const V: usize> Filters<S, V> {
    /// The sums of some pixels, whose columns are at these places, row by row.
    ///
    /// # Safety
    /// In [`Work::run`]; the columns are there.
    #[inline(always)]
    unsafe fn sums<const K: usize, const STRIDE: usize>(
        &self,
        places: &[Place; K],
    ) -> [[S::Sums; V]; PIXELS] {
        let mut sums = [self.biases; PIXELS];
        // SAFETY: the caller's.
        unsafe {
            for pair in 0..K / 2 {
                let [(mut upper, upper_step), (mut lower, lower_step)] =
                    [places[2 * pair], places[2 * pair + 1]];
                let weights = &self.weights[pair * K..][..K];
                for column in 0..(PIXELS - 1) * STRIDE + K {
                    let pairs = S::pairs::<V>(S::bytes::<V>(upper), S::bytes::<V>(lower));
                    add_column::<S, V, K, STRIDE>(&mut sums, column, &pairs, weights);
                    (upper, lower) = (upper.wrapping_add(upper_step), lower.wrapping_add(lower_step));
                }
            }
            if K % 2 == 1 {
                let (mut place, step) = places[K - 1];
                let weights = &self.weights[K / 2 * K..][..K];
                for column in 0..(PIXELS - 1) * STRIDE + K {
                    let singles = S::singles::<V>(S::bytes::<V>(place));
                    add_column::<S, V, K, STRIDE>(&mut sums, column, &singles, weights);
                    place = place.wrapping_add(step);
                }
            }
        }
        sums
    }
}

/// Adds what a column's pairs add to the pixels in whose windows it lies.
///
/// # Safety
/// In [`Work::run`]; there are `K` weights.
#[inline(always)]
unsafe fn add_column<S: Integers, const V: usize, const K: usize, const STRIDE: usize>(
    sums: &mut [[S::Sums; V]; PIXELS],
    column: usize,
    pairs: &[S::Pairs; V],
    weights: &[MaybeUninit<[S::Pairs; V]>],
) {
    for (m, sums) in sums.iter_mut().enumerate() {
        let kx = column.wrapping_sub(m * STRIDE);
        if kx < K {
            // SAFETY: the caller's.
            unsafe {
                let weights = weights[kx].assume_init_ref();
                for v in 0..V {
                    sums[v] = S::add_products(sums[v], pairs[v], weights[v]);
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
    let (count, out) = (rows.panel.width, rows.outputs(y));
    for x in x {
        // SAFETY: the caller's. Elements within the image are there, and the output's are the caller's.
        unsafe {
            let mut sums = filters.biases;
            for (pair, upper) in (0..kernel[0]).step_by(2).enumerate() {
                for kx in 0..kernel[1] {
                    let ix = (x * stride[1] + kx * dilation[1]).wrapping_sub(pads[1]);
                    let is_inside = ix < input.shape.width;
                    let [a, b] = [upper, upper + 1].map(|ky| {
                        let (place, step) = places[ky];
                        if is_inside { place.wrapping_add(ix * step) } else { zeros.as_ptr() }
                    });
                    let (mut room_a, mut room_b) = ([0; PANEL], [0; PANEL]);
                    let [a, b] = match PART && is_inside {
                        true => {
                            room_a.as_mut_ptr().copy_from_nonoverlapping(a, count);
                            room_b.as_mut_ptr().copy_from_nonoverlapping(b, count);
                            [room_a.as_ptr(), room_b.as_ptr()]
                        }
                        false => [a, b],
                    };
                    let pairs = S::pairs::<V>(S::bytes::<V>(a), S::bytes::<V>(b));
                    let weights = filters.weights[pair * kernel[1] + kx].assume_init_ref();
                    for v in 0..V {
                        sums[v] = S::add_products(sums[v], pairs[v], weights[v]);
                    }
                }
            }
            let to = out.wrapping_add(x * q.conv.filters);
            let mut room = [0; PANEL];
            let made = if PART { room.as_mut_ptr() } else { to };
            requantise::<S, V>(&sums, &filters.scales, &filters.ends, made);
            if PART {
                to.copy_from_nonoverlapping(room.as_ptr(), count);
            }
        }
    }
}
