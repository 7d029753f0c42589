//! Tensors with the rows of many hops of a stream, one after another, as `.npy` files hold them.

use csdfc_plan::operator::{CameraLayout, Input};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Value, input_dims};

/// The hops of a tensor for an input whose hop has this shape. A tensor of other dimensions stays as it is, apart from its
/// rows.
///
/// # Errors
/// The rows of the tensor and of a hop, if it has no whole number of hops.
pub(super) fn split(input: &Input, shape: &Shape, signal: Value) -> Result<Vec<Value>, [usize; 2]> {
    let hop = input_dims(input, shape);
    // Bytes of a camera come with or without the batch.
    let batch = signal.dims.len().saturating_sub(hop.len());
    let axis = match &input.camera {
        Some(camera) if camera.layout == CameraLayout::Hwc => batch,
        Some(_) => batch + 1,
        None => batch + row_axis(shape),
    };
    let mut dims = [vec![1; batch], hop].concat();
    let (Some(&all), Some(rows)) = (signal.dims.get(axis), dims.get_mut(axis)) else {
        return Ok(vec![signal]);
    };
    let hop = std::mem::replace(rows, all);
    if dims != signal.dims || all <= hop {
        return Ok(vec![signal]);
    }
    if all % hop != 0 {
        return Err([all, hop]);
    }
    dims[axis] = hop;
    let (outer, inner) = (dims[..axis].iter().product(), dims[axis + 1..].iter().product());
    let part = |first: usize| {
        let data = match &signal.data {
            Data::F32(values) => Data::F32(rows_of(values, [outer, all, inner], first, hop)),
            Data::U8(values) => Data::U8(rows_of(values, [outer, all, inner], first, hop)),
            Data::I8(values) => Data::I8(rows_of(values, [outer, all, inner], first, hop)),
            Data::I64(values) => Data::I64(rows_of(values, [outer, all, inner], first, hop)),
        };
        Value { dims: dims.clone(), data }
    };
    Ok((0..all).step_by(hop).map(part).collect())
}

/// `rows` rows of a tensor from `first` on. The tensor has its dimensions before the rows, the rows, and those after them.
fn rows_of<T: Copy>(values: &[T], [outer, all, inner]: [usize; 3], first: usize, rows: usize) -> Vec<T> {
    let stretch = |number: usize| &values[(number * all + first) * inner..][..rows * inner];
    (0..outer).flat_map(stretch).copied().collect()
}

/// The tensor of the rows of all these outputs of hops, whose shape is `shape`; `None` if there is none.
pub(super) fn join(parts: &[Value], shape: &Shape) -> Option<Value> {
    let axis = row_axis(shape);
    let mut dims = parts.first()?.dims.clone();
    dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
    let outer = dims[..axis].iter().product();
    let data = match &parts.first()?.data {
        Data::F32(_) => Data::F32(joined(parts, outer, |data| match data {
            Data::F32(values) => values,
            _ => &[],
        })),
        Data::I64(_) => Data::I64(joined(parts, outer, |data| match data {
            Data::I64(values) => values,
            _ => &[],
        })),
        Data::U8(_) => Data::U8(joined(parts, outer, |data| match data {
            Data::U8(values) => values,
            _ => &[],
        })),
        Data::I8(_) => Data::I8(joined(parts, outer, |data| match data {
            Data::I8(values) => values,
            _ => &[],
        })),
    };
    Some(Value { dims, data })
}

/// Elements of tensors of one type, one tensor after another in each of the dimensions before the rows.
fn joined<T: Copy>(parts: &[Value], outer: usize, values: fn(&Data) -> &[T]) -> Vec<T> {
    let stretch = |part: &Value, number: usize| {
        let length = part.data.len() / outer;
        values(&part.data)[number * length..][..length].to_vec()
    };
    (0..outer).flat_map(|number| parts.iter().flat_map(move |part| stretch(part, number))).collect()
}

/// The dimension along which hops follow each other: the rows or, if a hop is a single row without lines, the one before
/// the last.
fn row_axis(shape: &Shape) -> usize {
    shape.row_axis().unwrap_or(shape.rank().saturating_sub(2))
}
