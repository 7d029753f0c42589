//! Pixels of a row.

use super::rows::RowShape;

/// The channels of pixel `x`.
#[inline]
pub(crate) fn pixel<'a, T>(row: &'a [T], shape: &RowShape, x: usize) -> &'a [T] {
    &row[x * shape.pixel_stride + shape.channel_offset..][..shape.channels]
}

/// The channels of pixel `x`, to be written.
#[inline]
pub(crate) fn pixel_mut<'a, T>(row: &'a mut [T], shape: &RowShape, x: usize) -> &'a mut [T] {
    &mut row[x * shape.pixel_stride + shape.channel_offset..][..shape.channels]
}

/// The channels of every pixel, in order.
#[inline]
pub(crate) fn pixels<'a, T>(row: &'a [T], shape: &RowShape) -> impl Iterator<Item = &'a [T]> {
    let (offset, channels) = (shape.channel_offset, shape.channels);
    row.chunks_exact(shape.pixel_stride).map(move |pixel| &pixel[offset..][..channels])
}

/// The channels of every pixel, to be written.
#[inline]
pub(crate) fn pixels_mut<'a, T>(row: &'a mut [T], shape: &RowShape) -> impl Iterator<Item = &'a mut [T]> {
    let (offset, channels) = (shape.channel_offset, shape.channels);
    row.chunks_exact_mut(shape.pixel_stride).map(move |pixel| &mut pixel[offset..][..channels])
}

/// Whether the pixels of a row follow each other without gaps.
#[inline]
pub(crate) fn is_dense(shape: &RowShape) -> bool {
    shape.pixel_stride == shape.channels
}

/// Copies a row of as many pixels and channels.
#[inline]
pub(crate) fn copy<T: Copy>(row: &[T], shape: &RowShape, output: &mut [T], out: &RowShape) {
    if is_dense(shape) && is_dense(out) {
        output.copy_from_slice(row);
    } else {
        pixels(row, shape).zip(pixels_mut(output, out)).for_each(|(pixel, to)| to.copy_from_slice(pixel));
    }
}
