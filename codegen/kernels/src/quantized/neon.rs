//! Integers by NEON. Products of two signed bytes have 16 bits. Elements are unsigned, so 128 is subtracted from them as they
//! are loaded. That changes the sums of all pixels by the same number, which is added to the biases.

use core::arch::aarch64::*;
use core::arch::asm;

use super::super::arch::Neon;
use super::Requantize;
use super::integers::{Integers, LANES, Lines, Work};

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

/// An element that is less by this is a signed byte.
pub(crate) const MIDDLE: u8 = 128;

/// The byte of a pixel's next two fours that goes to each byte, so that the first four, and the second, lie there four times,
/// in the order in which weights lie: 0, 2, 1, 3.
static FOURS: [[u8; 16]; 2] =
    [[0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3], [4, 6, 5, 7, 4, 6, 5, 7, 4, 6, 5, 7, 4, 6, 5, 7]];

/// What a sum of two products of signed bytes begins at where weights may be −128, so that it fits into 16 bits: the products
/// alone are at least −2 · 128 · 127 and at most 2 · 128², one more than fits. Without such a weight they are at most
/// 2 · 128 · 127.
const BELOW: i16 = -256;

/// 8 elements less by the middle.
///
/// # Safety
/// The processor has NEON, and `p` is good for 8 bytes.
#[inline(always)]
unsafe fn signed(p: *const u8) -> int8x8_t {
    // SAFETY: the processor has NEON, and `p` is good for 8 bytes: `# Safety` of this function.
    unsafe { vreinterpret_s8_u8(veor_u8(vld1_u8(p), vdup_n_u8(MIDDLE))) }
}

/// The bytes of 4 channels, four steps each, at `p` and at `p + 16`.
///
/// # Safety
/// The processor has NEON, and `p` is good for 32 bytes.
#[inline(always)]
unsafe fn four(p: *const u8) -> [int8x16_t; 2] {
    // SAFETY: the processor has NEON, and `p` is good for 32 bytes: `# Safety` of this function.
    unsafe { [vld1q_s8(p.cast()), vld1q_s8(p.add(16).cast())] }
}

/// What [`add_two_fours`] needs in registers: [`FOURS`], [`MIDDLE`] and [`BELOW`].
struct TwoFours {
    order: [uint8x16_t; 2],
    middle: uint8x8_t,
    below: int16x8_t,
}

/// Adds to each of the two sums of four channels the products of a pixel's next two fours. If `HAS_LEAST`, a weight may be −128,
/// and sums of two products begin at [`BELOW`]. The instructions are given here in their order: the compiler would make the
/// products of all pixels first, for which it has too few registers.
///
/// # Safety
/// The processor has NEON, and `pixel` is good for 8 bytes.
#[inline(always)]
unsafe fn add_two_fours<const HAS_LEAST: bool>(
    mut sums: [int32x4_t; 4],
    pixel: *const u8,
    [first, second]: [[int8x16_t; 2]; 2],
    how: &TwoFours,
) -> [int32x4_t; 4] {
    macro_rules! add {
        ($($first:literal)*; $($below:tt)*) => {
            asm!(
                "ldr {b:d}, [{pixel}]",
                "eor {b:v}.8b, {b:v}.8b, {middle:v}.8b",
                $($first,)*
                "smlal {r:v}.8h, {e:v}.8b, {b:v}.8b",
                "smlal2 {s:v}.8h, {e:v}.16b, {b:v}.16b",
                "smlal {t:v}.8h, {f:v}.8b, {b:v}.8b",
                "smlal2 {u:v}.8h, {f:v}.16b, {b:v}.16b",
                "sadalp {i:v}.4s, {r:v}.8h",
                "sadalp {j:v}.4s, {s:v}.8h",
                "sadalp {k:v}.4s, {t:v}.8h",
                "sadalp {l:v}.4s, {u:v}.8h",
                pixel = in(reg) pixel,
                x = in(vreg) how.order[0],
                y = in(vreg) how.order[1],
                middle = in(vreg) how.middle,
                c = in(vreg) first[0],
                d = in(vreg) first[1],
                e = in(vreg) second[0],
                f = in(vreg) second[1],
                a = out(vreg) _,
                b = out(vreg) _,
                r = out(vreg) _,
                s = out(vreg) _,
                t = out(vreg) _,
                u = out(vreg) _,
                i = inout(vreg) sums[0],
                j = inout(vreg) sums[1],
                k = inout(vreg) sums[2],
                l = inout(vreg) sums[3],
                $($below)*
                options(pure, readonly, nostack, preserves_flags),
            )
        };
    }
    // SAFETY: the processor has the instructions, and the 8 bytes that the first one reads are there: `# Safety` of this
    // function. They change nothing but their registers.
    unsafe {
        if HAS_LEAST {
            add!(
                "mov {r:v}.16b, {below:v}.16b"
                "mov {s:v}.16b, {below:v}.16b"
                "mov {t:v}.16b, {below:v}.16b"
                "mov {u:v}.16b, {below:v}.16b"
                "tbl {a:v}.16b, {{{b:v}.16b}}, {x:v}.16b"
                "tbl {b:v}.16b, {{{b:v}.16b}}, {y:v}.16b"
                "smlal {r:v}.8h, {c:v}.8b, {a:v}.8b"
                "smlal2 {s:v}.8h, {c:v}.16b, {a:v}.16b"
                "smlal {t:v}.8h, {d:v}.8b, {a:v}.8b"
                "smlal2 {u:v}.8h, {d:v}.16b, {a:v}.16b";
                below = in(vreg) how.below,
            );
        } else {
            add!(
                "tbl {a:v}.16b, {{{b:v}.16b}}, {x:v}.16b"
                "tbl {b:v}.16b, {{{b:v}.16b}}, {y:v}.16b"
                "smull {r:v}.8h, {c:v}.8b, {a:v}.8b"
                "smull2 {s:v}.8h, {c:v}.16b, {a:v}.16b"
                "smull {t:v}.8h, {d:v}.8b, {a:v}.8b"
                "smull2 {u:v}.8h, {d:v}.16b, {a:v}.16b";
            );
        }
    }
    sums
}

/// [`Integers::add_fours`].
///
/// # Safety
/// The processor has NEON, and the method's.
#[inline(always)]
unsafe fn add_fours<const M: usize, const N: usize, const HAS_LEAST: bool>(
    sums: &mut [[[int32x4_t; 2]; N]; M],
    at: impl Fn(usize) -> (*const u8, usize),
    pixels: &[*const u8; M],
    lines: Lines,
    fours: usize,
) {
    // SAFETY: the processor has the instructions, and there are weights of these steps for 8 lanes of each vector, and the
    // steps of each pixel: `# Safety` of this function.
    unsafe {
        let how = TwoFours {
            order: [vld1q_u8(FOURS[0].as_ptr()), vld1q_u8(FOURS[1].as_ptr())],
            middle: vdup_n_u8(MIDDLE),
            below: vdupq_n_s16(BELOW),
        };
        // Each two fours add two numbers that began at `BELOW` to each of these sums; so the sums begin with what those lack.
        let lacks = if HAS_LEAST { (lines.count * (fours / 2)) as i32 * -2 * i32::from(BELOW) } else { 0 };
        for v in 0..N {
            let (mut p, width) = at(v);
            let mut twos = [[vdupq_n_s32(lacks); 4]; M];
            let mut pixels = *pixels;
            for _ in 0..lines.count {
                for step in (0..fours / 2 * 8).step_by(8) {
                    let weights = [four(p), four(p.wrapping_add(4 * width))];
                    for i in 0..M {
                        twos[i] = add_two_fours::<HAS_LEAST>(twos[i], pixels[i].add(step), weights, &how);
                    }
                    p = p.wrapping_add(8 * width);
                }
                if fours % 2 == 1 {
                    let first = four(p);
                    for i in 0..M {
                        let last = pixels[i].add(4 * (fours - 1)).cast::<u32>().read_unaligned();
                        let last = veorq_u8(vreinterpretq_u8_u32(vdupq_n_u32(last)), vdupq_n_u8(MIDDLE));
                        let a = vqtbl1q_s8(vreinterpretq_s8_u8(last), how.order[0]);
                        for half in 0..2 {
                            let products = vmull_s8(vget_low_s8(first[half]), vget_low_s8(a));
                            twos[i][2 * half] = vpadalq_s16(twos[i][2 * half], products);
                            let products = vmull_high_s8(first[half], a);
                            twos[i][2 * half + 1] = vpadalq_s16(twos[i][2 * half + 1], products);
                        }
                    }
                    p = p.wrapping_add(4 * width);
                }
                pixels = pixels.map(|pixel| pixel.wrapping_add(lines.between));
            }
            for (sums, [a, b, c, d]) in sums.iter_mut().zip(twos) {
                let [low, high] = sums[v];
                sums[v] = [vaddq_s32(low, vpaddq_s32(a, b)), vaddq_s32(high, vpaddq_s32(c, d))];
            }
        }
    }
}

// SAFETY: there are 8 lanes, and each method touches what `Integers` says of its pointers and no more.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Integers for Neon {
    type Sums = [int32x4_t; 2];
    /// The first bytes of all pairs, then the second.
    type Factors = [int8x8_t; 2];
    type Scales = [float32x4_t; 2];
    type Clamp = Clamp;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 2;
    const SIZE: usize = 1;
    const MIDDLE: u8 = MIDDLE;
    const MINDS_LEAST: bool = true;
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
            match (STEPS, PART) {
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
            }
        }
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: the processor has NEON, and `p` is good for two elements of a byte: `# Safety` of `Integers`.
        unsafe { [0, 1].map(|i| vdup_n_s8((p.add(i).read() ^ MIDDLE).cast_signed())) }
    }

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], _: usize) -> [Self::Factors; V] {
        // SAFETY: the processor has NEON, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let lower = *rows.get(1).unwrap_or(&rows[0]);
            let mut pairs = [[signed(rows[0]), signed(lower)]; V];
            for (v, pair) in pairs.iter_mut().enumerate().skip(1) {
                *pair = [rows[0], lower].map(|row| signed(row.add(v * LANES)));
            }
            pairs
        }
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        // SAFETY: the processor has NEON, and each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
        unsafe {
            let mut pairs = [[vdup_n_s8(0); 2]; V];
            for row in 0..rows {
                for (v, pair) in pairs.iter_mut().enumerate() {
                    pair[row] = vld1_s8(at(row, 0).0.add(v * LANES).cast());
                }
            }
            pairs
        }
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has NEON: `# Safety` of `Integers`.
        unsafe {
            let [first, second] = [vmull_s8(a[0], b[0]), vmull_s8(a[1], b[1])];
            let low = vaddl_s16(vget_low_s16(first), vget_low_s16(second));
            [vaddq_s32(sums[0], low), vaddq_s32(sums[1], vaddl_high_s16(first, second))]
        }
    }

    #[inline(always)]
    unsafe fn add_middle(sums: Self::Sums, weights: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has NEON: `# Safety` of `Integers`. The middle is no signed byte, but its half is.
        unsafe {
            let half = [vdup_n_s8((MIDDLE / 2).cast_signed()); 2];
            Self::add_products(Self::add_products(sums, half, weights), half, weights)
        }
    }

    #[inline(always)]
    unsafe fn add_middle_of_fours(sums: Self::Sums, p: *const u8, width: usize, count: usize) -> Self::Sums {
        // SAFETY: the processor has NEON, and there are weights of these steps for 8 lanes: `# Safety` of `Integers`.
        unsafe {
            let mut all = [vdupq_n_s32(0); 2];
            for place in 0..count {
                let weights = four(p.wrapping_add(4 * width * place));
                for i in 0..2 {
                    all[i] = vpadalq_s16(all[i], vpaddlq_s8(weights[i]));
                }
            }
            // The middle is 2⁷.
            [0, 1].map(|i| vaddq_s32(sums[i], vshlq_n_s32::<7>(all[i])))
        }
    }

    /// Two fours at a time: products of the same place in both have a sum of 16 bits, and two of these are added to one of
    /// the two sums that each channel has here.
    #[inline(always)]
    unsafe fn add_fours<const M: usize, const N: usize>(
        sums: &mut [[Self::Sums; N]; M],
        at: impl Fn(usize) -> (*const u8, usize),
        pixels: &[*const u8; M],
        lines: Lines,
        fours: usize,
        has_least: bool,
    ) -> bool {
        // SAFETY: the processor has NEON, and the weights and pixels are there: `# Safety` of `Integers`.
        unsafe {
            if has_least {
                add_fours::<M, N, true>(sums, at, pixels, lines, fours);
            } else {
                add_fours::<M, N, false>(sums, at, pixels, lines, fours);
            }
        }
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
        const WIDE: usize = 16;
        // SAFETY: the processor has NEON, and in each row `from` is good for `count` bytes and `to` for `count`
        // elements of a byte: `# Safety` of `Integers`. The last vector of a row ends with its last byte, and begins
        // with some that were done before.
        unsafe {
            for row in 0..rows {
                let (from, to) = (from.add(row * between), to.add(row * span));
                let wide = |at: usize| vst1q_u8(to.add(at), vld1q_u8(from.add(at)));
                let narrow = |at: usize| vst1_u8(to.add(at), vld1_u8(from.add(at)));
                if count >= WIDE {
                    let mut at = 0;
                    while at + 2 * WIDE < count {
                        wide(at);
                        wide(at + WIDE);
                        at += 2 * WIDE;
                    }
                    wide(at.min(count - WIDE));
                    wide(count - WIDE);
                } else if count >= LANES {
                    narrow(0);
                    narrow(count - LANES);
                } else {
                    (0..count).for_each(|at| to.add(at).write(*from.add(at)));
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
