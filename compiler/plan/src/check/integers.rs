//! Which layers of 8-bit integers are known, and the bytes that they keep of their parameters.

use crate::format::Quantization;
use crate::operator::{
    Binary, BinaryFunction, Coordinates, Function, Operator, PoolKind, ReduceFunction, ResizeMode,
};
use crate::shape::{Order, Shape};

use super::parameters;

/// Kinds of operators that move elements, or insert others between two of them.
const MOVERS: [&str; 7] =
    ["concat", "slice", "transpose", "depth_to_space", "space_to_depth", "resize", "pad"];

/// Whether an operator is a sum of products that an integer kernel computes. Only biases are added to its sums, and its
/// activation, if any, only bounds them. It reads one tensor; a convolution of one group may read the parts of a
/// tensor. If it is not depthwise, each element may first be scaled, bounded and rounded.
pub(super) fn is_sum(operator: &Operator, inputs: &[&Shape]) -> bool {
    let is_one = inputs.len() == 1;
    let is_plain = match operator {
        Operator::Conv(conv) => {
            let is_before = conv.pre.as_ref().is_none_or(|pre| {
                // With one channel and one filter, it is depthwise.
                let is_depthwise = conv.filters == 1 && parameters::channels(operator, inputs) == Some(1);
                let is_dense = conv.groups == 1 && !is_depthwise;
                is_dense && pre.quantization.is_some() && is_bound(pre.activation.as_ref())
            });
            is_before && !conv.residual && (is_one || conv.groups == 1)
        }
        Operator::Gemm(_) => is_one,
        _ => false,
    };
    is_plain && is_bound(operator.activation())
}

fn is_bound(activation: Option<&Function>) -> bool {
    matches!(activation, None | Some(Function::Relu | Function::Clip { .. }))
}

/// Whether an operator without weights has an integer kernel.
pub(super) fn is_other(operator: &Operator, inputs: &[&Shape]) -> bool {
    let is_slope = |function: Option<&Function>| matches!(function, Some(Function::PRelu { .. }));
    match operator {
        Operator::ElementWise(element_wise) => !is_slope(Some(&element_wise.function)),
        Operator::Binary(binary) => match &binary.constant {
            Some(constant) if constant.quantization.is_none() => {
                use BinaryFunction::{Fmod, Mod, Pow};
                let is_scalar = constant.dims.iter().all(|&dim| dim == 1);
                let is_table = !matches!(binary.function, Pow | Mod | Fmod);
                is_scalar && !is_slope(binary.activation.as_ref()) && is_table
            }
            _ => {
                use BinaryFunction::{Add, Mul, Sub};
                matches!(binary.function, Add | Sub | Mul) && is_bound(binary.activation.as_ref())
            }
        },
        Operator::Pool(pool) => !matches!(pool.kind, PoolKind::Lp { .. } | PoolKind::MaxIndex),
        Operator::Reduce(reduce) => {
            let is_image =
                inputs.iter().all(|x| x.rank() == 4 && x.is_image() && x.order == Order::ChannelsFirst);
            is_image && inputs.len() == 1 && reduce.function == ReduceFunction::Mean && reduce.axes == [2, 3]
        }
        Operator::Resize(resize) => {
            let is_cropped = matches!(resize.coordinates, Coordinates::TfCropAndResize(_));
            !is_cropped && !matches!(resize.mode, ResizeMode::Filter(_))
        }
        Operator::Input(input) => input.makes_integers(),
        operator => MOVERS.contains(&operator.kind()),
    }
}

/// Whether the elements that an operator makes are elements that it reads.
pub(super) fn moves(operator: &Operator) -> bool {
    match operator {
        Operator::Pool(pool) => pool.kind == PoolKind::Max,
        operator => MOVERS.contains(&operator.kind()),
    }
}

/// Bytes of a layer's parameters, from the numbers of its weights, biases and constants: one for each weight, and four
/// for each bias, the scale of each output channel, each scale and shift of its prologue, and each constant that is a
/// float.
pub(super) fn parameter_bytes(operator: &Operator, inputs: &[&Shape], elements: u64) -> Option<u64> {
    match channels_and_biases(operator) {
        Some([channels, biases]) => {
            let biases = biases.checked_add(prologue_constants(operator, inputs)? as u64)?;
            let weights = elements.checked_sub(biases)?;
            weights.checked_add(channels.checked_add(biases)?.checked_mul(4)?)
        }
        None if constant(operator).is_some() => Some(elements),
        None => elements.checked_mul(4),
    }
}

/// The quantization of an operator's constant operand, if it is kept as 8-bit integers.
pub(super) fn constant(operator: &Operator) -> Option<Quantization> {
    let Operator::Binary(binary) = operator else { return None };
    binary.constant.as_ref()?.quantization
}

/// The quantization of the integers that a convolution multiplies, if a prologue makes them from its input.
pub(super) fn multiplied(operator: &Operator) -> Option<Quantization> {
    let Operator::Conv(conv) = operator else { return None };
    conv.pre.as_ref()?.quantization
}

/// The number of scales and shifts of a convolution's prologue.
fn prologue_constants(operator: &Operator, inputs: &[&Shape]) -> Option<usize> {
    match parameters::scales_input(operator) {
        true => parameters::channels(operator, inputs)?.checked_mul(2),
        false => Some(0),
    }
}

/// The numbers of output channels and of biases of an operator that is a sum of products.
fn channels_and_biases(operator: &Operator) -> Option<[u64; 2]> {
    match operator {
        Operator::Conv(conv) => Some([conv.filters as u64, if conv.bias { conv.filters as u64 } else { 0 }]),
        Operator::Gemm(gemm) => Some([gemm.units as u64, if gemm.bias { gemm.units as u64 } else { 0 }]),
        _ => None,
    }
}

/// Bytes that a layer keeps of its parameters, by the rule that the kernels' module `quantized::panels` states. Each
/// output channel has a bias, a multiplier and its weights. A matrix product, and any convolution that is not
/// depthwise, keeps an even number of weights. Zeros follow for the multipliers that vectors of 8 read beyond those of
/// a group. Each scale and shift of a prologue has four bytes. The sum is rounded up to 64. A function of one element
/// is a table of 256 bytes. Other constants have one byte for each element.
pub(super) fn stored(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    kept(operator, inputs)?.checked_next_multiple_of(64)
}

/// The same with an offset of the weights, of 4 bytes.
pub(super) fn stored_with_offset(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    kept(operator, inputs)?.checked_add(4)?.checked_next_multiple_of(64)
}

fn kept(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let even = |steps: usize| steps.checked_next_multiple_of(2);
    // Groups, output channels of each, and bytes of the weights of one.
    let (groups, filters, steps) = match (operator, inputs) {
        (Operator::Conv(conv), _) => {
            let taps = conv.kernel[0].checked_mul(conv.kernel[1])?;
            let (channels, groups) = (parameters::channels(operator, inputs)?, conv.groups.max(1));
            match [channels, conv.filters] == [groups; 2] {
                true => (1, conv.filters, taps),
                false => (groups, conv.filters / groups, even(taps.checked_mul(channels / groups)?)?),
            }
        }
        (Operator::Gemm(gemm), _) => (1, gemm.units, even(gemm.inner)?),
        (Operator::ElementWise(_) | Operator::Convert, _) => return Some(256),
        (Operator::Binary(Binary { constant: Some(constant), .. }), _) => {
            let is_table = constant.dims.iter().all(|&dim| dim == 1);
            return if is_table { Some(256) } else { parameters::elements(operator, inputs) };
        }
        _ => return Some(0),
    };
    let all = groups.checked_mul(filters)?.checked_mul(steps.checked_add(8)?)?;
    let beyond = 4 * (filters.checked_next_multiple_of(8)? - filters);
    let before = prologue_constants(operator, inputs)?.checked_mul(4)?;
    Some(all.checked_add(beyond)?.checked_add(before)? as u64)
}
