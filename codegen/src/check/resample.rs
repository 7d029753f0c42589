//! The rows that a row of a resize is made of.

use crate::operator::{Coordinates, Resize, ResizeMode, Rounding};

use super::rows::Span;

/// The rows read for row `y` of `height`, out of `rows`.
///
/// By ONNX's definition of Resize, in 32-bit floats as ONNX Runtime computes it: another precision would round some
/// coordinates to other rows.
pub(super) fn span(resize: &Resize, rows: i64, height: i64, y: i64) -> Span {
    let (scale, at) = (resize.scales[0], y as f32);
    let source = match resize.coordinates {
        _ if scale == 1.0 => at,
        Coordinates::PytorchHalfPixel if height <= 1 => 0.0,
        Coordinates::HalfPixel | Coordinates::PytorchHalfPixel => (at + 0.5) / scale - 0.5,
        Coordinates::AlignCorners if height <= 1 => 0.0,
        Coordinates::AlignCorners => at * (rows - 1) as f32 / (height - 1) as f32,
        Coordinates::Asymmetric => at / scale,
        Coordinates::TfHalfPixelForNn => (at + 0.5) / scale,
    };
    let last = rows - 1;
    match resize.mode {
        ResizeMode::Nearest { rounding } => {
            let row = (rounded(source, rounding) as i64).clamp(0, last);
            (row, row + 1)
        }
        ResizeMode::Linear => {
            let below = (source.clamp(0.0, last as f32) as i64).min(last);
            (below, (below + 1).min(last) + 1)
        }
    }
}

fn rounded(source: f32, rounding: Rounding) -> f32 {
    match rounding {
        Rounding::RoundPreferFloor => (source - 0.5).ceil(),
        Rounding::RoundPreferCeil => source.round(),
        Rounding::Floor => source.floor(),
        Rounding::Ceil => source.ceil(),
    }
}
