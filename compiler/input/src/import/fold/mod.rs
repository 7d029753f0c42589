//! Computations at import: constants that depend only on constants or on the shapes of tensors.

pub(super) mod arithmetic;
pub(super) mod index;
pub(super) mod kernels;
pub(super) mod patterns;

use super::builder::Builder;
use super::constant::{Constant, Data, count, dimensions};
use super::error::{Fault, fault};
use super::node::{Node, Value};

/// `Constant` in all its forms but strings and sparse tensors.
pub(super) fn constant(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    if let Some(tensor) = node.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
        // External data files are for initializers alone.
        return builder.stored(tensor, None);
    }
    if node.has("value_float") {
        let value = node.attribute("value_float").and_then(|attribute| attribute.f).unwrap_or_default();
        return Ok(Constant::floats([], vec![value]));
    }
    if node.has("value_int") {
        return Ok(Constant::ints([], vec![node.int("value_int", 0)?]));
    }
    if let Some(values) = node.ints("value_ints")? {
        return Ok(Constant::ints([values.len()], values.to_vec()));
    }
    if let Some(attribute) = node.attribute("value_floats") {
        return Ok(Constant::floats([attribute.floats.len()], attribute.floats.clone()));
    }
    match node.has("sparse_value") {
        true => fault!("its value is sparse; csdfc reads sparse tensors that are initializers"),
        false => fault!("it holds no numbers"),
    }
}

/// `ConstantOfShape`: one value throughout, 0 by default; nothing is stored for it.
pub(super) fn constant_of_shape(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let dims = dimensions(&node.constant(0, "shape")?.to_ints()?)?;
    let elements = count(&dims)?;
    let value = match node.attribute("value").and_then(|attribute| attribute.t.as_ref()) {
        Some(tensor) => builder.stored(tensor, None)?,
        None => Constant::floats([1], vec![0.0]),
    };
    match &value.data {
        Data::Floats(_) => Ok(Constant::filled(dims, value.scalar()?)),
        Data::Ints(_) => {
            builder.charge(elements)?;
            Ok(Constant::ints(dims, vec![value.scalar_int()?; elements]))
        }
        Data::Bools(_) => {
            builder.charge(elements)?;
            Ok(Constant::bools(dims, vec![value.scalar_int()? != 0; elements]))
        }
    }
}

/// `Shape` of a tensor or a constant, from `start` to `end`.
pub(super) fn shape(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let dims = operand_dims(node)?;
    let place = |value: i64| -> usize {
        let rank = dims.len() as i64;
        let from_start = if value < 0 { value.saturating_add(rank) } else { value };
        from_start.clamp(0, rank) as usize
    };
    let start = place(node.int("start", 0)?);
    let end = place(node.int("end", i64::MAX)?).max(start);
    let dims: Vec<i64> = dims[start..end].iter().map(|dim| *dim as i64).collect();
    Ok(Constant::ints([dims.len()], dims))
}

/// `Size`: the number of elements.
pub(super) fn size(_: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    Ok(Constant::ints([], vec![count(operand_dims(node)?)? as i64]))
}

/// `Range` of numbers.
pub(super) fn range(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let (start, limit, step) =
        (node.constant(0, "start")?, node.constant(1, "limit")?, node.constant(2, "delta")?);
    let length = |count: f64| -> Result<usize, Fault> {
        if (0.0..f64::from(u32::MAX)).contains(&count) {
            Ok(count as usize)
        } else {
            fault!("a range of {count}")
        }
    };
    if matches!(start.data, Data::Ints(_)) {
        let (start, limit, step) = (start.scalar_int()?, limit.scalar_int()?, step.scalar_int()?);
        if step == 0 {
            return fault!("a range by steps of 0");
        }
        let span = i128::from(limit) - i128::from(start);
        let step = i128::from(step);
        let steps = (span + step - step.signum()) / step;
        let length = length(steps.max(0) as f64)?;
        builder.charge(length)?;
        // Every value lies between start and limit.
        return Ok(Constant::ints(
            [length],
            (0..length).map(|i| (i128::from(start) + i as i128 * step) as i64).collect(),
        ));
    }
    let (start, limit, step) = (start.scalar()?, limit.scalar()?, step.scalar()?);
    let length = length(((f64::from(limit) - f64::from(start)) / f64::from(step)).ceil().max(0.0))?;
    builder.charge(length)?;
    Ok(Constant::floats([length], (0..length).map(|i| start + i as f32 * step).collect()))
}

fn operand_dims<'a>(node: &'a Node) -> Result<&'a [usize], Fault> {
    match node.input(0) {
        Some(Value::Tensor(tensor)) => Ok(tensor.dims()),
        Some(Value::Constant(constant)) => Ok(&constant.dims),
        None => fault!("its operand is missing"),
    }
}
