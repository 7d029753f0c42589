//! Narrow weights: a layer that computes with floats keeps weights of 8-bit integers or 16-bit floats as the model's file
//! has them, with a scale for each output channel. The numbers are the same, and take a quarter or half of the bytes.

use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::{self, Primitive};

use super::copies;
use crate::{Layer, Network};

/// Chooses such primitives for all layers that have such weights and no other primitive yet.
pub(super) fn weights(mut network: Network) -> Network {
    for id in network.ids() {
        if let Some(layer) = kept_as_stored(&network, network.layer(id)) {
            network.layers[id.0] = layer;
        }
    }
    network
}

/// The layer with a primitive that keeps its weights as they are stored, if there is one.
fn kept_as_stored(network: &Network, layer: &Layer) -> Option<Layer> {
    if layer.primitive.is_some() {
        return None;
    }
    let (width, scales) = stored_weights(layer)?;
    // Quotients by smaller scales are not exact.
    let is_good = |scale: &f32| *scale == 0.0 || (1e-30..1e30).contains(&scale.abs());
    let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    let suits = |primitive: &Primitive| {
        primitive.scaled_weight() == Some(width) && primitive.computes(&layer.operator, &inputs)
    };
    let primitive = Primitive::all().find(suits).filter(|_| scales.iter().all(is_good));
    let by = Layer { primitive: Some(primitive?), ..layer.clone() };
    bind::bind(by.primitive(), &copies::site(network, &by)).is_ok().then_some(by)
}

/// Bytes of a weight of a convolution or product as the model's file has it, if it is an 8-bit integer or a 16-bit float,
/// and the scale of each output channel.
pub fn stored_weights(layer: &Layer) -> Option<(u64, Vec<f32>)> {
    let axis = match &layer.operator {
        Operator::Conv(_) => 0,
        Operator::Gemm(gemm) => usize::from(!gemm.transposed),
        _ => return None,
    };
    let weights = layer.parameters.first()?;
    match weights.scales(axis) {
        Some((scales, has_offset)) => (!has_offset).then_some((1, scales)),
        None => Some((2, weights.half_scales(axis)?)),
    }
}
