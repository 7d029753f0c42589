//! Rule 2, inputs: how the caller hands over the elements of an input.

use crate::operator::{Camera, ColorOrder, Input, InputElement};
use crate::shape::Shape;

use super::shape_error::{ShapeError, fail};

/// Checks that the caller can hand over an input of this shape in this way: as floats, as 8-bit integers, or as the bytes
/// of a camera. These are images, with a finite mean and a finite scale, which is not 0, for each channel.
pub(super) fn check(input: &Input, shape: &Shape) -> Result<(), ShapeError> {
    let camera = match (input.element, &input.camera) {
        (_, None) => return Ok(()),
        (InputElement::U8, Some(camera)) => camera,
        (InputElement::F32, Some(_)) => return fail("it has a `camera`, but its elements are f32"),
        (InputElement::I8, Some(_)) => return fail("it has a `camera`, but its elements are i8"),
    };
    let Camera { order, mean, scale, .. } = camera;
    let channels = shape.channels();
    if !shape.is_image() {
        return fail(format!("{shape} is no image, so that no camera makes it"));
    }
    for (field, numbers) in [("mean", mean), ("scale", scale)] {
        if numbers.len() != channels {
            return fail(format!("its `{field}` has {} numbers for {channels} channels", numbers.len()));
        }
        if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
            return fail(format!("its `{field}` has the number {number}"));
        }
    }
    if scale.contains(&0.0) {
        return fail("its `scale` has the number 0");
    }
    if *order == ColorOrder::Bgr && channels != 3 {
        return fail(format!("its order is BGR, but it has {channels} channels, not 3"));
    }
    Ok(())
}
