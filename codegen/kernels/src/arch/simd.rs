//! Vectors of floats: the operations that every instruction set has, and work that is written in them.

use super::super::half::F16;

/// Channels of a panel of packed weights: a multiple of the floats of every vector.
pub const PANEL: usize = 16;

/// Work written for any instruction set. `run` and everything that it calls with `S` must be `#[inline(always)]`. Only
/// then does the compiler generate code for that instruction set.
///
/// It is called by `Isa::run`, by [`Simd::call`] and by jobs of the same `S`, so only where the processor has the
/// instructions of `S`. A `# Safety` that says "in [`Job::run`]" asks for this.
pub(crate) trait Job {
    /// Does the work.
    fn run<S: Simd>(self);
}

/// A vector of `f32`, with the operations that micro-kernels need.
///
/// # Safety
/// Whoever calls a method ensures that the processor has the instructions of the set, as it has in [`Job::run`], and
/// that pointers are good for `LANES` elements, or for the first `count` of them where a method takes a count. They
/// need no alignment, except where a method takes a count.
///
/// Whoever implements it ensures that `LANES` divides [`PANEL`], and that no method touches any other memory.
pub(crate) unsafe trait Simd: Copy + 'static {
    /// The vector.
    type V: Copy;
    /// Its elements; divides [`PANEL`].
    const LANES: usize;
    /// Vector registers.
    const REGISTERS: usize;
    /// Maximum number of pixels of a tile.
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
        // SAFETY: `p` is aligned and good for `count` floats: `# Safety` of `Simd`. `whole` has room for a panel, and
        // no vector is longer.
        unsafe {
            core::ptr::copy_nonoverlapping(p, whole.as_mut_ptr(), count.min(Self::LANES));
            Self::load(whole.as_ptr())
        }
    }
    /// Writes the first `count` elements to `p`. `p` need not be good for more.
    #[inline(always)]
    unsafe fn store_masked(p: *mut f32, count: usize, v: Self::V) {
        let mut whole = [0.0; PANEL];
        // SAFETY: `p` is aligned and good for `count` floats: `# Safety` of `Simd`. `whole` has room for a panel, and
        // no vector is longer.
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
        // SAFETY: `p` is aligned and good for `count` halves: `# Safety` of `Simd`. `whole` has room for a panel, and
        // no vector is longer.
        unsafe {
            copy_part(p, whole.as_mut_ptr(), count.min(Self::LANES));
            Self::load_half(whole.as_ptr())
        }
    }
    /// As [`Simd::store_masked`], of halves.
    #[inline(always)]
    unsafe fn store_half_part(p: *mut F16, count: usize, v: Self::V) {
        let mut whole = [F16::default(); PANEL];
        // SAFETY: `p` is aligned and good for `count` halves: `# Safety` of `Simd`. `whole` has room for a panel, and
        // no vector is longer.
        unsafe {
            Self::store_half(whole.as_mut_ptr(), v);
            copy_part(whole.as_ptr(), p, count.min(Self::LANES));
        }
    }
    /// `a + b`.
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    /// `a · b + c`, fused except in the portable set.
    unsafe fn mul_add(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// A vector whose first element is the float at `p.add(index)`, for [`Simd::mul_add_factor`]. The pointer need be good for no
    /// other.
    #[inline(always)]
    unsafe fn factor(p: *const f32, index: usize) -> Self::V {
        // SAFETY: the processor has the instructions, and `p.add(index)` is good for a float: `# Safety` of `Simd`.
        unsafe { Self::splat(*p.add(index)) }
    }
    /// As [`Simd::mul_add`], where all elements of `a` are taken to be the first: `a` is of [`Simd::factor`].
    #[inline(always)]
    unsafe fn mul_add_factor(a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // SAFETY: the processor has the instructions: `# Safety` of `Simd`.
        unsafe { Self::mul_add(a, b, c) }
    }
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
/// Both are aligned and good for `count` elements, which are no more than a panel.
#[inline(never)]
unsafe fn copy_part(from: *const F16, to: *mut F16, count: usize) {
    let mut done = 0;
    macro_rules! powers {
        ($($size:literal)*) => {
            $(if count & $size != 0 {
                // SAFETY: `count` is the sum of the sizes whose bits it has, so `done + $size` is no more than `count`,
                // for which both pointers are good: `# Safety` of this function.
                unsafe { to.add(done).cast::<[F16; $size]>().write(from.add(done).cast::<[F16; $size]>().read()) }
                done += $size;
            })*
        };
    }
    powers!(16 8 4 2 1);
    debug_assert!(done == count, "more than a panel");
}
