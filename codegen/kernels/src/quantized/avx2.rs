//! Integers by AVX2, also where longer vectors have no products of bytes.

use core::arch::x86_64::*;

use super::super::arch::Avx2;
use super::Requantize;
use super::integers::{Integers, LANES, Work};

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn run<W: Work>(work: W) {
    work.run::<Avx2>();
}

/// The integers that sums become, as 32-bit numbers, counted from the zero point. Numbers below all elements stay
/// below.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn rounded(sums: __m256i, scales: __m256, high: __m256) -> __m256i {
    // SAFETY: the processor has AVX2: `# Safety` of this function.
    unsafe { _mm256_cvtps_epi32(_mm256_min_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), scales), high)) }
}

/// The byte of its half that goes to each byte of a vector; a zero if the topmost bit is set.
#[repr(align(32))]
struct Places([u8; 32]);

/// Each of 16 bytes, which both halves hold, as 16 bits.
static WIDE: Places = Places::new(2, 0);
/// Each of the first 8 bytes as 32 bits, and each of the others.
static FIRST: Places = Places::new(4, 0);
static SECOND: Places = Places::new(4, 8);

impl Places {
    /// Byte after byte, counted from `first`, each widened to `size` bytes.
    const fn new(size: usize, first: u8) -> Self {
        let mut places = [0x80; 32];
        let mut i = 0;
        while i < 32 / size {
            places[i * size] = first + i as u8;
            i += 1;
        }
        Places(places)
    }

    /// As a vector.
    ///
    /// # Safety
    /// The processor has AVX2.
    #[inline(always)]
    unsafe fn vector(&self) -> __m256i {
        // SAFETY: the processor has AVX2: `# Safety` of this function. The 32 bytes are aligned to 32, as the structure
        // is.
        unsafe { _mm256_load_si256(self.0.as_ptr().cast()) }
    }
}

/// Numbers of 16 bits in a vector.
const LANES2: usize = 2 * LANES;

/// Widens 16 bytes.
///
/// # Safety
/// The processor has AVX2, `from` is good for 16 bytes, and `to` for 16 numbers.
#[inline(always)]
unsafe fn widen_16(from: *const u8, to: *mut i16) {
    // SAFETY: the processor has AVX2, `from` is good for 16 bytes, `to` for 16 numbers: `# Safety` of this function.
    unsafe { _mm256_storeu_si256(to.cast(), _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast()))) }
}

/// Widens 8 bytes.
///
/// # Safety
/// The processor has AVX2, `from` is good for 8 bytes, and `to` for 8 numbers.
#[inline(always)]
unsafe fn widen_8(from: *const u8, to: *mut i16) {
    // SAFETY: the processor has AVX2, `from` is good for 8 bytes, `to` for 8 numbers: `# Safety` of this function.
    unsafe { _mm_storeu_si128(to.cast(), _mm_cvtepu8_epi16(_mm_loadl_epi64(from.cast()))) }
}

/// The bytes of `V` vectors of a row: those of two in each half, of one in each quarter.
///
/// # Safety
/// The processor has AVX2, and `p` is good for `V` vectors of 8 bytes, 1 or 2.
#[inline(always)]
unsafe fn bytes<const V: usize>(p: *const u8) -> __m256i {
    // SAFETY: the processor has AVX2, and `p` is good for 8 bytes of each of 1 or 2 vectors: `# Safety` of this
    // function.
    unsafe {
        match V {
            1 => _mm256_set1_epi64x(p.cast::<i64>().read_unaligned()),
            _ => _mm256_broadcastsi128_si256(_mm_loadu_si128(p.cast())),
        }
    }
}

/// Each byte of `V` vectors of the one row with that of the other.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn pairs<const V: usize>(upper: __m256i, lower: __m256i) -> [__m256i; V] {
    // SAFETY: the processor has AVX2: `# Safety` of this function.
    unsafe {
        let mut pairs = [_mm256_shuffle_epi8(_mm256_unpacklo_epi8(upper, lower), WIDE.vector()); V];
        if V == 2 {
            pairs[1] = _mm256_shuffle_epi8(_mm256_unpackhi_epi8(upper, lower), WIDE.vector());
        }
        pairs
    }
}

/// The largest element, counted from the zero point; the zero point; the smallest element.
#[derive(Clone, Copy)]
pub(crate) struct Clamp {
    high: __m256,
    zero_point: __m256i,
    low: __m128i,
}

// SAFETY: there are 8 lanes, and each method touches what `Integers` says of its pointers and no more.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Integers for Avx2 {
    type Sums = __m256i;
    /// Pairs of 16 bits.
    type Factors = __m256i;
    type Scales = __m256;
    type Clamp = Clamp;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 2;
    const SIZE: usize = 2;
    const TILE: usize = 6;
    const PANELS_PER_STEP: usize = 1;

    #[inline(always)]
    unsafe fn sums(p: *const u8, _: usize) -> Self::Sums {
        // SAFETY: the processor has AVX2, and `p` is good for 8 numbers of 4 bytes: `# Safety` of `Integers`.
        unsafe { _mm256_loadu_si256(p.cast()) }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, _: usize) -> Self::Scales {
        // SAFETY: the processor has AVX2, and `p` is good for 8 floats of 4 bytes: `# Safety` of `Integers`.
        unsafe { _mm256_loadu_ps(p.cast()) }
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, _: usize) -> Self::Factors {
        // SAFETY: the processor has AVX2, and `p` is good for `STEPS` bytes of each of 8 lanes: `# Safety` of
        // `Integers`.
        unsafe {
            match (STEPS, PART) {
                (2, _) => _mm256_cvtepi8_epi16(_mm_loadu_si128(p.cast())),
                // The lower bytes of all numbers, and the upper ones.
                (_, 0) => _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(_mm256_loadu_si256(p.cast()))),
                _ => _mm256_srai_epi16::<8>(_mm256_loadu_si256(p.cast())),
            }
        }
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: the processor has AVX2, and `p` is good for two elements of 2 bytes: `# Safety` of `Integers`.
        unsafe { _mm256_set1_epi32(p.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], _: usize) -> [Self::Factors; V] {
        // SAFETY: the processor has AVX2, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            if let &[upper, lower] = rows {
                return pairs(bytes::<V>(upper), bytes::<V>(lower));
            }
            let bytes = bytes::<V>(rows[0]);
            let mut singles = [_mm256_shuffle_epi8(bytes, FIRST.vector()); V];
            if V == 2 {
                singles[1] = _mm256_shuffle_epi8(bytes, SECOND.vector());
            }
            singles
        }
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        let all = [at(0, 0).0, at(1, 0).0];
        // SAFETY: the processor has AVX2, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let mut pairs = Self::rows::<V>(&all[..rows], V * LANES);
            for pair in &mut pairs {
                // The sign of the lower byte of each number.
                *pair = _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(*pair));
            }
            pairs
        }
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has AVX2: `# Safety` of `Integers`.
        unsafe { _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)) }
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        // SAFETY: the processor has AVX2: `# Safety` of `Integers`.
        unsafe { _mm256_add_epi32(sums, _mm256_set1_epi32(number)) }
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        let [_, high] = how.bounds();
        // SAFETY: the processor has AVX2: `# Safety` of `Integers`.
        unsafe {
            Clamp {
                high: _mm256_set1_ps(high),
                zero_point: _mm256_set1_epi16(how.zero_point.into()),
                low: _mm_set1_epi8(how.low.cast_signed()),
            }
        }
    }

    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        _: usize,
    ) {
        // SAFETY: the processor has AVX2, and `out` is good for 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let whole = rounded(sums, scales, clamp.high);
            let [a, b] = [_mm256_castsi256_si128(whole), _mm256_extracti128_si256::<1>(whole)];
            let zero_point = _mm256_castsi256_si128(clamp.zero_point);
            let counted = _mm_adds_epi16(_mm_packs_epi32(a, b), zero_point);
            let bytes = _mm_max_epu8(_mm_packus_epi16(counted, counted), clamp.low);
            _mm_storel_epi64(out.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn requantize_two(
        sums: [Self::Sums; 2],
        scales: [Self::Scales; 2],
        clamp: &Self::Clamp,
        out: *mut u8,
    ) {
        // SAFETY: the processor has AVX2, and `out` is good for 16 bytes: `# Safety` of `Integers`.
        unsafe {
            let a = rounded(sums[0], scales[0], clamp.high);
            let b = rounded(sums[1], scales[1], clamp.high);
            // In four parts: those of `a` and `b`, then again.
            let parts = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(a, b));
            let counted = _mm256_adds_epi16(parts, clamp.zero_point);
            let [a, b] = [_mm256_castsi256_si128(counted), _mm256_extracti128_si256::<1>(counted)];
            _mm_storeu_si128(out.cast(), _mm_max_epu8(_mm_packus_epi16(a, b), clamp.low));
        }
    }

    #[inline(always)]
    unsafe fn gather(
        (from, between): (*const u8, usize),
        (to, span): (*mut u8, usize),
        [rows, count]: [usize; 2],
    ) {
        // SAFETY: the processor has AVX2, and in each row `from` is good for `count` bytes and `to` for `count`
        // elements of 2 bytes: `# Safety` of `Integers`. The last vector of a row ends with its last byte, and begins
        // with some that were done before.
        unsafe {
            for row in 0..rows {
                let (from, to) = (from.add(row * between), to.cast::<i16>().add(row * span));
                let whole = count / LANES2 * LANES2;
                for at in (0..whole).step_by(LANES2) {
                    widen_16(from.add(at), to.add(at));
                }
                match count - whole {
                    0 => {}
                    _ if whole > 0 => widen_16(from.add(count - LANES2), to.add(count - LANES2)),
                    LANES.. => {
                        widen_8(from, to);
                        widen_8(from.add(count - LANES), to.add(count - LANES));
                    }
                    _ => {
                        for at in 0..count {
                            to.add(at).write_unaligned((*from.add(at)).into());
                        }
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn call<W: Work>(work: W) {
        // SAFETY: the processor has AVX2, FMA and F16C: `# Safety` of `Integers`.
        unsafe { run(work) }
    }
}
