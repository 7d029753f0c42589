//! Depthwise convolution: each channel has a filter of its own, and channels lie side by side in vectors.
//!
//! Two or four taps, one above the other, go together. A vector of them is made once, and serves all pixels whose
//! windows contain it. Beyond the image, a tap reads zero points. So all windows have the same sum of weights, and the
//! biases already account for its product with the zero point.

use core::mem::MaybeUninit;
use core::ops::Range;

use super::super::super::arch::PANEL;
use super::super::super::conv::Conv;
use super::super::super::features;
use super::super::super::pixels::pixel;
use super::super::super::rows::Rows;
use super::super::super::shared::SharedRows;
use super::super::integers::{Integers, MAX_DEPTH, NUMBER, Work};
use super::super::panels::Panel;
use super::parameters::QConv;

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Depthwise<'a> {
    pub q: &'a QConv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a, u8>,
    pub packed: &'a [u8],
    pub output: SharedRows<'a, u8>,
}

/// Bytes of the image that should stay in a cache while the kernel goes over all panels.
const CACHE_BYTES: usize = 32 * 1024;
/// The most rows of a filter whose taps go together.
const MAX_ROWS: usize = 8;
/// The most panels whose channels go together, and how many channels these have.
const MAX_PANELS: usize = 4;
const MAX_CHANNELS: usize = MAX_PANELS * PANEL;
/// The most groups of taps of a filter that go together.
const MAX_GROUPS: usize = 32;

impl Work for Depthwise<'_> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let Depthwise { q, ref y, ref tiles, input, .. } = self;
        let Conv { kernel, stride, .. } = q.conv;
        let is_large = kernel[0] > MAX_ROWS || kernel[0].div_ceil(S::DEPTH) * kernel[1] > MAX_GROUPS;
        if features::TAP_BY_TAP && (q.has_offset || is_large) {
            return self.tap_by_tap();
        }
        assert!(!q.has_offset && !is_large, "a depthwise convolution of another kind");
        let together = (CACHE_BYTES / (stride[0] * input.shape.row_stride()).max(1)).max(1);
        for start in y.clone().step_by(together) {
            let y = start..y.end.min(start + together);
            for tile in tiles.clone().step_by(S::PANELS_PER_STEP) {
                let first = tile * PANEL;
                let end = (tiles.end.min(tile + S::PANELS_PER_STEP) * PANEL).min(q.conv.filters);
                let rows = ChannelRows { conv: &self, y: y.clone(), first, lanes: end - first };
                // SAFETY: this is in `Work::run`. `V` vectors hold the channels: of at most four panels, of one panel
                // if they are more than a vector, or of one vector.
                unsafe {
                    if const { S::PANELS_PER_STEP == MAX_PANELS } {
                        rows.call::<S, 4>();
                    } else if const { S::LANES < PANEL } && rows.lanes > S::LANES {
                        rows.call::<S, 2>();
                    } else {
                        rows.call::<S, 1>();
                    }
                }
            }
        }
    }
}

impl Depthwise<'_> {
    /// Makes everything one product at a time, for the largest filters, and for weights with an offset.
    #[inline(always)]
    fn tap_by_tap(self) {
        let Depthwise { q, y, tiles, input, packed, output } = self;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let (shape, panels) = (&input.shape, q.panels());
        let (zeros, offset) = ([q.zero_point; PANEL], q.offset(packed));
        for y in y {
            for tile in tiles.clone() {
                let first = tile * PANEL;
                let panel = Panel::new(&panels, packed, first);
                for x in 0..output.width() {
                    let mut sums = panel.biases();
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
                                let weight = i32::from(weight.cast_signed()) + offset;
                                *sum = sum.wrapping_add(i32::from(x) * weight);
                            }
                        }
                    }
                    let start = output.pixel(output.start(y), x) + first;
                    // SAFETY: these are channels of `tiles` in rows `y`, which no one else uses: `# Safety` of `make`,
                    // which alone makes a `Depthwise`.
                    let made = unsafe { output.elements(start, panel.width) };
                    for (lane, (byte, sum)) in made.iter_mut().zip(sums).enumerate() {
                        *byte = q.requantize.apply(sum, panel.multiplier(lane));
                    }
                }
            }
        }
    }
}

/// Rows of the output by `lanes` channels of neighbouring panels, from `first` on.
struct ChannelRows<'b, 'a> {
    conv: &'b Depthwise<'a>,
    y: Range<usize>,
    first: usize,
    lanes: usize,
}

/// The weights of some channels, in groups of taps one above the other, and the constants that turn sums into elements.
struct Filters<'w, S: Integers, const V: usize> {
    weights: &'w GroupWeights<S, V>,
    biases: [S::Sums; V],
    scales: [S::Scales; V],
    clamp: S::Clamp,
    /// Channels.
    lanes: usize,
}

/// Room for the weights of each group of taps. They are too many to be moved.
type GroupWeights<S, const V: usize> = [MaybeUninit<[<S as Integers>::Factors; V]>; MAX_GROUPS];

/// Where the row of a tap lies, from the first channel on, and how far from there the next pixel is.
type Place = (*const u8, usize);

impl ChannelRows<'_, '_> {
    /// Makes them with `V` vectors of channels.
    ///
    /// # Safety
    /// In [`Work::run`]. `V` vectors hold the channels, and no one else reads or writes their elements of the output
    /// rows.
    #[inline(always)]
    unsafe fn call<S: Integers, const V: usize>(self) {
        let Conv { kernel, stride, dilation, .. } = self.conv.q.conv;
        let is_whole = S::HAS_PARTS || self.lanes == V * S::LANES;
        let slides = is_whole && S::SLIDES;
        // SAFETY: this is in `Work::run`, and `V` vectors hold the channels: `# Safety` of this function. Only
        // `DepthwiseWork` with a part takes channels that do not fill them, if the set has no parts.
        unsafe {
            match (slides, kernel, stride[1], dilation[1]) {
                (true, [3, 3], 1, 1) => S::call(Whole::<V, 3, 1, 3>(self)),
                (true, [3, 3], 2, 1) => S::call(Whole::<V, 3, 2, 2>(self)),
                (true, [5, 5], 1, 1) => S::call(Whole::<V, 5, 1, 5>(self)),
                (true, [5, 5], 2, 1) => S::call(Whole::<V, 5, 2, 3>(self)),
                _ if is_whole => S::call(DepthwiseWork::<V, false>(self)),
                _ => S::call(DepthwiseWork::<V, true>(self)),
            }
        }
    }

    /// # Safety
    /// As [`ChannelRows::call`].
    #[inline(always)]
    unsafe fn filters<'w, S: Integers, const V: usize>(
        &self,
        room: &'w mut GroupWeights<S, V>,
    ) -> Filters<'w, S, V> {
        let Depthwise { q, packed, .. } = *self.conv;
        let [height, width] = q.conv.kernel;
        let panels = q.panels();
        // A panel beyond the last channel has none, so nothing is read where it would be.
        let lanes = |panel: usize| self.lanes.saturating_sub(panel * PANEL).min(PANEL);
        let numbers = |panel: usize| {
            packed.as_ptr().wrapping_add((self.first + panel * PANEL) * panels.channel_bytes())
        };
        // SAFETY: this is in `Work::run`, and `V` vectors hold the channels: `# Safety` of this function. `make` has
        // asserted that all panels are there, and vectors of a narrow one reach no further beyond it than
        // `Panels::reach` says.
        unsafe {
            let mut biases = S::channels(|panel| (numbers(panel), lanes(panel)));
            let scales =
                S::channel_scales(|panel| (numbers(panel).wrapping_add(NUMBER * lanes(panel)), lanes(panel)));
            let mut groups = room.iter_mut();
            for ky in (0..height).step_by(S::DEPTH) {
                for (kx, group) in groups.by_ref().take(width).enumerate() {
                    let at = |i: usize, panel: usize| {
                        let tap = (ky + i) * width + kx;
                        (numbers(panel).wrapping_add((2 * NUMBER + tap) * lanes(panel)), lanes(panel))
                    };
                    let weights = S::weight_rows::<V>(S::DEPTH.min(height - ky), at);
                    for (sums, weights) in biases.iter_mut().zip(weights) {
                        *sums = S::add_middle(*sums, weights);
                    }
                    group.write(weights);
                }
            }
            Filters { weights: room, biases, scales, clamp: S::clamp(q.requantize), lanes: self.lanes }
        }
    }

    /// The rows of the taps of row `y` of the output; those beyond the image are `beyond`.
    #[inline(always)]
    fn places(&self, y: usize, beyond: Place) -> [Place; MAX_ROWS] {
        let Depthwise { q, input, .. } = self.conv;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let mut places = [beyond; MAX_ROWS];
        for (ky, place) in places.iter_mut().enumerate().take(kernel[0]) {
            let iy = (y * stride[0] + ky * dilation[0]).wrapping_sub(pads[0]);
            if iy < input.shape.height {
                *place = (input.row(iy)[self.first..].as_ptr(), input.shape.channels);
            }
        }
        places
    }

    /// The output's pixels of row `y`, from the first channel on.
    #[inline(always)]
    fn outputs(&self, y: usize) -> *mut u8 {
        let output = &self.conv.output;
        // In a slice of the channels, the last pixel has only the channels of the slice.
        let reach = output.width().saturating_sub(1) * output.pixel_stride() + self.lanes;
        output.pointer(output.start(y) + self.first, reach)
    }
}

/// Makes the rows pixel by pixel, `V` vectors of channels, which a `PART` does not fill.
struct DepthwiseWork<'b, 'a, const V: usize, const PART: bool>(ChannelRows<'b, 'a>);

impl<const V: usize, const PART: bool> Work for DepthwiseWork<'_, '_, V, PART> {
    #[inline(always)]
    fn run<S: Integers>(self) {
        let rows = self.0;
        let zeros = [rows.conv.q.zero_point; MAX_CHANNELS];
        // SAFETY: this is in `Work::run`. `ChannelRows::call` makes this, whose `# Safety` is that of `filters` and,
        // with the rows that `places` finds, of `pixels`.
        unsafe {
            let mut room = [const { MaybeUninit::uninit() }; MAX_GROUPS];
            let filters = rows.filters::<S, V>(&mut room);
            for y in rows.y.clone() {
                let places = rows.places(y, (zeros.as_ptr(), 0));
                pixels::<S, V, PART>(&rows, &filters, &places, y, &zeros);
            }
        }
    }
}

/// Makes the rows of `V` vectors of channels, for filters that are `K` high and wide, with stride `STRIDE`. It goes
/// column after column of the image. Each column is added to the sums of the `LIVE` neighbouring pixels whose windows
/// contain it.
struct Whole<'b, 'a, const V: usize, const K: usize, const STRIDE: usize, const LIVE: usize>(
    ChannelRows<'b, 'a>,
);

impl<const V: usize, const K: usize, const STRIDE: usize, const LIVE: usize> Work
    for Whole<'_, '_, V, K, STRIDE, LIVE>
{
    #[inline(always)]
    fn run<S: Integers>(self) {
        const { assert!(LIVE == K.div_ceil(STRIDE)) };
        let rows = self.0;
        let Depthwise { q, input, output, .. } = rows.conv;
        let zeros = [q.zero_point; MAX_CHANNELS];
        let (columns, pad) = (input.shape.width, q.conv.pads[1]);
        // SAFETY: this is in `Work::run`. `ChannelRows::call` makes this for channels that fill `V` vectors, or if the
        // set has parts. Rows are by `places`, columns beyond the image are `zeros`, and the output's pixels are by
        // `outputs`.
        unsafe {
            let mut room = [const { MaybeUninit::uninit() }; MAX_GROUPS];
            let filters = rows.filters::<S, V>(&mut room);
            for y in rows.y.clone() {
                let places = rows.places(y, (zeros.as_ptr(), 0));
                let mut out = rows.outputs(y);
                let mut sums = [filters.biases; LIVE];
                let place = |ky: usize, column: usize| {
                    let (place, step) = places[ky];
                    if column < columns { place.wrapping_add(column * step) } else { zeros.as_ptr() }
                };
                // The first windows share these columns. After them, each pixel has only `STRIDE` columns that are new.
                for column in 0..K - STRIDE {
                    let at = column.wrapping_sub(pad);
                    filters.add::<K, STRIDE, LIVE>(&mut sums, column, |ky| place(ky, at));
                }
                for x in 0..output.width() {
                    for column in K - STRIDE..K {
                        let at = (x * STRIDE + column).wrapping_sub(pad);
                        filters.add::<K, STRIDE, LIVE>(&mut sums, column, |ky| place(ky, at));
                    }
                    S::requantize_channels(sums[0], &filters.scales, &filters.clamp, out, filters.lanes);
                    // The window of the next pixel is the first now, and a new one begins a stride after the last.
                    for m in 1..LIVE {
                        sums[m - 1] = sums[m];
                    }
                    sums[LIVE - 1] = filters.biases;
                    out = out.wrapping_add(output.pixel_stride());
                }
            }
        }
    }
}

impl<S: Integers, const V: usize> Filters<'_, S, V> {
    /// Adds the taps of a column, counted from the first pixel's window, to the pixels in whose windows it lies.
    ///
    /// # Safety
    /// In [`Work::run`]. At each place there are bytes of `V` vectors, or, if the set has parts, of the channels.
    #[inline(always)]
    unsafe fn add<const K: usize, const STRIDE: usize, const LIVE: usize>(
        &self,
        sums: &mut [[S::Sums; V]; LIVE],
        column: usize,
        place: impl Fn(usize) -> *const u8,
    ) {
        for group in 0..K.div_ceil(S::DEPTH) {
            let first = group * S::DEPTH;
            let rows = [0, 1, 2, 3].map(|i| place((first + i).min(K - 1)));
            // SAFETY: this is in `Work::run`, and each place is good for what `rows` reads: `# Safety` of this
            // function. `filters` has written the weights of all taps, of which this is one.
            unsafe {
                let taps = S::rows::<V>(&rows[..S::DEPTH.min(K - first)], self.lanes);
                for (m, sums) in sums.iter_mut().enumerate() {
                    let kx = column.wrapping_sub(m * STRIDE);
                    if kx < K {
                        let weights = self.weights[group * K + kx].assume_init_ref();
                        for v in 0..V {
                            sums[v] = S::add_products(sums[v], taps[v], weights[v]);
                        }
                    }
                }
            }
        }
    }
}

/// Makes the pixels of row `y` one by one.
///
/// # Safety
/// In [`Work::run`]. The channels fill `V` vectors, or are fewer if they are a `PART` or the set has parts. `places`
/// are the rows of the taps of row `y`, and no one else reads or writes its elements of the output.
#[inline(always)]
unsafe fn pixels<S: Integers, const V: usize, const PART: bool>(
    rows: &ChannelRows<'_, '_>,
    filters: &Filters<'_, S, V>,
    places: &[Place; MAX_ROWS],
    y: usize,
    zeros: &[u8; MAX_CHANNELS],
) {
    let Depthwise { q, input, output, .. } = rows.conv;
    let Conv { kernel, stride, dilation, pads, .. } = q.conv;
    let out = rows.outputs(y);
    let mut columns = [[zeros.as_ptr(); MAX_DEPTH]; MAX_GROUPS];
    // Windows that begin at these columns of the image lie within it. The taps of the next one are a stride further.
    let inside = input.shape.width.saturating_sub((kernel[1] - 1) * dilation[1]);
    let mut was_inside = false;
    for x in 0..output.width() {
        // SAFETY: this is in `Work::run`, taps within the columns are within their rows, and no one else uses the
        // output's elements: `# Safety` of this function. A `PART` goes by way of rooms, which hold whole vectors.
        unsafe {
            let mut sums = filters.biases;
            let left = (x * stride[1]).wrapping_sub(pads[1]);
            let is_inside = left < inside;
            for (group, first) in (0..kernel[0]).step_by(S::DEPTH).enumerate() {
                // Those after the last are beyond the image.
                let rows = &places[first..][..S::DEPTH];
                let columns = &mut columns[group * kernel[1]..][..kernel[1]];
                if is_inside && was_inside {
                    for taps in columns {
                        for (tap, &(_, step)) in taps.iter_mut().zip(rows) {
                            *tap = tap.wrapping_add(stride[1] * step);
                        }
                    }
                    continue;
                }
                let mut ix = left;
                for taps in columns {
                    let is_inside = ix < input.shape.width;
                    for (tap, &(place, step)) in taps.iter_mut().zip(rows) {
                        *tap = if is_inside { place.wrapping_add(ix * step) } else { zeros.as_ptr() };
                    }
                    ix = ix.wrapping_add(dilation[1]);
                }
            }
            was_inside = is_inside;
            let all = kernel[0].div_ceil(S::DEPTH) * kernel[1];
            let weights = &filters.weights[..all];
            if PART {
                for (i, (taps, weights)) in columns.iter().zip(weights).enumerate() {
                    let mut rooms = [[0; MAX_CHANNELS]; MAX_DEPTH];
                    let rows = S::DEPTH.min(kernel[0] - i / kernel[1] * S::DEPTH);
                    for (room, tap) in rooms.iter_mut().zip(taps).take(rows) {
                        room.as_mut_ptr().copy_from_nonoverlapping(*tap, filters.lanes);
                    }
                    let rooms = [rooms.each_ref().map(|room| room.as_ptr())];
                    let weights = core::slice::from_ref(weights);
                    S::add_columns(&mut sums, &rooms, [rows, 1], weights, filters.lanes);
                }
            } else {
                S::add_columns(&mut sums, &columns[..all], kernel, weights, filters.lanes);
            }
            let to = out.wrapping_add(x * output.pixel_stride());
            let mut room = [0; MAX_CHANNELS];
            let made = if PART { room.as_mut_ptr() } else { to };
            S::requantize_channels(sums, &filters.scales, &filters.clamp, made, filters.lanes);
            if PART {
                to.copy_from_nonoverlapping(room.as_ptr(), filters.lanes);
            }
        }
    }
}
