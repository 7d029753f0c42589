//! Reductions over whole dimensions.
//!
//! A long sum is made from sums of parts, so that its rounding error grows at worst with the square root of its length.
//! The parts and their order depend only on the lengths of the dimensions.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::reduce::{ReduceFrame, ReduceFunction};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[1.0, 10.0, 3.0, 30.0]), shape: RowShape::dense(2, 1, 2, 2) }; // [2, 1, 2]
//! let mut made = [0.0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! ReduceFrame { function: ReduceFunction::Mean }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [2.0, 20.0]);
//! ```
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use core::ops::Range;

use super::arch::{Job, Portable, Simd};
use super::element::Element;
use super::elements::{Axes, Dims, Elements, ElementsMut, MAX_RANK};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::Lines;
use super::math;
use super::pixels::{pixel, pixel_mut};
use super::rows::{RowShape, Rows, RowsMut};

/// A reduction, by its ONNX definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[allow(missing_docs, reason = "each is the ONNX reduction of that name")]
pub enum ReduceFunction {
    Mean,
    Max,
    Min,
    Sum,
    Prod,
    L1,
    L2,
    SumSquare,
    LogSum,
    LogSumExp,
    /// `(Σ |x|^p)^(1/p)`.
    Lp {
        p: i64,
    },
}

/// Elements reduced together before they join the others.
pub(crate) const LANES: usize = 16;

/// A reduction within each row: over its columns, its channels, or both, which stay as dimensions of size 1.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ReduceRows {
    /// The reduction.
    pub function: ReduceFunction,
    /// Whether it is over the columns.
    pub columns: bool,
    /// Whether it is over the channels.
    pub channels: bool,
}

/// One operand.
impl<E: Element> RowKernel<E, E> for ReduceRows {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        _: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        context.isa.run(ByRows { p: self, y, input: operands[0], output });
    }
}

/// [`ReduceRows`] as work for an instruction set.
struct ByRows<'a, 'o, 'd, E> {
    p: &'a ReduceRows,
    y: Range<usize>,
    input: Rows<'a, E>,
    output: &'o mut RowsMut<'d, E>,
}

impl<E: Element> Job for ByRows<'_, '_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let ByRows { p: &ReduceRows { function, columns, channels }, y, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let (row, result) = (input.row(y), output.row(y));
            match (columns, channels) {
                (false, _) => {
                    for x in 0..shape.width {
                        let pixel = pixel(row, &shape, x);
                        let result = pixel_mut(result, &out, x);
                        if channels {
                            result[0] = E::narrow(fold_slice(function, pixel));
                        } else {
                            let of_one = |x: E| E::narrow(fold_slice(function, &[x]));
                            result.iter_mut().zip(pixel).for_each(|(r, &x)| *r = of_one(x));
                        }
                    }
                }
                (true, false) => {
                    let rows = Planes { rows: 1, row: |_| row, shape };
                    // SAFETY: this is in `Job::run`, as `reduce` asks.
                    unsafe { rows.reduce::<S, E>(function, pixel_mut(result, &out, 0)) }
                }
                (true, true) => result[0] = E::narrow(fold_slice(function, row)),
            }
        }
    }
}

/// A reduction of every channel over all rows and columns: global pooling. The output is one pixel.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ReduceFrame {
    /// The reduction.
    pub function: ReduceFunction,
}

/// One operand.
impl<E: Element> RowKernel<E, E> for ReduceFrame {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        _: Range<usize>,
        operands: &[Rows<'_, E>],
        _: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        context.isa.run(Frame { function: self.function, input: operands[0], output });
    }
}

/// [`ReduceFrame`] as work for an instruction set.
struct Frame<'a, 'o, 'd, E> {
    function: ReduceFunction,
    input: Rows<'a, E>,
    output: &'o mut RowsMut<'d, E>,
}

impl<E: Element> Job for Frame<'_, '_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Frame { function, input, output } = self;
        let (shape, out) = (input.shape, output.shape);
        let frame = Planes { rows: shape.height, row: |y| input.row(y), shape };
        let output = pixel_mut(output.row(0), &out, 0);
        // The usual ones have loops of their own.
        // SAFETY: this is in `Job::run`, as `reduce` asks.
        unsafe {
            match function {
                ReduceFunction::Mean => frame.reduce::<S, E>(ReduceFunction::Mean, output),
                ReduceFunction::Max => frame.reduce::<S, E>(ReduceFunction::Max, output),
                function => frame.reduce::<S, E>(function, output),
            }
        }
    }
}

/// A reduction of a tensor of any rank.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ReduceElements {
    /// The reduction.
    pub function: ReduceFunction,
    /// The dimensions that are reduced.
    pub axes: Axes,
    /// Whether these stay, with size 1.
    pub keep_dims: bool,
}

/// One operand.
impl<E: Element> ElementKernel<E, E> for ReduceElements {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let (&ReduceElements { function, ref axes, keep_dims }, input) = (self, &operands[0]);
        let axes = axes.as_slice();
        let mut reduced = Dims { rank: axes.len(), sizes: [1; MAX_RANK] };
        for (size, &axis) in reduced.sizes.iter_mut().zip(axes) {
            *size = input.seen.sizes[axis];
        }
        // Dimensions of the input that are those of the output, in order.
        let mut kept = [0; MAX_RANK];
        let mut rank = 0;
        for axis in (0..input.seen.rank).filter(|axis| keep_dims || !axes.contains(axis)) {
            kept[rank] = axis;
            rank += 1;
        }
        let (count, lines) = (reduced.elements(), Lines::new(input));
        output.fill(y, |index| {
            let mut at = [0; MAX_RANK];
            for (&axis, &i) in kept[..rank].iter().zip(index) {
                at[axis] = i;
            }
            if let &[axis] = axes {
                let line = lines.line(&at, axis, 1);
                return E::narrow(match line.slice(count) {
                    Some(slice) => fold_slice(function, slice),
                    None => fold(function, count, |i| line.get(i).widen()),
                });
            }
            E::narrow(fold(function, count, |i| {
                for (&axis, &i) in axes.iter().zip(&reduced.index(i)) {
                    at[axis] = i;
                }
                input.at(&at).widen()
            }))
        });
    }
}

/// Rows of pixels whose channels are reduced channel by channel.
pub(crate) struct Planes<F> {
    /// How many rows.
    pub rows: usize,
    /// The row of an index.
    pub row: F,
    /// Their shape.
    pub shape: RowShape,
}

impl<F> Planes<F> {
    /// Reduces each channel into an element of `output`.
    ///
    /// # Safety
    /// In [`Job::run`].
    #[inline(always)]
    unsafe fn reduce<'a, S: Simd, E: Element>(&self, function: ReduceFunction, output: &mut [E])
    where
        F: Fn(usize) -> &'a [E],
    {
        let count = self.rows * self.shape.width;
        for (block, output) in output.chunks_mut(LANES).enumerate() {
            let (first, lanes) = (block * LANES, output.len());
            let mut shift = [0.0; LANES];
            // SAFETY: this is in `Job::run`: `# Safety` of this function.
            let total = unsafe {
                if function == ReduceFunction::LogSumExp {
                    shift = self.join_all::<S, E>(first, lanes, ReduceFunction::Max, |_, x| x).map(finite);
                }
                self.join_all::<S, E>(first, lanes, function, |lane, x| function.part(x, shift[lane]))
            };
            for ((r, total), shift) in output.iter_mut().zip(total).zip(shift) {
                *r = E::narrow(function.finish(total, count, shift));
            }
        }
    }

    /// Joins `part(lane, x)` of all pixels for each of `lanes` channels from `first` on: first those of a row.
    ///
    /// # Safety
    /// In [`Job::run`].
    #[inline(always)]
    unsafe fn join_all<'a, S: Simd, E: Element>(
        &self,
        first: usize,
        lanes: usize,
        function: ReduceFunction,
        part: impl Fn(usize, f32) -> f32,
    ) -> [f32; LANES]
    where
        F: Fn(usize) -> &'a [E],
    {
        // A loop of constant length becomes vectors.
        // SAFETY: this is in `Job::run`: `# Safety` of this function.
        unsafe {
            match lanes {
                LANES => self.fold_lanes::<S, E>(first, LANES, function, part),
                lanes => self.fold_lanes::<S, E>(first, lanes, function, part),
            }
        }
    }

    /// The same for floats, anywhere.
    #[inline(always)]
    pub(crate) fn fold<'a>(
        &self,
        first: usize,
        lanes: usize,
        function: ReduceFunction,
        part: impl Fn(usize, f32) -> f32,
    ) -> [f32; LANES]
    where
        F: Fn(usize) -> &'a [f32],
    {
        // SAFETY: `join_all` asks for `Job::run` because of instructions, and the portable set has none but those of
        // the target.
        unsafe { self.join_all::<Portable, f32>(first, lanes, function, part) }
    }

    /// As [`Planes::join_all`], which knows the number of lanes when it is compiled.
    ///
    /// # Safety
    /// In [`Job::run`].
    #[inline(always)]
    unsafe fn fold_lanes<'a, S: Simd, E: Element>(
        &self,
        first: usize,
        lanes: usize,
        function: ReduceFunction,
        part: impl Fn(usize, f32) -> f32,
    ) -> [f32; LANES]
    where
        F: Fn(usize) -> &'a [E],
    {
        let mut total = [function.start(); LANES];
        let mut room = [0.0; LANES];
        for y in 0..self.rows {
            let row = (self.row)(y);
            let mut sums = [function.start(); LANES];
            for x in 0..self.shape.width {
                let pixel = &pixel(row, &self.shape, x)[first..][..lanes];
                // SAFETY: this is in `Job::run`: `# Safety` of this function.
                let pixel = unsafe { E::floats::<S>(pixel, &mut room) };
                for (lane, (r, &x)) in sums.iter_mut().zip(pixel).enumerate() {
                    *r = function.join(*r, part(lane, x));
                }
            }
            for (r, sum) in total.iter_mut().zip(sums) {
                *r = function.join(*r, sum);
            }
        }
        total
    }
}

/// The reduction of a slice.
#[inline(always)]
pub(crate) fn fold_slice<E: Element>(function: ReduceFunction, values: &[E]) -> f32 {
    fold(function, values.len(), |i| values[i].widen())
}

/// The reduction of `get(0)`, …, `get(count − 1)`.
#[inline(always)]
pub(crate) fn fold(function: ReduceFunction, count: usize, mut get: impl FnMut(usize) -> f32) -> f32 {
    let shift = match function {
        ReduceFunction::LogSumExp => finite(join(ReduceFunction::Max, count, &mut get)),
        _ => 0.0,
    };
    function.finish(join(function, count, |i| function.part(get(i), shift)), count, shift)
}

/// Joins parts: part i joins lane i mod [`LANES`] of its block; then lanes join, and blocks.
#[inline(always)]
fn join(function: ReduceFunction, count: usize, mut part: impl FnMut(usize) -> f32) -> f32 {
    const BLOCK: usize = 64 * LANES;
    let mut total = function.start();
    let mut start = 0;
    while start < count {
        let end = count.min(start + BLOCK);
        let mut lanes = [function.start(); LANES];
        while start + LANES <= end {
            for (lane, r) in lanes.iter_mut().enumerate() {
                *r = function.join(*r, part(start + lane));
            }
            start += LANES;
        }
        for (r, i) in lanes.iter_mut().zip(start..end) {
            *r = function.join(*r, part(i));
        }
        start = end;
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                lanes[lane] = function.join(lanes[lane], lanes[lane + width]);
            }
            width /= 2;
        }
        total = function.join(total, lanes[0]);
    }
    total
}

/// Sums of exponentials are taken of differences from the largest; where that is infinite, of the elements.
#[inline]
fn finite(largest: f32) -> f32 {
    if largest.is_finite() { largest } else { 0.0 }
}

impl ReduceFunction {
    #[inline(always)]
    fn start(self) -> f32 {
        match self {
            ReduceFunction::Max => f32::NEG_INFINITY,
            ReduceFunction::Min => f32::INFINITY,
            ReduceFunction::Prod => 1.0,
            _ => 0.0,
        }
    }

    /// The summand of an element.
    #[inline(always)]
    fn part(self, x: f32, shift: f32) -> f32 {
        match self {
            ReduceFunction::L1 | ReduceFunction::Lp { p: 1 } => x.abs(),
            ReduceFunction::L2 | ReduceFunction::SumSquare | ReduceFunction::Lp { p: 2 } => x * x,
            ReduceFunction::LogSumExp => math::exp(x - shift),
            ReduceFunction::Lp { p } => math::pow(x.abs(), p as f32),
            _ => x,
        }
    }

    #[inline(always)]
    fn join(self, a: f32, b: f32) -> f32 {
        match self {
            ReduceFunction::Max => {
                if b > a || b.is_nan() {
                    b
                } else {
                    a
                }
            }
            ReduceFunction::Min => {
                if b < a || b.is_nan() {
                    b
                } else {
                    a
                }
            }
            ReduceFunction::Prod => a * b,
            _ => a + b,
        }
    }

    #[inline]
    fn finish(self, r: f32, count: usize, shift: f32) -> f32 {
        match self {
            ReduceFunction::Mean => r / count as f32,
            ReduceFunction::L2 | ReduceFunction::Lp { p: 2 } => math::sqrt(r),
            ReduceFunction::LogSum => math::log(r),
            ReduceFunction::LogSumExp => math::log(r) + shift,
            ReduceFunction::Lp { p } if p != 1 => math::pow(r, 1.0 / p as f32),
            _ => r,
        }
    }
}
