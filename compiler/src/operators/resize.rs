//! Resampling of height and width.

use csdfc_codegen::operator::{Coordinates, Ratio, Resize, ResizeMode, Rounding, Scale};
use csdfc_codegen::shape::Shape;

use super::facts::{RowAccess, ShapeError, fail, image};

pub(super) fn resize_shape(resize: &Resize, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, height, width] = image(x, "resize")?;
    for (axis, size) in [height, width].into_iter().enumerate() {
        let (scale, made) = (resize.scales[axis], resize.size[axis]);
        let factor = approximate(scale);
        let length = factor * size as f64;
        // A scaled size is rounded, down or to the nearest.
        let fits = length >= 0.5 && (length - made as f64).abs() <= 1.0;
        let is_sane = (LEAST_SCALE..=1.0 / LEAST_SCALE).contains(&factor) && u32::try_from(size).is_ok();
        if !fits || !is_sane {
            return fail(format!("a resize of {size} by {scale} to {made}"));
        }
    }
    Ok(Shape::new([n, channels, resize.size[0], resize.size[1]]))
}

/// Below this, and above its reciprocal, no scale makes an image of an image.
const LEAST_SCALE: f64 = 1.0 / 4_294_967_296.0;

fn approximate(scale: Scale) -> f64 {
    match scale {
        Scale::Float(scale) => scale.into(),
        Scale::Ratio(Ratio { over, under }) => f64::from(over) / f64::from(under),
    }
}

/// One row for each output row, or the two around it. Coordinates are exact.
pub(super) fn resize_rows(resize: &Resize, [rows_in, rows_out]: [usize; 2]) -> RowAccess {
    let last = rows_in - 1;
    let (over, under) = fraction(resize.scales[0]);
    let table = (0..rows_out).map(|y| {
        let (at, unit) = source(resize.coordinates, y as i128, rows_in as i128, (over, under));
        let (below, rest) = (at.div_euclid(unit), at.rem_euclid(unit));
        let inside = |row: i128| row.clamp(0, last as i128) as usize;
        match &resize.mode {
            ResizeMode::Nearest { rounding } => {
                let up = match rounding {
                    Rounding::Floor => false,
                    Rounding::Ceil => rest > 0,
                    Rounding::RoundPreferFloor => rest * 2 > unit,
                    Rounding::RoundPreferCeil => rest * 2 >= unit,
                };
                let row = inside(below + i128::from(up));
                row..row + 1
            }
            ResizeMode::Linear => {
                let row = inside(below);
                row..(row + 2).min(rows_in)
            }
        }
    });
    RowAccess::Rows(table.collect())
}

/// Numerator and denominator of the input coordinate of output coordinate `y`, by a scale of `over / under`.
///
/// As the standard's reference implementation has it: where it takes the size of the output, that is `size · scale`, not
/// rounded.
fn source(coordinates: Coordinates, y: i128, size: i128, (over, under): (i128, i128)) -> (i128, i128) {
    if over == under {
        return (y, 1);
    }
    let middle = (2 * y + 1) * under;
    // In units of 1 / under.
    let length = size * over;
    match coordinates {
        Coordinates::PytorchHalfPixel if length == under => (0, 1),
        Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => (middle - over, 2 * over),
        // The corners are less than a pixel apart, so row 0 is the only row.
        Coordinates::AlignCorners if length <= under => (0, 1),
        Coordinates::AlignCorners => (y * (size - 1) * under, length - under),
        Coordinates::Asymmetric => (y * under, over),
        Coordinates::TfHalfPixelForNn => (middle, 2 * over),
    }
}

/// A scale that [`resize_shape`] lets pass, as a fraction.
fn fraction(scale: Scale) -> (i128, i128) {
    match scale {
        Scale::Ratio(Ratio { over, under }) => (over.into(), under.into()),
        Scale::Float(scale) => {
            // 24 bits below the least scale: a whole number, and exact.
            let under = 2f64.powi(56);
            ((f64::from(scale) * under) as i128, under as i128)
        }
    }
}
