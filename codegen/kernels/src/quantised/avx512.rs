//! Integers by AVX-512 with its products of bytes (VNNI). An instruction adds four products of a byte and a signed byte to
//! each of 16 sums, none of which saturates, so elements are never widened. Vectors are as long as a panel.

use core::arch::x86_64::*;

use super::super::arch::{Avx512, PANEL};
use super::Requantise;
use super::integers::{Integers, Work};

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(crate) unsafe fn run<W: Work>(work: W) {
    work.run::<Avx512>();
}

/// The first lanes of a vector.
#[inline(always)]
fn first_lanes(lanes: usize) -> __mmask16 {
    if lanes < PANEL { (1 << lanes) - 1 } else { !0 }
}

/// The first bytes of a vector of 64.
#[inline(always)]
fn first_bytes(count: usize) -> __mmask64 {
    if count < BYTES { (1 << count) - 1 } else { !0 }
}

/// Bytes of a vector.
const BYTES: usize = 64;

/// Which fours of bytes go to each quarter: quarter `i` of the result has the fours `i` of all quarters.
static QUARTERS: [i32; PANEL] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// Which byte of its quarter goes to each byte: four `i` of the result has the bytes `i` of all fours.
static FOURS: [u8; BYTES] = {
    let mut places = [0; BYTES];
    let mut i = 0;
    while i < BYTES {
        places[i] = (i % 4 * 4 + i / 4 % 4) as u8;
        i += 1;
    }
    places
};

/// Which byte of its quarter goes to each byte, so that four steps of a sum, which lie as 0, 2, 1, 3, are in order.
static STEPS_IN_ORDER: [u8; BYTES] = {
    let mut places = [0; BYTES];
    let mut i = 0;
    while i < BYTES {
        places[i] = (i % 16 / 4 * 4 + [0, 2, 1, 3][i % 4]) as u8;
        i += 1;
    }
    places
};

/// The largest element, counted from the zero point; the zero point; the smallest element.
#[derive(Clone, Copy)]
pub(crate) struct Ends {
    high: __m512,
    zero_point: __m512i,
    low: __m512i,
}

/// Integers that sums become, counted from the zero point. What is below all elements stays so.
#[inline(always)]
unsafe fn rounded(sums: __m512i, scales: __m512, high: __m512) -> __m512i {
    // SAFETY: the caller's instructions.
    unsafe { _mm512_cvtps_epi32(_mm512_min_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales), high)) }
}

// SAFETY: each method is of instructions of the set, which its caller vouches for. Masked lanes are neither read nor written.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Integers for Avx512 {
    type Sums = __m512i;
    /// Fours of bytes.
    type Factors = __m512i;
    type Scales = __m512;
    type Ends = Ends;
    const LANES: usize = PANEL;
    const HAS_PARTS: bool = true;
    const DEPTH: usize = 4;
    const SIZE: usize = 1;
    const TILE: usize = 12;

    #[inline(always)]
    unsafe fn sums(p: *const u8, lanes: usize) -> Self::Sums {
        // SAFETY: the caller's.
        unsafe { _mm512_maskz_loadu_epi32(first_lanes(lanes), p.cast()) }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, lanes: usize) -> Self::Scales {
        // SAFETY: the caller's.
        unsafe { _mm512_maskz_loadu_ps(first_lanes(lanes), p.cast()) }
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, lanes: usize) -> Self::Factors {
        // SAFETY: the caller's.
        unsafe {
            match STEPS {
                2 => _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(first_lanes(lanes), p.cast())),
                _ => {
                    let fours = _mm512_maskz_loadu_epi32(first_lanes(lanes), p.cast());
                    _mm512_shuffle_epi8(fours, _mm512_loadu_si512(STEPS_IN_ORDER.as_ptr().cast()))
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: the caller's.
        unsafe {
            match STEPS {
                2 => _mm512_set1_epi32(p.cast::<u16>().read_unaligned().into()),
                _ => _mm512_set1_epi32(p.cast::<i32>().read_unaligned()),
            }
        }
    }

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], lanes: usize) -> [Self::Factors; V] {
        // SAFETY: the caller's.
        unsafe {
            let row = |i: usize| match rows.get(i) {
                Some(&row) => _mm_maskz_loadu_epi8(first_lanes(lanes), row.cast()),
                None => _mm_setzero_si128(),
            };
            // A row in each quarter.
            let mut all = _mm512_zextsi128_si512(row(0));
            if rows.len() > 1 {
                all = _mm512_inserti32x4::<1>(all, row(1));
            }
            if rows.len() > 2 {
                all = _mm512_inserti32x4::<2>(all, row(2));
            }
            if rows.len() > 3 {
                all = _mm512_inserti32x4::<3>(all, row(3));
            }
            let fours = _mm512_permutexvar_epi32(_mm512_loadu_si512(QUARTERS.as_ptr().cast()), all);
            [_mm512_shuffle_epi8(fours, _mm512_loadu_si512(FOURS.as_ptr().cast())); V]
        }
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(rows: &[*const u8], lanes: usize) -> [Self::Factors; V] {
        // SAFETY: the caller's.
        unsafe { Self::rows(rows, lanes) }
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, elements: Self::Factors, weights: Self::Factors) -> Self::Sums {
        // SAFETY: the caller's.
        unsafe { _mm512_dpbusd_epi32(sums, elements, weights) }
    }

    #[inline(always)]
    unsafe fn ends(how: Requantise) -> Self::Ends {
        let [_, high] = how.bounds();
        // SAFETY: the caller's.
        unsafe {
            Ends {
                high: _mm512_set1_ps(high),
                zero_point: _mm512_set1_epi16(how.zero_point.into()),
                low: _mm512_set1_epi8(how.low.cast_signed()),
            }
        }
    }

    #[inline(always)]
    unsafe fn requantise(
        sums: Self::Sums,
        scales: Self::Scales,
        ends: &Self::Ends,
        out: *mut u8,
        lanes: usize,
    ) {
        // SAFETY: the caller's. The same four times costs no more than once.
        unsafe { Self::requantise_four([sums; 4], scales, ends, [out; 4], lanes) }
    }

    #[inline(always)]
    unsafe fn requantise_four(
        sums: [Self::Sums; 4],
        scales: Self::Scales,
        ends: &Self::Ends,
        out: [*mut u8; 4],
        lanes: usize,
    ) {
        // SAFETY: the caller's.
        unsafe {
            let first = rounded(sums[0], scales, ends.high);
            let second = rounded(sums[1], scales, ends.high);
            let third = rounded(sums[2], scales, ends.high);
            let fourth = rounded(sums[3], scales, ends.high);
            let a = _mm512_adds_epi16(_mm512_packs_epi32(first, second), ends.zero_point);
            let b = _mm512_adds_epi16(_mm512_packs_epi32(third, fourth), ends.zero_point);
            // Each quarter has four elements of each vector.
            let mixed = _mm512_max_epu8(_mm512_packus_epi16(a, b), ends.low);
            let bytes = _mm512_permutexvar_epi32(_mm512_loadu_si512(QUARTERS.as_ptr().cast()), mixed);
            let mask = first_lanes(lanes);
            _mm_mask_storeu_epi8(out[0].cast(), mask, _mm512_castsi512_si128(bytes));
            _mm_mask_storeu_epi8(out[1].cast(), mask, _mm512_extracti32x4_epi32::<1>(bytes));
            _mm_mask_storeu_epi8(out[2].cast(), mask, _mm512_extracti32x4_epi32::<2>(bytes));
            _mm_mask_storeu_epi8(out[3].cast(), mask, _mm512_extracti32x4_epi32::<3>(bytes));
        }
    }

    #[inline(always)]
    unsafe fn gather(
        (from, between): (*const u8, usize),
        (to, span): (*mut u8, usize),
        [rows, count]: [usize; 2],
    ) {
        // SAFETY: the caller's.
        unsafe {
            for row in 0..rows {
                let (from, to) = (from.add(row * between), to.add(row * span));
                for at in (0..count).step_by(BYTES) {
                    let some = first_bytes(count - at);
                    let bytes = _mm512_maskz_loadu_epi8(some, from.add(at).cast());
                    _mm512_mask_storeu_epi8(to.add(at).cast(), some, bytes);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn call<W: Work>(work: W) {
        // SAFETY: the caller's.
        unsafe { run(work) }
    }
}
