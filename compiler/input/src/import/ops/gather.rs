//! Elements at indices.

use csdfc_plan::operator::{GatherElements, Operator};

use super::layout::{MAX_PARTS, joined, take, tensor_of};
use super::parts::{cut, dims, part, reshaped};
use super::reshape;
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
pub(super) fn as_tensor(
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

/// The first element of a tensor, as a tensor of one dimension.
pub(super) fn first_element(builder: &mut Builder, node: &Node, x: &Tensor) -> Result<Tensor, Fault> {
    let one = take(builder, node, x, &vec![Range { start: 0, step: 1, length: 1 }; x.rank()])?;
    builder.reshape(node, &one, vec![1])
}

/// Indices counted from 0, each within a dimension of this size.
pub(super) fn places(indices: &[i64], axis: usize, size: usize) -> Result<Vec<usize>, Fault> {
    indices.iter().map(|index| place_of(*index, axis, size)).collect()
}

/// An index counted from 0, within a dimension of this size.
pub(super) fn place_of(index: i64, axis: usize, size: usize) -> Result<usize, Fault> {
    let outside = |_| Fault::new(format!("index {index} is out of range: dimension {axis} is {size}"));
    node::axis(index, size).map_err(outside)
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
