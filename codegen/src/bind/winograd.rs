//! Convolutions by transformed tiles. One kernel computes them all: a primitive says how large its tiles are.

use csdfc_kernels::conv::Conv;
use csdfc_kernels::conv::winograd::Winograd;
use csdfc_kernels::layout;

use crate::format::{Element, Layout};
use crate::operator::{Function, Operator};
use crate::shape::Shape;

use super::choice::Choice;
use super::constants::{LINE, Packing};
use super::kernel::Site;
use super::layouts::rows;
use super::seen::Input;
use super::translate::activation;

/// The kernel of tiles of `HIGH` by `WIDE` outputs and filters of `TAPS` columns, if it computes this operator of these
/// operands, and whether there are biases. Where `HIGH` is 1, filters may have any number of rows.
fn kernel<const HIGH: usize, const WIDE: usize, const TAPS: usize>(
    operator: &Operator,
    inputs: &[&Shape],
) -> Option<(Winograd, bool)> {
    let (Operator::Conv(conv), [x]) = (operator, inputs) else { return None };
    let (tile, kernel, pads) = ([HIGH, WIDE], conv.kernel, conv.pads);
    let is_plain = conv.groups == 1 && conv.pre.is_none() && !conv.residual;
    let has_slopes = matches!(conv.activation, Some(Function::PRelu { .. }));
    let is_dense = [conv.stride, conv.dilation] == [[1, 1]; 2];
    if !is_plain || has_slopes || !is_dense || kernel[1] != TAPS || !Winograd::is_known(tile, kernel) {
        return None;
    }
    let input = [x.rows(), x.dims[x.column_axis()?]];
    let made = |axis: usize| {
        let padded = input[axis].checked_add(pads[axis])?.checked_add(pads[axis + 2])?;
        padded.checked_sub(kernel[axis] - 1).filter(|made| *made > 0)
    };
    let output = [made(0)?, made(1)?];
    let kernel = Conv {
        channels: x.channels(),
        filters: conv.filters,
        kernel,
        stride: [1, 1],
        dilation: [1, 1],
        pads,
        groups: 1,
        pre: None,
        residual: false,
        activation: activation(conv.activation.as_ref()),
    };
    Some((Winograd { conv: kernel, input, output, layouts: [layout::Layout::Hwc; 2], tile }, conv.bias))
}

/// Whether it computes an operator of these operands, as seen.
pub(super) fn computes<const HIGH: usize, const WIDE: usize, const TAPS: usize>(
    operator: &Operator,
    inputs: &[&Shape],
) -> bool {
    kernel::<HIGH, WIDE, TAPS>(operator, inputs).is_some()
}

/// Bytes of its workspace.
pub(super) fn workspace<const HIGH: usize, const WIDE: usize, const TAPS: usize>(
    operator: &Operator,
    inputs: &[&Shape],
    _: &Shape,
) -> u64 {
    let elements =
        kernel::<HIGH, WIDE, TAPS>(operator, inputs).map_or(0, |(winograd, _)| winograd.workspace_len());
    elements as u64 * Element::F32.bytes()
}

/// Bytes of the biases and the transformed filters.
pub(super) fn stored<const HIGH: usize, const WIDE: usize, const TAPS: usize>(
    operator: &Operator,
    inputs: &[&Shape],
    _: u64,
) -> u64 {
    let elements =
        kernel::<HIGH, WIDE, TAPS>(operator, inputs).map_or(0, |(winograd, _)| winograd.packed_len());
    elements.next_multiple_of(LINE) as u64 * Element::F32.bytes()
}

/// The kernel where its tensors are.
pub(super) fn choose<const HIGH: usize, const WIDE: usize, const TAPS: usize>(
    site: &Site<'_>,
) -> Result<Choice, String> {
    let [x] = site.inputs.as_slice() else { return site.unsupported() };
    let input = match x.layout {
        Layout::Hwc => x.image(),
        layout => rows(x.own, layout, x.ring_rows).filter(|_| x.own == x.seen).map(Input::of),
    };
    let output = rows(site.output, site.layout, site.ring_rows);
    let kernel = kernel::<HIGH, WIDE, TAPS>(site.operator, &[x.seen]);
    let (Some(input), Some(output), Some((winograd, bias))) = (input, output, kernel) else {
        return site.unsupported();
    };
    let winograd = Winograd { layouts: [of(x.layout), of(site.layout)], ..winograd };
    let packing = Packing::Winograd { winograd, bias };
    Ok(Choice::by_rows(winograd, vec![input], output).with(packing, 0..1 + usize::from(bias)))
}

/// A layout as kernels take it.
fn of(layout: Layout) -> layout::Layout {
    match layout {
        Layout::Chw => layout::Layout::Chw,
        Layout::Hcw => layout::Layout::Hcw,
        Layout::Hwc => layout::Layout::Hwc,
    }
}
