//! Precision: which layers read, keep and make 16-bit floats (Minakova and Stefanov 2022, Table 3, "half"), and which of
//! these keep their weights as 8-bit integers ("mixed").
//!
//! 16-bit floats are only a way of storage: kernels widen what they read, sum in 32 bits, and narrow what they store.
//! The same holds for the integers: when a sum ends, it is multiplied by its channel's scale. A layer whose operator
//! has no such kernel stays as it is. In mixed precision, a layer without weights has half precision.
//! [`legalise`](super::legalise) then adds the conversions between the two.

use csdfc_codegen::bind::Primitive;
use csdfc_plan::format::Element;
use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;
use serde::Deserialize;

use crate::network::{Layer, Network};

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
    /// csdfc chooses one of the first three (see [`precision`](crate::precision)). Until then, it stands for 32-bit
    /// floats.
    Auto,
}

/// The network with each layer in its precision, if a primitive can compute it so, and with the conversions that this
/// needs. This pass does not decide which layers compute on integers; the model does.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::{Fusion, normalise};

    fn primitives(network: &Network) -> Vec<&str> {
        network.layers.iter().map(|layer| layer.primitive().name()).collect()
    }

    #[test]
    fn conversions_stand_where_elements_meet() {
        let network = normalise(crate::builtin::network("lenet5").unwrap(), Fusion::Full);
        let names: Vec<&str> = network.layers.iter().map(|layer| layer.name.as_str()).collect();
        let whole = in_precisions(network.clone(), &vec![Precision::Half; names.len()]);
        let bytes: u64 = whole.layers.iter().map(|layer| layer.parameter_elements() * 2).sum();
        assert_eq!((whole.parameter_bytes(), network.parameter_bytes()), (bytes, 2 * bytes));
        let [input, narrow, .., widen] = primitives(&whole)[..] else { panic!("{names:?}") };
        assert_eq!(
            [input, narrow, widen],
            ["own-kernel-hwc-hwc", "convert-narrow-hwc-hwc", "convert-widen-hwc-hwc"]
        );
        assert!(primitives(&whole)[2..whole.layers.len() - 1].iter().all(|name| name.contains("-half-")));
        assert_eq!(whole.layers.len(), names.len() + 2);
        // The output is the last conversion's, of 32-bit floats.
        assert_eq!(whole.outputs[0].operand.layer.0, whole.layers.len() - 1);

        // A layer of 32-bit floats between others has conversions on both sides.
        let middle = names.len() / 2;
        let but_one: Vec<Precision> =
            (0..names.len()).map(|l| if l == middle { Precision::Fp32 } else { Precision::Half }).collect();
        let mixed = in_precisions(network.clone(), &but_one);
        assert_eq!(mixed.layers.len(), names.len() + 4);
        let at = mixed.find(names[middle]).unwrap().0;
        let around = [at - 1, at, at + 1].map(|l| primitives(&mixed)[l].contains("-half-"));
        assert_eq!(around, [false; 3]);

        assert_eq!(
            primitives(&in_precisions(network.clone(), &vec![Precision::Fp32; names.len()])),
            primitives(&network)
        );
    }

    /// LeNet-5 in mixed precision: a byte of each weight, four of each scale, two of each bias.
    #[test]
    fn layers_with_weights_keep_integers() {
        let network = normalise(crate::builtin::network("lenet5").unwrap(), Fusion::Full);
        let mixed = in_precisions(network.clone(), &vec![Precision::Mixed; network.layers.len()]);
        let mut bytes = 0;
        for layer in mixed.layers.iter().filter(|layer| !layer.parameters.is_empty()) {
            assert!(layer.primitive().is_mixed(), "{}", layer.name);
            let [weights, biases] = [0, 1].map(|at| layer.parameters[at].elements() as u64);
            bytes += weights + 4 * biases + 2 * biases;
        }
        assert_eq!(mixed.parameter_bytes(), bytes);
        let others = mixed.layers.iter().filter(|layer| layer.parameters.is_empty() && !layer.is_input());
        let names: Vec<&str> = others.map(|layer| layer.primitive().name()).collect();
        assert_eq!([names[0], names[names.len() - 1]], ["convert-narrow-hwc-hwc", "convert-widen-hwc-hwc"]);
        assert!(names[1..names.len() - 1].iter().all(|name| name.contains("-half-")), "{names:?}");
    }
}
