//! Layers that use the parameters of an earlier layer: initialisers that several nodes read are kept once.
//!
//! Two layers share parameters if these are the same in the model, and if both layers would keep the same bytes of them.
//! A convolution or a product keeps panels that do not depend on the size of its image or on its activation. So heads
//! that are applied to several levels of a pyramid share, and so do the two branches of a siamese network.
//!
//! Two branches with the same product, as in a siamese network:
//!
//! ```
//! use csdfc_network::sharing::owners;
//! use csdfc_network::weights::Weights;
//! use csdfc_network::{Layer, LayerId, Network, Operand};
//! # use csdfc_plan::operator::{Gemm, Input, InputElement, Operator};
//! # use csdfc_plan::shape::Shape;
//! # let shape = Shape::new([1, 84]);
//! # let layer = |name: &str, operator, reads: &[usize], parameters| Layer {
//! #     name: name.into(),
//! #     onnx_nodes: Vec::new(),
//! #     operator,
//! #     inputs: reads.iter().map(|at| Operand { layer: LayerId(*at), shape: shape.clone() }).collect(),
//! #     parameters,
//! #     output: name.into(),
//! #     shape: shape.clone(),
//! #     primitive: None,
//! #     quantization: None,
//! # };
//! # let input = Operator::Input(Input { element: InputElement::F32, camera: None });
//! # let gemm = Operator::Gemm(Gemm { inner: 84, units: 84, transposed: true, bias: false, activation: None });
//!
//! let weights = vec![Weights::new([84, 84], vec![0.5; 84 * 84])];
//! let mut network = Network::default();
//! network.add(layer("left", input.clone(), &[], vec![]));
//! network.add(layer("right", input, &[], vec![]));
//! network.add(layer("fc1", gemm.clone(), &[0], weights.clone()));
//! network.add(layer("fc2", gemm, &[1], weights));
//! // `fc2` uses the parameters of `fc1`.
//! assert_eq!(owners(&network, |_, _| true), [None, None, None, Some(LayerId(2))]);
//! ```

use std::collections::BTreeMap;

use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Conv, ConvTranspose, Function, Gemm, Operator};
use csdfc_plan::shape::Shape;

use crate::{Layer, LayerId, Network};

/// For each layer, the first layer whose parameters it can use, if that is another one. `together` says whether two
/// layers may share at all: those that keep their weights in memory with each other, for instance.
pub fn owners(network: &Network, together: impl Fn(LayerId, LayerId) -> bool) -> Vec<Option<LayerId>> {
    // Layers that keep their own, by what is quick to compare.
    let mut known: BTreeMap<(&str, &[usize]), Vec<LayerId>> = BTreeMap::new();
    let owner = |id: LayerId| {
        let layer = network.layer(id);
        let dims = layer.parameters.first()?.dims.as_slice();
        let alike = known.entry((layer.primitive().name(), dims)).or_default();
        let found = alike.iter().copied().find(|&owner| together(owner, id) && is_same(network, owner, id));
        if found.is_none() {
            alike.push(id);
        }
        found
    };
    network.ids().map(owner).collect()
}

/// Whether two layers of one primitive keep the same bytes of the same parameters.
fn is_same(network: &Network, a: LayerId, b: LayerId) -> bool {
    let [one, other] = [a, b].map(|id| network.layer(id));
    let is_same_form = match [packed(network, one), packed(network, other)] {
        [Some(of_one), Some(of_other)] => {
            of_one == of_other && quantizations(network, one) == quantizations(network, other)
        }
        _ => one.operator == other.operator && tensors(network, one) == tensors(network, other),
    };
    is_same_form && one.parameters == other.parameters
}

/// The quantizations of the tensors that a layer reads, and of its own.
fn quantizations(network: &Network, layer: &Layer) -> Vec<Option<Quantization>> {
    let read = layer.inputs.iter().map(|operand| network.layer(operand.layer).quantization);
    read.chain([layer.quantization]).collect()
}

/// The tensors that a layer reads, as they are and as it sees them, and its own.
fn tensors<'n>(network: &'n Network, layer: &'n Layer) -> Vec<(&'n Shape, &'n Shape, Option<Quantization>)> {
    let read = layer.inputs.iter().map(|operand| {
        let tensor = network.layer(operand.layer);
        (&tensor.shape, &operand.shape, tensor.quantization)
    });
    read.chain([(&layer.shape, &layer.shape, layer.quantization)]).collect()
}

/// The operator of a layer that keeps its parameters in panels, without the attributes on which these do not depend.
/// All of it matters to other layers, to slopes, which may lie outside the panels, and to a product that sees an image
/// as a vector.
fn packed(network: &Network, layer: &Layer) -> Option<Operator> {
    if !layer.primitive().has_panels() || matches!(layer.operator.activation(), Some(Function::PRelu { .. }))
    {
        return None;
    }
    let (stride, dilation, pads, activation) = ([1; 2], [1; 2], [0; 4], None);
    match &layer.operator {
        Operator::Conv(conv) => {
            let residual = false;
            Some(Operator::Conv(Conv { stride, dilation, pads, residual, activation, ..conv.clone() }))
        }
        Operator::ConvTranspose(conv) => {
            let output_padding = [0; 2];
            let conv = ConvTranspose { stride, dilation, pads, output_padding, activation, ..conv.clone() };
            Some(Operator::ConvTranspose(conv))
        }
        Operator::Gemm(gemm) => {
            let is_plain = |operand: &crate::Operand| network.layer(operand.layer).shape == operand.shape;
            layer.inputs.iter().all(is_plain).then(|| Operator::Gemm(Gemm { activation, ..gemm.clone() }))
        }
        _ => None,
    }
}
