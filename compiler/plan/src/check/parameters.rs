//! How many parameters an operator has, from its attributes and from the shapes of its inputs.
//!
//! ```
//! use csdfc_plan::check::parameters::elements;
//! use csdfc_plan::operator::{Gemm, Operator};
//! use csdfc_plan::shape::Shape;
//!
//! let gemm = Operator::Gemm(Gemm { inner: 84, units: 10, transposed: true, bias: true, activation: None });
//! assert_eq!(elements(&gemm, &[&Shape::new([1, 84])]), Some(84 * 10 + 10));
//! ```

use crate::operator::{Cell, Function, Operator};
use crate::shape::Shape;

/// Elements of a layer's weights, biases and other constants. `None` if they are more than 64 bits can count. The shapes
/// must suit the operator.
pub fn elements(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let channels = channels(operator, inputs)?;
    let bias = |present: bool, size: usize| if present { vec![size] } else { vec![] };
    let lists = match operator {
        Operator::Conv(conv) => {
            let per_group = channels / conv.groups.max(1);
            [vec![conv.filters, per_group, conv.kernel[0], conv.kernel[1]], bias(conv.bias, conv.filters)]
        }
        Operator::ConvTranspose(conv) => {
            let per_group = conv.filters / conv.groups.max(1);
            [vec![channels, per_group, conv.kernel[0], conv.kernel[1]], bias(conv.bias, conv.filters)]
        }
        Operator::Gemm(gemm) => [vec![gemm.inner, gemm.units], bias(gemm.bias, gemm.units)],
        Operator::BatchNorm(norm) => [vec![2, norm.channels], vec![]],
        Operator::InstanceNorm(norm) => [vec![2, norm.channels], vec![]],
        Operator::Binary(binary) => {
            // A scalar has no dimensions, but one element.
            let dims =
                binary.constant.as_ref().map_or(vec![], |constant| [&[1], &constant.dims[..]].concat());
            [dims, vec![]]
        }
        Operator::Where(choice) => return sum(choice.constants()),
        Operator::Recurrent(recurrent) => {
            let beside = match recurrent.cell {
                Cell::Gru { linear_before_reset: true } => 1,
                Cell::Lstm { peepholes: true, .. } => 3,
                _ => 0,
            };
            [vec![recurrent.size, recurrent.cell.gates(), recurrent.size], vec![beside, recurrent.size]]
        }
        Operator::ElementWise(element_wise) => [slope(&element_wise.function), vec![]],
        Operator::Input(_)
        | Operator::MatMul
        | Operator::Pool(_)
        | Operator::Reduce(_)
        | Operator::ArgMax(_)
        | Operator::TopK(_)
        | Operator::NonMaxSuppression(_)
        | Operator::GridSample(_)
        | Operator::GatherElements(_)
        | Operator::MaxUnpool(_)
        | Operator::Concat(_)
        | Operator::Slice(_)
        | Operator::Pad(_)
        | Operator::Resize(_)
        | Operator::Transpose(_)
        | Operator::Softmax(_)
        | Operator::Lrn(_)
        | Operator::DepthToSpace(_)
        | Operator::SpaceToDepth(_)
        | Operator::Convert => [vec![], vec![]],
    };
    let activation = operator.activation().map_or(vec![], slope);
    let pre = if scales_input(operator) { vec![2, channels] } else { vec![] };
    let all = lists.iter().chain([&activation, &pre]).filter(|dims| !dims.is_empty());
    sum(all.map(Vec::as_slice))
}

/// The elements of tensors of these dimensions.
fn sum<'a>(mut tensors: impl Iterator<Item = &'a [usize]>) -> Option<u64> {
    tensors.try_fold(0u64, |sum, dims| {
        let product = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim as u64))?;
        sum.checked_add(product)
    })
}

/// Bytes that a layer keeps of its parameters, by the rule that the module `bind::constants` states. Each output
/// channel of a convolution or matrix product has its weights, room for a bias and, if there is one per channel, a
/// slope. Zeros fill up a group's channels to a multiple of 16. The scales and shifts of a prologue come in addition.
/// The sum is rounded up to a multiple of 64.
pub(super) fn stored(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    stored_elements(operator, inputs)?.checked_mul(4)?.checked_next_multiple_of(64)
}

/// The same for 16-bit floats.
pub(super) fn stored_half(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    stored_elements(operator, inputs)?.checked_mul(2)?.checked_next_multiple_of(64)
}

/// The same for 16-bit floats, but with weights of one byte, and a scale of four bytes for each output channel. Zeros
/// have one byte each, and as many follow as make the bytes of the panels a multiple of two.
pub(super) fn stored_mixed(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let Some([weights, filters]) = weights_and_filters(operator, inputs) else {
        return stored_half(operator, inputs);
    };
    let groups = if let Operator::Conv(conv) = operator { conv.groups as u64 } else { 1 };
    let is_depthwise = groups == filters && groups == channels(operator, inputs)? as u64;
    let each = if is_depthwise { filters } else { filters / groups.max(1) };
    let zeros = each.div_ceil(16) * 16 - each;
    // Panels keep biases even if there are none. Slopes that differ within a channel lie outside the panels. Both have
    // two bytes.
    let beside = elements(operator, inputs)?.checked_sub(weights)?;
    let has_bias = match operator {
        Operator::Conv(conv) => conv.bias,
        Operator::Gemm(gemm) => gemm.bias,
        _ => true,
    };
    let biases = if has_bias { 0 } else { filters };
    // One slope for all channels is kept for each.
    let slopes = match operator.activation().map(slope) {
        Some(dims) if !dims.is_empty() && dims.iter().all(|&dim| dim == 1) => filters - 1,
        _ => 0,
    };
    let halves = beside.checked_add(biases)?.checked_add(slopes)?.checked_mul(2)?;
    let bytes =
        weights.checked_add(zeros)?.checked_next_multiple_of(2)?.checked_add(filters.checked_mul(4)?)?;
    bytes.checked_add(halves)?.checked_next_multiple_of(64)
}

/// Bytes of the parameters of a layer of mixed precision: one for each weight, four for the scale of each output
/// channel, and two for all others.
pub(super) fn mixed_bytes(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let [weights, filters] = weights_and_filters(operator, inputs)?;
    let others = elements(operator, inputs)?.checked_sub(weights)?;
    others.checked_mul(2)?.checked_add(weights)?.checked_add(filters.checked_mul(4)?)
}

/// Bytes of the parameters of a layer whose weights have `width` bytes and a scale of four for each output channel. All
/// others have four bytes.
pub(super) fn scaled_bytes(operator: &Operator, inputs: &[&Shape], width: u64) -> Option<u64> {
    let [weights, filters] = weights_and_filters(operator, inputs)?;
    let floats = elements(operator, inputs)?.checked_sub(weights)?.checked_add(filters)?;
    floats.checked_mul(4)?.checked_add(weights.checked_mul(width)?)
}

/// Bytes that such a layer keeps of them: a scale and a bias of each output channel, whether or not there are biases,
/// and zeros as wide as weights, which fill up a group's channels to a multiple of 16, and then four bytes. The scales
/// and shifts of a prologue come in addition.
pub(super) fn stored_scaled(operator: &Operator, inputs: &[&Shape], width: u64) -> Option<u64> {
    let [weights, filters] = weights_and_filters(operator, inputs)?;
    let groups = if let Operator::Conv(conv) = operator { conv.groups as u64 } else { 1 };
    let channels = channels(operator, inputs)? as u64;
    let is_depthwise = groups == filters && groups == channels;
    let each = if is_depthwise { filters } else { filters / groups.max(1) };
    let zeros = each.div_ceil(16) * 16 - each;
    let before = if scales_input(operator) { channels.checked_mul(8)? } else { 0 };
    let narrow = weights.checked_add(zeros)?.checked_mul(width)?.checked_next_multiple_of(4)?;
    let bytes = narrow.checked_add(filters.checked_mul(8)?)?.checked_add(before)?;
    bytes.checked_next_multiple_of(64)
}

/// The weights of a convolution or of a product by constants, and its output channels.
fn weights_and_filters(operator: &Operator, inputs: &[&Shape]) -> Option<[u64; 2]> {
    let (filters, dims) = match operator {
        Operator::Conv(conv) => {
            let each = channels(operator, inputs)? / conv.groups.max(1);
            (conv.filters, [conv.filters, each, conv.kernel[0], conv.kernel[1]])
        }
        Operator::Gemm(gemm) => (gemm.units, [gemm.units, gemm.inner, 1, 1]),
        _ => return None,
    };
    let weights = dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim as u64))?;
    Some([weights, filters as u64])
}

fn stored_elements(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let channels = channels(operator, inputs)?;
    // Groups, output channels of each, and products of each sum.
    let (groups, filters, steps) = match operator {
        Operator::Conv(conv) => {
            let taps = conv.kernel[0].checked_mul(conv.kernel[1])?;
            let depthwise = conv.groups == channels && conv.groups == conv.filters;
            if depthwise {
                (1, conv.filters, taps)
            } else {
                let groups = conv.groups.max(1);
                (groups, conv.filters / groups, taps.checked_mul(channels / groups)?)
            }
        }
        Operator::ConvTranspose(conv) => {
            let (taps, groups) = (conv.kernel[0].checked_mul(conv.kernel[1])?, conv.groups.max(1));
            (groups, conv.filters / groups, taps.checked_mul(channels / groups)?)
        }
        Operator::Gemm(gemm) => (1, gemm.units, gemm.inner),
        _ => return elements(operator, inputs),
    };
    let all = groups.checked_mul(filters)?;
    let (in_panels, beside) = match operator.activation() {
        // A slope for each channel lies in the panels: as many elements as if they lay outside them.
        Some(Function::PRelu { slope }) => {
            match slope.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim))? {
                1 => (1, 0),
                count => (0, count),
            }
        }
        _ => (0, 0),
    };
    let in_panels = steps.checked_add(1 + in_panels)?.checked_mul(all)?;
    let zeros = filters.div_ceil(16) * 16 - filters;
    let beside = if scales_input(operator) { channels.checked_mul(2)?.checked_add(beside)? } else { beside };
    Some(in_panels.checked_add(zeros)?.checked_add(beside)? as u64)
}

/// Channels of an operator's input; for a convolution, those of all parts of its image.
pub(super) fn channels(operator: &Operator, inputs: &[&Shape]) -> Option<usize> {
    let read = match (operator, inputs) {
        (Operator::Conv(conv), [parts @ .., _]) if conv.residual => parts,
        (Operator::Conv(_), parts) => parts,
        (_, inputs) => &inputs[..inputs.len().min(1)],
    };
    read.iter().try_fold(0usize, |sum, x| sum.checked_add(x.channels()))
}

/// Whether a convolution multiplies each channel of its input by a scale, and adds a shift.
pub(super) fn scales_input(operator: &Operator) -> bool {
    matches!(operator, Operator::Conv(conv) if conv.pre.as_ref().is_some_and(|pre| pre.affine))
}

fn slope(function: &Function) -> Vec<usize> {
    match function {
        Function::PRelu { slope } => [&[1], &slope[..]].concat(),
        _ => vec![],
    }
}
