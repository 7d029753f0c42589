//! Rows that several workers write at once.
#![allow(unsafe_code, reason = "writing one slice from several threads; each block says why it is sound")]

use core::marker::PhantomData;

use super::rows::{RowShape, RowsMut};
use super::span::SpanMut;

/// Rows that several workers write at once. Each worker writes its own elements.
#[derive(Debug)]
pub struct SharedRows<'a, T = f32> {
    data: *mut T,
    len: usize,
    shape: RowShape,
    borrow: PhantomData<&'a mut [T]>,
}

impl<T> Clone for SharedRows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SharedRows<'_, T> {}

// SAFETY: elements are reached by `rows` and `elements`, whose `# Safety` asks that no one else uses them meanwhile,
// and by the address of `pointer`, which is written to under the same condition.
unsafe impl<T: Send> Send for SharedRows<'_, T> {}
// SAFETY: all methods take `&self`, and what they give out may be used by one thread at a time only, as for `Send`. `T:
// Send` lets another thread write it.
unsafe impl<T: Send> Sync for SharedRows<'_, T> {}

impl<'a, T> SharedRows<'a, T> {
    /// The rows, borrowed as long as any worker may write them.
    pub fn new(rows: &'a mut RowsMut<'_, T>) -> Self {
        let (data, len) = rows.data.raw();
        SharedRows { data, len, shape: rows.shape, borrow: PhantomData }
    }

    /// The rows as one worker sees them.
    ///
    /// # Safety
    /// While the result lives, no one else reads or writes the rows that it is asked for.
    pub(crate) unsafe fn rows(&self) -> RowsMut<'a, T> {
        // SAFETY: `data` and `len` are of the rows that `new` borrowed for `'a`, and no one else uses the rows that are
        // asked for: `# Safety` of this function.
        RowsMut { data: unsafe { SpanMut::shared(self.data, self.len) }, shape: self.shape }
    }

    /// Pixels of a row.
    pub(crate) fn width(&self) -> usize {
        self.shape.width
    }

    /// The element at which row `y` begins.
    #[inline(always)]
    pub(crate) fn start(&self, y: usize) -> usize {
        self.shape.start(y)
    }

    /// The element at which pixel `x` begins, in the row that begins at `start`.
    #[inline(always)]
    pub(crate) fn pixel(&self, start: usize, x: usize) -> usize {
        start + x * self.pixel_stride()
    }

    /// Elements from a pixel to the next of its row.
    #[inline(always)]
    pub(crate) fn pixel_stride(&self) -> usize {
        self.shape.channels
    }

    /// `count` elements from `start` on.
    ///
    /// # Safety
    /// No one else reads or writes these elements while the result lives.
    ///
    /// # Panics
    /// If they are not within the ring.
    #[inline(always)]
    pub(crate) unsafe fn elements(&self, start: usize, count: usize) -> &'a mut [T] {
        // SAFETY: `pointer` asserts that they are within what `new` borrowed for `'a`, and no one else uses them:
        // `# Safety` of this function.
        unsafe { core::slice::from_raw_parts_mut(self.pointer(start, count), count) }
    }

    /// Where `count` elements from `start` on begin.
    ///
    /// # Panics
    /// If they are not within the ring.
    #[inline(always)]
    pub(crate) fn pointer(&self, start: usize, count: usize) -> *mut T {
        assert!(start <= self.len && count <= self.len - start, "pixel beyond the ring");
        self.data.wrapping_add(start)
    }
}
