//! Kernels of 8-bit integers: which layers have one, and which kernel that is.
//!
//! A layer that reads and makes 8-bit integers computes its operator on the numbers that they stand for, and rounds
//! once. Sums are exact. The scales of input, weights and output are one multiplier for each output channel. An
//! activation that only bounds its argument becomes bounds of the integers. A function of one element is a table.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::pool::Pool;
use csdfc_kernels::quantized::Requantize;
use csdfc_kernels::quantized::binary::{QBinary, QFunction};
use csdfc_kernels::quantized::cast::{Dequantize, Quantize};
use csdfc_kernels::quantized::conv::QConv;
use csdfc_kernels::quantized::gemm::QGemm;
use csdfc_kernels::quantized::pool::QPool;
use csdfc_kernels::quantized::pre::QPre;
use csdfc_kernels::quantized::table::Table;
use csdfc_kernels::rows::RowShape;

use csdfc_plan::format::{Element, Quantization};
use csdfc_plan::operator::{self, BinaryFunction, Function, Operator, PoolKind, ReduceFunction};
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

use super::choice::{Choice, Forms};
use super::constants::{self, Packing};
use super::integer_constants::{Integers, TABLE, Unary};
use super::kernel::{Kernel, Operand, Site};
use super::products::{self, ProductRows};
use super::{own_kernels, translate};

/// Whether this is a convolution that such kernels compute. It has no residual, and its activation, if any, only bounds
/// its argument. It reads one tensor; with one group, it may read the parts of a tensor. If it has one group and is not
/// depthwise, it may have a prologue, whose activation only bounds its argument too.
pub(super) fn is_conv(operator: &Operator, inputs: &[&Shape]) -> bool {
    let Operator::Conv(conv) = operator else { return false };
    let is_before = |pre: &operator::Pre| {
        conv.groups == 1
            && !translate::is_conv(operator, inputs, true)
            && pre.quantization.is_some()
            && bounds_at_most(pre.activation.as_ref())
    };
    let is_one = inputs.len() == 1 || (conv.groups == 1 && !inputs.is_empty());
    is_one
        && conv.pre.as_ref().is_none_or(is_before)
        && !conv.residual
        && bounds_at_most(conv.activation.as_ref())
}

/// The same for a matrix product by constants.
pub(super) fn is_gemm(operator: &Operator, _: &[&Shape]) -> bool {
    matches!(operator, Operator::Gemm(gemm) if bounds_at_most(gemm.activation.as_ref()))
}

/// Whether an operator has a kernel of 8-bit integers of its own.
pub(super) fn has_own_kernel(operator: &Operator, inputs: &[&Shape]) -> bool {
    match operator {
        Operator::ElementWise(element_wise) => !matches!(element_wise.function, Function::PRelu { .. }),
        Operator::Binary(binary) => match &binary.constant {
            Some(constant) if constant.quantization.is_none() => {
                use BinaryFunction::{Fmod, Mod, Pow};
                !matches!(binary.function, Pow | Mod | Fmod) && is_table(constant, binary.activation.as_ref())
            }
            _ => function_of(binary.function).is_some() && bounds_at_most(binary.activation.as_ref()),
        },
        Operator::Pool(pool) => matches!(pool.kind, PoolKind::Max | PoolKind::Average { .. }),
        Operator::Reduce(reduce) => is_mean_of_image(reduce, inputs),
        Operator::Concat(_)
        | Operator::Slice(_)
        | Operator::Transpose(_)
        | Operator::DepthToSpace(_)
        | Operator::SpaceToDepth(_)
        | Operator::Pad(_) => true,
        Operator::Resize(resize) => !resize.is_weighted(),
        Operator::Input(input) => input.makes_integers(),
        _ => false,
    }
}

/// Whether a function of an element and this constant is a function of the element.
fn is_table(constant: &operator::ConstantOperand, activation: Option<&Function>) -> bool {
    is_one(&constant.dims) && !matches!(activation, Some(Function::PRelu { .. }))
}

/// Whether a constant of these dimensions is one element.
fn is_one(dims: &[usize]) -> bool {
    dims.iter().product::<usize>() == 1
}

fn is_mean_of_image(reduce: &operator::Reduce, inputs: &[&Shape]) -> bool {
    reduce.function == ReduceFunction::Mean
        && reduce.axes == [2, 3]
        && matches!(inputs, [x] if x.is_image() && x.rank() == 4 && x.order == csdfc_plan::shape::Order::ChannelsFirst)
}

fn function_of(function: BinaryFunction) -> Option<QFunction> {
    match function {
        BinaryFunction::Add => Some(QFunction::Sum),
        BinaryFunction::Sub => Some(QFunction::Difference),
        BinaryFunction::Mul => Some(QFunction::Product),
        _ => None,
    }
}

fn bounds_at_most(activation: Option<&Function>) -> bool {
    matches!(activation, None | Some(Function::Relu | Function::Clip { .. }))
}

/// Bytes of the offset of weights.
pub(super) const OFFSET: u64 = size_of::<i32>() as u64;

/// Bytes of a layer's parameters without an offset: one byte for each weight, and four for each bias, scale and constant that is a float.
pub(super) fn parameter_bytes(operator: &Operator, inputs: &[&Shape], elements: u64) -> u64 {
    match beside_weights(operator, inputs) {
        Some(beside) => elements + 3 * beside,
        None if has_constant_integers(operator) => elements,
        None => elements * Element::F32.bytes(),
    }
}

/// Whether an operator's constant operand is kept as 8-bit integers.
fn has_constant_integers(operator: &Operator) -> bool {
    let Operator::Binary(binary) = operator else { return false };
    binary.constant.as_ref().is_some_and(|constant| constant.quantization.is_some())
}

/// The number of biases and scales of sums of products, and of scales and shifts of a prologue.
fn beside_weights(operator: &Operator, inputs: &[&Shape]) -> Option<u64> {
    let (units, bias, affine) = match operator {
        Operator::Conv(conv) => (conv.filters, conv.bias, conv.pre.as_ref().is_some_and(|pre| pre.affine)),
        Operator::Gemm(gemm) => (gemm.units, gemm.bias, false),
        _ => return None,
    };
    let channels: usize = if affine { inputs.iter().map(|part| part.channels()).sum() } else { 0 };
    Some(units as u64 * (1 + u64::from(bias)) + 2 * channels as u64)
}

/// Bytes that a layer's parameters take as packed, without an offset.
pub(super) fn stored_bytes(operator: &Operator, inputs: &[&Shape], elements: u64) -> u64 {
    let requantize = Requantize { zero_point: 0, low: 0, high: 0 };
    match operator {
        Operator::Conv(_) | Operator::Gemm(_) => {
            let len = constants::panels(operator, inputs).map(|(part, _)| match part.packing {
                Packing::Conv { conv, .. } => {
                    let one = Quantization { scale: 1.0, zero_point: 0 };
                    let (pre, has_offset) = (pre(&conv, one, one), false);
                    QConv { pre, conv: bare(conv), zero_point: 0, has_offset, requantize }.packed_len()
                }
                Packing::Gemm { gemm, .. } => {
                    QGemm { gemm, zero_point: 0, has_offset: false, requantize }.packed_len()
                }
                _ => 0,
            });
            len.unwrap_or(0) as u64
        }
        Operator::ElementWise(_) | Operator::Convert => TABLE as u64,
        Operator::Binary(operator::Binary { constant: Some(constant), .. }) if is_one(&constant.dims) => {
            TABLE as u64
        }
        Operator::Binary(operator::Binary { constant: Some(_), .. }) => elements,
        _ => 0,
    }
}

/// The convolution alone.
fn bare(conv: Conv) -> Conv {
    Conv { pre: None, activation: Activation::None, ..conv }
}

/// The prologue of a convolution, from integers of quantization `read` to integers of quantization `made`.
fn pre(conv: &Conv, read: Quantization, made: Quantization) -> Option<QPre> {
    let Quantization { scale, zero_point } = read;
    let read = Dequantize { scale, zero_point };
    let Quantization { scale, zero_point } = made;
    let made = Quantize { scale, zero_point };
    conv.pre.map(|csdfc_kernels::conv::Pre { affine, activation }| QPre { read, affine, activation, made })
}

/// How a layer rounds its sums to integers.
fn requantize(made: Quantization, activation: Option<&Function>) -> Requantize {
    let [low, high] = match activation {
        Some(Function::Relu) => [Some(0.0), None],
        Some(Function::Clip { min, max }) => [*min, *max],
        _ => [None; 2],
    };
    // If the two bounds cross, the upper one counts, as in a Clip.
    let high = high.map_or(u8::MAX, |high| made.integer(high));
    let low = low.map_or(0, |low| made.integer(low)).min(high);
    Requantize { zero_point: made.zero_point, low, high }
}

impl Site<'_> {
    /// The quantizations of its first operand and of its output.
    fn quantizations(&self) -> Result<[Quantization; 2], LayerError> {
        let read = self.inputs.first().and_then(|x| x.quantization);
        match read.zip(self.quantization) {
            Some((read, made)) => Ok([read, made]),
            None => Err(LayerError::NoScale),
        }
    }
}

/// A convolution, of all its operands, whose weights have an offset or not.
pub(super) fn convolution(site: &Site<'_>, has_offset: bool) -> Result<Choice, LayerError> {
    let Operator::Conv(attributes) = site.operator else { return site.unsupported() };
    let seen: Vec<&Shape> = site.inputs.iter().map(|x| x.seen).collect();
    if !is_conv(site.operator, &seen) {
        return site.unsupported();
    }
    let inputs = site.inputs.iter().map(Operand::image).collect();
    let panels = constants::panels(site.operator, &seen);
    let (Some((part, _)), Some(inputs), Some(output)) = (panels, inputs, site.image()) else {
        return site.unsupported();
    };
    let Packing::Conv { conv, bias } = part.packing else { return site.unsupported() };
    let [read, made] = site.quantizations()?;
    if site.inputs.iter().any(|part| part.quantization != Some(read)) {
        return Err(LayerError::ScalesDiffer);
    }
    // The integers that are multiplied.
    let sums = attributes.pre.as_ref().and_then(|pre| pre.quantization).unwrap_or(read);
    let requantize = requantize(made, attributes.activation.as_ref());
    let pre = pre(&conv, read, sums);
    let conv = QConv { conv: bare(conv), pre, zero_point: sums.zero_point, has_offset, requantize };
    let packing = Integers::Conv { conv, bias, scales: [sums.scale, made.scale] };
    let choice = Choice::by_rows(Kernel::rows::<u8, u8>(conv), inputs, output);
    Ok(choice.with_packing(Packing::Integers(packing), 0..part.parameters.end + 1))
}

/// A matrix product by constants, which have an offset or not.
pub(super) fn gemm(site: &Site<'_>, has_offset: bool) -> Result<Choice, LayerError> {
    let (Operator::Gemm(attributes), [x]) = (site.operator, site.inputs.as_slice()) else {
        return site.unsupported();
    };
    let Some((part, _)) = constants::panels(site.operator, &[x.seen]) else { return site.unsupported() };
    let Packing::Gemm { gemm, transposed, bias, .. } = part.packing else { return site.unsupported() };
    let ProductRows { input, output, image } = products::rows_of_product(site, x, gemm.inner);
    let [read, made] = site.quantizations()?;
    let requantize = requantize(made, attributes.activation.as_ref());
    let gemm = csdfc_kernels::gemm::Gemm { activation: Activation::None, ..gemm };
    let product = QGemm { gemm, zero_point: read.zero_point, has_offset, requantize };
    let choice = match input.zip(output) {
        Some((input, output)) => Choice::by_rows(Kernel::rows::<u8, u8>(product), vec![input], output),
        None => site.elements(Kernel::elements::<u8, u8>(product))?,
    };
    let scales = [read.scale, made.scale];
    let packing = Integers::Gemm { gemm: product, transposed, bias, image, scales };
    Ok(choice.with_packing(Packing::Integers(packing), 0..part.parameters.end + 1))
}

/// A function of each integer, as a table of its values for all integers.
fn of_each(site: &Site<'_>, function: Unary) -> Result<Choice, LayerError> {
    let Some(x) = site.inputs.first() else { return site.unsupported() };
    let packing = Integers::Table { function, quantizations: site.quantizations()? };
    let parameters = 0..usize::from(!matches!(function, Unary::Function(_)));
    let choice = own_kernels::of_each_element(site, x, Forms::of_kernel::<u8, u8>(Table), None)?;
    Ok(choice.with_packing(Packing::Integers(packing), parameters))
}

/// The same numbers as other integers.
pub(super) fn table(site: &Site<'_>) -> Result<Choice, LayerError> {
    of_each(site, Unary::Function(Activation::None))
}

/// Numbers as the integers that stand for them, or back.
pub(super) fn cast(site: &Site<'_>) -> Result<Choice, LayerError> {
    let Some(x) = site.inputs.first() else { return site.unsupported() };
    let kernel = match (site.elements, x.quantization, site.quantization) {
        ([Element::F32, Element::U8], _, Some(Quantization { scale, zero_point })) => {
            Forms::of_kernel::<u8, f32>(Quantize { scale, zero_point })
        }
        ([Element::U8, Element::F32], Some(Quantization { scale, zero_point }), _) => {
            Forms::of_kernel::<f32, u8>(Dequantize { scale, zero_point })
        }
        _ => return site.unsupported(),
    };
    own_kernels::of_each_element(site, x, kernel, None)
}

/// Chooses the kernel of a layer whose operator has one.
pub(super) fn choose(site: &Site<'_>) -> Result<Choice, LayerError> {
    match (site.operator, site.inputs.as_slice()) {
        (Operator::ElementWise(element_wise), _) => {
            of_each(site, Unary::Function(translate::activation(Some(&element_wise.function))))
        }
        (Operator::Binary(binary), _) => self::binary(site, binary),
        (Operator::Pool(pool), [x]) => self::pool(site, x, pool),
        (Operator::Reduce(_), [x]) => mean(site, x),
        (Operator::Concat(concat), _) => own_kernels::concat(site, concat.axis),
        (_, [x]) => own_kernels::unary(site, x),
        _ => site.unsupported(),
    }
}

fn binary(site: &Site<'_>, binary: &operator::Binary) -> Result<Choice, LayerError> {
    let constant = binary.constant.as_ref();
    let of_constant = constant.and_then(|constant| constant.quantization);
    let constant_first = constant.is_some_and(|constant| constant.left);
    if constant.is_some() && of_constant.is_none() {
        let activation = translate::activation(binary.activation.as_ref());
        return of_each(site, Unary::Binary { function: binary.function, left: constant_first, activation });
    }
    let mut operands: Vec<Quantization> =
        site.inputs.iter().filter_map(|x| x.quantization).chain(of_constant).collect();
    if constant_first {
        operands.reverse();
    }
    let (Some(function), &[a, b], Some(made)) =
        (function_of(binary.function), operands.as_slice(), site.quantization)
    else {
        return site.unsupported();
    };
    let Requantize { zero_point, low, high } = requantize(made, binary.activation.as_ref());
    let kernel = QBinary {
        function,
        constant_first,
        scales: [a.scale, b.scale, made.scale],
        zero_points: [a.zero_point, b.zero_point, zero_point],
        low,
        high,
    };
    let dims = constant.map(|constant| constant.dims.as_slice());
    if dims.is_some_and(is_one) {
        return of_each(site, Unary::Integers { function: kernel });
    }
    own_kernels::of_several(site, Forms::of_kernel::<u8, u8>(kernel), dims.as_slice(), |choice| {
        let (Some(dims), Some(quantization)) = (dims, of_constant) else { return Ok(choice) };
        let elements = choice.constant(site.output, dims)?;
        Ok(choice.with_packing(Packing::Integers(Integers::Constant { elements, quantization }), 0..1))
    })
}

fn pool(site: &Site<'_>, x: &Operand<'_>, pool: &operator::Pool) -> Result<Choice, LayerError> {
    let [read, made] = site.quantizations()?;
    let kernel = QPool {
        pool: translate::pool(pool),
        zero_point: read.zero_point,
        multiplier: read.scale / made.scale,
        requantize: requantize(made, None),
    };
    let Forms { rows, elements } = Forms::of_kernel::<u8, u8>(kernel);
    site.images(x, rows).map_or_else(|| site.elements(elements), Ok)
}

/// The mean of an image's channels.
fn mean(site: &Site<'_>, x: &Operand<'_>) -> Result<Choice, LayerError> {
    let [read, made] = site.quantizations()?;
    let Some(input) = x.image() else { return site.unsupported() };
    let (kernel, stride, dilation, pads) = ([input.shape.height, input.shape.width], [1; 2], [1; 2], [0; 4]);
    let kernel = QPool {
        pool: Pool { kind: csdfc_kernels::pool::PoolKind::Average, kernel, stride, dilation, pads },
        zero_point: read.zero_point,
        multiplier: read.scale / made.scale,
        requantize: requantize(made, None),
    };
    // One pixel of channels, whatever its dimensions.
    let output = RowShape::dense(1, 1, input.shape.channels, site.ring_rows);
    Ok(Choice::by_rows(Kernel::rows::<u8, u8>(kernel), vec![input], output))
}
