//! The elements that kernels compute with.
//!
//! A half is storage: it is widened as it is loaded and narrowed as it is stored, and everything between is `f32`. So a
//! kernel is written once for both elements. Conversions round to the nearest half, of two equally near ones to that
//! whose last bit is 0, in every instruction set alike.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use super::arch::Simd;
use super::span::Plain;

/// A number of 16 bits: a sign, 5 bits of exponent and 10 of fraction (IEEE 754 binary16).
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F16(u16);

impl F16 {
    /// The number of these bits.
    pub const fn from_bits(bits: u16) -> Self {
        F16(bits)
    }

    /// Its bits.
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest number. What is too large becomes infinite, and NaN stays.
    pub const fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let sign = (bits >> 16 & 0x8000) as u16;
        let size = bits & 0x7fff_ffff;
        let rounded = match size {
            // The fraction's first bits, and the bit that says that NaN is quiet.
            0x7f80_0001.. => 0x7e00 | (size >> 13 & 0x3ff) as u16,
            // 65520 and more: infinity is nearer than the largest number, or as near.
            0x477f_f000.. => 0x7c00,
            // At least 2⁻¹⁴. Exponents differ by 112, and a carry out of the fraction is one of the exponent.
            0x3880_0000.. => {
                let odd = size >> 13 & 1;
                ((size - (112 << 23) + 0xfff + odd) >> 13) as u16
            }
            // A multiple of 2⁻²⁴. Of the sum with ½, the last bit counts those, and the sum has been rounded.
            _ => (f32::from_bits(size) + 0.5).to_bits() as u16,
        };
        F16(sign | rounded)
    }

    /// The same number.
    pub const fn to_f32(self) -> f32 {
        let sign = (self.0 as u32 & 0x8000) << 16;
        let size = self.0 as u32 & 0x7fff;
        let bits = match size {
            0x7c01.. => 0x7fc0_0000 | size << 13,
            0x7c00 => 0x7f80_0000,
            0x0400.. => (size << 13) + (112 << 23),
            // So many times 2⁻²⁴, counted in the last bits of ½ and taken from it.
            _ => (f32::from_bits(0x3f00_0000 | size) - 0.5).to_bits(),
        };
        f32::from_bits(sign | bits)
    }
}

// SAFETY: every pattern of bits is a value.
unsafe impl Plain for F16 {}

impl PartialEq for F16 {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl core::fmt::Debug for F16 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.to_f32().fmt(f)
    }
}

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
    const MOST: usize = if Self::IS_FLOAT { usize::MAX } else { PIECE };

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
        // SAFETY: the caller's.
        unsafe { S::load(p) }
    }

    #[inline(always)]
    unsafe fn load_masked<S: Simd>(p: *const Self, count: usize) -> S::V {
        // SAFETY: the caller's.
        unsafe { S::load_masked(p, count) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(p: *mut Self, v: S::V) {
        // SAFETY: the caller's.
        unsafe { S::store(p, v) }
    }

    #[inline(always)]
    unsafe fn store_masked<S: Simd>(p: *mut Self, count: usize, v: S::V) {
        // SAFETY: the caller's.
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
        // SAFETY: the caller's.
        unsafe { S::load_half(p) }
    }

    #[inline(always)]
    unsafe fn load_masked<S: Simd>(p: *const Self, count: usize) -> S::V {
        // SAFETY: the caller's.
        unsafe { S::load_half_part(p, count) }
    }

    #[inline(always)]
    unsafe fn store<S: Simd>(p: *mut Self, v: S::V) {
        // SAFETY: the caller's.
        unsafe { S::store_half(p, v) }
    }

    #[inline(always)]
    unsafe fn store_masked<S: Simd>(p: *mut Self, count: usize, v: S::V) {
        // SAFETY: the caller's.
        unsafe { S::store_half_part(p, count, v) }
    }

    #[inline(always)]
    unsafe fn copy<S: Simd>(piece: &[Self], to: &mut [f32]) {
        // SAFETY: the caller's.
        unsafe { widen_all::<S>(piece, to) }
    }

    #[inline(always)]
    unsafe fn floats<'a, S: Simd>(piece: &'a [Self], room: &'a mut [f32]) -> &'a [f32] {
        let floats = &mut room[..piece.len()];
        // SAFETY: the caller's.
        unsafe { widen_all::<S>(piece, floats) }
        floats
    }

    #[inline(always)]
    fn draft<'a>(piece: &'a mut [Self], room: &'a mut [f32]) -> &'a mut [f32] {
        &mut room[..piece.len()]
    }

    #[inline(always)]
    unsafe fn keep<S: Simd>(piece: &mut [Self], room: &[f32]) {
        // SAFETY: the caller's.
        unsafe { narrow_all::<S>(&room[..piece.len()], piece) }
    }
}

/// The pieces of a row of pixels of so many channels, each from its first element on: whole pixels, or parts of one.
#[inline(always)]
pub(crate) fn pieces<E: Element>(row: &mut [E], channels: usize) -> impl Iterator<Item = (usize, &mut [E])> {
    let most = (E::MOST / channels).max(1) * channels;
    row.chunks_mut(most).enumerate().flat_map(move |(i, pixels)| {
        pixels.chunks_mut(E::MOST).enumerate().map(move |(j, piece)| (i * most + j * E::MOST, piece))
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
    // SAFETY: the caller's instructions; all of these elements are there.
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
    // SAFETY: the caller's instructions; all of these elements are there.
    unsafe {
        for i in (0..whole).step_by(S::LANES) {
            S::store_half(to.add(i), S::load(from.add(i)));
        }
        if whole < len {
            S::store_half_part(to.add(whole), len - whole, S::load_masked(from.add(whole), len - whole));
        }
    }
}
