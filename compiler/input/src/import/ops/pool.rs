//! Pooling over windows and over whole images.

use csdfc_plan::operator::{MaxUnpool, Operator, Pad, PadMode, Pool, PoolKind, Reduce, ReduceFunction};
use rten_onnx::onnx::DataType;

use super::convolution::{pads, spatial};
use super::{layout, line, logic, volume};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, dimensions};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, Value, pair};

/// `MaxPool`: the largest elements and, if the node has that output, their places, as floats that hold integers. There are none
/// of volumes, nor if places count columns first, or more than floats can.
pub(super) fn max_pool(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let largest = pool(builder, node)?;
    let is_asked = node.proto.output.get(1).is_some_and(|name| !name.is_empty());
    let is_counted = node.tensor(0)?.operand.shape.elements() <= MAX_PLACES;
    if !is_asked || !is_counted || volume::reads(node) || node.flag("storage_order", false)? {
        return Ok(vec![largest.into()]);
    }
    let places = pool(builder, &Node { operator: MAX_INDEX, inputs: node.inputs.clone(), ..*node })?;
    Ok(vec![largest.into(), places.as_integers(DataType::INT64).into()])
}

/// What stands for the second output of a `MaxPool`, which ONNX has no name for.
const MAX_INDEX: &str = "MaxPool indices";

/// The most elements that floats count.
const MAX_PLACES: usize = 1 << 24;

/// `MaxUnpool`: to the shape that ONNX infers from the window, with zeros around it if another one is stated.
pub(super) fn max_unpool(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if line::reads(node) {
        return line::of_windows(builder, node, max_unpool);
    }
    let x = node.tensor(0)?;
    if node.input(1).is_none() {
        return Err(Fault::new("operand 1, its places, is missing").help(
            "csdfc makes the places of a MaxPool that count rows first (storage_order 0), up to 2^24 elements",
        ));
    }
    let places = match logic::numbers(builder, node, 1)? {
        Value::Tensor(places) => places,
        Value::Constant(places) => {
            let places = Constant::floats(places.dims.clone(), places.to_floats()?);
            layout::tensor_of(builder, node, x, &places)?
        }
    };
    let input = spatial(x)?;
    let Some(kernel) = node.ints("kernel_shape")? else { return fault!("it has no kernel_shape") };
    let (kernel, stride) = (pair(kernel, "kernel_shape")?, node.pair("strides", 1)?);
    let pads = node.ints("pads")?.map_or(Ok(vec![0; 4]), dimensions)?;
    let &[top, left, bottom, right] = pads.as_slice() else { return fault!("its pads are {pads:?}") };
    let side = |axis: usize, pads: usize| {
        (input[axis] - 1).saturating_mul(stride[axis]).saturating_add(kernel[axis]).checked_sub(pads)
    };
    let (Some(height), Some(width)) = (side(0, top + bottom), side(1, left + right)) else {
        return fault!("its pads {pads:?} leave nothing of its output");
    };
    let unpool = MaxUnpool { size: [height, width] };
    let made = builder.layer(node, Operator::MaxUnpool(unpool), &[x, &places], Vec::new())?;
    let Some(stated) = node.optional(2, "output_shape")? else { return Ok(made) };
    let stated = stated.to_ints()?;
    if stated.len() != made.rank() {
        return fault!("its output_shape {stated:?} is none of {}", made.operand.shape);
    }
    let after: Vec<i64> = stated.iter().zip(made.dims()).map(|(size, own)| size - *own as i64).collect();
    if after.iter().all(|pad| *pad == 0) {
        return Ok(made);
    }
    let (mode, before) = (PadMode::Constant { value: Some(0.0) }, vec![0; made.rank()]);
    builder.layer(node, Operator::Pad(Pad { mode, before, after }), &[&made], Vec::new())
}

/// `MaxPool`, `AveragePool` and `LpPool` over windows of one, two or three dimensions.
pub(super) fn pool(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if line::reads(node) {
        return line::of_windows(builder, node, pool);
    }
    if volume::reads(node) {
        return volume::pool(builder, node, pool);
    }
    let x = node.tensor(0)?;
    let input = spatial(x)?;
    let Some(kernel) = node.ints("kernel_shape")? else { return fault!("it has no kernel_shape") };
    let kernel = pair(kernel, "kernel_shape")?;
    let (stride, dilation) = (node.pair("strides", 1)?, node.pair("dilations", 1)?);
    let kind = match node.operator {
        "AveragePool" => PoolKind::Average { count_include_pad: node.flag("count_include_pad", false)? },
        "LpPool" => PoolKind::Lp { p: exponent(node)? },
        MAX_INDEX => PoolKind::MaxIndex,
        _ => PoolKind::Max,
    };
    let pads = pads(node, input, kernel, stride, dilation)?;
    let ceil = node.flag("ceil_mode", false)?;
    let operator = Operator::Pool(Pool { kind, kernel, stride, dilation, pads, ceil });
    builder.layer(node, operator, &[x], Vec::new())
}

/// `GlobalAveragePool`, `GlobalMaxPool` and `GlobalLpPool`: reductions over all dimensions but batch and channels.
pub(super) fn global_pool(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    if line::reads_images(builder, node) {
        return line::of_windows(builder, node, global_pool);
    }
    let x = node.tensor(0)?;
    if x.rank() < 3 {
        return fault!("its input has rank {} ({}) and no height or width", x.rank(), x.operand.shape);
    }
    let function = match node.operator {
        "GlobalAveragePool" => ReduceFunction::Mean,
        "GlobalMaxPool" => ReduceFunction::Max,
        _ => ReduceFunction::Lp { p: exponent(node)? },
    };
    let axes = (2..x.rank()).collect();
    let operator = Operator::Reduce(Reduce { function, axes, keep_dims: true });
    builder.layer(node, operator, &[x], Vec::new())
}

fn exponent(node: &Node) -> Result<i64, Fault> {
    match node.int("p", 2)? {
        p if p > 0 => Ok(p),
        p => fault!("p is {p}"),
    }
}
