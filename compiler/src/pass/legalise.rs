//! Legalisation: a layer of its own brings a tensor into the layout in which another layer reads it.
//!
//! In the *layout-transformation graph* the layouts are nodes, and each primitive that converts one into another is an
//! edge. Not every pair of layouts has one, so a conversion is a chain of them, the shortest that there is. Readers of a
//! tensor that want the same layout share the chain.

use std::collections::BTreeMap;

use csdfc_codegen::bind::Primitive;
use csdfc_codegen::format::Layout;
use csdfc_codegen::operator::Operator;

use super::names::Names;
use crate::network::{Layer, LayerId, Network, Operand};

/// The network with conversions wherever a chosen primitive reads another layout than its operand has, and before
/// outputs of the network, which the caller reads as HWC.
///
/// A layer that sees an operand in other dimensions than the tensor has goes back to its first primitive, since no other
/// reads it so.
pub fn legalise(network: Network) -> Network {
    let mut names = Names::of(&network);
    let Network { layers, outputs } = network;
    let mut result = Network { layers: Vec::new(), outputs };
    let mut converted = BTreeMap::new();
    // The new place of each layer.
    let mut places: Vec<LayerId> = Vec::new();
    for mut layer in layers {
        for operand in &mut layer.inputs {
            operand.layer = places[operand.layer.0];
        }
        if layer.inputs.iter().any(|operand| result.layer(operand.layer).shape != operand.shape) {
            layer.primitive = None;
        }
        let [reads, _] = layer.primitive().layouts();
        for operand in &mut layer.inputs {
            operand.layer = convert(&mut result, &mut names, &mut converted, operand.layer, reads);
        }
        places.push(result.add(layer));
    }
    for place in 0..result.outputs.len() {
        let made = places[result.outputs[place].operand.layer.0];
        let converted = convert(&mut result, &mut names, &mut converted, made, Layout::Hwc);
        result.outputs[place].operand.layer = converted;
    }
    result
}

/// Adds the layers that bring a tensor into this layout, unless it lies so or there is such a copy, which is returned.
fn convert(
    network: &mut Network,
    names: &mut Names,
    converted: &mut BTreeMap<(LayerId, Layout), LayerId>,
    tensor: LayerId,
    to: Layout,
) -> LayerId {
    let mut made = tensor;
    for primitive in chain(network.layer(tensor).format().layout, to) {
        let [_, layout] = primitive.layouts();
        made = *converted.entry((tensor, layout)).or_insert_with(|| {
            let Layer { name, output, shape, .. } = network.layer(tensor);
            let suffix = layout.to_string().to_lowercase();
            let [name, output] = [name, output].map(|name| names.unique(format!("{name}_{suffix}")));
            let shape = shape.clone();
            network.add(Layer {
                name,
                output,
                onnx_nodes: Vec::new(),
                operator: Operator::Convert,
                inputs: vec![Operand { layer: made, shape: shape.clone() }],
                parameters: Vec::new(),
                shape,
                primitive: Some(primitive),
            })
        });
    }
    made
}

/// The fewest primitives that lead from one layout to another, in turn; none for the same.
fn chain(from: Layout, to: Layout) -> Vec<Primitive> {
    let steps = || Primitive::all().filter(|primitive| primitive.computes(&Operator::Convert, &[]));
    let mut chains = vec![(from, Vec::new())];
    let mut next = 0;
    while let Some((layout, chain)) = chains.get(next).cloned() {
        if layout == to {
            return chain;
        }
        for step in steps().filter(|step| step.layouts()[0] == layout) {
            let [_, reached] = step.layouts();
            if chains.iter().all(|(layout, _)| *layout != reached) {
                chains.push((reached, [chain.clone(), vec![step]].concat()));
            }
        }
        next += 1;
    }
    unreachable!("the primitives that convert connect all layouts, as a test sees to")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_can_be_reached_from_every_other() {
        let names = |from, to| chain(from, to).into_iter().map(Primitive::name).collect::<Vec<_>>();
        for layout in Layout::ALL {
            assert!(names(layout, layout).is_empty());
        }
        let (hwc, hcw, chw) = (Layout::Hwc, Layout::Hcw, Layout::Chw);
        assert_eq!(names(hwc, hcw), ["convert-swap-hwc-hcw"]);
        assert_eq!(names(hcw, hwc), ["convert-swap-hcw-hwc"]);
        assert_eq!(names(hwc, chw), ["convert-swap-hwc-hcw", "convert-scatter-hcw-chw"]);
        assert_eq!(names(chw, hwc), ["convert-gather-chw-hcw", "convert-swap-hcw-hwc"]);
        assert_eq!(names(hcw, chw), ["convert-scatter-hcw-chw"]);
        assert_eq!(names(chw, hcw), ["convert-gather-chw-hcw"]);
    }
}
