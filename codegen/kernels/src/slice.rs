//! Regular sub-grids.

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::pixels::{pixel, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A sub-grid of an image: `output[i] = input[starts[i] + i·steps[i]]`, for `[row, column, channel]`.
#[derive(Debug, Clone, Copy)]
pub struct Slice {
    /// First index taken.
    pub starts: [usize; 3],
    /// Distance between indices taken; negative walks backwards.
    pub steps: [i64; 3],
}

/// Output rows `y` of a sub-grid of an image.
#[inline]
pub fn slice<T: Copy>(p: &Slice, y: Range<usize>, input: Rows<'_, T>, output: &mut RowsMut<'_, T>) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        let row = input.row(source(p.starts[0], p.steps[0], y));
        for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
            let pixel = pixel(row, &shape, source(p.starts[1], p.steps[1], x));
            if p.steps[2] == 1 {
                result.copy_from_slice(&pixel[p.starts[2]..][..result.len()]);
            } else {
                for (channel, r) in result.iter_mut().enumerate() {
                    *r = pixel[source(p.starts[2], p.steps[2], channel)];
                }
            }
        }
    }
}

/// Output rows `y` of a sub-grid, with a start and a step for each dimension.
#[inline]
pub fn slice_elements<T: Copy>(
    starts: &[usize],
    steps: &[i64],
    y: Range<usize>,
    input: &Elements<'_, T>,
    output: &mut ElementsMut<'_, T>,
) {
    output.fill(y, |index| {
        let mut at = *index;
        for ((i, &start), &step) in at.iter_mut().zip(starts).zip(steps) {
            *i = source(start, step, *i);
        }
        input.at(&at)
    });
}

/// The index taken for output index `i`; the operator's shape keeps it in the input.
#[inline]
fn source(start: usize, step: i64, i: usize) -> usize {
    start.wrapping_add_signed(step as isize * i as isize)
}
