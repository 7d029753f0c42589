//! The one block of memory that the plan shares out, and the slices of it that a firing borrows.
#![allow(unsafe_code, reason = "slices of the arena that do not overlap are borrowed at the same time")]
#![allow(dead_code, reason = "not every plan hands rows on")]

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::ARENA_BYTES;

/// The memory of the application: buffers and workspace, exactly [`ARENA_BYTES`] of it.
///
/// A model borrows it for as long as the model lives, so that no two run in it at once. What it holds between frames
/// is of no account, except to a pipeline.
pub struct Arena {
    elements: [f32; ARENA_BYTES / 4],
}

impl Arena {
    /// An arena, for a static or the stack.
    pub const fn new() -> Self {
        Arena { elements: [0.0; ARENA_BYTES / 4] }
    }

    /// The ready static arena, the first time; nothing after that.
    pub fn take() -> Option<&'static mut Arena> {
        struct Ready(UnsafeCell<Arena>);
        // SAFETY: the flag below lets one caller have it, once.
        unsafe impl Sync for Ready {}
        static READY: Ready = Ready(UnsafeCell::new(Arena::new()));
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: nobody else has or will have a reference: the flag was not set before.
        Some(unsafe { &mut *READY.0.get() })
    }

    /// Access by places.
    pub(crate) fn memory(&mut self) -> Memory<'_> {
        Memory { start: self.elements.as_mut_ptr(), arena: PhantomData }
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

/// A ring of rows in the arena: row y of a frame is in slot `y % rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Bytes from the start of the arena.
    pub offset: usize,
    /// Rows that it holds.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
}

impl Ring {
    const fn bytes(self) -> usize {
        self.rows * self.row_bytes
    }

    /// The ring of one row that a row's slot is.
    const fn slot(self, y: usize) -> Ring {
        Ring { offset: self.offset + y % self.rows * self.row_bytes, rows: 1, row_bytes: self.row_bytes }
    }

    const fn is_within_arena(self) -> bool {
        self.offset.is_multiple_of(4)
            && self.row_bytes.is_multiple_of(4)
            && self.bytes() <= ARENA_BYTES
            && self.offset <= ARENA_BYTES - self.bytes()
    }

    const fn overlaps(self, other: Ring) -> bool {
        self.offset < other.offset + other.bytes() && other.offset < self.offset + self.bytes()
    }
}

/// The arena, borrowed.
pub(crate) struct Memory<'a> {
    start: *mut f32,
    arena: PhantomData<&'a mut Arena>,
}

impl Memory<'_> {
    /// The same, for as long as this one is out of use.
    pub fn again(&mut self) -> Memory<'_> {
        Memory { start: self.start, arena: PhantomData }
    }

    /// The elements of some rings, to be read, and of another, to be written. With constant rings the conditions are
    /// decided when the crate is compiled.
    ///
    /// # Panics
    /// If a ring is not within the arena, or what is written overlaps with what is read. In a plan that was checked
    /// neither happens.
    #[inline(always)]
    pub fn slices<const N: usize>(&mut self, read: [Ring; N], write: Ring) -> ([&[f32]; N], &mut [f32]) {
        for ring in read {
            assert!(!ring.overlaps(write));
        }
        assert!(write.is_within_arena());
        let written = self.at(write);
        let read = read.map(|ring| self.elements(ring));
        // SAFETY: the arena is borrowed exclusively for as long as the slices live, the ring is within it, and what
        // is written is in none of those that are read.
        (read, unsafe { core::slice::from_raw_parts_mut(written, write.bytes() / 4) })
    }

    /// The elements of some rings, to be read.
    ///
    /// # Panics
    /// If a ring is not within the arena.
    #[inline(always)]
    pub fn read<const N: usize>(&self, read: [Ring; N]) -> [&[f32]; N] {
        read.map(|ring| self.elements(ring))
    }

    /// Row `y` of a ring, to be read.
    #[inline(always)]
    pub fn row<const N: usize>(&self, ring: Ring, y: usize) -> &[f32; N] {
        // A row has as many elements as the caller says.
        self.elements(ring.slot(y)).first_chunk().unwrap()
    }

    /// Row `y` of a ring, to be written.
    #[inline(always)]
    pub fn row_mut<const N: usize>(&mut self, ring: Ring, y: usize) -> &mut [f32; N] {
        let (_, row) = self.slices([], ring.slot(y));
        // A row has as many elements as the caller says.
        row.first_chunk_mut().unwrap()
    }

    /// Copies row `y` from one ring to another.
    #[inline(always)]
    pub fn copy_row(&mut self, from: Ring, from_y: usize, to: Ring, to_y: usize) {
        let ([from], to) = self.slices([from.slot(from_y)], to.slot(to_y));
        to.copy_from_slice(from);
    }

    #[inline(always)]
    fn elements(&self, ring: Ring) -> &[f32] {
        assert!(ring.is_within_arena());
        // SAFETY: within the arena, which is borrowed; nothing is written while the slice lives, for that takes an
        // exclusive borrow, or is found by `slices` to be elsewhere.
        unsafe { core::slice::from_raw_parts(self.at(ring), ring.bytes() / 4) }
    }

    #[inline(always)]
    fn at(&self, ring: Ring) -> *mut f32 {
        self.start.wrapping_add(ring.offset / 4)
    }
}
