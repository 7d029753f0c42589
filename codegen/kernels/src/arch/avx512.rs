//! AVX-512.

use core::arch::x86_64::*;

use super::super::half::F16;
use super::simd::{Job, Simd};

/// AVX-512.
#[derive(Clone, Copy)]
pub(crate) struct Avx512;

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
#[target_feature(enable = "avx512f")]
pub(crate) unsafe fn run<J: Job>(job: J) {
    job.run::<Avx512>();
}

/// The first `count` elements.
#[inline(always)]
fn mask(count: usize) -> __mmask16 {
    if count < 16 { (1 << count) - 1 } else { !0 }
}

// SAFETY: 16 lanes are a panel, and each method touches the 16 elements at its pointer, or the first `count`, and no
// others.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    const REGISTERS: usize = 32;
    const PIXELS: usize = 12;
    const VECTORS: usize = 2;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Simd`.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        // SAFETY: the processor has AVX-512F, and `p` is good for 16 floats: `# Safety` of `Simd`.
        unsafe { _mm512_loadu_ps(p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        // SAFETY: the processor has AVX-512F, and `p` is good for 16 floats: `# Safety` of `Simd`.
        unsafe { _mm512_storeu_ps(p, v) }
    }

    #[inline(always)]
    unsafe fn prefetch(p: *const u8) {
        // SAFETY: every x86-64 processor has SSE, and a prefetch of an address that is not there does nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
    }

    #[inline(always)]
    unsafe fn load_half(p: *const F16) -> Self::V {
        // SAFETY: the processor has AVX-512F, and `p` is good for 16 halves: `# Safety` of `Simd`.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(p.cast())) }
    }

    #[inline(always)]
    unsafe fn load_byte(p: *const i8) -> Self::V {
        // SAFETY: the processor has AVX-512F, and `p` is good for 16 integers of a byte: `# Safety` of `Simd`.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast()))) }
    }

    #[inline(always)]
    unsafe fn store_half(p: *mut F16, v: Self::V) {
        // SAFETY: the processor has AVX-512F, and `p` is good for 16 halves: `# Safety` of `Simd`.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v)) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Simd`.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Simd`.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn max(bound: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Simd`.
        unsafe { _mm512_max_ps(bound, x) }
    }

    #[inline(always)]
    unsafe fn min(bound: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Simd`.
        unsafe { _mm512_min_ps(bound, x) }
    }

    #[inline(always)]
    unsafe fn load_masked(p: *const f32, count: usize) -> Self::V {
        // SAFETY: the processor has AVX-512F, and `p` is good for `count` floats: `# Safety` of `Simd`. The mask leaves
        // out the others, which are not read.
        unsafe { _mm512_maskz_loadu_ps(mask(count), p) }
    }

    #[inline(always)]
    unsafe fn store_masked(p: *mut f32, count: usize, v: Self::V) {
        // SAFETY: the processor has AVX-512F, and `p` is good for `count` floats: `# Safety` of `Simd`. The mask leaves
        // out the others, which are not written.
        unsafe { _mm512_mask_storeu_ps(p, mask(count), v) }
    }

    #[inline(always)]
    unsafe fn select_negative(x: Self::V, negative: Self::V) -> Self::V {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Simd`.
        unsafe { _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask::<_CMP_LT_OQ>(x, _mm512_setzero_ps()), negative) }
    }

    #[inline(always)]
    unsafe fn call<J: Job>(job: J) {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Simd`.
        unsafe { run(job) }
    }
}
