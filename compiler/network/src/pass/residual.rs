//! Additions move into the convolutions before them.
//!
//! A convolution that adds another tensor to its sums before the activation needs no tensor for the sums alone. It
//! reads its image by windows, and the added tensor row by row. So its output may lie one row below the added tensor.
//! If two convolutions could do the addition, the one with the smaller image does it, because it waits for the other
//! with its image in memory.

use std::cmp::Reverse;

use csdfc_plan::operator::{BinaryFunction, Conv, Operator};

use super::rewrite::Rewrite;
use crate::operators::is_depthwise;
use crate::{LayerId, Network, Operand};

/// Moves each addition of two tensors of its own shape, with its activation, into a convolution before it. The addition
/// must be the only reader of that convolution, which must not be depthwise and must have no activation of its own.
///
/// The added tensor has to be there when the convolution makes its sums. Until then, the convolution's image is stored
/// instead of its sums. So of two convolutions that can do the addition, the one with the smaller image does it, which
/// mostly is the end of the longer branch. Of equals, the later one does. A convolution that has to wait for a tensor
/// that is made after it does the addition only if its image is no larger than its sums.
pub(super) fn additions(network: Network) -> Network {
    let mut rewrite = Rewrite::new(network);
    for id in rewrite.network.ids() {
        rewrite.visit(id);
        if let Some((conv, added)) = addition(&rewrite, id) {
            add(&mut rewrite, id, conv, added);
        }
    }
    rewrite.finish()
}

/// The convolution that can do a layer's addition, and the tensor that it adds.
fn addition(rewrite: &Rewrite, id: LayerId) -> Option<(LayerId, Operand)> {
    let (network, layer) = (&rewrite.network, rewrite.network.layer(id));
    let (Operator::Binary(binary), [left, right]) = (&layer.operator, layer.inputs.as_slice()) else {
        return None;
    };
    let unchanged = |x: &Operand| x.shape == layer.shape && network.layer(x.layer).shape == x.shape;
    if binary.function != BinaryFunction::Add || !unchanged(left) || !unchanged(right) {
        return None;
    }
    let can = |x: &Operand| {
        let producer = network.layer(x.layer);
        let Operator::Conv(conv) = &producer.operator else { return false };
        let is_free = !conv.residual && conv.activation.is_none();
        let channels = producer.inputs.first().map_or(0, |image| image.shape.channels());
        is_free && !is_depthwise(conv, channels) && rewrite.read_once(x.layer)
    };
    let image = |x: &Operand| -> usize {
        network.layer(x.layer).inputs.iter().map(|part| part.shape.elements()).sum()
    };
    let in_time =
        |conv: &Operand, added: &Operand| added.layer < conv.layer || image(conv) <= layer.shape.elements();
    let sides = [(left, right), (right, left)].into_iter();
    let able = sides.filter(|(conv, added)| can(conv) && in_time(conv, added));
    let (conv, added) = able.min_by_key(|(conv, _)| (image(conv), Reverse(conv.layer)))?;
    Some((conv.layer, added.clone()))
}

/// Fuses a convolution and the addition that is the only reader of its tensor.
fn add(rewrite: &mut Rewrite, id: LayerId, conv: LayerId, added: Operand) {
    let sum = rewrite.network.layer(id);
    let (activation, slopes) = (sum.operator.activation().cloned(), sum.parameters.clone());
    let is_there = added.layer < conv;
    // Applications may know a layer of no node by its name.
    let own_name = sum.name.clone();
    let nodes = &mut rewrite.network.layers[id.0].onnx_nodes;
    if nodes.is_empty() {
        nodes.push(own_name);
    }
    let layer = &mut rewrite.network.layers[conv.0];
    if let Operator::Conv(before) = &layer.operator {
        layer.operator = Operator::Conv(Conv { residual: true, activation, ..before.clone() });
    }
    layer.parameters.extend(slopes);
    layer.inputs.push(added);
    if is_there {
        rewrite.fuse_with_reader(conv, id);
    } else {
        rewrite.move_to_reader(conv, id);
    }
}
