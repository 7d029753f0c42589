//! Views: the same elements in the same order under other dimensions.

use super::parts::{part, tensor};
use super::{layout, logic};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data, count, dimensions, type_name};
use crate::import::error::{Fault, fault};
use crate::import::fold::arithmetic;
use crate::import::node::{Node, Tensor, Value, axes, axis, with_operands};
use csdfc_network::operators::broadcast;
use csdfc_plan::operator::{Coordinates, Operator, Ratio, Resize, ResizeMode, Rounding, Scale};
use rten_onnx::onnx::DataType;

/// The operators that only see other dimensions.
pub(in crate::import) const VIEWS: [&str; 4] = ["Flatten", "Reshape", "Squeeze", "Unsqueeze"];

/// The dimensions that one of the [`VIEWS`] makes of those of its operand.
pub(in crate::import) fn viewed(node: &Node, from: &[usize]) -> Result<Vec<usize>, Fault> {
    match node.operator {
        "Flatten" => flattened(node, from),
        "Squeeze" => squeezed(node, from),
        "Unsqueeze" => unsqueezed(node, from),
        _ => reshaped(node, from),
    }
}

pub(super) fn view(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let dims = viewed(node, x.dims())?;
    builder.reshape(node, x, dims)
}

pub(super) fn view_constant(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let dims = viewed(node, &x.dims)?;
    if count(&dims)? != x.elements() {
        return fault!("a constant of {:?} cannot be seen as {dims:?}", x.dims);
    }
    Ok(x.reshaped(dims))
}

pub(super) fn identity(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    builder.identity(node, node.tensor(0)?)
}

pub(super) fn identity_constant(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    node.constant(0, "operand").cloned()
}

/// `Dropout` at inference does nothing.
pub(super) fn dropout(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    check_inference(node)?;
    builder.identity(node, node.tensor(0)?)
}

pub(super) fn dropout_constant(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    check_inference(node)?;
    identity_constant(builder, node)
}

fn check_inference(node: &Node) -> Result<(), Fault> {
    if let Some(training) = node.optional(2, "training_mode")?
        && training.scalar_int()? != 0
    {
        return fault!("it is in training mode");
    }
    Ok(())
}

/// `Cast` between kinds of floats does nothing, since csdfc computes in one. Floats hold integers and truth values.
pub(super) fn cast(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    cast_to(builder, node, DataType(i32::try_from(node.int("to", 0)?).unwrap_or(0)))
}

/// `CastLike`: a `Cast` to the type of another operand.
pub(super) fn cast_like(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let to = match node.input(1) {
        Some(Value::Tensor(like)) => match like.integers {
            Some(element) => element,
            None if builder.has_indices(like) => DataType::INT64,
            None => DataType::FLOAT,
        },
        Some(Value::Constant(like)) => match (&like.data, like.stored) {
            (Data::Bools(_), _) => DataType::BOOL,
            (_, Some(element)) => element,
            (Data::Ints(_), None) => DataType::INT64,
            (Data::Floats(_), None) => DataType::FLOAT,
        },
        None => return fault!("operand 1 is missing"),
    };
    match node.input(0) {
        Some(Value::Constant(x)) => Ok(vec![arithmetic::cast_to(builder, x, to)?.into()]),
        _ => Ok(vec![cast_to(builder, node, to)?.into()]),
    }
}

fn cast_to(builder: &mut Builder, node: &Node, to: DataType) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    if matches!(to, DataType::INT64 | DataType::INT32) && builder.has_indices(x) {
        // The caller gets indices as they are.
        return builder.identity(node, x);
    }
    let x = &builder.without_indices(x)?;
    match (x.integers, to) {
        (Some(from), to) if holds(to, from) => builder.identity(node, &x.as_integers(to)),
        // Integers that floats hold are floats already.
        (_, to) if is_float(to) => builder.identity(node, &x.as_floats()),
        (_, DataType::BOOL) => {
            let is_zero = logic::not(builder, node, x.as_floats().into())?;
            logic::not(builder, node, is_zero.as_floats().into())
        }
        (None, DataType::INT32 | DataType::INT64) => Ok(truncated(builder, node, x)?.as_integers(to)),
        (Some(_), DataType::UINT8) if classes(builder, x) <= 1 << 8 => {
            builder.identity(node, &x.as_integers(to))
        }
        // The upper bits are lost.
        (Some(DataType::INT32 | DataType::INT64), DataType::UINT8 | DataType::UINT16) => {
            let range = Constant::ints([], vec![if to == DataType::UINT8 { 1 << 8 } else { 1 << 16 }]);
            Ok(tensor(part(builder, node, "Mod", [x.clone().into(), range.into()])?)?.as_integers(to))
        }
        (from, to) => {
            let from = from.unwrap_or(DataType::FLOAT);
            fault!("a tensor of {} cannot become {}", type_name(from), type_name(to))
        }
    }
}

/// Above all integers that a tensor can have: the number of places of an ArgMax.
fn classes(builder: &Builder, x: &Tensor) -> usize {
    let layer = builder.network.layer(x.operand.layer);
    match &layer.operator {
        Operator::ArgMax(arg_max) => layer.inputs[0].shape.dims[arg_max.axis],
        _ => usize::MAX,
    }
}

fn is_float(element: DataType) -> bool {
    matches!(element, DataType::FLOAT | DataType::DOUBLE | DataType::FLOAT16 | DataType::BFLOAT16)
}

/// Whether a type of integers holds all those of another.
fn holds(to: DataType, from: DataType) -> bool {
    // Of each type: whether there are negative ones, and the bits without the sign.
    let reach = |element| {
        Some(match element {
            DataType::BOOL => (false, 1),
            DataType::UINT8 => (false, 8),
            DataType::UINT16 => (false, 16),
            DataType::UINT32 => (false, 32),
            DataType::UINT64 => (false, 64),
            DataType::INT8 => (true, 7),
            DataType::INT16 => (true, 15),
            DataType::INT32 => (true, 31),
            DataType::INT64 => (true, 63),
            _ => return None,
        })
    };
    let (Some((to_signed, to_bits)), Some((from_signed, from_bits))) = (reach(to), reach(from)) else {
        return false;
    };
    to_bits >= from_bits && (to_signed || !from_signed)
}

/// The elements, rounded towards 0.
fn truncated(builder: &mut Builder, node: &Node, x: &Tensor) -> Result<Tensor, Fault> {
    let size = part(builder, node, "Abs", [x.clone().into()])?;
    let size = part(builder, node, "Floor", [size])?;
    let sign = part(builder, node, "Sign", [x.clone().into()])?;
    tensor(part(builder, node, "Mul", [size, sign])?)
}

/// `Expand`: repetition becomes a resize to the nearest element.
pub(super) fn expand(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let wanted = dimensions(&node.constant(1, "shape")?.to_ints()?)?;
    let to = broadcast(x.dims(), &wanted)?;
    if to == x.dims() {
        return builder.identity(node, x);
    }
    // As many dimensions as there will be.
    let dims = [&vec![1; to.len() - x.rank()][..], x.dims()].concat();
    let mut x = if dims == x.dims() { x.clone() } else { builder.reshape(node, x, dims.clone())? };
    if dims == to {
        return Ok(x);
    }
    if dims.len() == 4 && dims[..2] == to[..2] {
        return repeated(builder, node, &x, [to[2], to[3]]);
    }
    for axis in (0..to.len()).filter(|axis| to[*axis] != dims[*axis]) {
        x = repeat(builder, node, &x, axis, to[axis])?;
    }
    Ok(x)
}

/// `Tile`: elements of a dimension of 1 are repeated as by `Expand`; any other dimension is a concat of copies.
pub(super) fn tile(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let mut x = node.tensor(0)?.clone();
    let repeats = dimensions(&node.constant(1, "repeats")?.to_ints()?)?;
    if repeats.len() != x.rank() || repeats.contains(&0) {
        return fault!("it repeats {} {repeats:?} times", x.operand.shape);
    }
    if repeats.iter().all(|times| *times == 1) {
        return builder.identity(node, &x);
    }
    for (axis, &times) in repeats.iter().enumerate().filter(|(_, times)| **times > 1) {
        if x.dims()[axis] > 1 {
            x = layout::joined(builder, node, axis, &vec![x.clone(); times.min(layout::MAX_PARTS + 1)])?;
        }
    }
    let wanted = x.dims().iter().zip(&repeats).map(|(dim, times)| if *dim == 1 { *times } else { *dim });
    let wanted: Vec<i64> = wanted.map(|dim| i64::try_from(dim).unwrap_or(i64::MAX)).collect();
    let shape = Constant::ints([wanted.len()], wanted);
    expand(builder, &with_operands(node, "Expand", [Some(x.into())], Some(shape)))
}

/// Each index of a dimension so many times, one after another.
pub(super) fn repeat(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    axis: usize,
    times: usize,
) -> Result<Tensor, Fault> {
    let mut dims = x.dims().to_vec();
    let [outer, inner] = [&dims[..axis], &dims[axis + 1..]].map(|dims| dims.iter().product());
    let image = builder.reshape(node, x, vec![1, outer, dims[axis], inner])?;
    dims[axis] *= times;
    let image = repeated(builder, node, &image, [dims[axis], inner])?;
    builder.reshape(node, &image, dims)
}

/// Repeats an image to this height and width, which are multiples of its own.
fn repeated(builder: &mut Builder, node: &Node, x: &Tensor, size: [usize; 2]) -> Result<Tensor, Fault> {
    let ratio = |at: usize| -> Result<Scale, Fault> {
        let counts = [size[at], x.dims()[at + 2]].map(u32::try_from);
        let [Ok(over), Ok(under)] = counts else { return fault!("a dimension of {} is too large", size[at]) };
        Ok(Scale::Ratio(Ratio { over, under }))
    };
    let operator = Operator::Resize(Resize {
        mode: ResizeMode::Nearest { rounding: Rounding::Floor },
        coordinates: Coordinates::Asymmetric,
        scales: [ratio(0)?, ratio(1)?],
        size,
    });
    builder.layer(node, operator, &[x], Vec::new())
}

/// Dimensions of a `Reshape`. A 0 copies the operand's dimension, and a single −1 stands for what remains.
fn reshaped(node: &Node, from: &[usize]) -> Result<Vec<usize>, Fault> {
    let wanted = node.constant(1, "shape")?.to_ints()?;
    let allow_zero = node.flag("allowzero", false)?;
    let mut dims = Vec::with_capacity(wanted.len());
    let mut open = None;
    for (i, &dim) in wanted.iter().enumerate() {
        dims.push(match (dim, usize::try_from(dim)) {
            (0, _) if !allow_zero => match from.get(i) {
                Some(copied) => *copied,
                None => return fault!("shape {wanted:?} copies a dimension that {from:?} does not have"),
            },
            (-1, _) if open.is_none() => {
                open = Some(i);
                1
            }
            (_, Ok(dim)) => dim,
            _ => return fault!("shape {wanted:?} is not lawful"),
        });
    }
    if let Some(open) = open {
        let (known, all) = (count(&dims)?, count(from)?);
        if known == 0 || all % known != 0 {
            return fault!("{from:?} cannot be seen as {wanted:?}");
        }
        dims[open] = all / known;
    }
    Ok(dims)
}

fn flattened(node: &Node, from: &[usize]) -> Result<Vec<usize>, Fault> {
    // One past the last dimension is lawful here.
    let split = match node.int("axis", 1)? {
        a if a == from.len() as i64 => from.len(),
        a => axis(a, from.len())?,
    };
    Ok(vec![count(&from[..split])?, count(&from[split..])?])
}

fn squeezed(node: &Node, from: &[usize]) -> Result<Vec<usize>, Fault> {
    let gone = match node.ints_since("axes", 13, 1)? {
        Some(list) => axes(&list, from.len())?,
        None => (0..from.len()).filter(|axis| from[*axis] == 1).collect(),
    };
    if let Some(axis) = gone.iter().find(|axis| from[**axis] != 1) {
        return fault!("dimension {axis} of {from:?} is not 1");
    }
    Ok(from.iter().enumerate().filter(|(axis, _)| !gone.contains(axis)).map(|(_, dim)| *dim).collect())
}

fn unsqueezed(node: &Node, from: &[usize]) -> Result<Vec<usize>, Fault> {
    let Some(list) = node.ints_since("axes", 13, 1)? else { return fault!("its axes are missing") };
    let rank = from.len() + list.len();
    let new = axes(&list, rank)?;
    let mut old = from.iter().copied();
    Ok((0..rank).map(|axis| if new.contains(&axis) { 1 } else { old.next().unwrap_or(1) }).collect())
}
