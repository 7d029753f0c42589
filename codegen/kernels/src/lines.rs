//! Lines: elements of a tensor along one dimension, at even distances in memory where the tensor lies so.
//!
//! A kernel that works element by element finds the place of each element anew. One that works line by line finds the
//! place of each line's first element alone.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::Elements;
//! use csdfc_kernels::lines::Lines;
//!
//! let x = Elements::dense(&[1, 2, 3, 4, 5, 6], &[2, 3]);
//! // Down the last column.
//! let line = Lines::new(&x).line(&[0, 2, 0, 0, 0, 0], 0, 1);
//! assert_eq!([line.get(0), line.get(1)], [3, 6]);
//! ```

use core::ops::Range;

use super::elements::{Dims, ElementShape, Elements, ElementsMut, Index, MAX_RANK};

/// A tensor of which a kernel reads lines.
#[derive(Debug, Clone, Copy)]
pub struct Lines<'t, 'a, T> {
    tensor: &'t Elements<'a, T>,
    /// Elements in memory from one index to the next in each dimension seen, if they are everywhere the same.
    strides: Option<Index>,
}

/// Elements of a tensor along one dimension.
#[derive(Debug, Clone, Copy)]
pub struct LineRef<'t, 'a, T> {
    tensor: &'t Elements<'a, T>,
    /// The index of the first.
    index: Index,
    axis: usize,
    /// How much further along the dimension each lies than the one before.
    step: i64,
    /// The place of the first, and the distance from one to the next, if they lie at even distances.
    even: Option<(usize, isize)>,
}

/// Elements of a tensor in memory from one index to the next in each dimension seen, if they are everywhere the same.
#[inline]
pub(crate) fn strides<T>(tensor: &Elements<'_, T>) -> Option<Index> {
    let shape = &tensor.shape;
    match shape.row_axis {
        Some(row) if shape.first != 0 || shape.ring_rows < shape.dims.sizes[row] => None,
        _ if tensor.seen == shape.dims => Some(shape.strides),
        None => Some(tensor.seen.strides()),
        Some(_) => strides_as(shape, &tensor.seen),
    }
}

/// The last dimension that has several elements and does not count the rows; if there is none, any that does not.
#[inline]
pub(crate) fn line_axis(dims: &Dims, row_axis: Option<usize>) -> usize {
    let is_long = |axis: &usize| dims.sizes[*axis] > 1 && row_axis != Some(*axis);
    (0..dims.rank).rev().find(is_long).unwrap_or(usize::from(row_axis == Some(0)))
}

/// The strides of the same elements seen in other dimensions, if there are any: each of the tensor's own dimensions is divided,
/// or some that follow each other without gaps are one.
#[inline]
fn strides_as(shape: &ElementShape, seen: &Dims) -> Option<Index> {
    let (own, mut strides) = (&shape.dims, [0; MAX_RANK]);
    let (mut from, mut to) = (own.rank, seen.rank);
    while from > 0 {
        from -= 1;
        let (first, mut count, mut made) = (shape.strides[from], own.sizes[from], 1);
        while made < count {
            to = to.checked_sub(1)?;
            strides[to] = first * made;
            made *= seen.sizes[to];
            while count < made {
                from = from.checked_sub(1)?;
                if own.sizes[from] > 1 && shape.strides[from] != first * count {
                    return None;
                }
                count *= own.sizes[from];
            }
        }
    }
    Some(strides)
}

impl<'t, 'a, T: Copy> Lines<'t, 'a, T> {
    /// The lines of a tensor.
    #[inline]
    pub fn new(tensor: &'t Elements<'a, T>) -> Self {
        Lines { tensor, strides: strides(tensor) }
    }

    /// Elements from `index` on, in the dimensions seen, each `step` further along dimension `axis` than the one before.
    #[inline]
    pub fn line(&self, index: &Index, axis: usize, step: i64) -> LineRef<'t, 'a, T> {
        let even = self.strides.map(|strides| {
            let start = self.tensor.shape.offset;
            let start = index.iter().zip(&strides).fold(start, |sum, (i, stride)| sum + i * stride);
            (start, strides[axis] as isize * step as isize)
        });
        LineRef { tensor: self.tensor, index: *index, axis, step, even }
    }

    /// Where the tensor broadcasts to another of `rank` dimensions: the elements for those from `index` on along `axis`.
    #[inline]
    pub fn broadcast(&self, rank: usize, index: &Index, axis: usize) -> LineRef<'t, 'a, T> {
        let seen = &self.tensor.seen;
        let own = (axis + seen.rank).checked_sub(rank).filter(|own| seen.sizes[*own] > 1);
        self.line(&seen.broadcast(rank, index), own.unwrap_or(0), i64::from(own.is_some()))
    }
}

impl<'a, T: Copy> LineRef<'_, 'a, T> {
    /// The i-th element.
    #[inline]
    pub fn get(&self, i: usize) -> T {
        match self.even {
            Some((start, stride)) => self.tensor.element(start.wrapping_add_signed(stride * i as isize)),
            None => {
                let mut index = self.index;
                index[self.axis] = index[self.axis].wrapping_add_signed(self.step as isize * i as isize);
                self.tensor.at(&index)
            }
        }
    }

    /// The first elements, if they lie side by side.
    #[inline]
    pub fn slice(&self, count: usize) -> Option<&'a [T]> {
        match self.even {
            Some((start, 1)) => Some(self.tensor.data.slice(start, count)),
            _ => None,
        }
    }

    /// Calls `f` with each of the first elements.
    #[inline]
    pub fn for_each(&self, count: usize, mut f: impl FnMut(usize, T)) {
        match self.slice(count) {
            Some(slice) => slice.iter().enumerate().for_each(|(i, x)| f(i, *x)),
            None => (0..count).for_each(|i| f(i, self.get(i))),
        }
    }
}

/// Elements of a tensor along one dimension, to be written.
#[derive(Debug)]
pub struct LineMut<'a, T> {
    /// From the first element to the last.
    data: &'a mut [T],
    /// The distance from one to the next.
    stride: usize,
}

impl<'o, T> LineMut<'o, T> {
    /// Elements of a tensor from `index` on along a dimension that does not count the rows.
    #[inline]
    pub fn new(output: &'o mut ElementsMut<'_, T>, index: &Index, axis: usize, count: usize) -> Self {
        let stride = output.shape.strides[axis].max(1);
        let start = output.shape.position(index);
        LineMut { data: output.data.slice(start, (count - 1) * stride + 1), stride }
    }

    /// Number of elements.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "no line is empty")]
    pub fn len(&self) -> usize {
        self.data.len().div_ceil(self.stride)
    }

    /// The elements, if they lie side by side.
    #[inline]
    pub fn slice(&mut self) -> Option<&mut [T]> {
        (self.stride == 1).then_some(&mut *self.data)
    }

    /// The elements from first to last.
    #[inline]
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.data.iter_mut().step_by(self.stride)
    }
}

impl<T: Copy> LineMut<'_, T> {
    /// Copies as many elements of another line.
    #[inline]
    pub fn copy(&mut self, from: &LineRef<'_, '_, T>) {
        let count = self.len();
        if let (Some(to), Some(from)) = (self.slice(), from.slice(count)) {
            return to.copy_from_slice(from);
        }
        self.iter_mut().enumerate().for_each(|(i, element)| *element = from.get(i));
    }
}

/// Calls `f` with the lines that together are the rows `y` of a tensor, or all of it if it is one row: with the index of each
/// line's first element, and the dimension along which it goes.
#[inline]
pub fn for_each_line<T>(
    output: &mut ElementsMut<'_, T>,
    y: Range<usize>,
    mut f: impl FnMut(&Index, usize, LineMut<'_, T>),
) {
    let axis = line_axis(&output.shape.dims, output.shape.row_axis);
    for_each_line_along(output, axis, y, |index, line| f(index, axis, line));
}

/// As [`for_each_line`], along this dimension, which does not count the rows.
#[inline]
pub fn for_each_line_along<T>(
    output: &mut ElementsMut<'_, T>,
    axis: usize,
    y: Range<usize>,
    mut f: impl FnMut(&Index, LineMut<'_, T>),
) {
    let mut shape = output.shape;
    let count = core::mem::replace(&mut shape.dims.sizes[axis], 1);
    shape.for_each(y, |index| f(index, LineMut::new(output, index, axis, count)));
}
