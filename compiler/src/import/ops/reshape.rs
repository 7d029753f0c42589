//! Views: the same elements in the same order under other dimensions.

use crate::import::builder::Builder;
use crate::import::constant::{Constant, count, type_name};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Tensor, axes, axis};
use csdfc_codegen::format::Element;
use rten_onnx::onnx::DataType;

pub(super) fn reshape(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let dims = reshaped(node, x.dims())?;
    builder.reshape(node, x, dims)
}

pub(super) fn reshape_constant(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    constant_view(node, reshaped)
}

pub(super) fn flatten(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let dims = flattened(node, x.dims())?;
    builder.reshape(node, x, dims)
}

pub(super) fn flatten_constant(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    constant_view(node, flattened)
}

pub(super) fn squeeze(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let dims = squeezed(node, x.dims())?;
    builder.reshape(node, x, dims)
}

pub(super) fn squeeze_constant(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    constant_view(node, squeezed)
}

pub(super) fn unsqueeze(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let dims = unsqueezed(node, x.dims())?;
    builder.reshape(node, x, dims)
}

pub(super) fn unsqueeze_constant(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    constant_view(node, unsqueezed)
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

/// `Cast` between kinds of floats does nothing, since csdfc computes in one.
pub(super) fn cast(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let to = DataType(i32::try_from(node.int("to", 0)?).unwrap_or(0));
    let indices = builder.network.layer(x.operand.layer).format().element == Element::I64;
    match to {
        DataType::INT64 if indices => builder.identity(node, x),
        // Integers that floats hold are floats already.
        DataType::FLOAT | DataType::DOUBLE | DataType::FLOAT16 | DataType::BFLOAT16 if !indices => {
            builder.identity(node, &x.as_floats())
        }
        _ => {
            let from = if indices { "int64" } else { "float32" };
            fault!("a tensor of {from} cannot become {}", type_name(to))
        }
    }
}

/// `Expand` that expands nothing.
pub(super) fn expand(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let dims = node.constant(1, "shape")?.to_ints()?;
    let grows = dims.len() > x.rank()
        || dims.iter().rev().zip(x.dims().iter().rev()).any(|(to, from)| *to != 1 && *to != *from as i64);
    if grows {
        return fault!("{} cannot be repeated to {dims:?}; only constants are expanded", x.operand.shape);
    }
    builder.identity(node, x)
}

fn constant_view(
    node: &Node,
    dims: fn(&Node, &[usize]) -> Result<Vec<usize>, Fault>,
) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let dims = dims(node, &x.dims)?;
    if count(&dims)? != x.elements() {
        return fault!("a constant of {:?} cannot be seen as {dims:?}", x.dims);
    }
    Ok(x.reshaped(dims))
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
