//! Operators that move elements.

use crate::import::attribute::{int, text};
use crate::import::error::{Fault, fault};
use crate::import::node::{self, Value};
use crate::import::tflite::op::{Op, dims, list, reordered, scalar};

/// Maximum number of outputs or slices that one operator may become.
const MAX_PARTS: usize = 256;

pub(super) fn concatenation(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let all = op.all_numbers()?;
    let rank = all.first().map_or(0, |first| dims(first).len());
    if all.iter().any(|each| dims(each).len() != rank) {
        return fault!("its operands differ in rank");
    }
    let axis = op.int(0, 0)?;
    let (all, is_first) = images(op, all)?;
    let axis = op.axis(axis, rank, is_first)? as i64;
    let y = op.node("Concat", all, vec![int("axis", axis)])?;
    let y = op.activated(y, 1)?;
    Ok(vec![op.last_if(is_first, y)?])
}

/// `PACK`: operands side by side along a new axis.
pub(super) fn pack(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let mut all = op.all_numbers()?;
    let rank = all.first().map_or(0, |first| dims(first).len());
    let axis = op.axis(op.int(1, 0)?, rank + 1, false)?;
    for each in &mut all {
        let mut wanted = dims(each);
        if wanted.len() != rank {
            return fault!("its operands differ in rank");
        }
        wanted.insert(axis, 1);
        *each = op.reshaped(each.clone(), wanted)?;
    }
    Ok(vec![op.node("Concat", all, vec![int("axis", axis as i64)])?])
}

/// `UNPACK`: a slice for each index of an axis, without that axis.
pub(super) fn unpack(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let from = dims(&x);
    let axis = op.axis(op.int(1, 0)?, from.len(), false)?;
    if from[axis] > MAX_PARTS || from[axis] != op.outputs.len() {
        return fault!(
            "it has {} outputs of {}; csdfc takes at most {MAX_PARTS}",
            op.outputs.len(),
            from[axis]
        );
    }
    let mut left = from.clone();
    left.remove(axis);
    let mut parts = Vec::new();
    for index in 0..from[axis] {
        let (mut starts, mut ends) = (vec![0; from.len()], ends_of(&from));
        (starts[axis], ends[axis]) = (index as i64, index as i64 + 1);
        let part = sliced(op, x.clone(), starts, ends, vec![1; from.len()])?;
        parts.push(op.reshaped(part, left.clone())?);
    }
    Ok(parts)
}

/// `SPLIT` into equal parts: the axis, and then the operand.
pub(super) fn split(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let (axis, parts) = (op.constant(0, "axis")?.scalar_int()?, op.outputs.len());
    let x = op.number(1)?;
    let from = dims(&x);
    let size = from[op.axis(axis, from.len(), false)?];
    if parts == 0 || !size.is_multiple_of(parts) {
        return fault!("{size} elements cannot be split into {parts} equal parts");
    }
    parts_of(op, x, axis, vec![(size / parts) as i64; parts])
}

/// `SPLIT_V`: the operand, the sizes of the parts, of which one may be −1, and the axis.
pub(super) fn split_v(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let (mut sizes, axis) = (op.ints(1, "sizes")?, op.constant(2, "axis")?.scalar_int()?);
    let x = op.number(0)?;
    let from = dims(&x);
    let size = from[op.axis(axis, from.len(), false)?] as i64;
    let known = sizes.iter().filter(|size| **size >= 0).fold(0i64, |sum, size| sum.saturating_add(*size));
    for open in sizes.iter_mut().filter(|size| **size < 0) {
        *open = size - known;
    }
    parts_of(op, x, axis, sizes)
}

fn parts_of(op: &mut Op, x: Value, axis: i64, sizes: Vec<i64>) -> Result<Vec<Value>, Fault> {
    let count = sizes.len();
    if count > MAX_PARTS {
        return fault!("it has {count} outputs; csdfc takes at most {MAX_PARTS}");
    }
    let rank = dims(&x).len();
    let (x, is_first) = op.first_if_last(x)?;
    let axis = op.axis(axis, rank, is_first)? as i64;
    let parts = op.nodes("Split", [x, list(sizes)], vec![int("axis", axis)], count)?;
    parts.into_iter().map(|part| op.last_if(is_first, part)).collect()
}

/// `SLICE`: where it begins, and its sizes. −1 is all that is left.
pub(super) fn slice(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let (begin, sizes) = (op.ints(1, "begin")?, op.ints(2, "size")?);
    let from = dims(&x);
    if [begin.len(), sizes.len()] != [from.len(); 2] {
        return fault!("its begin and size differ in number from the dimensions of {from:?}");
    }
    let end = |(begin, size): (&i64, &i64)| if *size < 0 { i64::MAX } else { begin.saturating_add(*size) };
    let ends = begin.iter().zip(&sizes).map(end).collect();
    let steps = vec![1; from.len()];
    Ok(vec![sliced(op, x, begin, ends, steps)?])
}

/// `STRIDED_SLICE`: begin, end and strides of the first dimensions. Masks have a bit for each of these entries. They say which
/// begins and ends do not count, which entry is an ellipsis and stands for all dimensions that the others leave, which are
/// new dimensions of 1, and which give a single index.
pub(super) fn strided_slice(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    let [begin, end, strides] = [op.ints(1, "begin")?, op.ints(2, "end")?, op.ints(3, "strides")?];
    let mut masks = [0; 5];
    for (id, mask) in masks.iter_mut().enumerate() {
        *mask = op.int(id, 0)?;
    }
    let has = |mask: usize, entry: usize| masks[mask] >> entry & 1 == 1;
    let [begins_open, ends_open, ellipsis, new, taken] = [0, 1, 2, 3, 4];
    let is_offset = op.flag(5)?;
    let from = dims(&x);
    let count = begin.len();
    let reads = |entry: &usize| !has(ellipsis, *entry) && !has(new, *entry);
    let read = (0..count.min(32)).filter(reads).count();
    if [end.len(), strides.len()] != [count; 2] || count > 32 || read > from.len() {
        return fault!("its begin, end and strides do not fit the dimensions of {from:?}");
    }
    let (mut starts, mut ends, mut steps) = (vec![0; from.len()], ends_of(&from), vec![1; from.len()]);
    // The dimensions of the output: those of the operand that are left, and new ones.
    let (mut left, mut axis) = (Vec::new(), 0);
    for entry in 0..count {
        if has(ellipsis, entry) {
            let after = (entry + 1..count).filter(reads).count();
            let next = (from.len() - after).max(axis);
            left.extend((axis..next).map(Some));
            axis = next;
            continue;
        }
        if has(new, entry) {
            left.push(None);
            continue;
        }
        if has(taken, entry) {
            let index = node::axis(begin[entry], from[axis]).map_err(|_| {
                let (index, size) = (begin[entry], from[axis]);
                Fault::new(format!("index {index} is out of range: dimension {axis} is {size}"))
            })?;
            (starts[axis], ends[axis]) = (index as i64, index as i64 + 1);
        } else {
            let is_backward = strides[entry] < 0;
            let (first, past) = if is_backward { (i64::MAX, i64::MIN) } else { (0, i64::MAX) };
            starts[axis] = if has(begins_open, entry) { first } else { begin[entry] };
            let stated = if is_offset { begin[entry].saturating_add(end[entry]) } else { end[entry] };
            ends[axis] = if has(ends_open, entry) { past } else { stated };
            steps[axis] = strides[entry];
            left.push(Some(axis));
        }
        axis += 1;
    }
    left.extend((axis..from.len()).map(Some));
    let y = sliced(op, x, starts, ends, steps)?;
    let made = dims(&y);
    let y = op.reshaped(y, left.into_iter().map(|axis| axis.map_or(1, |axis| made[axis])).collect())?;
    Ok(vec![y])
}

/// `TILE`: how often each dimension is repeated.
pub(super) fn tile(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let (x, repeats) = (op.number(0)?, op.ints(1, "multiples")?);
    let (x, is_first) = op.first_if_last(x)?;
    let y = op.node("Tile", [x, list(reordered(&repeats, is_first))], Vec::new())?;
    Ok(vec![op.last_if(is_first, y)?])
}

/// `GATHER` along an axis.
pub(super) fn gather(op: &mut Op) -> Result<Vec<Value>, Fault> {
    if op.int(1, 0)? != 0 {
        return fault!("it gathers in batches, which is not supported");
    }
    let (x, axis) = (op.number(0)?, op.int(0, 0)?);
    let indices = op.number(1)?;
    Ok(vec![op.node("Gather", [x, indices], vec![int("axis", axis)])?])
}

/// `GATHER_ND`: the slices at places, which the last dimension of the indices holds.
pub(super) fn gather_nd(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let operands = [op.number(0)?, op.number(1)?];
    Ok(vec![op.node("GatherND", operands, Vec::new())?])
}

/// `REVERSE_V2`: the order of some dimensions turned.
pub(super) fn reverse(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let (x, axes) = (op.number(0)?, op.ints(1, "axes")?);
    let from = dims(&x);
    let (mut starts, mut ends, mut steps) = (vec![0; from.len()], ends_of(&from), vec![1; from.len()]);
    for axis in axes {
        let axis = op.axis(axis, from.len(), false)?;
        (starts[axis], ends[axis], steps[axis]) = (i64::MAX, i64::MIN, -1);
    }
    Ok(vec![sliced(op, x, starts, ends, steps)?])
}

/// `PAD`, and `PADV2`, which states the padding value.
pub(super) fn pad(op: &mut Op) -> Result<Vec<Value>, Fault> {
    let value = if op.has(2) {
        let number = op.number(2)?;
        let Value::Constant(number) = number else {
            return fault!("it pads with a number that the network computes");
        };
        number.scalar()?
    } else {
        0.0
    };
    padded(op, "constant", Some(value))
}

/// `MIRROR_PAD` without the edge (REFLECT) or with it (SYMMETRIC).
pub(super) fn mirror_pad(op: &mut Op) -> Result<Vec<Value>, Fault> {
    if op.code(0)? == 0 {
        return padded(op, "reflect", None);
    }
    let (x, pads) = (op.number(0)?, op.ints(1, "paddings")?);
    let from = dims(&x);
    if pads.len() != 2 * from.len() {
        return fault!("it has {} paddings for {} dimensions", pads.len(), from.len());
    }
    let (mut x, is_first) = op.first_if_last(x)?;
    for (axis, pads) in pads.chunks_exact(2).enumerate().filter(|(_, pads)| *pads != [0, 0]) {
        let size = from[axis] as i64;
        if pads.iter().any(|pad| !(0..=size).contains(pad)) {
            return fault!("it pads {size} in dimension {axis} by {} and {}", pads[0], pads[1]);
        }
        // Mirror images of both ends, as slices that walk backwards.
        let axis = op.axis(axis as i64, from.len(), is_first)? as i64;
        let ends = [(pads[0] - 1, i64::MIN), (size - 1, size - 1 - pads[1])];
        let mut parts = Vec::new();
        for (pad, (start, end)) in pads.iter().zip(ends) {
            let range = [vec![start], vec![if end < 0 { i64::MIN } else { end }], vec![axis], vec![-1]];
            parts.push(match pad {
                0 => None,
                _ => {
                    Some(op.node("Slice", [vec![x.clone()], range.map(list).into()].concat(), Vec::new())?)
                }
            });
        }
        let [before, after] = <[Option<Value>; 2]>::try_from(parts).unwrap_or_default();
        let parts: Vec<Value> = before.into_iter().chain([x]).chain(after).collect();
        x = op.node("Concat", parts, vec![int("axis", axis)])?;
    }
    Ok(vec![op.last_if(is_first, x)?])
}

fn padded(op: &mut Op, mode: &str, value: Option<f32>) -> Result<Vec<Value>, Fault> {
    let (x, pads) = (op.number(0)?, op.ints(1, "paddings")?);
    let rank = dims(&x).len();
    if pads.len() != 2 * rank {
        return fault!("it has {} paddings for {rank} dimensions", pads.len());
    }
    let (x, is_first) = op.first_if_last(x)?;
    let side =
        |side: usize| reordered(&pads.iter().skip(side).step_by(2).copied().collect::<Vec<_>>(), is_first);
    let pads = list(side(0).into_iter().chain(side(1)).collect());
    let value = value.map(scalar);
    let y = op.node("Pad", [Some(x), Some(pads), value], vec![text("mode", mode)])?;
    Ok(vec![op.last_if(is_first, y)?])
}

pub(super) fn depth_to_space(op: &mut Op) -> Result<Vec<Value>, Fault> {
    blocks(op, "DepthToSpace")
}

pub(super) fn space_to_depth(op: &mut Op) -> Result<Vec<Value>, Fault> {
    blocks(op, "SpaceToDepth")
}

fn blocks(op: &mut Op, operator: &str) -> Result<Vec<Value>, Fault> {
    let x = op.number(0)?;
    if dims(&x).len() != 4 {
        return fault!("its operand {:?} is no image", dims(&x));
    }
    let x = op.first(x)?;
    let block = op.int(0, 0)?;
    let y = op.node(operator, [x], vec![int("blocksize", block)])?;
    Ok(vec![op.last(y)?])
}

/// The end of each dimension.
fn ends_of(dims: &[usize]) -> Vec<i64> {
    dims.iter().map(|dim| *dim as i64).collect()
}

pub(super) fn sliced(
    op: &mut Op,
    x: Value,
    starts: Vec<i64>,
    ends: Vec<i64>,
    steps: Vec<i64>,
) -> Result<Value, Fault> {
    let (x, is_first) = op.first_if_last(x)?;
    let axes = (0..starts.len() as i64).collect();
    let [starts, ends, steps] = [starts, ends, steps].map(|each| list(reordered(&each, is_first)));
    let y = op.node("Slice", [x, starts, ends, list(axes), steps], Vec::new())?;
    op.last_if(is_first, y)
}

/// Operands that have one shape except along an axis: channels-first, if one of them is an image of the network.
fn images(op: &mut Op, values: Vec<Value>) -> Result<(Vec<Value>, bool), Fault> {
    let mut is_image = false;
    for value in &values {
        is_image |= op.first_if_last(value.clone())?.1;
    }
    if !is_image {
        return Ok((values, false));
    }
    let first = values.into_iter().map(|value| op.first(value)).collect::<Result<_, _>>()?;
    Ok((first, true))
}
