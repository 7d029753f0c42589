//! Integers by NEON.

use core::arch::aarch64::*;

use super::super::arch::Neon;
use super::Requantize;
use super::integers::{Integers, LANES, Work};

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
#[target_feature(enable = "neon")]
pub(crate) unsafe fn run<W: Work>(work: W) {
    work.run::<Neon>();
}

/// The zero point, and the smallest and the largest element.
#[derive(Clone, Copy)]
pub(crate) struct Clamp {
    zero_point: int16x8_t,
    low: uint8x8_t,
    high: uint8x8_t,
}

/// 8 bytes as numbers of 16 bits.
///
/// # Safety
/// The processor has NEON.
#[inline(always)]
unsafe fn wide(bytes: uint8x8_t) -> int16x8_t {
    // SAFETY: the processor has NEON: `# Safety` of this function.
    unsafe { vreinterpretq_s16_u16(vmovl_u8(bytes)) }
}

/// The bytes of `V` vectors of a row, each as a number.
///
/// # Safety
/// The processor has NEON, and `p` is good for `V` vectors of 8 bytes, 1 or 2.
#[inline(always)]
unsafe fn numbers<const V: usize>(p: *const u8) -> [int16x8_t; V] {
    // SAFETY: the processor has NEON, and `p` is good for 8 bytes of each of 1 or 2 vectors: `# Safety` of this
    // function.
    unsafe {
        let mut numbers = [wide(vld1_u8(p)); V];
        if V == 2 {
            numbers[1] = wide(vld1_u8(p.add(LANES)));
        }
        numbers
    }
}

// SAFETY: there are 8 lanes, and each method touches what `Integers` says of its pointers and no more.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Integers for Neon {
    type Sums = [int32x4_t; 2];
    /// The first numbers of all pairs, then the second.
    type Factors = [int16x8_t; 2];
    type Scales = [float32x4_t; 2];
    type Clamp = Clamp;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 2;
    const SIZE: usize = 2;
    const TILE: usize = 4;
    const PANELS_PER_STEP: usize = 1;

    #[inline(always)]
    unsafe fn sums(p: *const u8, _: usize) -> Self::Sums {
        // SAFETY: the processor has NEON, and `p` is good for 8 numbers of 4 bytes: `# Safety` of `Integers`.
        unsafe { [vreinterpretq_s32_u8(vld1q_u8(p)), vreinterpretq_s32_u8(vld1q_u8(p.add(16)))] }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, _: usize) -> Self::Scales {
        // SAFETY: the processor has NEON, and `p` is good for 8 floats of 4 bytes: `# Safety` of `Integers`.
        unsafe { [vreinterpretq_f32_u8(vld1q_u8(p)), vreinterpretq_f32_u8(vld1q_u8(p.add(16)))] }
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, _: usize) -> Self::Factors {
        // SAFETY: the processor has NEON, and `p` is good for `STEPS` bytes of each of 8 lanes: `# Safety` of
        // `Integers`.
        unsafe {
            let [first, second] = match (STEPS, PART) {
                (2, _) => {
                    let bytes = vld2_s8(p.cast());
                    [bytes.0, bytes.1]
                }
                (_, 0) => {
                    let bytes = vld4_s8(p.cast());
                    [bytes.0, bytes.2]
                }
                _ => {
                    let bytes = vld4_s8(p.cast());
                    [bytes.1, bytes.3]
                }
            };
            [vmovl_s8(first), vmovl_s8(second)]
        }
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        let p = p.cast::<i16>();
        // SAFETY: the processor has NEON, and `p` is good for two elements of 2 bytes: `# Safety` of `Integers`.
        unsafe { [vdupq_n_s16(p.read_unaligned()), vdupq_n_s16(p.add(1).read_unaligned())] }
    }

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], _: usize) -> [Self::Factors; V] {
        // SAFETY: the processor has NEON, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let upper = numbers::<V>(rows[0]);
            let lower = rows.get(1).map_or([vdupq_n_s16(0); V], |&row| numbers::<V>(row));
            core::array::from_fn(|v| [upper[v], lower[v]])
        }
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        let all = [at(0, 0).0, at(1, 0).0];
        // SAFETY: the processor has NEON, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let mut pairs = Self::rows::<V>(&all[..rows], V * LANES);
            for numbers in pairs.iter_mut().flatten() {
                // The sign of the lower byte of each number.
                *numbers = vshrq_n_s16::<8>(vshlq_n_s16::<8>(*numbers));
            }
            pairs
        }
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        let [mut low, mut high] = sums;
        // SAFETY: the processor has NEON: `# Safety` of `Integers`.
        unsafe {
            for i in 0..2 {
                low = vmlal_s16(low, vget_low_s16(a[i]), vget_low_s16(b[i]));
                high = vmlal_high_s16(high, a[i], b[i]);
            }
        }
        [low, high]
    }

    /// A vector of a pixel's elements has those of two fours, each of which is multiplied where it lies.
    #[inline(always)]
    unsafe fn add_fours<const M: usize, const N: usize>(
        sums: &mut [[Self::Sums; N]; M],
        at: impl Fn(usize) -> (*const u8, usize),
        pixels: *const u8,
        offsets: &[usize; M],
        fours: usize,
    ) -> bool {
        let mut all = *sums;
        let mut weights: [_; N] = core::array::from_fn(&at);
        // Of each four: an element of the pixel, times the byte of each channel that lies there.
        macro_rules! add {
            ($elements:ident, $([$($index:literal * $byte:tt)*])*) => {
                $(for v in 0..N {
                    let (p, width) = weights[v];
                    let bytes = vld4_s8(p.cast());
                    $(
                        let step = vmovl_s8(bytes.$byte);
                        for i in 0..M {
                            let [low, high] = all[i][v];
                            let low = vmlal_laneq_s16::<$index>(low, vget_low_s16(step), $elements[i]);
                            all[i][v] = [low, vmlal_high_laneq_s16::<$index>(high, step, $elements[i])];
                        }
                    )*
                    weights[v].0 = p.wrapping_add(4 * width);
                })*
            };
        }
        // SAFETY: the processor has the instructions, and there are weights of these steps for 8 lanes of each vector, and the
        // steps of each pixel, of 2 bytes each: `# Safety` of `Integers`.
        unsafe {
            for step in (0..fours / 2 * 8).step_by(8) {
                let mut elements = [vdupq_n_s16(0); M];
                for i in 0..M {
                    elements[i] = vreinterpretq_s16_u8(vld1q_u8(pixels.add(offsets[i] + 2 * step)));
                }
                add!(elements, [0 * 0 1 * 2 2 * 1 3 * 3] [4 * 0 5 * 2 6 * 1 7 * 3]);
            }
            if fours % 2 == 1 {
                let mut elements = [vdupq_n_s16(0); M];
                for i in 0..M {
                    let four = vld1_u8(pixels.add(offsets[i] + 8 * (fours - 1)));
                    elements[i] = vreinterpretq_s16_u8(vcombine_u8(four, four));
                }
                add!(elements, [0 * 0 1 * 2 2 * 1 3 * 3]);
            }
        }
        *sums = all;
        true
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        // SAFETY: the processor has NEON: `# Safety` of `Integers`.
        unsafe {
            let number = vdupq_n_s32(number);
            [vaddq_s32(sums[0], number), vaddq_s32(sums[1], number)]
        }
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        // SAFETY: the processor has NEON: `# Safety` of `Integers`.
        unsafe {
            Clamp {
                zero_point: vdupq_n_s16(how.zero_point.into()),
                low: vdup_n_u8(how.low),
                high: vdup_n_u8(how.high),
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
        // SAFETY: the processor has NEON, and `out` is good for 8 bytes: `# Safety` of `Integers`. A value that is too
        // large for a narrower type becomes the largest value of that type. So the bounds are applied last.
        unsafe {
            let a = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums[0]), scales[0]));
            let b = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums[1]), scales[1]));
            let whole = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
            let bytes = vqmovun_s16(vqaddq_s16(whole, clamp.zero_point));
            vst1_u8(out, vmin_u8(vmax_u8(bytes, clamp.low), clamp.high));
        }
    }

    #[inline(always)]
    unsafe fn gather(
        (from, between): (*const u8, usize),
        (to, span): (*mut u8, usize),
        [rows, count]: [usize; 2],
    ) {
        // SAFETY: the processor has NEON, and in each row `from` is good for `count` bytes and `to` for `count`
        // elements of 2 bytes: `# Safety` of `Integers`. The last vector of a row ends with its last byte, and begins
        // with some that were done before.
        unsafe {
            for row in 0..rows {
                let (from, to) = (from.add(row * between), to.cast::<i16>().add(row * span));
                let whole = count / LANES * LANES;
                for at in (0..whole).step_by(LANES) {
                    vst1q_s16(to.add(at), wide(vld1_u8(from.add(at))));
                }
                if whole == 0 {
                    for at in 0..count {
                        to.add(at).write_unaligned((*from.add(at)).into());
                    }
                } else if whole < count {
                    let at = count - LANES;
                    vst1q_s16(to.add(at), wide(vld1_u8(from.add(at))));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn call<W: Work>(work: W) {
        // SAFETY: the processor has NEON: `# Safety` of `Integers`.
        unsafe { run(work) }
    }
}
