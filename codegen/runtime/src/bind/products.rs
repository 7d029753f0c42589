//! Which kernel computes a layer whose parameters lie in panels.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::gemm::Gemm;
use csdfc_kernels::kernel::RowKernel;
use csdfc_kernels::rows::RowShape;

use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::choice::{Choice, Forms};
use super::constants::{self, Packing, Part};
use super::kernel::{Operand, Parameters, Site};
use super::views::Input;

/// A convolution of all its operands, or a transposed convolution.
pub(super) fn convolution(site: &Site<'_>) -> Result<Choice, LayerError> {
    let seen: Vec<&Shape> = site.inputs.iter().map(|x| x.seen).collect();
    let Some((part, in_place)) = constants::panels(site.operator, &seen) else { return site.unsupported() };
    let inputs = site.inputs.iter().map(|x| x.image());
    let (Some(inputs), Some(output)) = (inputs.collect(), site.image()) else { return site.unsupported() };
    let choice = match part.packing {
        Packing::Conv { conv, .. } if is_computed(&conv) => {
            Choice::by_rows(site.rows_of(conv), inputs, output)
        }
        Packing::ConvTranspose { conv, .. } => Choice::by_f32_rows(conv, inputs, output),
        _ => return site.unsupported(),
    };
    choice.with_panels(site, part, in_place)
}

/// A convolution of one operand by a kernel that packs its filters as [`Conv`] does.
pub(super) fn of_one_image<K: RowKernel + Parameters>(
    site: &Site<'_>,
    kernel: fn(Conv) -> K,
) -> Result<Choice, LayerError> {
    let seen: Vec<&Shape> = site.inputs.iter().map(|x| x.seen).collect();
    let panels = constants::panels(site.operator, &seen);
    let (Some((part, in_place)), Some(output), [x]) = (panels, site.image(), site.inputs.as_slice()) else {
        return site.unsupported();
    };
    let (Packing::Conv { conv, .. }, Some(input)) = (&part.packing, x.image()) else {
        return site.unsupported();
    };
    Choice::by_f32_rows(kernel(*conv), vec![input], output).with_panels(site, part, in_place)
}

/// Whether the kernel computes the prologue. It does not know slopes there.
pub(super) fn is_computed(conv: &Conv) -> bool {
    conv.pre.is_none_or(|pre| {
        pre.activation != Activation::PRelu && (!conv.is_depthwise() || pre.suits_depthwise())
    })
}

/// How a matrix product by constants sees its tensors, if it sees them by rows.
pub(super) struct ProductRows {
    pub input: Option<Input<RowShape>>,
    pub output: Option<RowShape>,
    /// As in [`Packing::Gemm`].
    pub image: Option<[usize; 2]>,
}

/// The rows of a matrix product, with `inner` elements each.
pub(super) fn rows_of_product(site: &Site<'_>, x: &Operand<'_>, inner: usize) -> ProductRows {
    let pixels = x.seen.elements() / inner.max(1);
    let (input, output) = (x.flat(site.output.rows(), pixels), site.flat(pixels));
    if input.is_some() || pixels != 1 || output.is_none() {
        return ProductRows { input, output, image: None };
    }
    // An image seen as one vector: its elements are taken as they lie, and the weights in the same order.
    let channels = x.own.channels();
    ProductRows { input: x.block(1), output, image: Some([channels, x.own.elements() / channels]) }
}

/// A matrix product by constants.
pub(super) fn gemm(site: &Site<'_>) -> Result<Choice, LayerError> {
    let forms = |gemm: Gemm| Forms { rows: site.rows_of(gemm.as_conv()), elements: site.elements_of(gemm) };
    gemm_of(site, forms, |part| part)
}

/// The same by this kernel, with constants in this packing.
pub(super) fn gemm_of(
    site: &Site<'_>,
    forms: impl FnOnce(Gemm) -> Forms,
    packed: impl FnOnce(Part) -> Part,
) -> Result<Choice, LayerError> {
    let (Operator::Gemm(attributes), [x]) = (site.operator, site.inputs.as_slice()) else {
        return site.unsupported();
    };
    let Some((mut part, in_place)) = constants::panels(site.operator, &[x.seen]) else {
        return site.unsupported();
    };
    let Packing::Gemm { gemm, image, .. } = &mut part.packing else { return site.unsupported() };
    let gemm = *gemm;
    let tensors = rows_of_product(site, x, attributes.inner);
    *image = tensors.image;
    let choice = match (tensors.input, tensors.output) {
        (Some(input), Some(output)) => Choice::by_rows(forms(gemm).rows, vec![input], output),
        _ => site.elements(forms(gemm).elements)?,
    };
    choice.with_panels(site, packed(part), in_place)
}
