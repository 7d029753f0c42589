//! Rule 2, inputs: how the caller hands over the elements of an input.

use crate::operator::{Camera, ColourOrder, Input, InputElement};
use crate::shape::Shape;

/// Why the caller cannot hand over an input of this shape in this way; nothing if it can. Bytes are those of a camera.
/// They are images, with a finite mean and a finite scale, which is not 0, for each channel.
pub(super) fn fault(input: &Input, shape: &Shape) -> Option<String> {
    let camera = match (input.element, &input.camera) {
        (InputElement::F32, None) => return None,
        (InputElement::U8, Some(camera)) => camera,
        (InputElement::F32, Some(_)) => return Some("it has a `camera`, but its elements are f32".into()),
        (InputElement::U8, None) => return Some("its elements are u8, but it has no `camera`".into()),
    };
    let Camera { order, mean, scale, .. } = camera;
    let channels = shape.channels();
    if !shape.is_image() {
        return Some(format!("{shape} is no image, so that no camera makes it"));
    }
    for (field, numbers) in [("mean", mean), ("scale", scale)] {
        if numbers.len() != channels {
            return Some(format!("its `{field}` has {} numbers for {channels} channels", numbers.len()));
        }
        if let Some(number) = numbers.iter().find(|number| !number.is_finite()) {
            return Some(format!("its `{field}` has the number {number}"));
        }
    }
    if scale.contains(&0.0) {
        return Some("its `scale` has the number 0".into());
    }
    (*order == ColourOrder::Bgr && channels != 3)
        .then(|| format!("its order is BGR, but it has {channels} channels, not 3"))
}
