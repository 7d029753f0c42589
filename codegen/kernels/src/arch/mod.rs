//! Vector instruction sets.
//!
//! A kernel is written once, as a `Job` over `Simd`. `Isa::run` runs it with the instructions that an [`Isa`] stands
//! for. An `Isa` other than the portable one can exist only on a processor that has its instructions, so kernels may
//! take one and stay safe.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::arch::{Isa, PANEL};
//! use csdfc_kernels::product::{Left, Product, Right, Start};
//! use csdfc_kernels::Activation;
//!
//! assert_eq!(Isa::PORTABLE.name(), "portable");
//! let (a, b) = ([1.0, 2.0], [3.0, 4.0]);
//! let product = Product {
//!     size: [1, 1, 2], // 1 × 2 times 2 × 1
//!     left: Left { elements: &a, row: 2, step: 1 },
//!     right: Right::Rows { elements: &b, row: 1 },
//!     start: Start::Zero,
//!     activation: Activation::None,
//! };
//! for isa in Isa::all() {
//!     let mut c = [0.0];
//!     product.make(isa, &mut c, 1);
//!     assert_eq!(c, [11.0]);
//! }
//! assert_eq!(PANEL, 16);
//! ```
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
mod simd;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use portable::Portable;
pub use simd::PANEL;
pub(crate) use simd::{Job, Simd};

/// Whether kernels take little room on the stack: those for processors of 32 bits, most of which are microcontrollers'. These
/// have no vectors of their own here, and so only narrow tiles.
pub(crate) const SMALL_STACK: bool = cfg!(target_pointer_width = "32");

/// The instruction set that kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(IsaLevel);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "without detection one or two are made"))]
pub(crate) enum IsaLevel {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX-512 with products of bytes.
    #[cfg(target_arch = "x86_64")]
    Vnni,
    #[cfg(target_arch = "aarch64")]
    Neon,
    /// NEON with products of bytes.
    #[cfg(target_arch = "aarch64")]
    Dot,
}

/// Whether an [`Isa`] of AVX2 can be made. Without detection, only the one of the target can, so the compiler need not
/// generate code for the others.
#[cfg(target_arch = "x86_64")]
pub(crate) const MAY_BE_AVX2: bool = cfg!(feature = "std") || matches!(Isa::compiled().0, IsaLevel::Avx2);
/// Whether an [`Isa`] of AVX-512 can be made.
#[cfg(target_arch = "x86_64")]
pub(crate) const MAY_BE_AVX512: bool =
    cfg!(feature = "std") || matches!(Isa::compiled().0, IsaLevel::Avx512 | IsaLevel::Vnni);

impl Isa {
    /// Plain Rust, without fused multiplication and addition.
    pub const PORTABLE: Isa = Isa(IsaLevel::Portable);

    /// The best that every processor of the compilation's target has.
    pub const fn compiled() -> Isa {
        #[cfg(all(
            target_arch = "x86_64",
            target_feature = "avx512bw",
            target_feature = "avx512vl",
            target_feature = "avx512vnni"
        ))]
        return Isa(IsaLevel::Vnni);
        #[cfg(all(
            target_arch = "x86_64",
            target_feature = "avx512f",
            not(all(
                target_feature = "avx512bw",
                target_feature = "avx512vl",
                target_feature = "avx512vnni"
            ))
        ))]
        return Isa(IsaLevel::Avx512);
        #[cfg(all(
            target_arch = "x86_64",
            target_feature = "avx2",
            target_feature = "fma",
            target_feature = "f16c",
            not(target_feature = "avx512f")
        ))]
        return Isa(IsaLevel::Avx2);
        #[cfg(all(target_arch = "aarch64", target_feature = "dotprod"))]
        return Isa(IsaLevel::Dot);
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", not(target_feature = "dotprod")))]
        return Isa(IsaLevel::Neon);
        #[allow(unreachable_code, reason = "where no target feature ended the function")]
        Isa::PORTABLE
    }

    /// The best instruction set of the processor that runs this; without the feature `std`, the one of the
    /// compilation's target. Ask once, at start.
    pub fn detect() -> Isa {
        #[cfg(all(target_arch = "x86_64", feature = "std"))]
        {
            extern crate std;
            if std::is_x86_feature_detected!("avx512f") {
                let has_bytes = std::is_x86_feature_detected!("avx512bw")
                    && std::is_x86_feature_detected!("avx512vl")
                    && std::is_x86_feature_detected!("avx512vnni");
                return Isa(if has_bytes { IsaLevel::Vnni } else { IsaLevel::Avx512 });
            }
            let has_avx2 = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
            if has_avx2 && std::is_x86_feature_detected!("f16c") {
                return Isa(IsaLevel::Avx2);
            }
        }
        #[cfg(all(target_arch = "aarch64", feature = "std"))]
        {
            extern crate std;
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                return Isa(IsaLevel::Dot);
            }
        }
        Isa::compiled()
    }

    /// Which one it is, for kernels that have vectors of their own.
    pub(crate) const fn kind(self) -> IsaLevel {
        self.0
    }

    /// The instruction set's name.
    pub const fn name(self) -> &'static str {
        match self.0 {
            IsaLevel::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            IsaLevel::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            IsaLevel::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            IsaLevel::Vnni => "avx512-vnni",
            #[cfg(target_arch = "aarch64")]
            IsaLevel::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            IsaLevel::Dot => "neon-dotprod",
        }
    }

    /// Does the work with these instructions.
    #[inline]
    pub(crate) fn run<J: Job>(self, job: J) {
        match self.0 {
            // SAFETY: `compiled`, `detect` and `all` make an `Isa` of this kind only where the processor has AVX2, FMA
            // and F16C.
            #[cfg(target_arch = "x86_64")]
            IsaLevel::Avx2 if MAY_BE_AVX2 => unsafe { avx2::run(job) },
            // SAFETY: `compiled`, `detect` and `all` make an `Isa` of these kinds only where the processor has
            // AVX-512F.
            #[cfg(target_arch = "x86_64")]
            IsaLevel::Avx512 | IsaLevel::Vnni if MAY_BE_AVX512 => unsafe { avx512::run(job) },
            // SAFETY: `compiled`, `detect` and `all` make an `Isa` of these kinds only where the processor has NEON.
            #[cfg(target_arch = "aarch64")]
            IsaLevel::Neon | IsaLevel::Dot => unsafe { neon::run(job) },
            _ => job.run::<portable::Portable>(),
        }
    }

    /// Every instruction set of the processor that runs this.
    pub fn all() -> impl Iterator<Item = Isa> {
        let best = Isa::detect();
        // From the least to the best. A processor that has one of them has those before it: AVX-512F comes with AVX2,
        // FMA and F16C.
        #[cfg(target_arch = "x86_64")]
        let kinds = [IsaLevel::Portable, IsaLevel::Avx2, IsaLevel::Avx512, IsaLevel::Vnni];
        #[cfg(target_arch = "aarch64")]
        let kinds = [IsaLevel::Portable, IsaLevel::Neon, IsaLevel::Dot];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let kinds = [IsaLevel::Portable];
        let count = kinds.iter().position(|&kind| kind == best.0).map_or(1, |at| at + 1);
        kinds.into_iter().take(count).map(Isa)
    }
}
