//! Constants computed from others, element by element and by reduction.

use csdfc_plan::operator::{BinaryFunction, Function, ReduceFunction};
use rten_onnx::onnx::DataType;

use super::index::broadcast_to;
use super::kernels;
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data, count, type_name};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Value};
use crate::import::ops::{binary, element_wise, reduce};
use csdfc_network::operators::broadcast;

/// A function of each element of a constant: of floats a simple one, or else one of csdfc's kernels.
pub(in crate::import) fn function(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let x = node.constant(0, "operand")?;
    let function = element_wise::of_node(node)?;
    if let Data::Ints(values) = &x.data {
        let apply: fn(i64) -> i64 = match function {
            Function::Neg => i64::wrapping_neg,
            Function::Abs => i64::wrapping_abs,
            Function::Sign => i64::signum,
            Function::Relu => |value| value.max(0),
            _ => return fault!("{} of integers is not computed at import", node.operator),
        };
        builder.charge(x.elements())?;
        let values = values.iter().map(|value| apply(*value)).collect();
        return Ok(vec![Constant { stored: x.stored, ..Constant::ints(x.dims.clone(), values) }.into()]);
    }
    let import = |builder: &mut Builder, node: &Node| Ok(vec![element_wise::function(builder, node)?.into()]);
    let Some(apply) = of_element(function) else { return kernels::compute(builder, node, &import) };
    builder.charge(x.elements())?;
    let values = x.to_floats()?.into_iter().map(apply).collect();
    Ok(vec![Constant::floats(x.dims.clone(), values).into()])
}

/// A function of each element that csdfc computes of constants alone.
pub(in crate::import) fn only_of_constants(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let apply: fn(f32) -> f32 = match node.operator {
        "Acos" => f32::acos,
        "Acosh" => f32::acosh,
        "Asin" => f32::asin,
        "Asinh" => f32::asinh,
        "Atan" => f32::atan,
        "Atanh" => f32::atanh,
        "Cosh" => f32::cosh,
        "Sinh" => f32::sinh,
        "Tan" => f32::tan,
        other => return fault!("{other} is no function of each element"),
    };
    let x = node.constant(0, "operand")?;
    builder.charge(x.elements())?;
    Ok(Constant::floats(x.dims.clone(), x.to_floats()?.into_iter().map(apply).collect()))
}

pub(in crate::import) fn clip(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    builder.charge(x.elements())?;
    let [min, max] = element_wise::clip_bounds(node)?;
    let (min, max) = (min.unwrap_or(f32::NEG_INFINITY), max.unwrap_or(f32::INFINITY));
    if let Data::Ints(values) = &x.data {
        let clipped = values.iter().map(|v| (*v).max(min as i64).min(max as i64));
        return Ok(Constant::ints(x.dims.clone(), clipped.collect()));
    }
    Ok(Constant::floats(x.dims.clone(), x.to_floats()?.iter().map(|v| v.max(min).min(max)).collect()))
}

pub(in crate::import) fn binary(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let function = binary::of_node(node)?;
    let mut result = node.constant(0, "operand")?.clone();
    for i in 1..node.inputs.len() {
        let other = node.constant(i, "operand")?;
        let (dims, a, b) = pair(builder, &result, other)?;
        result = if let (Data::Ints(a), Data::Ints(b)) = (&a.data, &b.data) {
            let values = a.iter().zip(b.iter()).map(|(a, b)| of_ints(function, *a, *b));
            Constant::ints(dims, values.collect::<Result<_, _>>()?)
        } else {
            let (a, b) = (a.to_floats()?, b.to_floats()?);
            Constant::floats(dims, a.iter().zip(&b).map(|(a, b)| of_floats(function, *a, *b)).collect())
        };
    }
    Ok(result)
}

pub(in crate::import) fn compare(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let (dims, a, b) = pair(builder, node.constant(0, "operand")?, node.constant(1, "operand")?)?;
    let holds = |order: Option<std::cmp::Ordering>| match node.operator {
        "Equal" => order == Some(Equal),
        "Less" => order == Some(Less),
        "LessOrEqual" => matches!(order, Some(Less | Equal)),
        "Greater" => order == Some(Greater),
        _ => matches!(order, Some(Greater | Equal)),
    };
    let values = if matches!((&a.data, &b.data), (Data::Floats(_), _) | (_, Data::Floats(_))) {
        a.to_floats()?.iter().zip(&b.to_floats()?).map(|(a, b)| holds(a.partial_cmp(b))).collect()
    } else {
        a.to_ints()?.iter().zip(&b.to_ints()?).map(|(a, b)| holds(Some(a.cmp(b)))).collect()
    };
    Ok(Constant::bools(dims, values))
}

/// `Not`, `And`, `Or` and `Xor`.
pub(in crate::import) fn logic(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let truth = |constant: &Constant| -> Result<Vec<bool>, Fault> {
        Ok(constant.to_ints()?.iter().map(|value| *value != 0).collect())
    };
    let x = node.constant(0, "operand")?;
    if node.operator == "Not" {
        return Ok(Constant::bools(x.dims.clone(), truth(x)?.iter().map(|value| !value).collect()));
    }
    let (dims, a, b) = pair(builder, x, node.constant(1, "operand")?)?;
    let both = truth(&a)?.into_iter().zip(truth(&b)?);
    let values = both.map(|(a, b)| match node.operator {
        "And" => a && b,
        "Or" => a || b,
        _ => a != b,
    });
    Ok(Constant::bools(dims, values.collect()))
}

pub(in crate::import) fn cast(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let to = DataType(i32::try_from(node.int("to", 0)?).unwrap_or(0));
    cast_to(builder, node.constant(0, "operand")?, to)
}

/// A constant as one of this type.
pub(in crate::import) fn cast_to(
    builder: &mut Builder,
    x: &Constant,
    to: DataType,
) -> Result<Constant, Fault> {
    let dims = x.dims.clone();
    match to {
        DataType::FLOAT | DataType::DOUBLE | DataType::FLOAT16 | DataType::BFLOAT16 => match x.data {
            Data::Floats(_) => Ok(x.clone()),
            _ => {
                builder.charge(x.elements())?;
                Ok(Constant::floats(dims, x.to_floats()?))
            }
        },
        DataType::BOOL => {
            builder.charge(x.elements())?;
            Ok(Constant::bools(dims, x.to_floats()?.iter().map(|value| *value != 0.0).collect()))
        }
        DataType::INT8
        | DataType::INT16
        | DataType::INT32
        | DataType::INT64
        | DataType::UINT8
        | DataType::UINT16
        | DataType::UINT32
        | DataType::UINT64 => {
            builder.charge(x.elements())?;
            let cast = match &x.data {
                Data::Floats(_) => {
                    Constant::ints(dims, x.to_floats()?.iter().map(|value| *value as i64).collect())
                }
                _ => Constant::ints(dims, x.to_ints()?.into_iter().map(|v| narrowed(v, to)).collect()),
            };
            Ok(Constant { stored: Some(to), ..cast })
        }
        _ => fault!("a constant cannot become {}", type_name(to)),
    }
}

/// An integer in the bits that a type has, as ONNX casts: the upper ones are lost.
fn narrowed(value: i64, to: DataType) -> i64 {
    match to {
        DataType::INT8 => i64::from(value as i8),
        DataType::INT16 => i64::from(value as i16),
        DataType::INT32 => i64::from(value as i32),
        DataType::UINT8 => i64::from(value as u8),
        DataType::UINT16 => i64::from(value as u16),
        DataType::UINT32 => i64::from(value as u32),
        _ => value,
    }
}

/// `ReduceProd` and its kin.
pub(in crate::import) fn reduce(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let function = reduce::of_node(node)?;
    let Some(axes) = reduce::reduced_axes(node, x.dims.len())? else { return Ok(x.clone()) };
    let keep_dims = node.flag("keepdims", true)?;
    builder.charge(x.elements())?;
    let reduced: Vec<usize> =
        x.dims.iter().enumerate().map(|(axis, dim)| if axes.contains(&axis) { 1 } else { *dim }).collect();
    let groups = count(&reduced)?;
    builder.charge(groups)?;
    let mut members: Vec<Vec<f64>> = vec![Vec::new(); groups];
    let exact = match &x.data {
        Data::Ints(values) => values.iter().map(|value| *value as f64).collect(),
        _ => x.to_floats()?.iter().map(|value| f64::from(*value)).collect::<Vec<_>>(),
    };
    for (i, value) in exact.iter().enumerate() {
        let (mut rest, mut group, mut stride) = (i, 0, 1);
        for (dim, kept) in x.dims.iter().zip(&reduced).rev() {
            if *kept != 1 {
                group += rest % dim * stride;
                stride *= dim;
            }
            rest /= dim;
        }
        members[group].push(*value);
    }
    let results = members.iter().map(|group| of_group(&function, group));
    let dims = if keep_dims {
        reduced.clone()
    } else {
        reduced.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, dim)| *dim).collect()
    };
    let results: Vec<f64> = results.collect();
    Ok(match x.data {
        Data::Ints(_) => Constant::ints(dims, results.iter().map(|value| *value as i64).collect()),
        _ => Constant::floats(dims, results.iter().map(|value| *value as f32).collect()),
    })
}

/// Two constants broadcast to each other.
fn pair(
    builder: &mut Builder,
    a: &Constant,
    b: &Constant,
) -> Result<(Vec<usize>, Constant, Constant), Fault> {
    let dims = broadcast(&a.dims, &b.dims)?;
    let (a, b) = (broadcast_to(builder, a, &dims)?, broadcast_to(builder, b, &dims)?);
    builder.charge(a.elements())?;
    Ok((dims, a, b))
}

fn of_ints(function: BinaryFunction, a: i64, b: i64) -> Result<i64, Fault> {
    let result = match function {
        BinaryFunction::Add => a.checked_add(b),
        BinaryFunction::Sub => a.checked_sub(b),
        BinaryFunction::Mul => a.checked_mul(b),
        BinaryFunction::Div => a.checked_div(b),
        BinaryFunction::Max => Some(a.max(b)),
        BinaryFunction::Min => Some(a.min(b)),
        BinaryFunction::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        BinaryFunction::Mod => a.checked_rem(b).map(|left| {
            let is_other_sign = left != 0 && (left < 0) != (b < 0);
            if is_other_sign { left + b } else { left }
        }),
        BinaryFunction::Fmod => a.checked_rem(b),
        BinaryFunction::Equal => Some(i64::from(a == b)),
        BinaryFunction::Greater => Some(i64::from(a > b)),
        BinaryFunction::GreaterOrEqual => Some(i64::from(a >= b)),
    };
    result.map_or_else(|| fault!("the result for {a} and {b} is undefined or exceeds 64 bits"), Ok)
}

fn of_floats(function: BinaryFunction, a: f32, b: f32) -> f32 {
    match function {
        BinaryFunction::Add => a + b,
        BinaryFunction::Sub => a - b,
        BinaryFunction::Mul => a * b,
        BinaryFunction::Div => a / b,
        BinaryFunction::Max => a.max(b),
        BinaryFunction::Min => a.min(b),
        BinaryFunction::Pow => a.powf(b),
        BinaryFunction::Mod => {
            let left = a % b;
            let is_other_sign = left != 0.0 && (left < 0.0) != (b < 0.0);
            if is_other_sign { left + b } else { left }
        }
        BinaryFunction::Fmod => a % b,
        BinaryFunction::Equal => f32::from(a == b),
        BinaryFunction::Greater => f32::from(a > b),
        BinaryFunction::GreaterOrEqual => f32::from(a >= b),
    }
}

fn of_group(function: &ReduceFunction, group: &[f64]) -> f64 {
    let values = || group.iter().copied();
    let greatest = || values().fold(f64::NEG_INFINITY, f64::max);
    match function {
        ReduceFunction::Sum => values().sum(),
        ReduceFunction::Mean => values().sum::<f64>() / group.len() as f64,
        ReduceFunction::Max => greatest(),
        ReduceFunction::Min => values().fold(f64::INFINITY, f64::min),
        ReduceFunction::Prod => values().product(),
        ReduceFunction::L1 => values().map(f64::abs).sum(),
        ReduceFunction::L2 => values().map(|v| v * v).sum::<f64>().sqrt(),
        ReduceFunction::SumSquare => values().map(|v| v * v).sum(),
        ReduceFunction::LogSum => values().sum::<f64>().ln(),
        ReduceFunction::LogSumExp => {
            let greatest = greatest();
            greatest + values().map(|v| (v - greatest).exp()).sum::<f64>().ln()
        }
        ReduceFunction::Lp { p } => {
            let p = *p as f64;
            values().map(|v| v.abs().powf(p)).sum::<f64>().powf(1.0 / p)
        }
    }
}

/// A function of which import makes no layer, if it is simple.
fn of_element(function: Function) -> Option<impl Fn(f32) -> f32> {
    let apply: Box<dyn Fn(f32) -> f32> = match function {
        Function::Relu => Box::new(|x: f32| x.max(0.0)),
        Function::LeakyRelu { alpha } => Box::new(move |x| if x < 0.0 { alpha * x } else { x }),
        Function::Sigmoid => Box::new(|x: f32| 1.0 / (1.0 + (-x).exp())),
        Function::HardSigmoid { alpha, beta } => Box::new(move |x| (alpha * x + beta).clamp(0.0, 1.0)),
        Function::Tanh => Box::new(f32::tanh),
        // Where eˣ overflows, ln(1 + eˣ) is x.
        Function::Softplus => Box::new(|x: f32| x.max(0.0) + (-x.abs()).exp().ln_1p()),
        Function::Sqrt => Box::new(f32::sqrt),
        Function::Exp => Box::new(f32::exp),
        Function::Log => Box::new(f32::ln),
        Function::Abs => Box::new(f32::abs),
        Function::Neg => Box::new(|x: f32| -x),
        Function::Sign => Box::new(|x: f32| if x == 0.0 || x.is_nan() { x } else { x.signum() }),
        Function::Sin => Box::new(f32::sin),
        Function::Cos => Box::new(f32::cos),
        Function::Reciprocal => Box::new(|x: f32| 1.0 / x),
        Function::Floor => Box::new(f32::floor),
        Function::Ceil => Box::new(f32::ceil),
        Function::Round => Box::new(f32::round_ties_even),
        _ => return None,
    };
    Some(apply)
}
