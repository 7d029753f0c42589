//! Batch norms between conversions move into the convolutions of integers after them.
//!
//! If no convolution precedes a batch norm, as after a concat, no integer kernel computes it. A quantized model
//! computes it on floats, between two conversions. The integer convolution that reads the result does all three steps
//! as it gathers its windows, with the same roundings. So none of their tensors needs memory.
//!
//! ```text
//! q → dequantize → batch_norm → quantize → conv        q → conv
//! ```

use csdfc_plan::format::Element;
use csdfc_plan::operator::{Conv, Operator, Pre};
use csdfc_runtime::bind;

use super::copies;
use super::rewrite::drop_dead;
use crate::weights::Weights;
use crate::{Layer, LayerId, Network, Operand};

/// Moves each batch norm, with its activation, into the integer convolution that is the only reader of its quantized
/// result, if a kernel does both. A window of several pixels would do their work several times, so its convolution
/// stays as it is.
pub(super) fn into_convolutions(mut network: Network) -> Network {
    let mut readers: Vec<usize> = network.readers().iter().map(Vec::len).collect();
    for output in &network.outputs {
        readers[output.operand.layer.0] += 1;
    }
    for id in network.ids() {
        let Some(joined) = joined(&network, &readers, id) else { continue };
        if bind::bind(joined.primitive(), &copies::site(&network, &joined)).is_ok() {
            network.layers[id.0] = joined;
        }
    }
    drop_dead(network)
}

/// A convolution with the batch norm before it, if there is one between conversions.
fn joined(network: &Network, readers: &[usize], id: LayerId) -> Option<Layer> {
    let layer = network.layer(id);
    let (Operator::Conv(conv), [x]) = (&layer.operator, layer.inputs.as_slice()) else { return None };
    if conv.kernel != [1, 1] || conv.pre.is_some() || layer.primitive().elements() != [Element::U8; 2] {
        return None;
    }
    let alone = |x: &Operand| {
        let made = network.layer(x.layer);
        (readers[x.layer.0] == 1 && made.shape == x.shape).then_some(made)
    };
    let quantize = alone(x).filter(|made| is_conversion(made, [Element::F32, Element::U8]))?;
    let norm = alone(quantize.inputs.first()?)?;
    let (Operator::BatchNorm(by), [scale, shift]) = (&norm.operator, norm.parameters.as_slice()) else {
        return None;
    };
    let floats = norm.inputs.first()?;
    let dequantize = network.layer(floats.layer);
    if !is_conversion(dequantize, [Element::U8, Element::F32]) || dequantize.shape != floats.shape {
        return None;
    }
    let activation = by.activation.clone();
    let pre = Some(Pre { affine: true, activation, quantization: quantize.quantization });
    let nodes = [norm, quantize].into_iter().flat_map(|layer| layer.onnx_nodes.clone());
    let others = if readers[floats.layer.0] == 1 { dequantize.onnx_nodes.clone() } else { Vec::new() };
    Some(Layer {
        operator: Operator::Conv(Conv { pre, ..conv.clone() }),
        inputs: dequantize.inputs.clone(),
        parameters: with_constants(&layer.parameters, conv, [scale, shift]),
        onnx_nodes: others.into_iter().chain(nodes).chain(layer.onnx_nodes.clone()).collect(),
        ..layer.clone()
    })
}

/// Whether a layer converts between these elements.
fn is_conversion(layer: &Layer, elements: [Element; 2]) -> bool {
    matches!(layer.operator, Operator::Convert) && layer.primitive().elements() == elements
}

/// The parameters of a convolution with a scale and a shift of each channel after its weights and biases.
fn with_constants(parameters: &[Weights], conv: &Conv, constants: [&Weights; 2]) -> Vec<Weights> {
    let mut all = parameters.to_vec();
    let place = (1 + usize::from(conv.bias)).min(all.len());
    all.splice(place..place, constants.map(Weights::clone));
    all
}
