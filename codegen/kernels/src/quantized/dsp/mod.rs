//! Integers by the DSP instructions of Arm's microcontrollers, which Cortex-M4, M7, M33 and larger ones have: two products of
//! 16-bit numbers at a time.

mod bytes;
mod columns;
mod products;

use core::arch::asm;
use core::mem::MaybeUninit;

use super::super::arch::{PANEL, Portable};
use super::Requantize;
use super::integers::{Integers, LANES, Lines, MAX_DEPTH, Work};
use products::Arguments;

/// The DSP instructions.
#[derive(Clone, Copy)]
pub(crate) struct Dsp;

/// Adds the products of the lower and of the upper halves, signed numbers of 16 bits (modulo 2^32).
///
/// # Safety
/// The processor has the instruction.
#[inline(always)]
unsafe fn add_two(mut sum: i32, a: u32, b: u32) -> i32 {
    // SAFETY: the processor has `smlad`: `# Safety` of this function. It changes its register, and a flag that says
    // whether the sum left 32 bits.
    unsafe {
        asm!(
            "smlad {sum}, {a}, {b}, {sum}",
            sum = inout(reg) sum,
            a = in(reg) a,
            b = in(reg) b,
            options(pure, nomem, nostack),
        );
    }
    sum
}

/// A function of an instruction that makes one register of one or two, and changes nothing else.
macro_rules! instruction {
    ($(#[$about:meta])* $name:ident, $text:literal, $($operand:ident),+) => {
        $(#[$about])*
        ///
        /// # Safety
        /// The processor has the instruction.
        #[inline(always)]
        unsafe fn $name($($operand: u32),+) -> u32 {
            let made;
            // SAFETY: the processor has the instruction: `# Safety` of this function.
            unsafe {
                core::arch::asm!(
                    $text,
                    made = lateout(reg) made,
                    $($operand = in(reg) $operand,)+
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
            made
        }
    };
}

instruction!(
    /// Bytes 0 and 2, each a signed number of 16 bits.
    signed_even, "sxtb16 {made}, {bytes}", bytes
);
instruction!(
    /// Bytes 1 and 3, each a signed number of 16 bits.
    signed_odd, "sxtb16 {made}, {bytes}, ror #8", bytes
);
instruction!(
    /// Bytes 0 and 2, each an unsigned number of 16 bits.
    unsigned_even, "uxtb16 {made}, {bytes}", bytes
);
instruction!(
    /// Bytes 1 and 3, each an unsigned number of 16 bits.
    unsigned_odd, "uxtb16 {made}, {bytes}, ror #8", bytes
);
instruction!(
    /// The lower halves of two numbers, the second above the first.
    lower_halves, "pkhbt {made}, {a}, {b}, lsl #16", a, b
);
instruction!(
    /// The upper halves of two numbers, the second above the first.
    upper_halves, "pkhtb {made}, {b}, {a}, asr #16", a, b
);
instruction!(
    /// The sums of bytes, at most 255 each.
    add_bytes, "uqadd8 {made}, {a}, {b}", a, b
);
instruction!(
    /// The differences of bytes, at least 0 each.
    subtract_bytes, "uqsub8 {made}, {a}, {b}", a, b
);

use instruction;

/// What turns rounded numbers into elements.
#[cfg(target_abi = "eabihf")]
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    zero_point: u32,
    /// The smallest element, and what the largest lacks to 255, four times each.
    low: u32,
    above: u32,
}

/// Makes so many times eight elements, each the nearest integer of a sum times its multiplier, as [`Requantize::apply`] makes
/// them. It is a function of its own, since code is dear.
///
/// # Safety
/// The processor has the instructions, and rounds as it does unless it was told otherwise. There are so many sums and scales,
/// and room for so many elements.
#[cfg(target_abi = "eabihf")]
#[inline(never)]
unsafe fn requantize_eights(
    sums: *const [i32; 4],
    scales: *const [f32; 4],
    out: *mut u8,
    eights: usize,
    &Bounds { zero_point, low, above }: &Bounds,
) {
    // After a Relu, the zero point is often the smallest byte. No more than a byte's own bounds is needed then.
    let is_plain = zero_point | low | above == 0;
    for eight in 0..eights {
        for half in 0..2 {
            // SAFETY: the processor has the instructions, and there are eight sums and scales and room for eight elements:
            // `# Safety` of this function.
            unsafe {
                let numbers = rounded(sums.add(2 * eight + half), scales.add(2 * eight + half));
                let bytes = if is_plain {
                    saturated(numbers)
                } else {
                    kept_within(saturated(sums_with(numbers, zero_point)), low, above)
                };
                out.add(8 * eight + 4 * half).cast::<u32>().write_unaligned(bytes);
            }
        }
    }
}

/// Bytes, kept within the smallest element and the largest.
///
/// # Safety
/// The processor has the instructions.
#[cfg(target_abi = "eabihf")]
#[inline(always)]
unsafe fn kept_within(bytes: u32, low: u32, above: u32) -> u32 {
    // SAFETY: the processor has the instructions: `# Safety` of this function.
    unsafe {
        let bytes = add_bytes(subtract_bytes(bytes, low), low);
        subtract_bytes(add_bytes(bytes, above), above)
    }
}

/// The nearest integers of sums times their multipliers, of two equally near ones the even one, kept within 32 bits.
///
/// # Safety
/// The processor has the instructions, and there are sums and scales.
#[cfg(target_abi = "eabihf")]
#[inline(always)]
unsafe fn rounded(sums: *const [i32; 4], scales: *const [f32; 4]) -> [u32; 4] {
    let (a, b, c, d);
    // SAFETY: the processor has the instructions, and there are sums and scales: `# Safety` of this function. They change these
    // registers, and flags that say whether a number was not exact or left its range.
    unsafe {
        asm!(
            "vldm {sums}, {{s0-s3}}",
            "vldm {scales}, {{s4-s7}}",
            "vcvt.f32.s32 s0, s0",
            "vcvt.f32.s32 s1, s1",
            "vcvt.f32.s32 s2, s2",
            "vcvt.f32.s32 s3, s3",
            "vmul.f32 s0, s0, s4",
            "vmul.f32 s1, s1, s5",
            "vmul.f32 s2, s2, s6",
            "vmul.f32 s3, s3, s7",
            "vcvtr.s32.f32 s0, s0",
            "vcvtr.s32.f32 s1, s1",
            "vcvtr.s32.f32 s2, s2",
            "vcvtr.s32.f32 s3, s3",
            "vmov {a}, {b}, s0, s1",
            "vmov {c}, {d}, s2, s3",
            sums = in(reg) sums,
            scales = in(reg) scales,
            a = lateout(reg) a,
            b = lateout(reg) b,
            c = lateout(reg) c,
            d = lateout(reg) d,
            out("s0") _,
            out("s1") _,
            out("s2") _,
            out("s3") _,
            out("s4") _,
            out("s5") _,
            out("s6") _,
            out("s7") _,
            options(pure, readonly, nostack),
        );
    }
    [a, b, c, d]
}

/// The nearest integers of scaled sums of four elements of left and right. The factors are the fixed one, and those of left and
/// right.
///
/// # Safety
/// The processor has the instructions.
#[cfg(target_abi = "eabihf")]
#[inline(always)]
unsafe fn scaled_sums(factors: &[f32; 3], left: u32, right: u32) -> [u32; 4] {
    let (a, b, c, d);
    // SAFETY: the processor has the instructions: `# Safety` of this function. They change these registers, and flags that say
    // whether a number was not exact or left its range.
    unsafe {
        asm!(
            "uxtb {a}, {left}",
            "uxtb {b}, {left}, ror #8",
            "uxtb {c}, {left}, ror #16",
            "uxtb {d}, {left}, ror #24",
            "vmov s0, s1, {a}, {b}",
            "vmov s2, s3, {c}, {d}",
            "uxtb {a}, {right}",
            "uxtb {b}, {right}, ror #8",
            "uxtb {c}, {right}, ror #16",
            "uxtb {d}, {right}, ror #24",
            "vmov s4, s5, {a}, {b}",
            "vmov s6, s7, {c}, {d}",
            "vldm {factors}, {{s8-s10}}",
            "vcvt.f32.u32 s0, s0",
            "vcvt.f32.u32 s1, s1",
            "vcvt.f32.u32 s2, s2",
            "vcvt.f32.u32 s3, s3",
            "vcvt.f32.u32 s4, s4",
            "vcvt.f32.u32 s5, s5",
            "vcvt.f32.u32 s6, s6",
            "vcvt.f32.u32 s7, s7",
            "vmul.f32 s0, s0, s9",
            "vmul.f32 s1, s1, s9",
            "vmul.f32 s2, s2, s9",
            "vmul.f32 s3, s3, s9",
            "vmul.f32 s4, s4, s10",
            "vmul.f32 s5, s5, s10",
            "vmul.f32 s6, s6, s10",
            "vmul.f32 s7, s7, s10",
            "vadd.f32 s0, s8, s0",
            "vadd.f32 s1, s8, s1",
            "vadd.f32 s2, s8, s2",
            "vadd.f32 s3, s8, s3",
            "vadd.f32 s0, s0, s4",
            "vadd.f32 s1, s1, s5",
            "vadd.f32 s2, s2, s6",
            "vadd.f32 s3, s3, s7",
            "vcvtr.s32.f32 s0, s0",
            "vcvtr.s32.f32 s1, s1",
            "vcvtr.s32.f32 s2, s2",
            "vcvtr.s32.f32 s3, s3",
            "vmov {a}, {b}, s0, s1",
            "vmov {c}, {d}, s2, s3",
            left = in(reg) left,
            right = in(reg) right,
            factors = in(reg) factors,
            a = out(reg) a,
            b = out(reg) b,
            c = out(reg) c,
            d = out(reg) d,
            out("s0") _,
            out("s1") _,
            out("s2") _,
            out("s3") _,
            out("s4") _,
            out("s5") _,
            out("s6") _,
            out("s7") _,
            out("s8") _,
            out("s9") _,
            out("s10") _,
            options(pure, readonly, nostack),
        );
    }
    [a, b, c, d]
}

/// The sums of signed numbers and another, kept within 32 bits.
///
/// # Safety
/// The processor has the instructions.
#[cfg(target_abi = "eabihf")]
#[inline(always)]
unsafe fn sums_with([mut a, mut b, mut c, mut d]: [u32; 4], other: u32) -> [u32; 4] {
    // SAFETY: the processor has the instructions: `# Safety` of this function. They change these registers, and a flag that
    // says whether a number left its range.
    unsafe {
        asm!(
            "qadd {a}, {a}, {other}",
            "qadd {b}, {b}, {other}",
            "qadd {c}, {c}, {other}",
            "qadd {d}, {d}, {other}",
            a = inout(reg) a,
            b = inout(reg) b,
            c = inout(reg) c,
            d = inout(reg) d,
            other = in(reg) other,
            options(pure, nomem, nostack),
        );
    }
    [a, b, c, d]
}

/// Signed numbers as bytes, kept within 0 and 255.
///
/// # Safety
/// The processor has the instructions.
#[cfg(target_abi = "eabihf")]
#[inline(always)]
unsafe fn saturated([mut a, b, c, d]: [u32; 4]) -> u32 {
    // SAFETY: the processor has the instructions: `# Safety` of this function. They change these registers, and a flag that
    // says whether a number left its range.
    unsafe {
        asm!(
            "usat {a}, #8, {a}",
            "usat {b}, #8, {b}",
            "usat {c}, #8, {c}",
            "usat {d}, #8, {d}",
            "orr {a}, {a}, {b}, lsl #8",
            "orr {c}, {c}, {d}, lsl #8",
            "orr {a}, {a}, {c}, lsl #16",
            a = inout(reg) a,
            b = inout(reg) b => _,
            c = inout(reg) c => _,
            d = inout(reg) d => _,
            options(pure, nomem, nostack),
        );
    }
    a
}

/// Bytes 0 and 2, and bytes 1 and 3, each an unsigned number of 16 bits.
///
/// # Safety
/// The processor has the instructions.
#[inline(always)]
unsafe fn unsigned(bytes: u32) -> [u32; 2] {
    // SAFETY: the processor has the instructions: `# Safety` of this function.
    unsafe { [unsigned_even(bytes), unsigned_odd(bytes)] }
}

/// Four bytes.
///
/// # Safety
/// `p` is good for them.
#[inline(always)]
unsafe fn word(p: *const u8) -> u32 {
    // SAFETY: `p` is good for four bytes: `# Safety` of this function.
    unsafe { p.cast::<u32>().read_unaligned() }
}

// SAFETY: there are 8 lanes, and each method touches what `Integers` says of its pointers and no more.
unsafe impl Integers for Dsp {
    type Sums = [i32; LANES];
    /// The first number of each pair is in the lower half.
    type Factors = [u32; LANES];
    type Scales = [f32; LANES];
    #[cfg(target_abi = "eabihf")]
    type Clamp = Bounds;
    #[cfg(not(target_abi = "eabihf"))]
    type Clamp = Requantize;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 2;
    const SIZE: usize = 2;
    /// As many as [`products`] take.
    const TILE: usize = 2;
    const SLIDES: bool = false;
    const PANELS_PER_STEP: usize = 1;

    #[inline(always)]
    unsafe fn sums(p: *const u8, lanes: usize) -> Self::Sums {
        // SAFETY: `p` is good for 8 numbers of 4 bytes: `# Safety` of `Integers`.
        unsafe { <Portable as Integers>::sums(p, lanes) }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, lanes: usize) -> Self::Scales {
        // SAFETY: `p` is good for 8 floats of 4 bytes: `# Safety` of `Integers`.
        unsafe { <Portable as Integers>::scales(p, lanes) }
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, _: usize) -> Self::Factors {
        core::array::from_fn(|lane| {
            // SAFETY: the processor has the instructions, and `p` is good for `STEPS` bytes of each of 8 lanes:
            // `# Safety` of `Integers`.
            unsafe {
                match (STEPS, PART) {
                    (2, _) => {
                        let two = u32::from(p.add(2 * lane).cast::<u16>().read_unaligned());
                        signed_even((two | (two << 8)) & 0x00ff_00ff)
                    }
                    (_, 0) => signed_even(word(p.add(4 * lane))),
                    _ => signed_odd(word(p.add(4 * lane))),
                }
            }
        })
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: `p` is good for two elements of 2 bytes: `# Safety` of `Integers`.
        [unsafe { word(p) }; LANES]
    }

    /// As [`columns::add_columns`] reads them: for each four lanes two words of the first row, and two of the last.
    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        let rows = [0, rows - 1].map(|row| at(row, 0).0);
        core::array::from_fn(|v| {
            core::array::from_fn(|lane| {
                // SAFETY: the processor has the instructions, and each row is good for `V` vectors of 8 bytes: `# Safety` of
                // `Integers`.
                unsafe {
                    let bytes = word(rows[lane % 4 / 2].add(LANES * v + lane / 4 * 4));
                    if lane.is_multiple_of(2) { signed_even(bytes) } else { signed_odd(bytes) }
                }
            })
        })
    }

    #[inline(always)]
    unsafe fn add_products(mut sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            // SAFETY: the processor has the instruction: `# Safety` of `Integers`.
            *sum = unsafe { add_two(*sum, a, b) };
        }
        sums
    }

    /// There are registers for four sums. So all steps of these come first.
    #[inline(always)]
    unsafe fn add_fours<const M: usize, const N: usize>(
        sums: &mut [[Self::Sums; N]; M],
        at: impl Fn(usize) -> (*const u8, usize),
        pixels: &[*const u8; M],
        lines: Lines,
        fours: usize,
        _: bool,
    ) -> bool {
        if fours == 0 {
            return true;
        }
        debug_assert!(pixels.iter().all(|pixel| (pixel.addr() | lines.between).is_multiple_of(4)), "words");
        let (weights, width) = at(0);
        let together = 4 / M;
        let mut arguments = Arguments {
            weights,
            pixels: [0, M - 1].map(|i| pixels[i]),
            sums: sums.as_mut_ptr().cast(),
            further: if M == 1 { 8 } else { size_of::<[Self::Sums; N]>() },
            // A narrow panel has no more channels.
            times: (N * LANES).min(width).div_ceil(together),
            lines: lines.count,
            skip: lines.between.wrapping_sub(2 * 4 * fours),
            fours,
            left: 0,
        };
        // SAFETY: the processor has the instructions, and there are weights of the steps for all channels and what reaches
        // beyond them, and the steps of each pixel: `# Safety` of `Integers`.
        unsafe {
            match (M, width) {
                (1, PANEL) => products::add_one_pixel_of_whole(&mut arguments, 4 * width),
                (1, _) => products::add_one_pixel(&mut arguments, 4 * width),
                (_, PANEL) => products::add_two_pixels_of_whole(&mut arguments, 4 * width),
                _ => products::add_two_pixels(&mut arguments, 4 * width),
            }
        }
        true
    }

    /// There are registers for four sums.
    #[inline(always)]
    unsafe fn add_columns<const V: usize>(
        sums: &mut [Self::Sums; V],
        columns: &[[*const u8; MAX_DEPTH]],
        kernel: [usize; 2],
        weights: &[MaybeUninit<[Self::Factors; V]>],
        _: usize,
    ) {
        if kernel == [3, 3] {
            let (sums, weights, times) = (sums.as_mut_ptr().cast(), weights.as_ptr().cast(), V * LANES / 4);
            let add = match V {
                1 => columns::add_three_by_three_of_one_vector,
                _ => columns::add_three_by_three_of_two_vectors,
            };
            // SAFETY: as below.
            return unsafe { add(sums, weights, columns.as_ptr(), times) };
        }
        // Those of two rows come first.
        let twos = kernel[0] / 2 * kernel[1];
        let mut arguments = columns::Arguments {
            sums: sums.as_mut_ptr().cast(),
            weights: weights.as_ptr().cast(),
            columns: columns.as_ptr(),
            twos,
            ones: columns.len() - twos,
            times: V * LANES / 4,
            lane: 0,
        };
        // SAFETY: the processor has the instructions, each tap is good for `V` vectors of 8 bytes, and the weights of as many
        // lanes are initialised: `# Safety` of `Integers`.
        unsafe { columns::add_columns(&mut arguments, size_of::<[Self::Factors; V]>()) };
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        // SAFETY: there are no pointers: `# Safety` of `Integers`.
        unsafe { <Portable as Integers>::add_to_all(sums, number) }
    }

    #[cfg(target_abi = "eabihf")]
    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        let [low, above] = [how.low, u8::MAX - how.high].map(|bound| u32::from_ne_bytes([bound; 4]));
        Bounds { zero_point: how.zero_point.into(), low, above }
    }

    #[cfg(target_abi = "eabihf")]
    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        _: usize,
    ) {
        // SAFETY: the processor has the instructions, and `out` is good for 8 bytes: `# Safety` of `Integers`.
        unsafe { requantize_eights(sums.as_ptr().cast(), scales.as_ptr().cast(), out, 1, clamp) }
    }

    #[cfg(target_abi = "eabihf")]
    #[inline(always)]
    unsafe fn requantize_all<const V: usize, const M: usize>(
        sums: &[[Self::Sums; V]; M],
        scales: &[Self::Scales; V],
        clamp: &Self::Clamp,
        _: usize,
        out: impl Fn(usize) -> *mut u8,
    ) {
        for (i, sums) in sums.iter().enumerate() {
            let (sums, scales) = (sums.as_ptr().cast(), scales.as_ptr().cast());
            // SAFETY: the processor has the instructions, and `out` is good for `V` vectors of 8 bytes: `# Safety` of
            // `Integers`.
            unsafe { requantize_eights(sums, scales, out(i), V, clamp) }
        }
    }

    #[cfg(not(target_abi = "eabihf"))]
    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        how
    }

    /// A processor may have these instructions and no floating-point unit.
    #[cfg(not(target_abi = "eabihf"))]
    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        lanes: usize,
    ) {
        // SAFETY: `out` is good for 8 bytes: `# Safety` of `Integers`.
        unsafe { <Portable as Integers>::requantize(sums, scales, clamp, out, lanes) }
    }

    #[inline(always)]
    unsafe fn gather(
        (from, between): (*const u8, usize),
        (to, span): (*mut u8, usize),
        [rows, count]: [usize; 2],
    ) {
        // SAFETY: in each row `from` is good for `count` bytes and `to` for `count` elements of 2 bytes: `# Safety` of
        // `Integers`.
        unsafe {
            for row in 0..rows {
                let (from, to) = (from.add(row * between), to.cast::<u16>().add(row * span));
                let fours = count / 4 * 4;
                for at in (0..fours).step_by(4) {
                    let [even, odd] = unsigned(word(from.add(at)));
                    to.add(at).cast::<u32>().write_unaligned(lower_halves(even, odd));
                    to.add(at + 2).cast::<u32>().write_unaligned(upper_halves(even, odd));
                }
                for at in fours..count {
                    to.add(at).write_unaligned((*from.add(at)).into());
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn add_pixels<'r>(
        sums: &mut [i32; PANEL],
        rows: impl Iterator<Item = &'r [u8]> + Clone,
        pixels: (usize, usize),
        channels: usize,
    ) {
        // SAFETY: the processor has the instructions, and each row has so many pixels: `# Safety` of `Integers`.
        unsafe { bytes::add_pixels(sums, rows, pixels, channels) }
    }

    #[inline(always)]
    unsafe fn keep_largest(largest: &mut [u8], elements: &[u8]) {
        // SAFETY: as above.
        unsafe { bytes::keep_largest(largest, elements) }
    }

    #[cfg(target_abi = "eabihf")]
    #[inline(always)]
    unsafe fn add_scaled(sum: &super::integers::ScaledSum, left: &[u8], right: &[u8], made: &mut [u8]) {
        // SAFETY: as above.
        unsafe {
            let Bounds { low, above, .. } = Self::clamp(sum.how);
            let factors = [sum.fixed, sum.left, sum.right];
            let ((lefts, left), (rights, right)) = (left.as_chunks::<4>(), right.as_chunks::<4>());
            let (fours, made) = made.as_chunks_mut::<4>();
            for ((four, &left), &right) in fours.iter_mut().zip(lefts).zip(rights) {
                let numbers = scaled_sums(&factors, u32::from_le_bytes(left), u32::from_le_bytes(right));
                *four = kept_within(saturated(numbers), low, above).to_le_bytes();
            }
            <Portable as Integers>::add_scaled(sum, left, right, made);
        }
    }

    #[inline(never)]
    unsafe fn call<W: Work>(work: W) {
        work.run::<Dsp>();
    }
}
