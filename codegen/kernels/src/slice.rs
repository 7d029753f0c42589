//! Regular sub-grids.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::slice::Slice;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[1.0, 2.0, 3.0, 4.0]), shape: RowShape::dense(1, 4, 1, 1) }; // [1, 4, 1]
//! let mut made = [0.0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! Slice { starts: [0, 3, 0], steps: [1, -2, 1] }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [4.0, 2.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut, Index, MAX_RANK};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::{Lines, for_each_line};
use super::pixels::{pixel, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A sub-grid of an image: `output[i] = input[starts[i] + i·steps[i]]`, for `[row, column, channel]`.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Slice {
    /// First index taken.
    pub starts: [usize; 3],
    /// Distance between indices taken; negative walks backwards.
    pub steps: [i64; 3],
}

/// One operand.
impl<T: Copy> RowKernel<T, T> for Slice {
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
        let (shape, out) = (input.shape, output.shape);
        for y in y {
            let row = input.row(source(self.starts[0], self.steps[0], y));
            for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
                let pixel = pixel(row, &shape, source(self.starts[1], self.steps[1], x));
                if self.steps[2] == 1 {
                    result.copy_from_slice(&pixel[self.starts[2]..][..result.len()]);
                } else {
                    for (channel, r) in result.iter_mut().enumerate() {
                        *r = pixel[source(self.starts[2], self.steps[2], channel)];
                    }
                }
            }
        }
    }
}

/// A sub-grid of a tensor of any rank: `output[i] = input[starts[i] + i·steps[i]]`, for each dimension; 0 and 1 beyond the rank.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct SliceElements {
    /// First index taken.
    pub starts: Index,
    /// Distance between indices taken; negative walks backwards.
    pub steps: [i64; MAX_RANK],
}

/// One operand.
impl<T: Copy> ElementKernel<T, T> for SliceElements {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, T>],
        _: &[Elements<'_, T>],
        output: &mut ElementsMut<'_, T>,
    ) {
        let input = Lines::new(&operands[0]);
        for_each_line(output, y, |index, axis, mut line| {
            let mut at = *index;
            for ((i, &start), &step) in at.iter_mut().zip(&self.starts).zip(&self.steps) {
                *i = source(start, step, *i);
            }
            line.copy(&input.line(&at, axis, self.steps[axis]));
        });
    }
}

/// The index taken for output index `i`; the operator's shape keeps it in the input.
#[inline]
fn source(start: usize, step: i64, i: usize) -> usize {
    start.wrapping_add_signed(step as isize * i as isize)
}
