//! Rule 2, shared parameters: a layer uses those of an earlier layer only if both would keep the same bytes of the same
//! parameters.
//!
//! What a layer keeps follows from its parameters, its primitive, its attributes and its tensors. Of convolutions and
//! products whose filters lie in panels, fewer attributes and no sizes of images matter. The plan does not hold the
//! parameters themselves: whether they are the same is compared when the plan is read together with its model.

use crate::format::Quantization;
use crate::operator::{Conv, ConvTranspose, Function, Gemm, Operator};
use crate::plan::Layer;
use crate::shape::Shape;

use super::index::{CnnIndex, Index};
use super::{Findings, Violation};

/// Primitives whose panels do not depend on the sizes of images, without the layouts and elements in their names.
const PANELS: [&str; 4] = ["indirect-gemm-", "depthwise-direct-", "transposed-gather-", "gemm-panels-"];

/// Checks that each layer that uses the parameters of another keeps the same.
pub(super) fn check(index: &Index<'_>) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    for cnn in &index.cnns {
        for (l, entry) in cnn.layers.iter().enumerate() {
            let Some(owner) = entry.parameters_of else { continue };
            if let Some(why) = difference(cnn, owner, l) {
                let name = &cnn.layers[owner].layer.name;
                let (cnn, layer) = (cnn.cnn.name.clone(), entry.layer.name.clone());
                let why = format!("it cannot use the parameters of `{name}`: {why}");
                findings.push(Violation::Operator { cnn, layer, why });
            }
        }
    }
    findings.or(())
}

/// Why a layer cannot use the parameters of another.
fn difference(cnn: &CnnIndex<'_>, owner: usize, user: usize) -> Option<&'static str> {
    let [a, b] = [owner, user].map(|l| cnn.layers[l].layer);
    let is_same_form = match (packed(a), packed(b)) {
        (Some(of_a), Some(of_b)) => of_a == of_b && quantizations(cnn, owner) == quantizations(cnn, user),
        _ => a.operator == b.operator && tensors(cnn, owner) == tensors(cnn, user),
    };
    let streaming =
        |layer: &Layer| layer.streamed.as_ref().map(|streamed| (streamed.filters, streamed.tiles.clone()));
    if owner >= user {
        Some("it is no earlier layer")
    } else if a.parameters_of.is_some() {
        Some("it keeps none of its own")
    } else if b.parameters == 0 {
        Some("there are none")
    } else if a.primitive != b.primitive || a.parameters != b.parameters || !is_same_form {
        Some("they are kept in another form")
    } else if streaming(a) != streaming(b) {
        Some("they are read from the store in another way")
    } else {
        None
    }
}

/// The quantizations of the tensors that a layer reads, and of its own.
fn quantizations(cnn: &CnnIndex<'_>, l: usize) -> Vec<Option<Quantization>> {
    let entry = &cnn.layers[l];
    entry.inputs.iter().chain([&l]).map(|&tensor| cnn.layers[tensor].tensor.quantization).collect()
}

/// The tensors that a layer reads, as they are and as it sees them, and its own.
fn tensors<'a>(cnn: &CnnIndex<'a>, l: usize) -> Vec<(&'a Shape, &'a Shape, Option<Quantization>)> {
    let (entry, seen) = (&cnn.layers[l], cnn.seen_all(l));
    let seen = seen.into_iter().chain([&entry.tensor.shape]);
    let tensor = |(&tensor, seen): (&usize, &'a Shape)| {
        let tensor = cnn.layers[tensor].tensor;
        (&tensor.shape, seen, tensor.quantization)
    };
    entry.inputs.iter().chain([&l]).zip(seen).map(tensor).collect()
}

/// The operator of a layer with panels, without the attributes on which these do not depend. `None` for all other
/// layers, and if slopes may lie outside the panels, or a product sees its operand through a view.
fn packed(layer: &Layer) -> Option<Operator> {
    let has_panels = PANELS.iter().any(|family| layer.primitive.starts_with(family));
    if !has_panels || matches!(layer.operator.activation(), Some(Function::PRelu { .. })) {
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
        Operator::Gemm(gemm) if layer.inputs.iter().all(|input| input.view.is_none()) => {
            Some(Operator::Gemm(Gemm { activation, ..gemm.clone() }))
        }
        _ => None,
    }
}
