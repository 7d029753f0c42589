//! What lies inside norms that are spelled out in several layers: means, variances, roots and quotients.
//!
//! Near 0, roots, logarithms and quotients depend on small changes of what they are applied to. The variance of a layer
//! norm in 8 bits, for instance, loses the epsilon that is added to it, and a row without variance is divided by 0. So
//! everything from the norm's input to its quotient stays with floats, and the same holds for softmax and for
//! normalisation by a length. Convolutions, products of matrices, activations and sums of two tensors are outside.

use csdfc_network::{Layer, LayerId, Network};
use csdfc_plan::operator::{BinaryFunction, Function, Operator};

/// Whether each layer is inside a norm or the like.
pub(super) fn insides(network: &Network) -> Vec<bool> {
    let mut inside = vec![false; network.layers.len()];
    let mut open: Vec<LayerId> = Vec::new();
    for id in network.ids() {
        let layer = network.layer(id);
        open.extend(sensitive(layer).map(|operand| layer.inputs[operand].layer));
        // A product by the reciprocal of a root is a quotient.
        let is_root = |made: LayerId| sensitive(network.layer(made)).is_some();
        let is_of_two = matches!(&layer.operator, Operator::Binary(binary) if binary.constant.is_none());
        inside[id.0] |= is_of_two && layer.inputs.iter().any(|operand| is_root(operand.layer));
    }
    let mut seen = vec![false; network.layers.len()];
    while let Some(id) = open.pop() {
        let layer = network.layer(id);
        if !seen[id.0] && is_part(layer) {
            (seen[id.0], inside[id.0]) = (true, true);
            open.extend(layer.inputs.iter().map(|operand| operand.layer));
        }
    }
    inside
}

/// The operand on whose small changes the layer depends near 0.
fn sensitive(layer: &Layer) -> Option<usize> {
    match &layer.operator {
        Operator::ElementWise(by) => {
            matches!(by.function, Function::Sqrt | Function::Log | Function::Reciprocal).then_some(0)
        }
        Operator::Binary(binary) => match (binary.function, &binary.constant) {
            (BinaryFunction::Div, None) => Some(1),
            (BinaryFunction::Div, Some(constant)) => constant.left.then_some(0),
            (BinaryFunction::Pow, Some(constant)) if !constant.left => {
                let exponents = layer.parameters.first()?.values().ok()?;
                let is_whole = |power: &f32| power.fract() == 0.0 && *power > 0.0;
                (!exponents.iter().all(is_whole)).then_some(0)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Whether a layer may be a part of a norm: a mean or sum, or a function of elements with no more than one tensor and
/// its mean.
fn is_part(layer: &Layer) -> bool {
    match &layer.operator {
        Operator::Reduce(_) => true,
        Operator::ElementWise(by) => !by.function.is_activation(),
        Operator::Binary(binary) => {
            let is_square = binary.function == BinaryFunction::Mul
                && layer.inputs.windows(2).all(|pair| pair[0].layer == pair[1].layer);
            let is_difference = binary.function == BinaryFunction::Sub;
            binary.constant.is_some() || is_square || is_difference || sensitive(layer).is_some()
        }
        _ => false,
    }
}
