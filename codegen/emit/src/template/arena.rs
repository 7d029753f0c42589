//! The arena, the memory that the plan shares out, and the spans of it that a firing borrows.
//!
//! The memory may lie in several regions of the board. Then each has its own start, from which its bytes are counted. A
//! plan for one memory has one region.
//!
//! A model and a stage of a pipeline are *parts*: each runs by itself, and reaches only the rings of its own table.
//! Parts that run at the same time are split off together. Before that, the code checks that their tables have no byte
//! in common except those of rings between stages. Rings of one part may have bytes in common; the plan says which ring
//! may use them at which time. Whenever a firing borrows spans, the code checks that those for writing overlap none of
//! those for reading.
#![allow(unsafe_code, reason = "spans of the arena that do not overlap are borrowed at the same time")]
#![allow(dead_code, reason = "not every plan hands rows on or has stages")]

#[cfg(target_has_atomic = "8")]
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ops::Range;
use core::ptr::NonNull;
#[cfg(target_has_atomic = "8")]
use core::sync::atomic::{AtomicBool, Ordering};

use crate::kernels::span::{Plain, Span, SpanMut};

/// How many regions there are.
const REGIONS: usize = REGION_BYTES.len();

impl Arena {
    /// Splits it up among parts that run at the same time.
    ///
    /// # Panics
    /// If they have bytes in common. In a plan that was checked, they have none.
    pub(crate) fn divide<D: Division>(&mut self) -> Parts<'_, D> {
        Parts::of(self.starts())
    }

    /// All of it, for one part.
    pub(crate) fn memory<P: Part>(&mut self) -> Memory<'_, P> {
        Memory { starts: self.starts(), arena: PhantomData, part: PhantomData }
    }
}

/// Where a ring of rows lies: row y of a frame is in slot `y % rows`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of its region.
    pub region: u8,
    /// Bytes from the start of the region.
    pub offset: usize,
    /// Rows that it holds.
    pub rows: usize,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Whether one stage writes it while another stage reads it. Their counts of rows ensure that they never use the
    /// same row.
    pub shared: bool,
}

/// A part of the program that runs by itself, and the rings that it reaches.
pub(crate) trait Part: Sized {
    /// Its rings.
    const PLACES: &'static [Place];
}

/// Parts that run at the same time.
pub(crate) trait Division {
    /// The rings of each part.
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

    /// The slot of a row, as a ring of one row.
    const fn slot(self, y: usize) -> Place {
        Place { offset: self.offset + y % self.rows * self.row_bytes, rows: 1, ..self }
    }

    /// Whether it is a ring of elements `T` within its region, whose alignment is 4.
    const fn is_within_region<T>(self) -> bool {
        (self.region as usize) < REGIONS
            && align_of::<T>() <= 4
            && self.offset.is_multiple_of(size_of::<T>())
            && self.row_bytes.is_multiple_of(size_of::<T>())
            && match REGION_BYTES[self.region as usize].checked_sub(self.bytes()) {
                Some(most) => self.offset <= most,
                None => false,
            }
    }

    /// These rows of the ring, in their order, as a ring of their own.
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
            && self.region == other.region
            && self.offset < other.offset + other.bytes()
            && other.offset < self.offset + self.bytes()
    }

    /// Whether another part may have `other` while one part has this ring.
    fn is_disjoint_from(self, other: Place) -> bool {
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
    /// A ring of no rows, which stands for no ring.
    pub const fn none() -> Self {
        let place = Place { region: 0, offset: 0, rows: 0, row_bytes: 0, shared: false };
        Ring { place, part: PhantomData }
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

    /// The same ring, of bytes.
    fn bytes(self) -> Ring<P, u8> {
        Ring { place: self.place, part: PhantomData }
    }
}

/// The rings of a part, borrowed.
pub(crate) struct Memory<'a, P> {
    starts: [*mut u8; REGIONS],
    arena: PhantomData<&'a mut Arena>,
    part: PhantomData<fn() -> P>,
}

// SAFETY: the memory is borrowed exclusively (`arena`), and parts that run at the same time have no byte in common but
// those of rings between stages: `Parts::of` has checked it.
unsafe impl<P> Send for Memory<'_, P> {}

/// Memory of parts that run at the same time, to be taken one after another.
pub(crate) struct Parts<'a, D> {
    starts: [*mut u8; REGIONS],
    taken: usize,
    arena: PhantomData<&'a mut Arena>,
    division: PhantomData<fn() -> D>,
}

impl<'a, D: Division> Parts<'a, D> {
    /// The parts of the memory at these addresses, which is borrowed for as long as the parts are.
    fn of(starts: [*mut u8; REGIONS]) -> Self {
        for (i, part) in D::PARTS.iter().enumerate() {
            for place in *part {
                let mut others = D::PARTS[..i].iter().flat_map(|other| other.iter());
                assert!(others.all(|other| place.is_disjoint_from(*other)));
            }
        }
        Parts { starts, taken: 0, arena: PhantomData, division: PhantomData }
    }

    /// The memory of the next part.
    ///
    /// # Panics
    /// If it is another part's turn.
    pub fn take<P: Part>(&mut self) -> Memory<'a, P> {
        assert!(D::PARTS[self.taken] == P::PLACES);
        self.taken += 1;
        // Each part is taken once. `of` has checked that no two parts have a byte in common, except those of rings
        // between stages.
        Memory { starts: self.starts, arena: PhantomData, part: PhantomData }
    }
}

impl<P: Part> Memory<'static, P> {
    /// All of an arena that begins at these addresses. Several models may share it and take turns.
    ///
    /// # Safety
    /// Each address is a multiple of 4. The region's bytes are there, are initialised, and nobody else uses them while this
    /// memory is used.
    pub unsafe fn given(starts: [*mut u8; REGIONS]) -> Self {
        Memory { starts, arena: PhantomData, part: PhantomData }
    }
}

impl<P: Part> Memory<'_, P> {
    /// The same memory, for as long as this one is not used.
    pub fn reborrow(&mut self) -> Memory<'_, P> {
        Memory { starts: self.starts, arena: PhantomData, part: PhantomData }
    }

    /// Splits it up among parts that run at the same time.
    ///
    /// # Panics
    /// If they have bytes in common, or rings that do not belong to this part. In a plan that was checked, neither
    /// happens.
    pub fn divide<D: Division>(&mut self) -> Parts<'_, D> {
        assert!(D::PARTS.iter().copied().flatten().all(|place| P::PLACES.contains(place)));
        Parts::of(self.starts)
    }

    /// Some rings or parts of them, to be read, and one more, to be written. If the rings are constants, the conditions
    /// are decided when the crate is compiled.
    ///
    /// # Panics
    /// If a ring is not within the arena, or the ring to be written overlaps with a ring to be read. In a plan that was
    /// checked, neither happens.
    #[inline(always)]
    pub fn slices<I: Plain, O: Plain, const N: usize>(
        &mut self,
        read: [Ring<P, I>; N],
        write: Ring<P, O>,
    ) -> ([Span<'_, I>; N], SpanMut<'_, O>) {
        for ring in read {
            assert!(!ring.place.overlaps(write.place));
        }
        assert!(write.place.is_within_region::<O>());
        // SAFETY: the ring is within the arena, as asserted, and its bytes are in none of the rings to be read. `self`
        // is borrowed exclusively for as long as the spans. Another stage may read other rows of the ring: those that
        // this stage has counted as written, and that the other stage has not released.
        let written = unsafe { SpanMut::shared(self.at(write), write.place.bytes() / size_of::<O>()) };
        (read.map(|ring| self.span(ring)), written)
    }

    /// As [`Memory::slices`], with a workspace to be written, too.
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
        assert!(workspace.place.is_within_region::<f32>());
        // SAFETY: the workspace is within the arena, as asserted, and its bytes are in none of the rings. `self` is
        // borrowed exclusively for as long as the spans.
        let room = unsafe { SpanMut::shared(self.at(workspace), workspace.place.bytes() / 4) };
        let (read, written) = self.slices(read, write);
        (read, written, room)
    }

    /// As [`Memory::slices_and_workspace`], with a block of weights to be read, too. A ring that does not exist is
    /// [`Ring::none`].
    ///
    /// # Panics
    /// As `slices_and_workspace`, and if the block overlaps with a ring or workspace to be written.
    #[inline(always)]
    pub fn slices_and_block<I: Plain, O: Plain, const N: usize>(
        &mut self,
        read: [Ring<P, I>; N],
        write: Ring<P, O>,
        workspace: Ring<P>,
        block: Ring<P, u8>,
    ) -> ([Span<'_, I>; N], SpanMut<'_, O>, SpanMut<'_>, Span<'_, u8>) {
        assert!(!block.place.overlaps(write.place) && !block.place.overlaps(workspace.place));
        assert!(block.place.is_within_region::<u8>());
        // SAFETY: the block is within the arena, as asserted, and nothing that is written has bytes in it. `self` is
        // borrowed exclusively for as long as the spans. Its load has ended, since a plan that was checked waits for it
        // before.
        let weights = unsafe { Span::shared(self.at(block), block.place.bytes()) };
        let (read, written, room) = self.slices_and_workspace(read, write, workspace);
        (read, written, room, weights)
    }

    /// The start of a block of weights, for a load of this many bytes.
    ///
    /// # Panics
    /// If the bytes are not within the block, or the block is not within the arena. In a plan that was checked, neither
    /// happens.
    pub fn block(&mut self, block: Ring<P, u8>, bytes: usize) -> NonNull<u8> {
        assert!(block.place.is_within_region::<u8>() && bytes <= block.place.bytes());
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
        assert!(slot.place.is_within_region::<T>() && slot.place.bytes() == size_of::<[T; N]>());
        // SAFETY: the row is within the arena and of this length, as asserted, and `self` is borrowed exclusively for
        // as long as the row. No other stage uses the row: it is not counted as written yet, or the other stage has
        // released it.
        unsafe { &mut *self.at(slot).cast::<[T; N]>() }
    }

    /// Copies row `y` from one ring to another.
    #[inline(always)]
    pub fn copy_row<T: Plain>(&mut self, from: Ring<P, T>, from_y: usize, to: Ring<P, T>, to_y: usize) {
        let len = from.place.row_bytes / size_of::<T>();
        let ([from], mut to) = self.slices([from.slot(from_y)], to.slot(to_y));
        to.slice(0, len).copy_from_slice(from.slice(0, len));
    }

    /// Copies all rows of a ring to another of as many bytes.
    ///
    /// # Panics
    /// If they have not as many bytes, or overlap. In a plan that was checked, neither happens.
    pub fn copy<T: Plain>(&mut self, from: Ring<P, T>, to: Ring<P, T>) {
        let ([from], to) = self.slices([from], to);
        let to = to.all();
        to.copy_from_slice(from.slice(0, to.len()));
    }

    /// Writes all rows of a ring to bytes.
    ///
    /// # Panics
    /// If there are not as many bytes.
    pub fn save<T>(&self, ring: Ring<P, T>, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.span(ring.bytes()).slice(0, ring.place.bytes()));
    }

    /// Reads all rows of a ring from bytes.
    ///
    /// # Panics
    /// If there are not as many bytes.
    pub fn restore<T>(&mut self, ring: Ring<P, T>, bytes: &[u8]) {
        self.slices::<u8, u8, 0>([], ring.bytes()).1.all().copy_from_slice(bytes);
    }

    /// Makes all elements of a ring the same.
    pub fn fill<T: Plain>(&mut self, ring: Ring<P, T>, value: T) {
        self.slices::<T, T, 0>([], ring).1.all().fill(value);
    }

    #[inline(always)]
    fn span<T: Plain>(&self, ring: Ring<P, T>) -> Span<'_, T> {
        assert!(ring.place.is_within_region::<T>());
        // SAFETY: the ring is within the arena, as asserted, and `self` is borrowed for as long as the span. Nobody
        // writes these bytes meanwhile: a write takes an exclusive borrow, or `slices` has checked that it goes
        // elsewhere, or it goes to rows of a ring between stages that are not counted as written for this stage.
        unsafe { Span::shared(self.at(ring), ring.place.bytes() / size_of::<T>()) }
    }

    #[inline(always)]
    fn at<T>(&self, ring: Ring<P, T>) -> *mut T {
        self.starts[ring.place.region as usize].wrapping_add(ring.place.offset).cast()
    }
}
