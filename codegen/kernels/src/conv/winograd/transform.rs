//! The transforms of an axis, as sums of vectors.
//!
//! A tile is a polynomial that is known by its values at 0, ±p for each pair of points, and ∞ (Toom and Cook; Lavin and
//! Gray, "Fast Algorithms for Convolutional Neural Networks", 2016). Both values of a pair come from the same two sums,
//! one over the even and one over the odd elements. So its points determine a transform. A tile of a elements takes the
//! first (a − 2) / 2 pairs.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::winograd::transform::{filter_factor, polynomial};
//!
//! // F(2, 3): a tile has four values, from the points 0, 1, −1 and infinity.
//! assert_eq!([0, 1, 2].map(|tap| filter_factor(4, 3, 1, tap)), [0.5, 0.5, 0.5]);
//! // x − 1, in powers of x from 0 on.
//! assert_eq!(polynomial(1, None), [-1.0, 1.0, 0.0, 0.0]);
//! ```
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]
#![allow(clippy::needless_range_loop, reason = "rows and columns of one matrix of vectors")]

use super::super::super::arch::{Job, PANEL, Simd};

/// The points ±p of tiles, in the order in which larger tiles take them.
const POINTS: [f64; 3] = [1.0, 2.0, 0.5];

/// Pairs of points of a tile of `a` elements.
const fn pairs(a: usize) -> usize {
    a.saturating_sub(2) / 2
}

/// The coefficients, from that of x⁰ on, of Π (x − p²) over the first `pairs` points except `without`.
pub const fn polynomial(pairs: usize, without: Option<usize>) -> [f64; 4] {
    let mut made = [1.0, 0.0, 0.0, 0.0];
    let mut j = 0;
    while j < pairs {
        let is_left_out = matches!(without, Some(without) if without == j);
        if !is_left_out {
            let square = POINTS[j] * POINTS[j];
            let mut l = 3;
            while l > 0 {
                made[l] = made[l - 1] - square * made[l];
                l -= 1;
            }
            made[0] *= -square;
        }
        j += 1;
    }
    made
}

/// The factors of the filter's transform, G: the factor with which element `tap` of a filter of `taps` enters value
/// `at` of `a`.
pub fn filter_factor(a: usize, taps: usize, at: usize, tap: usize) -> f64 {
    let pairs = pairs(a);
    if at == 0 {
        return if tap == 0 { 1.0 / polynomial(pairs, None)[0] } else { 0.0 };
    }
    if at == a - 1 {
        return if tap == taps - 1 { 1.0 } else { 0.0 };
    }
    // A value at a point is divided by Π (point − q) over all other finite points q (Lagrange). For ±p these are 0, ∓p
    // and the pairs that are left, so it is 2 p² Π (p² − q²) for both.
    let j = (at - 1) / 2;
    let point = if at % 2 == 1 { POINTS[j] } else { -POINTS[j] };
    let square = point * point;
    let others = polynomial(pairs, Some(j)).iter().rev().fold(0.0, |sum, factor| sum * square + factor);
    (0..tap).fold(1.0 / (2.0 * square * others), |power, _| power * point)
}

/// Σ factor_l · d[first + 2 l] for l up to `degree`, whose factor is 1.
///
/// # Safety
/// In [`Job::run`].
#[inline(always)]
unsafe fn every_other<S: Simd, const A: usize>(
    d: &[S::V; A],
    first: usize,
    factors: &[f64; 4],
    degree: usize,
) -> S::V {
    let mut sum = d[first + 2 * degree];
    for l in 0..degree {
        // SAFETY: this is in `Job::run`: `# Safety` of this function.
        sum = unsafe { S::mul_add(S::splat(factors[l] as f32), d[first + 2 * l], sum) };
    }
    sum
}

/// The input's transform, Bᵀ d.
///
/// # Safety
/// In [`Job::run`].
#[inline(always)]
unsafe fn forward<S: Simd, const A: usize>(d: &[S::V; A]) -> [S::V; A] {
    let count = const { pairs(A) };
    let mut made = *d;
    // SAFETY: this is in `Job::run`: `# Safety` of this function.
    unsafe {
        // The row of Bᵀ for a point has the coefficients of Π (x − q) over all other finite points q. For 0 this is Π
        // (x² − p²), and for ∞ it is x Π (x² − p²): even and odd elements alone. For ±p_j it is (x² ± p_j x) Π (x² −
        // p²) over the pairs that are left.
        let all = const { polynomial(pairs(A), None) };
        made[0] = every_other::<S, A>(d, 0, &all, count);
        made[A - 1] = every_other::<S, A>(d, 1, &all, count);
        for j in 0..count {
            let others = const {
                [polynomial(pairs(A), Some(0)), polynomial(pairs(A), Some(1)), polynomial(pairs(A), Some(2))]
            };
            let even = every_other::<S, A>(d, 2, &others[j], count - 1);
            let odd = every_other::<S, A>(d, 1, &others[j], count - 1);
            let point = POINTS[j] as f32;
            made[1 + 2 * j] = S::mul_add(S::splat(point), odd, even);
            made[2 + 2 * j] = S::mul_add(S::splat(-point), odd, even);
        }
    }
    made
}

/// The output's transform, Aᵀ x.
///
/// # Safety
/// In [`Job::run`].
#[inline(always)]
unsafe fn backward<S: Simd, const A: usize, const M: usize>(x: &[S::V; A]) -> [S::V; M] {
    // SAFETY: this is in `Job::run`: `# Safety` of this function.
    unsafe {
        // Row i of Aᵀ has the i-th powers of the points. For 0 this is 1 in row 0 alone, and ∞ counts in the last row
        // alone. The powers of p and −p differ by their sign at most, so both values share a factor.
        let mut made = [x[0]; M];
        let mut powers = [1.0_f64; 3];
        for (i, made) in made.iter_mut().enumerate() {
            let mut sum = if i == 0 { x[0] } else { S::splat(0.0) };
            for j in 0..const { pairs(A) } {
                let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
                let both = S::mul_add(S::splat(sign), x[2 + 2 * j], x[1 + 2 * j]);
                sum = S::mul_add(S::splat(powers[j] as f32), both, sum);
                powers[j] *= POINTS[j];
            }
            *made = if i == M - 1 { S::add(sum, x[A - 1]) } else { sum };
        }
        made
    }
}

/// The vectors of tiles of so many channels: the tile and the first channel of each.
#[inline(always)]
fn places<S: Simd>(tiles: usize, channels: usize) -> impl Iterator<Item = (usize, usize)> {
    let vectors = channels.div_ceil(S::LANES);
    (0..tiles * vectors).map(move |at| (at / vectors, at % vectors * S::LANES))
}

/// Copies 16 channels or fewer of pixels, which are `strides` apart from each other.
pub(super) struct Move<'a> {
    pub from: &'a [f32],
    pub to: &'a mut [f32],
    pub strides: [usize; 2],
    pub pixels: usize,
    pub channels: usize,
}

impl Job for Move<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Move { from, to, strides, pixels, channels } = self;
        let reach = |stride: usize| pixels.saturating_sub(1) * stride + channels;
        assert!(reach(strides[0]) <= from.len() && reach(strides[1]) <= to.len(), "pixels");
        for x in 0..pixels {
            for lane in (0..channels).step_by(S::LANES) {
                let left = channels - lane;
                // SAFETY: this is in `Job::run`. As asserted, `channels` elements of all pixels are within the slices,
                // and no more than `left` of them are touched.
                unsafe {
                    let from = from.as_ptr().add(x * strides[0] + lane);
                    let to = to.as_mut_ptr().add(x * strides[1] + lane);
                    if left >= S::LANES {
                        S::store(to, S::load(from));
                    } else {
                        S::store_masked(to, left, S::load_masked(from, left));
                    }
                }
            }
        }
    }
}

/// The transform of tiles that overlap in a block of pixels, of `ROWS` rows by `A` columns each; one row is not
/// transformed along y.
pub(super) struct Forward<'a, const ROWS: usize, const A: usize> {
    /// `[ROWS, width, 16]`: 16 channels of each pixel.
    pub block: &'a [f32],
    /// Columns of the block, and from tile to tile.
    pub width: usize,
    pub step: usize,
    pub tiles: usize,
    /// Channels that are written.
    pub channels: usize,
    /// The values of a tile are `position` elements from each other, and the tiles `tile`.
    pub to: &'a mut [f32],
    pub position: usize,
    pub tile: usize,
}

impl<const ROWS: usize, const A: usize> Job for Forward<'_, ROWS, A> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Forward { block, width, step, tiles, channels, to, position, tile } = self;
        assert!(tiles > 0 && channels <= PANEL, "tiles of a block");
        assert!(((ROWS - 1) * width + (tiles - 1) * step + A) * PANEL <= block.len(), "block of pixels");
        assert!((ROWS * A - 1) * position + (tiles - 1) * tile + channels <= to.len(), "values of tiles");
        for (i, lane) in places::<S>(tiles, channels) {
            // SAFETY: this is in `Job::run`. As asserted, the slices have all 16 elements of the pixels and `channels`
            // values of all tiles, and no more than `left` of these are written.
            unsafe {
                let from = block.as_ptr().add(i * step * PANEL + lane);
                let to = to.as_mut_ptr().add(i * tile + lane);
                let mut rows = [[S::splat(0.0); A]; ROWS];
                for x in 0..A {
                    let mut column = [S::splat(0.0); ROWS];
                    for (y, value) in column.iter_mut().enumerate() {
                        *value = S::load(from.add((y * width + x) * PANEL));
                    }
                    if ROWS > 1 {
                        column = forward::<S, ROWS>(&column);
                    }
                    for y in 0..ROWS {
                        rows[y][x] = column[y];
                    }
                }
                let left = channels - lane;
                for (y, row) in rows.iter().enumerate() {
                    for (x, value) in forward::<S, A>(row).into_iter().enumerate() {
                        let to = to.add((y * A + x) * position);
                        if left >= S::LANES { S::store(to, value) } else { S::store_masked(to, left, value) }
                    }
                }
            }
        }
    }
}

/// The transform of tiles of values, of `ROWS` rows by `A` columns each, into a block of pixels, each `HIGH` by `WIDE`,
/// which lie side by side; one row is not transformed along y.
pub(super) struct Backward<'a, const ROWS: usize, const A: usize, const HIGH: usize, const WIDE: usize> {
    /// The values of a tile are `position` elements from each other, and the tiles `tile`.
    pub from: &'a [f32],
    pub position: usize,
    pub tile: usize,
    pub tiles: usize,
    /// A number for each channel, 16 or fewer, that is added.
    pub bias: &'a [f32],
    /// `[HIGH, width, 16]`: 16 channels of each pixel.
    pub block: &'a mut [f32],
    /// Columns of the block.
    pub width: usize,
}

impl<const ROWS: usize, const A: usize, const HIGH: usize, const WIDE: usize> Job
    for Backward<'_, ROWS, A, HIGH, WIDE>
{
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Backward { from, position, tile, tiles, bias, block, width } = self;
        let channels = bias.len();
        assert!(tiles > 0 && channels <= PANEL, "tiles of a block");
        assert!((ROWS * A - 1) * position + (tiles - 1) * tile + channels <= from.len(), "values of tiles");
        assert!(((HIGH - 1) * width + tiles * WIDE) * PANEL <= block.len(), "block of pixels");
        for (i, lane) in places::<S>(tiles, channels) {
            let left = channels - lane;
            // SAFETY: this is in `Job::run`. As asserted, the slices have `channels` values of all tiles and all 16
            // elements of the pixels, and no more than `left` values and biases are read.
            unsafe {
                let from = from.as_ptr().add(i * tile + lane);
                let to = block.as_mut_ptr().add(i * WIDE * PANEL + lane);
                let bias = S::load_masked(bias.as_ptr().add(lane), left);
                let mut rows = [[S::splat(0.0); WIDE]; ROWS];
                for (y, row) in rows.iter_mut().enumerate() {
                    let mut values = [S::splat(0.0); A];
                    for (x, value) in values.iter_mut().enumerate() {
                        *value = S::load_masked(from.add((y * A + x) * position), left);
                    }
                    *row = backward::<S, A, WIDE>(&values);
                }
                for x in 0..WIDE {
                    let mut column = [S::splat(0.0); HIGH];
                    if ROWS > 1 {
                        let mut values = [S::splat(0.0); ROWS];
                        for y in 0..ROWS {
                            values[y] = rows[y][x];
                        }
                        column = backward::<S, ROWS, HIGH>(&values);
                    } else {
                        column[0] = rows[0][x];
                    }
                    for (y, value) in column.into_iter().enumerate() {
                        S::store(to.add((y * width + x) * PANEL), S::add(value, bias));
                    }
                }
            }
        }
    }
}
