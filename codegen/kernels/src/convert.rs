//! Images from one layout, or element, into another.
//!
//! A row of an image lies as `[W, C]` (HWC) or as `[C, W]` (HCW). An image of planes (CHW) is one row, `[C, H·W]`.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::convert::Swap;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), shape: RowShape::dense(1, 3, 2, 1) }; // [1, 3, 2]
//! let mut made = [0.0; 6];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 3, 1) }; // [1, 2, 3]
//! Swap.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
//! ```

use core::ops::Range;

use super::arch::{Job, Simd};
use super::element::{narrow_all, widen_all};
use super::half::F16;
use super::kernel::{Context, RowKernel};
use super::rows::{Rows, RowsMut};

/// Between HWC and HCW: each row of `[a, b]` becomes a row of `[b, a]`.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Swap;

/// One operand.
impl<T: Copy> RowKernel<T, T> for Swap {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, T>],
        _: &[Rows<'_, T>],
        output: &mut RowsMut<'_, T>,
    ) {
        let input = operands[0];
        let (outer, inner) = (input.shape.width, input.shape.channels);
        for y in y {
            let (from, to) = (input.row(y), output.row(y));
            for (i, elements) in from.chunks_exact(inner).enumerate() {
                for (column, element) in to.chunks_exact_mut(outer).zip(elements) {
                    column[i] = *element;
                }
            }
        }
    }
}

/// From HCW to CHW: the columns of a channel go from rows to its plane.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Scatter;

/// One operand.
impl<T: Copy> RowKernel<T, T> for Scatter {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, T>],
        _: &[Rows<'_, T>],
        output: &mut RowsMut<'_, T>,
    ) {
        let (input, plane) = (operands[0], output.shape.channels);
        let columns = input.shape.channels;
        for y in y {
            let planes = output.row(y);
            for row in 0..input.shape.height {
                for (from, to) in input.row(row).chunks_exact(columns).zip(planes.chunks_exact_mut(plane)) {
                    to[row * columns..][..columns].copy_from_slice(from);
                }
            }
        }
    }
}

/// From CHW to HCW: the columns of a channel go from its plane to rows.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Gather;

/// One operand.
impl<T: Copy> RowKernel<T, T> for Gather {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, T>],
        _: &[Rows<'_, T>],
        output: &mut RowsMut<'_, T>,
    ) {
        let (input, columns) = (operands[0], output.shape.channels);
        let (planes, plane) = (input.row(0), input.shape.channels);
        for y in y {
            for (to, from) in output.row(y).chunks_exact_mut(columns).zip(planes.chunks_exact(plane)) {
                to.copy_from_slice(&from[y * columns..][..columns]);
            }
        }
    }
}

/// From one element to another, in whatever layout: the nearest half of a float, or a half as a float.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Cast;

/// One operand.
impl RowKernel<F16, f32> for Cast {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        _: &[Rows<'_>],
        output: &mut RowsMut<'_, F16>,
    ) {
        for y in y {
            context.isa.run(Narrow(operands[0].row(y), output.row(y)));
        }
    }
}

/// One operand.
impl RowKernel<f32, F16> for Cast {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, F16>],
        _: &[Rows<'_, F16>],
        output: &mut RowsMut<'_>,
    ) {
        for y in y {
            context.isa.run(Widen(operands[0].row(y), output.row(y)));
        }
    }
}

/// Floats, and the halves that they become.
struct Narrow<'a>(&'a [f32], &'a mut [F16]);

impl Job for Narrow<'_> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        // SAFETY: this is in `Job::run`, as `narrow_all` asks.
        unsafe { narrow_all::<S>(self.0, self.1) }
    }
}

/// Halves, and the floats that they become.
struct Widen<'a>(&'a [F16], &'a mut [f32]);

impl Job for Widen<'_> {
    #[inline(always)]
    #[allow(unsafe_code, reason = "vector instructions")]
    fn run<S: Simd>(self) {
        // SAFETY: this is in `Job::run`, as `widen_all` asks.
        unsafe { widen_all::<S>(self.0, self.1) }
    }
}
