//! Tensors of four dimensions whose last dimension is that of channels.
//!
//! An exporter writes the pixels of a transformer on images as `[1, H · W, C]`, or as `[1, H, W, C]`. Nothing says that the last
//! dimension has the channels. Taken for `[1, C, H, W]`, as a convolution would take it, a row would be of
//! all pixels of one column, and their channels would lie apart.

use csdfc_plan::operator::{Operator, Reduce};
use csdfc_plan::shape::{Order, Shape};
use petgraph::unionfind::UnionFind;

use super::rewrite::drop_dead;
use crate::{Layer, LayerId, Network, Operand};

/// Makes tensors channels-last, if a fully connected layer, a softmax or a reduction works along their last dimension and
/// nothing but operators that keep an order reads and makes them: the same elements of the same dimensions, which lie in
/// another order and have other rows. Views between them and tensors of another rank then move nothing, and neither do
/// Transposes to and from the images of convolutions.
pub(super) fn lines(mut network: Network) -> Network {
    let turned = turned(&network);
    for id in network.ids() {
        let sources: Vec<bool> = network.layer(id).inputs.iter().map(|x| turned[x.layer.0]).collect();
        let layer = &mut network.layers[id.0];
        for (operand, is_source_turned) in layer.inputs.iter_mut().zip(sources) {
            // What is not an image itself is only seen as one, in either order.
            if operand.shape.rank() == 4
                && (is_source_turned || turned[id.0] && layer.operator.kind() != "transpose")
            {
                operand.shape.order = Order::ChannelsLast;
            }
        }
        if turned[id.0] {
            if let Operator::Transpose(transpose) = &mut layer.operator {
                transpose.order = Order::ChannelsLast;
            }
            layer.shape.order = Order::ChannelsLast;
        }
    }
    without_relabelling(network)
}

/// Which layers' tensors are made channels-last. If one stays as it is, so do all that must have its order.
fn turned(network: &Network) -> Vec<bool> {
    let mut groups = UnionFind::new(network.layers.len());
    for id in network.ids().filter(|id| keeps_order(network.layer(*id))) {
        for operand in network.layer(id).inputs.iter().filter(|operand| is_as_made(network, operand)) {
            groups.union(id.0, operand.layer.0);
        }
    }
    let groups = groups.into_labeling();
    let (mut gains, mut stays) = (vec![false; groups.len()], vec![false; groups.len()]);
    for id in network.ids() {
        let layer = network.layer(id);
        gains[groups[id.0]] |= is_along_last(layer);
        stays[groups[id.0]] |= !may_turn(network, layer);
        for operand in layer.inputs.iter().filter(|operand| operand.shape.rank() == 4) {
            let is_read_so = is_as_made(network, operand) && reads_either_order(layer);
            stays[groups[operand.layer.0]] |= !is_read_so;
        }
    }
    for output in network.outputs.iter().filter(|output| output.operand.shape.rank() == 4) {
        stays[groups[output.operand.layer.0]] = true;
    }
    groups.iter().map(|group| gains[*group] && !stays[*group]).collect()
}

/// Whether a layer gives the same numbers if an image that it reads is channels-last.
fn reads_either_order(layer: &Layer) -> bool {
    match layer.operator {
        Operator::Transpose(_) | Operator::Reduce(Reduce { keep_dims: false, .. }) => true,
        _ => keeps_order(layer),
    }
}

/// Whether a tensor is seen as the image that it is.
fn is_as_made(network: &Network, operand: &Operand) -> bool {
    operand.shape.is_image() && network.layer(operand.layer).shape == operand.shape
}

/// Whether a layer makes an image of the order of those that it reads.
fn keeps_order(layer: &Layer) -> bool {
    let seen: Vec<Shape> = layer.inputs.iter().map(|operand| operand.shape.clone()).collect();
    let is_one = |shape: &Shape| shape.is_image() && shape.order == Order::ChannelsFirst;
    let is_kept = layer.operator.keeps_order(&seen) && !matches!(layer.operator, Operator::Recurrent(_));
    is_kept && seen.iter().chain([&layer.shape]).all(is_one) && !seen.is_empty()
}

/// Whether a layer could make a channels-last image: of such images, or of tensors of another rank that are seen as images. A
/// Transpose can make it of anything.
fn may_turn(network: &Network, layer: &Layer) -> bool {
    let is_image = layer.shape.is_image() && layer.shape.order == Order::ChannelsFirst;
    let is_free =
        |operand: &Operand| is_as_made(network, operand) || network.layer(operand.layer).shape.rank() != 4;
    is_image
        && layer.quantization.is_none()
        && match layer.operator {
            Operator::Transpose(_) => true,
            _ => keeps_order(layer) && layer.inputs.iter().all(is_free),
        }
}

/// Whether a layer works along the last of four dimensions alone, and this is not the only order in which they can lie.
fn is_along_last(layer: &Layer) -> bool {
    let is_so = match &layer.operator {
        Operator::Gemm(_) => true,
        Operator::Softmax(softmax) => softmax.axes == [3],
        Operator::Reduce(reduce) => reduce.axes == [3],
        _ => false,
    };
    is_so && layer.shape.is_image() && layer.shape.channels() > 1
}

/// Lets layers read what a Transpose reads, if it only swaps the order of an image's dimensions.
fn without_relabelling(mut network: Network) -> Network {
    for id in network.ids() {
        for at in 0..network.layer(id).inputs.len() {
            if let Some((source, nodes)) = before_relabelling(&network, &network.layer(id).inputs[at]) {
                let layer = &mut network.layers[id.0];
                layer.inputs[at].layer = source;
                let nodes: Vec<String> =
                    nodes.into_iter().filter(|node| !layer.onnx_nodes.contains(node)).collect();
                layer.onnx_nodes.splice(..0, nodes);
            }
        }
    }
    drop_dead(network)
}

/// The tensor before such a Transpose, if the operand can be a view of it, and the Transpose's nodes.
fn before_relabelling(network: &Network, operand: &Operand) -> Option<(LayerId, Vec<String>)> {
    let layer = network.layer(operand.layer);
    let (Operator::Transpose(transpose), [read]) = (&layer.operator, layer.inputs.as_slice()) else {
        return None;
    };
    let to_first = read.shape.order == Order::ChannelsLast && layer.shape.order == Order::ChannelsFirst;
    let is_relabelled = to_first && transpose.perm == [0, 3, 1, 2] && is_as_made(network, read);
    (is_relabelled && operand.shape == layer.shape).then(|| (read.layer, layer.onnx_nodes.clone()))
}
