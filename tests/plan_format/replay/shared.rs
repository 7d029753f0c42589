//! Section 5, shared parameters.

use super::Refusal;
use super::model::{Layer, Operand, Plan};
use super::parameters::slopes;

/// Layers without parameters of their own.
pub fn check(plan: &Plan<'_>) -> Result<(), Refusal> {
    for cnn in &plan.cnns {
        for (l, layer) in cnn.layers.iter().enumerate() {
            let Some(of) = &layer.parameters_of else { continue };
            let wrong = || format!("{} cannot use the parameters of {of}", layer.name);
            let owner = cnn.layers[..l].iter().find(|owner| owner.name == *of).ok_or_else(wrong)?;
            let families = ["indirect-gemm-", "depthwise-direct-", "transposed-gather-", "gemm-panels-"];
            let has_slopes = |layer: &Layer| slopes(layer).is_ok_and(|slopes| slopes.is_some());
            let has_view =
                |layer: &Layer| layer.operands.iter().any(|read| cnn.layers[read.tensor].shape != read.seen);
            let is_free = families.iter().any(|family| layer.primitive.starts_with(family))
                && ![layer, owner].into_iter().any(has_slopes)
                && (layer.op != "gemm" || ![layer, owner].into_iter().any(has_view));
            let attributes = |layer: &Layer| {
                let mut attributes = layer.attributes.clone();
                let free = ["stride", "dilation", "pads", "output_padding", "residual", "activation"];
                if let (Some(fields), true) = (attributes.as_object_mut(), is_free) {
                    fields.retain(|name, _| !free.contains(&name.as_str()));
                }
                attributes
            };
            let tensors = |layer: &Layer| {
                let read = |operand: &Operand| {
                    let own = &cnn.layers[operand.tensor];
                    (own.shape.clone(), operand.seen.clone(), own.quantization.clone())
                };
                let made = (layer.shape.clone(), layer.shape.clone(), layer.quantization.clone());
                let all: Vec<_> = layer.operands.iter().map(read).chain([made]).collect();
                let quantizations: Vec<_> = all.iter().map(|tensor| tensor.2.clone()).collect();
                (if is_free { Vec::new() } else { all }, quantizations)
            };
            let streaming = |layer: &Layer| {
                layer
                    .streamed
                    .as_ref()
                    .map(|streamed| (streamed.filters, streamed.tiles.clone(), streamed.at))
            };
            let is_same = owner.parameters_of.is_none()
                && layer.parameters > 0
                && (&owner.primitive, owner.parameters, &owner.op)
                    == (&layer.primitive, layer.parameters, &layer.op)
                && attributes(owner) == attributes(layer)
                && tensors(owner) == tensors(layer)
                && streaming(owner) == streaming(layer);
            if !is_same {
                return Err(wrong());
            }
        }
    }
    Ok(())
}
