//! A camera before an input of 8-bit integers.
//!
//! The bytes of a camera become numbers of the network as they are read. Where the network takes integers, a layer then
//! makes these of the numbers.
//!
//! ```text
//! input of integers → conv → …        bytes → input of floats → convert → conv → …
//! ```

use csdfc_plan::operator::{Camera, Input, InputElement, Operator};
use csdfc_runtime::bind::Primitive;

use super::names::Names;
use crate::{Layer, LayerId, Network, Operand};

/// Lets a camera hand over an input. `(byte − mean) · scale` is what the caller would hand over without a camera: of an
/// input of integers, the integer.
pub fn camera(mut network: Network, input: LayerId, mut camera: Camera) -> Network {
    let layer = network.layer(input).clone();
    let Operator::Input(Input { element, .. }) = layer.operator else { return network };
    let Some(made) = layer.quantization.filter(|_| element != InputElement::F32) else {
        let operator = Operator::Input(Input { element: InputElement::U8, camera: Some(camera) });
        network.layers[input.0].operator = operator;
        return network;
    };
    // The integer q of the caller stands for (q − zero point) · scale.
    let stored_with = if element == InputElement::I8 { 128.0 } else { 0.0 };
    let zero_point = f32::from(made.zero_point) - stored_with;
    for (mean, scale) in camera.mean.iter_mut().zip(&mut camera.scale) {
        *mean += zero_point / *scale;
        *scale *= made.scale;
    }
    let mut names = Names::new(&network);
    let [name, output] = [&layer.name, &layer.output].map(|name| names.unique(format!("{name}_quantized")));
    let convert = Layer {
        name,
        output,
        onnx_nodes: Vec::new(),
        operator: Operator::Convert,
        inputs: vec![Operand { layer: input, shape: layer.shape.clone() }],
        primitive: Primitive::find("convert-quantize-hwc-hwc"),
        ..layer
    };
    let of_camera = &mut network.layers[input.0];
    of_camera.operator = Operator::Input(Input { element: InputElement::U8, camera: Some(camera) });
    (of_camera.primitive, of_camera.quantization) = (None, None);
    let last = LayerId(network.layers.len());
    let operands = network.layers.iter_mut().flat_map(|layer| &mut layer.inputs);
    for operand in operands.chain(network.outputs.iter_mut().map(|output| &mut output.operand)) {
        operand.layer = if operand.layer == input { last } else { operand.layer };
    }
    // It comes right after the input. Until then it is the last layer, behind those that read it.
    network.layers.push(convert);
    let mut order: Vec<LayerId> = (0..last.0).map(LayerId).collect();
    order.insert(input.0 + 1, last);
    network.reordered(&order)
}
