//! Resampling of height and width.

use std::ops::RangeInclusive;

use csdfc_plan::operator::{Coordinates, Crop, Filter, Ratio, Resize, ResizeMode, Rounding, Scale};
use csdfc_plan::shape::Shape;

use super::facts::{RowAccess, ShapeError, fail, image};

pub(super) fn resize_shape(resize: &Resize, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, height, width] = image(x, "resize")?;
    for (axis, size) in [height, width].into_iter().enumerate() {
        let (scale, made) = (resize.scales[axis], resize.size[axis]);
        let factor = approximate(scale);
        let length = factor * size as f64;
        // A scaled size is rounded, down or to the nearest.
        let fits = length >= 0.5 && (length - made as f64).abs() <= 1.0;
        let is_sane = (MIN_SCALE..=1.0 / MIN_SCALE).contains(&factor) && u32::try_from(size).is_ok();
        if !fits || !is_sane {
            return fail(format!("a resize of {size} by {scale} to {made}"));
        }
    }
    if let Coordinates::TfCropAndResize(Crop { from, to, .. }) = resize.coordinates {
        let corners = from.into_iter().chain(to);
        let is_known = |corner: f32| corner == 0.0 || CORNERS.contains(&corner.abs());
        if !corners.into_iter().all(is_known) || from[0] > to[0] || from[1] > to[1] {
            return fail(format!("a resize of the part from {from:?} to {to:?}"));
        }
    }
    Ok(Shape::new([n, channels, resize.size[0], resize.size[1]]))
}

/// Below this, and above its reciprocal, no scale makes an image of an image.
const MIN_SCALE: f64 = 1.0 / 4_294_967_296.0;

/// A sample for each place, of each channel.
pub(super) fn grid_sample_shape(inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let [x, places] = inputs else {
        return fail("a grid_sample reads an image or a volume, and places".into());
    };
    match (&x.dims[..], &places.dims[..]) {
        ([n, channels, _, _], [batch, made @ .., 2]) | ([n, channels, _, _, _], [batch, made @ .., 3])
            if n == batch && made.len() + 2 == x.dims.len() =>
        {
            Ok(Shape::new([&[*n, *channels], made].concat()))
        }
        _ => fail(format!("a grid_sample of {x} at the places of {places}")),
    }
}

/// The range of the distance between a corner of a crop and the image's first pixel, unless it is 0. Within it,
/// fractions have few bits.
const CORNERS: RangeInclusive<f32> = 1.0 / 65536.0..=65536.0;

fn approximate(scale: Scale) -> f64 {
    match scale {
        Scale::Float(scale) => scale.into(),
        Scale::Ratio(Ratio { over, under }) => f64::from(over) / f64::from(under),
    }
}

/// One row for each output row, or those around it. Coordinates are exact.
pub(super) fn resize_rows(resize: &Resize, [rows_in, rows_out]: [usize; 2]) -> RowAccess {
    let last = rows_in - 1;
    let (over, under) = fraction(resize.scales[0]);
    let table = (0..rows_out).map(|y| {
        let (at, unit) = source(resize, y as i128, rows_in as i128, (over, under));
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
            ResizeMode::Filter(filter) => {
                let reach = reach(filter, (over, under));
                inside(below + 1 - reach)..inside(below + reach) + 1
            }
        }
    });
    RowAccess::Rows(table.collect())
}

/// How many elements on each side have a weight, by a scale of `over / under`.
fn reach(filter: &Filter, (over, under): (i128, i128)) -> i128 {
    let radius = if filter.cubic.is_some() { 2 } else { 1 };
    if filter.antialias && over < under { -(-radius * under).div_euclid(over) } else { radius }
}

/// Numerator and denominator of the input coordinate of output coordinate `y`, by a scale of `over / under`.
///
/// As in the standard's reference implementation, the size of the output is `size · scale` here, not rounded.
fn source(resize: &Resize, y: i128, size: i128, (over, under): (i128, i128)) -> (i128, i128) {
    let is_crop = matches!(resize.coordinates, Coordinates::TfCropAndResize(_));
    if !is_crop && over == under {
        return (y, 1);
    }
    let middle = (2 * y + 1) * under;
    // In units of 1 / under.
    let length = size * over;
    match resize.coordinates {
        Coordinates::PytorchHalfPixel if length == under => (0, 1),
        Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => (middle - over, 2 * over),
        // The corners are less than a pixel apart, so row 0 is the only row.
        Coordinates::AlignCorners if length <= under => (0, 1),
        Coordinates::AlignCorners => (y * (size - 1) * under, length - under),
        Coordinates::Asymmetric => (y * under, over),
        Coordinates::TfHalfPixelForNn => (middle, 2 * over),
        Coordinates::HalfPixelSymmetric => {
            (middle - over + length - resize.size[0] as i128 * under, 2 * over)
        }
        Coordinates::TfCropAndResize(Crop { from, to, .. }) => {
            // Whole numbers: 24 bits from 2^-16 up.
            let [from, to] = [from[0], to[0]].map(|at| (f64::from(at) * 2f64.powi(40)) as i128);
            let (part, parts) = if resize.size[0] > 1 { (y, resize.size[0] as i128 - 1) } else { (1, 2) };
            ((size - 1) * (from * parts + (to - from) * part), parts << 40)
        }
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
