//! Integers by NEON.

use core::arch::aarch64::*;

use super::super::arch::Neon;
use super::Requantise;
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
pub(crate) struct Ends {
    zero_point: int16x8_t,
    low: uint8x8_t,
    high: uint8x8_t,
}

/// 8 bytes as numbers of 16 bits.
#[inline(always)]
unsafe fn wide(bytes: uint8x8_t) -> int16x8_t {
    // SAFETY: the caller's instructions.
    unsafe { vreinterpretq_s16_u16(vmovl_u8(bytes)) }
}

/// The same of vector `v` of two.
#[inline(always)]
unsafe fn wide_half(bytes: uint8x16_t, v: usize) -> int16x8_t {
    // SAFETY: the caller's instructions.
    unsafe { wide(if v == 0 { vget_low_u8(bytes) } else { vget_high_u8(bytes) }) }
}

// SAFETY: each method is of instructions of the set, which its caller vouches for.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Integers for Neon {
    type Sums = [int32x4_t; 2];
    /// The first numbers of all pairs, then the second.
    type Pairs = [int16x8_t; 2];
    type Scales = [float32x4_t; 2];
    type Ends = Ends;
    type Bytes = uint8x16_t;
    const TILE: usize = 4;

    #[inline(always)]
    unsafe fn sums(p: *const u8) -> Self::Sums {
        // SAFETY: the caller's.
        unsafe { [vreinterpretq_s32_u8(vld1q_u8(p)), vreinterpretq_s32_u8(vld1q_u8(p.add(16)))] }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8) -> Self::Scales {
        // SAFETY: the caller's.
        unsafe { [vreinterpretq_f32_u8(vld1q_u8(p)), vreinterpretq_f32_u8(vld1q_u8(p.add(16)))] }
    }

    #[inline(always)]
    unsafe fn weights(p: *const u8) -> Self::Pairs {
        // SAFETY: the caller's.
        unsafe {
            let bytes = vld2_s8(p.cast());
            [vmovl_s8(bytes.0), vmovl_s8(bytes.1)]
        }
    }

    #[inline(always)]
    unsafe fn pair(p: *const i16) -> Self::Pairs {
        // SAFETY: the caller's.
        unsafe { [vdupq_n_s16(*p), vdupq_n_s16(*p.add(1))] }
    }

    #[inline(always)]
    unsafe fn bytes<const V: usize>(p: *const u8) -> Self::Bytes {
        // SAFETY: the caller's.
        unsafe {
            match V {
                1 => vcombine_u8(vld1_u8(p), vdup_n_u8(0)),
                _ => vld1q_u8(p),
            }
        }
    }

    #[inline(always)]
    unsafe fn pairs<const V: usize>(upper: Self::Bytes, lower: Self::Bytes) -> [Self::Pairs; V] {
        // SAFETY: the caller's.
        unsafe {
            let mut pairs = [[wide_half(upper, 0), wide_half(lower, 0)]; V];
            if V == 2 {
                pairs[1] = [wide_half(upper, 1), wide_half(lower, 1)];
            }
            pairs
        }
    }

    #[inline(always)]
    unsafe fn singles<const V: usize>(bytes: Self::Bytes) -> [Self::Pairs; V] {
        // SAFETY: the caller's.
        unsafe { Self::pairs::<V>(bytes, vdupq_n_u8(0)) }
    }

    #[inline(always)]
    unsafe fn weight_pairs<const V: usize>(upper: *const u8, lower: *const u8) -> [Self::Pairs; V] {
        // SAFETY: the caller's.
        unsafe {
            let mut pairs = Self::pairs::<V>(Self::bytes::<V>(upper), Self::bytes::<V>(lower));
            for numbers in pairs.iter_mut().flatten() {
                // The sign of the lower byte of each number.
                *numbers = vshrq_n_s16::<8>(vshlq_n_s16::<8>(*numbers));
            }
            pairs
        }
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, a: Self::Pairs, b: Self::Pairs) -> Self::Sums {
        let [mut low, mut high] = sums;
        // SAFETY: the caller's.
        unsafe {
            for i in 0..2 {
                low = vmlal_s16(low, vget_low_s16(a[i]), vget_low_s16(b[i]));
                high = vmlal_high_s16(high, a[i], b[i]);
            }
        }
        [low, high]
    }

    #[inline(always)]
    unsafe fn ends(how: Requantise) -> Self::Ends {
        // SAFETY: the caller's.
        unsafe {
            Ends {
                zero_point: vdupq_n_s16(how.zero_point.into()),
                low: vdup_n_u8(how.low),
                high: vdup_n_u8(how.high),
            }
        }
    }

    #[inline(always)]
    unsafe fn requantise(sums: Self::Sums, scales: Self::Scales, ends: &Self::Ends, out: *mut u8) {
        // SAFETY: the caller's. What is too large for one type after the other stays the largest, so the bounds come last.
        unsafe {
            let a = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums[0]), scales[0]));
            let b = vcvtnq_s32_f32(vmulq_f32(vcvtq_f32_s32(sums[1]), scales[1]));
            let whole = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b));
            let bytes = vqmovun_s16(vqaddq_s16(whole, ends.zero_point));
            vst1_u8(out, vmin_u8(vmax_u8(bytes, ends.low), ends.high));
        }
    }

    #[inline(always)]
    unsafe fn widen(
        (from, between): (*const u8, usize),
        (to, span): (*mut i16, usize),
        [rows, count]: [usize; 2],
        zero_point: i16,
    ) {
        // SAFETY: the caller's. The last vector of a row ends with the last byte, after some that were there before.
        unsafe {
            let zero = vdupq_n_s16(zero_point);
            for row in 0..rows {
                let (from, to) = (from.add(row * between), to.add(row * span));
                let whole = count / LANES * LANES;
                for at in (0..whole).step_by(LANES) {
                    vst1q_s16(to.add(at), vsubq_s16(wide(vld1_u8(from.add(at))), zero));
                }
                if whole == 0 {
                    for at in 0..count {
                        to.add(at).write(i16::from(*from.add(at)) - zero_point);
                    }
                } else if whole < count {
                    let at = count - LANES;
                    vst1q_s16(to.add(at), vsubq_s16(wide(vld1_u8(from.add(at))), zero));
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
