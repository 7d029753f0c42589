//! Blocks of channels become blocks of pixels, and the other way round.

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::pixels::{pixel, pixel_mut, pixels_mut};
use super::rows::{Rows, RowsMut};

/// Channels that become pixels.
#[derive(Debug, Clone, Copy)]
pub struct DepthToSpace {
    /// Side of the square of pixels that `block²` channels become.
    pub block: usize,
    /// Whether the block index varies slower than the channel (ONNX mode DCR) or faster (CRD).
    pub depth_first: bool,
}

/// Output rows `y` of depth-to-space.
#[inline]
pub fn depth_to_space<T: Copy>(
    p: &DepthToSpace,
    y: Range<usize>,
    input: Rows<'_, T>,
    output: &mut RowsMut<'_, T>,
) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        let row = input.row(y / p.block);
        for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
            let pixel = pixel(row, &shape, x / p.block);
            let within = y % p.block * p.block + x % p.block;
            if p.depth_first {
                result.copy_from_slice(&pixel[within * out.channels..][..out.channels]);
            } else {
                let every = pixel[within..].iter().step_by(p.block * p.block);
                result.iter_mut().zip(every).for_each(|(r, &x)| *r = x);
            }
        }
    }
}

/// Output rows `y` of depth-to-space of `[N, C, H, W]`, whatever the batch.
#[inline]
pub fn depth_to_space_elements<T: Copy>(
    p: &DepthToSpace,
    y: Range<usize>,
    input: &Elements<'_, T>,
    output: &mut ElementsMut<'_, T>,
) {
    let channels = output.shape.dims.sizes[1];
    output.fill(y, |index| {
        let &[n, channel, y, x, ..] = index;
        let within = y % p.block * p.block + x % p.block;
        let channel =
            if p.depth_first { within * channels + channel } else { channel * p.block * p.block + within };
        input.at(&[n, channel, y / p.block, x / p.block, 0, 0])
    });
}

/// Output rows `y` of space-to-depth with squares of `block` pixels.
#[inline]
pub fn space_to_depth<T: Copy>(
    block: usize,
    y: Range<usize>,
    input: Rows<'_, T>,
    output: &mut RowsMut<'_, T>,
) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        for i in 0..block {
            let (row, result) = (input.row(y * block + i), output.row(y));
            for x in 0..out.width {
                let part = i * block * shape.channels;
                let result = &mut pixel_mut(result, &out, x)[part..][..block * shape.channels];
                for (j, result) in result.chunks_exact_mut(shape.channels).enumerate() {
                    result.copy_from_slice(pixel(row, &shape, x * block + j));
                }
            }
        }
    }
}

/// Output rows `y` of space-to-depth of `[N, C, H, W]`, whatever the batch.
#[inline]
pub fn space_to_depth_elements<T: Copy>(
    block: usize,
    y: Range<usize>,
    input: &Elements<'_, T>,
    output: &mut ElementsMut<'_, T>,
) {
    let channels = input.seen.sizes[1];
    output.fill(y, |index| {
        let &[n, channel, y, x, ..] = index;
        let within = channel / channels;
        input.at(&[n, channel % channels, y * block + within / block, x * block + within % block, 0, 0])
    });
}
