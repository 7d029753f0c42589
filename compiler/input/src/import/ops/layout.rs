//! Operators that move elements and compute none.

use csdfc_plan::operator::{Concat, DepthToSpace, Function, Operator, Pad, PadMode, Slice, SpaceToDepth};

use super::{binary, element_wise};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data};
use crate::import::error::{Fault, fault};
use crate::import::fold::index::{Range, slice_ranges, split_sizes};
use crate::import::node::{Node, Tensor, Value, axes, axis};

pub(super) fn transpose(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let perm = crate::import::node::permutation(node, x.rank())?;
    builder.transpose(node, x, perm)
}

pub(super) fn concat(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let some = node.inputs.iter().flatten().find_map(|input| match input {
        Value::Tensor(tensor) => Some(tensor),
        Value::Constant(_) => None,
    });
    let Some(some) = some else { return fault!("all its operands are empty") };
    let mut tensors = Vec::with_capacity(node.inputs.len());
    for (i, input) in node.inputs.iter().enumerate() {
        match input {
            Some(Value::Tensor(tensor)) => tensors.push(tensor.clone()),
            // An empty part adds nothing.
            Some(Value::Constant(constant)) if constant.elements() == 0 => {}
            Some(Value::Constant(constant)) => {
                // Floats hold integers and truth values.
                let some = builder.without_indices(some)?;
                let numbers = match constant.data {
                    Data::Bools(_) => Constant::floats(constant.dims.clone(), constant.to_floats()?),
                    _ => constant.clone(),
                };
                let made = tensor_of(builder, node, &some.as_floats(), &numbers)?;
                tensors.push(Tensor { integers: some.integers, ..made });
            }
            None => return fault!("operand {i} is missing"),
        }
    }
    let axis = axis(node.int("axis", 1)?, some.rank())?;
    match tensors.as_slice() {
        [one] => builder.identity(node, one),
        _ => {
            let tensors: Vec<&Tensor> = tensors.iter().collect();
            builder.layer(node, Operator::Concat(Concat { axis }), &tensors, Vec::new())
        }
    }
}

/// A constant as a tensor: it is added to a 0, which is made from an element of some tensor.
pub(super) fn tensor_of(
    builder: &mut Builder,
    node: &Node,
    some: &Tensor,
    constant: &Constant,
) -> Result<Tensor, Fault> {
    if constant.dims.len() != some.rank() {
        return fault!("a constant of {:?} beside {}", constant.dims, some.operand.shape);
    }
    let one = vec![Range { start: 0, step: 1, length: 1 }; some.rank()];
    let element = take(builder, node, some, &one)?;
    // No value that is at most 0 is more than 0, and NaN is not either.
    let least = element_wise::layer(builder, node, &element, Function::Clip { min: None, max: Some(0.0) })?;
    let zero = element_wise::layer(builder, node, &least, Function::ThresholdedRelu { alpha: 0.0 })?;
    binary::of_two_operands(builder, node, "Add", &zero, constant.clone())
}

pub(super) fn slice(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let ranges = slice_ranges(node, x.dims())?;
    take(builder, node, x, &ranges)
}

/// `Split`: one slice for each output. An empty part is a constant without elements.
pub(super) fn split(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let x = node.tensor(0)?;
    let axis = axis(node.int("axis", 0)?, x.rank())?;
    let mut start = 0;
    let mut parts = Vec::new();
    for length in split_sizes(node, x.dims()[axis])? {
        let mut ranges = Range::whole(x.dims());
        ranges[axis] = Range { start, step: 1, length };
        start += length;
        parts.push(match length {
            0 => {
                let dims: Vec<usize> = ranges.iter().map(|range| range.length).collect();
                Value::Constant(Constant::floats(dims, Vec::new()))
            }
            _ => Value::Tensor(take(builder, node, x, &ranges)?),
        });
    }
    Ok(parts)
}

/// Maximum number of parts of a tensor that one node may take or join along a dimension.
pub(super) const MAX_PARTS: usize = 256;

/// Tensors after each other along a dimension.
pub(super) fn joined(
    builder: &mut Builder,
    node: &Node,
    axis: usize,
    parts: &[Tensor],
) -> Result<Tensor, Fault> {
    match parts {
        [part] => Ok(part.clone()),
        _ if parts.len() > MAX_PARTS => {
            fault!("it joins more than {MAX_PARTS} parts along dimension {axis}")
        }
        _ => {
            let parts: Vec<&Tensor> = parts.iter().collect();
            builder.layer(node, Operator::Concat(Concat { axis }), &parts, Vec::new())
        }
    }
}

/// `Pad` by a constant, the edge or the mirror image.
pub(super) fn pad(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let rank = x.rank();
    let Some(pads) = node.ints_since("pads", 11, 1)? else { return fault!("its pads are missing") };
    let chosen = match node.optional(3, "axes")? {
        Some(list) if node.opset >= 18 => {
            let list = list.to_ints()?;
            axes(&list, rank)?;
            list.iter().map(|a| axis(*a, rank)).collect::<Result<Vec<_>, _>>()?
        }
        _ => (0..rank).collect(),
    };
    if pads.len() != 2 * chosen.len() {
        return fault!("it has {} pads for {} dimensions", pads.len(), chosen.len());
    }
    let (mut before, mut after) = (vec![0; rank], vec![0; rank]);
    for (i, &axis) in chosen.iter().enumerate() {
        before[axis] = pads[i];
        after[axis] = pads[i + chosen.len()];
    }
    if pads.iter().all(|pad| *pad == 0) {
        return builder.identity(node, x);
    }
    let mode = match node.text("mode", "constant")? {
        "constant" => {
            let value = if node.opset < 11 {
                node.float("value", 0.0)?
            } else {
                node.optional(2, "constant_value")?.map_or(Ok(0.0), |constant| constant.scalar())?
            };
            match value {
                f32::NEG_INFINITY => PadMode::Constant { value: None },
                value if value.is_finite() => PadMode::Constant { value: Some(value) },
                value => return fault!("it pads with {value}"),
            }
        }
        "reflect" => PadMode::Reflect,
        "edge" => PadMode::Edge,
        "wrap" => return wrapped(builder, node, x, &before, &after),
        other => return fault!("mode {other} is unknown"),
    };
    builder.layer(node, Operator::Pad(Pad { mode, before, after }), &[x], Vec::new())
}

/// A `Pad` that goes on with the other end of each dimension.
fn wrapped(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    before: &[i64],
    after: &[i64],
) -> Result<Tensor, Fault> {
    let mut made = x.clone();
    for (axis, (&before, &after)) in before.iter().zip(after).enumerate() {
        let size = made.dims()[axis];
        let (Ok(before), Ok(after)) = (usize::try_from(before), usize::try_from(after)) else {
            return fault!("mode wrap crops dimension {axis}; csdfc only pads in this mode");
        };
        if before.max(after) > size {
            return fault!("mode wrap pads dimension {axis}, which is {size}, with {}", before.max(after));
        }
        let end = |builder: &mut Builder, start: usize, length: usize| {
            let mut ranges = Range::whole(made.dims());
            ranges[axis] = Range { start, step: 1, length };
            take(builder, node, &made, &ranges)
        };
        let mut parts = Vec::with_capacity(3);
        if before > 0 {
            parts.push(end(builder, size - before, before)?);
        }
        parts.push(made.clone());
        if after > 0 {
            parts.push(end(builder, 0, after)?);
        }
        made = joined(builder, node, axis, &parts)?;
    }
    Ok(made)
}

pub(super) fn depth_to_space(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let depth_first = match node.text("mode", "DCR")? {
        "DCR" => true,
        "CRD" => false,
        other => return fault!("mode {other} is unknown"),
    };
    let operator = Operator::DepthToSpace(DepthToSpace { block: block(node)?, depth_first });
    builder.layer(node, operator, &[node.tensor(0)?], Vec::new())
}

pub(super) fn space_to_depth(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let block = block(node)?;
    let operator = Operator::SpaceToDepth(SpaceToDepth { block });
    let blocks = builder.layer(node, operator, &[node.tensor(0)?], Vec::new())?;
    match node.text("mode", "DCR")? {
        "DCR" => Ok(blocks),
        // The places in a block vary faster than the channels.
        "CRD" => {
            let dims = blocks.dims().to_vec();
            let &[batch, channels, height, width] = dims.as_slice() else {
                return fault!("its input is no image");
            };
            // The layer has checked that the square of the block size divides its channels.
            let places = block * block;
            let split = vec![batch, places, channels / places, height * width];
            let split = builder.reshape(node, &blocks, split)?;
            let swapped = builder.transpose(node, &split, vec![0, 2, 1, 3])?;
            builder.reshape(node, &swapped, dims)
        }
        other => fault!("mode {other} is unknown"),
    }
}

fn block(node: &Node) -> Result<usize, Fault> {
    match usize::try_from(node.int("blocksize", 0)?) {
        Ok(block) if block > 0 => Ok(block),
        _ => fault!("blocksize is {}", node.int("blocksize", 0)?),
    }
}

/// The elements of a tensor in a tensor of their own.
pub(in crate::import) fn copy(builder: &mut Builder, node: &Node, x: &Tensor) -> Result<Tensor, Fault> {
    let (rank, lengths) = (x.rank(), x.dims().to_vec());
    let operator = Operator::Slice(Slice { starts: vec![0; rank], steps: vec![1; rank], lengths });
    builder.layer(node, operator, &[x], Vec::new())
}

/// The sub-grid of these ranges, or the tensor itself if they leave nothing out.
pub(super) fn take(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    ranges: &[Range],
) -> Result<Tensor, Fault> {
    if ranges == Range::whole(x.dims()) {
        return builder.identity(node, x);
    }
    if ranges.iter().any(|range| range.length == 0) {
        return fault!("it selects no element of {}", x.operand.shape);
    }
    let operator = Operator::Slice(Slice {
        starts: ranges.iter().map(|range| range.start).collect(),
        steps: ranges.iter().map(|range| range.step).collect(),
        lengths: ranges.iter().map(|range| range.length).collect(),
    });
    builder.layer(node, operator, &[x], Vec::new())
}
