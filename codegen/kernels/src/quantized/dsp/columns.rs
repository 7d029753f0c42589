//! Sums of a depthwise convolution, of four channels at a time. They need every register there is, so they are in assembly,
//! which also saves those that the compiler keeps for itself.

use core::arch::asm;
use core::mem::offset_of;

use super::super::integers::MAX_DEPTH;

/// What [`add_columns`] reads, and counts in. It reads the first two numbers at once, and then the next two.
#[repr(C)]
pub(super) struct Arguments {
    /// The next four sums.
    pub sums: *mut i32,
    /// The weights of the next four channels, at a multiple of 4 bytes: of each tap a word with channels 0 and 2, and one with
    /// channels 1 and 3, for the upper tap of a column and then for the lower one.
    pub weights: *const u32,
    /// The taps of columns of two, and then those of columns of one.
    pub columns: *const [*const u8; MAX_DEPTH],
    pub twos: usize,
    pub ones: usize,
    /// How often there are four channels.
    pub times: usize,
    /// The first of the next channels.
    pub lane: usize,
}

// So far apart are columns.
const _: () = assert!(size_of::<[*const u8; MAX_DEPTH]>() == 16);

/// Adds the products of all columns. From a column's weights to the next there are `between` bytes.
///
/// `r0` points to columns, `r1` to weights. The sums are in `r4` to `r7`, and `lr` counts columns.
///
/// # Safety
/// The processor has DSP instructions, and all that the arguments say is there.
#[inline(never)]
pub(super) unsafe fn add_columns(arguments: &mut Arguments, between: usize) {
    // SAFETY: the processor has the instructions, and all that the arguments say is there: `# Safety` of this function. What is
    // changed beside this is saved, or said at the end.
    unsafe {
        asm!(
            "push {{r0, r6, r7, r11}}",
            "mov r11, r1",
            "mov r2, r0",
            // The next channels, with the arguments in `r2`.
            "5:",
            "ldrd r8, r9, [r2, #{columns}]",
            "ldr r12, [r2, #{lane}]",
            "ldrd r0, r1, [r2, #{sums}]",
            "ldm r0, {{r4-r7}}",
            "mov r0, r8",
            "movs lr, r9",
            "beq 2f",
            "1:",
            "ldrd r2, r3, [r0], #16",
            "ldr r2, [r2, r12]",
            "ldr r3, [r3, r12]",
            "ldrd r8, r9, [r1]",
            "uxtb16 r10, r2",
            "uxtb16 r2, r2, ror #8",
            "smlabb r4, r10, r8, r4",
            "smlatt r6, r10, r8, r6",
            "smlabb r5, r2, r9, r5",
            "smlatt r7, r2, r9, r7",
            "ldrd r8, r9, [r1, #8]",
            "add r1, r1, r11",
            "uxtb16 r10, r3",
            "uxtb16 r3, r3, ror #8",
            "smlabb r4, r10, r8, r4",
            "smlatt r6, r10, r8, r6",
            "smlabb r5, r3, r9, r5",
            "smlatt r7, r3, r9, r7",
            "subs lr, lr, #1",
            "bne 1b",
            "2:",
            "ldr r2, [sp]",
            "ldr lr, [r2, #{ones}]",
            "cmp lr, #0",
            "beq 4f",
            "3:",
            "ldr r2, [r0], #16",
            "ldr r2, [r2, r12]",
            "ldrd r8, r9, [r1]",
            "add r1, r1, r11",
            "uxtb16 r10, r2",
            "uxtb16 r2, r2, ror #8",
            "smlabb r4, r10, r8, r4",
            "smlatt r6, r10, r8, r6",
            "smlabb r5, r2, r9, r5",
            "smlatt r7, r2, r9, r7",
            "subs lr, lr, #1",
            "bne 3b",
            "ldr r2, [sp]",
            "4:",
            "ldrd r0, r1, [r2, #{sums}]",
            "stm r0!, {{r4-r7}}",
            "add r1, r1, #16",
            "strd r0, r1, [r2, #{sums}]",
            "add r12, r12, #4",
            "str r12, [r2, #{lane}]",
            "ldr r3, [r2, #{times}]",
            "subs r3, r3, #1",
            "str r3, [r2, #{times}]",
            "bne 5b",
            "pop {{r0, r6, r7, r11}}",
            sums = const offset_of!(Arguments, sums),
            columns = const offset_of!(Arguments, columns),
            ones = const offset_of!(Arguments, ones),
            times = const offset_of!(Arguments, times),
            lane = const offset_of!(Arguments, lane),
            in("r0") arguments,
            inout("r1") between => _,
            out("r2") _,
            out("r3") _,
            out("r4") _,
            out("r5") _,
            out("r8") _,
            out("r9") _,
            out("r10") _,
            out("r12") _,
            out("lr") _,
        )
    }
}

/// The same for filters of three rows and three columns, which are the most, of `times` four channels whose sums, weights and
/// columns begin here. `r12` is the lane.
macro_rules! add_three_by_three {
    ($(#[$about:meta])* $name:ident, $between:literal) => {
        $(#[$about])*
        ///
        /// # Safety
        /// As [`add_columns`].
        #[inline(never)]
        pub(super) unsafe fn $name(
            sums: *mut i32,
            weights: *const u32,
            columns: *const [*const u8; MAX_DEPTH],
            times: usize,
        ) {
            // SAFETY: as in `add_columns`.
            unsafe { asm!(
                "push {{r6, r7, r11}}",
                "mov r12, #0",
                "1:",
                "ldm r0, {{r4-r7}}",
                add_three_by_three!(two "#0", $between),
                add_three_by_three!(two "#16", $between),
                add_three_by_three!(two "#32", $between),
                add_three_by_three!(one "#48", $between),
                add_three_by_three!(one "#64", $between),
                add_three_by_three!(one "#80", $between),
                "stm r0!, {{r4-r7}}",
                concat!("sub r1, r1, #6 * ", $between, " - 16"),
                "add r12, r12, #4",
                "subs r3, r3, #1",
                "bne 1b",
                "pop {{r6, r7, r11}}",
                inout("r0") sums => _,
                inout("r1") weights => _,
                in("r2") columns,
                inout("r3") times => _,
                out("r4") _,
                out("r5") _,
                out("r8") _,
                out("r9") _,
                out("r10") _,
                out("r12") _,
                out("lr") _,
            ) }
        }
    };
    (two $place:literal, $between:literal) => {
        concat!(
            "ldrd r10, r11, [r2, ", $place, "]\n",
            "ldr r10, [r10, r12]\n",
            "ldr r11, [r11, r12]\n",
            add_three_by_three!(tap "r10", "8"),
            add_three_by_three!(tap "r11", $between, " - 8"),
        )
    };
    (one $place:literal, $between:literal) => {
        concat!(
            "ldr r10, [r2, ", $place, "]\n",
            "ldr r10, [r10, r12]\n",
            add_three_by_three!(tap "r10", $between),
        )
    };
    (tap $tap:literal $(, $further:literal)+) => {
        concat!(
            "ldrd r8, r9, [r1], #", $($further,)+ "\n",
            "uxtb16 lr, ", $tap, "\n",
            "uxtb16 ", $tap, ", ", $tap, ", ror #8\n",
            "smlabb r4, lr, r8, r4\n",
            "smlatt r6, lr, r8, r6\n",
            "smlabb r5, ", $tap, ", r9, r5\n",
            "smlatt r7, ", $tap, ", r9, r7\n",
        )
    };
}

add_three_by_three!(
    /// For panels of more than eight channels.
    add_three_by_three_of_two_vectors, "64"
);
add_three_by_three!(
    /// For narrower panels.
    add_three_by_three_of_one_vector, "32"
);
