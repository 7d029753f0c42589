//! NEON, which every 64-bit Arm processor for Linux has.

use core::arch::aarch64::*;
use core::arch::asm;

use super::super::half::F16;
use super::simd::{Job, Simd};

/// NEON, which every 64-bit Arm processor for Linux has.
#[derive(Clone, Copy)]
pub(crate) struct Neon;

/// Does the work with these instructions.
///
/// # Safety
/// The processor has them.
#[inline(never)]
#[target_feature(enable = "neon")]
pub(crate) unsafe fn run<J: Job>(job: J) {
    job.run::<Neon>();
}

// SAFETY: 4 lanes divide a panel of 16, and each method touches the 4 elements at its pointer and no others.
#[allow(unused_unsafe, reason = "some of these functions became safe where their instructions are enabled")]
unsafe impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;
    const REGISTERS: usize = 32;
    const PIXELS: usize = 6;
    const VECTORS: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self::V {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { vdupq_n_f32(x) }
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self::V {
        // SAFETY: the processor has NEON, and `p` is good for 4 floats: `# Safety` of `Simd`.
        unsafe { vld1q_f32(p) }
    }

    #[inline(always)]
    unsafe fn store(p: *mut f32, v: Self::V) {
        // SAFETY: the processor has NEON, and `p` is good for 4 floats: `# Safety` of `Simd`.
        unsafe { vst1q_f32(p, v) }
    }

    // Rust has no stable functions for this, nor for conversions of halves.

    #[inline(always)]
    unsafe fn prefetch(p: *const u8) {
        // SAFETY: a prefetch of an address that is not there does nothing, and the instruction writes neither a
        // register nor flags.
        unsafe { asm!("prfm pldl2keep, [{0}]", in(reg) p, options(readonly, nostack, preserves_flags)) }
    }

    #[inline(always)]
    unsafe fn load_half(p: *const F16) -> Self::V {
        let wide: float32x4_t;
        // SAFETY: the processor has NEON, and `p` is good for 4 halves: `# Safety` of `Simd`. `fcvtl` reads one
        // register and writes another.
        unsafe {
            let halves = vld1_u16(p.cast());
            asm!("fcvtl {0:v}.4s, {1:v}.4h", lateout(vreg) wide, in(vreg) halves,
                options(pure, nomem, nostack, preserves_flags));
        }
        wide
    }

    #[inline(always)]
    unsafe fn load_byte(p: *const i8) -> Self::V {
        // SAFETY: the processor has NEON, and `p` is good for 4 integers of a byte, which the `u32` is: `# Safety` of
        // `Simd`. The other half of the register is zeros.
        unsafe {
            let bytes = vcreate_s8(u64::from(p.cast::<u32>().read_unaligned()));
            vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))))
        }
    }

    #[inline(always)]
    unsafe fn store_half(p: *mut F16, v: Self::V) {
        let halves: uint16x4_t;
        // SAFETY: the processor has NEON, and `p` is good for 4 halves: `# Safety` of `Simd`. `fcvtn` reads one
        // register and writes another.
        unsafe {
            asm!("fcvtn {0:v}.4h, {1:v}.4s", lateout(vreg) halves, in(vreg) v,
                options(pure, nomem, nostack, preserves_flags));
            vst1_u16(p.cast(), halves);
        }
    }

    #[inline(always)]
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { vfmaq_f32(c, a, b) }
    }

    // Most processors copy a float to all elements in the unit that multiplies, also as they load it. To multiply by one element
    // of a register costs no more than by all. The compiler would copy all the same, so the load is written out.

    #[inline(always)]
    unsafe fn factor(p: *const f32, index: usize) -> Self::V {
        let factor: float32x4_t;
        // SAFETY: the processor has NEON, and `p.add(index)` is good for a float: `# Safety` of `Simd`. `ldr` writes one
        // register.
        unsafe {
            asm!("ldr {0:s}, [{1}, {2}, lsl #2]", lateout(vreg) factor, in(reg) p, in(reg) index,
                options(pure, readonly, nostack, preserves_flags));
        }
        factor
    }

    #[inline(always)]
    unsafe fn mul_add_factor(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { vfmaq_laneq_f32::<0>(c, b, a) }
    }

    #[inline(always)]
    unsafe fn max(bound: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { vbslq_f32(vcgtq_f32(bound, x), bound, x) }
    }

    #[inline(always)]
    unsafe fn min(bound: Self::V, x: Self::V) -> Self::V {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { vbslq_f32(vcltq_f32(bound, x), bound, x) }
    }

    #[inline(always)]
    unsafe fn select_negative(x: Self::V, negative: Self::V) -> Self::V {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { vbslq_f32(vcltq_f32(x, vdupq_n_f32(0.0)), negative, x) }
    }

    #[inline(always)]
    unsafe fn call<J: Job>(job: J) {
        // SAFETY: the processor has NEON: `# Safety` of `Simd`.
        unsafe { run(job) }
    }
}
