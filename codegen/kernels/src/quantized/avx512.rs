//! Integers by AVX-512 with its products of bytes (VNNI). An instruction adds four products of a byte and a signed byte to
//! each of 16 sums, none of which saturates, so elements are never widened. Vectors are as long as a panel.

use core::arch::x86_64::*;

use super::super::arch::{Avx512, PANEL};
use super::Requantize;
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
pub(crate) struct Clamp {
    high: __m512,
    zero_point: __m512i,
    low: __m512i,
}

/// The integers that sums become, counted from the zero point. Numbers below all elements stay below.
///
/// # Safety
/// The processor has AVX-512F.
#[inline(always)]
unsafe fn rounded(sums: __m512i, scales: __m512, high: __m512) -> __m512i {
    // SAFETY: the processor has AVX-512F: `# Safety` of this function.
    unsafe { _mm512_cvtps_epi32(_mm512_min_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), scales), high)) }
}

/// The elements of four vectors of such integers: in each quarter those of the same quarter of all vectors.
///
/// # Safety
/// The processor has AVX-512F and BW.
#[inline(always)]
unsafe fn elements([a, b, c, d]: [__m512i; 4], clamp: &Clamp) -> __m512i {
    // SAFETY: the processor has AVX-512F and BW: `# Safety` of this function.
    unsafe {
        let first = _mm512_adds_epi16(_mm512_packs_epi32(a, b), clamp.zero_point);
        let second = _mm512_adds_epi16(_mm512_packs_epi32(c, d), clamp.zero_point);
        _mm512_max_epu8(_mm512_packus_epi16(first, second), clamp.low)
    }
}

/// So many numbers.
///
/// # Safety
/// The processor has AVX-512F, and `p` is good for `lanes` numbers of 4 bytes.
#[inline(always)]
unsafe fn numbers((p, lanes): (*const u8, usize)) -> __m512i {
    // SAFETY: the processor has AVX-512F, and `p` is good for `lanes` numbers, beyond which the mask reads none:
    // `# Safety` of this function.
    unsafe { _mm512_maskz_loadu_epi32(first_lanes(lanes), p.cast()) }
}

/// So many bytes.
///
/// # Safety
/// The processor has AVX-512F, BW and VL, and `p` is good for `lanes` bytes.
#[inline(always)]
unsafe fn bytes((p, lanes): (*const u8, usize)) -> __m128i {
    // SAFETY: the processor has AVX-512F, BW and VL, and `p` is good for `lanes` bytes, beyond which the mask reads
    // none: `# Safety` of this function.
    unsafe { _mm_maskz_loadu_epi8(first_lanes(lanes), p.cast()) }
}

/// The bytes of four rows, one above the other. Each quarter of vector `v` has those of the fours `v` of the rows' same quarters.
/// [`elements`] of such vectors are in the order of the rows.
///
/// # Safety
/// The processor has AVX-512F and BW.
#[inline(always)]
unsafe fn fours<const V: usize>(rows: [__m512i; 4]) -> [__m512i; V] {
    let [a, b, c, d] = rows;
    // SAFETY: the processor has AVX-512F and BW: `# Safety` of this function.
    unsafe {
        let [ab, cd] = [_mm512_unpacklo_epi8(a, b), _mm512_unpacklo_epi8(c, d)];
        let [ef, gh] = [_mm512_unpackhi_epi8(a, b), _mm512_unpackhi_epi8(c, d)];
        let mut all = [_mm512_unpacklo_epi16(ab, cd); V];
        if V == 4 {
            all[1] = _mm512_unpackhi_epi16(ab, cd);
            all[2] = _mm512_unpacklo_epi16(ef, gh);
            all[3] = _mm512_unpackhi_epi16(ef, gh);
        }
        all
    }
}

// SAFETY: there are 16 lanes, a panel, and each method touches what `Integers` says of its pointers and no more: lanes
// that are masked out are neither read nor written.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Integers for Avx512 {
    type Sums = __m512i;
    /// Vectors of 4 bytes for each sum.
    type Factors = __m512i;
    type Scales = __m512;
    type Clamp = Clamp;
    const LANES: usize = PANEL;
    const HAS_PARTS: bool = true;
    const DEPTH: usize = 4;
    const SIZE: usize = 1;
    const TILE: usize = 12;
    const PANELS_PER_STEP: usize = 4;

    #[inline(always)]
    unsafe fn sums(p: *const u8, lanes: usize) -> Self::Sums {
        // SAFETY: the processor has AVX-512F, and `p` is good for `lanes` numbers of 4 bytes: `# Safety` of `Integers`.
        unsafe { _mm512_maskz_loadu_epi32(first_lanes(lanes), p.cast()) }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, lanes: usize) -> Self::Scales {
        // SAFETY: the processor has AVX-512F, and `p` is good for `lanes` floats of 4 bytes: `# Safety` of `Integers`.
        unsafe { _mm512_maskz_loadu_ps(first_lanes(lanes), p.cast()) }
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, lanes: usize) -> Self::Factors {
        // SAFETY: the processor has AVX-512F, BW and VL, and `p` is good for `STEPS` bytes of each of `lanes` lanes:
        // `# Safety` of `Integers`.
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
        // SAFETY: the processor has AVX-512F, and `p` is good for `STEPS` elements of a byte: `# Safety` of `Integers`.
        unsafe {
            match STEPS {
                2 => _mm512_set1_epi32(p.cast::<u16>().read_unaligned().into()),
                _ => _mm512_set1_epi32(p.cast::<i32>().read_unaligned()),
            }
        }
    }

    #[inline(always)]
    unsafe fn channels<const V: usize>(at: impl Fn(usize) -> (*const u8, usize)) -> [Self::Sums; V] {
        // SAFETY: the processor has AVX-512F, and each of four panels is good for as many numbers as `at` says, which
        // may be none: `# Safety` of `Integers`.
        unsafe {
            let [a, b, c, d] = [numbers(at(0)), numbers(at(1)), numbers(at(2)), numbers(at(3))];
            // Two quarters of two panels, then quarter `v` of all panels.
            let [ab, cd] = [_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0x44>(c, d)];
            let [ef, gh] = [_mm512_shuffle_i32x4::<0xee>(a, b), _mm512_shuffle_i32x4::<0xee>(c, d)];
            let mut all = [_mm512_shuffle_i32x4::<0x88>(ab, cd); V];
            if V == 4 {
                all[1] = _mm512_shuffle_i32x4::<0xdd>(ab, cd);
                all[2] = _mm512_shuffle_i32x4::<0x88>(ef, gh);
                all[3] = _mm512_shuffle_i32x4::<0xdd>(ef, gh);
            }
            all
        }
    }

    #[inline(always)]
    unsafe fn channel_scales<const V: usize>(at: impl Fn(usize) -> (*const u8, usize)) -> [Self::Scales; V] {
        // SAFETY: `channels` asks for what this method asks for, and floats have as many bytes: `# Safety` of
        // `Integers`.
        unsafe {
            let numbers = Self::channels::<V>(at);
            let mut all = [_mm512_castsi512_ps(numbers[0]); V];
            for (floats, numbers) in all.iter_mut().zip(numbers) {
                *floats = _mm512_castsi512_ps(numbers);
            }
            all
        }
    }

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], lanes: usize) -> [Self::Factors; V] {
        let some = first_bytes(lanes);
        // SAFETY: the processor has AVX-512F and BW, and each row is good for `lanes` bytes: `# Safety` of `Integers`.
        unsafe {
            let mut all = [_mm512_setzero_si512(); 4];
            for (row, &p) in all.iter_mut().zip(rows) {
                *row = _mm512_maskz_loadu_epi8(some, p.cast());
            }
            fours(all)
        }
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        // SAFETY: the processor has AVX-512F, BW and VL, and in each of the `rows` rows each of four panels is good for
        // as many bytes as `at` says: `# Safety` of `Integers`.
        unsafe {
            let mut all = [_mm512_setzero_si512(); 4];
            for (i, row) in all.iter_mut().enumerate().take(rows) {
                let [a, b, c, d] = [bytes(at(i, 0)), bytes(at(i, 1)), bytes(at(i, 2)), bytes(at(i, 3))];
                let lower = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
                let upper = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
                *row = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(lower), upper);
            }
            fours(all)
        }
    }

    #[inline(always)]
    unsafe fn requantize_channels<const V: usize>(
        sums: [Self::Sums; V],
        scales: &[Self::Scales; V],
        clamp: &Self::Clamp,
        out: *mut u8,
        lanes: usize,
    ) {
        // SAFETY: the processor has AVX-512F and BW, and `out` is good for `lanes` bytes: `# Safety` of `Integers`.
        unsafe {
            let mut all = [_mm512_setzero_si512(); 4];
            for v in 0..V {
                all[v] = rounded(sums[v], scales[v], clamp.high);
            }
            let bytes = elements(all, clamp);
            _mm512_mask_storeu_epi8(out.cast(), first_bytes(lanes), bytes);
        }
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, elements: Self::Factors, weights: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has AVX-512 VNNI: `# Safety` of `Integers`.
        unsafe { _mm512_dpbusd_epi32(sums, elements, weights) }
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        // SAFETY: the processor has AVX-512F: `# Safety` of `Integers`.
        unsafe { _mm512_add_epi32(sums, _mm512_set1_epi32(number)) }
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        let [_, high] = how.bounds();
        // SAFETY: the processor has AVX-512F and BW: `# Safety` of `Integers`.
        unsafe {
            Clamp {
                high: _mm512_set1_ps(high),
                zero_point: _mm512_set1_epi16(how.zero_point.into()),
                low: _mm512_set1_epi8(how.low.cast_signed()),
            }
        }
    }

    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        lanes: usize,
    ) {
        // SAFETY: `out` is good for `lanes` bytes: `# Safety` of `Integers`.
        unsafe { Self::requantize_all(&[[sums]], &[scales], clamp, lanes, |_| out) }
    }

    #[inline(always)]
    unsafe fn requantize_all<const V: usize, const M: usize>(
        sums: &[[Self::Sums; V]; M],
        scales: &[Self::Scales; V],
        clamp: &Self::Clamp,
        lanes: usize,
        out: impl Fn(usize) -> *mut u8,
    ) {
        // Four vectors at once, which are of four pixels, of two, or of one. If fewer pixels are left, the last goes again.
        let of = |at: usize, i: usize| (M - 1).min(at + i / V);
        for at in (0..M).step_by(4 / V) {
            // SAFETY: the processor has the instructions, and `out` of each of the `M` pixels is good for `lanes`
            // bytes: `# Safety` of `Integers`. Nothing is written for a pixel that goes again.
            unsafe {
                let a = rounded(sums[of(at, 0)][0], scales[0], clamp.high);
                let b = rounded(sums[of(at, 1)][1 % V], scales[1 % V], clamp.high);
                let c = rounded(sums[of(at, 2)][2 % V], scales[2 % V], clamp.high);
                let d = rounded(sums[of(at, 3)][3 % V], scales[3 % V], clamp.high);
                let mixed = elements([a, b, c, d], clamp);
                // Each quarter has four elements of each vector.
                let bytes = _mm512_permutexvar_epi32(_mm512_loadu_si512(QUARTERS.as_ptr().cast()), mixed);
                match V {
                    4 => _mm512_mask_storeu_epi8(out(at).cast(), first_bytes(lanes), bytes),
                    2 => {
                        let some = first_bytes(lanes) as __mmask32;
                        let [a, b] = [_mm512_castsi512_si256(bytes), _mm512_extracti64x4_epi64::<1>(bytes)];
                        _mm256_mask_storeu_epi8(out(at).cast(), some, a);
                        if at + 1 < M {
                            _mm256_mask_storeu_epi8(out(at + 1).cast(), some, b);
                        }
                    }
                    _ => {
                        let some = first_lanes(lanes);
                        _mm_mask_storeu_epi8(out(at).cast(), some, _mm512_castsi512_si128(bytes));
                        if at + 1 < M {
                            let second = _mm512_extracti32x4_epi32::<1>(bytes);
                            _mm_mask_storeu_epi8(out(at + 1).cast(), some, second);
                        }
                        if at + 2 < M {
                            let third = _mm512_extracti32x4_epi32::<2>(bytes);
                            _mm_mask_storeu_epi8(out(at + 2).cast(), some, third);
                        }
                        if at + 3 < M {
                            let fourth = _mm512_extracti32x4_epi32::<3>(bytes);
                            _mm_mask_storeu_epi8(out(at + 3).cast(), some, fourth);
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn gather(
        (from, between): (*const u8, usize),
        (to, span): (*mut u8, usize),
        [rows, count]: [usize; 2],
    ) {
        // SAFETY: the processor has AVX-512F, BW and VL, and in each row both pointers are good for `count` bytes:
        // `# Safety` of `Integers`.
        unsafe {
            // A short vector seldom crosses a line of the cache.
            if count <= PANEL {
                let some = first_lanes(count);
                for row in 0..rows {
                    let bytes = _mm_maskz_loadu_epi8(some, from.add(row * between).cast());
                    _mm_mask_storeu_epi8(to.add(row * span).cast(), some, bytes);
                }
                return;
            }
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
        // SAFETY: the processor has AVX-512F, BW, VL and VNNI: `# Safety` of `Integers`.
        unsafe { run(work) }
    }
}
