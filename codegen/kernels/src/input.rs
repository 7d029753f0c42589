//! Frames of the caller become rows, and rows become frames.

use core::ops::Range;

use super::pixels::{copy, is_dense, pixels, pixels_mut};
use super::rows::{RowShape, Rows, RowsMut};

/// Elements from one index to the next of each dimension of a frame, or of a part of it: a single row has a row stride of
/// 0, so that every row is that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameStrides {
    /// From one row to the next.
    pub row: usize,
    /// From one pixel of a row to the next.
    pub column: usize,
    /// From one channel of a pixel to the next.
    pub channel: usize,
}

impl FrameStrides {
    /// Planes of channels: `[C, H, W]`, as ONNX has images.
    pub const fn planar(height: usize, width: usize) -> Self {
        FrameStrides { row: width, column: 1, channel: height * width }
    }

    /// Rows of pixels of channels: `[H, W, C]`.
    pub const fn interleaved(width: usize, channels: usize) -> Self {
        FrameStrides { row: width * channels, column: channels, channel: 1 }
    }

    /// One row of these, alone: `[C, W]` of a planar frame, `[W, C]` of an interleaved one.
    pub const fn one_row(self, width: usize) -> Self {
        let channel = if self.channel == 1 { 1 } else { width };
        FrameStrides { row: 0, column: self.column, channel }
    }

    /// Whether rows of this shape lie in the frame as they do in the tensor.
    #[inline]
    fn has_rows_of(&self, shape: &RowShape) -> bool {
        self.channel == 1 && self.column == shape.channels && is_dense(shape)
    }
}

/// Rows `y` of a frame of floats.
#[inline]
pub fn read_frame(strides: FrameStrides, y: Range<usize>, frame: &[f32], output: &mut RowsMut<'_>) {
    let out = output.shape;
    for y in y {
        let (source, row) = (&frame[y * strides.row..], output.row(y));
        if strides.has_rows_of(&out) {
            row.copy_from_slice(&source[..row.len()]);
            continue;
        }
        for (x, pixel) in pixels_mut(row, &out).enumerate() {
            for (channel, r) in pixel.iter_mut().enumerate() {
                *r = source[x * strides.column + channel * strides.channel];
            }
        }
    }
}

/// Rows `y` written to a frame. One of [`FrameStrides::interleaved`] takes channels-last tensors, and a planar one
/// channels-first ones and views of them.
#[inline]
pub fn write_frame<T: Copy>(strides: FrameStrides, y: Range<usize>, input: Rows<'_, T>, frame: &mut [T]) {
    let shape = input.shape;
    for y in y {
        let (row, target) = (input.row(y), &mut frame[y * strides.row..]);
        if strides.has_rows_of(&shape) {
            target[..row.len()].copy_from_slice(row);
            continue;
        }
        for (x, pixel) in pixels(row, &shape).enumerate() {
            for (channel, &value) in pixel.iter().enumerate() {
                target[x * strides.column + channel * strides.channel] = value;
            }
        }
    }
}

/// Copies rows `y` of one ring to another, as from the first edge of a tensor to the others (storage model `edges`).
#[inline]
pub fn copy_rows<T: Copy>(y: Range<usize>, input: Rows<'_, T>, output: &mut RowsMut<'_, T>) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        copy(input.row(y), &shape, output.row(y), &out);
    }
}

/// How camera bytes become floats: `(byte − mean) · scale` per channel.
#[derive(Debug, Clone, Copy)]
pub struct Camera<'a> {
    /// Where the bytes are.
    pub strides: FrameStrides,
    /// Whether the bytes have their channels in reverse.
    pub reversed: bool,
    /// Subtracted from each byte, per channel of the network.
    pub mean: &'a [f32],
    /// Multiplied afterwards, per channel of the network.
    pub scale: &'a [f32],
}

/// Rows `y` of a frame of camera bytes.
#[inline]
pub fn read_camera(p: &Camera<'_>, y: Range<usize>, frame: &[u8], output: &mut RowsMut<'_>) {
    let (strides, out) = (p.strides, output.shape);
    for y in y {
        let source = &frame[y * strides.row..];
        for (x, pixel) in pixels_mut(output.row(y), &out).enumerate() {
            for (channel, r) in pixel.iter_mut().enumerate() {
                let of_byte = if p.reversed { out.channels - 1 - channel } else { channel };
                let byte = source[x * strides.column + of_byte * strides.channel];
                *r = (f32::from(byte) - p.mean[channel]) * p.scale[channel];
            }
        }
    }
}
