//! Transposes that undo each other, and Transposes that keep rows.

use csdfc_plan::operator::{Operator, Reduce, Transpose};
use csdfc_plan::shape::{Order, Shape};

use super::rewrite::drop_dead;
use crate::operators::RowAccess;
use crate::{Layer, LayerId, Network, Operand, operators};

/// Lets layers read what a Transpose reads, if it undoes the Transpose before it, or if they reduce what it moves. TFLite's
/// layers between images and lines leave such pairs.
pub(super) fn undone(mut network: Network) -> Network {
    for id in network.ids() {
        for at in 0..network.layer(id).inputs.len() {
            if let Some((source, mut nodes)) =
                before_inverse_transposes(&network, &network.layer(id).inputs[at])
            {
                let layer = &mut network.layers[id.0];
                layer.inputs[at].layer = source;
                nodes.retain(|node| !layer.onnx_nodes.contains(node));
                layer.onnx_nodes.splice(..0, nodes);
            }
        }
        if let Some((reduce, operand, shape)) = reduced(&network, network.layer(id)) {
            let layer = &mut network.layers[id.0];
            layer.operator = Operator::Reduce(reduce);
            layer.inputs = vec![operand];
            layer.shape = shape;
        }
    }
    for at in 0..network.outputs.len() {
        if let Some((source, _)) = before_inverse_transposes(&network, &network.outputs[at].operand) {
            network.outputs[at].operand.layer = source;
        }
    }
    drop_dead(network)
}

/// Lets Transposes read and make images whose rows stay rows, where nobody can tell the difference. So attention goes by
/// rows: `[1, T, H · d]`, whose rows are the T tokens, becomes `[1, H, T, d]` and back, and each token is a row of both.
///
/// A tensor that is no image lies in the order of its dimensions. Seen as a channels-last image it has the same elements
/// at the same places, but other rows. So may what a Transpose makes, if all its readers see it in another rank; then it lies in
/// the order of its dimensions, whether it goes by rows or not.
pub(super) fn by_rows(mut network: Network) -> Network {
    for id in network.ids() {
        let layer = network.layer(id);
        let (Operator::Transpose(transpose), [read]) = (&layer.operator, layer.inputs.as_slice()) else {
            continue;
        };
        let own = &network.layer(read.layer).shape;
        let is_free = |own: &Shape, seen: &Shape| !own.is_image() && seen.is_image();
        let operands = network.layers.iter().flat_map(|layer| &layer.inputs);
        let operands = operands.chain(network.outputs.iter().map(|output| &output.operand));
        let is_read_flat = operands.filter(|operand| operand.layer == id).all(|seen| seen.shape.rank() != 4);
        let seen = orders(&read.shape, is_free(own, &read.shape));
        let made = orders(&layer.shape, layer.shape.is_image() && is_read_flat);
        let to = |made: &Shape| Operator::Transpose(Transpose { order: made.order, ..transpose.clone() });
        let mut pairs = seen.iter().flat_map(|seen| made.iter().map(move |made| (seen, made)));
        let by_rows = pairs.find(|(seen, made)| {
            let access = operators::row_access(&to(made), own, std::slice::from_ref(seen), made, 0);
            access != RowAccess::Whole
        });
        // Channels-last, what it makes lies in the order of its dimensions, as its readers see it.
        let as_read = || made.iter().find(|made| is_read_flat && made.order == Order::ChannelsLast);
        if let Some((seen, made)) = by_rows.or_else(|| Some((&read.shape, as_read()?))) {
            let (operator, seen, made) = (to(made), seen.clone(), made.clone());
            let layer = &mut network.layers[id.0];
            layer.operator = operator;
            layer.inputs[0].shape = seen;
            layer.shape = made;
        }
    }
    network
}

/// The shape, and if it may have either order, the same dimensions in the other.
fn orders(shape: &Shape, either: bool) -> Vec<Shape> {
    let mut all = vec![shape.clone()];
    if either {
        let order = match shape.order {
            Order::ChannelsFirst => Order::ChannelsLast,
            Order::ChannelsLast => Order::ChannelsFirst,
        };
        all.push(Shape { order, ..shape.clone() });
    }
    all
}

/// The tensor before two Transposes that undo each other, if the operand can be a view of it, and the nodes between.
fn before_inverse_transposes(network: &Network, operand: &Operand) -> Option<(LayerId, Vec<String>)> {
    let layer = network.layer(operand.layer);
    let (Operator::Transpose(transpose), [read]) = (&layer.operator, layer.inputs.as_slice()) else {
        return None;
    };
    let source = Source::new(network, read)?;
    let moving = moving(&read.shape);
    let place = |axis: &usize| moving.iter().position(|other| other == axis);
    let axes: Vec<usize> = transpose.perm.iter().filter_map(place).map(|at| source.axes[at]).collect();
    let own = &network.layer(source.layer).shape;
    let is_in_order = operand.shape.order == Order::ChannelsFirst || *own == layer.shape;
    let nodes = [&network.layer(read.layer).onnx_nodes[..], &layer.onnx_nodes].concat();
    (axes.is_sorted() && is_in_order && own.order == Order::ChannelsFirst).then_some((source.layer, nodes))
}

/// The dimensions of more than one element.
fn moving(shape: &Shape) -> Vec<usize> {
    (0..shape.rank()).filter(|axis| shape.dims[*axis] > 1).collect()
}

/// A reduction that follows a Transpose, as one that reads what the Transpose reads: the same result without the
/// Transpose.
fn reduced(network: &Network, layer: &Layer) -> Option<(Reduce, Operand, Shape)> {
    let Operator::Reduce(reduce) = &layer.operator else { return None };
    let read = layer.inputs.first()?;
    let source = Source::new(network, read)?;
    let own = &network.layer(source.layer).shape;
    let (gone, left): (Vec<_>, Vec<_>) =
        moving(&read.shape).into_iter().zip(source.axes).partition(|(axis, _)| reduce.axes.contains(axis));
    if !left.iter().map(|(_, axis)| axis).is_sorted() || own.order != Order::ChannelsFirst {
        return None;
    }
    let is_gone = |axis: &usize| own.dims[*axis] == 1 || gone.iter().any(|(_, other)| other == axis);
    let axes = (1..own.rank()).filter(is_gone).collect();
    let reduce = Reduce { axes, ..reduce.clone() };
    let shape = operators::output_shape(&Operator::Reduce(reduce.clone()), std::slice::from_ref(own)).ok()?;
    // Its readers see other dimensions of 1, in the same order.
    let fits =
        shape == layer.shape || (layer.shape.rank() != 4 && shape.elements() == layer.shape.elements());
    fits.then(|| (reduce, Operand { layer: source.layer, shape: own.clone() }, shape))
}

/// What a Transpose reads.
struct Source {
    layer: LayerId,
    /// For each dimension of the output that has more than one element, the dimension of the input that it was.
    axes: Vec<usize>,
}

impl Source {
    /// What the Transpose reads that makes this operand.
    fn new(network: &Network, operand: &Operand) -> Option<Source> {
        let layer = network.layer(operand.layer);
        let (Operator::Transpose(Transpose { perm, .. }), [read]) =
            (&layer.operator, layer.inputs.as_slice())
        else {
            return None;
        };
        let Layer { shape: own, quantization, .. } = network.layer(read.layer);
        let places = match (own.order, read.shape.order) {
            _ if *own == read.shape => (0..own.rank()).collect(),
            (Order::ChannelsFirst, Order::ChannelsLast) if own.rank() == 4 && read.shape.rank() == 4 => {
                vec![0, 2, 3, 1]
            }
            _ => return None,
        };
        let many = |shape: &Shape| moving(shape).iter().map(|axis| shape.dims[*axis]).collect::<Vec<_>>();
        let is_in_order =
            operand.shape.order == layer.shape.order && many(&operand.shape) == many(&layer.shape);
        let moved = perm.iter().filter(|axis| read.shape.dims[**axis] > 1);
        let axes = moved.map(|axis| places.get(*axis).copied()).collect::<Option<_>>()?;
        let is_moved = is_in_order && *quantization == layer.quantization;
        is_moved.then_some(Source { layer: read.layer, axes })
    }
}
