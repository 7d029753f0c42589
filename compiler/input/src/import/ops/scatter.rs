//! `ScatterND` and `ScatterElements`, at places that are constants: a tensor cut and joined again with the updates of a slice
//! between, or each element of the output made of one of the operand's and of its updates.

use std::collections::BTreeSet;

use super::gather::{as_tensor, first_element, place_of, places, taken};
use super::layout::{joined, take, tensor_of};
use super::logic;
use super::parts::{dims, part, reshaped, tensor};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, count};
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{Node, Tensor, Value, axis};

/// The most updates of one element.
const MAX_UPDATES: usize = 32;

/// `ScatterElements`. Of several updates of one element, the last counts, or all if they are combined.
pub(super) fn scatter_elements(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let indices = node.constant(1, "indices")?;
    let own = dims_of(node, 0)?;
    let along = axis(node.int("axis", 0)?, own.len())?;
    if dims_of(node, 2)? != indices.dims {
        return fault!("it has indices {:?} for updates {:?}", indices.dims, dims_of(node, 2)?);
    }
    let of_places = updates_of_places(builder, &own, indices, along)?;
    updated(builder, node, &of_places)
}

/// `ScatterND`.
pub(super) fn scatter_nd(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let indices = node.constant(1, "indices")?;
    let (own, updates) = (dims_of(node, 0)?, dims_of(node, 2)?);
    if node.text("reduction", "none")? == "none"
        && let Some(lists) = grid(indices, &own)?
    {
        return into_slice(builder, node, &lists);
    }
    let Some((&depth, outer)) = indices.dims.split_last() else { return fault!("its indices are a scalar") };
    if depth == 0 || depth > own.len() || updates != [outer, &own[depth..]].concat() {
        return fault!("it has indices {:?} and updates {updates:?} of {own:?}", indices.dims);
    }
    let inner: usize = own[depth..].iter().product();
    let elements: usize = own.iter().product();
    builder.charge(elements.saturating_add(updates.iter().product()))?;
    let mut of_places = vec![Vec::new(); elements];
    for (update, at) in indices.to_ints()?.chunks_exact(depth).enumerate() {
        let mut place = 0;
        for (axis, index) in at.iter().enumerate() {
            place = place * own[axis] + place_of(*index, axis, own[axis])?;
        }
        (0..inner).for_each(|i| of_places[place * inner + i].push(update * inner + i));
    }
    updated(builder, node, &of_places)
}

/// `ScatterND` at places that are a grid: the tensor is cut at these indices of each of its first dimensions, and joined again
/// with the updates between.
fn into_slice(builder: &mut Builder, node: &Node, lists: &[Vec<usize>]) -> Result<Tensor, Fault> {
    let (x, updates) = match (logic::numbers(builder, node, 0)?, logic::numbers(builder, node, 2)?) {
        (Value::Tensor(x), Value::Tensor(updates)) => (x, updates),
        (Value::Tensor(x), Value::Constant(updates)) => {
            let line = Constant { dims: vec![updates.elements()], ..updates };
            let one = first_element(builder, node, &x)?;
            (x, tensor_of(builder, node, &one, &line)?)
        }
        (Value::Constant(x), Value::Tensor(updates)) => {
            let one = first_element(builder, node, &updates)?;
            let one = builder.reshape(node, &one, vec![1; x.dims.len()])?;
            (tensor_of(builder, node, &one, &x)?, updates)
        }
        (Value::Constant(_), Value::Constant(_)) => return fault!("all its operands are constants"),
    };
    let mut dims: Vec<usize> = lists.iter().map(Vec::len).collect();
    dims.extend(&x.dims()[lists.len()..]);
    let updates = builder.reshape(node, &updates, dims)?;
    replaced(builder, node, &x, &updates, lists, 0)
}

/// The tensor with `updates` at the places where the index of each dimension from `axis` on is in the list of that dimension.
fn replaced(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    updates: &Tensor,
    lists: &[Vec<usize>],
    axis: usize,
) -> Result<Tensor, Fault> {
    let is_whole = |axis: usize| lists[axis].iter().copied().eq(0..x.dims()[axis]);
    let Some(axis) = (axis..lists.len()).find(|axis| !is_whole(*axis)) else { return Ok(updates.clone()) };
    // The part that is replaced, in the order of the tensor.
    let mut order: Vec<usize> = (0..lists[axis].len()).collect();
    order.sort_unstable_by_key(|place| lists[axis][*place]);
    let sorted: Vec<usize> = order.iter().map(|place| lists[axis][*place]).collect();
    let updates = taken(builder, node, updates, axis, &order)?;
    let is_last = (axis + 1..lists.len()).all(is_whole);
    let inner = match is_last {
        true => updates,
        false => {
            let part = taken(builder, node, x, axis, &sorted)?;
            replaced(builder, node, &part, &updates, lists, axis + 1)?
        }
    };
    let mut parts = Vec::new();
    let (mut at, mut used) = (0, 0);
    while at < x.dims()[axis] {
        let run = sorted[used..].iter().enumerate().take_while(|(i, place)| **place == at + i).count();
        let next = sorted.get(used).copied().unwrap_or(x.dims()[axis]);
        let (from, start, length) = if run > 0 { (&inner, used, run) } else { (x, at, next - at) };
        let mut ranges = Range::whole(from.dims());
        ranges[axis] = Range { start, step: 1, length };
        parts.push(take(builder, node, from, &ranges)?);
        (at, used) = (at + length, used + run);
    }
    joined(builder, node, axis, &parts)
}

/// The lists of indices whose product the places are, in row-major order. `None` if they are no such product.
fn grid(indices: &Constant, dims: &[usize]) -> Result<Option<Vec<Vec<usize>>>, Fault> {
    let &[ref outer @ .., depth] = indices.dims.as_slice() else { return fault!("its indices are a scalar") };
    if depth > dims.len() || indices.elements() == 0 {
        return fault!("its indices are {:?} in {dims:?}", indices.dims);
    }
    let all = indices.to_ints()?;
    let (mut lists, mut repeats) = (Vec::new(), count(outer)?);
    for (axis, size) in dims.iter().enumerate().take(depth) {
        let column: Vec<i64> = all.iter().skip(axis).step_by(depth).copied().collect();
        let column = places(&column, axis, *size)?;
        let mut seen = BTreeSet::new();
        let mut list = Vec::new();
        for place in column {
            if seen.insert(place) {
                list.push(place);
            }
        }
        repeats /= list.len().max(1);
        lists.push((list, repeats));
    }
    let is_place = |(i, tuple): (usize, &[i64])| {
        let each = lists.iter().zip(tuple).zip(dims);
        each.into_iter().all(|(((list, repeats), index), size)| {
            let place = if *index < 0 { index + *size as i64 } else { *index };
            *repeats > 0 && list[i / repeats % list.len()] as i64 == place
        })
    };
    let product: usize = lists.iter().map(|(list, _)| list.len()).product();
    let is_grid = product == count(outer)? && all.chunks_exact(depth).enumerate().all(is_place);
    Ok(is_grid.then(|| lists.into_iter().map(|(list, _)| list).collect()))
}

/// The dimensions of operand `index`.
fn dims_of(node: &Node, index: usize) -> Result<Vec<usize>, Fault> {
    node.input(index).map_or_else(|| fault!("operand {index} is missing"), |x| Ok(dims(x).to_vec()))
}

/// Operand 0 with updates, which are operand 2: for each element, those of it in their order.
fn updated(builder: &mut Builder, node: &Node, of_places: &[Vec<usize>]) -> Result<Tensor, Fault> {
    let some = match (node.input(0), node.input(2)) {
        (Some(Value::Tensor(x)), _) | (_, Some(Value::Tensor(x))) => x.clone(),
        _ => return fault!("an operand is missing"),
    };
    let integers = logic::whole_numbers(builder, &some);
    let some = builder.without_indices(&some)?.as_floats();
    let combined = match node.text("reduction", "none")? {
        "none" => None,
        "add" => Some(("Add", 0.0)),
        "mul" => Some(("Mul", 1.0)),
        "max" => Some(("Max", f32::NEG_INFINITY)),
        "min" => Some(("Min", f32::INFINITY)),
        other => return fault!("reduction {other} is unknown"),
    };
    let mut flat = |index: usize| -> Result<Tensor, Fault> {
        let value = logic::numbers(builder, node, index)?;
        let elements = dims(&value).iter().product();
        match reshaped(builder, node, &value, vec![elements])? {
            Value::Tensor(line) => Ok(line),
            Value::Constant(line) => Ok(as_tensor(builder, node, &some, &line)?.as_floats()),
        }
    };
    let (line, updates) = (flat(0)?, flat(2)?);
    let picked = |builder: &mut Builder, from: &Tensor, at: Vec<i64>| {
        let at = Constant::ints([at.len()], at);
        part(builder, node, "GatherElements", [from.clone().into(), at.into()])
    };
    let made = match combined {
        None => {
            let count = of_places.len();
            let last =
                |(place, of): (usize, &Vec<usize>)| of.last().map_or(place, |last| count + last) as i64;
            let at = of_places.iter().enumerate().map(last).collect();
            let all = joined(builder, node, 0, &[line, updates])?;
            picked(builder, &all, at)?
        }
        Some((operator, neutral)) => {
            let neutral = as_tensor(builder, node, &some, &Constant::floats([1], vec![neutral]))?;
            let none = updates.dims()[0];
            let all = joined(builder, node, 0, &[updates, neutral])?;
            let most = of_places.iter().map(Vec::len).max().unwrap_or(0);
            if most > MAX_UPDATES {
                return fault!("{most} updates are of one element; csdfc combines at most {MAX_UPDATES}");
            }
            let mut made = Value::from(line);
            for round in 0..most {
                let at = of_places.iter().map(|of| of.get(round).map_or(none, |update| *update) as i64);
                let added = picked(builder, &all, at.collect())?;
                made = part(builder, node, operator, [made, added])?;
            }
            made
        }
    };
    let made = tensor(reshaped(builder, node, &made, dims_of(node, 0)?)?)?;
    Ok(Tensor { integers, ..made })
}

/// For each element of a tensor of these dimensions, the updates of it, in their order.
fn updates_of_places(
    builder: &mut Builder,
    own: &[usize],
    indices: &Constant,
    along: usize,
) -> Result<Vec<Vec<usize>>, Fault> {
    let fits = |(axis, (size, limit)): (usize, (&usize, &usize))| axis == along || size <= limit;
    if indices.dims.len() != own.len() || !indices.dims.iter().zip(own).enumerate().all(fits) {
        return fault!("its indices {:?} do not fit {own:?}", indices.dims);
    }
    let elements: usize = own.iter().product();
    builder.charge(elements.saturating_add(indices.elements()))?;
    let mut of_places = vec![Vec::new(); elements];
    for (update, &index) in indices.to_ints()?.iter().enumerate() {
        let index = place_of(index, along, own[along])?;
        let (mut rest, mut place, mut stride) = (update, 0, 1);
        for axis in (0..own.len()).rev() {
            let at = rest % indices.dims[axis];
            rest /= indices.dims[axis];
            place += stride * if axis == along { index } else { at };
            stride *= own[axis];
        }
        of_places[place].push(update);
    }
    Ok(of_places)
}
