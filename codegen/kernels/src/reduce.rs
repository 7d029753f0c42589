//! Reductions over whole dimensions.
//!
//! A long sum is made of sums of parts, so that its rounding error grows with the square root of its length at worst;
//! the parts and their order depend on the lengths of the dimensions alone.

use core::ops::Range;

use crate::elements::{Dims, Elements, ElementsMut, MAX_RANK};
use crate::math;
use crate::pixels::{is_dense, pixel, pixel_mut};
use crate::rows::{Rows, RowsMut};

/// A reduction, by its ONNX definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
const LANES: usize = 16;

/// Output rows `y` of a reduction within each row: over its columns, its channels, or both, which stay as dimensions of
/// size 1.
#[inline]
pub fn reduce_rows(
    function: ReduceFunction,
    columns: bool,
    channels: bool,
    y: Range<usize>,
    input: Rows<'_>,
    output: &mut RowsMut<'_>,
) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        let (row, result) = (input.row(y), output.row(y));
        match (columns, channels) {
            (false, _) => {
                for x in 0..shape.width {
                    let pixel = pixel(row, &shape, x);
                    let result = pixel_mut(result, &out, x);
                    if channels {
                        result[0] = fold_slice(function, pixel);
                    } else {
                        result.iter_mut().zip(pixel).for_each(|(r, &x)| *r = fold_slice(function, &[x]));
                    }
                }
            }
            (true, false) => {
                let rows = Planes { rows: 1, columns: shape.width, row: |_| row };
                rows.reduce(function, &shape, pixel_mut(result, &out, 0));
            }
            (true, true) if is_dense(&shape) => pixel_mut(result, &out, 0)[0] = fold_slice(function, row),
            (true, true) => {
                let at = |i: usize| pixel(row, &shape, i / shape.channels)[i % shape.channels];
                pixel_mut(result, &out, 0)[0] = fold(function, shape.width * shape.channels, at);
            }
        }
    }
}

/// Reduction of every channel over all rows and columns: global pooling. The output is one pixel.
#[inline]
pub fn reduce_frame(function: ReduceFunction, input: Rows<'_>, output: &mut RowsMut<'_>) {
    let (shape, out) = (input.shape, output.shape);
    let frame = Planes { rows: shape.height, columns: shape.width, row: |y| input.row(y) };
    frame.reduce(function, &shape, pixel_mut(output.row(0), &out, 0));
}

/// Output rows `y` of a reduction over `axes`, ascending,.
#[inline]
pub fn reduce_elements(
    function: ReduceFunction,
    axes: &[usize],
    keep_dims: bool,
    y: Range<usize>,
    input: &Elements<'_>,
    output: &mut ElementsMut<'_>,
) {
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
    let count = reduced.elements();
    output.fill(y, |index| {
        let mut at = [0; MAX_RANK];
        for (&axis, &i) in kept[..rank].iter().zip(index) {
            at[axis] = i;
        }
        fold(function, count, |i| {
            for (&axis, &i) in axes.iter().zip(&reduced.index(i)) {
                at[axis] = i;
            }
            input.at(&at)
        })
    });
}

/// The channels of many pixels, reduced channel by channel.
struct Planes<F> {
    rows: usize,
    columns: usize,
    row: F,
}

impl<'a, F: Fn(usize) -> &'a [f32]> Planes<F> {
    #[inline]
    fn reduce(&self, function: ReduceFunction, shape: &crate::rows::RowShape, output: &mut [f32]) {
        let count = self.rows * self.columns;
        for (block, output) in output.chunks_mut(LANES).enumerate() {
            let mut shift = [0.0; LANES];
            let shift = &mut shift[..output.len()];
            if function == ReduceFunction::LogSumExp {
                self.fold(ReduceFunction::Max, shape, block * LANES, &[0.0; LANES], shift);
                shift.iter_mut().for_each(|s| *s = finite(*s));
            }
            let mut total = [0.0; LANES];
            let total = &mut total[..output.len()];
            self.fold(function, shape, block * LANES, shift, total);
            for ((r, &total), &shift) in output.iter_mut().zip(&*total).zip(&*shift) {
                *r = function.finish(total, count, shift);
            }
        }
    }

    #[inline]
    fn fold(
        &self,
        function: ReduceFunction,
        shape: &crate::rows::RowShape,
        channel: usize,
        shift: &[f32],
        total: &mut [f32],
    ) {
        total.fill(function.start());
        for y in 0..self.rows {
            let row = (self.row)(y);
            let mut part = [function.start(); LANES];
            let part = &mut part[..total.len()];
            for x in 0..self.columns {
                let pixel = &pixel(row, shape, x)[channel..][..part.len()];
                for ((r, &x), &shift) in part.iter_mut().zip(pixel).zip(shift) {
                    *r = function.step(*r, x, shift);
                }
            }
            for (r, &part) in total.iter_mut().zip(&*part) {
                *r = function.join(*r, part);
            }
        }
    }
}

/// The reduction of a slice.
#[inline]
pub(crate) fn fold_slice(function: ReduceFunction, values: &[f32]) -> f32 {
    fold(function, values.len(), |i| values[i])
}

/// The reduction of `get(0)`, …, `get(count − 1)`.
#[inline]
pub(crate) fn fold(function: ReduceFunction, count: usize, mut get: impl FnMut(usize) -> f32) -> f32 {
    let shift = match function {
        ReduceFunction::LogSumExp => finite(fold_shifted(ReduceFunction::Max, count, 0.0, &mut get)),
        _ => 0.0,
    };
    function.finish(fold_shifted(function, count, shift, &mut get), count, shift)
}

/// Element i joins lane i mod [`LANES`] of its block; then lanes join, and blocks.
#[inline]
fn fold_shifted(
    function: ReduceFunction,
    count: usize,
    shift: f32,
    get: &mut impl FnMut(usize) -> f32,
) -> f32 {
    const BLOCK: usize = 64 * LANES;
    let mut total = function.start();
    let mut start = 0;
    while start < count {
        let end = count.min(start + BLOCK);
        let mut lanes = [function.start(); LANES];
        while start + LANES <= end {
            for (lane, r) in lanes.iter_mut().enumerate() {
                *r = function.step(*r, get(start + lane), shift);
            }
            start += LANES;
        }
        for (r, i) in lanes.iter_mut().zip(start..end) {
            *r = function.step(*r, get(i), shift);
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
    #[inline]
    fn start(self) -> f32 {
        match self {
            ReduceFunction::Max => f32::NEG_INFINITY,
            ReduceFunction::Min => f32::INFINITY,
            ReduceFunction::Prod => 1.0,
            _ => 0.0,
        }
    }

    #[inline]
    fn step(self, r: f32, x: f32, shift: f32) -> f32 {
        match self {
            ReduceFunction::Mean | ReduceFunction::Sum | ReduceFunction::LogSum => r + x,
            ReduceFunction::Max | ReduceFunction::Min | ReduceFunction::Prod => self.join(r, x),
            ReduceFunction::L1 | ReduceFunction::Lp { p: 1 } => r + x.abs(),
            ReduceFunction::L2 | ReduceFunction::SumSquare | ReduceFunction::Lp { p: 2 } => r + x * x,
            ReduceFunction::LogSumExp => r + math::exp(x - shift),
            ReduceFunction::Lp { p } => r + math::pow(x.abs(), p as f32),
        }
    }

    #[inline]
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
