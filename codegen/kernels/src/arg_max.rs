//! Index of the largest element along a dimension.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::arg_max::ArgMax;
//! use csdfc_kernels::concat::ImageAxis;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[1.0, 7.0, 5.0, 9.0, 2.0, 9.0]), shape: RowShape::dense(1, 2, 3, 1) }; // [1, 2, 3]
//! let mut made = [0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! ArgMax { axis: ImageAxis::Channels, select_last: false }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [1_i64, 0]);
//! ```

use core::ops::Range;

use super::concat::ImageAxis;
use super::elements::{Elements, ElementsMut, MAX_RANK};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::Lines;
use super::pixels::{pixel, pixel_mut};
use super::rows::{Rows, RowsMut};

/// What an index is stored as.
pub trait FromIndex: Copy {
    /// What stands where there is no index: −1.
    const NONE: Self;

    /// An index.
    fn from_index(index: usize) -> Self;
}

impl FromIndex for i64 {
    const NONE: Self = -1;

    #[inline]
    fn from_index(index: usize) -> Self {
        index as i64
    }
}

/// Exact up to 2^24.
impl FromIndex for f32 {
    const NONE: Self = -1.0;

    #[inline]
    fn from_index(index: usize) -> Self {
        index as f32
    }
}

/// The index of the largest channel of each pixel, or the column of the largest element of each channel of a row; that
/// dimension stays, with size 1.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ArgMax {
    /// The dimension.
    pub axis: ImageAxis,
    /// Whether the last of equal elements wins instead of the first.
    pub select_last: bool,
}

/// One operand.
impl<I: FromIndex> RowKernel<I> for ArgMax {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        _: &[Rows<'_>],
        output: &mut RowsMut<'_, I>,
    ) {
        let (&ArgMax { axis, select_last }, input) = (self, operands[0]);
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let (row, result) = (input.row(y), output.row(y));
            if axis == ImageAxis::Channels {
                for x in 0..shape.width {
                    let pixel = pixel(row, &shape, x);
                    pixel_mut(result, &out, x)[0] =
                        I::from_index(largest(select_last, pixel.len(), |i| pixel[i]));
                }
            } else {
                for (channel, r) in pixel_mut(result, &out, 0).iter_mut().enumerate() {
                    *r = I::from_index(largest(select_last, shape.width, |x| pixel(row, &shape, x)[channel]));
                }
            }
        }
    }
}

/// The index of the largest element along a dimension of a tensor of any rank.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ArgMaxElements {
    /// The dimension.
    pub axis: usize,
    /// Whether it stays, with size 1.
    pub keep_dims: bool,
    /// Whether the last of equal elements wins instead of the first.
    pub select_last: bool,
}

/// One operand.
impl<I: FromIndex> ElementKernel<I> for ArgMaxElements {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_, I>,
    ) {
        let (&ArgMaxElements { axis, keep_dims, select_last }, input) = (self, &operands[0]);
        let (seen, lines) = (input.seen, Lines::new(input));
        output.fill(y, |index| {
            let mut at = *index;
            if !keep_dims {
                at.copy_within(axis..MAX_RANK - 1, axis + 1);
            }
            at[axis] = 0;
            let line = lines.line(&at, axis, 1);
            I::from_index(largest(select_last, seen.sizes[axis], |i| line.get(i)))
        });
    }
}

#[inline]
fn largest(select_last: bool, count: usize, mut get: impl FnMut(usize) -> f32) -> usize {
    let (mut best, mut at) = (get(0), 0);
    for i in 1..count {
        let x = get(i);
        if x > best || (select_last && x == best) {
            (best, at) = (x, i);
        }
    }
    at
}
