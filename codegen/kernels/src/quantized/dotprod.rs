//! Integers by NEON with its products of bytes. An instruction adds four products of signed bytes to each of four sums,
//! none of which saturates. Elements are unsigned, so 128 is subtracted from them as they are loaded. That changes the sums of
//! all pixels by the same number, which is added to the biases.

use core::arch::aarch64::*;
use core::arch::asm;

use super::super::arch::Neon;
use super::Requantize;
use super::integers::{Integers, LANES, Lines, Work};
use super::neon::{self, MIDDLE};

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
#[target_feature(enable = "neon,dotprod")]
pub(crate) unsafe fn run<W: Work>(work: W) {
    work.run::<Dot>();
}

/// NEON with products of bytes.
#[derive(Clone, Copy)]
pub(crate) struct Dot;

/// The byte of a vector that goes to each byte, so that four steps of a sum, which lie as 0, 2, 1, 3, are in order.
static STEPS_IN_ORDER: [u8; 16] = [0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15];

/// Adds to each number the four products of its signed bytes. The function of the standard library that does this is not
/// stable yet.
///
/// # Safety
/// The processor has the instruction.
#[inline(always)]
unsafe fn dot(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the processor has `sdot`: `# Safety` of this function. It changes nothing but its register.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {a:v}.16b, {b:v}.16b",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// As [`dot`], where `b` is the same four bytes of a vector for all numbers: those with this index.
///
/// # Safety
/// The processor has the instruction.
#[inline(always)]
unsafe fn dot_of_four<const INDEX: usize>(mut sums: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: the processor has `sdot`: `# Safety` of this function. It changes nothing but its register.
    unsafe {
        asm!(
            "sdot {sums:v}.4s, {a:v}.16b, {b:v}.4b[{index}]",
            sums = inout(vreg) sums,
            a = in(vreg) a,
            b = in(vreg) b,
            index = const INDEX,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sums
}

/// Less by the middle, as a signed byte.
///
/// # Safety
/// The processor has NEON.
#[inline(always)]
unsafe fn signed(bytes: uint8x16_t) -> int8x16_t {
    // SAFETY: the processor has NEON: `# Safety` of this function.
    unsafe { vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(MIDDLE))) }
}

/// The bytes of four rows, one above the other: first those of the first four lanes of each vector.
///
/// # Safety
/// The processor has NEON.
#[inline(always)]
unsafe fn fours<const V: usize>([a, b, c, d]: [int8x16_t; 4]) -> [[int8x16_t; 2]; V] {
    // SAFETY: the processor has NEON: `# Safety` of this function.
    unsafe {
        let four = |ab: int8x16_t, cd: int8x16_t| {
            let (ab, cd) = (vreinterpretq_s16_s8(ab), vreinterpretq_s16_s8(cd));
            [vreinterpretq_s8_s16(vzip1q_s16(ab, cd)), vreinterpretq_s8_s16(vzip2q_s16(ab, cd))]
        };
        let mut all = [four(vzip1q_s8(a, b), vzip1q_s8(c, d)); V];
        if V == 2 {
            all[1] = four(vzip2q_s8(a, b), vzip2q_s8(c, d));
        }
        all
    }
}

/// The bytes of one or two vectors of a row.
///
/// # Safety
/// The processor has NEON, and `p` is good for `V` vectors of 8 bytes, 1 or 2.
#[inline(always)]
unsafe fn bytes<const V: usize>(p: *const u8) -> uint8x16_t {
    // SAFETY: the processor has NEON, and `p` is good for 8 bytes of each of 1 or 2 vectors: `# Safety` of this
    // function.
    unsafe { if V == 2 { vld1q_u8(p) } else { vcombine_u8(vld1_u8(p), vdup_n_u8(0)) } }
}

// SAFETY: there are 8 lanes, and each method touches what `Integers` says of its pointers and no more.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Integers for Dot {
    type Sums = <Neon as Integers>::Sums;
    /// Fours of signed bytes of the first lanes, and of the others.
    type Factors = [int8x16_t; 2];
    type Scales = <Neon as Integers>::Scales;
    type Clamp = neon::Clamp;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 4;
    const SIZE: usize = 1;
    const MIDDLE: u8 = MIDDLE;
    const TILE: usize = 4;
    const PANELS_PER_STEP: usize = 1;

    #[inline(always)]
    unsafe fn sums(p: *const u8, lanes: usize) -> Self::Sums {
        // SAFETY: the processor has NEON, and `p` is good for 8 numbers of 4 bytes: `# Safety` of `Integers`.
        unsafe { <Neon as Integers>::sums(p, lanes) }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, lanes: usize) -> Self::Scales {
        // SAFETY: the processor has NEON, and `p` is good for 8 floats of 4 bytes: `# Safety` of `Integers`.
        unsafe { <Neon as Integers>::scales(p, lanes) }
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, _: usize) -> Self::Factors {
        // SAFETY: the processor has NEON, and `p` is good for `STEPS` bytes of each of 8 lanes: `# Safety` of
        // `Integers`.
        unsafe {
            if STEPS == 2 {
                let twos = vld1q_u16(p.cast());
                let fours = [vmovl_u16(vget_low_u16(twos)), vmovl_high_u16(twos)];
                return [vreinterpretq_s8_u32(fours[0]), vreinterpretq_s8_u32(fours[1])];
            }
            let order = vld1q_u8(STEPS_IN_ORDER.as_ptr());
            [vqtbl1q_s8(vld1q_s8(p.cast()), order), vqtbl1q_s8(vld1q_s8(p.add(16).cast()), order)]
        }
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: the processor has NEON, and `p` is good for `STEPS` elements of a byte: `# Safety` of `Integers`.
        unsafe {
            let four = match STEPS {
                2 => vdupq_n_u32(p.cast::<u16>().read_unaligned().into()),
                _ => vdupq_n_u32(p.cast::<u32>().read_unaligned()),
            };
            [signed(vreinterpretq_u8_u32(four)); 2]
        }
    }

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], _: usize) -> [Self::Factors; V] {
        // SAFETY: the processor has NEON, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let mut all = [vdupq_n_s8(0); 4];
            for (row, &p) in all.iter_mut().zip(rows) {
                *row = signed(bytes::<V>(p));
            }
            fours(all)
        }
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        // SAFETY: the processor has NEON, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let mut all = [vdupq_n_s8(0); 4];
            for (i, row) in all.iter_mut().enumerate().take(rows) {
                *row = vreinterpretq_s8_u8(bytes::<V>(at(i, 0).0));
            }
            fours(all)
        }
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has `sdot`: `# Safety` of `Integers`.
        unsafe { [dot(sums[0], a[0], b[0]), dot(sums[1], a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn add_middle(sums: Self::Sums, weights: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has `sdot`: `# Safety` of `Integers`. The middle is no signed byte, but its half is.
        unsafe {
            let half = [vdupq_n_s8((MIDDLE / 2).cast_signed()); 2];
            Self::add_products(Self::add_products(sums, half, weights), half, weights)
        }
    }

    #[inline(always)]
    unsafe fn add_middle_of_fours(sums: Self::Sums, p: *const u8, width: usize, fours: usize) -> Self::Sums {
        // SAFETY: the processor has the instructions, and there are weights of these steps for 8 lanes: `# Safety` of
        // `Integers`.
        unsafe {
            let (one, mut all) = (vdupq_n_s8(1), [vdupq_n_s32(0); 2]);
            for four in 0..fours {
                let p = p.wrapping_add(4 * width * four);
                all[0] = dot_of_four::<0>(all[0], vld1q_s8(p.cast()), one);
                all[1] = dot_of_four::<0>(all[1], vld1q_s8(p.add(16).cast()), one);
            }
            // The middle is 2⁷.
            [0, 1].map(|i| vaddq_s32(sums[i], vshlq_n_s32::<7>(all[i])))
        }
    }

    /// A vector of a pixel's elements is put into the order in which the weights of its four fours lie; so the weights of the
    /// vectors of channels, which are many more, need not be.
    #[inline(always)]
    unsafe fn add_fours<const M: usize, const N: usize>(
        sums: &mut [[Self::Sums; N]; M],
        at: impl Fn(usize) -> (*const u8, usize),
        pixels: &[*const u8; M],
        lines: Lines,
        fours: usize,
        _: bool,
    ) -> bool {
        let mut all = *sums;
        let mut weights: [_; N] = core::array::from_fn(&at);
        macro_rules! add {
            ($elements:ident, $($index:literal)*) => {
                $(for v in 0..N {
                    let (p, width) = weights[v];
                    let [first, second] = [vld1q_s8(p.cast()), vld1q_s8(p.add(16).cast())];
                    for i in 0..M {
                        let [low, high] = all[i][v];
                        let low = dot_of_four::<$index>(low, first, $elements[i]);
                        all[i][v] = [low, dot_of_four::<$index>(high, second, $elements[i])];
                    }
                    weights[v].0 = p.wrapping_add(4 * width);
                })*
            };
        }
        // SAFETY: the processor has the instructions, and there are weights of these steps for 8 lanes of each vector, and the
        // steps of each pixel: `# Safety` of `Integers`.
        unsafe {
            let order = vld1q_u8(STEPS_IN_ORDER.as_ptr());
            let mut pixels = *pixels;
            for _ in 0..lines.count {
                for step in (0..fours / 4 * 16).step_by(16) {
                    let mut elements = [vdupq_n_s8(0); M];
                    for i in 0..M {
                        elements[i] = vqtbl1q_s8(signed(vld1q_u8(pixels[i].add(step))), order);
                    }
                    add!(elements, 0 1 2 3);
                }
                for step in (fours / 4 * 16..4 * fours).step_by(4) {
                    let mut elements = [vdupq_n_s8(0); M];
                    for i in 0..M {
                        let [four, _] = Self::steps::<4>(pixels[i].add(step));
                        elements[i] = vqtbl1q_s8(four, order);
                    }
                    add!(elements, 0);
                }
                pixels = pixels.map(|pixel| pixel.wrapping_add(lines.between));
            }
        }
        *sums = all;
        true
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        // SAFETY: the processor has NEON: `# Safety` of `Integers`.
        unsafe { <Neon as Integers>::add_to_all(sums, number) }
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        // SAFETY: the processor has NEON: `# Safety` of `Integers`.
        unsafe { <Neon as Integers>::clamp(how) }
    }

    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        lanes: usize,
    ) {
        // SAFETY: the processor has NEON, and `out` is good for 8 bytes: `# Safety` of `Integers`.
        unsafe { <Neon as Integers>::requantize(sums, scales, clamp, out, lanes) }
    }

    #[inline(always)]
    unsafe fn gather(from: (*const u8, usize), to: (*mut u8, usize), size: [usize; 2]) {
        // SAFETY: the processor has NEON, and in each row `from` and `to` are good for the elements: `# Safety` of
        // `Integers`.
        unsafe { <Neon as Integers>::gather(from, to, size) }
    }

    #[inline(always)]
    unsafe fn call<W: Work>(work: W) {
        // SAFETY: the processor has NEON with products of bytes: `# Safety` of `Integers`.
        unsafe { run(work) }
    }
}
