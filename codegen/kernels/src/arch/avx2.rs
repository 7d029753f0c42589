//! AVX2 with FMA and F16C.

use core::arch::x86_64::*;

use super::super::half::F16;
use super::simd::{Job, Simd};

/// AVX2 with FMA and F16C.
#[derive(Clone, Copy)]
pub(crate) struct Avx2;

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn run<J: Job>(job: J) {
    job.run::<Avx2>();
}

/// The first `count` elements.
#[inline(always)]
unsafe fn mask(count: usize) -> __m256i {
    const BITS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    // SAFETY: the caller's instructions; eight elements follow any of the first nine.
    unsafe { _mm256_loadu_si256(BITS.as_ptr().add(8 - count.min(8)).cast()) }
}

// SAFETY: each method is one instruction of the set, which its caller vouches for.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    const REGISTERS: usize = 16;
    const PIXELS: usize = 6;
    const VECTORS: usize = 2;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        // SAFETY: the caller's.
        unsafe { _mm256_storeu_ps(p, v) }
    }

    #[inline(always)]
    unsafe fn prefetch(p: *const u8) {
        // SAFETY: an address that is not there is passed over.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
    }

    #[inline(always)]
    unsafe fn load_half(p: *const F16) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) }
    }

    #[inline(always)]
    unsafe fn load_byte(p: *const i8) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(p.cast()))) }
    }

    #[inline(always)]
    unsafe fn store_half(p: *mut F16, v: Self::V) {
        // SAFETY: the caller's.
        unsafe { _mm_storeu_si128(p.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(bound: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_max_ps(bound, x) }
    }

    #[inline(always)]
    unsafe fn min(bound: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_min_ps(bound, x) }
    }

    #[inline(always)]
    unsafe fn load_masked(p: *const f32, count: usize) -> Self::V {
        // SAFETY: the caller's; masked elements are not read.
        unsafe { _mm256_maskload_ps(p, mask(count)) }
    }

    #[inline(always)]
    unsafe fn store_masked(p: *mut f32, count: usize, v: Self::V) {
        // SAFETY: the caller's; masked elements are not written.
        unsafe { _mm256_maskstore_ps(p, mask(count), v) }
    }

    #[inline(always)]
    unsafe fn select_negative(x: Self::V, negative: Self::V) -> Self::V {
        // SAFETY: the caller's.
        unsafe { _mm256_blendv_ps(x, negative, _mm256_cmp_ps::<_CMP_LT_OQ>(x, _mm256_setzero_ps())) }
    }

    #[inline(always)]
    unsafe fn call<J: Job>(job: J) {
        // SAFETY: the caller's.
        unsafe { run(job) }
    }
}
