//! Index of the largest element along a dimension.

use core::ops::Range;

use super::concat::ImageAxis;
use super::elements::{Elements, ElementsMut, MAX_RANK};
use super::pixels::{pixel, pixel_mut};
use super::rows::{Rows, RowsMut};

/// Output rows `y` of the index of the largest channel of each pixel, or the column of the largest element of each
/// channel of a row; that dimension stays, with size 1. Among equals the first wins, or the last.
#[inline]
pub fn arg_max(
    axis: ImageAxis,
    select_last: bool,
    y: Range<usize>,
    input: Rows<'_>,
    output: &mut RowsMut<'_, i64>,
) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        let (row, result) = (input.row(y), output.row(y));
        if axis == ImageAxis::Channels {
            for x in 0..shape.width {
                let pixel = pixel(row, &shape, x);
                pixel_mut(result, &out, x)[0] = largest(select_last, pixel.len(), |i| pixel[i]);
            }
        } else {
            for (channel, r) in pixel_mut(result, &out, 0).iter_mut().enumerate() {
                *r = largest(select_last, shape.width, |x| pixel(row, &shape, x)[channel]);
            }
        }
    }
}

/// Output rows `y` of the index of the largest element along dimension `axis`.
#[inline]
pub fn arg_max_elements(
    axis: usize,
    keep_dims: bool,
    select_last: bool,
    y: Range<usize>,
    input: &Elements<'_>,
    output: &mut ElementsMut<'_, i64>,
) {
    let seen = input.seen;
    output.fill(y, |index| {
        let mut at = *index;
        if !keep_dims {
            at.copy_within(axis..MAX_RANK - 1, axis + 1);
        }
        largest(select_last, seen.sizes[axis], |i| {
            at[axis] = i;
            input.at(&at)
        })
    });
}

#[inline]
fn largest(select_last: bool, count: usize, mut get: impl FnMut(usize) -> f32) -> i64 {
    let (mut best, mut at) = (get(0), 0);
    for i in 1..count {
        let x = get(i);
        if x > best || (select_last && x == best) {
            (best, at) = (x, i);
        }
    }
    at as i64
}
