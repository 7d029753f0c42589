//! Resampling of height and width.

use csdfc_codegen::operator::Resize;
use csdfc_codegen::shape::Shape;

use super::{ShapeError, fail, image};

pub(super) fn resize_shape(resize: &Resize, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, _, _] = image(x, "resize")?;
    if resize.scales.iter().any(|scale| !(scale.is_finite() && *scale > 0.0)) {
        return fail(format!("resize by {} and {}", resize.scales[0], resize.scales[1]));
    }
    Ok(Shape::new([n, channels, resize.size[0], resize.size[1]]))
}
