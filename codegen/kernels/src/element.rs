//! The elements that kernels compute with.
//!
//! A half is storage: it is widened as it is loaded and narrowed as it is stored, and everything between is `f32`. So a
//! kernel is written once for both elements. Conversions round to the nearest half, of two equally near ones to that
//! whose last bit is 0, in every instruction set alike.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use super::arch::Simd;
use super::half::F16;

/// An element that arithmetic kernels read and write: `f32`, or [`F16`].
pub trait Element: Vectors + Copy + Default + Send + Sync + 'static {
    /// The element as a float.
    fn widen(self) -> f32;

    /// The nearest element.
    fn narrow(x: f32) -> Self;
}

/// Elements that are widened or narrowed in one go. Rooms for them are on the stack, several at a time.
pub(crate) const PIECE: usize = 128;

/// How elements come into vectors and out of them. Slices of `f32` are used as they are; those of halves go by way of a
/// room of
/// their own, piece by piece.
#[doc(hidden)]
#[allow(private_bounds, private_interfaces, reason = "sealed: whoever has no vectors cannot implement it")]
pub trait Vectors: Sized {
    /// Whether the elements are floats themselves.
    const IS_FLOAT: bool;

    /// The most elements of a piece.
    const MAX_PIECE: usize = if Self::IS_FLOAT { usize::MAX } else { PIECE };

    /// The `LANES` elements at `p`.
    ///
    /// # Safety
    /// As [`Simd::load`].
    unsafe fn load<S: Simd>(p: *const Self) -> S::V;

    /// The first `count` elements at `p`; what the others are is not said.
    ///
    /// # Safety
    /// As [`Simd::load_masked`].
    unsafe fn load_masked<S: Simd>(p: *const Self, count: usize) -> S::V;

    /// Writes the elements to `p`.
    ///
    /// # Safety
    /// As [`Simd::store`].
    unsafe fn store<S: Simd>(p: *mut Self, v: S::V);

    /// Writes the first `count` elements to `p`.
    ///
    /// # Safety
    /// As [`Simd::store_masked`].
    unsafe fn store_masked<S: Simd>(p: *mut Self, count: usize, v: S::V);

    /// Copies a piece as floats to as many.
    ///
    /// # Safety
    /// In [`Job::run`](super::arch::Job::run).
    unsafe fn copy<S: Simd>(piece: &[Self], to: &mut [f32]);

    /// A piece as floats: as it is, or widened into `room`.
    ///
    /// # Safety
    /// In [`Job::run`](super::arch::Job::run).
    unsafe fn floats<'a, S: Simd>(piece: &'a [Self], room: &'a mut [f32]) -> &'a [f32];

    /// Where the floats are to be made that become a piece: in itself, or in `room`. Their values before are
    /// unspecified.
    fn draft<'a>(piece: &'a mut [Self], room: &'a mut [f32]) -> &'a mut [f32];

    /// Makes a piece of its [`Vectors::draft`].
    ///
    /// # Safety
    /// In [`Job::run`](super::arch::Job::run).
    unsafe fn keep<S: Simd>(piece: &mut [Self], room: &[f32]);
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn narrow(x: f32) -> Self {
        x
    }
}

#[allow(private_interfaces, private_bounds, reason = "as the trait")]
impl Vectors for f32 {
    const IS_FLOAT: bool = true;

    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const Self) -> S::V {
        // SAFETY: `Simd::load` asks for what `# Safety` of `Vectors::load` asks for.
        unsafe { S::load(p) }
    }

    #[inline(always)]
    unsafe fn load_masked<S: Simd>(p: *const Self, count: usize) -> S::V {
        // SAFETY: `Simd::load_masked` asks for what `# Safety` of `Vectors::load_masked` asks for.
        unsafe { S::load_masked(p, count) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(p: *mut Self, v: S::V) {
        // SAFETY: `Simd::store` asks for what `# Safety` of `Vectors::store` asks for.
        unsafe { S::store(p, v) }
    }

    #[inline(always)]
    unsafe fn store_masked<S: Simd>(p: *mut Self, count: usize, v: S::V) {
        // SAFETY: `Simd::store_masked` asks for what `# Safety` of `Vectors::store_masked` asks for.
        unsafe { S::store_masked(p, count, v) }
    }

    #[inline(always)]
    unsafe fn copy<S: Simd>(piece: &[Self], to: &mut [f32]) {
        to.copy_from_slice(piece);
    }

    #[inline(always)]
    unsafe fn floats<'a, S: Simd>(piece: &'a [Self], _room: &'a mut [f32]) -> &'a [f32] {
        piece
    }

    #[inline(always)]
    fn draft<'a>(piece: &'a mut [Self], _room: &'a mut [f32]) -> &'a mut [f32] {
        piece
    }

    #[inline(always)]
    unsafe fn keep<S: Simd>(_piece: &mut [Self], _room: &[f32]) {}
}

impl Element for F16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32()
    }

    #[inline(always)]
    fn narrow(x: f32) -> Self {
        F16::from_f32(x)
    }
}

#[allow(private_interfaces, private_bounds, reason = "as the trait")]
impl Vectors for F16 {
    const IS_FLOAT: bool = false;

    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const Self) -> S::V {
        // SAFETY: `p` is good for `LANES` halves, in `Job::run`: `# Safety` of `Vectors::load`.
        unsafe { S::load_half(p) }
    }

    #[inline(always)]
    unsafe fn load_masked<S: Simd>(p: *const Self, count: usize) -> S::V {
        // SAFETY: `p` is aligned and good for `count` halves, in `Job::run`: `# Safety` of `Vectors::load_masked`.
        unsafe { S::load_half_part(p, count) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(p: *mut Self, v: S::V) {
        // SAFETY: `p` is good for `LANES` halves, in `Job::run`: `# Safety` of `Vectors::store`.
        unsafe { S::store_half(p, v) }
    }

    #[inline(always)]
    unsafe fn store_masked<S: Simd>(p: *mut Self, count: usize, v: S::V) {
        // SAFETY: `p` is aligned and good for `count` halves, in `Job::run`: `# Safety` of `Vectors::store_masked`.
        unsafe { S::store_half_part(p, count, v) }
    }

    #[inline(always)]
    unsafe fn copy<S: Simd>(piece: &[Self], to: &mut [f32]) {
        // SAFETY: `widen_all` asks to be called in `Job::run`, and so does `# Safety` of `Vectors::copy`.
        unsafe { widen_all::<S>(piece, to) }
    }

    #[inline(always)]
    unsafe fn floats<'a, S: Simd>(piece: &'a [Self], room: &'a mut [f32]) -> &'a [f32] {
        let floats = &mut room[..piece.len()];
        // SAFETY: `widen_all` asks to be called in `Job::run`, and so does `# Safety` of `Vectors::floats`.
        unsafe { widen_all::<S>(piece, floats) }
        floats
    }

    #[inline(always)]
    fn draft<'a>(piece: &'a mut [Self], room: &'a mut [f32]) -> &'a mut [f32] {
        &mut room[..piece.len()]
    }

    #[inline(always)]
    unsafe fn keep<S: Simd>(piece: &mut [Self], room: &[f32]) {
        // SAFETY: `narrow_all` asks to be called in `Job::run`, and so does `# Safety` of `Vectors::keep`.
        unsafe { narrow_all::<S>(&room[..piece.len()], piece) }
    }
}

/// The pieces of a row of pixels of so many channels, each from its first element on: whole pixels, or parts of one.
#[inline(always)]
pub(crate) fn pieces<E: Element>(row: &mut [E], channels: usize) -> impl Iterator<Item = (usize, &mut [E])> {
    let most = (E::MAX_PIECE / channels).max(1) * channels;
    row.chunks_mut(most).enumerate().flat_map(move |(i, pixels)| {
        pixels
            .chunks_mut(E::MAX_PIECE)
            .enumerate()
            .map(move |(j, piece)| (i * most + j * E::MAX_PIECE, piece))
    })
}

/// Widens as many halves as there are in both.
///
/// # Safety
/// In [`Job::run`](super::arch::Job::run).
#[inline(always)]
pub(crate) unsafe fn widen_all<S: Simd>(from: &[F16], to: &mut [f32]) {
    let len = from.len().min(to.len());
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    let whole = len / S::LANES * S::LANES;
    // SAFETY: this is in `Job::run`: `# Safety` of this function. Both slices have `len` elements; vectors end at
    // `whole`, and what follows is counted.
    unsafe {
        for i in (0..whole).step_by(S::LANES) {
            S::store(to.add(i), S::load_half(from.add(i)));
        }
        if whole < len {
            S::store_masked(to.add(whole), len - whole, S::load_half_part(from.add(whole), len - whole));
        }
    }
}

/// Narrows as many floats as there are in both.
///
/// # Safety
/// In [`Job::run`](super::arch::Job::run).
#[inline(always)]
pub(crate) unsafe fn narrow_all<S: Simd>(from: &[f32], to: &mut [F16]) {
    let len = from.len().min(to.len());
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    let whole = len / S::LANES * S::LANES;
    // SAFETY: this is in `Job::run`: `# Safety` of this function. Both slices have `len` elements; vectors end at
    // `whole`, and what follows is counted.
    unsafe {
        for i in (0..whole).step_by(S::LANES) {
            S::store_half(to.add(i), S::load(from.add(i)));
        }
        if whole < len {
            S::store_half_part(to.add(whole), len - whole, S::load_masked(from.add(whole), len - whole));
        }
    }
}
