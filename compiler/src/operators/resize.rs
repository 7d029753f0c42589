//! Resampling of height and width.

use csdfc_codegen::operator::{Coordinates, Resize, ResizeMode, Rounding};
use csdfc_codegen::shape::Shape;

use super::{RowAccess, ShapeError, fail, image};

pub(super) fn resize_shape(resize: &Resize, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, _, _] = image(x, "resize")?;
    if resize.scales.iter().any(|scale| !(scale.is_finite() && *scale > 0.0)) {
        return fail(format!("resize by {} and {}", resize.scales[0], resize.scales[1]));
    }
    Ok(Shape::new([n, channels, resize.size[0], resize.size[1]]))
}

/// One row for each output row, or the two around it, computed in fp32 as ONNX Runtime does.
pub(super) fn resize_rows(resize: &Resize, [rows_in, rows_out]: [usize; 2]) -> RowAccess {
    let last = rows_in - 1;
    let table = (0..rows_out).map(|y| {
        let source = source_coordinate(resize.coordinates, y, resize.scales[0], rows_in, rows_out);
        // Float to integer conversions saturate; what falls outside reads the edge.
        match &resize.mode {
            ResizeMode::Nearest { rounding } => {
                let row = (nearest(source, *rounding).max(0.0) as usize).min(last);
                row..row + 1
            }
            ResizeMode::Linear => {
                let row = (source.max(0.0) as usize).min(last);
                row..(row + 2).min(rows_in)
            }
        }
    });
    RowAccess::Rows(table.collect())
}

/// The input coordinate of output coordinate `y`.
fn source_coordinate(coordinates: Coordinates, y: usize, scale: f32, rows_in: usize, rows_out: usize) -> f32 {
    let position = y as f32;
    if scale == 1.0 {
        return position;
    }
    match coordinates {
        Coordinates::HalfPixel => (position + 0.5) / scale - 0.5,
        Coordinates::PytorchHalfPixel if rows_out > 1 => (position + 0.5) / scale - 0.5,
        Coordinates::AlignCorners if rows_out > 1 => position * (rows_in - 1) as f32 / (rows_out - 1) as f32,
        Coordinates::PytorchHalfPixel | Coordinates::AlignCorners => 0.0,
        Coordinates::Asymmetric => position / scale,
        Coordinates::TfHalfPixelForNn => (position + 0.5) / scale,
    }
}

fn nearest(source: f32, rounding: Rounding) -> f32 {
    match rounding {
        Rounding::RoundPreferFloor if source == source.floor() + 0.5 => source.floor(),
        Rounding::RoundPreferFloor | Rounding::RoundPreferCeil => source.round(),
        Rounding::Floor => source.floor(),
        Rounding::Ceil => source.ceil(),
    }
}
