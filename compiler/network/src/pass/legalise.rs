//! Legalisation: a layer of its own brings a tensor into the format in which another layer reads it.
//!
//! In the *layout-transformation graph* the formats are nodes, and each primitive that converts one into another is an
//! edge. Not every pair of formats has a primitive, so a conversion is a chain of primitives, the shortest possible.
//! Readers of a tensor that want the same format share the chain.

use std::collections::BTreeMap;

use csdfc_plan::format::{Element, Format, Layout, Quantization};
use csdfc_plan::operator::Operator;
use csdfc_runtime::bind::Primitive;

use super::names::Names;
use super::rewrite;
use crate::{Layer, LayerId, Network, NetworkOutput, Operand};

/// The network with conversions in two places: wherever a chosen primitive reads another format than its operand has,
/// and before outputs of the network. The caller reads outputs in HWC, as 32-bit floats if they are numbers, unless it wants
/// 8-bit integers ([`NetworkOutput::integers`]).
///
/// If a layer sees an operand in other dimensions than the tensor has, no primitive of another layout can read it. Such
/// a layer goes back to its first primitive.
pub fn legalise(network: Network) -> Network {
    let mut names = Names::new(&network);
    let mut converted = BTreeMap::new();
    let mut result = rewrite::with_layers_before(network, |result, _, layer| {
        let sees_views =
            layer.inputs.iter().any(|operand| result.layer(operand.layer).shape != operand.shape);
        if sees_views && layer.primitive().layouts() != [Layout::Hwc; 2] {
            layer.primitive = None;
        }
        let reads = layer.primitive().reads();
        for operand in &mut layer.inputs {
            operand.layer = convert(result, &mut names, &mut converted, operand.layer, reads);
        }
    });
    for place in 0..result.outputs.len() {
        let NetworkOutput { operand, integers, .. } = &result.outputs[place];
        let (made, integers) = (operand.layer, *integers);
        let layer = result.layer(made);
        let element = match layer.format().element {
            Element::U8 if integers.is_some() && layer.quantization == integers => Element::U8,
            Element::F16 | Element::U8 => Element::F32,
            other => other,
        };
        let format = Format { layout: Layout::Hwc, element };
        let mut held = convert(&mut result, &mut names, &mut converted, made, format);
        if integers.is_some() && element == Element::F32 {
            held = add_conversion(&mut result, &mut names, (made, held), quantize(), integers);
        }
        result.outputs[place].operand.layer = held;
    }
    result
}

/// Adds the layers that bring a tensor into this format, unless it has the format or a converted copy exists. Returns
/// the tensor in this format.
fn convert(
    network: &mut Network,
    names: &mut Names,
    converted: &mut BTreeMap<(LayerId, Format), LayerId>,
    tensor: LayerId,
    to: Format,
) -> LayerId {
    let mut made = tensor;
    for primitive in chain(network.layer(tensor).format(), to) {
        let format = primitive.makes(&Operator::Convert);
        made = *converted
            .entry((tensor, format))
            .or_insert_with(|| add_conversion(network, names, (tensor, made), primitive, None));
    }
    made
}

/// Adds a layer that converts the last of some copies of a tensor, of which it has its name.
fn add_conversion(
    network: &mut Network,
    names: &mut Names,
    (tensor, made): (LayerId, LayerId),
    primitive: Primitive,
    quantization: Option<Quantization>,
) -> LayerId {
    let [read, format] = [primitive.reads(), primitive.makes(&Operator::Convert)];
    let Layer { name, output, shape, .. } = network.layer(tensor);
    let suffix = match read.element == format.element {
        true => format.layout.to_string().to_lowercase(),
        false => format.element.to_string(),
    };
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
        quantization,
    })
}

/// The fewest primitives that lead from one format to another, in turn; none for the same.
fn chain(from: Format, to: Format) -> Vec<Primitive> {
    // The model says which integers stand for numbers. No conversion that this pass adds may decide it.
    let steps = || {
        let all = Primitive::all().filter(|primitive| primitive.computes(&Operator::Convert, &[]));
        all.filter(|primitive| primitive.makes(&Operator::Convert).element != Element::U8)
    };
    let mut chains = vec![(from, Vec::new())];
    let mut next = 0;
    while let Some((format, chain)) = chains.get(next).cloned() {
        if format == to {
            return chain;
        }
        for step in steps().filter(|step| step.reads() == format) {
            let reached = step.makes(&Operator::Convert);
            if chains.iter().all(|(format, _)| *format != reached) {
                chains.push((reached, [chain.clone(), vec![step]].concat()));
            }
        }
        next += 1;
    }
    unreachable!("the primitives that convert lead to all formats of floats, as a test sees to")
}

/// The primitive that makes integers of floats.
fn quantize() -> Primitive {
    let is_it = |primitive: &Primitive| {
        primitive.computes(&Operator::Convert, &[]) && primitive.elements() == [Element::F32, Element::U8]
    };
    let found = Primitive::all().find(is_it);
    found.unwrap_or_else(|| unreachable!("there is a primitive that quantizes, as a test sees to"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_primitive_quantizes() {
        assert_eq!(quantize().name(), "convert-quantize-hwc-hwc");
    }

    #[test]
    fn every_format_can_be_reached_from_every_other() {
        let names = |from, to| chain(from, to).into_iter().map(Primitive::name).collect::<Vec<_>>();
        let single = |layout| Format { layout, element: Element::F32 };
        for layout in Layout::ALL {
            assert!(names(single(layout), single(layout)).is_empty());
        }
        let [chw, hcw, hwc] = [Layout::Chw, Layout::Hcw, Layout::Hwc].map(single);
        // No primitive makes CHW or HCW images of 16-bit floats.
        let half = Format { element: Element::F16, ..hwc };
        assert_eq!(names(hwc, half), ["convert-narrow-hwc-hwc"]);
        assert_eq!(names(half, hwc), ["convert-widen-hwc-hwc"]);
        assert_eq!(
            names(chw, half),
            ["convert-gather-chw-hcw", "convert-swap-hcw-hwc", "convert-narrow-hwc-hwc"]
        );
        assert_eq!(names(half, hcw), ["convert-widen-hwc-hwc", "convert-swap-hwc-hcw"]);
        let integers = Format { element: Element::U8, ..hwc };
        assert_eq!(names(integers, half), ["convert-dequantize-hwc-hwc", "convert-narrow-hwc-hwc"]);
        assert_eq!(names(hwc, hcw), ["convert-swap-hwc-hcw"]);
        assert_eq!(names(hcw, hwc), ["convert-swap-hcw-hwc"]);
        assert_eq!(names(hwc, chw), ["convert-swap-hwc-hcw", "convert-scatter-hcw-chw"]);
        assert_eq!(names(chw, hwc), ["convert-gather-chw-hcw", "convert-swap-hcw-hwc"]);
        assert_eq!(names(hcw, chw), ["convert-scatter-hcw-chw"]);
        assert_eq!(names(chw, hcw), ["convert-gather-chw-hcw"]);
    }
}
