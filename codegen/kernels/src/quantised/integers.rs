//! Vectors of integers: what they do, and portably how.

use super::super::arch::{Isa, Kind, Portable};
use super::Requantise;
#[cfg(target_arch = "x86_64")]
use super::avx2;
#[cfg(target_arch = "aarch64")]
use super::neon;

/// Sums of a vector: half a panel.
pub(crate) const LANES: usize = 8;

/// The largest [`Integers::TILE`].
pub(crate) const MOST_TILE: usize = 6;

/// Work on integers written for any instruction set. `run` and all that it calls with `S` must be `#[inline(always)]`: only
/// so does it become code of that instruction set.
pub(crate) trait Work {
    /// Does the work.
    fn run<S: Integers>(self);
}

/// Does the work with these instructions. AVX2 serves also where there are longer vectors.
#[inline]
pub(crate) fn run<W: Work>(isa: Isa, work: W) {
    match isa.kind() {
        Kind::Portable => work.run::<Portable>(),
        // SAFETY: an `Isa` of these kinds is made only where the processor has these instructions.
        #[cfg(target_arch = "x86_64")]
        Kind::Avx2 | Kind::Avx512 => unsafe { avx2::run(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Kind::Neon => unsafe { neon::run(work) },
    }
}

/// Vectors of integers and what micro-kernels do with them.
///
/// # Safety
/// Implementors' methods may be called only on a processor that has their instructions, which is so within
/// [`Work::run`]. Pointers must be good for what is said of them; they need no alignment.
pub(crate) unsafe trait Integers: Copy + 'static {
    /// As many integers of 32 bits as [`LANES`].
    type Sums: Copy;
    /// As many pairs of integers of 16 bits.
    type Pairs: Copy;
    /// As many floats.
    type Scales: Copy;
    /// What [`Requantise`] needs beside sums and scales.
    type Ends: Copy;
    /// Most pixels of a tile of two vectors.
    const TILE: usize;

    /// The numbers at `p`, the lowest byte of each first.
    unsafe fn sums(p: *const u8) -> Self::Sums;
    /// The floats at `p`, the lowest byte of each first.
    unsafe fn scales(p: *const u8) -> Self::Scales;
    /// Two signed bytes of each lane at `p`.
    unsafe fn weights(p: *const u8) -> Self::Pairs;
    /// The two numbers at `p`, in every lane.
    unsafe fn pair(p: *const i16) -> Self::Pairs;
    /// [`LANES`] bytes of each of up to two vectors.
    type Bytes: Copy;
    /// Those of `V` vectors at `p`.
    unsafe fn bytes<const V: usize>(p: *const u8) -> Self::Bytes;
    /// Each byte of the one with that of the other.
    unsafe fn pairs<const V: usize>(upper: Self::Bytes, lower: Self::Bytes) -> [Self::Pairs; V];
    /// Each byte with 0.
    unsafe fn singles<const V: usize>(bytes: Self::Bytes) -> [Self::Pairs; V];
    /// Each signed byte of `V` vectors of the one with that of the other.
    unsafe fn weight_pairs<const V: usize>(upper: *const u8, lower: *const u8) -> [Self::Pairs; V];
    /// Adds to each lane the two products of its pairs, which do not leave 32 bits together; the sum may (modulo 2^32).
    unsafe fn add_products(sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums;
    /// What is needed of this.
    unsafe fn ends(how: Requantise) -> Self::Ends;
    /// Writes to `out` the elements that the sums become, a byte each.
    unsafe fn requantise(sums: Self::Sums, scales: Self::Scales, ends: &Self::Ends, out: *mut u8);
    /// The same of two vectors.
    #[inline(always)]
    unsafe fn requantise_two(
        sums: [Self::Sums; 2],
        scales: [Self::Scales; 2],
        ends: &Self::Ends,
        out: *mut u8,
    ) {
        // SAFETY: the caller's.
        unsafe {
            Self::requantise(sums[0], scales[0], ends, out);
            Self::requantise(sums[1], scales[1], ends, out.add(LANES));
        }
    }
    /// Does the work as a function of its own, compiled for this instruction set.
    unsafe fn call<W: Work>(work: W);
    /// Writes the `count` bytes of so many `rows`, each less `zero_point`. A row begins as many elements after the last as is
    /// said beside the first.
    #[inline(always)]
    unsafe fn widen(
        (from, between): (*const u8, usize),
        (to, span): (*mut i16, usize),
        [rows, count]: [usize; 2],
        zero_point: i16,
    ) {
        for row in 0..rows {
            let (from, to) = (from.wrapping_add(row * between), to.wrapping_add(row * span));
            for i in 0..count {
                // SAFETY: the caller's.
                unsafe { to.add(i).write(i16::from(*from.add(i)) - zero_point) }
            }
        }
    }
}

/// Writes the elements that the sums of one or two vectors become.
///
/// # Safety
/// In [`Work::run`]; there is room for `V` vectors of them.
#[inline(always)]
pub(crate) unsafe fn requantise<S: Integers, const V: usize>(
    sums: &[S::Sums; V],
    scales: &[S::Scales; V],
    ends: &S::Ends,
    out: *mut u8,
) {
    // SAFETY: the caller's.
    unsafe {
        match (&sums[..], &scales[..]) {
            (&[a, b], &[c, d]) => S::requantise_two([a, b], [c, d], ends, out),
            _ => S::requantise(sums[0], scales[0], ends, out),
        }
    }
}

// SAFETY: no instructions but those of the target.
unsafe impl Integers for Portable {
    type Sums = [i32; LANES];
    type Pairs = [[i16; 2]; LANES];
    type Scales = [f32; LANES];
    type Ends = Requantise;
    const TILE: usize = 2;

    #[inline(always)]
    unsafe fn sums(p: *const u8) -> Self::Sums {
        // SAFETY: the caller's.
        unsafe { p.cast::<[[u8; 4]; LANES]>().read() }.map(i32::from_le_bytes)
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8) -> Self::Scales {
        // SAFETY: the caller's.
        unsafe { p.cast::<[[u8; 4]; LANES]>().read() }.map(f32::from_le_bytes)
    }

    #[inline(always)]
    unsafe fn weights(p: *const u8) -> Self::Pairs {
        // SAFETY: the caller's.
        unsafe { p.cast::<[[i8; 2]; LANES]>().read() }.map(|pair| pair.map(i16::from))
    }

    #[inline(always)]
    unsafe fn pair(p: *const i16) -> Self::Pairs {
        // SAFETY: the caller's.
        [unsafe { p.cast::<[i16; 2]>().read_unaligned() }; LANES]
    }

    type Bytes = [u8; 2 * LANES];

    #[inline(always)]
    unsafe fn bytes<const V: usize>(p: *const u8) -> Self::Bytes {
        let mut bytes = [0; 2 * LANES];
        // SAFETY: the caller's.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(p, V * LANES) }
        bytes
    }

    #[inline(always)]
    unsafe fn pairs<const V: usize>(upper: Self::Bytes, lower: Self::Bytes) -> [Self::Pairs; V] {
        core::array::from_fn(|v| {
            core::array::from_fn(|i| [upper, lower].map(|bytes| bytes[v * LANES + i].into()))
        })
    }

    #[inline(always)]
    unsafe fn singles<const V: usize>(bytes: Self::Bytes) -> [Self::Pairs; V] {
        // SAFETY: the caller's.
        unsafe { Self::pairs::<V>(bytes, [0; 2 * LANES]) }
    }

    #[inline(always)]
    unsafe fn weight_pairs<const V: usize>(upper: *const u8, lower: *const u8) -> [Self::Pairs; V] {
        // SAFETY: the caller's.
        let [upper, lower] = unsafe { [Self::bytes::<V>(upper), Self::bytes::<V>(lower)] };
        core::array::from_fn(|v| {
            core::array::from_fn(|i| [upper, lower].map(|bytes| bytes[v * LANES + i].cast_signed().into()))
        })
    }

    #[inline(always)]
    unsafe fn add_products(mut sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            let [first, second] = [0, 1].map(|i| i32::from(a[i]) * i32::from(b[i]));
            *sum = sum.wrapping_add(first.wrapping_add(second));
        }
        sums
    }

    #[inline(always)]
    unsafe fn ends(how: Requantise) -> Self::Ends {
        how
    }

    #[inline(always)]
    unsafe fn requantise(sums: Self::Sums, scales: Self::Scales, ends: &Self::Ends, out: *mut u8) {
        let mut bytes = [0; LANES];
        for ((byte, sum), scale) in bytes.iter_mut().zip(sums).zip(scales) {
            *byte = ends.apply(sum, scale);
        }
        // SAFETY: the caller's.
        unsafe { out.cast::<[u8; LANES]>().write(bytes) }
    }

    #[inline(never)]
    unsafe fn call<W: Work>(work: W) {
        work.run::<Portable>();
    }
}
