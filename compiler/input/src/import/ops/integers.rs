//! Integers that floats hold: integers of a model's inputs, integers whose scale is known only when the network runs,
//! and sums of products of such integers. Their absolute values are all below 2²⁴, so floats hold them exactly.

use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Function, Operator, Reduce, ReduceFunction};
use rten_onnx::onnx::DataType;

use super::integer_types::{element, ends, expect_in_range, range};
use super::{binary, convolution, dense, element_wise, reduce};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, type_name};
use crate::import::error::{Fault, fault};
use crate::import::node::{self, Node, Tensor, Value, with_operands};

/// From this absolute value on, floats cannot hold every integer.
const MAX: u64 = 1 << 24;

/// The largest difference of two 8-bit integers.
const REACH: u64 = 255;

/// `DynamicQuantizeLinear`: the least and the greatest element, and 0, decide the scale and the zero point.
pub(super) fn dynamic_quantize(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let x = node.tensor(0)?;
    let axes: Vec<usize> = (0..x.rank()).collect();
    let bound = |builder: &mut Builder, function: ReduceFunction, bounds: [Option<f32>; 2]| {
        let bound = reduce::in_either_order(builder, node, x, &axes, false, |axes, keep_dims| {
            Operator::Reduce(Reduce { function: function.clone(), axes, keep_dims })
        })?;
        let [min, max] = bounds;
        element_wise::layer(builder, node, &bound, Function::Clip { min, max })
    };
    let low = bound(builder, ReduceFunction::Min, [None, Some(0.0)])?;
    let high = bound(builder, ReduceFunction::Max, [Some(0.0), None])?;
    let span = binary::of_two_operands(builder, node, "Sub", &high, low.clone())?;
    let scale = binary::of_two_operands(builder, node, "Div", &span, Constant::floats([], vec![255.0]))?;
    // If all elements are 0, any scale makes zeros.
    let scale = element_wise::layer(
        builder,
        node,
        &scale,
        Function::Clip { min: Some(f32::MIN_POSITIVE), max: None },
    )?;
    let zero_point = binary::of_two_operands(builder, node, "Div", &low, scale.clone())?;
    let zero_point = element_wise::layer(builder, node, &zero_point, Function::Neg)?;
    let zero_point = element_wise::layer(builder, node, &zero_point, Function::Round)?;
    let y =
        integers(builder, node, x, scale.clone().into(), Some(zero_point.clone().into()), DataType::UINT8)?;
    Ok(vec![y.into(), scale.into(), zero_point.as_integers(DataType::UINT8).into()])
}

/// `DynamicQuantizeLinear` of a constant.
pub(super) fn dynamic_quantize_constant(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let x = node.constant(0, "x")?;
    builder.charge(x.elements())?;
    let values = x.to_floats()?;
    let [low, high] = values.iter().fold([0.0f32; 2], |[low, high], x| [low.min(*x), high.max(*x)]);
    let scale = ((high - low) / 255.0).max(f32::MIN_POSITIVE);
    let zero_point = (-(low / scale)).round_ties_even() as i64;
    let integer = |x: &f32| ((x / scale).round_ties_even() as i64 + zero_point).clamp(0, 255);
    let bytes = |dims: Vec<usize>, values: Vec<i64>| Constant {
        stored: Some(DataType::UINT8),
        ..Constant::ints(dims, values)
    };
    let y = bytes(x.dims.clone(), values.iter().map(integer).collect());
    Ok([y, Constant::floats([], vec![scale]), bytes(Vec::new(), vec![zero_point])]
        .map(Value::Constant)
        .into())
}

/// `ConvInteger`.
pub(super) fn conv(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = centred(builder, node, 0, 2)?;
    let filters = weights(builder, node, [1, 3], 0)?;
    let each = filters.dims.iter().skip(1).product::<usize>().max(1);
    let values = filters.to_floats()?;
    let sums = values.chunks(each).map(|filter| filter.iter().map(size).sum());
    expect_exact(sums.max().unwrap_or(0))?;
    let y =
        convolution::conv(builder, &with_operands(node, "Conv", [x.into(), filters.into()].map(Some), None))?;
    Ok(y.as_integers(DataType::INT32))
}

/// `MatMulInteger` of a tensor by a constant or a tensor.
pub(super) fn mat_mul(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let a = centred(builder, node, 0, 2)?;
    let (b, sums) = match node.input(1) {
        Some(Value::Constant(b)) => {
            let b = weights(builder, node, [1, 3], b.dims.len().saturating_sub(1))?;
            let values = b.to_floats()?;
            let (inner, units) = match b.dims.as_slice() {
                &[.., inner, units] => (inner, units),
                _ => (values.len(), 1),
            };
            let column = |matrix: &[f32], unit| matrix[unit..].iter().step_by(units).map(size).sum();
            let matrices = values.chunks_exact((inner * units).max(1));
            let sums = matrices.flat_map(|matrix| (0..units).map(move |unit| column(matrix, unit)));
            let sums = sums.max().unwrap_or(0);
            (Value::Constant(b), sums)
        }
        _ => {
            let inner = a.dims().last().copied().unwrap_or(1) as u64;
            (Value::Tensor(centred(builder, node, 1, 3)?), REACH.saturating_mul(inner))
        }
    };
    expect_exact(sums)?;
    let y = dense::mat_mul(builder, &with_operands(node, "MatMul", [a.into(), b].map(Some), None))?;
    Ok(y.as_integers(DataType::INT32))
}

/// Whether a `QuantizeLinear` makes integers that floats hold: those of several scales, of one that the network computes, or of
/// 16 bits.
pub(super) fn makes(node: &Node) -> bool {
    let is_wide = |value: &Value| {
        matches!(value, Value::Constant(Constant { stored: Some(DataType::INT16 | DataType::UINT16), .. }))
    };
    !node.input(1).is_some_and(is_one) || node.input(2).is_some_and(is_wide)
}

/// Whether a `DequantizeLinear` reads such integers.
pub(super) fn reads(node: &Node) -> bool {
    let Some(Value::Tensor(Tensor { integers: Some(element), .. })) = node.input(0) else { return false };
    !matches!(*element, DataType::INT8 | DataType::UINT8) || !node.input(1).is_some_and(is_one)
}

fn is_one(value: &Value) -> bool {
    matches!(value, Value::Constant(constant) if constant.elements() == 1)
}

/// `QuantizeLinear`, as floats that hold the integers.
pub(super) fn quantize(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let stated = match node.input(2) {
        Some(Value::Constant(stated)) => Some(stated),
        _ => None,
    };
    let element = element(node, stated)?;
    let scale = scale(builder, node, 1, x.dims())?;
    let zero_point = dealt_out(builder, node, 2, x.dims())?;
    integers(builder, node, x, scale, zero_point, element)
}

/// The numbers that an operand stands for, integers that floats hold. Its scale and its zero point are the two operands
/// after it.
pub(super) fn numbers(builder: &mut Builder, node: &Node, index: usize) -> Result<Tensor, Fault> {
    let mut x = node.tensor(index)?.as_floats();
    let dims = x.dims().to_vec();
    if let Some(zero_point) = dealt_out(builder, node, index + 2, &dims)? {
        x = binary::of_two_operands(builder, node, "Sub", &x, zero_point)?;
    }
    let scale = scale(builder, node, index + 1, &dims)?;
    binary::of_two_operands(builder, node, "Mul", &x, scale)
}

/// `clamp(round(x / scale) + zero_point)` as integers.
fn integers(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    scale: Value,
    zero_point: Option<Value>,
    element: DataType,
) -> Result<Tensor, Fault> {
    let [low, high] = match ends(element) {
        Some(ends) => ends,
        None => range(element)?,
    };
    let y = binary::of_two_operands(builder, node, "Div", x, scale)?;
    let mut y = element_wise::layer(builder, node, &y, Function::Round)?;
    if let Some(zero_point) = zero_point {
        y = binary::of_two_operands(builder, node, "Add", &y, zero_point)?;
    }
    let y = element_wise::layer(
        builder,
        node,
        &y,
        Function::Clip { min: Some(low as f32), max: Some(high as f32) },
    )?;
    Ok(y.as_integers(element))
}

/// An operand of integers, counted from its zero point.
fn centred(builder: &mut Builder, node: &Node, index: usize, zero_point: usize) -> Result<Tensor, Fault> {
    let x = node.tensor(index)?;
    let integers = x.integers;
    if !matches!(integers, Some(DataType::INT8 | DataType::UINT8)) {
        let help = "quantize it by DynamicQuantizeLinear, or multiply by QLinearConv or QLinearMatMul";
        let reason = format!(
            "its operand {index} is neither an input of integers nor made by a DynamicQuantizeLinear"
        );
        return Err(Fault::new(reason).help(help));
    }
    let x = x.as_floats();
    match node.input(zero_point) {
        None => Ok(x),
        Some(Value::Constant(stated)) if stated.elements() != 1 => {
            fault!("it has {} zero points for one tensor; csdfc takes one", stated.elements())
        }
        Some(Value::Constant(stated)) => {
            expect_zero_points(stated, integers)?;
            if stated.scalar_int()? == 0 {
                return Ok(x);
            }
            let zero_point = Constant::floats([], vec![stated.scalar_int()? as f32]);
            binary::of_two_operands(builder, node, "Sub", &x, zero_point)
        }
        Some(Value::Tensor(stated)) if stated.operand.shape.elements() != 1 => {
            fault!("{} as the zero point of a tensor; one for all of it is supported", stated.operand.shape)
        }
        Some(Value::Tensor(stated)) => binary::of_two_operands(builder, node, "Sub", &x, stated.as_floats()),
    }
}

/// Constant integers, counted from their zero points. A dimension has a zero point for each of its indices.
fn weights(
    builder: &mut Builder,
    node: &Node,
    [index, zero_point]: [usize; 2],
    axis: usize,
) -> Result<Constant, Fault> {
    let x = node.constant(index, "weights")?;
    builder.charge(x.elements())?;
    let zero_points = match node.optional(zero_point, "zero point")? {
        Some(stated) => {
            expect_zero_points(stated, x.stored)?;
            stated.to_ints()?
        }
        None => vec![0],
    };
    let size = x.dims.get(axis).copied().unwrap_or(1);
    if ![1, size].contains(&zero_points.len()) {
        return fault!("it has {} zero points for {size} indices of dimension {axis}", zero_points.len());
    }
    let inner = x.dims.iter().skip(axis + 1).product::<usize>().max(1);
    let mut values = Vec::with_capacity(x.elements());
    for (at, value) in x.to_ints()?.into_iter().enumerate() {
        let value = value.saturating_sub(zero_points[at / inner % zero_points.len()]);
        if value.unsigned_abs() > REACH {
            return fault!(
                "its operand {index} has {value} after subtracting its zero point: not 8-bit integers"
            );
        }
        values.push(value as f32);
    }
    Ok(Constant::floats(x.dims.clone(), values))
}

/// Checks that zero points have the type of the integers that are counted from them, and are in its range.
fn expect_zero_points(stated: &Constant, of: Option<DataType>) -> Result<(), Fault> {
    match (stated.stored, of) {
        (Some(own), Some(of)) if own != of => {
            fault!("its zero point is {}, but its integers are {}", type_name(own), type_name(of))
        }
        _ => expect_in_range(stated),
    }
}

/// Scales in the form that [`dealt_out`] gives.
fn scale(builder: &mut Builder, node: &Node, index: usize, dims: &[usize]) -> Result<Value, Fault> {
    let Some(scales) = dealt_out(builder, node, index, dims)? else { return fault!("its scale is missing") };
    if let Value::Constant(scales) = &scales {
        if let (Some(Value::Constant(scales)), Some(Value::Constant(zeros))) =
            (node.input(index), node.input(index + 1))
            && scales.elements() != zeros.elements()
        {
            return fault!("it has {} zero points, but {} scales", zeros.elements(), scales.elements());
        }
        // The scale times a 16-bit integer is finite.
        let is_good = |scale: &f32| scale.is_normal() && *scale > 0.0 && (scale * 65_536.0).is_finite();
        if let Some(scale) = scales.to_floats()?.iter().find(|scale| !is_good(scale)) {
            return fault!("its scale is {scale}; it must be a positive normal number, and no huge one");
        }
    }
    Ok(scales)
}

/// Scales or zero points in a shape that broadcasts to a tensor of these dimensions. There is one for all elements, one
/// for each index along the node's axis, or one for each block of such indices.
fn dealt_out(
    builder: &mut Builder,
    node: &Node,
    index: usize,
    dims: &[usize],
) -> Result<Option<Value>, Fault> {
    let x = match node.input(index) {
        None => return Ok(None),
        Some(Value::Tensor(x)) if x.operand.shape.elements() == 1 => {
            let x = builder.reshape(node, x, Vec::new())?;
            return Ok(Some(x.as_floats().into()));
        }
        Some(Value::Tensor(x)) => {
            return fault!("its operand {index} ({}) is computed by the network", x.operand.shape);
        }
        Some(Value::Constant(x)) => x,
    };
    expect_in_range(x)?;
    let values = x.to_floats()?;
    if values.len() == 1 {
        return Ok(Some(Constant::floats([], values).into()));
    }
    let axis = node::axis(node.int("axis", 1)?, dims.len())?;
    let block = usize::try_from(node.int("block_size", 0)?).unwrap_or(0);
    let inner = dims[axis + 1..].iter().product::<usize>();
    let (mut own, blocks) = (dims.to_vec(), dims[axis].div_ceil(block.max(1)));
    own[axis] = blocks;
    if block == 0 && x.dims == [dims[axis]] {
        let mut along = vec![1; dims.len()];
        along[axis] = dims[axis];
        return Ok(Some(Constant::floats(along, values).into()));
    }
    if block == 0 || x.dims != own {
        return fault!("its operand {index} has dimensions {:?}, which do not fit {dims:?}", x.dims);
    }
    let elements = dims.iter().product();
    builder.charge(elements)?;
    let place = |at: usize| {
        let (outer, k) = (at / inner / dims[axis], at / inner % dims[axis] / block);
        values[(outer * blocks + k) * inner + at % inner]
    };
    Ok(Some(Constant::floats(dims, (0..elements).map(place).collect()).into()))
}

/// `DequantizeLinear` of a constant whose blocks of elements along an axis have a scale each.
pub(super) fn dequantize_blocks(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "x")?;
    builder.charge(x.elements())?;
    let of_each = |value: Option<Value>| match value {
        Some(Value::Constant(value)) => value.to_floats().map(Some),
        _ => Ok(None),
    };
    let zero_points = of_each(dealt_out(builder, node, 2, &x.dims)?)?.unwrap_or_else(|| vec![0.0]);
    let Some(scales) = of_each(Some(scale(builder, node, 1, &x.dims)?))? else {
        return fault!("its scale is computed by the network");
    };
    // They are broadcast to all elements, or there is one.
    let number = |(at, x): (usize, &i64)| {
        let [scale, zero_point] = [&scales, &zero_points].map(|values| values[at % values.len().max(1)]);
        scale * (*x as f32 - zero_point)
    };
    Ok(Constant::floats(x.dims.clone(), x.to_ints()?.iter().enumerate().map(number).collect()))
}

/// An output as the caller gets it, and what its integers stand for if they are bytes. `element` is what the model states
/// of it. Signed integers become floats that hold them.
pub(in crate::import) fn output(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    element: DataType,
) -> Result<(Tensor, Option<Quantization>), Fault> {
    match (builder.quantization(x), element) {
        (Some(of), DataType::UINT8) => Ok((x.clone(), Some(of))),
        (None, DataType::UINT8 | DataType::BOOL) if x.integers.is_some() => {
            Ok((x.clone(), Some(Quantization::IDENTITY)))
        }
        _ => Ok((as_floats(builder, node, x, element == DataType::INT8)?, None)),
    }
}

/// The 8-bit integers of a tensor as floats.
pub(in crate::import) fn as_floats(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    is_signed: bool,
) -> Result<Tensor, Fault> {
    let Some(Quantization { scale, zero_point }) = builder.quantization(x) else { return Ok(x.clone()) };
    let x = builder.convert(node, "convert-dequantize-hwc-hwc", x, None)?;
    let x = binary::of_two_operands(builder, node, "Div", &x, Constant::floats([], vec![scale]))?;
    let x = element_wise::layer(builder, node, &x, Function::Round)?;
    match i16::from(zero_point) - if is_signed { 128 } else { 0 } {
        0 => Ok(x),
        zero_point => {
            binary::of_two_operands(builder, node, "Add", &x, Constant::floats([], vec![zero_point.into()]))
        }
    }
}

/// The absolute value of an integer.
fn size(value: &f32) -> u64 {
    value.abs() as u64
}

/// Checks that no sum of products is too large. `sums` is the sum of the absolute values of a sum's weights.
fn expect_exact(sums: u64) -> Result<(), Fault> {
    match sums.saturating_mul(REACH) {
        0..=MAX => Ok(()),
        most => Err(Fault::new(format!(
            "its sums may reach {most}; csdfc computes them as floats, which are exact up to {MAX}"
        ))
        .help("quantize the model with scales that are known before it runs (QuantizeLinear)")),
    }
}
