//! A board under qemu: where it starts, how it prints, and its stack. It talks to qemu by semihosting.

use core::fmt::{self, Write};

/// The word that fills unused stack.
const PAINT: u32 = 0x5aa5_c33c;

/// Semihosting: write a text that a zero ends.
const WRITE: usize = 4;
/// Semihosting: exit with a code.
const EXIT: usize = 0x20;
/// The reason for an exit: the program ended by itself.
const ENDED: usize = 0x2_0026;

unsafe extern "C" {
    /// Where the linker lets the stack end, at its lowest address.
    static mut _stack_end: u32;
}

#[cfg(target_arch = "arm")]
core::arch::global_asm!(
    // The table of vectors: the stack, where to start, and the faults.
    ".section .start, \"a\"",
    ".word _stack_start",
    ".word start",
    ".rept 14",
    ".word fault",
    ".endr",
    ".text",
    ".thumb_func",
    "start:",
    // Lets the program use the floating-point unit.
    "ldr r0, =0xe000ed88",
    "ldr r1, [r0]",
    "orr r1, r1, #0x00f00000",
    "str r1, [r0]",
    "dsb",
    "isb",
    "bl {begin}",
    ".thumb_func",
    "fault:",
    "bl {fault}",
    begin = sym begin,
    fault = sym fault,
);

#[cfg(target_arch = "riscv32")]
core::arch::global_asm!(
    ".section .start, \"ax\"",
    ".global _start",
    "_start:",
    "la t0, fault",
    "csrw mtvec, t0",
    "la sp, _stack_start",
    // Lets the program use the floating-point unit and vectors, where there are any.
    "li t0, 0x6600",
    "csrs mstatus, t0",
    "call {begin}",
    ".balign 4",
    "fault:",
    "call {fault}",
    begin = sym begin,
    fault = sym fault,
);

/// A call of qemu.
fn semihost(operation: usize, argument: usize) -> usize {
    let answer: usize;
    // SAFETY: qemu reads what the argument points to, as the operation has it, and changes nothing but the register.
    #[cfg(target_arch = "arm")]
    unsafe {
        core::arch::asm!("bkpt 0xab", inout("r0") operation => answer, in("r1") argument);
    }
    // SAFETY: qemu reads what the argument points to, as the operation has it, and changes nothing but the register.
    // The three instructions are the mark of a call, and are not compressed.
    #[cfg(target_arch = "riscv32")]
    unsafe {
        core::arch::asm!(
            ".balign 16",
            ".option push",
            ".option norvc",
            "slli x0, x0, 0x1f",
            "ebreak",
            "srai x0, x0, 7",
            ".option pop",
            inout("a0") operation => answer,
            in("a1") argument,
        );
    }
    answer
}

fn exit(code: usize) -> ! {
    let block = [ENDED, code];
    semihost(EXIT, block.as_ptr() as usize);
    loop {}
}

extern "C" fn begin() -> ! {
    crate::main();
    exit(0)
}

extern "C" fn fault() -> ! {
    println!("fault");
    exit(1)
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    println!("{info}");
    exit(1)
}

/// Prints by qemu.
pub struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // A piece at a time, each with a zero at its end.
        for piece in text.as_bytes().chunks(31) {
            let mut ended = [0; 32];
            ended[..piece.len()].copy_from_slice(piece);
            semihost(WRITE, ended.as_ptr() as usize);
        }
        Ok(())
    }
}

macro_rules! println {
    ($($argument:tt)*) => {{
        use core::fmt::Write;
        // Printing by qemu does not fail.
        let _ = writeln!($crate::board::Console, $($argument)*);
    }};
}
pub(crate) use println;

/// Bytes of stack that some work takes, beyond those of its caller.
#[inline(never)]
pub fn stack_of(work: impl FnOnce()) -> Option<usize> {
    let here = 0_u32;
    let top = &raw const here as usize;
    let end = &raw mut _stack_end as usize;
    // Leaves room for this function's own data.
    let painted = end..top - 256;
    for word in painted.clone().step_by(4) {
        // SAFETY: the linker gives these bytes to the stack alone, and those below `top - 256` are not in use now.
        unsafe { (word as *mut u32).write_volatile(PAINT) };
    }
    work();
    // SAFETY: the linker gives these bytes to the stack alone, and they were written above.
    let is_unused = |word: &usize| unsafe { (*word as *const u32).read_volatile() } == PAINT;
    let lowest = painted.clone().step_by(4).find(|word| !is_unused(word));
    assert!(lowest != Some(end), "the stack is full");
    Some(top - lowest.unwrap_or(painted.end))
}
