//! The storage of rings as kernels see it.
//!
//! A stage of a pipeline writes rows of a ring while another stage reads other rows of it. A slice of the whole ring
//! would claim all of its elements. So storage is a start and a length here, and a slice is made only of the elements
//! that a kernel needs.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::span::Span;
//!
//! let span = Span::new(&[1.0, 2.0, 3.0, 4.0]);
//! assert_eq!(span.slice(1, 2), [2.0, 3.0]);
//! assert_eq!(span.part(2, 2).slice(0, 1), [3.0]);
//! ```
#![allow(unsafe_code, reason = "slices of storage that is shared; each block says why it is sound")]

use core::marker::PhantomData;

/// Types for which any bytes are a value.
///
/// # Safety
/// Every pattern of its bits is a value of the type, and none of its bytes is padding.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}

// SAFETY: every pattern of 32 bits is a float, and none of its bytes is padding.
unsafe impl Plain for f32 {}
// SAFETY: every pattern of 64 bits is an `i64`, and none of its bytes is padding.
unsafe impl Plain for i64 {}
// SAFETY: every byte is a `u8`.
unsafe impl Plain for u8 {}

/// Elements of which a kernel reads some.
#[derive(Debug)]
pub struct Span<'a, T = f32> {
    start: *const T,
    len: usize,
    borrow: PhantomData<&'a [T]>,
}

/// Elements of which a kernel writes some.
#[derive(Debug)]
pub struct SpanMut<'a, T = f32> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

impl<T> Clone for Span<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Span<'_, T> {}

// SAFETY: a span gives out shared slices of its elements, as a `&[T]` does, which may be sent if `T` is `Sync`.
unsafe impl<T: Sync> Send for Span<'_, T> {}
// SAFETY: a span gives out shared slices of its elements, as a `&[T]` does, which may be shared if `T` is `Sync`.
unsafe impl<T: Sync> Sync for Span<'_, T> {}
// SAFETY: a span reaches its elements as a `&mut [T]` does, which may be sent if `T` is `Send`.
unsafe impl<T: Send> Send for SpanMut<'_, T> {}
// SAFETY: every method that reaches elements takes `&mut self` or `self`, so a shared span reaches none.
unsafe impl<T: Sync> Sync for SpanMut<'_, T> {}

impl<'a, T> From<&'a [T]> for Span<'a, T> {
    fn from(data: &'a [T]) -> Self {
        Span::new(data)
    }
}

impl<'a, T> From<&'a mut [T]> for SpanMut<'a, T> {
    fn from(data: &'a mut [T]) -> Self {
        SpanMut::new(data)
    }
}

impl<'a, T> Span<'a, T> {
    /// All of a slice.
    pub const fn new(data: &'a [T]) -> Self {
        Span { start: data.as_ptr(), len: data.len(), borrow: PhantomData }
    }

    /// Elements that others may write, except those that are asked for.
    ///
    /// # Safety
    /// `start` is good for `len` elements as long as `'a`, and nobody writes those that are asked for before the last
    /// use of them.
    pub const unsafe fn shared(start: *const T, len: usize) -> Self {
        Span { start, len, borrow: PhantomData }
    }

    /// Elements `start .. start + len`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn slice(&self, start: usize, len: usize) -> &'a [T] {
        assert!(start <= self.len && len <= self.len - start, "elements beyond the storage");
        // SAFETY: the assertion keeps the elements within `len`. They are borrowed for `'a` and not written meanwhile,
        // by `new`, `of_bytes` or `# Safety` of `shared`.
        unsafe { core::slice::from_raw_parts(self.start.add(start), len) }
    }

    /// Elements `start .. start + len` as a span.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn part(self, start: usize, len: usize) -> Self {
        assert!(start <= self.len && len <= self.len - start, "elements beyond the storage");
        Span { start: self.start.wrapping_add(start), len, borrow: PhantomData }
    }
}

impl<'a, T: Plain> Span<'a, T> {
    /// Bytes as the elements that they are.
    ///
    /// # Panics
    /// If there are bytes that begin at no multiple of an element's alignment, or end within an element.
    #[inline(always)]
    pub fn of_bytes(bytes: &'a [u8]) -> Self {
        if bytes.is_empty() {
            return Span::new(&[]);
        }
        let (start, len) = (bytes.as_ptr().cast::<T>(), bytes.len() / size_of::<T>());
        assert!(start.is_aligned() && bytes.len().is_multiple_of(size_of::<T>()), "bytes of other elements");
        Span { start, len, borrow: PhantomData }
    }
}

impl<'a, T: Plain> SpanMut<'a, T> {
    /// Bytes as the elements that they are.
    ///
    /// # Panics
    /// If there are bytes that begin at no multiple of an element's alignment, or end within an element.
    #[inline(always)]
    pub fn of_bytes(bytes: &'a mut [u8]) -> Self {
        if bytes.is_empty() {
            return SpanMut::new(&mut []);
        }
        let (start, len) = (bytes.as_mut_ptr().cast::<T>(), bytes.len() / size_of::<T>());
        assert!(start.is_aligned() && bytes.len().is_multiple_of(size_of::<T>()), "bytes of other elements");
        SpanMut { start, len, borrow: PhantomData }
    }

    /// All of them.
    pub fn all(self) -> &'a mut [T] {
        // SAFETY: `start` is good for `len` elements for `'a`, and nobody else uses them, by `new`, `of_bytes` or
        // `# Safety` of `shared`. `self` is used up, so no other slice of it is left.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl<'a, T> SpanMut<'a, T> {
    /// All of a slice.
    pub const fn new(data: &'a mut [T]) -> Self {
        SpanMut { start: data.as_mut_ptr(), len: data.len(), borrow: PhantomData }
    }

    /// Elements that others may read and write, except those that are asked for.
    ///
    /// # Safety
    /// `start` is good for `len` elements as long as `'a`, and nobody else reads or writes those that are asked for
    /// before the last use of them.
    pub const unsafe fn shared(start: *mut T, len: usize) -> Self {
        SpanMut { start, len, borrow: PhantomData }
    }

    /// The same, for as long as this one is out of use.
    pub fn reborrow(&mut self) -> SpanMut<'_, T> {
        SpanMut { start: self.start, len: self.len, borrow: PhantomData }
    }

    /// Elements `start .. start + len`.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn slice(&mut self, start: usize, len: usize) -> &mut [T] {
        assert!(start <= self.len && len <= self.len - start, "elements beyond the storage");
        // SAFETY: the assertion keeps the elements within `len`. `self` is borrowed as long as the slice, so it gives
        // out no other, and nobody else uses them, by `new`, `of_bytes` or `# Safety` of `shared`.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// Elements `start .. start + len` as a span.
    ///
    /// # Panics
    /// If there are fewer.
    #[inline(always)]
    pub fn part(self, start: usize, len: usize) -> Self {
        assert!(start <= self.len && len <= self.len - start, "elements beyond the storage");
        SpanMut { start: self.start.wrapping_add(start), len, borrow: PhantomData }
    }

    /// Where it begins, and its elements.
    pub(crate) fn raw(&mut self) -> (*mut T, usize) {
        (self.start, self.len)
    }
}
