//! The models for C. The header in `include` declares the functions of this file, and says what callers must ensure.
#![allow(unsafe_code, reason = "pointers come from C")]
#![allow(missing_docs, reason = "the header has the documentation")]

use core::cell::Cell;
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr;

use crate::WEIGHT_HASH;
use crate::arena::{Memory, Part, REGION_BYTES};
use crate::update::{UpdateError, newest, oldest};

/// The result of a call.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Ok = 0,
    Null = 1,
    Length = 2,
    Alignment = 3,
    Weights = 4,
    NotCreated = 5,
    #[allow(dead_code, reason = "not every model reads weights")]
    Store = 6,
}

/// A model's place in the caller's memory.
#[repr(C)]
pub struct Place([MaybeUninit<u64>; PLACE_WORDS]);

/// Words of 8 bytes in a place, as in the header. A model has the start of each region.
const PLACE_WORDS: usize = 31 + REGION_BYTES.len();

/// A model in its place.
#[repr(C)]
struct Created<M> {
    /// Tells a place with this model from all other places. It is the first field, so every place begins with it.
    tag: u64,
    model: M,
}

impl<M> Created<M> {
    const FITS: () =
        assert!(size_of::<Self>() <= size_of::<Place>() && align_of::<Self>() <= align_of::<Place>());
}

/// The tag of the model of this number.
const fn tag(model: u64) -> u64 {
    (WEIGHT_HASH ^ 0x6373_6466_6320_4320).wrapping_add(model)
}

fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::Ok)
}

/// Makes a model in its place, in memory that it is handed as an arena of zeros: the start of each region, and its bytes.
///
/// # Safety
/// `place` is null, or may be written. Each start is null, or that of so many bytes that may be written, and nobody else
/// uses them as long as the model, except models that take turns with it.
unsafe fn create<M, P: Part>(
    model: u64,
    place: *mut Place,
    regions: [(*mut c_void, usize); REGION_BYTES.len()],
    make: impl FnOnce(Memory<'static, P>) -> Result<M, Status>,
) -> Status {
    const { Created::<M>::FITS };
    let create = || {
        if place.is_null() || regions.iter().any(|(start, _)| start.is_null()) {
            return Err(Status::Null);
        }
        if !place.is_aligned() || regions.iter().any(|(start, _)| !start.cast::<u32>().is_aligned()) {
            return Err(Status::Alignment);
        }
        if regions.iter().zip(REGION_BYTES).any(|((_, bytes), needed)| *bytes < needed) {
            return Err(Status::Length);
        }
        for ((start, _), bytes) in regions.into_iter().zip(REGION_BYTES) {
            // SAFETY: the memory is not null, and at least as long: `# Safety` of this function.
            unsafe { start.write_bytes(0, bytes) };
        }
        // SAFETY: the starts are aligned, and the zeros that were written there initialise the regions. Nobody else uses
        // them: `# Safety` of this function.
        let memory = unsafe { Memory::given(regions.map(|(start, _)| start.cast())) };
        let created = Created { tag: tag(model), model: make(memory)? };
        // SAFETY: the place is neither null nor unaligned, and may be written: `# Safety` of this function. `FITS` says
        // that it is as large and as aligned as the model needs.
        unsafe { place.cast::<Created<M>>().write(created) };
        Ok(())
    };
    status(create())
}

/// The model in a place, if it is the model of this number.
///
/// # Safety
/// `place` is null, or holds zeros or what [`create`] wrote. Nobody else uses it as long as the result.
unsafe fn created<'a, M>(model: u64, place: *mut Place) -> Result<&'a mut M, Status> {
    if place.is_null() {
        return Err(Status::Null);
    }
    if !place.is_aligned() {
        return Err(Status::Alignment);
    }
    let created = place.cast::<Created<M>>();
    // SAFETY: the place is neither null nor unaligned, and holds at least a word of zeros or a tag: `# Safety` of this
    // function.
    if unsafe { (&raw const (*created).tag).read() } != tag(model) {
        return Err(Status::NotCreated);
    }
    // SAFETY: only `create` writes this tag, and with it this model; and nobody else uses the place: `# Safety` of this
    // function.
    Ok(unsafe { &mut (*created).model })
}

/// Ends the model in a place, which may hold none.
///
/// # Safety
/// As [`created`].
unsafe fn destroy<M>(model: u64, place: *mut Place) -> Status {
    // SAFETY: `created` asks for what `# Safety` of this function asks for.
    let result = unsafe { created::<M>(model, place) }.map(|found| {
        // SAFETY: the model was made in its place by `create`, and nobody uses it again, since the place is marked as
        // holding none.
        unsafe {
            ptr::drop_in_place(found);
            place.cast::<u64>().write(0);
        }
    });
    status(result)
}

/// The value at a pointer.
///
/// # Safety
/// `data` is null, or leads to a value that is initialised and stays unchanged for `'a`.
unsafe fn read<'a, T>(data: *const T) -> Result<&'a T, Status> {
    if data.is_null() {
        return Err(Status::Null);
    }
    if !data.is_aligned() {
        return Err(Status::Alignment);
    }
    // SAFETY: the pointer is neither null nor unaligned, and leads to a value that stays unchanged: `# Safety` of this
    // function.
    Ok(unsafe { &*data })
}

/// A frame of this many elements.
///
/// # Safety
/// `data` is null, or leads to `elements` elements that are initialised and stay unchanged for `'a`.
unsafe fn frame<'a, T, const N: usize>(data: *const T, elements: usize) -> Result<&'a [T; N], Status> {
    if elements != N && !data.is_null() {
        return Err(Status::Length);
    }
    // SAFETY: `data` is null, or leads to `elements` elements, which are `N`: `# Safety` of this function.
    unsafe { read(data.cast()) }
}

/// Room for a frame of this many elements.
///
/// # Safety
/// `data` is null, or leads to `elements` elements that nobody else uses for `'a`. Zeros are values of `T`.
unsafe fn room<'a, T, const N: usize>(data: *mut T, elements: usize) -> Result<&'a mut [T; N], Status> {
    if data.is_null() {
        return Err(Status::Null);
    }
    if elements != N {
        return Err(Status::Length);
    }
    if !data.is_aligned() {
        return Err(Status::Alignment);
    }
    // SAFETY: the pointer is neither null nor unaligned, and leads to `elements` elements, which are `N`, that nobody
    // else uses: `# Safety` of this function. The zeros initialise them.
    unsafe {
        data.write_bytes(0, N);
        Ok(&mut *data.cast())
    }
}

/// This many bytes of weights.
///
/// # Safety
/// `data` is null, or leads to `length` bytes that stay unchanged for as long as the model lives.
unsafe fn bytes(data: *const u8, length: usize) -> Result<&'static [u8], Status> {
    if data.is_null() {
        return Err(Status::Null);
    }
    // SAFETY: the pointer is not null, bytes need no alignment, and there are `length`, which stay unchanged:
    // `# Safety` of this function.
    Ok(unsafe { core::slice::from_raw_parts(data, length) })
}

/// Why weights were refused.
fn refused(error: crate::WeightsError) -> Status {
    match error {
        crate::WeightsError::Length => Status::Length,
        crate::WeightsError::Alignment => Status::Alignment,
        crate::WeightsError::Hash => Status::Weights,
    }
}

/// Why an update was refused.
fn no_update(error: UpdateError) -> Status {
    match error {
        UpdateError::Length => Status::Length,
        UpdateError::Alignment => Status::Alignment,
        UpdateError::Magic | UpdateError::Header | UpdateError::Plan | UpdateError::Weights => {
            Status::Weights
        }
    }
}

/// A slot for an update.
#[repr(C)]
pub struct Slot {
    content: *const u8,
    bytes: usize,
}

/// The contents of two slots. That of a null pointer is empty, so that the other slot can be used.
///
/// # Safety
/// `slots` is null, or leads to two slots. Their pointers are null, or lead to as many bytes, which stay unchanged while the
/// result is used.
unsafe fn contents(slots: *const Slot) -> Result<[&'static [u8]; 2], Status> {
    // SAFETY: `slots` is null, or leads to two slots: `# Safety` of this function.
    let slots = unsafe { read(slots.cast::<[Slot; 2]>()) }?;
    // SAFETY: the pointer of a slot is null, or leads to as many bytes: `# Safety` of this function.
    Ok(slots.each_ref().map(|slot| unsafe { bytes(slot.content, slot.bytes) }.unwrap_or_default()))
}

/// Functions that hand over or take rows, called with the caller's context.
struct Rows<'a, T> {
    functions: &'a T,
    #[allow(dead_code, reason = "a model may be called with frames only")]
    context: *mut c_void,
    /// Whether a row was null.
    #[allow(dead_code, reason = "not every model takes bytes")]
    lacks: &'a Cell<bool>,
}

impl<T> Rows<'_, T> {
    /// The row at a pointer, or zeros.
    ///
    /// # Safety
    /// `row` is null, or leads to `N` bytes that stay unchanged until the next row is asked for.
    #[allow(dead_code, reason = "not every model takes bytes")]
    unsafe fn bytes<B, const N: usize>(&self, row: *const B, zeros: &'static [B; N]) -> &[B; N] {
        if row.is_null() {
            self.lacks.set(true);
            return zeros;
        }
        // SAFETY: `row` leads to `N` bytes that stay unchanged: `# Safety` of this function.
        unsafe { &*row.cast() }
    }

    /// Room for rows `y` of `row` elements each.
    ///
    /// # Panics
    /// If it is null or unaligned, since the frame could go nowhere.
    ///
    /// # Safety
    /// `room` is null, or leads to as many elements, which nobody else uses until the next rows are asked for. Zeros are
    /// values of `E`.
    #[allow(dead_code, reason = "not every output is made in room of the caller")]
    unsafe fn room<E>(&mut self, room: *mut E, y: Range<usize>, row: usize) -> &mut [E] {
        assert!(!room.is_null() && room.is_aligned(), "no room for rows of an output");
        // SAFETY: `room` leads to as many elements, which nobody else uses: `# Safety` of this function. The zeros
        // initialise them.
        unsafe {
            room.write_bytes(0, y.len() * row);
            core::slice::from_raw_parts_mut(room, y.len() * row)
        }
    }
}
