//! The micro-kernel: sums of products for a tile of pixels and output channels, held in registers.
//!
//! A tile is some pixels by some vectors of output channels. Their numbers depend only on the registers of the
//! instruction set. The order of a sum never depends on the tile. So neither the rows per firing nor the number of
//! workers changes a byte. Vector instructions are called in loops and not in closures, because a closure is not always
//! compiled for the caller's instruction set.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::mem::MaybeUninit;

use super::activation::{Activation, Apply};
use super::arch::{Job, PANEL, SMALL_STACK, Simd};
use super::element::Element;
use super::weight::{Lanes, Weight};

/// Accumulators of `M` pixels and `N` vectors of output channels.
pub(crate) type Tile<S, const M: usize, const N: usize> = [[<S as Simd>::V; N]; M];

/// Work on a tile of `M` pixels and `N` vectors of output channels.
pub(crate) trait TileWork: Copy {
    /// Whether tiles may be wider or narrower than [`Simd::VECTORS`].
    const ANY_WIDTH: bool = true;

    /// Does the work; `#[inline(always)]`, as that of a [`Job`]. Only [`call`] calls it, in [`Job::run`].
    fn run<S: Simd, const M: usize, const N: usize>(self);
}

/// Whether the registers hold the sums of such a tile, and the weights and the pixel of a step. A single pixel needs
/// many sums at work at once, because each sum waits for its last product. Weights that are used only once need no
/// register.
const fn fits<S: Simd>(pixels: usize, vectors: usize) -> bool {
    pixels <= S::PIXELS
        && vectors.is_multiple_of(panel_vectors::<S>())
        && (vectors * (pixels + 1) <= S::REGISTERS - 2 || vectors == S::VECTORS || pixels == 1)
}

/// Does the work for `pixels` pixels and the vectors of `panels` panels. Does nothing if they are more than
/// [`most_panels`], or not a power of two.
///
/// # Safety
/// In [`Job::run`].
#[inline(always)]
pub(crate) unsafe fn call<S: Simd, W: TileWork>(work: W, pixels: usize, panels: usize) {
    // Constant conditions of their own, so that no code is made for the sizes that an instruction set does not take.
    macro_rules! size {
        ($m:literal, $n:literal) => {
            if const { fits::<S>($m, $n) && (W::ANY_WIDTH || $n == S::VECTORS) } {
                // SAFETY: this is in `Job::run`: `# Safety` of this function.
                unsafe { S::call(Sized::<W, $m, $n>(work)) }
            }
        };
    }
    macro_rules! sizes {
        ($n:literal: $($m:literal)*) => {
            match pixels {
                $($m => size!($m, $n),)*
                _ => {}
            }
        };
    }
    match panels * panel_vectors::<S>() {
        1 => sizes!(1: 1 2 3 4 5 6 7 8 9 10 11 12),
        2 => sizes!(2: 1 2 3 4 5 6 7 8 9 10 11 12),
        4 => sizes!(4: 1 2 3 4 5 6),
        8 => sizes!(8: 1 2),
        _ => {}
    }
}

/// Panels of the widest tile of `pixels` pixels.
#[inline(always)]
pub(crate) const fn most_panels<S: Simd>(pixels: usize) -> usize {
    let vectors = match () {
        () if fits::<S>(pixels, 8) => 8,
        () if fits::<S>(pixels, 4) => 4,
        () if fits::<S>(pixels, 2) => 2,
        () => S::VECTORS,
    };
    vectors / panel_vectors::<S>()
}

/// [`TileWork`] as a job.
struct Sized<W, const M: usize, const N: usize>(W);

impl<W: TileWork, const M: usize, const N: usize> Job for Sized<W, M, N> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        self.0.run::<S, M, N>();
    }
}

/// Vectors in a panel.
pub(crate) const fn panel_vectors<S: Simd>() -> usize {
    PANEL / S::LANES
}

/// How many of `vectors` vectors do not belong to the last panel, and so belong to full panels.
pub(crate) const fn full_vectors<S: Simd>(vectors: usize) -> usize {
    vectors.saturating_sub(panel_vectors::<S>())
}

/// The weights that come next. While a tile sums products, it brings one panel of them into a near cache, a line at
/// each step. The first tile brings the first panel, the second tile brings the second panel, and so on. So all panels
/// are there once as many tiles are made as there are panels.
///
/// After a run's weights lie those of the next run. After the last run's weights lie those of the next layer, or
/// anything else. The addresses are not checked: an instruction that brings a line passes over an address that is not
/// there.
#[derive(Clone, Copy)]
pub(crate) struct Ahead {
    /// How many tiles have been made with these weights.
    pub tile: usize,
    /// Elements from weights to those that come next.
    pub distance: usize,
}

impl Ahead {
    /// The panel that this tile brings, where its own weights are so many `panels` from `at` on, `stride` elements from each
    /// other. If all have been brought: the tile's own weights, which costs nothing.
    #[inline(always)]
    pub fn next_panel<W>(self, at: *const W, panels: usize, stride: usize) -> *const W {
        if self.tile < panels { at.wrapping_add(self.distance + self.tile * stride) } else { at }
    }
}

/// Adds `len` products to every accumulator: pixel i's element k times the weights at `weights[v] + k · step`, where the
/// vectors of the last panel have a step of their own. Brings a line at each `step` from `ahead` on.
///
/// # Safety
/// In [`Job::run`]. Each pixel holds `len` elements, each weight pointer `LANES` elements at each step.
#[inline(always)]
pub(crate) unsafe fn accumulate<S: Simd, const M: usize, const N: usize, W: Weight>(
    tile: &mut Tile<S, M, N>,
    pixels: &[*const f32; M],
    weights: &[*const W; N],
    [step, last]: [usize; 2],
    len: usize,
    ahead: *const W,
) {
    let mut sums = *tile;
    for k in 0..len {
        // SAFETY: this is in `Job::run`, each pixel has `len` elements, and each weight pointer a vector at each of as
        // many steps: `# Safety` of this function. A prefetch takes any address.
        unsafe {
            S::prefetch(ahead.wrapping_add(k * step).cast());
            let mut w = [S::splat(0.0); N];
            for v in 0..N {
                let step = if v < const { full_vectors::<S>(N) } { step } else { last };
                w[v] = W::load::<S>(weights[v].add(k * step));
            }
            for i in 0..M {
                let x = S::factor(pixels[i], k);
                for v in 0..N {
                    sums[i][v] = S::mul_add_factor(x, w[v], sums[i][v]);
                }
            }
        }
    }
    *tile = sums;
}

/// The values with which the sums of a pixel begin. (Vector instructions are kept out of closures, which would not
/// always be compiled for the instruction set.)
///
/// # Safety
/// As [`Weight::begin`].
#[inline(always)]
pub(crate) unsafe fn begin<S: Simd, const N: usize, W: Weight>(lanes: &[Lanes<W>; N]) -> [S::V; N] {
    // SAFETY: this is in `Job::run`, and each of the lanes is of a panel that is there: `# Safety` of this function.
    unsafe {
        let mut vectors = [S::splat(0.0); N];
        for v in 0..N {
            vectors[v] = W::begin::<S>(lanes[v]);
        }
        vectors
    }
}

/// The operation on a sum while it is in a register: bounds, or the slopes of a PRelu.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    bounds: Option<[f32; 2]>,
    /// Whether slopes follow the weights.
    slopes: bool,
}

impl Ending {
    /// Nothing.
    pub const NONE: Ending = Ending { bounds: None, slopes: false };

    /// The activation, as far as it can be done in registers; see [`Ending::is_all`].
    pub fn new(activation: Activation) -> Self {
        let bounds = activation.bounds().filter(|_| activation != Activation::None);
        Ending { bounds, slopes: activation == Activation::PRelu }
    }

    /// Whether the ending does the whole activation.
    pub fn is_all(self, activation: Activation) -> bool {
        self.bounds.is_some() || self.slopes || activation == Activation::None
    }

    /// The bounds, which are infinite where there are none; `None` if slopes are needed.
    #[inline(always)]
    pub fn bounds(self) -> Option<[f32; 2]> {
        (!self.slopes).then(|| self.bounds.unwrap_or([f32::NEG_INFINITY, f32::INFINITY]))
    }

    /// The slopes that it needs, which follow so many steps; zeros if it needs none.
    ///
    /// # Safety
    /// As [`Weight::begin`]; the panels have slopes if the ending has.
    #[inline(always)]
    pub unsafe fn slopes<S: Simd, const N: usize, W: Weight>(
        self,
        lanes: &[Lanes<W>; N],
        steps: usize,
    ) -> [S::V; N] {
        // SAFETY: this is in `Job::run`, and the panels have slopes if `self.slopes` is set: `# Safety` of this
        // function.
        unsafe {
            let mut slopes = [S::splat(0.0); N];
            if self.slopes {
                for v in 0..N {
                    slopes[v] = W::slopes::<S>(lanes[v], steps);
                }
            }
            slopes
        }
    }

    /// Does it.
    ///
    /// # Safety
    /// In [`Job::run`].
    #[inline(always)]
    pub unsafe fn apply<S: Simd>(self, sum: S::V, slopes: S::V) -> S::V {
        // SAFETY: this is in `Job::run`: `# Safety` of this function.
        unsafe {
            if let Some([low, high]) = self.bounds {
                return S::min(S::splat(high), S::max(S::splat(low), sum));
            }
            if self.slopes {
                // Adding −0 leaves every product as it is.
                return S::select_negative(sum, S::mul_add(slopes, sum, S::splat(-0.0)));
            }
            sum
        }
    }
}

/// Reads a tile that [`keep`] has written. (What is reached by an index that is not constant does not stay in registers. So a
/// tile goes through memory where only loops can do what is left, and there alone.)
///
/// # Safety
/// In [`Job::run`]; such a tile lies at `from`.
#[inline(always)]
pub(crate) unsafe fn kept<S: Simd, const M: usize, const N: usize>(from: *const f32) -> Tile<S, M, N> {
    // SAFETY: `M` pixels of `N` vectors lie at `from`: `# Safety` of this function.
    unsafe {
        let mut tile = [[S::splat(0.0); N]; M];
        for (i, sums) in tile.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = S::load(from.add((i * N + v) * S::LANES));
            }
        }
        tile
    }
}

/// Writes a tile, vector by vector of each pixel.
///
/// # Safety
/// In [`Job::run`]; `to` is good for as many elements.
#[inline(always)]
pub(crate) unsafe fn keep<S: Simd, const M: usize, const N: usize>(tile: &Tile<S, M, N>, to: *mut f32) {
    for (i, sums) in tile.iter().enumerate() {
        for (v, sum) in sums.iter().enumerate() {
            // SAFETY: `to` is good for `M` pixels of `N` vectors: `# Safety` of this function.
            unsafe { S::store(to.add((i * N + v) * S::LANES), *sum) }
        }
    }
}

/// Writes whole vectors of a tile to the elements `at` each pixel, after bounds.
///
/// # Safety
/// In [`Job::run`]; each place is good for `N` vectors.
#[inline(always)]
pub(crate) unsafe fn finish_whole<S: Simd, const M: usize, const N: usize, E: Element>(
    tile: &Tile<S, M, N>,
    [low, high]: [f32; 2],
    at: impl Fn(usize) -> *mut E,
) {
    // SAFETY: each place that `at` gives is good for `N` vectors: `# Safety` of this function.
    unsafe {
        let (low, high) = (S::splat(low), S::splat(high));
        for (i, sums) in tile.iter().enumerate() {
            let out = at(i);
            for (v, sum) in sums.iter().enumerate() {
                E::store::<S>(out.add(v * S::LANES), S::min(high, S::max(low, *sum)));
            }
        }
    }
}

/// Writes the sums of one pixel to the `count` elements at `out`, after their ending.
///
/// # Safety
/// In [`Job::run`]; `out` is aligned and good for `count` elements.
#[inline(always)]
pub(crate) unsafe fn finish<S: Simd, const N: usize, E: Element>(
    sums: &[S::V; N],
    ending: Ending,
    slopes: &[S::V; N],
    out: *mut E,
    count: usize,
) {
    // SAFETY: `out` is aligned and good for `count` elements: `# Safety` of this function. All `N` vectors are stored
    // whole only if they are no more than `count`; otherwise each stores no more than what is left.
    unsafe {
        if count >= N * S::LANES {
            for v in 0..N {
                E::store::<S>(out.add(v * S::LANES), ending.apply::<S>(sums[v], slopes[v]));
            }
            return;
        }
        for v in 0..N {
            let left = count.saturating_sub(v * S::LANES);
            if left > 0 {
                let sum = ending.apply::<S>(sums[v], slopes[v]);
                E::store_masked::<S>(out.add(v * S::LANES), left, sum);
            }
        }
    }
}

/// Maximum number of pixels whose sums wait.
pub(crate) const MAX_PIXELS: usize = 12;

/// Maximum number of output channels whose sums wait: as many panels as the widest tile has. With vectors of four floats,
/// these are two.
pub(crate) const MAX_CHANNELS: usize = if SMALL_STACK { 2 } else { 8 } * PANEL;

/// The place where sums wait as floats, for the rest of their products or for an activation that is not done in
/// registers. So they are rounded only once, when they become elements. Tiles follow each other, and each lies as it
/// was in registers.
pub(crate) struct Accumulators([MaybeUninit<f32>; MAX_PIXELS * MAX_CHANNELS]);

impl Accumulators {
    #[inline(always)]
    pub const fn new() -> Self {
        Accumulators([const { MaybeUninit::uninit() }; MAX_PIXELS * MAX_CHANNELS])
    }

    /// The place of the first float.
    #[inline(always)]
    pub const fn start(&mut self) -> *mut f32 {
        self.0.as_mut_ptr().cast()
    }
}

/// Makes elements of tiles that have waited for an activation.
pub(crate) struct Epilogue<'a, E> {
    pub activation: Activation,
    pub accumulators: &'a mut Accumulators,
    /// Channels of each tile, in whole vectors.
    pub widths: &'a [usize],
    /// Where the elements of each pixel go, which are so many.
    pub outputs: &'a [*mut E],
    pub channels: usize,
}

impl<E: Element> Epilogue<'_, E> {
    /// Does it, as a function of its own.
    ///
    /// # Safety
    /// In [`Job::run`]. Of as many pixels as there are outputs, tiles of these widths wait, one after the other. Each
    /// output is aligned and good for `channels` elements, which only the last tile may exceed.
    #[inline(always)]
    pub unsafe fn call<S: Simd>(self) {
        // SAFETY: this is in `Job::run`: `# Safety` of this function.
        unsafe { S::call(self) }
    }
}

impl<E: Element> Job for Epilogue<'_, E> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Epilogue { activation, accumulators, widths, outputs, channels } = self;
        let (mut tile, mut first) = (accumulators.start(), 0);
        // SAFETY: only `Epilogue::call` calls this, so its `# Safety` holds: from `tile` on, all floats of the tiles
        // have been written, and each output is good for `channels` elements, beyond which nothing is stored.
        unsafe {
            let len = outputs.len() * widths.iter().sum::<usize>();
            let values = core::slice::from_raw_parts_mut(tile, len);
            S::call(Apply { activation, values, slopes: &[] });
            for &width in widths {
                for out in outputs {
                    for at in (0..width.min(channels - first)).step_by(S::LANES) {
                        let (sums, place) = (S::load(tile.add(at)), out.add(first + at));
                        match channels - first - at {
                            left if left < S::LANES => E::store_masked::<S>(place, left, sums),
                            _ => E::store::<S>(place, sums),
                        }
                    }
                    tile = tile.add(width);
                }
                first += width;
            }
        }
    }
}
