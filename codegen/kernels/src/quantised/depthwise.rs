//! Depthwise convolution: each channel has a filter of its own, and channels lie side by side in vectors.

use core::ops::Range;

use super::super::arch::{Job, PANEL, Simd};
use super::super::conv::{Conv, inside};
use super::super::pixels::pixel;
use super::super::rows::Rows;
use super::super::shared::SharedRows;
use super::conv::QConv;
use super::panels::Panel;

/// The convolution's rows `y` and panels `tiles`.
pub(super) struct Depthwise<'a> {
    pub q: &'a QConv,
    pub y: Range<usize>,
    pub tiles: Range<usize>,
    pub input: Rows<'a, u8>,
    pub packed: &'a [u8],
    pub output: SharedRows<'a, u8>,
}

impl Job for Depthwise<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Depthwise { q, y, tiles, input, packed, output } = self;
        let Conv { kernel, stride, dilation, pads, .. } = q.conv;
        let (shape, panels) = (&input.shape, q.panels());
        for y in y {
            let rows = inside(y * stride[0], pads[0], kernel[0], dilation[0], shape.height);
            for tile in tiles.clone() {
                let first = tile * PANEL;
                let panel = Panel::of(&panels, packed, first);
                for x in 0..output.width() {
                    let columns = inside(x * stride[1], pads[1], kernel[1], dilation[1], shape.width);
                    let mut sums: [i32; PANEL] =
                        core::array::from_fn(|lane| if lane < panel.width { panel.bias(lane) } else { 0 });
                    for ky in rows.clone() {
                        let row = input.row(y * stride[0] + ky * dilation[0] - pads[0]);
                        for kx in columns.clone() {
                            let pixel = pixel(row, shape, x * stride[1] + kx * dilation[1] - pads[1]);
                            let weights = &panel.weights()[(ky * kernel[1] + kx) * panel.width..];
                            let elements = &pixel[first..][..panel.width];
                            for ((sum, &x), &weight) in sums.iter_mut().zip(elements).zip(weights) {
                                let x = i32::from(x) - i32::from(q.zero_point);
                                *sum = sum.wrapping_add(x * i32::from(weight.cast_signed()));
                            }
                        }
                    }
                    let start = output.pixel(output.start(y), x) + first;
                    // SAFETY: the caller has these elements of the output.
                    let made = unsafe { output.elements(start, panel.width) };
                    for (lane, (byte, sum)) in made.iter_mut().zip(sums).enumerate() {
                        *byte = q.requantise.apply(sum, panel.multiplier(lane));
                    }
                }
            }
        }
    }
}
