//! Resampling of height and width, in the 32-bit arithmetic of ONNX Runtime: another precision would round some
//! coordinates to other pixels.

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::math;
use super::pixels::{pixel, pixel_mut};
use super::rows::{Rows, RowsMut};

/// A resampling.
#[derive(Debug, Clone, Copy)]
pub struct Resize {
    /// How an output element is made.
    pub mode: ResizeMode,
    /// How an output coordinate becomes an input coordinate.
    pub coordinates: Coordinates,
    /// Scale in y and x, output over input, as the model states it.
    pub scales: [f32; 2],
}

/// How a resize makes an output element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResizeMode {
    /// The nearest input element.
    Nearest(Rounding),
    /// Between the two nearest in each direction.
    Linear,
}

/// Rounding of a nearest-neighbour coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is ONNX's nearest_mode of that name")]
pub enum Rounding {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
}

/// How a resize's output coordinate becomes an input coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is ONNX's coordinate_transformation_mode of that name")]
pub enum Coordinates {
    HalfPixel,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
}

/// Output rows `y` of a resampled image.
#[inline]
pub fn resize(p: &Resize, y: Range<usize>, input: Rows<'_>, output: &mut RowsMut<'_>) {
    let (shape, out) = (input.shape, output.shape);
    for y in y {
        let rows = Between::of(p, 0, y, shape.height, out.height);
        let above = input.row(rows.below);
        if let ResizeMode::Nearest(_) = p.mode {
            let result = output.row(y);
            for x in 0..out.width {
                let columns = Between::of(p, 1, x, shape.width, out.width);
                pixel_mut(result, &out, x).copy_from_slice(pixel(above, &shape, columns.below));
            }
            continue;
        }
        let beneath = input.row(rows.above);
        let result = output.row(y);
        for x in 0..out.width {
            let columns = Between::of(p, 1, x, shape.width, out.width);
            let weights = columns.weights(&rows);
            let [a, b] = [columns.below, columns.above].map(|x| pixel(above, &shape, x));
            let [c, d] = [columns.below, columns.above].map(|x| pixel(beneath, &shape, x));
            let corners = a.iter().zip(b).zip(c.iter().zip(d));
            for (r, ((&a, &b), (&c, &d))) in pixel_mut(result, &out, x).iter_mut().zip(corners) {
                *r = mix(weights, [a, b, c, d]);
            }
        }
    }
}

/// Output rows `y` of a resampling of `[N, C, H, W]`, whatever the batch.
#[inline]
pub fn resize_elements(p: &Resize, y: Range<usize>, input: &Elements<'_>, output: &mut ElementsMut<'_>) {
    let (from, to) = (input.seen.sizes, output.shape.dims.sizes);
    output.fill(y, |index| {
        let rows = Between::of(p, 0, index[2], from[2], to[2]);
        let columns = Between::of(p, 1, index[3], from[3], to[3]);
        let at = |y, x| {
            let mut at = *index;
            (at[2], at[3]) = (y, x);
            input.at(&at)
        };
        if let ResizeMode::Nearest(_) = p.mode {
            return at(rows.below, columns.below);
        }
        let corners = [
            at(rows.below, columns.below),
            at(rows.below, columns.above),
            at(rows.above, columns.below),
            at(rows.above, columns.above),
        ];
        mix(columns.weights(&rows), corners)
    });
}

/// The input elements around an output coordinate in one direction, and the distances to them. For a nearest
/// neighbour `below` is that.
struct Between {
    below: usize,
    above: usize,
    to_below: f32,
    to_above: f32,
}

impl Between {
    #[inline]
    fn of(p: &Resize, axis: usize, position: usize, size: usize, output_size: usize) -> Self {
        let source = source(p.coordinates, p.scales[axis], position, size, output_size);
        let last = size - 1;
        // Conversions of floats to integers saturate: what falls outside reads the edge.
        if let ResizeMode::Nearest(rounding) = p.mode {
            let below = (nearest(rounding, source) as usize).min(last);
            return Between { below, above: below, to_below: 0.5, to_above: 0.5 };
        }
        let source = if source > 0.0 { source } else { 0.0 };
        let below = (source as usize).min(last);
        let above = (below + 1).min(last);
        if below == above {
            return Between { below, above, to_below: 0.5, to_above: 0.5 };
        }
        Between {
            below,
            above,
            to_below: (source - below as f32).abs(),
            to_above: (source - above as f32).abs(),
        }
    }

    /// Weights of the four corners, with `self` for the columns: each that of the side that the coordinate is far from.
    #[inline]
    fn weights(&self, rows: &Between) -> [f32; 4] {
        [
            self.to_above * rows.to_above,
            self.to_below * rows.to_above,
            self.to_above * rows.to_below,
            self.to_below * rows.to_below,
        ]
    }
}

#[inline]
fn mix(weights: [f32; 4], corners: [f32; 4]) -> f32 {
    weights[0] * corners[0] + weights[1] * corners[1] + weights[2] * corners[2] + weights[3] * corners[3]
}

#[inline]
fn source(coordinates: Coordinates, scale: f32, position: usize, size: usize, output_size: usize) -> f32 {
    let at = position as f32;
    if scale == 1.0 {
        return at;
    }
    match coordinates {
        Coordinates::HalfPixel => (at + 0.5) / scale - 0.5,
        Coordinates::PytorchHalfPixel if output_size > 1 => (at + 0.5) / scale - 0.5,
        Coordinates::AlignCorners if output_size > 1 => at * (size - 1) as f32 / (output_size - 1) as f32,
        Coordinates::PytorchHalfPixel | Coordinates::AlignCorners => 0.0,
        Coordinates::Asymmetric => at / scale,
        Coordinates::TfHalfPixelForNn => (at + 0.5) / scale,
    }
}

#[inline]
fn nearest(rounding: Rounding, source: f32) -> f32 {
    let floor = math::floor(source);
    let fraction = source - floor;
    let up = match rounding {
        Rounding::RoundPreferFloor => fraction > 0.5,
        Rounding::RoundPreferCeil => fraction >= 0.5,
        Rounding::Floor => false,
        Rounding::Ceil => fraction > 0.0,
    };
    if up { floor + 1.0 } else { floor }
}
