//! Mixed precision: which kernel computes a layer of 16-bit floats whose weights are 8-bit integers, and how these
//! integers are made from the floats of the model.

use csdfc_kernels::conv::mixed::{MixedConv, MixedGemm};
use csdfc_kernels::gemm::Gemm;
use csdfc_kernels::half::F16;
use std::borrow::Cow;

use csdfc_plan::operator::{Function, Operator};
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::choice::{Choice, Forms};
use super::constants::{self, Packing, Part};
use super::kernel::{Kernel, Site};
use super::products::{gemm_of, is_computed};

/// A convolution, of all its operands.
pub(super) fn convolution(site: &Site<'_>) -> Result<Choice, LayerError> {
    let seen: Vec<&Shape> = site.inputs.iter().map(|x| x.seen).collect();
    let Some((part, in_place)) = constants::panels(site.operator, &seen) else { return site.unsupported() };
    let inputs = site.inputs.iter().map(|x| x.image());
    let (Some(inputs), Some(output)) = (inputs.collect(), site.image()) else { return site.unsupported() };
    let Some(conv) = part.packing.conv().filter(is_computed) else { return site.unsupported() };
    let kernel = Kernel::rows::<F16, F16>(MixedConv { conv });
    Choice::by_rows(kernel, inputs, output).with_panels(site, of_integers(part), in_place)
}

/// A matrix product by constants.
pub(super) fn gemm(site: &Site<'_>) -> Result<Choice, LayerError> {
    let forms = |gemm: Gemm| Forms {
        rows: Kernel::rows::<F16, F16>(MixedConv { conv: gemm.as_conv() }),
        elements: Kernel::elements::<F16, F16>(MixedGemm { gemm }),
    };
    gemm_of(site, forms, of_integers)
}

fn of_integers(part: Part) -> Part {
    Part { packing: Packing::Mixed(Box::new(part.packing)), ..part }
}

/// Bytes of a layer's parameters: 1 for each weight, 4 for the scale of each output channel, and 2 for every other
/// parameter.
pub(super) fn parameter_bytes(operator: &Operator, inputs: &[&Shape], elements: u64) -> u64 {
    let panels = constants::panels(operator, inputs).and_then(|(part, _)| part.packing.conv());
    let [weights, filters] = panels.map_or([0; 2], |conv| {
        let steps = conv.kernel[0] * conv.kernel[1] * (conv.channels / conv.groups);
        [conv.filters * steps, conv.filters].map(|count| count as u64)
    });
    2 * elements - weights + 4 * filters
}

/// Pairs of bytes that a layer's parameters take as packed. The layer's kernel sees them as this many halves.
pub(super) fn stored_halves(operator: &Operator, inputs: &[&Shape], elements: u64) -> u64 {
    let Some((part, in_place)) = constants::panels(operator, inputs) else { return elements };
    let slopes = match operator.activation() {
        Some(Function::PRelu { slope }) if in_place => slope.iter().product(),
        _ => 0,
    };
    (of_integers(part).packing.len() + slopes) as u64
}

/// Packs the parameters of a convolution, or of a matrix product by constants, in mixed precision.
///
/// # Errors
/// When their number is wrong, or a weight is NaN.
pub(crate) fn pack(
    panels: &Packing,
    parameters: &[Cow<'_, [f32]>],
    packed: &mut [u8],
) -> Result<(), LayerError> {
    let weights = parameters.first().map_or(&[][..], |weights| weights);
    if let Some(&weight) = weights.iter().find(|weight| !weight.is_finite()) {
        return Err(LayerError::WeightNotFinite { weight });
    }
    let conv = panels.conv().ok_or(LayerError::Mistake("its parameters have no panels: a mistake"))?;
    let mut wide = vec![0.0; panels.len()];
    panels.pack(parameters, &mut wide)?;
    MixedConv { conv }.quantize(&wide, packed);
    Ok(())
}
