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
            let significand = i128::from(fraction | 0x80_0000);
            match exponent {
                150.. => (significand << (exponent - 150), 1),
                _ => (significand, 1 << (150 - exponent)),
            }
        }
    }
}
