//! Pixels of a row.

use super::rows::RowShape;

/// The channels of pixel `x`.
#[inline]
pub(crate) fn pixel<'a, T>(row: &'a [T], shape: &RowShape, x: usize) -> &'a [T] {
    &row[x * shape.channels..][..shape.channels]
}

/// The channels of pixel `x`, to be written.
#[inline]
pub(crate) fn pixel_mut<'a, T>(row: &'a mut [T], shape: &RowShape, x: usize) -> &'a mut [T] {
    &mut row[x * shape.channels..][..shape.channels]
}

/// The channels of every pixel, in order.
#[inline]
pub(crate) fn pixels<'a, T>(row: &'a [T], shape: &RowShape) -> impl Iterator<Item = &'a [T]> {
    row.chunks_exact(shape.channels)
}

/// The channels of every pixel, to be written.
#[inline]
pub(crate) fn pixels_mut<'a, T>(row: &'a mut [T], shape: &RowShape) -> impl Iterator<Item = &'a mut [T]> {
    row.chunks_exact_mut(shape.channels)
}
