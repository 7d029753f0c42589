//! Sums of products whose pixels lie anywhere: a table says where the pixels of a tile are read, tap by tap, and
//! where they are written (Dukhan, "The Indirect Convolution Algorithm", 2019; here the table is of one tile, and
//! made anew for each).
//!
//! So a convolution needs no workspace, and every layer that is a sum of products shares one micro-kernel (`tile`).
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::mem::MaybeUninit;
use core::ops::Range;

use super::activation::Activation;
use super::arch::{Job, PANEL, SMALL_STACK, Simd};
use super::element::Element;
use super::panel::Panels;
use super::shared::SharedRows;
pub(crate) use super::tile::MAX_PIXELS;
use super::tile::{
    Accumulators, Ahead, Ending, Epilogue, MAX_CHANNELS, Tile, TileWork, accumulate, begin, call, finish,
    finish_whole, full_vectors, keep, kept, most_panels, panel_vectors,
};
use super::weight::{Lanes, Weight};

/// Spans that a table holds. Sums of more wait for the next table.
const SPANS: usize = if SMALL_STACK { 16 } else { 64 };

/// The elements that are read in place of pixels beyond the input.
static ZEROS: [f32; PADDED_SPAN] = [0.0; PADDED_SPAN];

/// Longest span where some pixels may lie beyond the input.
pub(crate) const PADDED_SPAN: usize = if SMALL_STACK { 128 } else { 512 };

/// `len` of the elements that are read in place of pixels beyond the input.
#[inline(always)]
pub(crate) fn zeros(steps: usize) -> *const f32 {
    ZEROS[..steps].as_ptr()
}

/// Bytes of weights that should stay in a cache while the kernel goes over all pixels.
const CACHE_BYTES: usize = 256 * 1024;

/// Where the pixels of a tile are read and written.
pub(crate) struct Table<'a, E = f32> {
    /// Input elements of each span and pixel, as floats.
    pixels: [[*const f32; MAX_PIXELS]; SPANS],
    /// First step and number of steps of each span.
    spans: [(usize, usize); SPANS],
    len: usize,
    /// Element of the output at which each pixel begins.
    outputs: [usize; MAX_PIXELS],
    /// Elements that are added to the sums of each pixel, for all output channels.
    residuals: [*const E; MAX_PIXELS],
    /// Whether there are any.
    has_residuals: bool,
    /// How many pixels there are.
    count: usize,
    /// The weights that are prefetched into a cache while the sums are made.
    pub ahead: Ahead,
    input: core::marker::PhantomData<&'a [E]>,
}

impl<'a, E: Element> Table<'a, E> {
    pub fn new() -> Self {
        Table {
            pixels: [[ZEROS.as_ptr(); MAX_PIXELS]; SPANS],
            spans: [(0, 0); SPANS],
            len: 0,
            outputs: [0; MAX_PIXELS],
            residuals: [core::ptr::null(); MAX_PIXELS],
            has_residuals: false,
            count: 0,
            ahead: Ahead { tile: usize::MAX, distance: 0 },
            input: core::marker::PhantomData,
        }
    }

    /// Begins a tile that has no pixels yet.
    #[inline(always)]
    pub fn start(&mut self) {
        self.count = 0;
        self.has_residuals = false;
    }

    /// Adds pixels that lie `stride` elements from each other, the first at this element of the output.
    #[inline(always)]
    pub fn add_pixels(&mut self, count: usize, first: usize, stride: usize) {
        for (i, start) in self.outputs[self.count..][..count].iter_mut().enumerate() {
            *start = first + i * stride;
        }
        self.count += count;
    }

    /// Elements that are added to the sums of these pixels before the activation, one for each output channel. The
    /// pixels lie `stride` elements from each other.
    ///
    /// # Panics
    /// If a pixel has fewer elements than `channels`.
    #[inline(always)]
    pub fn add_residuals(&mut self, pixels: Range<usize>, elements: &'a [E], stride: usize, channels: usize) {
        self.has_residuals = true;
        assert!(channels + (pixels.len() - 1) * stride <= elements.len(), "elements of a residual");
        for (i, place) in self.residuals[pixels].iter_mut().enumerate() {
            *place = elements.as_ptr().wrapping_add(i * stride);
        }
    }

    /// Takes up the spans from `from` on, in the order in which they are loaded, until there is no more room. Returns
    /// the first that is left.
    ///
    /// # Safety
    /// In [`super::arch::Job::run`].
    ///
    /// # Panics
    /// If a span has fewer elements than steps.
    #[inline(always)]
    unsafe fn fill<S: Simd, L: Load<E>>(
        &mut self,
        from: usize,
        group: usize,
        spans: &impl Spans<'a, E>,
        load: &mut L,
    ) -> usize {
        let (mut to, mut room) = (from, L::ROOM);
        self.len = 0;
        load.start(group);
        while to < spans.len() && self.len < SPANS {
            let (step, steps) = spans.steps(to);
            if L::room(steps) > room {
                break;
            }
            room -= L::room(steps);
            self.spans[self.len] = (step, steps);
            let places = &mut self.pixels[self.len][..self.count];
            // SAFETY: this is in `Job::run`: `# Safety` of this function.
            unsafe { load.load::<S>(step, steps, spans, to, places) }
            self.len += 1;
            to += 1;
        }
        to
    }
}

/// Where the pixels of a tile are read.
pub(crate) trait Spans<'a, E: 'a> {
    /// How many spans there are.
    fn len(&self) -> usize;

    /// First step and number of steps of a span. No more than [`PADDED_SPAN`] if a pixel may lie beyond the input.
    fn steps(&self, span: usize) -> (usize, usize);

    /// The elements of each pixel for these steps; `None` if it lies beyond the input.
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [E]>;

    /// Writes the address of each pixel's elements for these steps; the address of zeros if it lies beyond the input.
    ///
    /// # Panics
    /// If there are fewer elements than steps.
    #[inline(always)]
    fn places(&self, span: usize, steps: usize, places: &mut [*const E]) {
        let mut pixel = self.pixels(span);
        for (i, place) in places.iter_mut().enumerate() {
            *place = match pixel(i) {
                Some(elements) => elements[..steps].as_ptr(),
                None => zeros(steps).cast(),
            };
        }
    }
}

/// How the micro-kernel gets the elements of a pixel as floats.
pub(crate) trait Load<E> {
    /// Room of a table.
    const ROOM: usize;

    /// Room that `steps` steps take.
    fn room(steps: usize) -> usize;

    /// Begins a table for a group. The elements loaded for the last table are no longer needed.
    fn start(&mut self, group: usize);

    /// Says for each pixel where the `steps` elements of a span are that it is multiplied from `step` on, until the next
    /// table begins.
    ///
    /// # Safety
    /// In [`super::arch::Job::run`].
    ///
    /// # Panics
    /// If there are fewer elements than steps.
    unsafe fn load<'a, S: Simd>(
        &mut self,
        step: usize,
        steps: usize,
        spans: &impl Spans<'a, E>,
        span: usize,
        places: &mut [*const f32],
    ) where
        E: 'a;
}

/// Elements are read where they lie.
pub(crate) struct InPlace;

impl Load<f32> for InPlace {
    const ROOM: usize = 0;

    #[inline(always)]
    fn room(_steps: usize) -> usize {
        0
    }

    #[inline(always)]
    fn start(&mut self, _group: usize) {}

    #[inline(always)]
    unsafe fn load<'a, S: Simd>(
        &mut self,
        _step: usize,
        steps: usize,
        spans: &impl Spans<'a, f32>,
        span: usize,
        places: &mut [*const f32],
    ) {
        spans.places(span, steps, places);
    }
}

/// Sums of products with packed weights.
pub(crate) struct Sums<'a, E = f32, W = E> {
    pub panels: Panels,
    pub weights: &'a [W],
    pub activation: Activation,
    pub output: SharedRows<'a, E>,
}

impl<E: Element, W: Weight> Sums<'_, E, W> {
    /// Divides panels into runs of the same group whose weights stay in a near cache. `pixels` is the number of pixels
    /// of most tiles, or more.
    #[inline(always)]
    pub fn runs<S: Simd>(
        &self,
        tiles: Range<usize>,
        pixels: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<S, E, W> {
        let panels = self.panels;
        let least = most_panels::<S>(pixels.clamp(1, S::PIXELS));
        let most = (CACHE_BYTES / size_of::<W>() / panels.stride()).max(least);
        let mut next = tiles.start;
        core::iter::from_fn(move || {
            let group_end = (next / panels.per_group() + 1) * panels.per_group();
            let run = next..group_end.min(tiles.end).min(next + most);
            next = run.end;
            (!run.is_empty()).then_some(run)
        })
    }

    /// Makes the output channels `run` of a tile whose table has been begun. Sums that neither one table nor the registers
    /// see through wait, those of some panels at a time.
    ///
    /// # Safety
    /// In [`super::arch::Job::run`]; no one else reads or writes these elements of the output. The steps of all spans
    /// lie within a panel. If residuals were added, then for every pixel of the tile.
    #[inline(always)]
    pub unsafe fn make<'a, S: Simd, L: Load<E>>(
        &self,
        run: &Range<usize>,
        table: &mut Table<'a, E>,
        spans: &impl Spans<'a, E>,
        load: &mut L,
    ) {
        let Panels { filters, .. } = self.panels;
        let (group, within) =
            (run.start / self.panels.per_group(), run.start % self.panels.per_group() * PANEL);
        let first = group * filters + within;
        let total = spans.len();
        // SAFETY: this is in `Job::run`: `# Safety` of this function.
        let mut filled = 0..unsafe { table.fill::<S, L>(0, group, spans, load) };
        let has_ended = Ending::new(self.activation).is_all(self.activation);
        if filled.end == total && has_ended {
            let blocks = Blocks { sums: self, table, first, is_first: true, is_last: true, waits: false };
            let channels = (filters - within).min(run.len() * PANEL);
            // SAFETY: this is in `Job::run`, and no one else uses these elements of the output: `# Safety` of this
            // function. No sums wait.
            return unsafe { blocks.make::<S>(channels, run.len(), None) };
        }
        let mut accumulators = Accumulators::new();
        let mut part = run.start;
        while part < run.end {
            let end = run.end.min(part + MAX_CHANNELS / PANEL);
            let place = (part - run.start) * PANEL;
            let channels = (filters - within - place).min((end - part) * PANEL);
            // Sums of one part have room to wait, so all tables pass by for each part. A table may still be the one
            // that is wanted: the first of the first part, or the only one.
            let mut from = 0;
            loop {
                if filled.start != from {
                    // SAFETY: this is in `Job::run`: `# Safety` of this function.
                    filled = from..unsafe { table.fill::<S, L>(from, group, spans, load) };
                }
                let [is_first, is_last] = [from == 0, filled.end == total];
                let waits = !(is_last && has_ended);
                let blocks = Blocks { sums: self, table, first: first + place, is_first, is_last, waits };
                // SAFETY: this is in `Job::run`, and no one else uses these elements of the output: `# Safety` of this
                // function. A part has no more than `MAX_CHANNELS` channels, for which `accumulators` has room.
                unsafe { blocks.make::<S>(channels, end - part, Some(&mut accumulators)) }
                if is_last {
                    break;
                }
                from = filled.end;
            }
            part = end;
        }
    }
}

/// Panels of a tile.
#[derive(Clone, Copy)]
struct Blocks<'b, 'a, E, W> {
    sums: &'b Sums<'a, E, W>,
    table: &'b Table<'b, E>,
    /// First output channel.
    first: usize,
    /// Whether the sums begin with the biases, rather than where the last table left them.
    is_first: bool,
    /// Whether no table follows.
    is_last: bool,
    /// Whether the sums wait for more products. Otherwise they go to the output.
    waits: bool,
}

impl<E: Element, W: Weight> Blocks<'_, '_, E, W> {
    /// Makes so many panels, which have so many channels.
    ///
    /// # Safety
    /// In [`super::arch::Job::run`]; no one else reads or writes these elements of the output, and if they wait there is
    /// room for them.
    #[inline(always)]
    unsafe fn make<S: Simd>(
        self,
        channels: usize,
        panels: usize,
        mut accumulators: Option<&mut Accumulators>,
    ) {
        let Blocks { sums: Sums { panels: shape, weights, activation, output }, table, first, .. } = self;
        let (mut next, mut tiles) = (0, 0);
        let mut widths = [0; MAX_CHANNELS / PANEL];
        while next < panels {
            // The largest power of two that is left.
            let count = 1 << most_panels::<S>(table.count).min(panels - next).ilog2();
            let place = next * PANEL;
            let channels = (channels - place).min(count * PANEL);
            let weights = &weights[(first + place) * shape.channel_len()..][..shape.reach(channels)];
            let accumulators = accumulators.as_deref_mut().map_or(core::ptr::null_mut(), |accumulators| {
                accumulators.start().wrapping_add(table.count * place)
            });
            let blocks = Blocks { first: first + place, ..self };
            // SAFETY: this is in `Job::run`: `# Safety` of this function.
            unsafe { call::<S, _>(Block { blocks, weights, channels, accumulators }, table.count, count) }
            if self.waits {
                widths[tiles] = count * PANEL;
                tiles += 1;
            }
            next += count;
        }
        if let Some(accumulators) = accumulators.filter(|_| self.waits && self.is_last) {
            let mut outputs = [core::ptr::null_mut(); MAX_PIXELS];
            for (to, start) in outputs.iter_mut().zip(&table.outputs[..table.count]) {
                *to = output.pointer(start + first, channels);
            }
            let (outputs, widths) = (&outputs[..table.count], &widths[..tiles]);
            // SAFETY: this is in `Job::run`, and no one else uses these elements of the output: `# Safety` of this
            // function. The tiles made above wait, of these widths, and `pointer` asserts that each output has
            // `channels` elements.
            unsafe {
                Epilogue { activation: *activation, accumulators, widths, outputs, channels }.call::<S>()
            }
        }
    }
}

/// The channels that are made at once.
#[derive(Clone, Copy)]
struct Block<'b, 'a, E, W> {
    blocks: Blocks<'b, 'a, E, W>,
    weights: &'b [W],
    /// Number of output channels.
    channels: usize,
    /// Where the sums wait, if they do.
    accumulators: *mut f32,
}

impl<E: Element, W: Weight> Block<'_, '_, E, W> {
    /// The weights of a vector, of those that have channels.
    #[inline(always)]
    fn lanes<S: Simd>(&self, v: usize) -> Lanes<W> {
        let (panel, v) = (v / const { panel_vectors::<S>() }, v % const { panel_vectors::<S>() });
        Lanes {
            panel: self.weights.as_ptr().wrapping_add(panel * self.blocks.sums.panels.stride()),
            width: PANEL.min(self.channels - panel * PANEL),
            first: v * S::LANES,
        }
    }
}

impl<E: Element, W: Weight> TileWork for Block<'_, '_, E, W> {
    #[inline(always)]
    fn run<S: Simd, const M: usize, const N: usize>(self) {
        let Block { blocks, channels, accumulators, .. } = self;
        let Blocks { sums, table, first, is_first, is_last, waits } = blocks;
        let Sums { panels, output, activation, .. } = sums;
        let stride = panels.stride();
        // Elements from step to step of the last panel. The panels before it are full.
        let last = channels - const { full_vectors::<S>(N) * S::LANES };
        // SAFETY: this is in `Job::run`. `weights` has all steps and slopes of its panels, the steps of spans lie
        // within a panel (`# Safety` of `Sums::make`), and a vector of the last panel is not read beyond what
        // `Panels::reach` says. Pixels have been seen to be as long as their spans, and residuals as all output
        // channels. Outputs are by `pointer`. Where sums wait, there is room for whole panels.
        unsafe {
            let mut lanes = [self.lanes::<S>(0); N];
            for (v, lanes) in lanes.iter_mut().enumerate().skip(1) {
                *lanes = self.lanes::<S>(v);
            }
            let mut tile = [begin::<S, N, W>(&lanes); M];
            if !is_first {
                tile = kept::<S, M, N>(accumulators);
            }
            for span in 0..table.len {
                let (step, steps) = table.spans[span];
                debug_assert!(step + steps <= panels.steps, "beyond the panel");
                let (mut pixels, mut weights) = ([core::ptr::null(); M], [core::ptr::null(); N]);
                pixels.copy_from_slice(&table.pixels[span][..M]);
                for v in 0..N {
                    weights[v] = lanes[v].at(step);
                }
                let ahead = table.ahead.next_panel(weights[0], const { N / panel_vectors::<S>() }, stride);
                accumulate::<S, M, N, W>(&mut tile, &pixels, &weights, [PANEL, last], steps, ahead);
            }
            if is_last {
                W::end::<S, M, N>(&lanes, &mut tile);
            }
            let ending = Ending::new(*activation);
            let adds = is_last && table.has_residuals;
            let out = |i: usize| output.pointer(table.outputs[i] + first, channels);
            let bounds = ending.bounds().filter(|_| channels >= N * S::LANES && !waits && !adds);
            if let Some(bounds) = bounds {
                return finish_whole::<S, M, N, E>(&tile, bounds, out);
            }
            let mut room = MaybeUninit::<Tile<S, M, N>>::uninit();
            let room = if waits { accumulators } else { room.as_mut_ptr().cast() };
            keep::<S, M, N>(&tile, room);
            if waits && !adds {
                return;
            }
            S::call(Rest { block: self, room, pixels: M, vectors: N });
        }
    }
}

/// What is left of a tile whose sums are in memory: residuals are added to them, and they go to the output if they do not
/// wait. (One function does this for tiles of all sizes.)
struct Rest<'b, 'a, E, W> {
    block: Block<'b, 'a, E, W>,
    room: *mut f32,
    pixels: usize,
    vectors: usize,
}

impl<E: Element, W: Weight> Job for Rest<'_, '_, E, W> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Rest { block, room, pixels, vectors } = self;
        let Block { blocks, channels, .. } = block;
        let Blocks { sums: Sums { panels, output, activation, .. }, table, first, waits, .. } = blocks;
        let (ending, adds) = (Ending::new(*activation), blocks.is_last && table.has_residuals);
        // SAFETY: this is in `Job::run`. `Block::run` makes this, so what it says of panels, residuals and outputs
        // holds here, and `room` has the tile that it kept. No more than the `left` channels are touched.
        unsafe {
            for v in 0..vectors {
                let done = v * S::LANES;
                let Some(left) = channels.checked_sub(done).filter(|left| *left > 0) else { break };
                let [slopes] = ending.slopes::<S, 1, W>(&[block.lanes::<S>(v)], panels.steps);
                for i in 0..pixels {
                    let at = room.add((i * vectors + v) * S::LANES);
                    let mut sum = S::load(at);
                    if adds {
                        let residual = table.residuals[i].add(first + done);
                        let residual = match left < S::LANES {
                            true => E::load_masked::<S>(residual, left),
                            false => E::load::<S>(residual),
                        };
                        sum = S::add(sum, residual);
                    }
                    if waits {
                        S::store(at, sum);
                    } else {
                        let out = output.pointer(table.outputs[i] + first, channels).add(done);
                        finish::<S, 1, E>(&[sum], ending, &[slopes], out, left);
                    }
                }
            }
        }
    }
}
