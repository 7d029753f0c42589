//! Precision: which layers read, keep and make 16-bit floats (Minakova and Stefanov 2022, Table 3, "half"), and which of
//! these keep their weights as 8-bit integers ("mixed").
//!
//! A float of 16 bits is storage: kernels widen what they read, sum in 32 bits, and narrow what they store. So are the
//! integers: a sum is multiplied by its channel's scale when it ends. A layer whose operator has no such kernel stays as it
//! is; in mixed precision, one without weights is of half precision. [`legalise`](super::legalise) then adds the
//! conversions between the two.

use csdfc_codegen::bind::Primitive;
use csdfc_plan::format::Element;
use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;
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
    /// 16-bit floats, and weights of 8-bit integers with a 32-bit scale for each output channel.
    Mixed,
    /// 8-bit integers.
    Int8,
    /// Whichever of the first three is chosen in the end (see [`precision`](crate::precision)); until then 32-bit floats.
    Auto,
}

/// The network whose layers are of these precisions, one for each, where a primitive computes them so, with the conversions
/// that these need. Which layers compute on integers, the model says, not this.
pub fn in_precisions(mut network: Network, precisions: &[Precision]) -> Network {
    for (layer, precision) in network.layers.iter_mut().zip(precisions) {
        layer.primitive = primitive_of(layer, *precision).or(layer.primitive);
    }
    super::legalise(network)
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
