//! Constants whose elements are elements of other constants, in other places.

use crate::import::builder::Builder;
use crate::import::constant::{Constant, Data, count, dimensions};
use crate::import::error::{Fault, fault};
use crate::import::node::{Node, Value, axis, permutation};
use csdfc_network::operators::broadcast;

/// Indices of one dimension: `start + i · step` for i below `length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::import) struct Range {
    pub start: usize,
    pub step: i64,
    pub length: usize,
}

impl Range {
    /// All of each dimension.
    pub fn whole(dims: &[usize]) -> Vec<Range> {
        dims.iter().map(|&length| Range { start: 0, step: 1, length }).collect()
    }
}

/// The ranges of a `Slice`: attributes before opset 10, operands since.
pub(in crate::import) fn slice_ranges(node: &Node, dims: &[usize]) -> Result<Vec<Range>, Fault> {
    let list = |name: &str, index: usize| node.ints_since(name, 10, index);
    let (Some(starts), Some(ends)) = (list("starts", 1)?, list("ends", 2)?) else {
        return fault!("its starts or ends are missing");
    };
    let axes = list("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = match node.optional(4, "steps")? {
        Some(steps) if node.opset >= 10 => steps.to_ints()?,
        _ => vec![1; starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        return fault!("its starts, ends, axes and steps differ in number");
    }
    let mut ranges = Range::whole(dims);
    for i in 0..starts.len() {
        let axis = axis(axes[i], dims.len())?;
        ranges[axis] = range(starts[i], ends[i], steps[i], dims[axis])?;
    }
    Ok(ranges)
}

/// Sizes of the parts of a `Split` along a dimension.
pub(in crate::import) fn split_sizes(node: &Node, size: usize) -> Result<Vec<usize>, Fault> {
    if let Some(sizes) = node.ints_since("split", 13, 1)? {
        let sizes = dimensions(&sizes)?;
        let sum = sizes.iter().try_fold(0usize, |sum, part| sum.checked_add(*part));
        if sum != Some(size) || sizes.len() < node.proto.output.len() {
            return fault!("parts of {sizes:?} do not add up to {size}");
        }
        return Ok(sizes);
    }
    let outputs = node.proto.output.len();
    let parts = match usize::try_from(node.int("num_outputs", outputs as i64)?) {
        Ok(parts) if parts > 0 && parts >= outputs && parts <= size => parts,
        _ => return fault!("{size} elements cannot be split into {outputs} parts"),
    };
    if node.opset < 18 && !size.is_multiple_of(parts) {
        return fault!("{size} elements cannot be split into {parts} equal parts");
    }
    // The last part may be smaller.
    let each = size.div_ceil(parts);
    let sizes: Vec<usize> = (0..parts).map(|i| each.min(size.saturating_sub(i * each))).collect();
    if sizes.contains(&0) {
        return fault!("{size} elements cannot be split into {parts} parts");
    }
    Ok(sizes)
}

pub(in crate::import) fn slice(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let ranges = slice_ranges(node, &x.dims)?;
    take(builder, x, &ranges)
}

pub(in crate::import) fn split(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let x = node.constant(0, "operand")?;
    let axis = axis(node.int("axis", 0)?, x.dims.len())?;
    let mut start = 0;
    let mut parts = Vec::new();
    for length in split_sizes(node, x.dims[axis])? {
        let mut ranges = Range::whole(&x.dims);
        ranges[axis] = Range { start, step: 1, length };
        start += length;
        parts.push(take(builder, x, &ranges)?.into());
    }
    Ok(parts)
}

pub(in crate::import) fn transpose(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let perm = permutation(node, x.dims.len())?;
    let strides = strides(&x.dims);
    let dims: Vec<usize> = perm.iter().map(|axis| x.dims[*axis]).collect();
    let steps: Vec<i64> = perm.iter().map(|axis| strides[*axis] as i64).collect();
    gather_grid(builder, x, dims, 0, &steps)
}

pub(in crate::import) fn expand(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let wanted = dimensions(&node.constant(1, "shape")?.to_ints()?)?;
    count(&wanted)?;
    let dims = broadcast(&x.dims, &wanted)?;
    broadcast_to(builder, x, &dims)
}

pub(in crate::import) fn tile(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let repeats = dimensions(&node.constant(1, "repeats")?.to_ints()?)?;
    if repeats.len() != x.dims.len() {
        return fault!("{} repeats for {} dimensions", repeats.len(), x.dims.len());
    }
    let mut dims = Vec::new();
    for (dim, repeat) in x.dims.iter().zip(&repeats) {
        dims.push(dim.checked_mul(*repeat).map_or_else(|| fault!("repeats of {repeat}"), Ok)?);
    }
    let elements = count(&dims)?;
    builder.charge(elements)?;
    let (from, to) = (strides(&x.dims), strides(&dims));
    let places =
        (0..elements).map(|i| (0..dims.len()).map(|axis| i / to[axis] % x.dims[axis] * from[axis]).sum());
    pick(x, dims.clone(), &places.collect::<Vec<usize>>())
}

pub(in crate::import) fn gather(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let x = node.constant(0, "operand")?;
    let along = axis(node.int("axis", 0)?, x.dims.len())?;
    let indices = node.constant(1, "indices")?;
    let mut places = Vec::new();
    for index in indices.to_ints()? {
        let outside =
            |_| Fault::new(format!("index {index} is out of range: dimension {along} is {}", x.dims[along]));
        places.push(axis(index, x.dims[along]).map_err(outside)?);
    }
    let (outer, rest) = x.dims.split_at(along);
    let dims: Vec<usize> = [outer, indices.dims.as_slice(), &rest[1..]].concat();
    let elements = count(&dims)?;
    builder.charge(elements)?;
    if elements == 0 {
        return pick(x, dims, &[]);
    }
    let inner = count(&rest[1..])?;
    let mut all = Vec::new();
    for block in 0..count(outer)? {
        for place in &places {
            let start = (block * rest[0] + place) * inner;
            all.extend(start..start + inner);
        }
    }
    pick(x, dims, &all)
}

pub(in crate::import) fn concat(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let mut parts = Vec::with_capacity(node.inputs.len());
    for i in 0..node.inputs.len() {
        parts.push(node.constant(i, "operand")?);
    }
    let Some(first) = parts.first() else { return fault!("it has no operands") };
    let along = axis(node.int("axis", 1)?, first.dims.len())?;
    let mut dims = first.dims.clone();
    dims[along] = 0;
    for part in &parts {
        let fits = part.dims.len() == dims.len()
            && part.dims.iter().zip(&dims).enumerate().all(|(i, (a, b))| i == along || a == b);
        if !fits {
            return fault!("constants of {:?} and {:?} cannot be concatenated", first.dims, part.dims);
        }
        dims[along] = dims[along].saturating_add(part.dims[along]);
    }
    let elements = count(&dims)?;
    builder.charge(elements)?;
    if elements == 0 {
        return pick(first, dims, &[]);
    }
    let blocks = count(&dims[..along])?;
    // Every part consists of blocks of equally many elements.
    fn interleave<T: Copy>(parts: &[Vec<T>], blocks: usize) -> Vec<T> {
        let mut all = Vec::new();
        for block in 0..blocks {
            for part in parts {
                let size = part.len() / blocks;
                all.extend_from_slice(&part[block * size..(block + 1) * size]);
            }
        }
        all
    }
    if parts.iter().all(|part| matches!(part.data, Data::Ints(_))) {
        let values = parts.iter().map(|part| part.to_ints()).collect::<Result<Vec<_>, _>>()?;
        return Ok(Constant::ints(dims, interleave(&values, blocks)));
    }
    if parts.iter().all(|part| matches!(part.data, Data::Bools(_))) {
        let values = parts.iter().map(|part| part.to_ints()).collect::<Result<Vec<_>, _>>()?;
        let values = interleave(&values, blocks).into_iter().map(|value| value != 0);
        return Ok(Constant::bools(dims, values.collect()));
    }
    let values = parts.iter().map(|part| part.to_floats()).collect::<Result<Vec<_>, _>>()?;
    Ok(Constant::floats(dims, interleave(&values, blocks)))
}

/// `Where`: by a constant condition, of two constants.
pub(in crate::import) fn select(builder: &mut Builder, node: &Node) -> Result<Constant, Fault> {
    let (condition, a, b) = (node.constant(0, "condition")?, node.constant(1, "X")?, node.constant(2, "Y")?);
    let dims = broadcast(&broadcast(&condition.dims, &a.dims)?, &b.dims)?;
    let (condition, a, b) = (
        broadcast_to(builder, condition, &dims)?.to_ints()?,
        broadcast_to(builder, a, &dims)?,
        broadcast_to(builder, b, &dims)?,
    );
    fn selected<T: Copy>(condition: &[i64], a: &[T], b: &[T]) -> Vec<T> {
        let values = condition.iter().zip(a.iter().zip(b));
        values.map(|(condition, (a, b))| if *condition != 0 { *a } else { *b }).collect()
    }
    Ok(match (&a.data, &b.data) {
        (Data::Ints(a), Data::Ints(b)) => Constant::ints(dims, selected(&condition, a, b)),
        (Data::Bools(a), Data::Bools(b)) => Constant::bools(dims, selected(&condition, a, b)),
        _ => Constant::floats(dims, selected(&condition, &a.to_floats()?, &b.to_floats()?)),
    })
}

/// The constant repeated along dimensions of 1 and new ones before.
pub(super) fn broadcast_to(builder: &mut Builder, x: &Constant, dims: &[usize]) -> Result<Constant, Fault> {
    if x.dims == dims {
        return Ok(x.clone());
    }
    let new = dims.len() - x.dims.len();
    let strides = strides(&x.dims);
    let step = |axis: usize| match axis.checked_sub(new) {
        Some(own) if x.dims[own] != 1 => strides[own] as i64,
        _ => 0,
    };
    let steps: Vec<i64> = (0..dims.len()).map(step).collect();
    gather_grid(builder, x, dims.to_vec(), 0, &steps)
}

/// Elements from one place to the next along each dimension.
pub(super) fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis];
    }
    strides
}

pub(super) fn take(builder: &mut Builder, x: &Constant, ranges: &[Range]) -> Result<Constant, Fault> {
    let strides = strides(&x.dims);
    let dims = ranges.iter().map(|range| range.length).collect();
    let start = ranges.iter().zip(&strides).map(|(range, stride)| range.start * stride).sum();
    let steps: Vec<i64> =
        ranges.iter().zip(&strides).map(|(range, stride)| range.step * *stride as i64).collect();
    gather_grid(builder, x, dims, start, &steps)
}

/// The elements at `start + Σ index · step`, for every index within the dimensions; all lie within the constant.
fn gather_grid(
    builder: &mut Builder,
    x: &Constant,
    dims: Vec<usize>,
    start: usize,
    steps: &[i64],
) -> Result<Constant, Fault> {
    let elements = count(&dims)?;
    builder.charge(elements)?;
    let mut index = vec![0usize; dims.len()];
    let mut place = start as i64;
    let mut places = Vec::with_capacity(elements);
    for _ in 0..elements {
        places.push(place as usize);
        for axis in (0..dims.len()).rev() {
            index[axis] += 1;
            place += steps[axis];
            if index[axis] < dims[axis] {
                break;
            }
            place -= steps[axis] * dims[axis] as i64;
            index[axis] = 0;
        }
    }
    pick(x, dims, &places)
}

/// The elements at these places.
fn pick(x: &Constant, dims: Vec<usize>, places: &[usize]) -> Result<Constant, Fault> {
    fn all<T: Copy>(values: &[T], places: &[usize]) -> Result<Vec<T>, Fault> {
        let outside = || Fault::new("an index is out of range of its constant");
        places.iter().map(|place| values.get(*place).copied().ok_or_else(outside)).collect()
    }
    Ok(match &x.data {
        Data::Floats(_) => Constant::floats(dims, all(&x.to_floats()?, places)?),
        Data::Ints(values) => Constant::ints(dims, all(values, places)?),
        Data::Bools(values) => Constant::bools(dims, all(values, places)?),
    })
}

/// The indices of a dimension that ONNX takes from `start` to `end` by `step`, both clamped.
fn range(start: i64, end: i64, step: i64, size: usize) -> Result<Range, Fault> {
    if size == 0 {
        return Ok(Range { start: 0, step: 1, length: 0 });
    }
    let length = size as i64;
    let from_start = |value: i64| if value < 0 { value.saturating_add(length) } else { value };
    let (first, count) = if step > 0 {
        let (start, end) = (from_start(start).clamp(0, length), from_start(end).clamp(0, length));
        (start, (end - start).max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
    } else if step < 0 {
        let (start, end) = (from_start(start).clamp(0, length - 1), from_start(end).max(-1));
        (start, (start - end).max(0).unsigned_abs().div_ceil(step.unsigned_abs()))
    } else {
        return fault!("a step of 0");
    };
    // Both are between 0 and the size. The step is no longer than the dimension, so that offsets stay small.
    Ok(Range { start: first as usize, step: step.clamp(-length - 1, length + 1), length: count as usize })
}
