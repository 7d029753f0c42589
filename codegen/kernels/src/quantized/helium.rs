//! Integers by Helium (MVE), the vectors of Cortex-M55 and M85: eight products of 16-bit numbers at a time. Rust has no type for
//! these vectors here, so each group of instructions loads them and leaves only numbers. What is not here is done by the
//! [DSP instructions](super::dsp), which these processors have, too.

use core::arch::asm;
use core::mem::MaybeUninit;

use super::super::arch::PANEL;
use super::Requantize;
use super::dsp::Dsp;
use super::integers::{Integers, LANES, Lines, MAX_DEPTH, ScaledSum, Work, add_pixels};

/// The instructions of Helium and the DSP instructions.
#[derive(Clone, Copy)]
pub(crate) struct Helium;

/// What the loops of products read before they begin.
#[repr(C, align(4))]
struct Loop {
    /// Where the weights of eight steps of two channels lie, in the order of the steps: in each four, it is 0, 2, 1, 3.
    places: [[u16; 8]; 2],
    /// Steps.
    count: usize,
}

impl Loop {
    /// So many fours of steps of a panel of `width` channels.
    #[inline(always)]
    fn new(width: usize, fours: usize) -> Self {
        let next = 4 * width as u16;
        let places = [0, 4].map(|first| {
            let second = first + next;
            [first, first + 2, first + 1, first + 3, second, second + 2, second + 1, second + 3]
        });
        Loop { places, count: 4 * fours }
    }
}

/// Adds the products of all steps to the sums of four channels of a pixel. Beside their first weights stands the distance in
/// bytes to those of the next eight steps.
///
/// # Safety
/// The processor has the instructions, and there are weights of the steps and the steps of the pixel.
#[inline(never)]
unsafe fn add_four_channels(
    [mut a, mut b, mut c, mut d]: [i32; 4],
    (weights, between): (*const u8, usize),
    pixel: *const u8,
    how: &Loop,
) -> [i32; 4] {
    // SAFETY: the processor has the instructions, and the steps and their weights are there: `# Safety` of this function. The
    // loop counts down the steps, and in its last round it touches no step beyond the last. It changes the registers that are
    // named here.
    unsafe {
        asm!(
            "vldrh.u16 q0, [lr]",
            "vldrh.u16 q1, [lr, #16]",
            "ldr lr, [lr, #32]",
            "dlstp.16 lr, lr",
            "2:",
            "vldrb.u16 q2, [r1], #8",
            "vldrb.s16 q3, [{weights}, q0]",
            "vmladava.s16 r0, q2, q3",
            "vldrb.s16 q3, [{weights}, q1]",
            "vmladava.s16 r2, q2, q3",
            "vldrb.s16 q3, [{others}, q0]",
            "vmladava.s16 r4, q2, q3",
            "vldrb.s16 q3, [{others}, q1]",
            "vmladava.s16 r8, q2, q3",
            "add {weights}, {weights}, {between}",
            "add {others}, {others}, {between}",
            "letp lr, 2b",
            inout("r0") a,
            inout("r2") b,
            inout("r4") c,
            inout("r8") d,
            inout("lr") how => _,
            weights = inout(reg) weights => _,
            others = inout(reg) weights.wrapping_add(8) => _,
            inout("r1") pixel => _,
            between = in(reg) between,
            out("q0") _,
            out("q1") _,
            out("q2") _,
            out("q3") _,
            options(readonly, nostack),
        );
    }
    [a, b, c, d]
}

/// The same for two channels of three pixels, whose sums come pixel by pixel. The sums of such products can only be in
/// registers of an even number, and the addresses of the pixels in the lower eight, so each register is given here.
///
/// # Safety
/// As [`add_four_channels`], of three pixels.
#[inline(never)]
unsafe fn add_three_by_two(
    [mut a, mut b, mut c, mut d, mut e, mut f]: [i32; 6],
    (weights, between): (*const u8, usize),
    [p, q, r]: [*const u8; 3],
    how: &Loop,
) -> [i32; 6] {
    // SAFETY: as in `add_four_channels`.
    unsafe {
        asm!(
            "vldrh.u16 q0, [lr]",
            "vldrh.u16 q1, [lr, #16]",
            "ldr lr, [lr, #32]",
            "dlstp.16 lr, lr",
            "2:",
            "vldrb.s16 q2, [r9, q0]",
            "vldrb.u16 q4, [r1], #8",
            "vmladava.s16 r0, q2, q4",
            "vldrb.s16 q3, [r9, q1]",
            "vmladava.s16 r2, q3, q4",
            "vldrb.u16 q4, [r3], #8",
            "vmladava.s16 r4, q2, q4",
            "vmladava.s16 r8, q3, q4",
            "vldrb.u16 q4, [r5], #8",
            "vmladava.s16 r10, q2, q4",
            "vmladava.s16 r12, q3, q4",
            "add r9, r9, r11",
            "letp lr, 2b",
            inout("r0") a,
            inout("r2") b,
            inout("r4") c,
            inout("r8") d,
            inout("r10") e,
            inout("r12") f,
            inout("r9") weights => _,
            in("r11") between,
            inout("r1") p => _,
            inout("r3") q => _,
            inout("r5") r => _,
            inout("lr") how => _,
            out("q0") _,
            out("q1") _,
            out("q2") _,
            out("q3") _,
            out("q4") _,
            options(readonly, nostack),
        );
    }
    [a, b, c, d, e, f]
}

/// Adds the products of columns of two taps, so many, and of columns of one tap to the sums of eight channels of a depthwise
/// convolution, from `lane` on. Beside the first weights stands the distance in bytes to those of the next column.
///
/// # Safety
/// The processor has the instructions, and from `lane` on there are eight bytes of each tap. There are weights of each column.
#[inline(never)]
unsafe fn add_eight_channels(
    sums: &mut [i32; LANES],
    columns: &[[*const u8; MAX_DEPTH]],
    two: usize,
    (weights, between): (*const u32, usize),
    lane: usize,
) {
    // SAFETY: the processor has the instructions, and the taps and weights are there: `# Safety` of this function. The loops
    // count down the columns. It changes the sums and the registers that are named here.
    unsafe {
        asm!(
            "vldrw.u32 q0, [{sums}]",
            "vldrw.u32 q1, [{sums}, #16]",
            "wls lr, lr, 3f",
            "2:",
            "ldrd r1, r3, [{columns}], #16",
            "add r1, {lane}",
            "add r3, {lane}",
            // The second taps go above the first, as their weights lie.
            "vldrb.u32 q2, [r1]",
            "vldrb.u32 q3, [r3]",
            "vsli.32 q2, q3, #16",
            "vldrw.u32 q3, [{weights}]",
            "vmullb.s16 q4, q2, q3",
            "vadd.i32 q0, q0, q4",
            "vmullt.s16 q4, q2, q3",
            "vadd.i32 q0, q0, q4",
            "vldrb.u32 q2, [r1, #4]",
            "vldrb.u32 q3, [r3, #4]",
            "vsli.32 q2, q3, #16",
            "vldrw.u32 q3, [{weights}, #16]",
            "vmullb.s16 q4, q2, q3",
            "vadd.i32 q1, q1, q4",
            "vmullt.s16 q4, q2, q3",
            "vadd.i32 q1, q1, q4",
            "add {weights}, {between}",
            "le lr, 2b",
            "3:",
            "wls lr, {one}, 5f",
            "4:",
            "ldr r1, [{columns}], #16",
            "add r1, {lane}",
            "vldrb.u32 q2, [r1]",
            "vldrw.u32 q3, [{weights}]",
            "vmullb.s16 q4, q2, q3",
            "vadd.i32 q0, q0, q4",
            "vldrb.u32 q2, [r1, #4]",
            "vldrw.u32 q3, [{weights}, #16]",
            "vmullb.s16 q4, q2, q3",
            "vadd.i32 q1, q1, q4",
            "add {weights}, {between}",
            "le lr, 4b",
            "5:",
            "vstrw.32 q0, [{sums}]",
            "vstrw.32 q1, [{sums}, #16]",
            sums = in(reg) sums,
            columns = inout(reg) columns.as_ptr() => _,
            weights = inout(reg) weights => _,
            between = in(reg) between,
            lane = in(reg) lane,
            one = in(reg) columns.len() - two,
            inout("lr") two => _,
            out("r1") _,
            out("r3") _,
            out("q0") _,
            out("q1") _,
            out("q2") _,
            out("q3") _,
            out("q4") _,
            options(nostack),
        );
    }
}

/// Adds eight channels of pixels, which begin so far apart, to their sums.
///
/// # Safety
/// The processor has the instructions, and each of so many pixels has eight bytes.
#[inline(never)]
unsafe fn add_eight_of_pixels(sums: &mut [i32; LANES], pixel: *const u8, between: usize, pixels: usize) {
    // SAFETY: the processor has the instructions, and the bytes are there: `# Safety` of this function. The loop counts down the
    // pixels. It changes the sums and the registers that are named here.
    unsafe {
        asm!(
            "vldrw.u32 q0, [{sums}]",
            "vldrw.u32 q1, [{sums}, #16]",
            "wls lr, lr, 3f",
            "2:",
            "vldrb.u32 q2, [r1]",
            "vldrb.u32 q3, [r1, #4]",
            "vadd.i32 q0, q0, q2",
            "vadd.i32 q1, q1, q3",
            "add r1, {between}",
            "le lr, 2b",
            "3:",
            "vstrw.32 q0, [{sums}]",
            "vstrw.32 q1, [{sums}, #16]",
            sums = in(reg) sums,
            inout("r1") pixel => _,
            inout("lr") pixels => _,
            between = in(reg) between,
            out("q0") _,
            out("q1") _,
            out("q2") _,
            out("q3") _,
            options(nostack),
        );
    }
}

// SAFETY: there are 8 lanes, and each method touches what `Integers` says of its pointers and no more.
unsafe impl Integers for Helium {
    type Sums = <Dsp as Integers>::Sums;
    type Factors = <Dsp as Integers>::Factors;
    type Scales = <Dsp as Integers>::Scales;
    type Clamp = Requantize;
    const LANES: usize = LANES;
    const HAS_PARTS: bool = false;
    const DEPTH: usize = 2;
    const SIZE: usize = 1;
    /// As many as [`add_three_by_two`] takes.
    const TILE: usize = 3;
    const SLIDES: bool = false;
    const PANELS_PER_STEP: usize = 1;

    #[inline(always)]
    unsafe fn sums(p: *const u8, lanes: usize) -> Self::Sums {
        // SAFETY: `p` is good for 8 numbers of 4 bytes: `# Safety` of `Integers`.
        unsafe { Dsp::sums(p, lanes) }
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, lanes: usize) -> Self::Scales {
        // SAFETY: `p` is good for 8 floats of 4 bytes: `# Safety` of `Integers`.
        unsafe { Dsp::scales(p, lanes) }
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, lanes: usize) -> Self::Factors {
        // SAFETY: the processor has the instructions, and `p` is good for `STEPS` bytes of each of 8 lanes: `# Safety` of
        // `Integers`.
        unsafe { Dsp::weights::<STEPS, PART>(p, lanes) }
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: `p` is good for two elements of a byte: `# Safety` of `Integers`.
        let [first, second] = unsafe { p.cast::<[u8; 2]>().read() }.map(u32::from);
        [first | (second << 16); LANES]
    }

    /// As [`add_eight_channels`] reads them: a word for each lane, with the first row below the second.
    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        let rows = [0, rows - 1].map(|row| at(row, 0).0);
        core::array::from_fn(|v| {
            core::array::from_fn(|lane| {
                // SAFETY: each row is good for `V` vectors of 8 bytes: `# Safety` of `Integers`.
                let [first, second] = rows.map(|row| unsafe { *row.add(LANES * v + lane) }.cast_signed());
                (i32::from(second).cast_unsigned() << 16) | (i32::from(first).cast_unsigned() & 0xffff)
            })
        })
    }

    #[inline(always)]
    unsafe fn add_products(sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has the instruction: `# Safety` of `Integers`.
        unsafe { Dsp::add_products(sums, a, b) }
    }

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
        let together = if M == 3 { 2 } else { 4 };
        for v in 0..N {
            let (first, width) = at(v);
            let how = Loop::new(width, fours);
            // A narrow panel has no more channels.
            let lanes = LANES.min(width - v * LANES);
            for lane in (0..lanes).step_by(together) {
                let mut weights = first.wrapping_add(4 * lane);
                for line in (0..lines.count).map(|line| line * lines.between) {
                    let (from, pixels) = ((weights, 8 * width), pixels.map(|pixel| pixel.wrapping_add(line)));
                    // SAFETY: the processor has the instructions, and there are weights of the steps for 8 lanes, and
                    // the steps of each pixel: `# Safety` of `Integers`.
                    unsafe {
                        if M == 3 {
                            let place = |i: usize| (i / 2, lane + i % 2);
                            let six = core::array::from_fn(|i| sums[place(i).0][v][place(i).1]);
                            let pixels = [pixels[0], pixels[M / 2], pixels[M - 1]];
                            let six = add_three_by_two(six, from, pixels, &how);
                            for (i, sum) in six.into_iter().enumerate() {
                                sums[place(i).0][v][place(i).1] = sum;
                            }
                        } else {
                            for (sums, pixel) in sums.iter_mut().zip(pixels) {
                                let sums = &mut sums[v].as_chunks_mut().0[lane / 4];
                                *sums = add_four_channels(*sums, from, pixel, &how);
                            }
                        }
                    }
                    weights = weights.wrapping_add(4 * width * fours);
                }
            }
        }
        true
    }

    #[inline(always)]
    unsafe fn add_columns<const V: usize>(
        sums: &mut [Self::Sums; V],
        columns: &[[*const u8; MAX_DEPTH]],
        kernel: [usize; 2],
        weights: &[MaybeUninit<[Self::Factors; V]>],
        _: usize,
    ) {
        // Those of two rows come first.
        let two = kernel[0] / 2 * kernel[1];
        for (v, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the processor has the instructions, each tap is good for `V` vectors of 8 bytes, and the weights
            // of as many lanes are initialised: `# Safety` of `Integers`.
            unsafe {
                let weights = weights.as_ptr().cast::<u32>().add(v * LANES);
                add_eight_channels(sums, columns, two, (weights, size_of::<[Self::Factors; V]>()), v * LANES);
            }
        }
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        // SAFETY: there are no pointers: `# Safety` of `Integers`.
        unsafe { Dsp::add_to_all(sums, number) }
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        how
    }

    /// Both the conversion and the addition stay within 32 bits. NaN becomes the zero point, or the bound next to it.
    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        _: usize,
    ) {
        let Requantize { zero_point, low, high } = clamp;
        // SAFETY: the processor has the instructions, and `out` is good for 8 bytes: `# Safety` of `Integers`. They change
        // these registers, and flags that say whether a number was not exact or left its range.
        unsafe {
            asm!(
                "vldrw.u32 q0, [{sums}]",
                "vldrw.u32 q1, [{scales}]",
                "vldrw.u32 q2, [{sums}, #16]",
                "vldrw.u32 q3, [{scales}, #16]",
                "vcvt.f32.s32 q0, q0",
                "vcvt.f32.s32 q2, q2",
                "vmul.f32 q0, q0, q1",
                "vmul.f32 q2, q2, q3",
                "vcvtn.s32.f32 q0, q0",
                "vcvtn.s32.f32 q2, q2",
                "vdup.32 q1, {low}",
                "vdup.32 q3, {high}",
                "vqadd.s32 q0, q0, {zero_point}",
                "vqadd.s32 q2, q2, {zero_point}",
                "vmax.s32 q0, q0, q1",
                "vmax.s32 q2, q2, q1",
                "vmin.s32 q0, q0, q3",
                "vmin.s32 q2, q2, q3",
                "vstrb.32 q0, [r1]",
                "vstrb.32 q2, [r1, #4]",
                sums = in(reg) &sums,
                scales = in(reg) &scales,
                in("r1") out,
                zero_point = in(reg) u32::from(*zero_point),
                low = in(reg) u32::from(*low),
                high = in(reg) u32::from(*high),
                out("q0") _,
                out("q1") _,
                out("q2") _,
                out("q3") _,
                options(nostack),
            );
        }
    }

    #[inline(always)]
    unsafe fn add_pixels<'r>(
        sums: &mut [i32; PANEL],
        rows: impl Iterator<Item = &'r [u8]> + Clone,
        (pixels, between): (usize, usize),
        channels: usize,
    ) {
        let (eights, rest) = sums[..channels].as_chunks_mut();
        for row in rows {
            for (i, sums) in eights.iter_mut().enumerate() {
                // SAFETY: the processor has the instructions: `# Safety` of `Integers`.
                unsafe { add_eight_of_pixels(sums, row.as_ptr().wrapping_add(LANES * i), between, pixels) }
            }
            add_pixels(rest, &row[channels - rest.len()..], between);
        }
    }

    #[inline(always)]
    unsafe fn keep_largest(largest: &mut [u8], elements: &[u8]) {
        let count = largest.len().min(elements.len());
        if count == 0 {
            return;
        }
        // SAFETY: the processor has the instructions: `# Safety` of `Integers`. The loop counts down the elements, and in its last
        // round it touches none beyond the last.
        unsafe {
            asm!(
                "dlstp.8 lr, lr",
                "2:",
                "vldrb.8 q0, [{largest}]",
                "vldrb.8 q1, [{elements}], #16",
                "vmax.u8 q0, q0, q1",
                "vstrb.8 q0, [{largest}], #16",
                "letp lr, 2b",
                largest = inout(reg) largest.as_mut_ptr() => _,
                elements = inout(reg) elements.as_ptr() => _,
                inout("lr") count => _,
                out("q0") _,
                out("q1") _,
                options(nostack),
            );
        }
    }

    #[inline(always)]
    unsafe fn add_scaled(sum: &ScaledSum, left: &[u8], right: &[u8], made: &mut [u8]) {
        let count = made.len().min(left.len()).min(right.len());
        if count == 0 {
            return;
        }
        // SAFETY: as above. The instructions change these registers, and flags that say whether a number was not exact or left
        // its range.
        unsafe {
            asm!(
                "vdup.32 q2, {low}",
                "vdup.32 q3, {high}",
                "dlstp.32 lr, lr",
                "2:",
                "vldrb.u32 q0, [r1], #4",
                "vldrb.u32 q1, [r3], #4",
                "vcvt.f32.u32 q0, q0",
                "vcvt.f32.u32 q1, q1",
                "vmul.f32 q0, q0, {by_left}",
                "vmul.f32 q1, q1, {by_right}",
                "vadd.f32 q0, q0, {fixed}",
                "vadd.f32 q0, q0, q1",
                "vcvtn.s32.f32 q0, q0",
                "vmax.s32 q0, q0, q2",
                "vmin.s32 q0, q0, q3",
                "vstrb.32 q0, [r5], #4",
                "letp lr, 2b",
                low = in(reg) u32::from(sum.how.low),
                high = in(reg) u32::from(sum.how.high),
                by_left = in(reg) sum.left.to_bits(),
                by_right = in(reg) sum.right.to_bits(),
                fixed = in(reg) sum.fixed.to_bits(),
                inout("r1") left.as_ptr() => _,
                inout("r3") right.as_ptr() => _,
                inout("r5") made.as_mut_ptr() => _,
                inout("lr") count => _,
                out("q0") _,
                out("q1") _,
                out("q2") _,
                out("q3") _,
                options(nostack),
            );
        }
    }

    #[inline(never)]
    unsafe fn call<W: Work>(work: W) {
        work.run::<Helium>();
    }
}
