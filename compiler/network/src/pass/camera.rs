//! A camera before an input.
//!
//! The bytes of a camera become the numbers that the network takes as they are read: floats, or 8-bit integers.

use csdfc_plan::operator::{Camera, Input, InputElement, Operator};

use crate::{LayerId, Network};

/// Lets a camera hand over an input. `(byte − mean) · scale` is what the caller would hand over without a camera: of an
/// input of integers, the integer.
pub fn camera(mut network: Network, input: LayerId, mut camera: Camera) -> Network {
    let layer = &mut network.layers[input.0];
    let Operator::Input(Input { element, .. }) = layer.operator else { return network };
    if element == InputElement::I8 {
        // Signed integers are stored with 128 added.
        for (mean, scale) in camera.mean.iter_mut().zip(&camera.scale) {
            *mean -= 128.0 / scale;
        }
    }
    layer.operator = Operator::Input(Input { element: InputElement::U8, camera: Some(camera) });
    network
}
