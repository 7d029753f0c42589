//! Resampling of height and width by weights, which [`super::resize`] does not do. An output element is a weighted mean
//! of the input elements around its place, separately in each direction.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::resample::{Axis, Resample, Weight};
//! use csdfc_kernels::resize::Line;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let axis = |step| Axis { line: Line { start: 0, step, over: 2 }, reach: 1, scale: 1.0 };
//! let resample = Resample {
//!     weight: Weight::Linear,
//!     exclude_outside: false,
//!     outside: None,
//!     rows: axis(2),
//!     columns: axis(1), // output column x lies at x / 2
//! };
//! let input = Rows { data: Span::new(&[1.0, 3.0]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0.0; 3];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 3, 1, 1) }; // [1, 3, 1]
//! resample.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [1.0, 2.0, 3.0]);
//! ```

use core::ops::Range;

use super::arch::{Job, Simd};
use super::element::{Element, PIECE};
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::pixels::{pixel, pixel_mut};
use super::resize::{Line, Place, Rounding};
use super::rows::{Rows, RowsMut};

/// A resampling by weights.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Resample {
    /// The weight of an input element.
    pub weight: Weight,
    /// Whether elements outside the input have no weight. Otherwise they are the element at the edge.
    pub exclude_outside: bool,
    /// The value of places outside the input, if it does not follow from their weights.
    pub outside: Option<f32>,
    /// Where output rows lie among input rows.
    pub rows: Axis,
    /// Where output columns lie among input columns.
    pub columns: Axis,
}

/// One direction.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Axis {
    /// Where output coordinates lie.
    pub line: Line,
    /// How many elements on each side of a place may have a weight; at least 1.
    pub reach: i64,
    /// The factor of distances before they are weighed.
    pub scale: f32,
}

/// The weight of an input element, by its distance from a place.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Weight {
    /// Only the nearest element has a weight.
    Nearest(Rounding),
    /// `1 − d`, if that is above 0.
    Linear,
    /// Cubic convolution with this coefficient.
    Cubic(f32),
}

/// One operand, by rows.
impl<E: Element> RowKernel<E, E> for Resample {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        _: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        context.isa.run(ResampleRows { p: self, y, input: operands[0], output });
    }
}

/// Rows as work for an instruction set.
struct ResampleRows<'a, 'o, 'd, E> {
    p: &'a Resample,
    y: Range<usize>,
    input: Rows<'a, E>,
    output: &'o mut RowsMut<'d, E>,
}

impl<E: Element> Job for ResampleRows<'_, '_, '_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let ResampleRows { p, y, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        let (mut room, mut room_in) = ([0.0; PIECE], [0.0; PIECE]);
        for y in y {
            let rows = Taps::of(p, &p.rows, p.rows.line.place(y), shape.height);
            let result = output.row(y);
            for (x, place) in (0..out.width).zip(p.columns.line.places()) {
                let columns = Taps::of(p, &p.columns, place, shape.width);
                let result = pixel_mut(result, &out, x);
                let mut first = 0;
                while first < out.channels {
                    let part = first..out.channels.min(first.saturating_add(E::MAX_PIECE));
                    let piece = &mut result[part.clone()];
                    let sums = E::draft(piece, &mut room);
                    sums.fill(p.outside_of(&rows, &columns).unwrap_or(0.0));
                    for (y, row_weight) in rows.all() {
                        let row = input.row(y);
                        for (x, weight) in columns.all() {
                            let pixel = &pixel(row, &shape, x)[part.clone()];
                            // SAFETY: this is in `Job::run`, as `floats` asks.
                            let values = unsafe { E::floats::<S>(pixel, &mut room_in) };
                            let weight = row_weight * weight;
                            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
                        }
                    }
                    // SAFETY: this is in `Job::run`, as `keep` asks.
                    unsafe { E::keep::<S>(piece, &room) }
                    first = part.end;
                }
            }
        }
    }
}

/// One operand, `[N, C, H, W]`, whatever the batch.
impl<E: Element> ElementKernel<E, E> for Resample {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let input = &operands[0];
        let size = input.seen.sizes;
        output.fill(y, |index| {
            let rows = Taps::of(self, &self.rows, self.rows.line.place(index[2]), size[2]);
            let columns = Taps::of(self, &self.columns, self.columns.line.place(index[3]), size[3]);
            let mut sum = self.outside_of(&rows, &columns).unwrap_or(0.0);
            for (y, row_weight) in rows.all() {
                for (x, weight) in columns.all() {
                    let mut at = *index;
                    (at[2], at[3]) = (y, x);
                    sum += row_weight * weight * input.at(&at).widen();
                }
            }
            E::narrow(sum)
        });
    }
}

impl Resample {
    /// The value of a place outside, if it is given.
    #[inline]
    fn outside_of(&self, rows: &Taps, columns: &Taps) -> Option<f32> {
        self.outside.filter(|_| rows.is_outside() || columns.is_outside())
    }
}

/// The input elements that have a weight in one direction.
struct Taps {
    weight: Weight,
    /// Coordinates. Those outside stand for the edge. There are none if the place is outside.
    around: Range<i64>,
    last: i64,
    /// The place, from the first of them on.
    place: f32,
    scale: f32,
    /// The factor of weights that makes their sum 1.
    share: f32,
}

impl Taps {
    #[inline]
    fn of(p: &Resample, axis: &Axis, place: Place, size: usize) -> Self {
        let last = size as i64 - 1;
        let Place { whole, rest, over } = place;
        let around = match p.weight {
            Weight::Nearest(rounding) => {
                let nearest = place.rounded(rounding);
                nearest..nearest + 1
            }
            _ => whole + 1 - axis.reach..whole + axis.reach + 1,
        };
        let is_inside = whole >= 0 && (whole < last || whole == last && rest == 0);
        let around = match (p.outside.is_some() && !is_inside, p.exclude_outside) {
            (true, _) => 0..0,
            (false, true) => around.start.max(0)..around.end.min(last + 1),
            (false, false) => around,
        };
        let from_first = (whole - around.start) as f32 + rest as f32 / over as f32;
        let taps = Taps { weight: p.weight, around, last, place: from_first, scale: axis.scale, share: 1.0 };
        let sum: f32 = taps.weights().sum();
        Taps { share: 1.0 / sum, ..taps }
    }

    #[inline]
    fn is_outside(&self) -> bool {
        self.around.is_empty()
    }

    /// Coordinates and weights, in order.
    #[inline]
    fn all(&self) -> impl Iterator<Item = (usize, f32)> {
        let at = self.around.clone().map(|at| at.clamp(0, self.last) as usize);
        at.zip(self.weights().map(|weight| weight * self.share))
    }

    /// Weights before they are shared out.
    #[inline]
    fn weights(&self) -> impl Iterator<Item = f32> {
        let Taps { weight, place, scale, .. } = *self;
        let count = self.around.end - self.around.start;
        (0..count).map(move |i| weight.of((i as f32 - place).abs() * scale))
    }
}

impl Weight {
    /// The weight at this distance.
    #[inline]
    fn of(self, distance: f32) -> f32 {
        let d = distance;
        match self {
            Weight::Nearest(_) => 1.0,
            Weight::Linear => (1.0 - d).max(0.0),
            Weight::Cubic(a) if d < 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
            Weight::Cubic(a) if d < 2.0 => ((d - 5.0) * d + 8.0) * d * a - 4.0 * a,
            Weight::Cubic(_) => 0.0,
        }
    }
}
