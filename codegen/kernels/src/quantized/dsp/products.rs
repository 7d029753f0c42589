//! Sums of products, four at a time: of two pixels and two channels, or of one pixel and four channels. They need every
//! register there is, so they are in assembly, which also saves those that the compiler keeps for itself.

use core::arch::asm;
use core::mem::offset_of;

use super::super::super::arch::PANEL;

/// What the functions here read, and count in. They read the first three numbers at once, and then the next two.
#[repr(C)]
pub(super) struct Arguments {
    /// Where the weights of the next channels begin, four steps of each. They need no alignment.
    pub weights: *const u8,
    /// Where the steps of the pixels begin, numbers of 16 bits at multiples of 4 bytes. Only two pixels have the second.
    pub pixels: [*const u8; 2],
    /// The next two sums, and how many bytes further those are that are made with them.
    pub sums: *mut i32,
    pub further: usize,
    /// How often four sums are made.
    pub times: usize,
    /// Lines of steps, and the bytes between the end of a line and the next.
    pub lines: usize,
    pub skip: usize,
    /// How often a line has four steps: not 0.
    pub fours: usize,
    /// Lines that are left.
    pub left: usize,
}

/// Loads the weights of the first channel, and goes on to the next four steps: of a whole panel, or by the number of bytes on
/// the stack.
macro_rules! next_of_whole {
    () => {
        "ldr r8, [r0], #64"
    };
}
macro_rules! next_of_any {
    () => {
        "ldr r8, [r0]\n ldr r11, [sp, #4]\n add r0, r0, r11"
    };
}
const _: () = assert!(4 * PANEL == 64);

/// A function that adds the products of its [`Arguments`], whose weights of four steps are so many bytes apart. `r0` points
/// to weights, `r1` and `r12` to steps, and the sums are in `r4` to `r7`. Of the fours, which `lr` counts, two go in a turn; if
/// their number is odd, the first turn begins at its middle.
macro_rules! add_products {
    ($(#[$about:meta])* $name:ident, $bytes:literal, [$($four:expr),+ $(,)?]) => {
        $(#[$about])*
        ///
        /// # Safety
        /// The processor has DSP instructions, and all that the arguments say is there.
        #[inline(never)]
        pub(super) unsafe fn $name(arguments: &mut Arguments, between: usize) {
            // SAFETY: the processor has the instructions, and all that the arguments say is there: `# Safety` of this
            // function. What is changed beside this is saved, or said at the end.
            unsafe { asm!(
                "push {{r0, r1, r6, r7, r11}}",
                "mov r2, r0",
                // The next channels, with the arguments in `r2`.
                "3:",
                "ldrd r0, r1, [r2, #{sums}]",
                "ldrd r4, r5, [r0]",
                "add r0, r0, r1",
                "ldrd r6, r7, [r0]",
                "ldr r3, [r2, #{lines}]",
                "str r3, [r2, #{left}]",
                "ldr lr, [r2, #{fours}]",
                "ldm r2, {{r0, r1, r12}}",
                "4:",
                "tst lr, #1",
                "bne 2f",
                "1:",
                $($four,)+
                "2:",
                $($four,)+
                "subs lr, lr, #2",
                "bgt 1b",
                // The next line.
                "ldr r2, [sp]",
                "ldr r3, [r2, #{skip}]",
                "add r1, r1, r3",
                "add r12, r12, r3",
                "ldr lr, [r2, #{fours}]",
                "ldr r3, [r2, #{left}]",
                "subs r3, r3, #1",
                "str r3, [r2, #{left}]",
                "bne 4b",
                "ldrd r0, r1, [r2, #{sums}]",
                "strd r4, r5, [r0]",
                "add r1, r0, r1",
                "strd r6, r7, [r1]",
                concat!("add r0, r0, #", $bytes),
                "str r0, [r2, #{sums}]",
                "ldr r0, [r2, #{weights}]",
                concat!("add r0, r0, #", $bytes),
                "str r0, [r2, #{weights}]",
                "ldr r3, [r2, #{times}]",
                "subs r3, r3, #1",
                "str r3, [r2, #{times}]",
                "bne 3b",
                "pop {{r0, r1, r6, r7, r11}}",
                weights = const offset_of!(Arguments, weights),
                sums = const offset_of!(Arguments, sums),
                times = const offset_of!(Arguments, times),
                lines = const offset_of!(Arguments, lines),
                skip = const offset_of!(Arguments, skip),
                fours = const offset_of!(Arguments, fours),
                left = const offset_of!(Arguments, left),
                in("r0") arguments,
                in("r1") between,
                out("r2") _,
                out("r3") _,
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
}

/// Four steps of two pixels and two channels.
macro_rules! two_by_two {
    ($(#[$about:meta])* $name:ident, $next:expr) => {
        add_products!(
            $(#[$about])*
            $name, 8, [
                "ldr r10, [r0, #4]",
                $next,
                "ldrd r2, r3, [r1], #8",
                "sxtb16 r9, r8, ror #8",
                "sxtb16 r8, r8",
                "sxtb16 r11, r10, ror #8",
                "sxtb16 r10, r10",
                "smlad r4, r2, r8, r4",
                "smlad r5, r2, r10, r5",
                "smlad r4, r3, r9, r4",
                "smlad r5, r3, r11, r5",
                "ldrd r2, r3, [r12], #8",
                "smlad r6, r2, r8, r6",
                "smlad r7, r2, r10, r7",
                "smlad r6, r3, r9, r6",
                "smlad r7, r3, r11, r7",
            ]
        );
    };
}

/// Four steps of one pixel and four channels.
macro_rules! four_channels {
    ($(#[$about:meta])* $name:ident, $next:expr) => {
        add_products!(
            $(#[$about])*
            $name, 16, [
                "ldrd r2, r3, [r1], #8",
                "ldr r10, [r0, #4]",
                "sxtb16 r9, r10, ror #8",
                "sxtb16 r10, r10",
                "smlad r5, r2, r10, r5",
                "smlad r5, r3, r9, r5",
                "ldr r10, [r0, #8]",
                "sxtb16 r9, r10, ror #8",
                "sxtb16 r10, r10",
                "smlad r6, r2, r10, r6",
                "smlad r6, r3, r9, r6",
                "ldr r10, [r0, #12]",
                "sxtb16 r9, r10, ror #8",
                "sxtb16 r10, r10",
                "smlad r7, r2, r10, r7",
                "smlad r7, r3, r9, r7",
                $next,
                "sxtb16 r9, r8, ror #8",
                "sxtb16 r8, r8",
                "smlad r4, r2, r8, r4",
                "smlad r4, r3, r9, r4",
            ]
        );
    };
}

two_by_two!(
    /// For two pixels, two channels at a time of a whole panel.
    add_two_pixels_of_whole, next_of_whole!()
);
two_by_two!(
    /// For two pixels, two channels at a time.
    add_two_pixels, next_of_any!()
);
four_channels!(
    /// For one pixel, four channels at a time of a whole panel.
    add_one_pixel_of_whole, next_of_whole!()
);
four_channels!(
    /// For one pixel, four channels at a time.
    add_one_pixel, next_of_any!()
);
