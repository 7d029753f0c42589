//! Precision: which layers read, keep and make 16-bit floats (Minakova and Stefanov 2022, Table 3, "half"), and which of
//! these keep their weights as 8-bit integers ("mixed").
//!
//! 16-bit floats are only a way of storage: kernels widen what they read, sum in 32 bits, and narrow what they store.
//! The same holds for the integers: when a sum ends, it is multiplied by its channel's scale. A layer whose operator
//! has no such kernel stays as it is. In mixed precision, a layer without weights has half precision.
//! [`legalise`](super::legalise) then adds the conversions between the two.

use csdfc_plan::format::Element;
use csdfc_plan::operator::{Operator, PoolKind};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use serde::Deserialize;

use crate::{Layer, Network};

/// Precision of weights and tensors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", rename = "precision")]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    #[serde(alias = "float")]
    Fp32,
    /// 16-bit floats.
    #[serde(alias = "fp16")]
    Half,
    /// 16-bit floats, and weights of 8-bit integers with a 32-bit scale for each output channel (W8A16).
    #[serde(alias = "w8a16")]
    Mixed,
    /// 8-bit integers.
    Int8,
    /// csdfc chooses one of the first three (`csdfc-precision`). Until then, it stands for 32-bit floats.
    Auto,
}

/// The network with each layer in its precision, if a primitive can compute it so, and with the conversions that this
/// needs. This pass does not decide which layers compute on integers; the model does. Layers that read indices stay as they are,
/// since 16-bit floats count up to 2048 only.
pub fn in_precisions(mut network: Network, precisions: &[Precision]) -> Network {
    let mut are_indices: Vec<bool> = Vec::with_capacity(network.layers.len());
    for (layer, precision) in network.layers.iter_mut().zip(precisions) {
        let of_indices = layer.inputs.iter().filter(|operand| are_indices[operand.layer.0]).count();
        let is_moved = of_indices > 0 && of_indices == layer.inputs.len();
        are_indices.push(is_moved || holds_indices(&layer.operator));
        if of_indices == 0 {
            layer.primitive = primitive_of(layer, *precision).or(layer.primitive);
        }
    }
    super::legalise(network)
}

/// Whether an operator makes indices, as floats.
fn holds_indices(operator: &Operator) -> bool {
    match operator {
        Operator::ArgMax(arg_max) => arg_max.floats,
        Operator::TopK(top) => top.indices && top.floats,
        Operator::NonMaxSuppression(suppression) => suppression.floats,
        Operator::Pool(pool) => pool.kind == PoolKind::MaxIndex,
        _ => false,
    }
}

/// Whether a layer computes floats of floats. Conversions follow from the layers around them.
fn is_of_floats(layer: &Layer) -> bool {
    !layer.is_input() && !layer.is_of_integers() && !matches!(layer.operator, Operator::Convert)
}

/// The primitive that computes a layer in half or mixed precision, if one does.
pub fn primitive_of(layer: &Layer, precision: Precision) -> Option<Primitive> {
    if !is_of_floats(layer) || !matches!(precision, Precision::Half | Precision::Mixed) {
        return None;
    }
    let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    let of_halves = || {
        Primitive::all().filter(|primitive| {
            primitive.elements() == [Element::F16; 2] && primitive.computes(&layer.operator, &inputs)
        })
    };
    let is_mixed = precision == Precision::Mixed;
    of_halves().find(|primitive| is_mixed && primitive.is_mixed()).or_else(|| of_halves().next())
}
