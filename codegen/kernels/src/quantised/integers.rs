//! Vectors of integers.

use super::Requantise;

/// Sums of a vector: half a panel.
pub(crate) const LANES: usize = 8;

/// Vectors of integers and what micro-kernels do with them.
///
/// # Safety
/// Implementors' methods may be called only on a processor that has their instructions, which is so within
/// [`Job::run`](super::super::arch::Job::run). Pointers must be good for what is said of them; they need no alignment.
pub(crate) unsafe trait Integers: Copy + 'static {
    /// As many integers of 32 bits as [`LANES`].
    type Sums: Copy;
    /// As many pairs of integers of 16 bits.
    type Pairs: Copy;
    /// As many floats.
    type Scales: Copy;
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
    /// Adds to each lane the two products of its pairs, which do not leave 32 bits together; the sum may (modulo 2^32).
    unsafe fn add_products(sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums;
    /// Writes to `out` the elements that the sums become, a byte each.
    unsafe fn requantise(sums: Self::Sums, scales: Self::Scales, how: Requantise, out: *mut u8);
    /// The same of two vectors.
    #[inline(always)]
    unsafe fn requantise_two(
        sums: [Self::Sums; 2],
        scales: [Self::Scales; 2],
        how: Requantise,
        out: *mut u8,
    ) {
        // SAFETY: the caller's.
        unsafe {
            Self::requantise(sums[0], scales[0], how, out);
            Self::requantise(sums[1], scales[1], how, out.add(LANES));
        }
    }
    /// Writes to `to` the `count` bytes at `from`, each less `zero_point`.
    #[inline(always)]
    unsafe fn widen(from: *const u8, count: usize, zero_point: i16, to: *mut i16) {
        for i in 0..count {
            // SAFETY: the caller's.
            unsafe { to.add(i).write_unaligned(i16::from(*from.add(i)) - zero_point) }
        }
    }
}

/// Plain Rust.
macro_rules! portable {
    ($set:ty, $tile:literal) => {
        // SAFETY: no instructions but those of the target.
        unsafe impl Integers for $set {
            type Sums = [i32; LANES];
            type Pairs = [[i16; 2]; LANES];
            type Scales = [f32; LANES];
            const TILE: usize = $tile;

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

            #[inline(always)]
            unsafe fn add_products(mut sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums {
                for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                    let [first, second] = [0, 1].map(|i| i32::from(a[i]) * i32::from(b[i]));
                    *sum = sum.wrapping_add(first.wrapping_add(second));
                }
                sums
            }

            #[inline(always)]
            unsafe fn requantise(sums: Self::Sums, scales: Self::Scales, how: Requantise, out: *mut u8) {
                let mut bytes = [0; LANES];
                for ((byte, sum), scale) in bytes.iter_mut().zip(sums).zip(scales) {
                    *byte = how.apply(sum, scale);
                }
                // SAFETY: the caller's.
                unsafe { out.cast::<[u8; LANES]>().write(bytes) }
            }
        }
    };
}

portable!(super::super::arch::Portable, 2);
#[cfg(target_arch = "x86_64")]
portable!(super::super::arch::Avx2, 6);
#[cfg(target_arch = "x86_64")]
portable!(super::super::arch::Avx512, 6);
#[cfg(target_arch = "aarch64")]
portable!(super::super::arch::Neon, 4);
