//! The micro-kernel: sums of products for a tile of pixels and output channels, held in registers.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use super::activation::{Activation, Apply};
use super::arch::{Job, PANEL, Simd};
use super::panel::Panels;

/// Accumulators of `M` pixels and `N` vectors of output channels.
pub(crate) type Tile<S, const M: usize, const N: usize> = [[<S as Simd>::V; N]; M];

/// Work on a tile of `M` pixels and `N` vectors of output channels.
pub(crate) trait TileWork: Copy {
    /// Does the work; `#[inline(always)]`, as that of a [`Job`].
    fn run<S: Simd, const M: usize, const N: usize>(self);
}

/// Does the work for `pixels` pixels and the vectors of `panels` panels. Does nothing if there are more of either than
/// the instruction set takes at a time.
///
/// # Safety
/// In [`Job::run`].
#[inline(always)]
pub(crate) unsafe fn call<S: Simd, W: TileWork>(work: W, pixels: usize, panels: usize) {
    // Constant conditions of their own, so that no code is made for the sizes that an instruction set does not take.
    macro_rules! size {
        ($m:literal, $n:literal) => {
            if const { $m <= S::PIXELS && $n <= S::VECTORS && $n % panel_vectors::<S>() == 0 } {
                // SAFETY: the caller's.
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
        _ => {}
    }
}

/// Panels of the widest tile.
pub(crate) const fn most_panels<S: Simd>() -> usize {
    S::VECTORS / panel_vectors::<S>()
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

/// Where the `N` vectors of a tile begin in packed panels, `stride` elements apart, from `offset` in each.
///
/// # Panics
/// If `panels` does not hold `len` elements from there on in each.
#[inline(always)]
pub(crate) fn panel_pointers<S: Simd, const N: usize>(
    panels: &[f32],
    stride: usize,
    offset: usize,
    len: usize,
) -> [*const f32; N] {
    let per_panel = const { panel_vectors::<S>() };
    core::array::from_fn(|v| {
        let start = v / per_panel * stride + offset;
        panels[start..start + len][v % per_panel * S::LANES..].as_ptr()
    })
}

/// The slopes at the end of each panel of a tile, if the panels have any.
#[inline(always)]
pub(crate) fn slopes(panels: &Panels, weights: &[f32]) -> [f32; 2 * PANEL] {
    let mut slopes = [0.0; 2 * PANEL];
    if panels.slopes {
        for (slopes, panel) in slopes.chunks_mut(PANEL).zip(weights.chunks(panels.stride())) {
            slopes.copy_from_slice(&panel[panel.len() - PANEL..]);
        }
    }
    slopes
}

/// Adds `len` products to every accumulator: pixel i's element k times the weights at `weights[v] + k · step`.
///
/// # Safety
/// In [`Job::run`]. Each pixel holds `len` elements, each weight pointer `LANES` elements at each step.
#[inline(always)]
pub(crate) unsafe fn accumulate<S: Simd, const M: usize, const N: usize>(
    tile: &mut Tile<S, M, N>,
    pixels: &[*const f32; M],
    weights: &[*const f32; N],
    step: usize,
    len: usize,
) {
    let mut sums = *tile;
    for k in 0..len {
        // SAFETY: the caller's.
        unsafe {
            let w: [S::V; N] = core::array::from_fn(|v| S::load(weights[v].add(k * step)));
            for i in 0..M {
                let x = S::splat(*pixels[i].add(k));
                for v in 0..N {
                    sums[i][v] = S::mul_add(x, w[v], sums[i][v]);
                }
            }
        }
    }
    *tile = sums;
}

/// Writes the sums of one pixel to `out`, which may end within the last vector, and applies the activation.
///
/// # Safety
/// In [`Job::run`].
#[inline(always)]
pub(crate) unsafe fn finish<S: Simd, const N: usize>(
    sums: &[S::V; N],
    activation: Activation,
    slopes: &[f32],
    out: &mut [f32],
) {
    let bounds = activation.bounds();
    for (v, out) in out.chunks_mut(S::LANES).enumerate().take(N) {
        // SAFETY: the caller's; `whole` and a full chunk of `out` have `LANES` elements.
        unsafe {
            let mut sum = sums[v];
            if let Some([low, high]) = bounds {
                sum = S::at_most(S::splat(high), S::at_least(S::splat(low), sum));
            }
            if out.len() == S::LANES {
                S::store(out.as_mut_ptr(), sum);
            } else {
                let mut whole = [0.0; PANEL];
                S::store(whole.as_mut_ptr(), sum);
                out.copy_from_slice(&whole[..out.len()]);
            }
        }
    }
    if bounds.is_none() {
        // SAFETY: the caller's.
        unsafe { S::call(Apply { activation, values: out, slopes }) }
    }
}
