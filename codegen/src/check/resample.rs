//! The rows that a row of a resize is made of.

use crate::operator::{Coordinates, Ratio, Resize, ResizeMode, Rounding, Scale};

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
        ResizeMode::Linear => (floor(twice).clamp(0, last), (floor(twice).clamp(0, last) + 1).min(last)),
    };
    (from as i64, to as i64 + 1)
}

/// That the scales take an image of height and width `from` to the sizes that the resize states.
pub(super) fn scales(resize: &Resize, from: [i128; 2]) -> Result<(), String> {
    for ((scale, size), made) in resize.scales.into_iter().zip(from).zip(resize.size) {
        let factor = match scale {
            Scale::Float(scale) => f64::from(scale),
            Scale::Ratio(Ratio { over, under }) => f64::from(over) / f64::from(under),
        };
        // ONNX rounds, down or to the nearest.
        let close = made as f64 - 1.0..=made as f64 + 1.0;
        let is_possible = (2f64.powi(-32)..=2f64.powi(32)).contains(&factor) && size < 1 << 32;
        if !is_possible || factor * (size as f64) < 0.5 || !close.contains(&(factor * size as f64)) {
            return Err(format!("it scales {size} by {scale} to {made}"));
        }
    }
    Ok(())
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
        let x = match resize.coordinates {
            _ if over == under => y,
            Coordinates::PytorchHalfPixel if all == under => 0.0,
            Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => {
                ((2.0 * y + 1.0) * under - over) / (2.0 * over)
            }
            Coordinates::AlignCorners if all > under => y * (rows as f64 - 1.0) * under / (all - under),
            Coordinates::AlignCorners => 0.0,
            Coordinates::Asymmetric => y * under / over,
            Coordinates::TfHalfPixelForNn => (2.0 * y + 1.0) * under / (2.0 * over),
        };
        let (x, end) = match resize.mode {
            ResizeMode::Nearest { rounding: Rounding::Floor } => (x.floor(), 1),
            ResizeMode::Nearest { rounding: Rounding::Ceil } => (x.ceil(), 1),
            ResizeMode::Nearest { rounding: Rounding::RoundPreferFloor } => ((x - 0.5).ceil(), 1),
            ResizeMode::Nearest { rounding: Rounding::RoundPreferCeil } => ((x + 0.5).floor(), 1),
            ResizeMode::Linear => (x.floor(), 2),
        };
        let first = (x as i64).clamp(0, rows as i64 - 1);
        (first, (first + end).min(rows as i64))
    }

    #[test]
    fn rows_are_those_of_the_definition() {
        use Rounding::{Ceil, Floor, RoundPreferCeil, RoundPreferFloor};
        let nearest = [Floor, Ceil, RoundPreferFloor, RoundPreferCeil];
        let modes = nearest.map(|rounding| ResizeMode::Nearest { rounding });
        let modes: Vec<ResizeMode> = modes.into_iter().chain([ResizeMode::Linear]).collect();
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
        ] {
            for mode in &modes {
                for (rows, made) in (1..=8).flat_map(|rows| (1..=12).map(move |made| (rows, made))) {
                    let ratio = Scale::Ratio(Ratio { over: made as u32, under: rows as u32 });
                    let resize = resize(mode.clone(), coordinates, ratio, made);
                    (0..made).for_each(|y| compare(&resize, [made as f64, rows as f64], rows, y));
                }
                // Floats count as the fractions that they are; below a row, there is none but the first.
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

    /// Sizes are within one of what the scale makes, which is half a row at least.
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
