//! Vector instruction sets.
//!
//! A kernel is written once, as a `Job` over `Simd`. `Isa::run` runs it with the instructions that an [`Isa`] stands
//! for. An `Isa` other than the portable one can exist only on a processor that has its instructions, so kernels may
//! take one and stay safe.
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use super::element::F16;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::Neon;
pub(crate) use portable::Portable;

/// Channels of a panel of packed weights: a multiple of the floats of every vector.
pub const PANEL: usize = 16;

/// The instruction set that kernels use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "std"), allow(dead_code, reason = "without detection one or two are made"))]
pub(crate) enum Kind {
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
pub(crate) const MAY_BE_AVX2: bool = cfg!(feature = "std") || matches!(Isa::compiled().0, Kind::Avx2);
/// Whether an [`Isa`] of AVX-512 can be made.
#[cfg(target_arch = "x86_64")]
pub(crate) const MAY_BE_AVX512: bool =
    cfg!(feature = "std") || matches!(Isa::compiled().0, Kind::Avx512 | Kind::Vnni);

impl Isa {
    /// Plain Rust, without fused multiplication and addition.
    pub const PORTABLE: Isa = Isa(Kind::Portable);

    /// The best that every processor of the compilation's target has.
    pub const fn compiled() -> Isa {
        #[cfg(all(
            target_arch = "x86_64",
            target_feature = "avx512bw",
            target_feature = "avx512vl",
            target_feature = "avx512vnni"
        ))]
        return Isa(Kind::Vnni);
        #[cfg(all(
            target_arch = "x86_64",
            target_feature = "avx512f",
            not(all(
                target_feature = "avx512bw",
                target_feature = "avx512vl",
                target_feature = "avx512vnni"
            ))
        ))]
        return Isa(Kind::Avx512);
        #[cfg(all(
            target_arch = "x86_64",
            target_feature = "avx2",
            target_feature = "fma",
            target_feature = "f16c",
            not(target_feature = "avx512f")
        ))]
        return Isa(Kind::Avx2);
        #[cfg(all(target_arch = "aarch64", target_feature = "dotprod"))]
        return Isa(Kind::Dot);
        #[cfg(all(target_arch = "aarch64", target_feature = "neon", not(target_feature = "dotprod")))]
        return Isa(Kind::Neon);
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
                return Isa(if has_bytes { Kind::Vnni } else { Kind::Avx512 });
            }
            let has_avx2 = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
            if has_avx2 && std::is_x86_feature_detected!("f16c") {
                return Isa(Kind::Avx2);
            }
        }
        #[cfg(all(target_arch = "aarch64", feature = "std"))]
        {
            extern crate std;
            if std::arch::is_aarch64_feature_detected!("dotprod") {
                return Isa(Kind::Dot);
            }
        }
        Isa::compiled()
    }

    /// Which one it is, for kernels that have vectors of their own.
    pub(crate) const fn kind(self) -> Kind {
        self.0
    }

    /// The instruction set's name.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "x86_64")]
            Kind::Vnni => "avx512-vnni",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            #[cfg(target_arch = "aarch64")]
            Kind::Dot => "neon-dotprod",
        }
    }

    /// Does the work with these instructions.
    #[inline]
    pub(crate) fn run<J: Job>(self, job: J) {
        match self.0 {
            // SAFETY: an `Isa` of this kind is made only where the processor has its instructions.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 if MAY_BE_AVX2 => unsafe { avx2::run(job) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 | Kind::Vnni if MAY_BE_AVX512 => unsafe { avx512::run(job) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            Kind::Neon | Kind::Dot => unsafe { neon::run(job) },
            _ => job.run::<portable::Portable>(),
        }
    }

    /// Every instruction set of the processor that runs this.
    pub fn all() -> impl Iterator<Item = Isa> {
        let best = Isa::detect();
        // From the least to the best.
        #[cfg(target_arch = "x86_64")]
        let kinds = [Kind::Portable, Kind::Avx2, Kind::Avx512, Kind::Vnni];
        #[cfg(target_arch = "aarch64")]
        let kinds = [Kind::Portable, Kind::Neon, Kind::Dot];
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let kinds = [Kind::Portable];
        let count = kinds.iter().position(|&kind| kind == best.0).map_or(1, |at| at + 1);
        kinds.into_iter().take(count).map(Isa)
    }
}

/// Work written for any instruction set. `run` and everything that it calls with `S` must be `#[inline(always)]`. Only
/// then does the compiler generate code for that instruction set.
pub(crate) trait Job {
    /// Does the work.
    fn run<S: Simd>(self);
}

/// A vector of `f32`, with the operations that micro-kernels need.
///
/// # Safety
/// Implementors' methods may be called only on a processor that has their instructions, which is so within
/// [`Job::run`]. Pointers must be good for `LANES` elements; they need no alignment.
pub(crate) unsafe trait Simd: Copy + 'static {
    /// The vector.
    type V: Copy;
    /// Its elements; divides [`PANEL`].
    const LANES: usize;
    /// Vector registers.
    const REGISTERS: usize;
    /// Most pixels of a tile.
    const PIXELS: usize;
    /// Vectors of output channels of a tile of this many pixels; a multiple of a panel's vectors.
    const VECTORS: usize;
    /// Whether special cases, such as lines of depthwise convolutions, have code of their own. Without it, the general
    /// code computes them, which is slower but takes less time to build.
    const SPECIAL: bool = true;

    /// All elements `x`.
    unsafe fn splat(x: f32) -> Self::V;
    /// The elements at `p`.
    unsafe fn load(p: *const f32) -> Self::V;
    /// Writes the elements to `p`.
    unsafe fn store(p: *mut f32, v: Self::V);
    /// Brings the line of memory at `p`, which may be any address, into the second cache. Does nothing if there is no
    /// instruction for it.
    #[inline(always)]
    unsafe fn prefetch(_p: *const u8) {}
    /// The first `count` elements at `p`. `p` need not be good for more. The other elements of the vector are
    /// unspecified.
    #[inline(always)]
    unsafe fn load_masked(p: *const f32, count: usize) -> Self::V {
        let mut whole = [0.0; PANEL];
        // SAFETY: the caller's; no vector is longer than a panel.
        unsafe {
            core::ptr::copy_nonoverlapping(p, whole.as_mut_ptr(), count.min(Self::LANES));
            Self::load(whole.as_ptr())
        }
    }
    /// Writes the first `count` elements to `p`. `p` need not be good for more.
    #[inline(always)]
    unsafe fn store_masked(p: *mut f32, count: usize, v: Self::V) {
        let mut whole = [0.0; PANEL];
        // SAFETY: the caller's; no vector is longer than a panel.
        unsafe {
            Self::store(whole.as_mut_ptr(), v);
            core::ptr::copy_nonoverlapping(whole.as_ptr(), p, count.min(Self::LANES));
        }
    }
    /// The halves at `p`, widened.
    unsafe fn load_half(p: *const F16) -> Self::V;
    /// The integers at `p`, as floats.
    unsafe fn load_byte(p: *const i8) -> Self::V;
    /// Writes the elements to `p`, each as the nearest half.
    unsafe fn store_half(p: *mut F16, v: Self::V);
    /// As [`Simd::load_masked`], of halves.
    #[inline(always)]
    unsafe fn load_half_part(p: *const F16, count: usize) -> Self::V {
        let mut whole = [F16::default(); PANEL];
        // SAFETY: the caller's; no vector is longer than a panel.
        unsafe {
            copy_part(p, whole.as_mut_ptr(), count.min(Self::LANES));
            Self::load_half(whole.as_ptr())
        }
    }
    /// As [`Simd::store_masked`], of halves.
    #[inline(always)]
    unsafe fn store_half_part(p: *mut F16, count: usize, v: Self::V) {
        let mut whole = [F16::default(); PANEL];
        // SAFETY: the caller's; no vector is longer than a panel.
        unsafe {
            Self::store_half(whole.as_mut_ptr(), v);
            copy_part(whole.as_ptr(), p, count.min(Self::LANES));
        }
    }
    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// `a · b + c`, fused except in the portable set.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `bound > x ? bound : x`: a NaN in `x` stays.
    unsafe fn max(bound: Self::V, x: Self::V) -> Self::V;
    /// `bound < x ? bound : x`: a NaN in `x` stays.
    unsafe fn min(bound: Self::V, x: Self::V) -> Self::V;
    /// `x < 0 ? negative : x`.
    unsafe fn select_negative(x: Self::V, negative: Self::V) -> Self::V;
    /// Runs the job as a function of its own, compiled for this instruction set.
    unsafe fn call<J: Job>(job: J);
}

/// Copies up to a panel of halves. It is a function of its own because many places call it, most of them in code that
/// is made for many sizes.
///
/// # Safety
/// Both are good for `count` elements.
#[inline(never)]
unsafe fn copy_part(from: *const F16, to: *mut F16, count: usize) {
    let mut done = 0;
    macro_rules! powers {
        ($($size:literal)*) => {
            $(if count & $size != 0 {
                // SAFETY: the caller's: the sizes of a count add up to it.
                unsafe { to.add(done).cast::<[F16; $size]>().write(from.add(done).cast::<[F16; $size]>().read()) }
                done += $size;
            })*
        };
    }
    powers!(16 8 4 2 1);
    debug_assert!(done == count, "more than a panel");
}
