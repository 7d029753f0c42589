//! Softmax and log-softmax.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::softmax::Softmax;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[2.0, 2.0]), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! let mut made = [0.0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! Softmax { log: false, columns: false, channels: true }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [0.5, 0.5]);
//! ```

use core::ops::Range;

use super::arch::{Job, Simd};
use super::element::{Element, PIECE};
use super::elements::{Axes, Dims, Elements, ElementsMut, Index, MAX_RANK};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::{LineMut, Lines};
use super::math;
use super::pixels::{pixel, pixel_mut, pixels, pixels_mut};
use super::reduce::{ReduceFunction, fold, fold_slice};
use super::rows::{Rows, RowsMut};

/// A softmax within each row.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Softmax {
    /// Whether the logarithm is taken.
    pub log: bool,
    /// Whether it is over the columns.
    pub columns: bool,
    /// Whether it is over the channels.
    pub channels: bool,
}

/// One operand.
impl<E: Element> RowKernel<E, E> for Softmax {
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
        let (shape, out) = (input.shape, output.shape);
        let &Softmax { log, columns, channels } = self;
        for y in y {
            let (row, result) = (input.row(y), output.row(y));
            match (columns, channels) {
                (false, true) => {
                    for (pixel, result) in pixels(row, &shape).zip(pixels_mut(result, &out)) {
                        context.isa.run(Slice { log, input: pixel, output: result });
                    }
                }
                (true, true) => context.isa.run(Slice { log, input: row, output: result }),
                // Each channel over the columns.
                _ if shape.channels == 1 => context.isa.run(Slice { log, input: row, output: result }),
                _ if shape.channels <= PIECE => {
                    context.isa.run(Columns { log, channels: shape.channels, input: row, output: result });
                }
                _ => {
                    let mut line = [0.0; PIECE];
                    for channel in 0..shape.channels {
                        let get = |x| pixel(row, &shape, x)[channel].widen();
                        if let Some(values) = line.get_mut(..shape.width) {
                            values.iter_mut().enumerate().for_each(|(x, value)| *value = get(x));
                            context.isa.run(InPlace { log, values });
                            for (x, value) in values.iter().enumerate() {
                                pixel_mut(result, &out, x)[channel] = E::narrow(*value);
                            }
                            continue;
                        }
                        let group = Group::new(log, shape.width, get);
                        for x in 0..shape.width {
                            pixel_mut(result, &out, x)[channel] = E::narrow(group.value(get(x)));
                        }
                    }
                }
            }
        }
    }
}

/// A softmax of a tensor of any rank.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SoftmaxElements {
    /// Whether the logarithm is taken.
    pub log: bool,
    /// The dimensions that it is over.
    pub axes: Axes,
}

/// One operand.
impl<E: Element> ElementKernel<E, E> for SoftmaxElements {
    #[inline]
    fn elements(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let (log, axes, input) = (self.log, self.axes.as_slice(), &operands[0]);
        let mut members = Dims { rank: axes.len(), sizes: [1; MAX_RANK] };
        let mut groups = input.seen;
        for (size, &axis) in members.sizes.iter_mut().zip(axes) {
            *size = input.seen.sizes[axis];
            groups.sizes[axis] = 1;
        }
        let row_axis = output.shape.row_axis;
        let is_made = |at: &Index| row_axis.is_none_or(|row| y.contains(&at[row]));
        let lines = Lines::new(input);
        groups.for_each(|group| {
            if row_axis.is_some_and(|row| !axes.contains(&row)) && !is_made(group) {
                return;
            }
            if let &[axis] = axes
                && row_axis != Some(axis)
            {
                let (count, line) = (members.sizes[0], lines.line(group, axis, 1));
                let mut made = LineMut::new(output, group, axis, count);
                if let (Some(input), Some(output)) = (line.slice(count), made.slice()) {
                    return context.isa.run(Slice { log, input, output });
                }
                let group = Group::new(log, count, |i| line.get(i).widen());
                let values = made.iter_mut().enumerate();
                return values.for_each(|(i, r)| *r = E::narrow(group.value(line.get(i).widen())));
            }
            let mut at = *group;
            let mut member = |i: usize| {
                for (&axis, &i) in axes.iter().zip(&members.index(i)) {
                    at[axis] = i;
                }
                at
            };
            let group_of = Group::new(log, members.elements(), |i| input.at(&member(i)).widen());
            for i in 0..members.elements() {
                let at = member(i);
                if is_made(&at) {
                    *output.at(&at) = E::narrow(group_of.value(input.at(&at).widen()));
                }
            }
        });
    }
}

/// What the elements of a group have in common.
struct Group {
    log: bool,
    largest: f32,
    /// The sum of exponentials of differences from the largest, or its logarithm.
    sum: f32,
}

impl Group {
    #[inline]
    fn new(log: bool, count: usize, mut get: impl FnMut(usize) -> f32) -> Self {
        let largest = fold(ReduceFunction::Max, count, &mut get);
        let sum = fold(ReduceFunction::Sum, count, |i| math::exp(get(i) - largest));
        Group { log, largest, sum: if log { math::log(sum) } else { sum } }
    }

    #[inline]
    fn value(&self, x: f32) -> f32 {
        if self.log { x - self.largest - self.sum } else { math::exp(x - self.largest) / self.sum }
    }
}

/// A group whose elements lie side by side.
struct Slice<'a, E> {
    log: bool,
    input: &'a [E],
    output: &'a mut [E],
}

impl<E: Element> Job for Slice<'_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Slice { log, input, output } = self;
        if input.len() > E::MAX_PIECE {
            // If there is no room for the exponentials, they are computed twice.
            let group = Group::new(log, input.len(), |i| input[i].widen());
            output.iter_mut().zip(input).for_each(|(r, x)| *r = E::narrow(group.value(x.widen())));
            return;
        }
        let (mut room, mut room_in) = ([0.0; PIECE], [0.0; PIECE]);
        // SAFETY: this is in `Job::run`, as `floats` asks.
        let (input, values) = (unsafe { E::floats::<S>(input, &mut room_in) }, E::draft(output, &mut room));
        soften(log, input, values);
        // SAFETY: this is in `Job::run`, as `keep` asks.
        unsafe { E::keep::<S>(output, &room) }
    }
}

/// Several groups whose elements lie interleaved: the channels of columns.
struct Columns<'a, E> {
    log: bool,
    /// No more than [`PIECE`].
    channels: usize,
    input: &'a [E],
    output: &'a mut [E],
}

impl<E: Element> Job for Columns<'_, E> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        let Columns { log, channels, input, output } = self;
        // As many columns as a room holds are looked at together. What they have in common is joined in the end.
        let block = PIECE / channels * channels;
        let (mut room, mut room_in) = ([0.0; PIECE], [0.0; PIECE]);
        let (mut largest, mut sums) = ([f32::NEG_INFINITY; PIECE], [0.0; PIECE]);
        for piece in input.chunks(block) {
            // SAFETY: this is in `Job::run`, as `floats` asks.
            let piece = unsafe { E::floats::<S>(piece, &mut room_in) };
            largest.iter_mut().zip(piece).for_each(|(a, &x)| *a = if x > *a { x } else { *a });
        }
        join(&mut largest[..block], channels, |a, b| if b > a { b } else { a });
        for (piece, made) in input.chunks(block).zip(output.chunks_mut(block)) {
            // SAFETY: this is in `Job::run`, as `floats` asks.
            let piece = unsafe { E::floats::<S>(piece, &mut room_in) };
            let values = E::draft(made, &mut room);
            exponentials(piece, &largest, values);
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += *value);
        }
        join(&mut sums[..block], channels, |a, b| a + b);
        if log {
            sums.iter_mut().for_each(|sum| *sum = math::log(*sum));
        }
        for (piece, made) in input.chunks(block).zip(output.chunks_mut(block)) {
            // SAFETY: this is in `Job::run`, as `floats` asks.
            let piece = unsafe { E::floats::<S>(piece, &mut room_in) };
            let values = E::draft(made, &mut room);
            if log {
                let common = largest.iter().zip(&sums);
                values.iter_mut().zip(piece).zip(common).for_each(|((r, x), (a, sum))| *r = x - a - sum);
            } else {
                // Floats are their own exponentials by now. Halves have no room for them.
                if !E::IS_FLOAT {
                    exponentials(piece, &largest, values);
                }
                values.iter_mut().zip(&sums).for_each(|(r, sum)| *r /= sum);
            }
            // SAFETY: this is in `Job::run`, as `keep` asks.
            unsafe { E::keep::<S>(made, &room) }
        }
    }
}

/// The exponentials of differences from the largest.
#[inline(always)]
fn exponentials(input: &[f32], largest: &[f32], output: &mut [f32]) {
    output.iter_mut().zip(input).zip(largest).for_each(|((r, x), a)| *r = math::exp(x - a));
}

/// Joins the elements of each channel, and makes all of them what they have in common.
#[inline(always)]
fn join(elements: &mut [f32], channels: usize, f: impl Fn(f32, f32) -> f32) {
    for at in channels..elements.len() {
        elements[at % channels] = f(elements[at % channels], elements[at]);
    }
    for at in channels..elements.len() {
        elements[at] = elements[at % channels];
    }
}

/// The softmax of some floats, in their place.
struct InPlace<'a> {
    log: bool,
    values: &'a mut [f32],
}

impl Job for InPlace<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let mut input = [0.0; PIECE];
        let input = &mut input[..self.values.len()];
        input.copy_from_slice(self.values);
        soften(self.log, input, self.values);
    }
}

/// The softmax of several floats at once.
#[inline(always)]
fn soften(log: bool, input: &[f32], output: &mut [f32]) {
    let largest = fold_slice(ReduceFunction::Max, input);
    output.iter_mut().zip(input).for_each(|(r, &x)| *r = math::exp(x - largest));
    let sum = fold_slice(ReduceFunction::Sum, output);
    if log {
        let sum = math::log(sum);
        output.iter_mut().zip(input).for_each(|(r, &x)| *r = x - largest - sum);
    } else {
        output.iter_mut().for_each(|r| *r /= sum);
    }
}
