//! Vectors as plain arrays.

use super::super::half::F16;
use super::simd::{Job, Simd};

/// Plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

const LANES: usize = 4;

/// A vector, lane by lane. (The library's functions for arrays of any length take the compiler much longer.)
#[inline(always)]
fn lanes<T>(lane: impl Fn(usize) -> T) -> [T; LANES] {
    [lane(0), lane(1), lane(2), lane(3)]
}

// SAFETY: 4 lanes divide a panel of 16, each method touches the 4 elements at its pointer and no others, and none needs
// instructions beyond those of the target.
unsafe impl Simd for Portable {
    type V = [f32; LANES];
    const LANES: usize = LANES;
    const REGISTERS: usize = 16;
    const PIXELS: usize = 2;
    const VECTORS: usize = 4;
    const SPECIAL: bool = false;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        [x; LANES]
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        // SAFETY: `p` is good for 4 floats: `# Safety` of `Simd`.
        unsafe { p.cast::<Self::V>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        // SAFETY: `p` is good for 4 floats: `# Safety` of `Simd`.
        unsafe { p.cast::<Self::V>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn load_half(p: *const F16) -> Self::V {
        // SAFETY: `p` is good for 4 halves: `# Safety` of `Simd`.
        let halves = unsafe { p.cast::<[F16; LANES]>().read_unaligned() };
        lanes(|i| halves[i].to_f32())
    }

    #[inline(always)]
    unsafe fn load_byte(p: *const i8) -> Self::V {
        // SAFETY: `p` is good for 4 integers of a byte, which need no alignment: `# Safety` of `Simd`.
        let bytes = unsafe { p.cast::<[i8; LANES]>().read() };
        lanes(|i| f32::from(bytes[i]))
    }

    #[inline(always)]
    unsafe fn store_half(p: *mut F16, v: Self::V) {
        // SAFETY: `p` is good for 4 halves: `# Safety` of `Simd`.
        unsafe { p.cast::<[F16; LANES]>().write_unaligned(lanes(|i| F16::from_f32(v[i]))) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] + b[i])
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        lanes(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    unsafe fn max(bound: Self::V, x: Self::V) -> Self::V {
        lanes(|i| if bound[i] > x[i] { bound[i] } else { x[i] })
    }

    #[inline(always)]
    unsafe fn min(bound: Self::V, x: Self::V) -> Self::V {
        lanes(|i| if bound[i] < x[i] { bound[i] } else { x[i] })
    }

    #[inline(always)]
    unsafe fn select_negative(x: Self::V, negative: Self::V) -> Self::V {
        lanes(|i| if x[i] < 0.0 { negative[i] } else { x[i] })
    }

    #[inline(never)]
    unsafe fn call<J: Job>(job: J) {
        job.run::<Portable>();
    }
}
