//! Integers by the DSP instructions of Arm's microcontrollers, which Cortex-M4, M7, M33 and larger ones have: two products of
//! 16-bit numbers at a time.

use core::arch::asm;
use core::mem::MaybeUninit;

use super::super::arch::Portable;
use super::Requantize;
use super::integers::{Integers, LANES, Lines, MAX_DEPTH, Work};

/// The DSP instructions.
#[derive(Clone, Copy)]
pub(crate) struct Dsp;

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
pub(crate) unsafe fn run<W: Work>(work: W) {
    work.run::<Dsp>();
}

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
                asm!(
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
    #[cfg(target_abi = "eabihf")]
    /// The sums of bytes, at most 255 each.
    add_bytes,
    "uqadd8 {made}, {a}, {b}",
    a,
    b
);
instruction!(
    #[cfg(target_abi = "eabihf")]
    /// The differences of bytes, at least 0 each.
    subtract_bytes,
    "uqsub8 {made}, {a}, {b}",
    a,
    b
);

/// The nearest integer of a sum times its multiplier, of two equally near ones the even one, plus `zero_point`, kept within 0
/// and 255. Both the conversion and the addition stay within 32 bits. NaN becomes `zero_point`.
///
/// # Safety
/// The processor has the instructions, and rounds as it does unless it was told otherwise.
#[cfg(target_abi = "eabihf")]
#[inline(always)]
unsafe fn rounded_byte(sum: i32, scale: f32, zero_point: u32) -> u32 {
    let made;
    // SAFETY: the processor has the instructions: `# Safety` of this function. They change these registers, and flags that say
    // whether a number was not exact or left its range.
    unsafe {
        asm!(
            "vmov s0, s1, {sum}, {scale}",
            "vcvt.f32.s32 s0, s0",
            "vmul.f32 s0, s0, s1",
            "vcvtr.s32.f32 s0, s0",
            "vmov {made}, s0",
            "qadd {made}, {made}, {zero_point}",
            "usat {made}, #8, {made}",
            made = out(reg) made,
            sum = in(reg) sum,
            scale = in(reg) scale.to_bits(),
            zero_point = in(reg) zero_point,
            out("s0") _,
            out("s1") _,
            options(pure, nomem, nostack),
        );
    }
    made
}

/// Four elements, each the nearest integer of a sum times its multiplier, as [`Requantize::apply`] makes them.
///
/// # Safety
/// As [`rounded_byte`].
#[cfg(target_abi = "eabihf")]
#[inline(always)]
unsafe fn requantize_four(sums: [i32; 4], scales: [f32; 4], how: Requantize) -> u32 {
    let zero_point = u32::from(how.zero_point);
    let mut bytes = 0;
    for (lane, (sum, scale)) in sums.into_iter().zip(scales).enumerate() {
        // SAFETY: the processor has the instructions: `# Safety` of this function.
        bytes |= unsafe { rounded_byte(sum, scale, zero_point) } << (8 * lane);
    }
    let [low, above] = [how.low, u8::MAX - how.high].map(|bound| u32::from_ne_bytes([bound; 4]));
    // The first two keep each byte at `low` or more, and the last two at `high` or less.
    // SAFETY: as above.
    unsafe {
        let bytes = add_bytes(subtract_bytes(bytes, low), low);
        subtract_bytes(add_bytes(bytes, above), above)
    }
}

/// Adds the products of four steps, so many times, to the sums of four lanes of a pixel. Beside the first weights of these
/// lanes stands the distance in bytes to those of the next four steps. It is a function of its own, since code is dear.
///
/// # Safety
/// The processor has the instructions, and there are weights of the steps and the steps of the pixel.
#[inline(never)]
unsafe fn add_four_lanes(
    mut sums: [i32; 4],
    (mut weights, between): (*const u8, usize),
    mut pixel: *const u8,
    fours: usize,
) -> [i32; 4] {
    for _ in 0..fours {
        // SAFETY: the processor has the instructions, and the steps and their weights are there: `# Safety` of this
        // function.
        unsafe {
            let x = [word(pixel), word(pixel.add(4))];
            for (lane, sum) in sums.iter_mut().enumerate() {
                let weights = word(weights.add(4 * lane));
                let first = add_two(*sum, x[0], signed_even(weights));
                *sum = add_two(first, x[1], signed_odd(weights));
            }
        }
        (weights, pixel) = (weights.wrapping_add(between), pixel.wrapping_add(8));
    }
    sums
}

/// The same for two lanes of two pixels, whose sums come pixel by pixel. The compiler would load all weights first, for which
/// there are too few registers.
///
/// # Safety
/// As [`add_four_lanes`], of two pixels.
#[inline(never)]
unsafe fn add_two_by_two(
    [mut s00, mut s01, mut s10, mut s11]: [i32; 4],
    (mut weights, between): (*const u8, usize),
    [mut p, mut q]: [*const u8; 2],
    fours: usize,
) -> [i32; 4] {
    for _ in 0..fours {
        // SAFETY: the processor has the instructions, and the steps and their weights are there: `# Safety` of this
        // function. It changes its registers, and a flag that says whether a sum left 32 bits.
        unsafe {
            asm!(
                "ldr {a}, [{weights}]",
                "ldr {x}, [{p}], #4",
                "ldr {y}, [{q}], #4",
                "ldr {b}, [{weights}, #4]",
                "sxtb16 {w}, {a}",
                "smlad {s00}, {x}, {w}, {s00}",
                "smlad {s10}, {y}, {w}, {s10}",
                "sxtb16 {w}, {b}",
                "smlad {s01}, {x}, {w}, {s01}",
                "smlad {s11}, {y}, {w}, {s11}",
                "ldr {x}, [{p}], #4",
                "ldr {y}, [{q}], #4",
                "sxtb16 {w}, {a}, ror #8",
                "smlad {s00}, {x}, {w}, {s00}",
                "smlad {s10}, {y}, {w}, {s10}",
                "sxtb16 {w}, {b}, ror #8",
                "smlad {s01}, {x}, {w}, {s01}",
                "smlad {s11}, {y}, {w}, {s11}",
                weights = in(reg) weights,
                p = inout(reg) p,
                q = inout(reg) q,
                s00 = inout(reg) s00,
                s01 = inout(reg) s01,
                s10 = inout(reg) s10,
                s11 = inout(reg) s11,
                a = out(reg) _,
                b = out(reg) _,
                w = out(reg) _,
                x = out(reg) _,
                y = out(reg) _,
                options(pure, readonly, nostack),
            );
        }
        weights = weights.wrapping_add(between);
    }
    [s00, s01, s10, s11]
}

/// Adds the products of columns of two taps, and of columns of one tap, to the sums of four channels of a depthwise
/// convolution, from `lane` on. Beside the first weights stands how many pairs further those of the next column are.
///
/// # Safety
/// The processor has the instructions, and from `lane` on there are four bytes of each tap. There are weights of each column.
#[inline(never)]
unsafe fn add_four_channels(
    sums: &mut [i32; 4],
    (two, one): (&[[*const u8; MAX_DEPTH]], &[[*const u8; MAX_DEPTH]]),
    (mut weights, between): (*const u32, usize),
    lane: usize,
) {
    let mut four = *sums;
    let mut add = |taps: [u32; 4]| {
        for (i, sum) in four.iter_mut().enumerate() {
            // SAFETY: the processor has the instruction, and there are weights of each column: `# Safety` of this
            // function.
            *sum = unsafe { add_two(*sum, taps[i], weights.add(i).read()) };
        }
        weights = weights.wrapping_add(between);
    };
    // SAFETY: the processor has the instructions, and there are four bytes of each tap: `# Safety` of this function.
    let bytes = |tap: *const u8| unsafe { unsigned(word(tap.add(lane))) };
    for taps in two {
        let (above, below) = (bytes(taps[0]), bytes(taps[1]));
        // SAFETY: as above.
        add(unsafe { pairs(above, below) });
    }
    for taps in one {
        // The second weight of each pair is 0, so the second number does not matter.
        let [even, odd] = bytes(taps[0]);
        add([even, odd, even >> 16, odd >> 16]);
    }
    *sums = four;
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

/// Four bytes of one row and the four below them as pairs of numbers, lane by lane. The bytes of each are numbers 0 and 2, and 1
/// and 3.
///
/// # Safety
/// The processor has the instructions.
#[inline(always)]
unsafe fn pairs([a02, a13]: [u32; 2], [b02, b13]: [u32; 2]) -> [u32; 4] {
    // SAFETY: the processor has the instructions: `# Safety` of this function.
    unsafe {
        [lower_halves(a02, b02), lower_halves(a13, b13), upper_halves(a02, b02), upper_halves(a13, b13)]
    }
}

/// The pairs of `V` vectors, of which `four(i)` makes those of four lanes, `i` times four lanes from the first on.
#[inline(always)]
fn vectors<const V: usize>(four: impl Fn(usize) -> [u32; 4]) -> [[u32; LANES]; V] {
    core::array::from_fn(|v| {
        let ([a, b, c, d], [e, f, g, h]) = (four(2 * v), four(2 * v + 1));
        [a, b, c, d, e, f, g, h]
    })
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
    type Clamp = Requantize;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 2;
    const SIZE: usize = 2;
    /// As many as [`add_two_by_two`] takes.
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

    #[inline(always)]
    unsafe fn rows<const V: usize>(rows: &[*const u8], _: usize) -> [Self::Factors; V] {
        // SAFETY: the processor has the instructions, and each row is good for `V` vectors of 8 bytes: `# Safety` of
        // `Integers`.
        vectors(|four| unsafe {
            let bytes = |row: &*const u8| unsigned(word(row.add(4 * four)));
            pairs(bytes(&rows[0]), rows.get(1).map_or([0; 2], bytes))
        })
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        let all = [at(0, 0).0, at(1, 0).0];
        // SAFETY: the processor has the instructions, and each row is good for `V` vectors of 8 bytes: `# Safety` of
        // `Integers`.
        vectors(|four| unsafe {
            let bytes = |row: &*const u8| {
                let bytes = word(row.add(4 * four));
                [signed_even(bytes), signed_odd(bytes)]
            };
            pairs(bytes(&all[0]), all[..rows].get(1).map_or([0; 2], bytes))
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
        let together = 4 / M;
        for v in 0..N {
            let (first, width) = at(v);
            // A narrow panel has no more channels.
            let lanes = LANES.min(width - v * LANES);
            for lane in (0..lanes).step_by(together) {
                let mut weights = (first.wrapping_add(4 * lane), 4 * width);
                let place = |i: usize| (i / together, lane + i % together);
                let mut four = core::array::from_fn(|i| sums[place(i).0][v][place(i).1]);
                for line in (0..lines.count).map(|line| line * lines.between) {
                    // SAFETY: the processor has the instructions, and there are weights of the steps for 8 lanes, and
                    // the steps of each pixel: `# Safety` of `Integers`.
                    four = unsafe {
                        match M {
                            1 => add_four_lanes(four, weights, pixels[0].wrapping_add(line), fours),
                            _ => {
                                let pixels = [0, M - 1].map(|i| pixels[i].wrapping_add(line));
                                add_two_by_two(four, weights, pixels, fours)
                            }
                        }
                    };
                    weights.0 = weights.0.wrapping_add(fours * weights.1);
                }
                for (i, sum) in four.into_iter().enumerate() {
                    sums[place(i).0][v][place(i).1] = sum;
                }
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
        // Those of two rows come first.
        let columns = columns.split_at(kernel[0] / 2 * kernel[1]);
        for (four, sums) in sums.as_flattened_mut().as_chunks_mut().0.iter_mut().enumerate() {
            // SAFETY: the processor has the instructions, each tap is good for `V` vectors of 8 bytes, and the weights
            // of as many lanes are initialised: `# Safety` of `Integers`.
            unsafe {
                let weights = weights.as_ptr().cast::<u32>().add(4 * four);
                add_four_channels(sums, columns, (weights, V * LANES), 4 * four);
            }
        }
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        // SAFETY: there are no pointers: `# Safety` of `Integers`.
        unsafe { <Portable as Integers>::add_to_all(sums, number) }
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        how
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
        for (four, (sums, scales)) in sums.as_chunks().0.iter().zip(scales.as_chunks().0).enumerate() {
            // SAFETY: the processor has the instructions, and `out` is good for 8 bytes: `# Safety` of `Integers`.
            unsafe {
                out.add(4 * four).cast::<u32>().write_unaligned(requantize_four(*sums, *scales, *clamp));
            }
        }
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

    #[inline(never)]
    unsafe fn call<W: Work>(work: W) {
        work.run::<Dsp>();
    }
}
