//! Resampling of height and width. The place of an output coordinate in the input is a fraction of integers, so that
//! rounding loses no tie and no whole coordinate.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::resize::{Line, Resize, ResizeMode};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let resize = Resize {
//!     mode: ResizeMode::Linear,
//!     rows: Line { start: 0, step: 1, over: 1 },
//!     columns: Line { start: 0, step: 1, over: 2 }, // output column x lies at x / 2
//! };
//! let input = Rows { data: Span::new(&[1.0, 3.0]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0.0; 3];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 3, 1, 1) }; // [1, 3, 1]
//! resize.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [1.0, 2.0, 3.0]);
//! ```

use core::ops::Range;

use super::arch::{Job, Simd};
use super::element::{Element, PIECE};
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::{Lines, for_each_line_along};
use super::pixels::{pixel, pixel_mut};
use super::quantized::Requantize;
use super::rows::{Rows, RowsMut};

/// A resampling.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Resize {
    /// How the kernel makes an output element.
    pub mode: ResizeMode,
    /// Where output rows lie among input rows.
    pub rows: Line,
    /// Where output columns lie among input columns.
    pub columns: Line,
}

/// Output coordinate y lies at input coordinate `(start + y · step) / over`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Line {
    /// Where coordinate 0 lies, times `over`.
    pub start: i64,
    /// How far apart coordinates lie, times `over`; at least 0.
    pub step: i64,
    /// The divisor; at least 1, at most half of what the type holds.
    pub over: i64,
}

/// How a resize makes an output element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum ResizeMode {
    /// The nearest input element.
    Nearest(Rounding),
    /// Interpolated between the two nearest elements in each direction.
    Linear,
}

/// Rounding of a nearest-neighbour coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[allow(missing_docs, reason = "each is ONNX's nearest_mode of that name")]
pub enum Rounding {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

/// One operand, by rows.
impl<E: Element> RowKernel<E, E> for Resize {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        _: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let input = operands[0];
        if self.mode == ResizeMode::Linear {
            return context.isa.run(Linear { p: self, y, input, output });
        }
        self.copy(y, input, output);
    }
}

/// The same for bytes. An interpolated value is rounded to the nearest integer, and a tie to the even one.
impl RowKernel<u8, u8> for Resize {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        _: &[Rows<'_, u8>],
        output: &mut RowsMut<'_, u8>,
    ) {
        let input = operands[0];
        match self.mode {
            ResizeMode::Linear => context.isa.run(LinearBytes { p: self, y, input, output }),
            ResizeMode::Nearest(_) => self.copy(y, input, output),
        }
    }
}

impl Resize {
    /// Makes rows of the nearest elements.
    #[inline]
    fn copy<T: Copy>(&self, y: Range<usize>, input: Rows<'_, T>, output: &mut RowsMut<'_, T>) {
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let row = input.row(Between::new(self.mode, self.rows.place(y), shape.height).below);
            let columns = self.columns.places().map(|place| Between::new(self.mode, place, shape.width));
            let result = output.row(y);
            for (x, columns) in (0..out.width).zip(columns) {
                pixel_mut(result, &out, x).copy_from_slice(pixel(row, &shape, columns.below));
            }
        }
    }

    /// Makes elements from those around each: copies of the nearest, or `between` of four corners and their weights.
    #[inline]
    fn lines<T: Copy>(
        &self,
        y: Range<usize>,
        input: &Elements<'_, T>,
        output: &mut ElementsMut<'_, T>,
        between: impl Fn([f32; 4], [T; 4]) -> T,
    ) {
        let (from, lines) = (input.seen.sizes, Lines::new(input));
        for_each_line_along(output, 3, y, |index, mut made| {
            let rows = Between::new(self.mode, self.rows.place(index[2]), from[2]);
            let [above, beneath] = [rows.below, rows.above].map(|y| {
                let mut at = *index;
                at[2] = y;
                lines.line(&at, 3, 1)
            });
            let columns = self.columns.places().map(|place| Between::new(self.mode, place, from[3]));
            for (r, columns) in made.iter_mut().zip(columns) {
                *r = match self.mode {
                    ResizeMode::Nearest(_) => above.get(columns.below),
                    ResizeMode::Linear => {
                        let [a, c] = [above, beneath].map(|row| row.get(columns.below));
                        let [b, d] = [above, beneath].map(|row| row.get(columns.above));
                        between(columns.weights(&rows), [a, b, c, d])
                    }
                };
            }
        });
    }
}

/// Interpolated rows, as work for an instruction set.
struct Linear<'a, 'o, 'd, E> {
    p: &'a Resize,
    y: Range<usize>,
    input: Rows<'a, E>,
    output: &'o mut RowsMut<'d, E>,
}

impl<E: Element> Job for Linear<'_, '_, '_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Linear { p, y, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        let mut rooms = [[0.0; PIECE]; 5];
        let [room_a, room_b, room_c, room_d, room] = &mut rooms;
        for y in y {
            let rows = Between::new(p.mode, p.rows.place(y), shape.height);
            let (above, beneath) = (input.row(rows.below), input.row(rows.above));
            let columns = p.columns.places().map(|place| Between::new(p.mode, place, shape.width));
            let result = output.row(y);
            for (x, columns) in (0..out.width).zip(columns) {
                let weights = columns.weights(&rows);
                let [[a, b], [c, d]] =
                    [above, beneath].map(|row| [columns.below, columns.above].map(|x| pixel(row, &shape, x)));
                let mut first = 0;
                while first < out.channels {
                    let part = first..out.channels.min(first.saturating_add(E::MAX_PIECE));
                    let piece = &mut pixel_mut(result, &out, x)[part.clone()];
                    let [a, b, c, d] = [a, b, c, d].map(|pixel| &pixel[part.clone()]);
                    // SAFETY: this is in `Job::run`, as `floats` asks.
                    let (a, b, c, d) = unsafe {
                        let (a, b) = (E::floats::<S>(a, room_a), E::floats::<S>(b, room_b));
                        (a, b, E::floats::<S>(c, room_c), E::floats::<S>(d, room_d))
                    };
                    mix_all(weights, [a, b, c, d], E::draft(piece, room));
                    // SAFETY: this is in `Job::run`, as `keep` asks.
                    unsafe { E::keep::<S>(piece, room) }
                    first = part.end;
                }
            }
        }
    }
}

/// Interpolated rows of bytes, as work for an instruction set.
struct LinearBytes<'a, 'o, 'd> {
    p: &'a Resize,
    y: Range<usize>,
    input: Rows<'a, u8>,
    output: &'o mut RowsMut<'d, u8>,
}

impl Job for LinearBytes<'_, '_, '_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let LinearBytes { p, y, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let rows = Between::new(p.mode, p.rows.place(y), shape.height);
            let (above, beneath) = (input.row(rows.below), input.row(rows.above));
            let columns = p.columns.places().map(|place| Between::new(p.mode, place, shape.width));
            let result = output.row(y);
            for (x, columns) in (0..out.width).zip(columns) {
                let weights = columns.weights(&rows);
                let [[a, b], [c, d]] =
                    [above, beneath].map(|row| [columns.below, columns.above].map(|x| pixel(row, &shape, x)));
                let corners = a.iter().zip(b).zip(c.iter().zip(d));
                for (r, ((&a, &b), (&c, &d))) in pixel_mut(result, &out, x).iter_mut().zip(corners) {
                    *r = mix_bytes(weights, [a, b, c, d]);
                }
            }
        }
    }
}

/// One operand, `[N, C, H, W]`, whatever the batch.
impl<E: Element> ElementKernel<E, E> for Resize {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let between = |weights, corners: [E; 4]| E::narrow(mix(weights, corners.map(E::widen)));
        self.lines(y, &operands[0], output, between);
    }
}

/// The same for bytes.
impl ElementKernel<u8, u8> for Resize {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, u8>],
        _: &[Elements<'_, u8>],
        output: &mut ElementsMut<'_, u8>,
    ) {
        self.lines(y, &operands[0], output, mix_bytes);
    }
}

/// An input coordinate: `whole + rest / over`, where 0 ≤ rest < over.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub whole: i64,
    pub rest: i64,
    pub over: i64,
}

impl Line {
    #[inline]
    pub(crate) fn place(&self, position: usize) -> Place {
        Place::new(self.start + position as i64 * self.step, self.over)
    }

    /// The places of all coordinates, without one division per coordinate.
    #[inline]
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        let step = Place::new(self.step, self.over);
        core::iter::successors(Some(self.place(0)), move |at| {
            let (rest, over) = (at.rest + step.rest, at.over);
            let carry = i64::from(rest >= over);
            Some(Place { whole: at.whole + step.whole + carry, rest: rest - carry * over, over })
        })
    }
}

impl Place {
    #[inline]
    fn new(numerator: i64, over: i64) -> Self {
        Place { whole: numerator.div_euclid(over), rest: numerator.rem_euclid(over), over }
    }

    /// The whole coordinate that is nearest.
    #[inline]
    pub(crate) fn rounded(self, rounding: Rounding) -> i64 {
        let Place { whole, rest, over } = self;
        let up = match rounding {
            Rounding::RoundPreferFloor => 2 * rest > over,
            Rounding::RoundPreferCeil => 2 * rest >= over,
            Rounding::Floor => false,
            Rounding::Ceil => rest > 0,
        };
        whole + i64::from(up)
    }
}

/// The input elements around an output coordinate in one direction, and the distances to them. For a nearest
/// neighbour `below` is that.
struct Between {
    below: usize,
    above: usize,
    to_below: f32,
    to_above: f32,
}

impl Between {
    /// Coordinates outside read the edge.
    #[inline]
    fn new(mode: ResizeMode, place: Place, size: usize) -> Self {
        let Place { whole, rest, over } = place;
        let last = size as i64 - 1;
        if let ResizeMode::Nearest(rounding) = mode {
            let below = place.rounded(rounding).clamp(0, last) as usize;
            return Between { below, above: below, to_below: 0.5, to_above: 0.5 };
        }
        let (below, rest) = if whole < 0 { (0, 0) } else { (whole.min(last), rest) };
        let above = (below + 1).min(last);
        let [below_at, above_at] = [below, above].map(|at| at as usize);
        if below == above {
            return Between { below: below_at, above: above_at, to_below: 0.5, to_above: 0.5 };
        }
        let over = over as f32;
        let [to_below, to_above] = [rest, place.over - rest].map(|distance| distance as f32 / over);
        Between { below: below_at, above: above_at, to_below, to_above }
    }

    /// Weights of the four corners, with `self` for the columns. A corner's weight is the product of the distances to
    /// the sides opposite it.
    #[inline]
    fn weights(&self, rows: &Between) -> [f32; 4] {
        [
            self.to_above * rows.to_above,
            self.to_below * rows.to_above,
            self.to_above * rows.to_below,
            self.to_below * rows.to_below,
        ]
    }
}

#[inline]
fn mix(weights: [f32; 4], corners: [f32; 4]) -> f32 {
    weights[0] * corners[0] + weights[1] * corners[1] + weights[2] * corners[2] + weights[3] * corners[3]
}

/// [`mix`] of bytes, rounded.
#[inline(always)]
fn mix_bytes(weights: [f32; 4], corners: [u8; 4]) -> u8 {
    Requantize { zero_point: 0, low: 0, high: u8::MAX }.round(mix(weights, corners.map(f32::from)))
}

/// [`mix`] of several elements at once.
#[inline(always)]
fn mix_all(weights: [f32; 4], [a, b, c, d]: [&[f32]; 4], output: &mut [f32]) {
    let corners = a.iter().zip(b).zip(c.iter().zip(d));
    for (r, ((&a, &b), (&c, &d))) in output.iter_mut().zip(corners) {
        *r = mix(weights, [a, b, c, d]);
    }
}
