//! Operators that move elements and compute none.

use std::ops::Range;

use csdfc_plan::operator::{Concat, Pad, PadMode, Slice, Transpose};
use csdfc_plan::shape::{Order, Shape};

use super::facts::{RowAccess, ShapeError, bounded, dimension, fail, image, window};

pub(super) fn concat_shape(concat: &Concat, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let Some((first, others)) = inputs.split_first() else { return fail("concat of nothing".into()) };
    let mut output = first.clone();
    let axis = concat.axis;
    if axis >= first.rank() {
        return fail(format!("a tensor of shape {first} has no dimension {axis}"));
    }
    for other in others {
        let fits = other.rank() == first.rank()
            && first.dims.iter().zip(&other.dims).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !fits {
            return fail(format!("{first} and {other} cannot be concatenated along dimension {axis}"));
        }
        // Sizes are bounded, and no model has 2^28 inputs to one layer.
        output.dims[axis] = output.dims[axis].saturating_add(other.dims[axis]);
    }
    Ok(output)
}

pub(super) fn slice_shape(slice: &Slice, x: &Shape) -> Result<Shape, ShapeError> {
    let rank = x.rank();
    if slice.starts.len() != rank || slice.steps.len() != rank || slice.lengths.len() != rank {
        return fail(format!("slice needs a start, a step and a length for each dimension of {x}"));
    }
    for (axis, &dim) in x.dims.iter().enumerate() {
        let (start, step, length) = (slice.starts[axis], slice.steps[axis], slice.lengths[axis]);
        if step == 0 {
            return fail(format!("slice step 0 in dimension {axis}"));
        }
        if length == 0 || length > dim || start >= dim {
            return fail(format!(
                "slice takes {length} of {dim} elements from {start} on in dimension {axis}"
            ));
        }
        let last = start as i128 + (length as i128 - 1) * i128::from(step);
        if !(0..dim as i128).contains(&last) {
            return fail(format!("slice ends at {last} of {dim} in dimension {axis}"));
        }
    }
    Ok(Shape { dims: slice.lengths.clone(), order: x.order })
}

pub(super) fn pad_shape(pad: &Pad, x: &Shape) -> Result<Shape, ShapeError> {
    if pad.before.len() != x.rank() || pad.after.len() != x.rank() {
        return fail(format!("pad needs two numbers for each dimension of {x}"));
    }
    let mut output = x.clone();
    for (axis, dim) in output.dims.iter_mut().enumerate() {
        let (before, after) = (i128::from(pad.before[axis]), i128::from(pad.after[axis]));
        let kept = *dim as i128 + before.min(0) + after.min(0);
        if kept < 1 {
            return fail(format!("pad crops all of dimension {axis} of {x}"));
        }
        if pad.mode == PadMode::Reflect && before.max(after) >= kept {
            return fail(format!("reflecting pads of dimension {axis} must be below {kept}"));
        }
        *dim = dimension(*dim as i128 + before + after, "a padded dimension")?;
    }
    Ok(output)
}

/// Only an image has an order of its dimensions. (A permutation that only relabels dimensions is a view.)
pub(super) fn transpose_shape(transpose: &Transpose, x: &Shape) -> Result<Shape, ShapeError> {
    let mut seen = transpose.perm.clone();
    seen.sort_unstable();
    if !seen.iter().copied().eq(0..x.rank()) {
        return fail(format!("{:?} does not permute the dimensions of {x}", transpose.perm));
    }
    let dims = transpose.perm.iter().map(|&axis| x.dims[axis]).collect();
    let output = Shape { dims, order: transpose.order };
    if output.order == Order::ChannelsLast && !output.is_image() {
        return fail(format!("{output} is no image, so its channels cannot be last"));
    }
    Ok(output)
}

pub(super) fn depth_to_space_shape(block: usize, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, height, width] = image(x, "depth_to_space")?;
    let side = bounded(block, "block")?;
    let channels = channels as i128;
    if side == 0 || channels % (side * side) != 0 {
        return fail(format!("{channels} channels cannot be divided into blocks of {block}×{block} pixels"));
    }
    Ok(Shape::new([
        n,
        dimension(channels / (side * side), "channels")?,
        dimension(height as i128 * side, "height")?,
        dimension(width as i128 * side, "width")?,
    ]))
}

pub(super) fn space_to_depth_shape(block: usize, x: &Shape) -> Result<Shape, ShapeError> {
    let [n, channels, height, width] = image(x, "space_to_depth")?;
    let side = bounded(block, "block")?;
    if block == 0 || height % block != 0 || width % block != 0 {
        return fail(format!("{x} cannot be divided into blocks of {block}×{block} pixels"));
    }
    let channels = dimension(channels as i128 * side * side, "channels")?;
    Ok(Shape::new([n, channels, height / block, width / block]))
}

/// Indices at equal distances: `start + i · step`, for i below `length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first index.
    pub start: usize,
    /// The distance from one index to the next.
    pub step: i64,
    /// How many indices there are.
    pub length: usize,
}

/// Indices as runs, each as long as may be. A slice takes each run.
pub fn runs(indices: &[usize]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last = 0;
    for &index in indices {
        let step = index as i64 - last as i64;
        match runs.last_mut() {
            Some(run) if run.length == 1 && step != 0 => (run.step, run.length) = (step, 2),
            Some(run) if run.step == step => run.length += 1,
            _ => runs.push(Run { start: index, step: 1, length: 1 }),
        }
        last = index;
    }
    runs
}

/// Rows outside the operand's part read nothing of it.
pub(super) fn concat_rows(inputs: &[Shape], [rows_in, rows_out]: [usize; 2], index: usize) -> RowAccess {
    let first: usize = inputs[..index].iter().map(Shape::rows).sum();
    let table = (0..rows_out).map(|y| {
        let start = y.saturating_sub(first).min(rows_in);
        let end = (y + 1).saturating_sub(first).min(rows_in);
        start..end
    });
    RowAccess::Rows(table.collect())
}

pub(super) fn slice_rows(slice: &Slice, row: usize) -> RowAccess {
    let stride = if slice.lengths[row] == 1 { Ok(1) } else { usize::try_from(slice.steps[row]) };
    match (stride, i64::try_from(slice.starts[row])) {
        (Ok(stride), Ok(start)) => RowAccess::Window { kernel: 1, stride, dilation: 1, top: -start },
        (Err(_), Ok(start)) => {
            let source = |y: usize| (start + y as i64 * slice.steps[row]) as usize;
            hull((0..slice.lengths[row]).map(|y| source(y)..source(y) + 1).collect())
        }
        _ => RowAccess::Whole,
    }
}

pub(super) fn pad_rows(pad: &Pad, row: usize, [rows_in, rows_out]: [usize; 2]) -> RowAccess {
    let (before, last) = (pad.before[row], rows_in as i64 - 1);
    let source = |y: usize| {
        let i = y as i64 - before;
        // Both are from 0 to `last`, because the pads of a reflection are smaller than what they reflect.
        (if pad.mode == PadMode::Edge || (0..=last).contains(&i) {
            i.clamp(0, last)
        } else {
            if i < 0 { -i } else { 2 * last - i }
        }) as usize
    };
    match pad.mode {
        PadMode::Constant { .. } => RowAccess::Window { kernel: 1, stride: 1, dilation: 1, top: before },
        PadMode::Reflect | PadMode::Edge => hull((0..rows_out).map(|y| source(y)..source(y) + 1).collect()),
    }
}

pub(super) fn depth_to_space_rows(block: usize, [_, rows_out]: [usize; 2]) -> RowAccess {
    match block {
        1 => window(1, 1, 1, 0),
        _ => RowAccess::Rows((0..rows_out).map(|y| y / block..y / block + 1).collect()),
    }
}

/// The smallest ranges around these whose ends never fall.
fn hull(mut table: Vec<Range<usize>>) -> RowAccess {
    for y in 1..table.len() {
        table[y].end = table[y].end.max(table[y - 1].end);
    }
    for y in (1..table.len()).rev() {
        table[y - 1].start = table[y - 1].start.min(table[y].start);
    }
    RowAccess::Rows(table)
}
