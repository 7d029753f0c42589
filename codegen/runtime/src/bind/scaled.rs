//! Weights as a model's file has them, for tensors of 32-bit floats: which kernel computes a layer whose weights are
//! 8-bit integers or 16-bit floats with a scale for each output channel. The scales are one more parameter, the last.

use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::scaled::ScaledConv;
use std::borrow::Cow;

use csdfc_plan::operator::{Function, Operator};
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::choice::Choice;
use super::constants::{self, Packing, Part};
use super::kernel::{Kernel, Site};
use super::products::{ProductRows, is_computed, rows_of_product};
use super::translate;

/// Whether this is a convolution that such kernels compute. Its activation has no slopes.
pub(super) fn is_conv(operator: &Operator, inputs: &[&Shape], depthwise: bool) -> bool {
    translate::is_conv(operator, inputs, depthwise) && !has_slopes(operator)
}

/// The same for a matrix product by constants.
pub(super) fn is_gemm(operator: &Operator, _: &[&Shape]) -> bool {
    matches!(operator, Operator::Gemm(_)) && !has_slopes(operator)
}

fn has_slopes(operator: &Operator) -> bool {
    matches!(operator.activation(), Some(Function::PRelu { .. }))
}

/// A convolution, of all its operands.
pub(super) fn convolution(site: &Site<'_>, halves: bool) -> Result<Choice, LayerError> {
    let seen: Vec<&Shape> = site.inputs.iter().map(|x| x.seen).collect();
    let Some((part, _)) = constants::panels(site.operator, &seen) else { return site.unsupported() };
    let inputs = site.inputs.iter().map(|x| x.image());
    let (Some(inputs), Some(output)) = (inputs.collect(), site.image()) else { return site.unsupported() };
    let Some(conv) = part.packing.conv().filter(is_computed) else { return site.unsupported() };
    Ok(with_scales(Choice::by_rows(kernel(conv, halves), inputs, output), part, halves))
}

/// A matrix product by constants.
pub(super) fn gemm(site: &Site<'_>, halves: bool) -> Result<Choice, LayerError> {
    let (Operator::Gemm(attributes), [x]) = (site.operator, site.inputs.as_slice()) else {
        return site.unsupported();
    };
    let Some((mut part, _)) = constants::panels(site.operator, &[x.seen]) else { return site.unsupported() };
    let ProductRows { input: Some(input), output: Some(output), image: seen } =
        rows_of_product(site, x, attributes.inner)
    else {
        return site.unsupported();
    };
    let Packing::Gemm { gemm, image, .. } = &mut part.packing else { return site.unsupported() };
    *image = seen;
    let kernel = kernel(gemm.as_conv(), halves);
    Ok(with_scales(Choice::by_rows(kernel, vec![input], output), part, halves))
}

fn kernel(conv: Conv, halves: bool) -> Kernel<super::typed::ByRows> {
    Kernel::rows::<f32, f32>(ScaledConv { conv, halves })
}

fn with_scales(choice: Choice, Part { packing, parameters }: Part, halves: bool) -> Choice {
    choice.with_packing(Packing::Scaled { panels: Box::new(packing), halves }, 0..parameters.end + 1)
}

/// Bytes of a layer's parameters: those of each weight, 4 for the scale of each output channel, and 4 for every other
/// parameter.
pub(super) fn parameter_bytes(operator: &Operator, inputs: &[&Shape], elements: u64, width: u64) -> u64 {
    let panels = constants::panels(operator, inputs).and_then(|(part, _)| part.packing.conv());
    let [weights, filters] = panels.map_or([0; 2], |conv| {
        let steps = conv.kernel[0] * conv.kernel[1] * (conv.channels / conv.groups);
        [conv.filters * steps, conv.filters].map(|count| count as u64)
    });
    4 * (elements + filters) - (4 - width) * weights
}

/// Floats that a layer's parameters take as packed.
pub(super) fn stored_floats(operator: &Operator, inputs: &[&Shape], halves: bool) -> u64 {
    let conv = constants::panels(operator, inputs).and_then(|(part, _)| part.packing.conv());
    conv.map_or(0, |conv| (ScaledConv { conv, halves }.packed_len() / size_of::<f32>()) as u64)
}

/// Packs the parameters of a convolution, or of a matrix product by constants, of which the last are the scales.
///
/// # Errors
/// When their number is wrong, or weights are not integers or halves times their scales.
pub(crate) fn pack(
    panels: &Packing,
    halves: bool,
    parameters: &[Cow<'_, [f32]>],
    packed: &mut [u8],
) -> Result<(), LayerError> {
    let (Some(conv), Some((scales, parameters))) = (panels.conv(), parameters.split_last()) else {
        return Err(LayerError::Mistake("its parameters have no panels: a mistake"));
    };
    if scales.len() != conv.filters {
        let (found, filters) = (scales.len(), conv.filters);
        return Err(LayerError::PerChannel { what: "scales", found, filters });
    }
    let mut wide = vec![0.0; panels.len()];
    panels.pack(parameters, &mut wide)?;
    match (ScaledConv { conv, halves }).pack(&wide, scales, packed) {
        true => Ok(()),
        false => Err(LayerError::WeightsNotScaled),
    }
}
