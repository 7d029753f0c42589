//! The input rows from which a row of a resize is made.

use crate::operator::{Coordinates, Crop, Filter, Ratio, Resize, ResizeMode, Rounding, Scale};

use super::shape_error::{ShapeError, fail};
use super::span::Span;

/// The rows read for row `y` of `height`, out of `rows`: by ONNX's definition of Resize and its reference implementation,
/// in integers, so that nothing is rounded. The scale is one that [`scales`] lets pass.
pub(super) fn span(resize: &Resize, rows: i64, y: i64) -> Span {
    let (numerator, denominator) = parts(resize.scales[0]);
    let (rows, y) = (i128::from(rows), i128::from(y));
    // Output rows per input row are numerator / denominator; this many there would be, times the denominator.
    let stretched = numerator * rows;
    // The source is `twice / (2 · unit)`.
    let (twice, unit) = match resize.coordinates {
        Coordinates::TfCropAndResize(Crop { from, to, .. }) => {
            let ([from, to], unit) = common(from[0], to[0]);
            // The middle, if there is one row.
            let (along, corners) = match resize.size[0] {
                1 => (1, 1),
                made => (2 * y, made as i128 - 1),
            };
            ((rows - 1) * (2 * from * corners + (to - from) * along), unit * corners)
        }
        _ if numerator == denominator => (2 * y, 1),
        Coordinates::HalfPixel => ((2 * y + 1) * denominator - numerator, numerator),
        Coordinates::PytorchHalfPixel if stretched == denominator => (0, 1),
        Coordinates::PytorchHalfPixel => ((2 * y + 1) * denominator - numerator, numerator),
        Coordinates::AlignCorners if stretched > denominator => {
            (2 * y * (rows - 1) * denominator, stretched - denominator)
        }
        Coordinates::AlignCorners => (0, 1),
        Coordinates::Asymmetric => (2 * y * denominator, numerator),
        Coordinates::TfHalfPixelForNn => ((2 * y + 1) * denominator, numerator),
        // As far from the middle of the input as it is from that of the output.
        Coordinates::HalfPixelSymmetric => {
            ((2 * y + 1 - resize.size[0] as i128) * denominator + (rows - 1) * numerator, numerator)
        }
    };
    let floor = |twice: i128| twice.div_euclid(2 * unit);
    let ceil = |twice: i128| -floor(-twice);
    let last = rows - 1;
    let (from, to) = match resize.mode {
        ResizeMode::Nearest { rounding } => {
            let row = match rounding {
                Rounding::Floor => floor(twice),
                Rounding::Ceil => ceil(twice),
                // The half is taken off or added before the rounding, so that a tie becomes a whole number.
                Rounding::RoundPreferFloor => ceil(twice - unit),
                Rounding::RoundPreferCeil => floor(twice + unit),
            };
            (row.clamp(0, last), row.clamp(0, last))
        }
        ResizeMode::Filter(Filter { cubic, antialias, .. }) => {
            let radius = if cubic.is_some() { 2 } else { 1 };
            let reach = match antialias && numerator < denominator {
                true => (radius * denominator + numerator - 1).div_euclid(numerator),
                false => radius,
            };
            ((floor(twice) - reach + 1).clamp(0, last), (floor(twice) + reach).clamp(0, last))
        }
        ResizeMode::Linear => (floor(twice).clamp(0, last), (floor(twice).clamp(0, last) + 1).min(last)),
    };
    (from as i64, to as i64 + 1)
}

/// Checks that the scales take an image of height and width `from` to the sizes that the resize states, and that a crop
/// is valid.
pub(super) fn scales(resize: &Resize, from: [i128; 2]) -> Result<(), ShapeError> {
    if let Coordinates::TfCropAndResize(Crop { from, to, .. }) = resize.coordinates {
        let is_corner = |at: &f32| *at == 0.0 || (2f32.powi(-16)..=2f32.powi(16)).contains(&at.abs());
        let is_part = from.iter().zip(&to).all(|(from, to)| from <= to);
        if !is_part || !from.iter().chain(&to).all(is_corner) {
            return fail(format!("it crops from {from:?} to {to:?}"));
        }
    }
    for ((scale, size), made) in resize.scales.into_iter().zip(from).zip(resize.size) {
        let factor = match scale {
            Scale::Float(scale) => f64::from(scale),
            Scale::Ratio(Ratio { over, under }) => f64::from(over) / f64::from(under),
        };
        // ONNX rounds, down or to the nearest.
        let close = made as f64 - 1.0..=made as f64 + 1.0;
        let is_possible = (2f64.powi(-32)..=2f64.powi(32)).contains(&factor) && size < 1 << 32;
        if !is_possible || factor * (size as f64) < 0.5 || !close.contains(&(factor * size as f64)) {
            return fail(format!("it scales {size} by {scale} to {made}"));
        }
    }
    Ok(())
}

/// Two numbers as numerators of a common denominator.
fn common(a: f32, b: f32) -> ([i128; 2], i128) {
    // Corners are not below 2^-16, and have 24 bits.
    const UNIT: f64 = (1u64 << 40) as f64;
    ([a, b].map(|x| (f64::from(x) * UNIT) as i128), UNIT as i128)
}

/// Numerator and denominator of a scale.
fn parts(scale: Scale) -> (i128, i128) {
    match scale {
        Scale::Ratio(ratio) => (i128::from(ratio.over), i128::from(ratio.under)),
        Scale::Float(float) => {
            // IEEE 754: 23 bits below a leading one, times 2^(exponent − 150).
            let (exponent, fraction) = (float.to_bits() >> 23 & 0xff, float.to_bits() & 0x7f_ffff);
            let significand = i128::from(fraction + 0x80_0000);
            match exponent {
                150.. => (significand << (exponent - 150), 1),
                _ => (significand, 1 << (150 - exponent)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resize(mode: ResizeMode, coordinates: Coordinates, scale: Scale, made: usize) -> Resize {
        Resize { mode, coordinates, scales: [scale; 2], size: [made; 2] }
    }

    /// ONNX's definition in 64-bit floats. Each source is a single quotient, which is exact where a rounding decides.
    fn by_definition(resize: &Resize, [over, under]: [f64; 2], rows: usize, y: usize) -> Span {
        let (y, all) = (y as f64, rows as f64 * over);
        let made = resize.size[0] as f64;
        let is_crop = matches!(resize.coordinates, Coordinates::TfCropAndResize(_));
        let x = match resize.coordinates {
            _ if over == under && !is_crop => y,
            Coordinates::PytorchHalfPixel if all == under => 0.0,
            Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => {
                ((2.0 * y + 1.0) * under - over) / (2.0 * over)
            }
            Coordinates::AlignCorners if all > under => y * (rows as f64 - 1.0) * under / (all - under),
            Coordinates::AlignCorners => 0.0,
            Coordinates::Asymmetric => y * under / over,
            Coordinates::TfHalfPixelForNn => (2.0 * y + 1.0) * under / (2.0 * over),
            Coordinates::HalfPixelSymmetric => {
                (all - made * under + (2.0 * y + 1.0) * under - over) / (2.0 * over)
            }
            Coordinates::TfCropAndResize(Crop { from, to, .. }) if made == 1.0 => {
                (rows as f64 - 1.0) * f64::from(from[0] + to[0]) / 2.0
            }
            Coordinates::TfCropAndResize(Crop { from, to, .. }) => {
                let [from, to] = [from[0], to[0]].map(f64::from);
                (rows as f64 - 1.0) * (from * (made - 1.0) + (to - from) * y) / (made - 1.0)
            }
        };
        let last = rows as i64 - 1;
        let (x, end) = match resize.mode {
            ResizeMode::Nearest { rounding: Rounding::Floor } => (x.floor(), 1),
            ResizeMode::Nearest { rounding: Rounding::Ceil } => (x.ceil(), 1),
            ResizeMode::Nearest { rounding: Rounding::RoundPreferFloor } => ((x - 0.5).ceil(), 1),
            ResizeMode::Nearest { rounding: Rounding::RoundPreferCeil } => ((x + 0.5).floor(), 1),
            ResizeMode::Linear => (x.floor(), 2),
            ResizeMode::Filter(filter) => {
                let radius = if filter.cubic.is_some() { 2.0 } else { 1.0 };
                let reach =
                    if filter.antialias { (radius * under / over).ceil().max(radius) } else { radius };
                let ends = [x.floor() - reach + 1.0, x.floor() + reach].map(|x| (x as i64).clamp(0, last));
                return (ends[0], ends[1] + 1);
            }
        };
        let first = (x as i64).clamp(0, last);
        (first, (first + end).min(rows as i64))
    }

    #[test]
    fn rows_are_those_of_the_definition() {
        use Rounding::{Ceil, Floor, RoundPreferCeil, RoundPreferFloor};
        let nearest = [Floor, Ceil, RoundPreferFloor, RoundPreferCeil];
        let modes = nearest.map(|rounding| ResizeMode::Nearest { rounding });
        let filter =
            |cubic, antialias| ResizeMode::Filter(Filter { cubic, antialias, exclude_outside: false });
        let filters = [filter(Some(-0.5), false), filter(None, true), filter(Some(-0.75), true)];
        let modes: Vec<ResizeMode> = modes.into_iter().chain([ResizeMode::Linear]).chain(filters).collect();
        let crop = |from: f32, to: f32| {
            Coordinates::TfCropAndResize(Crop { from: [from; 2], to: [to; 2], outside: 0.0 })
        };
        let compare = |resize: &Resize, scale: [f64; 2], rows: usize, y: usize| {
            let expected = by_definition(resize, scale, rows, y);
            assert_eq!(span(resize, rows as i64, y as i64), expected, "{resize:?}, row {y} of {rows}");
        };
        for coordinates in [
            Coordinates::HalfPixel,
            Coordinates::PytorchHalfPixel,
            Coordinates::AlignCorners,
            Coordinates::Asymmetric,
            Coordinates::TfHalfPixelForNn,
            Coordinates::HalfPixelSymmetric,
            crop(0.25, 0.75),
            crop(-0.5, 1.375),
            crop(0.5, 0.5),
        ] {
            for mode in &modes {
                for (rows, made) in (1..=8).flat_map(|rows| (1..=12).map(move |made| (rows, made))) {
                    let ratio = Scale::Ratio(Ratio { over: made as u32, under: rows as u32 });
                    let resize = resize(mode.clone(), coordinates, ratio, made);
                    (0..made).for_each(|y| compare(&resize, [made as f64, rows as f64], rows, y));
                }
                // Floats count as exact fractions. Below one row, only the first row exists.
                for float in [0.125f32, 0.3, 0.75, 1.0, 1.1, 2.0, 3.0, 6.5] {
                    let made = (8.0 * float) as usize;
                    let resize = resize(mode.clone(), coordinates, Scale::Float(float), made);
                    (0..made).for_each(|y| compare(&resize, [f64::from(float), 1.0], 8, y));
                }
            }
        }
        // Where the last bit of the significand is a unit, and where it is two.
        for float in [8_388_609.0f32, 16_777_218.0] {
            let mode = ResizeMode::Nearest { rounding: Floor };
            let resize = resize(mode, Coordinates::Asymmetric, Scale::Float(float), 1);
            assert_eq!(span(&resize, 3, float as i64 - 1), (0, 1));
            assert_eq!(span(&resize, 3, float as i64), (1, 2));
            assert_eq!(span(&resize, 3, 2 * float as i64 - 1), (1, 2));
        }
    }

    #[test]
    fn crops_end_no_sooner_than_they_begin() {
        let crop = |from: f32, to: f32| {
            let crop = Crop { from: [0.0, from], to: [1.0, to], outside: 0.0 };
            let scale = Scale::Float(2.0);
            scales(&resize(ResizeMode::Linear, Coordinates::TfCropAndResize(crop), scale, 8), [4; 2]).is_ok()
        };
        assert!(crop(0.25, 0.75) && crop(-0.5, 1.5) && crop(0.5, 0.5) && crop(-65536.0, 65536.0));
        assert!(!crop(0.75, 0.25) && !crop(0.0, 65537.0) && !crop(1e-9, 1.0) && !crop(f32::NAN, 1.0));
    }

    /// A size differs by less than one from the size that the scale makes, which is at least half a row.
    #[test]
    fn scales_fit_their_sizes() {
        let (least, most) = (2f32.powi(-32), 2f32.powi(32));
        for (scale, from, made, fits) in [
            (Scale::Float(2.0), 5, 10, true),
            (Scale::Float(2.0), 5, 9, true),
            (Scale::Float(2.0), 5, 11, true),
            (Scale::Float(2.0), 5, 8, false),
            (Scale::Float(2.0), 5, 12, false),
            (Scale::Ratio(Ratio { over: 3, under: 4 }), 8, 6, true),
            (Scale::Ratio(Ratio { over: 3, under: 4 }), 8, 8, false),
            (Scale::Float(0.5), 1, 1, true),
            (Scale::Float(0.49), 1, 1, false),
            (Scale::Float(0.25), 1, 1, false),
            (Scale::Float(most), 1, 1 << 32, true),
            (Scale::Float(2.0 * most), 1, 1 << 33, false),
            (Scale::Float(least), 1 << 31, 1, true),
            (Scale::Float(least / 2.0), (1 << 32) - 1, 1, false),
            (Scale::Float(1.0), (1 << 32) - 1, (1 << 32) - 1, true),
            (Scale::Float(1.0), 1 << 32, 1 << 32, false),
            (Scale::Float(f32::NAN), 4, 4, false),
            (Scale::Float(-1.0), 4, 4, false),
        ] {
            let resize = resize(ResizeMode::Linear, Coordinates::HalfPixel, scale, made);
            assert_eq!(scales(&resize, [from; 2]).is_ok(), fits, "{scale:?}, {from} to {made}");
        }
    }
}
