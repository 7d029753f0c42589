//! Sums of products whose pixels lie anywhere: a table says where the pixels of a tile are read, tap by tap, and
//! where they are written (Dukhan, "The Indirect Convolution Algorithm", 2019; here the table is of one tile, and
//! made anew for each).
//!
//! So a convolution needs no workspace, and every layer that is a sum of products shares one micro-kernel (`tile`).
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::activation::{Activation, Apply};
use super::arch::{PANEL, Simd};
use super::panel::Panels;
use super::shared::SharedRows;
use super::tile::{
    Ending, TileWork, accumulate, call, finish, full_vectors, load, most_panels, panel_vectors,
};

/// Pixels of the largest tile.
pub(crate) const MOST_PIXELS: usize = 12;

/// Spans that a table holds. Sums of more wait in the output for the next table.
const SPANS: usize = 64;

/// What is read in place of pixels beyond the input.
static ZEROS: [f32; 512] = [0.0; 512];

/// Longest span where some pixels may lie beyond the input.
pub(crate) const PADDED_SPAN: usize = ZEROS.len();

/// So many of what is read in place of pixels beyond the input.
#[inline(always)]
pub(crate) fn zeros(steps: usize) -> *const f32 {
    ZEROS[..steps].as_ptr()
}

/// Elements of weights that stay near the core while the pixels pass by.
const NEAR: usize = 64 * 1024;

/// Where the pixels of a tile are read and written.
pub(crate) struct Table<'a> {
    /// Input elements of each span and pixel.
    pixels: [[*const f32; MOST_PIXELS]; SPANS],
    /// First step and number of steps of each span.
    spans: [(usize, usize); SPANS],
    len: usize,
    /// Element of the output at which each pixel begins.
    outputs: [usize; MOST_PIXELS],
    /// Elements that are added to the sums of each pixel, for all output channels.
    residuals: [*const f32; MOST_PIXELS],
    /// Whether there are any.
    has_residuals: bool,
    /// How many pixels there are.
    count: usize,
    input: core::marker::PhantomData<&'a [f32]>,
}

impl<'a> Table<'a> {
    pub fn new() -> Self {
        Table {
            pixels: [[ZEROS.as_ptr(); MOST_PIXELS]; SPANS],
            spans: [(0, 0); SPANS],
            len: 0,
            outputs: [0; MOST_PIXELS],
            residuals: [ZEROS.as_ptr(); MOST_PIXELS],
            has_residuals: false,
            count: 0,
            input: core::marker::PhantomData,
        }
    }

    /// Begins a tile whose pixels begin at these elements of the output.
    #[inline(always)]
    pub fn start(&mut self, count: usize, mut output: impl FnMut(usize) -> usize) {
        self.count = count;
        self.has_residuals = false;
        for (i, start) in self.outputs[..count].iter_mut().enumerate() {
            *start = output(i);
        }
    }

    /// These elements of each pixel of the tile, one for each output channel, are added to its sums, before the
    /// activation.
    ///
    /// # Panics
    /// If there are fewer than `channels`.
    #[inline(always)]
    pub fn add_residuals(&mut self, channels: usize, mut pixel: impl FnMut(usize) -> &'a [f32]) {
        self.has_residuals = true;
        for (i, place) in self.residuals[..self.count].iter_mut().enumerate() {
            *place = pixel(i)[..channels].as_ptr();
        }
    }

    /// Adds a span of steps, in which each pixel is multiplied from these elements on, as they are loaded, or is zero if
    /// there are none.
    ///
    /// # Safety
    /// In [`super::arch::Job::run`].
    ///
    /// # Panics
    /// If there are fewer elements than steps.
    #[inline(always)]
    unsafe fn add<S: Simd>(
        &mut self,
        step: usize,
        steps: usize,
        pixel: impl FnMut(usize) -> Option<&'a [f32]>,
        load: &mut impl Load,
    ) {
        self.spans[self.len] = (step, steps);
        // SAFETY: the caller's.
        unsafe { load.load::<S>(step, steps, pixel, &mut self.pixels[self.len][..self.count]) }
        self.len += 1;
    }
}

/// Where the pixels of a tile are read.
pub(crate) trait Spans<'a> {
    /// How many spans there are.
    fn len(&self) -> usize;

    /// First step and number of steps of a span. No more than [`PADDED_SPAN`] if a pixel may lie beyond the input.
    fn steps(&self, span: usize) -> (usize, usize);

    /// The elements of each pixel for these steps; `None` if it lies beyond the input.
    fn pixels(&self, span: usize) -> impl FnMut(usize) -> Option<&'a [f32]>;
}

/// How the elements of a pixel come before the micro-kernel.
pub(crate) trait Load {
    /// Most steps of a table.
    const STEPS: usize;

    /// Begins a table for a group: what was loaded for the last is no longer needed.
    fn start(&mut self, group: usize);

    /// Says for each pixel where the `steps` elements are that it is multiplied from `step` on, until the next table
    /// begins. `pixel` gives what lies in the input, if anything does, and perhaps more.
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
        pixel: impl FnMut(usize) -> Option<&'a [f32]>,
        places: &mut [*const f32],
    );
}

/// Elements are read where they lie.
pub(crate) struct InPlace;

impl Load for InPlace {
    const STEPS: usize = usize::MAX;

    #[inline(always)]
    fn start(&mut self, _group: usize) {}

    #[inline(always)]
    unsafe fn load<'a, S: Simd>(
        &mut self,
        _step: usize,
        steps: usize,
        mut pixel: impl FnMut(usize) -> Option<&'a [f32]>,
        places: &mut [*const f32],
    ) {
        for (i, place) in places.iter_mut().enumerate() {
            *place = match pixel(i) {
                Some(elements) => elements[..steps].as_ptr(),
                None => zeros(steps),
            };
        }
    }
}

/// Sums of products with packed weights.
pub(crate) struct Sums<'a> {
    pub panels: Panels,
    pub weights: &'a [f32],
    pub activation: Activation,
    pub output: SharedRows<'a>,
}

impl Sums<'_> {
    /// Deals panels into runs of the same group whose weights stay near the core. `pixels` is the size of most tiles.
    #[inline(always)]
    pub fn runs<S: Simd>(
        &self,
        tiles: Range<usize>,
        pixels: usize,
    ) -> impl Iterator<Item = Range<usize>> + use<S> {
        let panels = self.panels;
        let least = most_panels::<S>(pixels.clamp(1, S::PIXELS));
        let most = (NEAR / panels.stride()).max(least);
        let mut next = tiles.start;
        core::iter::from_fn(move || {
            let group_end = (next / panels.per_group() + 1) * panels.per_group();
            let run = next..group_end.min(tiles.end).min(next + most);
            next = run.end;
            (!run.is_empty()).then_some(run)
        })
    }

    /// Makes the output channels `run` of a tile whose table has been begun.
    ///
    /// # Safety
    /// In [`super::arch::Job::run`]; no one else reads or writes these elements of the output.
    #[inline(always)]
    pub unsafe fn make<'a, S: Simd, L: Load>(
        &self,
        run: &Range<usize>,
        table: &mut Table<'a>,
        spans: &impl Spans<'a>,
        load: &mut L,
    ) {
        let Panels { filters, .. } = self.panels;
        let (group, within) =
            (run.start / self.panels.per_group(), run.start % self.panels.per_group() * PANEL);
        let first = group * filters + within;
        let total = spans.len();
        let mut from = 0;
        loop {
            let (mut to, mut room) = (from, L::STEPS);
            table.len = 0;
            load.start(group);
            while to < total && table.len < SPANS {
                let (step, steps) = spans.steps(to);
                if steps > room {
                    break;
                }
                room -= steps;
                // SAFETY: the caller's.
                unsafe { table.add::<S>(step, steps, spans.pixels(to), load) }
                to += 1;
            }
            let mut next = run.start;
            while next < run.end {
                // The largest power of two that is left.
                let count = 1 << most_panels::<S>(table.count).min(run.end - next).ilog2();
                let place = (next - run.start) * PANEL;
                let channels = (filters - within - place).min(count * PANEL);
                let start = (first + place) * self.panels.each();
                let block = Block {
                    sums: self,
                    table,
                    panels: &self.weights[start..][..self.panels.reach(channels)],
                    first: first + place,
                    channels,
                    is_first: from == 0,
                    is_last: to == total,
                };
                // SAFETY: the caller's.
                unsafe { call::<S, _>(block, table.count, count) }
                next += count;
            }
            if to == total {
                break;
            }
            from = to;
        }
        if !Ending::of(self.activation).is_all(self.activation) {
            let channels = (run.len() * PANEL).min(filters - within);
            // SAFETY: the caller's.
            unsafe { self.activate::<S>(table, first, channels) }
        }
    }

    /// Applies the activation to these channels of a tile, pixels that lie on end in one go.
    ///
    /// # Safety
    /// As [`Sums::make`].
    #[inline(always)]
    unsafe fn activate<S: Simd>(&self, table: &Table<'_>, first: usize, channels: usize) {
        let mut i = 0;
        while i < table.count {
            let start = table.outputs[i];
            let mut len = channels;
            i += 1;
            while i < table.count && table.outputs[i] == start + len {
                len += channels;
                i += 1;
            }
            // SAFETY: the caller's.
            unsafe {
                let values = self.output.elements(start + first, len);
                S::call(Apply { activation: self.activation, values, slopes: &[] });
            }
        }
    }
}

/// Some panels of a tile.
#[derive(Clone, Copy)]
struct Block<'b, 'a> {
    sums: &'b Sums<'a>,
    table: &'b Table<'b>,
    panels: &'b [f32],
    /// First output channel.
    first: usize,
    /// Output channels that there are.
    channels: usize,
    /// Whether the sums begin with the biases, rather than where the last table left them.
    is_first: bool,
    /// Whether no table follows.
    is_last: bool,
}

impl TileWork for Block<'_, '_> {
    #[inline(always)]
    fn run<S: Simd, const M: usize, const N: usize>(self) {
        let Block { sums: Sums { panels, output, activation, .. }, table, first, channels, .. } = self;
        let stride = panels.stride();
        let per_panel = const { panel_vectors::<S>() };
        // Elements from step to step, of the last panel and of each vector: what comes before the last panel is full.
        let last = channels - const { full_vectors::<S>(N) * S::LANES };
        let width = |v: usize| if v < const { full_vectors::<S>(N) } { PANEL } else { last };
        // SAFETY: this is within a job of this instruction set. The pointers stay within the panels, since steps and slopes
        // lie within a panel, which `Table::add`'s callers take from the same shape, and a vector of the last panel is not
        // read beyond what `Panels::reach` says; pixels have been seen to be as long as their spans, and residuals as all
        // output channels; outputs are by `pointer`.
        unsafe {
            let at: [*const f32; N] = core::array::from_fn(|v| {
                self.panels.as_ptr().add(v / per_panel * stride + v % per_panel * S::LANES)
            });
            let place = |i: usize| output.pointer(table.outputs[i] + first, channels);
            let mut tile = [load::<S, N>(&at, 0); M];
            if !self.is_first {
                for (i, sums) in tile.iter_mut().enumerate() {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let left = channels.saturating_sub(v * S::LANES);
                        *sum = S::load_part(place(i).wrapping_add(v * S::LANES), left);
                    }
                }
            }
            for span in 0..table.len {
                let (step, steps) = table.spans[span];
                debug_assert!(step + steps <= panels.steps, "beyond the panel");
                let pixels: [*const f32; M] = core::array::from_fn(|i| table.pixels[span][i]);
                let weights = core::array::from_fn(|v| at[v].add(width(v) * (1 + step)));
                accumulate::<S, M, N>(&mut tile, &pixels, &weights, [PANEL, last], steps);
            }
            if self.is_last && table.has_residuals {
                for (i, sums) in tile.iter_mut().enumerate() {
                    let residual = table.residuals[i].add(first);
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let left = channels.saturating_sub(v * S::LANES);
                        *sum = S::add(*sum, S::load_part(residual.wrapping_add(v * S::LANES), left));
                    }
                }
            }
            let ending = if self.is_last { Ending::of(*activation) } else { Ending::NONE };
            let slopes = core::array::from_fn(|v| at[v].wrapping_add(width(v) * (1 + panels.steps)));
            for (i, sums) in tile.iter().enumerate() {
                finish::<S, N>(sums, ending, &slopes, place(i), channels);
            }
        }
    }
}
