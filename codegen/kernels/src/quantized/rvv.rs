//! Integers by the vectors of RISC-V (V, of 128 bits or more): products of 16-bit numbers, of a whole panel at a time. Rust has
//! no type for these vectors, so each group of instructions loads them and leaves only numbers.

use core::arch::asm;
use core::mem::MaybeUninit;

use super::super::arch::PANEL;
use super::Requantize;
use super::integers::{Integers, Lines, MAX_DEPTH, NUMBER, ScaledSum, Work};

/// The vectors of RISC-V.
#[derive(Clone, Copy)]
pub(crate) struct Rvv;

/// Instructions of vectors, on whatever target.
macro_rules! vectors {
    ($($line:expr),+ $(,)? ; $($operands:tt)*) => {
        asm!(".option push", ".option arch, +v", $($line,)+ ".option pop", $($operands)* options(nostack))
    };
}

/// A function that adds the products of so many fours of steps to the sums of pixels. Beside the weights stands how many channels
/// they are of. For each pixel there is the name of its address, the offset of its sums, and the registers where these are.
macro_rules! add_fours {
    ($name:ident, $count:literal, $($pixel:ident $at:literal $sums:literal),+) => {
        /// # Safety
        /// The processor has the instructions, and there are sums of the pixels, weights of the steps, and the steps of each pixel.
        #[inline(never)]
        unsafe fn $name(
            sums: *mut [i32; PANEL],
            (weights, width): (*const u8, usize),
            [$($pixel),+]: [*const u8; $count],
            fours: usize,
        ) {
            // SAFETY: the processor has the instructions, and the sums, steps and weights are there: `# Safety` of this
            // function. The loop counts down the fours. It changes the sums and the registers that are named here.
            unsafe {
                vectors!(
                    "vsetvli zero, {width}, e32, m4, ta, ma",
                    $(
                        concat!("addi {step}, {sums}, ", $at),
                        concat!("vle32.v ", $sums, ", ({step})"),
                    )+
                    "vsetvli zero, {width}, e16, m2, ta, ma",
                    "slli {between}, {width}, 2",
                    "2:",
                    // Of each four steps, the second and third are exchanged.
                    "vlseg4e8.v v4, ({weights})",
                    "vsext.vf2 v8, v4",
                    "vsext.vf2 v10, v6",
                    "vsext.vf2 v12, v5",
                    "vsext.vf2 v14, v7",
                    $(
                        concat!("lbu {step}, 0({", stringify!($pixel), "})"),
                        concat!("vwmacc.vx ", $sums, ", {step}, v8"),
                    )+
                    $(
                        concat!("lbu {step}, 1({", stringify!($pixel), "})"),
                        concat!("vwmacc.vx ", $sums, ", {step}, v10"),
                    )+
                    $(
                        concat!("lbu {step}, 2({", stringify!($pixel), "})"),
                        concat!("vwmacc.vx ", $sums, ", {step}, v12"),
                    )+
                    $(
                        concat!("lbu {step}, 3({", stringify!($pixel), "})"),
                        concat!("vwmacc.vx ", $sums, ", {step}, v14"),
                        concat!("addi {", stringify!($pixel), "}, {", stringify!($pixel), "}, 4"),
                    )+
                    "add {weights}, {weights}, {between}",
                    "addi {fours}, {fours}, -1",
                    "bnez {fours}, 2b",
                    "vsetvli zero, {width}, e32, m4, ta, ma",
                    $(
                        concat!("addi {step}, {sums}, ", $at),
                        concat!("vse32.v ", $sums, ", ({step})"),
                    )+
                    ;
                    sums = in(reg) sums,
                    weights = inout(reg) weights => _,
                    width = in(reg) width,
                    fours = inout(reg) fours => _,
                    between = out(reg) _,
                    step = out(reg) _,
                    $($pixel = inout(reg) $pixel => _,)+
                    out("v4") _, out("v5") _, out("v6") _, out("v7") _, out("v8") _, out("v9") _, out("v10") _,
                    out("v11") _, out("v12") _, out("v13") _, out("v14") _, out("v15") _, out("v16") _, out("v17") _,
                    out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _, out("v24") _,
                    out("v25") _, out("v26") _, out("v27") _, out("v28") _, out("v29") _, out("v30") _, out("v31") _,
                );
            }
        }
    };
}

add_fours!(add_fours_of_one, 1, a 0 "v16");
add_fours!(add_fours_of_two, 2, a 0 "v16", b 64 "v20");
add_fours!(add_fours_of_three, 3, a 0 "v16", b 64 "v20", c 128 "v24");
add_fours!(add_fours_of_four, 4, a 0 "v16", b 64 "v20", c 128 "v24", d 192 "v28");

/// Signed bytes as numbers of 16 bits.
///
/// # Safety
/// The processor has the instructions, and there are `lanes` bytes, a panel at most.
#[inline(always)]
unsafe fn widened(bytes: *const u8, lanes: usize) -> [i16; PANEL] {
    let mut numbers = [0; PANEL];
    // SAFETY: the processor has the instructions, and there are so many bytes: `# Safety` of this function.
    unsafe {
        vectors!(
            "vsetvli zero, {lanes}, e16, m2, ta, ma",
            "vle8.v v4, ({bytes})",
            "vsext.vf2 v8, v4",
            "vse16.v v8, ({numbers})"
            ;
            lanes = in(reg) lanes,
            bytes = in(reg) bytes,
            numbers = in(reg) &mut numbers,
            out("v4") _, out("v8") _, out("v9") _,
        );
    }
    numbers
}

/// Loads a pointer.
#[cfg(target_pointer_width = "64")]
macro_rules! pointer {
    () => {
        "ld"
    };
}
/// Loads a pointer.
#[cfg(target_pointer_width = "32")]
macro_rules! pointer {
    () => {
        "lw"
    };
}

/// Adds the products of columns of two taps, so many, and of columns of one tap to the sums of so many channels of a depthwise
/// convolution.
///
/// # Safety
/// The processor has the instructions, and there are as many bytes of each tap, and weights of each column.
#[inline(never)]
unsafe fn add_taps(
    sums: &mut [i32; PANEL],
    columns: &[[*const u8; MAX_DEPTH]],
    two: usize,
    weights: *const [[i16; PANEL]; 2],
    lanes: usize,
) {
    // SAFETY: the processor has the instructions, and the taps and weights are there: `# Safety` of this function. The loops
    // count down the columns. It changes the sums and the registers that are named here.
    unsafe {
        vectors!(
            "vsetvli zero, {lanes}, e32, m4, ta, ma",
            "vle32.v v16, ({sums})",
            "vsetvli zero, {lanes}, e16, m2, ta, ma",
            "beqz {two}, 3f",
            "2:",
            concat!(pointer!(), " {tap}, 0({columns})"),
            concat!(pointer!(), " {other}, {size}({columns})"),
            "vle8.v v4, ({tap})",
            "vle8.v v5, ({other})",
            "addi {tap}, {weights}, 32",
            "vle16.v v8, ({weights})",
            "vle16.v v10, ({tap})",
            "vzext.vf2 v12, v4",
            "vzext.vf2 v14, v5",
            "vwmacc.vv v16, v12, v8",
            "vwmacc.vv v16, v14, v10",
            "addi {weights}, {weights}, 64",
            "addi {columns}, {columns}, 4 * {size}",
            "addi {two}, {two}, -1",
            "bnez {two}, 2b",
            "3:",
            "beqz {one}, 5f",
            "4:",
            concat!(pointer!(), " {tap}, 0({columns})"),
            "vle8.v v4, ({tap})",
            "vle16.v v8, ({weights})",
            "vzext.vf2 v12, v4",
            "vwmacc.vv v16, v12, v8",
            "addi {weights}, {weights}, 64",
            "addi {columns}, {columns}, 4 * {size}",
            "addi {one}, {one}, -1",
            "bnez {one}, 4b",
            "5:",
            "vsetvli zero, {lanes}, e32, m4, ta, ma",
            "vse32.v v16, ({sums})"
            ;
            sums = in(reg) sums,
            lanes = in(reg) lanes,
            columns = inout(reg) columns.as_ptr() => _,
            weights = inout(reg) weights => _,
            two = inout(reg) two => _,
            one = inout(reg) columns.len() - two => _,
            tap = out(reg) _,
            other = out(reg) _,
            size = const size_of::<*const u8>(),
            out("v4") _, out("v5") _, out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _,
            out("v13") _, out("v14") _, out("v15") _, out("v16") _, out("v17") _, out("v18") _, out("v19") _,
        );
    }
}

// SAFETY: there are 16 lanes, a panel, and each method touches what `Integers` says of its pointers and no more: instructions work
// on as many lanes as they are told.
unsafe impl Integers for Rvv {
    type Sums = [i32; PANEL];
    /// The first of each lane's two, then the second ones.
    type Factors = [[i16; PANEL]; 2];
    type Scales = [f32; PANEL];
    type Clamp = Requantize;
    const LANES: usize = PANEL;
    const HAS_PARTS: bool = true;
    const DEPTH: usize = 2;
    const SIZE: usize = 1;
    /// There are registers for the sums of so many.
    const TILE: usize = 4;
    const SLIDES: bool = false;
    const PANELS_PER_STEP: usize = 1;

    #[inline(always)]
    unsafe fn sums(p: *const u8, lanes: usize) -> Self::Sums {
        let mut numbers = [0; PANEL];
        // SAFETY: `p` is good for `lanes` numbers of 4 bytes, which need no alignment: `# Safety` of `Integers`.
        unsafe { p.copy_to_nonoverlapping(numbers.as_mut_ptr().cast(), NUMBER * lanes) }
        numbers
    }

    #[inline(always)]
    unsafe fn scales(p: *const u8, lanes: usize) -> Self::Scales {
        // SAFETY: `p` is good for `lanes` floats, which have as many bytes: `# Safety` of `Integers`.
        unsafe { Self::sums(p, lanes) }.map(|bits| f32::from_bits(bits.cast_unsigned()))
    }

    #[inline(always)]
    unsafe fn weights<const STEPS: usize, const PART: usize>(p: *const u8, lanes: usize) -> Self::Factors {
        let of = |lane: usize, i: usize| {
            // SAFETY: `p` is good for `STEPS` signed bytes of each of `lanes` lanes: `# Safety` of `Integers`.
            let weight = unsafe { *p.cast::<i8>().add(STEPS * lane + PART + i * (STEPS / 2)) };
            i16::from(weight)
        };
        [0, 1].map(|i| core::array::from_fn(|lane| if lane < lanes { of(lane, i) } else { 0 }))
    }

    #[inline(always)]
    unsafe fn steps<const STEPS: usize>(p: *const u8) -> Self::Factors {
        // SAFETY: `p` is good for two elements of a byte: `# Safety` of `Integers`.
        unsafe { p.cast::<[u8; 2]>().read() }.map(|step| [step.into(); PANEL])
    }

    #[inline(always)]
    unsafe fn weight_rows<const V: usize>(
        rows: usize,
        at: impl Fn(usize, usize) -> (*const u8, usize),
    ) -> [Self::Factors; V] {
        [[0, rows - 1].map(|row| {
            let (bytes, lanes) = at(row, 0);
            // SAFETY: the processor has the instructions, and each row is good for as many bytes as `at` says: `# Safety` of
            // `Integers`.
            unsafe { widened(bytes, lanes) }
        }); V]
    }

    #[inline(always)]
    unsafe fn add_products(mut sums: Self::Sums, a: Self::Factors, b: Self::Factors) -> Self::Sums {
        // SAFETY: the processor has the instructions: `# Safety` of `Integers`. There are 16 of all numbers.
        unsafe {
            vectors!(
                "vsetivli zero, 16, e32, m4, ta, ma",
                "vle32.v v16, ({sums})",
                "vsetivli zero, 16, e16, m2, ta, ma",
                "addi {next}, {a}, 32",
                "vle16.v v8, ({a})",
                "vle16.v v10, ({next})",
                "addi {next}, {b}, 32",
                "vle16.v v12, ({b})",
                "vle16.v v14, ({next})",
                "vwmacc.vv v16, v8, v12",
                "vwmacc.vv v16, v10, v14",
                "vsetivli zero, 16, e32, m4, ta, ma",
                "vse32.v v16, ({sums})"
                ;
                sums = in(reg) &mut sums,
                a = in(reg) &a,
                b = in(reg) &b,
                next = out(reg) _,
                out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _, out("v13") _, out("v14") _,
                out("v15") _, out("v16") _, out("v17") _, out("v18") _, out("v19") _,
            );
        }
        sums
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
        debug_assert!(N == 1, "a panel is one vector");
        if fours == 0 {
            return true;
        }
        let (mut weights, width) = at(0);
        let sums = sums.as_mut_ptr().cast();
        for line in 0..lines.count {
            let pixel = |i: usize| pixels[i % M].wrapping_add(line * lines.between);
            // SAFETY: the processor has the instructions, and there are weights of the steps for `width` channels, and the
            // steps of each pixel: `# Safety` of `Integers`.
            unsafe {
                let from = (weights, width);
                match M {
                    1 => add_fours_of_one(sums, from, [0].map(pixel), fours),
                    2 => add_fours_of_two(sums, from, [0, 1].map(pixel), fours),
                    3 => add_fours_of_three(sums, from, [0, 1, 2].map(pixel), fours),
                    _ => add_fours_of_four(sums, from, [0, 1, 2, 3].map(pixel), fours),
                }
            }
            weights = weights.wrapping_add(4 * width * fours);
        }
        true
    }

    #[inline(always)]
    unsafe fn add_columns<const V: usize>(
        sums: &mut [Self::Sums; V],
        columns: &[[*const u8; MAX_DEPTH]],
        kernel: [usize; 2],
        weights: &[MaybeUninit<[Self::Factors; V]>],
        lanes: usize,
    ) {
        debug_assert!(V == 1, "a panel is one vector");
        // Those of two rows come first.
        let two = kernel[0] / 2 * kernel[1];
        // SAFETY: the processor has the instructions, each tap is good for `lanes` bytes, and the weights are initialised:
        // `# Safety` of `Integers`.
        unsafe { add_taps(&mut sums[0], columns, two, weights.as_ptr().cast(), lanes) }
    }

    #[inline(always)]
    unsafe fn add_to_all(sums: Self::Sums, number: i32) -> Self::Sums {
        sums.map(|sum| sum.wrapping_add(number))
    }

    #[inline(always)]
    unsafe fn clamp(how: Requantize) -> Self::Clamp {
        how
    }

    /// The conversion and the addition stay within 32 bits. NaN becomes the largest element.
    #[inline(always)]
    unsafe fn requantize(
        sums: Self::Sums,
        scales: Self::Scales,
        clamp: &Self::Clamp,
        out: *mut u8,
        lanes: usize,
    ) {
        let Requantize { zero_point, low, high } = *clamp;
        // SAFETY: the processor has the instructions, and rounds as it does unless it was told otherwise. `out` is good for
        // `lanes` bytes: `# Safety` of `Integers`.
        unsafe {
            vectors!(
                "vsetvli zero, {lanes}, e32, m4, ta, ma",
                "vle32.v v16, ({sums})",
                "vle32.v v20, ({scales})",
                "vfcvt.f.x.v v16, v16",
                "vfmul.vv v16, v16, v20",
                "vfcvt.x.f.v v16, v16",
                "vsadd.vx v16, v16, {zero_point}",
                "vmax.vx v16, v16, {low}",
                "vmin.vx v16, v16, {high}",
                "vsetvli zero, zero, e16, m2, ta, ma",
                "vnsrl.wi v8, v16, 0",
                "vsetvli zero, zero, e8, m1, ta, ma",
                "vnsrl.wi v4, v8, 0",
                "vse8.v v4, ({out})"
                ;
                lanes = in(reg) lanes,
                sums = in(reg) &sums,
                scales = in(reg) &scales,
                zero_point = in(reg) usize::from(zero_point),
                low = in(reg) usize::from(low),
                high = in(reg) usize::from(high),
                out = in(reg) out,
                out("v4") _, out("v8") _, out("v9") _, out("v16") _, out("v17") _, out("v18") _, out("v19") _,
                out("v20") _, out("v21") _, out("v22") _, out("v23") _,
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
        for row in rows.filter(|_| pixels > 0) {
            // SAFETY: the processor has the instructions, and each pixel of the row has so many channels: `# Safety` of
            // `Integers`.
            unsafe {
                vectors!(
                    "vsetvli zero, {channels}, e32, m4, ta, ma",
                    "vle32.v v16, ({sums})",
                    "2:",
                    "vle8.v v4, ({pixel})",
                    "vzext.vf4 v8, v4",
                    "vadd.vv v16, v16, v8",
                    "add {pixel}, {pixel}, {between}",
                    "addi {pixels}, {pixels}, -1",
                "bnez {pixels}, 2b",
                    "vse32.v v16, ({sums})"
                    ;
                    channels = in(reg) channels,
                    sums = in(reg) sums,
                    pixel = inout(reg) row.as_ptr() => _,
                    between = in(reg) between,
                    pixels = inout(reg) pixels => _,
                    out("v4") _, out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v16") _, out("v17") _,
                    out("v18") _, out("v19") _,
                );
            }
        }
    }

    #[inline(always)]
    unsafe fn keep_largest(largest: &mut [u8], elements: &[u8]) {
        // SAFETY: the processor has the instructions: `# Safety` of `Integers`. The loop counts down the elements.
        unsafe {
            vectors!(
                "2:",
                "vsetvli {now}, {count}, e8, m4, ta, ma",
                "vle8.v v8, ({largest})",
                "vle8.v v12, ({elements})",
                "vmaxu.vv v8, v8, v12",
                "vse8.v v8, ({largest})",
                "add {largest}, {largest}, {now}",
                "add {elements}, {elements}, {now}",
                "sub {count}, {count}, {now}",
                "bnez {count}, 2b"
                ;
                now = out(reg) _,
                count = inout(reg) largest.len().min(elements.len()) => _,
                largest = inout(reg) largest.as_mut_ptr() => _,
                elements = inout(reg) elements.as_ptr() => _,
                out("v8") _, out("v9") _, out("v10") _, out("v11") _, out("v12") _, out("v13") _, out("v14") _,
                out("v15") _,
            );
        }
    }

    #[inline(always)]
    unsafe fn add_scaled(sum: &ScaledSum, left: &[u8], right: &[u8], made: &mut [u8]) {
        // A factor is the same for all elements, and the processor may have no registers for floats.
        let bits = |number: f32| number.to_bits() as usize;
        // SAFETY: as above.
        unsafe {
            vectors!(
                "vsetvli {now}, zero, e32, m4, ta, ma",
                "vmv.v.x v16, {by_left}",
                "vmv.v.x v20, {by_right}",
                "vmv.v.x v24, {fixed}",
                "2:",
                "vsetvli {now}, {count}, e32, m4, ta, ma",
                "vle8.v v4, ({left})",
                "vle8.v v5, ({right})",
                "vzext.vf4 v8, v4",
                "vzext.vf4 v12, v5",
                "vfcvt.f.x.v v8, v8",
                "vfcvt.f.x.v v12, v12",
                "vfmul.vv v8, v8, v16",
                "vfmul.vv v12, v12, v20",
                "vfadd.vv v8, v24, v8",
                "vfadd.vv v8, v8, v12",
                "vfcvt.x.f.v v8, v8",
                "vmax.vx v8, v8, {low}",
                "vmin.vx v8, v8, {high}",
                "vsetvli zero, zero, e16, m2, ta, ma",
                "vnsrl.wi v6, v8, 0",
                "vsetvli zero, zero, e8, m1, ta, ma",
                "vnsrl.wi v4, v6, 0",
                "vse8.v v4, ({made})",
                "add {left}, {left}, {now}",
                "add {right}, {right}, {now}",
                "add {made}, {made}, {now}",
                "sub {count}, {count}, {now}",
                "bnez {count}, 2b"
                ;
                now = out(reg) _,
                count = inout(reg) made.len().min(left.len()).min(right.len()) => _,
                left = inout(reg) left.as_ptr() => _,
                right = inout(reg) right.as_ptr() => _,
                made = inout(reg) made.as_mut_ptr() => _,
                by_left = in(reg) bits(sum.left),
                by_right = in(reg) bits(sum.right),
                fixed = in(reg) bits(sum.fixed),
                low = in(reg) usize::from(sum.how.low),
                high = in(reg) usize::from(sum.how.high),
                out("v4") _, out("v5") _, out("v6") _, out("v7") _, out("v8") _, out("v9") _, out("v10") _,
                out("v11") _, out("v12") _, out("v13") _, out("v14") _, out("v15") _, out("v16") _, out("v17") _,
                out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _, out("v24") _,
                out("v25") _, out("v26") _, out("v27") _,
            );
        }
    }

    #[inline(never)]
    unsafe fn call<W: Work>(work: W) {
        work.run::<Rvv>();
    }
}
