//! Layers that move the elements of a tensor where no kernel reads them as they lie.

use std::collections::BTreeSet;

use csdfc_codegen::bind::{self, Site};
use csdfc_codegen::operator::{Operator, Transpose};
use csdfc_codegen::shape::Shape;

use crate::network::{Layer, LayerId, Network, Operand};

/// Moves each operand that a layer sees in another shape than it has, where no kernel computes the layer so, into that
/// shape first. A convolution, say, reads rows of an image, and a reshape may have cut the image into other rows.
pub(super) fn copies(network: Network) -> Network {
    let names = network.layers.iter().flat_map(|layer| [layer.name.clone(), layer.output.clone()]);
    let mut names: BTreeSet<String> = names.collect();
    let Network { layers, outputs } = network;
    let mut result = Network::default();
    // The new place of each layer.
    let mut places: Vec<LayerId> = Vec::new();
    for mut layer in layers {
        for operand in &mut layer.inputs {
            operand.layer = places[operand.layer.0];
        }
        if !layer.is_input() && !is_bound(&result, &layer) {
            for place in 0..layer.inputs.len() {
                let operand = layer.inputs[place].clone();
                if result.layer(operand.layer).shape != operand.shape {
                    layer.inputs[place] = copy(&mut result, &mut names, &layer, operand);
                }
            }
        }
        places.push(result.add(layer));
    }
    result.outputs = outputs;
    for output in &mut result.outputs {
        output.operand.layer = places[output.operand.layer.0];
    }
    result
}

/// Whether a kernel computes a layer as it sees its operands.
fn is_bound(network: &Network, layer: &Layer) -> bool {
    let operand = |operand: &Operand| network.layer(operand.layer).shape.clone();
    let own: Vec<Shape> = layer.inputs.iter().map(operand).collect();
    let inputs = layer.inputs.iter().zip(&own);
    let inputs =
        inputs.map(|(operand, own)| bind::Operand { own, seen: &operand.shape, ring_rows: own.rows() });
    let site = Site {
        operator: &layer.operator,
        inputs: inputs.collect(),
        output: &layer.shape,
        ring_rows: layer.shape.rows(),
    };
    bind::bind(&site).is_ok()
}

/// Adds a layer that moves an operand of a layer into the shape in which it is seen.
fn copy(network: &mut Network, names: &mut BTreeSet<String>, reader: &Layer, operand: Operand) -> Operand {
    let shape = Shape::new(operand.shape.dims.clone());
    let mut unique = |base: &str| {
        let mut name = format!("{base}_copy");
        while !names.insert(name.clone()) {
            name += "_";
        }
        name
    };
    let layer = Layer {
        name: unique(&reader.name),
        output: unique(&network.layer(operand.layer).output),
        onnx_nodes: Vec::new(),
        operator: Operator::Transpose(Transpose { perm: (0..shape.rank()).collect() }),
        inputs: vec![operand],
        parameters: Vec::new(),
        shape: shape.clone(),
        element_bytes: 4,
    };
    Operand { layer: network.add(layer), shape }
}
