//! Whole tensors of any rank, element by element.
//!
//! Tensors that kernels cannot see by rows are accessed through this module. An operator names an element by its index
//! in the dimensions in which it sees the tensor. The tensor's own dimensions and strides say where in memory the
//! element lies. As everywhere, a kernel makes only a range of rows of the output.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::Elements;
//!
//! let x = Elements::dense(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]);
//! assert_eq!(x.at(&[1, 0, 0, 0, 0, 0]), 4.0);
//! // The same elements in other dimensions.
//! assert_eq!(x.seen_as(&[3, 2]).at(&[1, 0, 0, 0, 0, 0]), 3.0);
//! ```

use core::ops::Range;

use super::rows::{RowShape, Rows, RowsMut, ring_of};
use super::span::{Span, SpanMut};

/// Largest rank of a tensor that is not dense. A dense one of any rank can be given as [`ElementShape::flat`] if
/// the operator sees it in at most this rank.
pub const MAX_RANK: usize = 6;

/// One index per dimension, outermost first; 0 beyond the rank.
pub type Index = [usize; MAX_RANK];

/// The dimensions of a tensor as an operator sees them, row-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dims {
    /// Number of dimensions.
    pub rank: usize,
    /// Their sizes; 1 beyond the rank.
    pub sizes: [usize; MAX_RANK],
}

impl Dims {
    /// The dimensions of these sizes, at most [`MAX_RANK`] of them.
    pub const fn new(sizes: &[usize]) -> Self {
        let mut dims = Dims { rank: sizes.len(), sizes: [1; MAX_RANK] };
        let mut axis = 0;
        while axis < sizes.len() {
            dims.sizes[axis] = sizes[axis];
            axis += 1;
        }
        dims
    }

    /// Number of elements.
    pub const fn elements(&self) -> usize {
        let mut product = 1;
        let mut axis = 0;
        while axis < self.rank {
            product *= self.sizes[axis];
            axis += 1;
        }
        product
    }

    /// Places in row-major order from one index to the next in each dimension; 0 beyond the rank.
    pub const fn strides(&self) -> Index {
        let mut strides = [0; MAX_RANK];
        let mut stride = 1;
        let mut axis = self.rank;
        while axis > 0 {
            axis -= 1;
            strides[axis] = stride;
            stride *= self.sizes[axis];
        }
        strides
    }

    /// The place of an element in row-major order.
    #[inline]
    pub fn linear(&self, index: &Index) -> usize {
        index[..self.rank].iter().zip(&self.sizes).fold(0, |linear, (i, size)| linear * size + i)
    }

    /// The index of the element at this place in row-major order.
    #[inline]
    pub fn index(&self, mut linear: usize) -> Index {
        let mut index = [0; MAX_RANK];
        for axis in (1..self.rank).rev() {
            index[axis] = linear % self.sizes[axis];
            linear /= self.sizes[axis];
        }
        index[0] = linear;
        index
    }

    /// The index in these dimensions, aligned at the last, of the element that broadcasts to `index` of a tensor of
    /// `rank` dimensions.
    #[inline]
    pub fn broadcast(&self, rank: usize, index: &Index) -> Index {
        let mut own = [0; MAX_RANK];
        let skip = rank - self.rank;
        for axis in 0..self.rank {
            if self.sizes[axis] != 1 {
                own[axis] = index[axis + skip];
            }
        }
        own
    }

    /// Calls `f` with every index of these dimensions, in row-major order.
    #[inline]
    pub fn for_each(&self, mut f: impl FnMut(&Index)) {
        walk(&[0; MAX_RANK], &self.sizes, &mut f);
    }
}

/// Some dimensions of a tensor, ascending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Axes {
    /// How many.
    pub count: usize,
    /// Which; 0 beyond the count.
    pub axes: Index,
}

impl Axes {
    /// These dimensions, at most [`MAX_RANK`] of them.
    pub const fn new(list: &[usize]) -> Self {
        let mut axes = [0; MAX_RANK];
        let mut i = 0;
        while i < list.len() {
            axes[i] = list[i];
            i += 1;
        }
        Axes { count: list.len(), axes }
    }

    /// As a slice.
    #[inline]
    pub fn as_slice(&self) -> &[usize] {
        &self.axes[..self.count]
    }
}

/// Calls `f` with every index from `starts` to before `ends`, in row-major order.
#[inline]
fn walk(starts: &Index, ends: &Index, f: &mut impl FnMut(&Index)) {
    if starts.iter().zip(ends).any(|(start, end)| start >= end) {
        return;
    }
    let mut index = *starts;
    loop {
        f(&index);
        let mut axis = MAX_RANK;
        loop {
            if axis == 0 {
                return;
            }
            axis -= 1;
            index[axis] += 1;
            if index[axis] < ends[axis] {
                break;
            }
            index[axis] = starts[axis];
        }
    }
}

/// Where the elements of a tensor lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementShape {
    /// The tensor's own dimensions.
    pub dims: Dims,
    /// Elements from one index to the next in each dimension.
    pub strides: [usize; MAX_RANK],
    /// Where the element with all indices 0 would lie if its row were in slot 0 of the ring.
    pub offset: usize,
    /// The dimension that counts the rows of a ring; none for a tensor that is one row, whose elements lie in row-major
    /// order.
    pub row_axis: Option<usize>,
    /// Rows that the ring holds.
    pub ring_rows: usize,
    /// Slot of row 0 of the frame.
    pub first: usize,
}

impl ElementShape {
    /// A tensor that is one row: its elements in row-major order.
    pub const fn dense(sizes: &[usize]) -> Self {
        let dims = Dims::new(sizes);
        let strides = dims.strides();
        ElementShape { dims, strides, offset: 0, row_axis: None, ring_rows: 1, first: 0 }
    }

    /// A dense tensor of any rank, if only the row-major order matters.
    pub const fn flat(elements: usize) -> Self {
        ElementShape::dense(&[elements])
    }

    /// An image of dimensions `[1, C, H, W]` stored as rows of `[W, C]`.
    pub const fn channels_first(rows: RowShape) -> Self {
        ElementShape {
            dims: Dims::new(&[1, rows.channels, rows.height, rows.width]),
            strides: [0, 1, rows.row_stride(), rows.channels, 0, 0],
            offset: 0,
            row_axis: Some(2),
            ring_rows: rows.ring_rows,
            first: rows.first,
        }
    }

    /// An image of dimensions `[1, H, W, C]` stored as rows of `[W, C]`.
    pub const fn channels_last(rows: RowShape) -> Self {
        ElementShape {
            dims: Dims::new(&[1, rows.height, rows.width, rows.channels]),
            strides: [0, rows.row_stride(), rows.channels, 1, 0, 0],
            offset: 0,
            row_axis: Some(1),
            ring_rows: rows.ring_rows,
            first: rows.first,
        }
    }

    /// A tensor whose elements lie in row-major order, stored as rows. This dimension counts the rows; all dimensions
    /// before it are 1.
    pub const fn by_rows(sizes: &[usize], row_axis: usize, ring_rows: usize) -> Self {
        let dense = ElementShape::dense(sizes);
        ElementShape { row_axis: Some(row_axis), ring_rows, ..dense }
    }

    /// The same tensor of which only these rows are stored, the first at the start of the storage.
    pub fn stored(mut self, rows: &Range<usize>) -> Self {
        (self.ring_rows, self.first) = ring_of(rows);
        self
    }

    /// Calls `f` with every index whose row is one of `y`; with every index if the tensor is one row.
    #[inline]
    pub fn for_each(&self, y: Range<usize>, mut f: impl FnMut(&Index)) {
        let mut starts = [0; MAX_RANK];
        let mut ends = self.dims.sizes;
        if let Some(row) = self.row_axis {
            (starts[row], ends[row]) = (y.start, y.end);
        }
        walk(&starts, &ends, &mut f);
    }

    /// Where in the storage the element of this index lies.
    #[inline]
    pub fn position(&self, index: &Index) -> usize {
        let mut position = self.offset;
        for (axis, (&i, stride)) in index.iter().zip(&self.strides).enumerate() {
            let i = if self.row_axis == Some(axis) { (self.first + i) % self.ring_rows } else { i };
            position += i * stride;
        }
        position
    }
}

/// A tensor that a kernel reads whole.
///
/// A view takes the elements of a tensor in the row-major order of the tensor's own dimensions, which `shape` has. The
/// one exception is the view that only swaps the order of an image's dimensions: there `shape` is in the order seen.
#[derive(Debug, Clone, Copy)]
pub struct Elements<'a, T = f32> {
    /// The storage.
    pub data: Span<'a, T>,
    /// Where in it the elements are.
    pub shape: ElementShape,
    /// The dimensions in which the operator sees the tensor, with as many elements.
    pub seen: Dims,
}

/// A tensor of which a kernel writes rows.
#[derive(Debug)]
pub struct ElementsMut<'a, T = f32> {
    /// The storage.
    pub data: SpanMut<'a, T>,
    /// Where in it the elements are.
    pub shape: ElementShape,
}

impl<'a, T: Copy> Elements<'a, T> {
    /// A tensor that is one row: its elements in row-major order.
    pub const fn dense(data: &'a [T], sizes: &[usize]) -> Self {
        Elements::new(Span::new(data), ElementShape::dense(sizes))
    }

    /// An image, with dimensions `[1, C, H, W]`.
    pub const fn channels_first(rows: Rows<'a, T>) -> Self {
        Elements::new(rows.data, ElementShape::channels_first(rows.shape))
    }

    /// An image, with dimensions `[1, H, W, C]`.
    pub const fn channels_last(rows: Rows<'a, T>) -> Self {
        Elements::new(rows.data, ElementShape::channels_last(rows.shape))
    }

    /// The tensor in its own dimensions.
    const fn new(data: Span<'a, T>, shape: ElementShape) -> Self {
        Elements { data, shape, seen: shape.dims }
    }

    /// The same tensor seen in these dimensions.
    pub const fn seen_as(mut self, sizes: &[usize]) -> Self {
        self.seen = Dims::new(sizes);
        self
    }

    /// The element at this place in the row-major order of the tensor's own dimensions.
    #[inline]
    pub fn get(&self, linear: usize) -> T {
        match self.shape.row_axis {
            None => self.element(self.shape.offset + linear),
            Some(_) => self.element(self.shape.position(&self.shape.dims.index(linear))),
        }
    }

    /// The element of this index in the dimensions seen.
    #[inline]
    pub fn at(&self, index: &Index) -> T {
        if self.shape.row_axis.is_some() && self.seen == self.shape.dims {
            self.element(self.shape.position(index))
        } else {
            self.get(self.seen.linear(index))
        }
    }

    /// All elements of a tensor that is one row and stored alone.
    #[inline]
    pub fn values(&self) -> &'a [T] {
        self.data.slice(0, self.shape.dims.elements())
    }

    #[inline]
    pub(crate) fn element(&self, at: usize) -> T {
        self.data.slice(at, 1)[0]
    }
}

impl<'a, T> ElementsMut<'a, T> {
    /// A tensor that is one row: its elements in row-major order.
    pub const fn dense(data: &'a mut [T], sizes: &[usize]) -> Self {
        ElementsMut { data: SpanMut::new(data), shape: ElementShape::dense(sizes) }
    }

    /// An image of dimensions `[1, C, H, W]`.
    pub const fn channels_first(rows: RowsMut<'a, T>) -> Self {
        ElementsMut { data: rows.data, shape: ElementShape::channels_first(rows.shape) }
    }

    /// An image of dimensions `[1, H, W, C]`.
    pub const fn channels_last(rows: RowsMut<'a, T>) -> Self {
        ElementsMut { data: rows.data, shape: ElementShape::channels_last(rows.shape) }
    }

    /// The element of this index in the tensor's own dimensions.
    #[inline]
    pub fn at(&mut self, index: &Index) -> &mut T {
        &mut self.data.slice(self.shape.position(index), 1)[0]
    }

    /// Writes `f(index)` at every index whose row is one of `y`; at every index if the tensor is one row.
    #[inline]
    pub fn fill(&mut self, y: Range<usize>, mut f: impl FnMut(&Index) -> T) {
        let shape = self.shape;
        if shape.row_axis.is_some() {
            shape.for_each(y, |index| self.data.slice(shape.position(index), 1)[0] = f(index));
            return;
        }
        let mut elements = self.data.slice(shape.offset, shape.dims.elements()).iter_mut();
        shape.for_each(y, |index| {
            if let Some(element) = elements.next() {
                *element = f(index);
            }
        });
    }
}
