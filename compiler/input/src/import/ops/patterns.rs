//! Operators that become others with a constant pattern: a triangle of ones, or the numbers of places.

use rten_onnx::onnx::DataType;

use super::parts::{dims, number, part, reshaped, tensor, transposed};
use super::{logic, reduce};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data};
use crate::import::error::{Fault, fault};
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
