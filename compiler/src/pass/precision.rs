//! Precision: which layers read, keep and make 16-bit floats (Minakova and Stefanov 2022, Table 3, "half").
//!
//! A float of 16 bits is storage: kernels widen what they read, sum in 32 bits, and narrow what they store. A layer whose
//! operator has no such kernel stays as it is. [`legalise`](super::legalise) then adds the conversions between the two.

use csdfc_codegen::bind::Primitive;
use csdfc_codegen::format::Element;
use csdfc_codegen::operator::Operator;
use csdfc_codegen::shape::Shape;

use crate::network::{Layer, Network};

/// The network in which the layers that are to be of half precision are so where a primitive computes them, with the
/// conversions that these need. `is_half` has a truth value for each layer.
pub fn halve(mut network: Network, is_half: &[bool]) -> Network {
    let chosen =
        network.layers.iter_mut().zip(is_half).filter(|(layer, is_half)| **is_half && is_of_floats(layer));
    for (layer, _) in chosen {
        layer.primitive = half(layer).or(layer.primitive);
    }
    super::legalise(network)
}

/// Whether a layer computes floats of floats. Conversions follow from the layers around them.
fn is_of_floats(layer: &Layer) -> bool {
    !layer.is_input() && !layer.is_of_integers() && !matches!(layer.operator, Operator::Convert)
}

/// The primitive that computes a layer in half precision, if one does.
pub fn half(layer: &Layer) -> Option<Primitive> {
    if !is_of_floats(layer) {
        return None;
    }
    let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
    Primitive::all().find(|primitive| {
        primitive.elements() == [Element::F16; 2] && primitive.computes(&layer.operator, &inputs)
    })
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
        let whole = halve(network.clone(), &vec![true; names.len()]);
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
        let is_half: Vec<bool> = (0..names.len()).map(|l| l != middle).collect();
        let mixed = halve(network.clone(), &is_half);
        assert_eq!(mixed.layers.len(), names.len() + 4);
        let at = mixed.find(names[middle]).unwrap().0;
        let around = [at - 1, at, at + 1].map(|l| primitives(&mixed)[l].contains("-half-"));
        assert_eq!(around, [false; 3]);

        assert_eq!(primitives(&halve(network.clone(), &vec![false; names.len()])), primitives(&network));
    }
}
