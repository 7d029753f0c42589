//! Elements of an image or a volume around places that another tensor holds.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::grid_sample::{GridSample, SampleMode, SamplePadding};
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let image = Elements::dense(&[1.0, 3.0], &[1, 1, 1, 2]);
//! let places = Elements::dense(&[0.0, 0.0], &[1, 1, 1, 2]); // the middle
//! let mut made = [0.0];
//! let mut output = ElementsMut::dense(&mut made, &[1, 1, 1, 1]);
//! let sample = GridSample { mode: SampleMode::Linear, padding: SamplePadding::Zeros, align_corners: true };
//! sample.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[image, places], &[], &mut output);
//! assert_eq!(made, [2.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel};
use super::lines::{Lines, for_each_line_along};
use super::math;

/// Samples of an image or a volume.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GridSample {
    /// How a sample is made.
    pub mode: SampleMode,
    /// The values outside.
    pub padding: SamplePadding,
    /// Whether −1 and 1 are the middles of the outermost pixels, instead of their outer edges.
    pub align_corners: bool,
}

/// How a sample is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum SampleMode {
    /// The nearest element; of two equally near ones, the even one.
    Nearest,
    /// Between the two nearest in each direction.
    Linear,
    /// Of the four nearest in each direction, by cubic convolution.
    Cubic,
}

/// The values outside an image or a volume. This applies to each element around a place; the place itself is not moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum SamplePadding {
    /// Zeros.
    Zeros,
    /// The nearest element inside.
    Border,
    /// The content, mirrored at its outermost places.
    Reflection,
}

/// Two operands: an image `[N, C, H, W]` and its places `[N, H', W', 2]`, x before y; or a volume `[N, C, D, H, W]` and its
/// places `[N, D', H', W', 3]`, x before y before z.
impl ElementKernel for GridSample {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (data, places) = (&operands[0], &operands[1]);
        let rank = data.seen.rank;
        let (places, samples) = (Lines::new(places), Lines::new(data));
        // All channels of a place are sampled alike.
        for_each_line_along(output, 1, y, |index, mut made| {
            let mut at = *index;
            at.copy_within(2..rank, 1);
            at[rank - 1] = 0;
            let place = places.line(&at, rank - 1, 1);
            let taps = |axis: usize| self.taps(place.get(rank - 1 - axis), data.seen.sizes[axis]);
            // An image is a volume of one plane.
            let planes = if rank == 5 { taps(2) } else { [(Some(0), 1.0), NONE, NONE, NONE] };
            let (rows, columns) = (taps(rank - 2), taps(rank - 1));
            for (channel, made) in made.iter_mut().enumerate() {
                let mut at = *index;
                at[1] = channel;
                *made = weighed(planes, |z| {
                    at[2] = z;
                    weighed(rows, |y| {
                        at[rank - 2] = y;
                        weighed(columns, |x| {
                            at[rank - 1] = x;
                            samples.line(&at, 1, 1).get(0)
                        })
                    })
                });
            }
        });
    }
}

/// An element of one direction, unless it is outside, and its weight.
type Tap = (Option<usize>, f32);

/// A tap that adds nothing.
const NONE: Tap = (None, 0.0);

/// The sum of these elements, weighed.
#[inline]
fn weighed(taps: [Tap; 4], mut get: impl FnMut(usize) -> f32) -> f32 {
    taps.iter().fold(0.0, |sum, (at, weight)| match at {
        Some(at) => sum + weight * get(*at),
        None => sum,
    })
}

impl GridSample {
    /// The elements of one direction that make a sample, and their weights.
    #[inline]
    fn taps(&self, place: f32, size: usize) -> [Tap; 4] {
        let length = size as f32;
        let ends = if self.align_corners { [0.0, length - 1.0] } else { [-0.5, length - 0.5] };
        let x = match self.align_corners {
            true => (place + 1.0) / 2.0 * (length - 1.0),
            false => ((place + 1.0) * length - 1.0) / 2.0,
        };
        let x = if self.mode == SampleMode::Nearest { math::round_half_even(x) } else { x };
        let at = |x: f32| match self.padding {
            SamplePadding::Zeros => (0.0..length).contains(&x).then_some(x as usize),
            SamplePadding::Border => Some(x.clamp(0.0, length - 1.0) as usize),
            SamplePadding::Reflection => Some((reflected(x, ends) as usize).min(size - 1)),
        };
        let floor = math::floor(x);
        let part = x - floor;
        match self.mode {
            SampleMode::Nearest => [(at(x), 1.0), NONE, NONE, NONE],
            SampleMode::Linear => [(at(floor), 1.0 - part), (at(floor + 1.0), part), NONE, NONE],
            SampleMode::Cubic => [-1.0, 0.0, 1.0, 2.0].map(|i| (at(floor + i), cubic((i - part).abs()))),
        }
    }
}

/// A place, mirrored at the ends until it lies between them.
#[inline]
fn reflected(x: f32, [low, high]: [f32; 2]) -> f32 {
    let range = high - low;
    let beyond = if x < low { low - x } else { x - high };
    if range <= 0.0 {
        return low;
    }
    if beyond <= 0.0 || beyond.is_nan() {
        return x;
    }
    let turns = math::floor(beyond / range);
    let rest = beyond - turns * range;
    // An even number of turns ends where it began.
    let is_even = turns - 2.0 * math::floor(turns / 2.0) == 0.0;
    if (x < low) == is_even { low + rest } else { high - rest }
}

/// The weight of an element at this distance, at most 2.
#[inline]
fn cubic(d: f32) -> f32 {
    const A: f32 = -0.75;
    match d < 1.0 {
        true => ((A + 2.0) * d - (A + 3.0)) * d * d + 1.0,
        false => ((A * d - 5.0 * A) * d + 8.0 * A) * d - 4.0 * A,
    }
}
