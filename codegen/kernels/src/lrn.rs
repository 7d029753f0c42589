//! Local response normalisation across channels:
//! `y = x / (bias + alpha / size · Σ x²)^beta`, the sum over `size` channels around the element's.

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::math;
use super::pixels::{pixels, pixels_mut};
use super::rows::{Rows, RowsMut};

/// A local response normalisation, by its ONNX definition.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs, reason = "each is ONNX's attribute of that name")]
pub struct Lrn {
    pub size: usize,
    pub alpha: f32,
    pub beta: f32,
    pub bias: f32,
}

/// Output rows `y` of a normalised image.
#[inline]
pub fn lrn(p: &Lrn, y: Range<usize>, input: Rows<'_>, output: &mut RowsMut<'_>) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        for (pixel, result) in pixels(input.row(y), &shape).zip(pixels_mut(output.row(y), &out)) {
            for (channel, (r, &x)) in result.iter_mut().zip(pixel).enumerate() {
                *r = p.normalise(x, pixel[p.around(channel, pixel.len())].iter().copied());
            }
        }
    }
}

/// Output rows `y` of a normalised tensor; dimension 1 counts the channels.
#[inline]
pub fn lrn_elements(p: &Lrn, y: Range<usize>, input: &Elements<'_>, output: &mut ElementsMut<'_>) {
    output.fill(y, |index| {
        let around = p.around(index[1], input.seen.sizes[1]).map(|channel| {
            let mut at = *index;
            at[1] = channel;
            input.at(&at)
        });
        p.normalise(input.at(index), around)
    });
}

impl Lrn {
    #[inline]
    fn around(&self, channel: usize, channels: usize) -> Range<usize> {
        let before = (self.size - 1) / 2;
        let after = self.size - 1 - before;
        channel.saturating_sub(before)..channels.min(channel + after + 1)
    }

    #[inline]
    fn normalise(&self, x: f32, around: impl Iterator<Item = f32>) -> f32 {
        let squares = around.fold(0.0, |sum, x| sum + x * x);
        x / self.power(self.bias + self.alpha / self.size as f32 * squares)
    }

    /// `base^beta`; the exponents of the known networks are made of square roots.
    #[inline]
    fn power(&self, base: f32) -> f32 {
        let root = math::sqrt(base);
        if self.beta == 0.75 {
            root * math::sqrt(root)
        } else if self.beta == 0.5 {
            root
        } else {
            math::pow(base, self.beta)
        }
    }
}
