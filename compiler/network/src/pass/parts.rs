//! Convolutions read the operands of a concat where they lie.
//!
//! A concat along the channels costs a tensor as large as all its operands, and time to move them. A convolution can
//! read each operand as a part of its image instead. A pool works on each channel alone. So a pool between a concat
//! and a convolution becomes one pool for each part.
//!
//! A concat is removed only if all its readers can do without it. The tensors that are kept instead then have the
//! concat's size in sum, so no order of whole tensors gets worse.

use std::collections::BTreeSet;

use csdfc_plan::operator::{Concat, Operator};
use csdfc_plan::shape::Order;

use super::rewrite::drop_dead;
use crate::{Layer, LayerId, Network, Operand};

/// Maximum number of parts of an image: concats of one tensor with itself, one after another, double them each time.
const MAX_PARTS: usize = 256;
/// Maximum number of pools that one pool becomes.
const MAX_POOLS: usize = 16;

/// Removes each concat of whole feature maps along their channels that is no network output, if all its readers can do
/// without it. Three kinds of readers can:
///
/// - a dense convolution, which reads the operands as parts of its image;
/// - another concat along the channels;
/// - a pool with such readers only, which becomes a pool for each operand.
///
/// If one reader needs the concat, it remains for all its readers, since its tensor exists anyway. Memory does not
/// grow: the tensors that are read in its place have its size in sum.
///
/// If an operand's integers stand for other numbers than the concat's integers do, the concat remains.
pub(super) fn concats(network: Network) -> Network {
    let goes = without(&network);
    if !goes.contains(&true) {
        return network;
    }
    let mut names = Names {
        layers: network.layers.iter().map(|layer| layer.name.clone()).collect(),
        tensors: network.layers.iter().map(|layer| layer.output.clone()).collect(),
    };
    let Network { layers, outputs, states, .. } = network;
    let mut result = Network { states, ..Network::default() };
    // What now replaces each layer's tensor: the tensor itself or parts of it, and the nodes whose work its readers do.
    let mut substitutes: Vec<Substitute> = Vec::new();
    for (id, mut layer) in layers.into_iter().enumerate() {
        let spread: Vec<Operand> =
            layer.inputs.iter().flat_map(|x| substitutes[x.layer.0].seen_as(x)).collect();
        let nodes: Vec<String> =
            layer.inputs.iter().flat_map(|x| substitutes[x.layer.0].nodes.clone()).collect();
        let substitute = match &layer.operator {
            Operator::Concat(_) if goes[id] => {
                // If a layer has no ONNX node, applications may refer to it by its name.
                let own = if layer.onnx_nodes.is_empty() { vec![layer.name] } else { layer.onnx_nodes };
                Substitute { operands: spread, nodes: [nodes, own].concat() }
            }
            Operator::Pool(_) if goes[id] && spread.len() > 1 => {
                let pools = spread.into_iter().enumerate();
                let pools = pools.map(|(part, x)| pool(&mut result, &mut names, &layer, part, x));
                Substitute { operands: pools.collect(), nodes }
            }
            _ => {
                layer.onnx_nodes.splice(0..0, nodes);
                layer.inputs = spread;
                let shape = layer.shape.clone();
                let own = Operand { layer: result.add(layer), shape };
                Substitute { operands: vec![own], nodes: Vec::new() }
            }
        };
        substitutes.push(substitute);
    }
    result.outputs = outputs;
    for output in &mut result.outputs {
        // A network output has one stand-in, itself.
        if let [own] = substitutes[output.operand.layer.0].operands.as_slice() {
            output.operand.layer = own.layer;
        }
    }
    drop_dead(result)
}

/// Names that are taken.
struct Names {
    layers: BTreeSet<String>,
    tensors: BTreeSet<String>,
}

/// What is read in the place of a tensor.
#[derive(Debug)]
struct Substitute {
    operands: Vec<Operand>,
    nodes: Vec<String>,
}

impl Substitute {
    /// The substitutes of the tensor, in the shapes in which a reader sees it.
    fn seen_as(&self, operand: &Operand) -> Vec<Operand> {
        match self.operands.as_slice() {
            [own] => vec![Operand { layer: own.layer, shape: operand.shape.clone() }],
            parts => parts.to_vec(),
        }
    }
}

/// The concats and pools whose tensors nobody would need.
fn without(network: &Network) -> Vec<bool> {
    // The number of parts of each tensor, if all tensors before it that can be in parts were.
    let mut parts: Vec<usize> = Vec::new();
    for layer in &network.layers {
        let is_whole = |x: &Operand| {
            let read = network.layer(x.layer);
            let is_moved =
                !matches!(layer.operator, Operator::Concat(_)) || read.quantization == layer.quantization;
            read.shape == x.shape && is_moved
        };
        let sum = layer.inputs.iter().fold(0, |sum: usize, x| sum.saturating_add(parts[x.layer.0]));
        let most = match layer.operator {
            Operator::Concat(_) if is_along_channels(layer) && layer.inputs.len() > 1 => MAX_PARTS,
            Operator::Pool(_) if layer.shape.order == Order::ChannelsFirst => MAX_POOLS,
            _ => 0,
        };
        parts.push(if (1..=most).contains(&sum) && layer.inputs.iter().all(is_whole) { sum } else { 1 });
    }
    let mut goes: Vec<bool> = network.ids().map(|id| parts[id.0] > 1).collect();
    for output in &network.outputs {
        goes[output.operand.layer.0] = false;
    }
    let readers = network.readers();
    for id in network.ids().collect::<Vec<_>>().into_iter().rev() {
        let takes = |reader: &LayerId| takes_parts(network, &goes, &parts, *reader, id);
        goes[id.0] = goes[id.0] && !readers[id.0].is_empty() && readers[id.0].iter().all(takes);
    }
    goes
}

fn is_along_channels(layer: &Layer) -> bool {
    layer.operator == Operator::Concat(Concat { axis: 1 })
        && layer.shape.rank() == 4
        && layer.shape.order == Order::ChannelsFirst
}

/// Whether a layer can read the parts of another's tensor in its place.
fn takes_parts(network: &Network, goes: &[bool], parts: &[usize], reader: LayerId, tensor: LayerId) -> bool {
    let layer = network.layer(reader);
    let mut uses = layer.inputs.iter().enumerate().filter(|(_, x)| x.layer == tensor);
    let operands = match &layer.operator {
        Operator::Conv(conv) if conv.groups == 1 => conv.parts(layer.inputs.len()),
        Operator::Concat(_) if parts[reader.0] > 1 => layer.inputs.len(),
        Operator::Pool(_) if goes[reader.0] => 1,
        _ => 0,
    };
    uses.all(|(place, x)| place < operands && x.shape == network.layer(tensor).shape)
}

/// Adds a pool of one part of what a pool reads.
fn pool(network: &mut Network, names: &mut Names, whole: &Layer, part: usize, operand: Operand) -> Operand {
    let mut shape = whole.shape.clone();
    shape.dims[1] = operand.shape.dims[1];
    let named = |whole: &str, taken: &mut BTreeSet<String>| {
        // The first keeps the name, by which an application may know the pool.
        let mut name = if part == 0 { whole.to_owned() } else { format!("{whole}.{part}") };
        while part > 0 && !taken.insert(name.clone()) {
            name += "_";
        }
        name
    };
    let layer = Layer {
        name: named(&whole.name, &mut names.layers),
        output: named(&whole.output, &mut names.tensors),
        onnx_nodes: whole.onnx_nodes.clone(),
        inputs: vec![operand],
        shape: shape.clone(),
        ..whole.clone()
    };
    Operand { layer: network.add(layer), shape }
}
