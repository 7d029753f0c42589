//! Rows that several workers write at once.
#![allow(unsafe_code, reason = "writing one slice from several threads; each block says why it is sound")]

use core::marker::PhantomData;

use super::rows::{RowShape, RowsMut};

/// Rows that several workers write at once, each its own elements of them.
#[derive(Debug, Clone, Copy)]
pub struct SharedRows<'a> {
    data: *mut f32,
    len: usize,
    shape: RowShape,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: elements are reached only through `SharedRows::elements` and `pointer`, whose callers share them out.
unsafe impl Send for SharedRows<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedRows<'_> {}

impl<'a> SharedRows<'a> {
    /// The rows, borrowed as long as any worker may write them.
    pub fn new(rows: &'a mut RowsMut<'_>) -> Self {
        let (data, len) = rows.data.raw();
        SharedRows { data, len, shape: rows.shape, borrow: PhantomData }
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

    /// The element at which pixel `x` begins of the row that begins at `start`.
    #[inline(always)]
    pub(crate) fn pixel(&self, start: usize, x: usize) -> usize {
        start + x * self.shape.channels
    }

    /// `count` elements from `start` on.
    ///
    /// # Safety
    /// No one else reads or writes these elements while the result lives.
    ///
    /// # Panics
    /// If they are not within the ring.
    #[inline(always)]
    pub(crate) unsafe fn elements(&self, start: usize, count: usize) -> &'a mut [f32] {
        // SAFETY: within the slice that was borrowed, and the caller's alone.
        unsafe { core::slice::from_raw_parts_mut(self.pointer(start, count), count) }
    }

    /// Where `count` elements from `start` on begin.
    ///
    /// # Panics
    /// If they are not within the ring.
    #[inline(always)]
    pub(crate) fn pointer(&self, start: usize, count: usize) -> *mut f32 {
        assert!(start <= self.len && count <= self.len - start, "pixel beyond the ring");
        self.data.wrapping_add(start)
    }
}
