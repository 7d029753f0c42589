//! Numbers as 8-bit integers: the conversions between the two, and operators of integers.
//!
//! An operator on integers becomes the operator on floats, between conversions. Later, the passes let it compute on the
//! integers. Signed integers of a tensor are stored as unsigned ones, moved by 128 with their zero point.

use std::sync::Arc;

use csdfc_plan::format::Quantization;
use rten_onnx::onnx::DataType;

use super::integer_types::{element, expect_in_range, range};
use super::{binary as of_floats, convolution, dense, element_wise, integers, layout, normalise, pool};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data, type_name};
use crate::import::error::{Fault, fault};
use crate::import::node::{self, Node, Tensor, Value, plain, with_operands};
use csdfc_network::weights::{Integers, WeightSource};

/// Operators of the domain `com.microsoft`: operators on integers, and operators that ONNX also has.
pub(super) const OF_MICROSOFT: &[&str] = &[
    "DequantizeLinear",
    "QGemm",
    "QLinearAdd",
    "QLinearAveragePool",
    "QLinearConcat",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "QLinearSoftmax",
    "QuantizeLinear",
];

/// The operators of that domain that ONNX lacks.
pub(super) const ONLY_OF_MICROSOFT: &[&str] = &[
    "QGemm",
    "QLinearAdd",
    "QLinearAveragePool",
    "QLinearConcat",
    "QLinearGlobalAveragePool",
    "QLinearLeakyRelu",
    "QLinearMul",
    "QLinearSigmoid",
    "QLinearSoftmax",
];

/// `QuantizeLinear` of a tensor.
pub(super) fn quantize(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if integers::makes(node) {
        return integers::quantize(builder, node);
    }
    let to = stated(node, 1)?;
    quantized(builder, node, node.tensor(0)?, to)
}

/// `DequantizeLinear` of a tensor.
pub(super) fn dequantize(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if integers::reads(node) {
        return integers::numbers(builder, node, 0);
    }
    dequantized(builder, node, 0)
}

/// `QuantizeLinear` of a constant.
pub(super) fn quantize_constant(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    expect_plain(node)?;
    let x = node.constant(0, "x")?;
    let dealt = dealt_out(node, x, [1, 2], node.int("axis", 1)?)?;
    let element = dealt.element.unwrap_or(DataType::UINT8);
    let [low, high] = range(element)?;
    builder.charge(x.elements())?;
    let integer = |(at, value): (usize, &f32)| {
        let place = at / dealt.inner.max(1) % dealt.scales.len();
        let rounded = (value / dealt.scales[place]).round_ties_even() as i64;
        rounded.saturating_add(dealt.zero_points[place].into()).clamp(low, high)
    };
    let values = x.to_floats()?.iter().enumerate().map(integer).collect();
    Ok(Constant { stored: Some(element), ..Constant::ints(x.dims.clone(), values) })
}

/// `DequantizeLinear` of a constant: it stays integers.
pub(super) fn dequantize_constant(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    match node.int("block_size", 0)? {
        0 => weights(builder, node, [0, 1, 2], node.int("axis", 1)?),
        _ => integers::dequantize_blocks(builder, node),
    }
}

/// `QLinearConv`.
pub(super) fn conv(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    expect_channels_first(node)?;
    let x = dequantized(builder, node, 0)?;
    let filters = weights(builder, node, [3, 4, 5], 0)?;
    let bias = bias(builder, node, 8, stated(node, 1)?.scale, &filters)?;
    let y =
        convolution::conv(builder, &with_operands(node, "Conv", [x.into(), filters.into()].map(Some), bias))?;
    quantized(builder, node, &y, stated(node, 6)?)
}

/// `QLinearMatMul`.
pub(super) fn mat_mul(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let a = either(builder, node, 0)?;
    let b = either(builder, node, 3)?;
    let y = dense::mat_mul(builder, &with_operands(node, "MatMul", [a, b].map(Some), None))?;
    quantized(builder, node, &y, stated(node, 6)?)
}

/// `QGemm`: its bias is integers, its output floats if it has no scale.
pub(super) fn gemm(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let a = dequantized(builder, node, 0)?;
    let axis = if node.flag("transB", false)? { 0 } else { 1 };
    let b = weights(builder, node, [3, 4, 5], axis)?;
    let bias = bias(builder, node, 6, stated(node, 1)?.scale, &b)?;
    let y = dense::gemm(builder, &with_operands(node, "Gemm", [a.into(), b.into()].map(Some), bias))?;
    if node.input(7).is_none() { Ok(y) } else { quantized(builder, node, &y, stated(node, 7)?) }
}

/// `QLinearAdd` and `QLinearMul`.
pub(super) fn binary(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let operands = [either(builder, node, 0)?, either(builder, node, 3)?].map(Some);
    let operator = node.operator.trim_start_matches("QLinear");
    let y = of_floats::binary(builder, &with_operands(node, operator, operands, None))?;
    quantized(builder, node, &y, stated(node, 6)?)
}

/// Operators of integers that have one operand.
pub(super) fn unary(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    expect_channels_first(node)?;
    let x = dequantized(builder, node, 0)?;
    let operator = node.operator.trim_start_matches("QLinear");
    let mut of_floats = with_operands(node, operator, [Some(x.into())], None);
    let y = match operator {
        "AveragePool" => pool::pool(builder, &of_floats)?,
        "GlobalAveragePool" => pool::global_pool(builder, &of_floats)?,
        "Softmax" => {
            of_floats.opset = node.int("opset", node.opset)?;
            normalise::softmax(builder, &of_floats)?
        }
        _ => element_wise::function(builder, &of_floats)?,
    };
    quantized(builder, node, &y, stated(node, 3)?)
}

/// `QLinearConcat`: scale and zero point of the output, and then three operands for each input.
pub(super) fn concat(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let mut inputs = Vec::new();
    for first in (2..node.inputs.len()).step_by(3) {
        inputs.push(Some(Value::Tensor(dequantized(builder, node, first)?)));
    }
    let y = layout::concat(builder, &Node { inputs, operator: "Concat", ..plain(node) })?;
    quantized(builder, node, &y, stated(node, 0)?)
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Self {
        Value::Tensor(tensor)
    }
}

impl From<Constant> for Value {
    fn from(constant: Constant) -> Self {
        Value::Constant(constant)
    }
}

/// Adds the integers that stand for a tensor.
fn quantized(builder: &mut Builder, node: &Node, x: &Tensor, to: Quantization) -> Result<Tensor, Fault> {
    if builder.quantization(x).is_some() {
        return fault!("its operand is 8-bit integers already");
    }
    builder.convert(node, "convert-quantize-hwc-hwc", x, Some(to))
}

/// Adds the numbers that an operand stands for. Its scale and its zero point are the two operands after it.
fn dequantized(builder: &mut Builder, node: &Node, index: usize) -> Result<Tensor, Fault> {
    let x = node.tensor(index)?;
    let stated = stated(node, index + 1)?;
    match builder.quantization(x) {
        Some(read) if read == stated => builder.convert(node, "convert-dequantize-hwc-hwc", x, None),
        Some(read) => {
            let Quantization { scale, zero_point } = stated;
            fault!(
                "scale {scale} and zero point {zero_point} are not those of its operand {index}: {} and {}",
                read.scale,
                read.zero_point
            )
        }
        // They become integers again, so that the layers that read them compute on integers.
        None if x.integers.is_some() => {
            let x = integers::numbers(builder, node, index)?;
            let x = quantized(builder, node, &x, stated)?;
            builder.convert(node, "convert-dequantize-hwc-hwc", &x, None)
        }
        None => fault!("its operand {index} is not made by a QuantizeLinear"),
    }
}

/// An operand with its scale and its zero point after it: a tensor, or a constant.
fn either(builder: &mut Builder, node: &Node, index: usize) -> Result<Value, Fault> {
    match node.input(index) {
        Some(Value::Constant(constant)) => {
            // A matrix has a scale for each column.
            let axis = constant.dims.len().saturating_sub(1) as i64;
            Ok(weights(builder, node, [index, index + 1, index + 2], axis)?.into())
        }
        _ => Ok(dequantized(builder, node, index)?.into()),
    }
}

/// The numbers that a constant stands for, as integers with scales. The operands are the constant, its scales and its
/// zero points. `axis` is the dimension that has a scale and a zero point for each index.
fn weights(
    builder: &mut Builder,
    node: &Node,
    [index, scales, zero_points]: [usize; 3],
    axis: i64,
) -> Result<Constant, Fault> {
    let x = node.constant(index, "x")?;
    if let Some(element @ (DataType::INT16 | DataType::UINT16)) = x.stored {
        return fault!("its operand {index} is {}; 8-bit integers are supported", type_name(element));
    }
    let dealt = dealt_out(node, x, [scales, zero_points], axis)?;
    builder.charge(x.elements())?;
    let values = x.to_ints()?.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>();
    let Ok(values) = values else { return fault!("its operand {index} has integers of more than 32 bits") };
    let PerChannel { inner, scales, zero_points, .. } = dealt;
    Ok(of_integers(x.dims.clone(), Integers { values, inner, scales, zero_points }))
}

/// The biases of an operator of integers: 32-bit integers, whose scale is the product of those of the input and of the
/// weights.
fn bias(
    builder: &mut Builder,
    node: &Node,
    index: usize,
    read: f32,
    weights: &Constant,
) -> Result<Option<Constant>, Fault> {
    let Some(x) = node.optional(index, "bias")? else { return Ok(None) };
    let Data::Floats(WeightSource::Integers(of_weights)) = &weights.data else { return Ok(None) };
    builder.charge(x.elements())?;
    let values = x.to_ints()?.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>();
    let Ok(values) = values else { return fault!("its bias has integers of more than 32 bits") };
    let scales: Vec<f32> = of_weights.scales.iter().map(|scale| read * scale).collect();
    if ![1, values.len()].contains(&scales.len()) {
        return fault!("its bias has {} elements, but there are {} scales", values.len(), scales.len());
    }
    let zero_points = vec![0; scales.len()];
    Ok(Some(of_integers(x.dims.clone(), Integers { values, inner: 1, scales, zero_points })))
}

fn of_integers(dims: Vec<usize>, integers: Integers) -> Constant {
    Constant { dims, data: Data::Floats(WeightSource::Integers(Arc::new(integers))), stored: None }
}

/// Scales and zero points of a constant.
struct PerChannel {
    scales: Vec<f32>,
    zero_points: Vec<i32>,
    /// The number of elements in the dimensions after the one that they belong to.
    inner: usize,
    /// The type of the zero points, if there are any.
    element: Option<DataType>,
}

fn dealt_out(
    node: &Node,
    x: &Constant,
    [scale, zero_point]: [usize; 2],
    axis: i64,
) -> Result<PerChannel, Fault> {
    let scales = node.constant(scale, "scale")?.to_floats()?;
    let stated = node.optional(zero_point, "zero point")?;
    let element = stated.and_then(|stated| stated.stored);
    if let (Some(one), Some(other)) = (x.stored.filter(|x| *x != DataType::FLOAT), element)
        && one != other
    {
        return fault!("its zero point is {}, but its integers are {}", type_name(other), type_name(one));
    }
    let zero_points = match stated {
        None => vec![0; scales.len()],
        Some(stated) => zero_points(stated)?,
    };
    if zero_points.len() != scales.len() {
        return fault!("it has {} zero points, but {} scales", zero_points.len(), scales.len());
    }
    // For channels whose weights are almost zero, quantizers write subnormal scales.
    if let Some(scale) = scales.iter().find(|scale| !(scale.is_finite() && **scale > 0.0)) {
        return fault!("a scale is {scale}; it must be a positive number");
    }
    if scales.len() == 1 {
        return Ok(PerChannel { scales, zero_points, inner: 1, element });
    }
    let axis = node::axis(axis, x.dims.len())?;
    let inner = x.dims[axis + 1..].iter().product();
    match x.dims[axis] {
        size if size == scales.len() => Ok(PerChannel { scales, zero_points, inner, element }),
        size => fault!("it has {} scales for {size} indices of dimension {axis}", scales.len()),
    }
}

/// The quantization of a tensor: its scale is operand `index`, and its zero point is the next operand.
fn stated(node: &Node, index: usize) -> Result<Quantization, Fault> {
    let scale = match node.constant(index, "scale")? {
        scale if scale.elements() == 1 => scale.scalar()?,
        scale => {
            return fault!("it has {} scales for one tensor; csdfc takes one", scale.elements());
        }
    };
    if !(scale.is_normal() && scale > 0.0) {
        return fault!("its scale is {scale}; it must be a positive normal number");
    }
    let stated = node.optional(index + 1, "zero point")?;
    let zero_point = match stated.map(zero_points).transpose()?.as_deref() {
        None => 0,
        Some(&[zero_point]) => zero_point,
        Some(several) => return fault!("{} zero points of a tensor with one scale", several.len()),
    };
    let element = element(node, stated)?;
    // Between 0 and 255: the zero point is in the range of its type.
    let [low, _] = range(element)?;
    Ok(Quantization { scale, zero_point: (i64::from(zero_point) - low) as u8 })
}

/// Zero points, which are in the range of their type.
fn zero_points(stated: &Constant) -> Result<Vec<i32>, Fault> {
    expect_in_range(stated)?;
    match stated.stored {
        None | Some(DataType::INT32 | DataType::INT4 | DataType::UINT4) => {}
        Some(element) => range(element).map(|_| ())?,
    }
    let values = stated.to_ints()?.into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>();
    values.map_err(|_| Fault::new("a zero point has more than 32 bits"))
}

/// Checks that scales belong to whole tensors, or to dimensions.
fn expect_plain(node: &Node) -> Result<(), Fault> {
    match node.int("block_size", 0)? {
        0 => Ok(()),
        size => fault!("its scales are those of blocks of {size} elements; csdfc knows one for each index"),
    }
}

fn expect_channels_first(node: &Node) -> Result<(), Fault> {
    match node.flag("channels_last", false)? {
        false => Ok(()),
        true => fault!("its channels are last; csdfc reads NCHW"),
    }
}
