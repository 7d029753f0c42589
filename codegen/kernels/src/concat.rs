//! Concatenation: each operand is copied to its place.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::concat::{Concat, ImageAxis};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let shape = RowShape::dense(1, 2, 1, 1); // [1, 2, 1]
//! let [a, b] = [&[1.0, 2.0], &[3.0, 4.0]].map(|data| Rows { data: Span::new(data), shape });
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 2, 1) }; // [1, 2, 2]
//! let concat = Concat { axis: ImageAxis::Channels };
//! concat.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[a, b], &[], &mut output);
//! assert_eq!(made, [1.0, 3.0, 2.0, 4.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::{LineMut, Lines, line_axis};
use super::pixels::{pixel_mut, pixels};
use super::rows::{Rows, RowsMut};

/// The dimension of an image along which operands follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[allow(missing_docs, reason = "the dimensions of an image")]
pub enum ImageAxis {
    Channels,
    Rows,
    Columns,
}

/// Images one after another.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Concat {
    /// The dimension along which they follow each other.
    pub axis: ImageAxis,
}

/// Any number of operands.
impl<T: Copy> RowKernel<T, T> for Concat {
    // Inlined, its loops would be unrolled anew for each layer.
    #[inline(never)]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, T>],
        _: &[Rows<'_, T>],
        output: &mut RowsMut<'_, T>,
    ) {
        let mut start = 0;
        for &operand in operands {
            copy_image(self.axis, start, y.clone(), operand, output);
            start += match self.axis {
                ImageAxis::Channels => operand.shape.channels,
                ImageAxis::Rows => operand.shape.height,
                ImageAxis::Columns => operand.shape.width,
            };
        }
    }
}

/// Copies the part of output rows `y` that comes from one operand; `start` is the index along `axis` at which that
/// operand begins in the output.
#[inline]
pub fn copy_image<T: Copy>(
    axis: ImageAxis,
    start: usize,
    y: Range<usize>,
    input: Rows<'_, T>,
    output: &mut RowsMut<'_, T>,
) {
    let (shape, out) = (input.shape, output.shape);
    let [first_row, first_column, first_channel] = match axis {
        ImageAxis::Channels => [0, 0, start],
        ImageAxis::Rows => [start, 0, 0],
        ImageAxis::Columns => [0, start, 0],
    };
    for y in y.start.max(first_row)..y.end.min(first_row + shape.height) {
        let (row, result) = (input.row(y - first_row), output.row(y));
        if axis != ImageAxis::Channels {
            result[first_column * out.channels..][..row.len()].copy_from_slice(row);
            continue;
        }
        for (x, pixel) in pixels(row, &shape).enumerate() {
            pixel_mut(result, &out, first_column + x)[first_channel..][..shape.channels]
                .copy_from_slice(pixel);
        }
    }
}

/// Tensors of any rank one after another.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ConcatElements {
    /// The dimension along which they follow each other.
    pub axis: usize,
}

/// Any number of operands.
impl<T: Copy> ElementKernel<T, T> for ConcatElements {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, T>],
        _: &[Elements<'_, T>],
        output: &mut ElementsMut<'_, T>,
    ) {
        let mut start = 0;
        for operand in operands {
            copy_elements(self.axis, start, y.clone(), operand, output);
            start += operand.seen.sizes[self.axis];
        }
    }
}

/// Copies the part of output rows `y` that comes from one operand, which begins at `start` along
/// dimension `axis` of the output.
#[inline]
pub fn copy_elements<T: Copy>(
    axis: usize,
    start: usize,
    y: Range<usize>,
    input: &Elements<'_, T>,
    output: &mut ElementsMut<'_, T>,
) {
    let (rows, mut dims, input) = (output.shape.row_axis, input.seen, Lines::new(input));
    let along = line_axis(&dims, rows);
    let count = core::mem::replace(&mut dims.sizes[along], 1);
    dims.for_each(|index| {
        let mut to = *index;
        to[axis] += start;
        if rows.is_none_or(|row| y.contains(&to[row])) {
            LineMut::new(output, &to, along, count).copy(&input.line(index, along, 1));
        }
    });
}
