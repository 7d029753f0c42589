//! The one block of memory that the plan shares out, and the spans of it that a firing borrows.
//!
//! Each part of the program that runs for itself, a model or a stage of a pipeline, reaches the rings of its own
//! table and no others. Parts that run at the same time are split off together. First it is seen that their tables
//! have no byte in common but those of rings between stages. Rings of one part may have bytes in common; the plan
//! says which of them may use them when. Whatever is borrowed for writing is seen to be apart from all that is
//! borrowed for reading at the same time.
#![allow(unsafe_code, reason = "spans of the arena that do not overlap are borrowed at the same time")]
#![allow(dead_code, reason = "not every plan hands rows on or has stages")]

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::ARENA_BYTES;
use crate::kernels::span::{Plain, Span, SpanMut};

/// The memory of the application: buffers and workspace, exactly [`ARENA_BYTES`] of it.
///
/// A model borrows it for as long as the model lives, so that no two run in it at once but those that may. What it
/// holds between frames is of no account.
#[repr(C, align(4))]
pub struct Arena {
    bytes: [u8; ARENA_BYTES],
}

impl Arena {
    /// An arena, for a static or the stack.
    pub const fn new() -> Self {
        Arena { bytes: [0; ARENA_BYTES] }
    }

    /// The ready static arena, the first time; nothing after that.
    pub fn take() -> Option<&'static mut Arena> {
        // From the start of a cache line on: a vector that lies in two lines takes twice as long.
        #[repr(align(64))]
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

    /// Splits it up among parts that run at the same time.
    ///
    /// # Panics
    /// If they have bytes in common. In a plan that was checked they have not.
    pub(crate) fn divide<D: Division>(&mut self) -> Parts<'_, D> {
        Parts::of(self.bytes.as_mut_ptr())
    }

    /// All of it, for one part.
    pub(crate) fn memory<P: Part>(&mut self) -> Memory<'_, P> {
        Memory { start: self.bytes.as_mut_ptr(), arena: PhantomData, part: PhantomData }
    }
}

impl Default for Arena {
    fn default() -> Self {
        Arena::new()
    }
}

/// Where a ring of rows lies: row y of a frame is in slot `y % rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes from the start of the arena.
    pub offset: usize,
    /// Rows that it holds.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Whether one stage writes it while another reads it: never the same row, as their counts of rows see to.
    pub shared: bool,
}

/// What runs for itself, and the rings that it reaches.
pub(crate) trait Part: Sized {
    /// Its rings.
    const PLACES: &'static [Place];
}

/// Parts that run at the same time.
pub(crate) trait Division {
    /// The rings of each.
    const PARTS: &'static [&'static [Place]];
}

/// A ring of a part, of rows of elements `T`.
pub(crate) struct Ring<P, T = f32> {
    place: Place,
    part: PhantomData<fn() -> (P, T)>,
}

impl<P, T> Clone for Ring<P, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P, T> Copy for Ring<P, T> {}

impl Place {
    const fn bytes(self) -> usize {
        self.rows * self.row_bytes
    }

    /// The ring of one row that a row's slot is.
    const fn slot(self, y: usize) -> Place {
        Place { offset: self.offset + y % self.rows * self.row_bytes, rows: 1, ..self }
    }

    /// Whether it is a ring of elements `T` within the arena, whose alignment is 4.
    const fn is_within_arena<T>(self) -> bool {
        align_of::<T>() <= 4
            && self.offset.is_multiple_of(size_of::<T>())
            && self.row_bytes.is_multiple_of(size_of::<T>())
            && self.bytes() <= ARENA_BYTES
            && self.offset <= ARENA_BYTES - self.bytes()
    }

    /// The ring of these rows alone that they are part of, in their order.
    ///
    /// # Panics
    /// If it has not as many rows.
    const fn part(self, rows: &Range<usize>) -> Place {
        assert!(rows.start <= rows.end && rows.end <= self.rows);
        Place { offset: self.offset + rows.start * self.row_bytes, rows: rows.end - rows.start, ..self }
    }

    const fn overlaps(self, other: Place) -> bool {
        self.bytes() > 0
            && other.bytes() > 0
            && self.offset < other.offset + other.bytes()
            && other.offset < self.offset + self.bytes()
    }

    /// Whether another part may have `other` while one has this.
    fn is_apart_from(self, other: Place) -> bool {
        !self.overlaps(other) || self.shared && self == other
    }
}

impl<P: Part, T> Ring<P, T> {
    /// A ring of the part, by its number.
    pub const fn of(number: usize) -> Self {
        Ring { place: P::PLACES[number], part: PhantomData }
    }
}

impl<P> Ring<P> {
    /// No ring: of no rows.
    pub const fn none() -> Self {
        Ring { place: Place { offset: 0, rows: 0, row_bytes: 0, shared: false }, part: PhantomData }
    }
}

impl<P, T> Ring<P, T> {
    /// These rows of it, as a ring of their own in which the first of them is in the first slot.
    ///
    /// # Panics
    /// If it has not as many rows.
    #[inline(always)]
    pub fn part(self, rows: &Range<usize>) -> Self {
        Ring { place: self.place.part(rows), part: PhantomData }
    }

    fn slot(self, y: usize) -> Self {
        Ring { place: self.place.slot(y), part: PhantomData }
    }
}

/// The rings of a part, borrowed.
pub(crate) struct Memory<'a, P> {
    start: *mut u8,
    arena: PhantomData<&'a mut Arena>,
    part: PhantomData<fn() -> P>,
}

// SAFETY: what it reaches is reached by nobody else at the same time: see `Parts::take`.
unsafe impl<P> Send for Memory<'_, P> {}

/// Memory of parts that run at the same time, to be taken one after another.
pub(crate) struct Parts<'a, D> {
    start: *mut u8,
    taken: usize,
    arena: PhantomData<&'a mut Arena>,
    division: PhantomData<fn() -> D>,
}

impl<'a, D: Division> Parts<'a, D> {
    /// The parts of a block that is borrowed as long as they are.
    fn of(start: *mut u8) -> Self {
        for (i, part) in D::PARTS.iter().enumerate() {
            for place in *part {
                let mut others = D::PARTS[..i].iter().flat_map(|other| other.iter());
                assert!(others.all(|other| place.is_apart_from(*other)));
            }
        }
        Parts { start, taken: 0, arena: PhantomData, division: PhantomData }
    }

    /// The memory of the next part.
    ///
    /// # Panics
    /// If it is another part's turn.
    pub fn take<P: Part>(&mut self) -> Memory<'a, P> {
        assert!(D::PARTS[self.taken] == P::PLACES);
        self.taken += 1;
        // Each part is taken once, and `of` has seen that no two have a byte in common, rings between stages
        // excepted.
        Memory { start: self.start, arena: PhantomData, part: PhantomData }
    }
}

impl<P: Part> Memory<'_, P> {
    /// The same, for as long as this one is out of use.
    pub fn again(&mut self) -> Memory<'_, P> {
        Memory { start: self.start, arena: PhantomData, part: PhantomData }
    }

    /// Splits it up among parts that run at the same time.
    ///
    /// # Panics
    /// If they have bytes in common, or rings that are none of this part. In a plan that was checked neither happens.
    pub fn divide<D: Division>(&mut self) -> Parts<'_, D> {
        assert!(D::PARTS.iter().copied().flatten().all(|place| P::PLACES.contains(place)));
        Parts::of(self.start)
    }

    /// Some rings or parts of them, to be read, and another, to be written. With constant rings the conditions are decided
    /// when the crate is compiled.
    ///
    /// # Panics
    /// If a ring is not within the arena, or what is written overlaps with what is read. In a plan that was checked
    /// neither happens.
    #[inline(always)]
    pub fn slices<I: Plain, O: Plain, const N: usize>(
        &mut self,
        read: [Ring<P, I>; N],
        write: Ring<P, O>,
    ) -> ([Span<'_, I>; N], SpanMut<'_, O>) {
        for ring in read {
            assert!(!ring.place.overlaps(write.place));
        }
        assert!(write.place.is_within_arena::<O>());
        // SAFETY: the part is borrowed exclusively for as long as the spans live, the ring is within the arena, and
        // what is written is in none of those that are read. Another stage may read other rows of the ring: those
        // that it has been told are there, and not yet released.
        let written = unsafe { SpanMut::shared(self.at(write), write.place.bytes() / size_of::<O>()) };
        (read.map(|ring| self.span(ring)), written)
    }

    /// As [`Memory::slices`], and a workspace, to be written too.
    ///
    /// # Panics
    /// As `slices`, and if the workspace overlaps with another ring.
    #[inline(always)]
    pub fn slices_and_workspace<I: Plain, O: Plain, const N: usize>(
        &mut self,
        read: [Ring<P, I>; N],
        write: Ring<P, O>,
        workspace: Ring<P>,
    ) -> ([Span<'_, I>; N], SpanMut<'_, O>, SpanMut<'_>) {
        for ring in read {
            assert!(!ring.place.overlaps(workspace.place));
        }
        assert!(!write.place.overlaps(workspace.place));
        assert!(workspace.place.is_within_arena::<f32>());
        // SAFETY: the part is borrowed exclusively for as long as the spans live, and the workspace is within the arena
        // and in none of the rings.
        let room = unsafe { SpanMut::shared(self.at(workspace), workspace.place.bytes() / 4) };
        let (read, written) = self.slices(read, write);
        (read, written, room)
    }

    /// As [`Memory::slices_and_workspace`], and a block of weights, to be read. Rings that there are not are [`Ring::none`].
    ///
    /// # Panics
    /// As `slices_and_workspace`, and if the block overlaps with what is written.
    #[inline(always)]
    pub fn slices_and_block<I: Plain, O: Plain, const N: usize>(
        &mut self,
        read: [Ring<P, I>; N],
        write: Ring<P, O>,
        workspace: Ring<P>,
        block: Ring<P, u8>,
    ) -> ([Span<'_, I>; N], SpanMut<'_, O>, SpanMut<'_>, Span<'_, u8>) {
        assert!(!block.place.overlaps(write.place) && !block.place.overlaps(workspace.place));
        assert!(block.place.is_within_arena::<u8>());
        // SAFETY: the part is borrowed exclusively for as long as the span lives, and nothing that is written is in the
        // block. Its load has ended.
        let weights = unsafe { Span::shared(self.at(block), block.place.bytes()) };
        let (read, written, room) = self.slices_and_workspace(read, write, workspace);
        (read, written, room, weights)
    }

    /// The start of a block of weights, for a load of so many bytes.
    ///
    /// # Panics
    /// If they are not within the block, or this not within the arena. In a plan that was checked neither happens.
    pub fn block(&mut self, block: Ring<P, u8>, bytes: usize) -> NonNull<u8> {
        assert!(block.place.is_within_arena::<u8>() && bytes <= block.place.bytes());
        NonNull::new(self.at(block)).unwrap()
    }

    /// Some rings, to be read.
    ///
    /// # Panics
    /// If a ring is not within the arena.
    #[inline(always)]
    pub fn read<I: Plain, const N: usize>(&self, read: [Ring<P, I>; N]) -> [Span<'_, I>; N] {
        read.map(|ring| self.span(ring))
    }

    /// Row `y` of a ring, to be read.
    #[inline(always)]
    pub fn row<T: Plain, const N: usize>(&self, ring: Ring<P, T>, y: usize) -> &[T; N] {
        // A row has as many elements as the caller says.
        self.span(ring.slot(y)).slice(0, N).first_chunk().unwrap()
    }

    /// Row `y` of a ring, to be written.
    #[inline(always)]
    pub fn row_mut<T: Plain, const N: usize>(&mut self, ring: Ring<P, T>, y: usize) -> &mut [T; N] {
        let slot = ring.slot(y);
        assert!(slot.place.is_within_arena::<T>() && slot.place.bytes() == size_of::<[T; N]>());
        // SAFETY: within the arena; the part is borrowed exclusively for as long as the row lives, and the row is not
        // another stage's, which has been told nothing of it yet, or has released it.
        unsafe { &mut *self.at(slot).cast::<[T; N]>() }
    }

    /// Copies row `y` from one ring to another.
    #[inline(always)]
    pub fn copy_row<T: Plain>(&mut self, from: Ring<P, T>, from_y: usize, to: Ring<P, T>, to_y: usize) {
        let len = from.place.row_bytes / size_of::<T>();
        let ([from], mut to) = self.slices([from.slot(from_y)], to.slot(to_y));
        to.slice(0, len).copy_from_slice(from.slice(0, len));
    }

    #[inline(always)]
    fn span<T: Plain>(&self, ring: Ring<P, T>) -> Span<'_, T> {
        assert!(ring.place.is_within_arena::<T>());
        // SAFETY: within the arena, and the part is borrowed. Nothing of it is written while the span lives, for that
        // takes an exclusive borrow, or is found by `slices` to be elsewhere, or is in rows of a ring between stages
        // that this one has not been told of.
        unsafe { Span::shared(self.at(ring), ring.place.bytes() / size_of::<T>()) }
    }

    #[inline(always)]
    fn at<T>(&self, ring: Ring<P, T>) -> *mut T {
        self.start.wrapping_add(ring.place.offset).cast()
    }
}
