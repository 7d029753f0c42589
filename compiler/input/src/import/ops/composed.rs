//! Operators that become several others: sums along a dimension, triangles, classes as vectors, rotary positions, and functions
//! of functions.

use rten_onnx::onnx::DataType;

use super::parts::{cut, dims, number, part, reshaped, tensor, transposed};
use super::{layout, logic, reduce};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data};
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{Node, Tensor, Value, axis};

/// Longest dimension along which elements are summed up: the sums are a product with a matrix of its square.
const MAX_SUMMED: usize = 1024;

/// `CumSum`: a product with a triangle of ones.
pub(super) fn cumulative_sum(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let (rank, integers) = (x.rank(), logic::whole_numbers(builder, x));
    let along = axis(node.constant(1, "axis")?.scalar_int()?, rank)?;
    let count = x.dims()[along];
    if count > MAX_SUMMED {
        return fault!("it sums up {count} elements; csdfc sums up at most {MAX_SUMMED}");
    }
    builder.charge(count * count)?;
    let (exclusive, reverse) = (node.flag("exclusive", false)?, node.flag("reverse", false)?);
    let counts = |at: usize| {
        let [from, to] = if reverse { [at % count, at / count] } else { [at / count, at % count] };
        f32::from(u8::from(from < to || (from == to && !exclusive)))
    };
    let triangle = Constant::floats([count; 2], (0..count * count).map(counts).collect());
    let mut perm: Vec<usize> = (0..rank).collect();
    perm.swap(along, rank - 1);
    let x = logic::numbers(builder, node, 0)?;
    let last = transposed(builder, node, &x, perm.clone())?;
    let sums = part(builder, node, "MatMul", [last, triangle.into()])?;
    let sums = tensor(transposed(builder, node, &sums, perm)?)?;
    Ok(Tensor { integers, ..sums })
}

/// `Trilu`: zeros on one side of a diagonal.
pub(super) fn triangle(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let &[.., rows, columns] = x.dims() else { return fault!("its operand is {}", x.operand.shape) };
    let integers = logic::whole_numbers(builder, x);
    let diagonal = node.optional(1, "diagonal")?.map_or(Ok(0), Constant::scalar_int)?;
    let upper = node.flag("upper", true)?;
    let size = rows.saturating_mul(columns);
    builder.charge(size)?;
    let stays = |at: usize| {
        let ahead = (at % columns) as i64 - (at / columns) as i64;
        if upper { ahead >= diagonal } else { ahead <= diagonal }
    };
    let stays = Constant::bools([rows, columns], (0..size).map(stays).collect());
    let x = logic::numbers(builder, node, 0)?;
    let made = tensor(part(builder, node, "Where", [stays.into(), x, number(0.0)])?)?;
    Ok(Tensor { integers, ..made })
}

/// `OneHot`: along a new dimension, whether each place is the index. Negative indices count from the end.
pub(super) fn one_hot(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let values = node.constant(2, "values")?;
    let &[off, on] = values.to_floats()?.as_slice() else {
        return fault!("it has {} values", values.elements());
    };
    let depth = node.constant(1, "depth")?.scalar()?;
    if !(1.0..=f32::from(u16::MAX)).contains(&depth) {
        return fault!("its depth is {depth}");
    }
    let depth = depth as usize;
    let places = logic::numbers(builder, node, 0)?;
    let along = axis(node.int("axis", -1)?, dims(&places).len() + 1)?;
    let mut seen = dims(&places).to_vec();
    seen.insert(along, 1);
    let places = reshaped(builder, node, &places, seen)?;
    let [from_start, from_end] = [0, depth].map(|before| {
        let numbers = (0..depth).map(|place| place as f32 - before as f32).collect();
        is_at(builder, node, &places, along, numbers)
    });
    let hot = part(builder, node, "Or", [from_start?, from_end?])?;
    let made = tensor(part(builder, node, "Where", [hot, number(on), number(off)])?)?;
    let integers = match values.data {
        Data::Floats(_) => None,
        Data::Ints(_) => Some(values.stored.unwrap_or(DataType::INT64)),
        Data::Bools(_) => Some(DataType::BOOL),
    };
    Ok(Tensor { integers, ..made })
}

/// `Hardmax`: 1 at the first of the greatest elements along a dimension, and 0 elsewhere.
pub(super) fn hard_max(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?;
    let own = x.dims().to_vec();
    let since_13 = node.opset >= 13;
    let along = axis(node.int("axis", if since_13 { -1 } else { 1 })?, own.len())?;
    // Before opset 13, all dimensions from the axis on are one.
    let (seen, along) = match since_13 {
        true => (own.clone(), along),
        false => (vec![own[..along].iter().product(), own[along..].iter().product()], 1),
    };
    let count = seen[along];
    let x = builder.reshape(node, x, seen)?;
    let greatest = reduce::greatest(builder, node, &x, along)?;
    let greatest = logic::as_floats(builder, &greatest.into())?;
    let hot = is_at(builder, node, &greatest, along, (0..count).map(|place| place as f32).collect())?;
    let hot = tensor(logic::as_floats(builder, &hot)?)?;
    builder.reshape(node, &hot, own)
}

/// Whether each place is one of these numbers, which lie along a dimension.
fn is_at(
    builder: &mut Builder,
    node: &Node,
    places: &Value,
    along: usize,
    numbers: Vec<f32>,
) -> Result<Value, Fault> {
    let mut seen = vec![1; dims(places).len()];
    seen[along] = numbers.len();
    part(builder, node, "Equal", [places.clone(), Constant::floats(seen, numbers).into()])
}

/// `MeanVarianceNormalization`: mean 0 and variance 1 over some dimensions.
pub(super) fn mean_variance(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    const EPSILON: f32 = 1e-9;
    let x = Value::from(node.tensor(0)?.clone());
    let axes = node.ints("axes")?.unwrap_or(&[0, 2, 3]);
    let axes = Value::from(Constant::ints([axes.len()], axes.to_vec()));
    let mean = part(builder, node, "ReduceMean", [x.clone(), axes.clone()])?;
    let centred = part(builder, node, "Sub", [x, mean])?;
    let squares = part(builder, node, "Mul", [centred.clone(), centred.clone()])?;
    let variance = part(builder, node, "ReduceMean", [squares, axes])?;
    let deviation = part(builder, node, "Sqrt", [variance])?;
    let deviation = part(builder, node, "Add", [deviation, number(EPSILON)])?;
    tensor(part(builder, node, "Div", [centred, deviation])?)
}

/// `Tan`: the sine over the cosine.
pub(super) fn tangent(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let sine = part(builder, node, "Sin", [x.clone()])?;
    let cosine = part(builder, node, "Cos", [x])?;
    tensor(part(builder, node, "Div", [sine, cosine])?)
}

/// `Cosh`: the mean of eˣ and e⁻ˣ.
pub(super) fn hyperbolic_cosine(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let up = part(builder, node, "Exp", [x.clone()])?;
    let down = part(builder, node, "Neg", [x])?;
    let down = part(builder, node, "Exp", [down])?;
    let sum = part(builder, node, "Add", [up, down])?;
    tensor(part(builder, node, "Mul", [sum, number(0.5)])?)
}

/// `Sinh`: tanh x · cosh x, which is exact near 0, where a difference of powers is not.
pub(super) fn hyperbolic_sine(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = Value::from(node.tensor(0)?.clone());
    let cosine = hyperbolic_cosine(builder, node)?;
    let tangent = part(builder, node, "Tanh", [x])?;
    tensor(part(builder, node, "Mul", [cosine.into(), tangent])?)
}

/// `RotaryEmbedding`: pairs of elements of each head, turned by the angles of their position.
pub(super) fn rotary_embedding(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let x = node.tensor(0)?.clone();
    let own = x.dims().to_vec();
    let is_line = own.len() == 3;
    let x = match own[..] {
        [batch, rows, all] => {
            let heads = usize::try_from(node.int("num_heads", 0)?).unwrap_or(0);
            if heads == 0 || all % heads != 0 {
                return fault!("its operand has {all} elements for {heads} heads");
            }
            let x = builder.reshape(node, &x, vec![batch, rows, heads, all / heads])?;
            transposed(builder, node, &x.into(), vec![0, 2, 1, 3])?
        }
        [_, _, _, _] => x.into(),
        _ => return fault!("its operand has dimensions {own:?}, not three or four"),
    };
    let &[batch, heads, rows, size] = dims(&x) else { return fault!("its operand has no heads") };
    let turned = match usize::try_from(node.int("rotary_embedding_dim", 0)?) {
        Ok(0) => size,
        Ok(turned) if turned <= size && turned % 2 == 0 => turned,
        _ => return fault!("it cannot turn these elements of {size}"),
    };
    let half = turned / 2;
    let first = cut(builder, node, &x, 3, [0, turned])?;
    let [a, b] = match node.flag("interleaved", false)? {
        true => [0, 1].map(|start| every_second(builder, node, &first, start)),
        false => [[0, half], [half, turned]].map(|range| cut(builder, node, &first, 3, range)),
    };
    let (a, b) = (a?, b?);
    let mut angles = |index: usize| {
        let Some(table) = node.input(index).cloned() else { return fault!("operand {index} is missing") };
        let of_rows = match node.input(3).cloned() {
            Some(positions) => part(builder, node, "Gather", [table, positions])?,
            None => table,
        };
        let count = dims(&of_rows).first().copied().unwrap_or(1);
        reshaped(builder, node, &of_rows, vec![count, 1, rows, half])
    };
    let (cosines, sines) = (angles(1)?, angles(2)?);
    let mut product = |x: &Value, by: &Value| part(builder, node, "Mul", [x.clone(), by.clone()]);
    let [along_a, across_a, across_b, along_b] =
        [product(&a, &cosines)?, product(&b, &sines)?, product(&a, &sines)?, product(&b, &cosines)?];
    let a = tensor(part(builder, node, "Sub", [along_a, across_a])?)?;
    let b = tensor(part(builder, node, "Add", [across_b, along_b])?)?;
    let mut made = match node.flag("interleaved", false)? {
        true => {
            let pairs = [a, b].map(|x| builder.reshape(node, &x, vec![batch, heads, rows, half, 1]));
            let [a, b] = pairs;
            let joined = layout::joined(builder, node, 4, &[a?, b?])?;
            builder.reshape(node, &joined, vec![batch, heads, rows, turned])?
        }
        false => layout::joined(builder, node, 3, &[a, b])?,
    };
    if turned < size {
        let rest = tensor(cut(builder, node, &x, 3, [turned, size])?)?;
        made = layout::joined(builder, node, 3, &[made, rest])?;
    }
    match is_line {
        true => {
            let made = tensor(transposed(builder, node, &made.into(), vec![0, 2, 1, 3])?)?;
            builder.reshape(node, &made, own)
        }
        false => Ok(made),
    }
}

/// Every second element of the last of four dimensions.
fn every_second(builder: &mut Builder, node: &Node, x: &Value, start: usize) -> Result<Value, Fault> {
    let x = tensor(x.clone())?;
    let mut ranges = Range::whole(x.dims());
    let length = (x.dims()[3] - start).div_ceil(2);
    ranges[3] = Range { start, step: 2, length };
    Ok(layout::take(builder, node, &x, &ranges)?.into())
}
