//! Rings of rows as kernels see them.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::rows::{RowShape, Rows};
//! use csdfc_kernels::span::Span;
//!
//! // The last two rows of a tensor `[3, 1, 1]`, in a ring of two: row 2 lies where row 0 was.
//! let ring = Rows { data: Span::new(&[20.0, 10.0]), shape: RowShape::dense(3, 1, 1, 2) };
//! assert_eq!((ring.row(1), ring.row(2)), (&[10.0][..], &[20.0][..]));
//! ```

use core::ops::Range;

use super::span::{Span, SpanMut};

/// The geometry of a ring of rows of `[width, channels]` pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowShape {
    /// Rows of the tensor, H. A tensor that is not made of rows is one row of one pixel.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Channels of a pixel.
    pub channels: usize,
    /// Rows that the ring holds.
    pub ring_rows: usize,
    /// Slot of row 0 of the frame. It is 0, unless the ring is between pipelined partitions: its row count runs on.
    pub first: usize,
}

impl RowShape {
    /// A dense tensor that is stored whole or as a ring of `ring_rows` rows.
    pub const fn dense(height: usize, width: usize, channels: usize, ring_rows: usize) -> Self {
        RowShape { height, width, channels, ring_rows, first: 0 }
    }

    /// The same tensor, but only these rows are stored. The first of them is at the start of the storage.
    pub fn stored(mut self, rows: &Range<usize>) -> Self {
        (self.ring_rows, self.first) = ring_of(rows);
        self
    }

    /// Elements from one row to the next.
    pub const fn row_stride(&self) -> usize {
        self.width * self.channels
    }

    /// The element at which row `y` begins in the ring's storage.
    #[inline]
    pub const fn start(&self, y: usize) -> usize {
        (self.first + y) % self.ring_rows * self.row_stride()
    }
}

/// The size in rows of a ring that stores exactly these rows, and the slot that row 0 would have in it.
pub(crate) fn ring_of(rows: &Range<usize>) -> (usize, usize) {
    let ring_rows = rows.len().max(1);
    (ring_rows, (ring_rows - rows.start % ring_rows) % ring_rows)
}

/// Rows that a kernel reads.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T = f32> {
    /// The ring's storage, `ring_rows · row_stride` elements.
    pub data: Span<'a, T>,
    /// Its geometry.
    pub shape: RowShape,
}

/// Rows that a kernel writes.
#[derive(Debug)]
pub struct RowsMut<'a, T = f32> {
    /// The ring's storage, `ring_rows · row_stride` elements.
    pub data: SpanMut<'a, T>,
    /// Its geometry.
    pub shape: RowShape,
}

impl<'a, T> Rows<'a, T> {
    /// Constants that are no image: one row of one pixel.
    pub const fn line(data: &'a [T]) -> Self {
        Rows { data: Span::new(data), shape: RowShape::dense(1, 1, data.len(), 1) }
    }

    /// All elements of row `y`: pixel x's channels are from `x · channels` on.
    #[inline]
    pub fn row(&self, y: usize) -> &'a [T] {
        self.data.slice(self.shape.start(y), self.shape.row_stride())
    }
}

impl<T> RowsMut<'_, T> {
    /// All elements of row `y`: pixel x's channels are from `x · channels` on.
    #[inline]
    pub fn row(&mut self, y: usize) -> &mut [T] {
        self.data.slice(self.shape.start(y), self.shape.row_stride())
    }
}
