//! Elements at indices, and elements put at indices.

use std::collections::BTreeSet;

use csdfc_plan::operator::{GatherElements, Operator};

use super::layout::{MAX_PARTS, joined, take, tensor_of};
use super::parts::{cut, dims, part, reshaped};
use super::{logic, reshape};
use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data, count};
use crate::import::error::{Fault, fault};
use crate::import::fold::index::Range;
use crate::import::node::{self, Node, Tensor, Value, axis, with_operands};
use csdfc_network::operators;
use rten_onnx::onnx::DataType;

/// `Gather`. By constant indices, it is a slice for each run of indices at equal distances.
pub(super) fn gather(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    match (node.input(0), node.input(1)) {
        (Some(Value::Tensor(_)), Some(Value::Tensor(_))) => return by_tensor(builder, node),
        (Some(Value::Constant(table)), Some(Value::Tensor(indices))) if is_table(table) => {
            let table = as_tensor(builder, node, indices, table)?;
            let inputs = vec![Some(table.into()), Some(indices.clone().into())];
            return by_tensor(builder, &Node { inputs, ..*node });
        }
        _ => {}
    }
    let indices = node.constant(1, "indices").map_err(|fault| fault.help(LOOKUP_HELP))?;
    let x = node.tensor(0)?;
    let axis = axis(node.int("axis", 0)?, x.rank())?;
    let places = places(&indices.to_ints()?, axis, x.dims()[axis])?;
    let taken = match repetition(&places, x.dims()[axis]) {
        Some(times) => reshape::repeat(builder, node, x, axis, times)?,
        None => taken(builder, node, x, axis, &places)?,
    };
    let mut dims = taken.dims().to_vec();
    dims.splice(axis..=axis, indices.dims.iter().copied());
    if dims == taken.dims() { Ok(taken) } else { builder.reshape(node, &taken, dims) }
}

/// The number n for which the indices are n times 0, then n times 1, and so on below `size`, if there is one.
fn repetition(indices: &[usize], size: usize) -> Option<usize> {
    let times = indices.len() / size;
    let are_so = times > 1 && indices.len() == times * size;
    (are_so && indices.iter().enumerate().all(|(at, index)| *index == at / times)).then_some(times)
}

/// `Gather` by indices that the network computes: they are repeated along the other dimensions.
fn by_tensor(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    let indices = node.tensor(1)?;
    let x = node.tensor(0)?;
    let axis = axis(node.int("axis", 0)?, x.rank())?;
    let mut dims = vec![1; x.rank()];
    dims[axis] = indices.operand.shape.elements();
    let line = builder.reshape(node, indices, dims)?;
    let mut wanted: Vec<i64> = x.dims().iter().map(|dim| *dim as i64).collect();
    wanted[axis] = 1;
    let shape = Constant::ints([wanted.len()], wanted);
    let repeated =
        reshape::expand(builder, &with_operands(node, "Expand", [Some(line.into())], Some(shape)))?;
    let found = elements(builder, node, x, &repeated, axis)?;
    let mut dims = x.dims().to_vec();
    dims.splice(axis..=axis, indices.dims().iter().copied());
    if dims == found.dims() { Ok(found) } else { builder.reshape(node, &found, dims) }
}

/// `GatherElements`.
pub(super) fn gather_elements(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    match (node.input(0), node.input(1)) {
        (Some(Value::Tensor(x)), Some(Value::Constant(indices))) => {
            let axis = axis(node.int("axis", 0)?, x.rank())?;
            let numbers = Constant::floats(indices.dims.clone(), indices.to_floats()?);
            let indices = tensor_of(builder, node, x, &numbers)?;
            elements(builder, node, x, &indices, axis)
        }
        (Some(Value::Constant(table)), Some(Value::Tensor(indices))) if is_table(table) => {
            let axis = axis(node.int("axis", 0)?, table.dims.len())?;
            let table = as_tensor(builder, node, indices, table)?;
            elements(builder, node, &table, indices, axis)
        }
        _ => {
            let indices = node.tensor(1)?;
            let x = node.tensor(0).map_err(|fault| fault.help(LOOKUP_HELP))?;
            let axis = axis(node.int("axis", 0)?, x.rank())?;
            elements(builder, node, x, indices, axis)
        }
    }
}

/// `GatherND`: a `Gather` from the tensor with the dimensions that are indexed, and those of batches, as one.
pub(super) fn gather_nd(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let (Some(x), Some(indices)) = (node.input(0).cloned(), node.input(1).cloned()) else {
        return fault!("an operand is missing");
    };
    let (from, own) = (dims(&x).to_vec(), dims(&indices).to_vec());
    let batches = usize::try_from(node.int("batch_dims", 0)?).unwrap_or(usize::MAX);
    let Some((&depth, outer)) = own.split_last() else { return fault!("its indices are a scalar") };
    let indexed = batches.saturating_add(depth);
    if depth == 0 || indexed > from.len() || batches > outer.len() || outer[..batches] != from[..batches] {
        return fault!("its indices are {own:?} in {from:?}, of which {batches} dimensions are batches");
    }
    let places = if outer.is_empty() { vec![1] } else { outer.to_vec() };
    let number = |value: usize| Value::from(Constant::ints([], vec![value as i64]));
    let mut place: Option<Value> = None;
    if batches > 0 {
        let count = count(&from[..batches])?;
        let each = (0..outer.len()).map(|axis| if axis < batches { from[axis] } else { 1 });
        place = Some(Constant::ints(each.collect::<Vec<_>>(), (0..count as i64).collect()).into());
    }
    for (at, size) in from[batches..indexed].iter().enumerate() {
        let index = cut(builder, node, &indices, outer.len(), [at, at + 1])?;
        let index = reshaped(builder, node, &index, places.clone())?;
        let is_below = part(builder, node, "Less", [index.clone(), number(0)])?;
        let from_end = part(builder, node, "Add", [index.clone(), number(*size)])?;
        let index = part(builder, node, "Where", [is_below, from_end, index])?;
        place = Some(match place {
            None => index,
            Some(place) => {
                let place = part(builder, node, "Mul", [place, number(*size)])?;
                part(builder, node, "Add", [place, index])?
            }
        });
    }
    let Some(place) = place else { return fault!("it indexes nothing") };
    let (merged, inner) = from.split_at(indexed);
    let parts = reshaped(builder, node, &x, [&[count(merged)?][..], inner].concat())?;
    let found = part(builder, node, "Gather", [parts, place])?;
    Ok(vec![reshaped(builder, node, &found, [outer, inner].concat())?])
}

/// The most elements of a constant that becomes a tensor, since the network computes the indices by which it is looked up.
const MAX_TABLE: usize = 1 << 18;

/// Whether a constant may become such a tensor: floats hold its elements.
fn is_table(constant: &Constant) -> bool {
    let is_held = match &constant.data {
        Data::Ints(values) => values.iter().all(|value| value.unsigned_abs() <= 1 << 24),
        Data::Floats(_) | Data::Bools(_) => true,
    };
    is_held && (1..=MAX_TABLE).contains(&constant.elements())
}

/// A constant as a tensor, made from an element of some tensor.
fn as_tensor(
    builder: &mut Builder,
    node: &Node,
    some: &Tensor,
    constant: &Constant,
) -> Result<Tensor, Fault> {
    let floats = builder.without_indices(some)?.as_floats();
    let one = first_element(builder, node, &floats)?;
    let one = builder.reshape(node, &one, vec![1; constant.dims.len()])?;
    let numbers = Constant::floats(constant.dims.clone(), constant.to_floats()?);
    let made = tensor_of(builder, node, &one, &numbers)?;
    Ok(match constant.data {
        Data::Floats(_) => made,
        Data::Ints(_) => made.as_integers(constant.stored.unwrap_or(DataType::INT64)),
        Data::Bools(_) => made.as_integers(DataType::BOOL),
    })
}

/// The help for indices that are not known at import.
const LOOKUP_HELP: &str = "csdfc looks nothing up by indices that are known only when the network runs: \
     cut the model behind this node (onnx.utils.extract_model), and look up what it reads before the run";

fn elements(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    indices: &Tensor,
    axis: usize,
) -> Result<Tensor, Fault> {
    let [x, indices] = [x, indices].map(|tensor| builder.without_indices(tensor));
    let (x, indices) = (x?, indices?);
    let operator = Operator::GatherElements(GatherElements { axis });
    let found = builder.layer(node, operator, &[&x.as_floats(), &indices.as_floats()], Vec::new())?;
    Ok(Tensor { integers: x.integers, ..found })
}

/// `ScatterND` at constant places that are a grid: a list of indices for each of the first dimensions, in any of which the
/// tensor is cut at these indices and joined again with the updates between.
pub(super) fn scatter_nd(builder: &mut Builder, node: &Node) -> Result<Tensor, Fault> {
    match node.text("reduction", "none")? {
        "none" => {}
        other => return fault!("reduction {other} is not supported"),
    }
    let indices = node.constant(1, "indices")?;
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
    let lists = grid(indices, x.dims())?;
    let mut dims: Vec<usize> = lists.iter().map(Vec::len).collect();
    dims.extend(&x.dims()[lists.len()..]);
    let updates = builder.reshape(node, &updates, dims)?;
    replaced(builder, node, &x, &updates, &lists, 0)
}

/// The first element of a tensor, as a tensor of one dimension.
fn first_element(builder: &mut Builder, node: &Node, x: &Tensor) -> Result<Tensor, Fault> {
    let one = take(builder, node, x, &vec![Range { start: 0, step: 1, length: 1 }; x.rank()])?;
    builder.reshape(node, &one, vec![1])
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

/// The lists of indices whose product the places are, in row-major order.
fn grid(indices: &Constant, dims: &[usize]) -> Result<Vec<Vec<usize>>, Fault> {
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
    if product != count(outer)? || !all.chunks_exact(depth).enumerate().all(is_place) {
        return Err(Fault::new("the places that it writes to are no grid")
            .help("csdfc takes a ScatterND that assigns to a slice, with indices known at export"));
    }
    Ok(lists.into_iter().map(|(list, _)| list).collect())
}

/// Indices counted from 0, each within a dimension of this size.
fn places(indices: &[i64], axis: usize, size: usize) -> Result<Vec<usize>, Fault> {
    let outside =
        |index: &i64| Fault::new(format!("index {index} is out of range: dimension {axis} is {size}"));
    indices.iter().map(|index| node::axis(*index, size).map_err(|_| outside(index))).collect()
}

/// The parts of a tensor at these places along a dimension.
pub(in crate::import) fn taken(
    builder: &mut Builder,
    node: &Node,
    x: &Tensor,
    axis: usize,
    places: &[usize],
) -> Result<Tensor, Fault> {
    let runs = operators::runs(places);
    if runs.is_empty() || runs.len() > MAX_PARTS {
        return fault!(
            "its {} indices make {} slices; csdfc takes 1 to {MAX_PARTS}",
            places.len(),
            runs.len()
        );
    }
    let mut slices = Vec::new();
    for run in &runs {
        let mut ranges = Range::whole(x.dims());
        ranges[axis] = Range { start: run.start, step: run.step, length: run.length };
        slices.push(take(builder, node, x, &ranges)?);
    }
    joined(builder, node, axis, &slices)
}
