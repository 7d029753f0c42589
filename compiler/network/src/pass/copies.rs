//! Layers that move the elements of a tensor if no kernel can read them as they lie.

use csdfc_plan::operator::{Operator, Transpose};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::{self, Site};

use super::names::Names;
use super::rewrite;
use crate::{Layer, Network, Operand};

/// Inserts a layer that moves an operand into the shape in which a layer sees it, if no kernel can compute the layer
/// otherwise. For example, a convolution reads rows of an image, and a reshape may have cut the image into other rows.
pub(super) fn copies(network: Network) -> Network {
    let mut names = Names::new(&network);
    rewrite::with_layers_before(network, |result, _, layer| {
        if layer.is_input() || is_bound(result, layer) {
            return;
        }
        for place in 0..layer.inputs.len() {
            let operand = layer.inputs[place].clone();
            if result.layer(operand.layer).shape != operand.shape {
                layer.inputs[place] = copy(result, &mut names, layer, operand);
            }
        }
    })
}

/// Whether a kernel computes a layer as it sees its operands.
fn is_bound(network: &Network, layer: &Layer) -> bool {
    bind::bind(layer.primitive(), &site(network, layer)).is_ok()
}

/// The layer as a site at which every tensor is stored whole.
pub(super) fn site<'a>(network: &'a Network, layer: &'a Layer) -> Site<'a> {
    let inputs = layer.inputs.iter().map(|operand| (&network.layer(operand.layer).shape, &operand.shape));
    let mut site = Site::whole(&layer.operator, inputs, &layer.shape);
    (site.elements, site.quantization) = (layer.primitive().elements(), layer.quantization);
    for (operand, read) in site.inputs.iter_mut().zip(&layer.inputs) {
        operand.quantization = network.layer(read.layer).quantization;
    }
    site
}

/// Adds a layer that moves an operand of a layer into the shape in which it is seen.
fn copy(network: &mut Network, names: &mut Names, reader: &Layer, operand: Operand) -> Operand {
    let shape = Shape::new(operand.shape.dims.clone());
    let mut unique = |base: &str| names.unique(format!("{base}_copy"));
    let layer = Layer {
        name: unique(&reader.name),
        output: unique(&network.layer(operand.layer).output),
        onnx_nodes: Vec::new(),
        operator: Operator::Transpose(Transpose::new((0..shape.rank()).collect::<Vec<_>>())),
        inputs: vec![operand],
        parameters: Vec::new(),
        shape: shape.clone(),
        primitive: None,
        quantization: None,
    };
    Operand { layer: network.add(layer), shape }
}

#[cfg(test)]
mod tests {
    use csdfc_plan::operator::{ElementWise, Function, Input, InputElement, Softmax, SpaceToDepth};

    use super::*;
    use crate::NetworkOutput;
    use crate::operators;

    /// A layer that sees an image of 2×4×6 as one of 4×2×6, and the operators of the network after the pass.
    fn check(operator: Operator, expected: &[&str]) {
        let mut network = Network::default();
        let mut add = |operator: Operator, inputs: Vec<Operand>, shape: Shape| {
            let name = operator.kind().to_owned();
            let layer = Layer {
                output: format!("{name}:0"),
                name,
                onnx_nodes: Vec::new(),
                operator,
                inputs,
                parameters: Vec::new(),
                shape: shape.clone(),
                primitive: None,
                quantization: None,
            };
            Operand { layer: network.add(layer), shape }
        };
        let input = Operator::Input(Input { element: InputElement::F32, camera: None });
        let x = Operand { shape: Shape::image(4, 2, 6), ..add(input, Vec::new(), Shape::image(2, 4, 6)) };
        let shape = operators::output_shape(&operator, std::slice::from_ref(&x.shape)).unwrap();
        let operand = add(operator, vec![x], shape);
        network.outputs = vec![NetworkOutput::new("y", operand)];
        let network = copies(network);
        let kinds: Vec<&str> = network.layers.iter().map(|layer| layer.operator.kind()).collect();
        assert_eq!(kinds, expected);
        let last = &network.layers[network.outputs[0].operand.layer.0];
        assert!(is_bound(&network, last) && last.inputs[0].shape == Shape::image(4, 2, 6));
    }

    #[test]
    fn only_what_no_kernel_reads_is_moved() {
        let conv = csdfc_plan::operator::Conv {
            filters: 1,
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            pads: [0; 4],
            groups: 1,
            bias: false,
            pre: None,
            residual: false,
            activation: None,
        };
        check(Operator::Conv(conv), &["input", "transpose", "conv"]);
        check(Operator::ElementWise(ElementWise { function: Function::Relu }), &["input", "element_wise"]);
        check(Operator::Softmax(Softmax { axes: vec![1], log: false }), &["input", "softmax"]);
        check(Operator::SpaceToDepth(SpaceToDepth { block: 2 }), &["input", "space_to_depth"]);
    }
}
