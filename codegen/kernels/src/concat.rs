//! Concatenation: each operand is copied to its place, one call each.

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::pixels::{is_dense, pixel_mut, pixels};
use super::rows::{Rows, RowsMut};

/// The dimension of an image along which operands follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the dimensions of an image")]
pub enum ImageAxis {
    Channels,
    Rows,
    Columns,
}

/// Copies the part of output rows `y` that comes from one operand; `start` is the index along `axis` at which that
/// operand begins in the output.
#[inline]
pub fn concat(axis: ImageAxis, start: usize, y: Range<usize>, input: Rows<'_>, output: &mut RowsMut<'_>) {
    let (shape, out) = (input.shape, output.shape);
    let [first_row, first_column, first_channel] = match axis {
        ImageAxis::Channels => [0, 0, start],
        ImageAxis::Rows => [start, 0, 0],
        ImageAxis::Columns => [0, start, 0],
    };
    for y in y.start.max(first_row)..y.end.min(first_row + shape.height) {
        let (row, result) = (input.row(y - first_row), output.row(y));
        if is_dense(&shape) && is_dense(&out) && axis != ImageAxis::Channels {
            result[first_column * out.channels..][..row.len()].copy_from_slice(row);
            continue;
        }
        for (x, pixel) in pixels(row, &shape).enumerate() {
            pixel_mut(result, &out, first_column + x)[first_channel..][..shape.channels]
                .copy_from_slice(pixel);
        }
    }
}

/// Copies the part of output rows `y` that comes from one operand, which begins at `start` along
/// dimension `axis` of the output.
#[inline]
pub fn concat_elements(
    axis: usize,
    start: usize,
    y: Range<usize>,
    input: &Elements<'_>,
    output: &mut ElementsMut<'_>,
) {
    let shape = output.shape;
    input.seen.for_each(|index| {
        let mut to = *index;
        to[axis] += start;
        if shape.row_axis.is_none_or(|row| y.contains(&to[row])) {
            *output.at(&to) = input.at(index);
        }
    });
}
