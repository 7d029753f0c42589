//! Weights as they lie in panels: elements of the tensors' type, or integers of 8 bits.
//!
//! A panel of integers also holds other constants of its channels, so it consists of bytes: `f32` scales of all
//! channels, their biases as halves, the integers step by step, and with a PRelu its slopes as halves. An output
//! channel is `scale · Σ integer · x + bias`: the integers are widened as they are loaded, and the scale is applied
//! once, when the sum ends. No part of such a panel needs alignment. Beside tensors of 32-bit floats, such panels hold
//! integers or halves, and all else as floats: [`Scaled`].
#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

use super::arch::{PANEL, Simd};
use super::element::Element;
use super::half::F16;

/// A vector of output channels of a panel.
pub(crate) struct Lanes<W> {
    /// Where the panel begins.
    pub panel: *const W,
    /// Its channels.
    pub width: usize,
    /// The vector's first channel; beyond those of the panel where it is narrow.
    pub first: usize,
}

impl<W> Clone for Lanes<W> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Lanes<W> {}

impl<W: Weight> Lanes<W> {
    /// The vector's weights of a step.
    #[inline(always)]
    pub fn at(self, step: usize) -> *const W {
        self.panel.wrapping_add(self.width * (W::BEFORE + step) + self.first)
    }
}

/// The type in which weights are kept: an [`Element`], or `i8`.
pub(crate) trait Weight: Copy + Send + Sync + 'static {
    /// Elements of an output channel before its weights, and as many of its slope, if it has one.
    const BEFORE: usize;
    const SLOPE: usize;

    /// The `LANES` weights at `p`.
    ///
    /// # Safety
    /// As [`Simd::load`].
    unsafe fn load<S: Simd>(p: *const Self) -> S::V;

    /// What sums begin with.
    ///
    /// # Safety
    /// In [`super::arch::Job::run`]. The panel is there: all that `Panels::each` counts, of its `width` channels, and
    /// after them as many elements as `Panels::reach` says.
    unsafe fn begin<S: Simd>(lanes: Lanes<Self>) -> S::V;

    /// What becomes of sums of products.
    ///
    /// # Safety
    /// As [`Weight::begin`].
    unsafe fn end<S: Simd, const M: usize, const N: usize>(
        lanes: &[Lanes<Self>; N],
        sums: &mut [[S::V; N]; M],
    );

    /// Slopes, which come after `steps` steps.
    ///
    /// # Safety
    /// As [`Weight::begin`]; the panel has slopes.
    unsafe fn slopes<S: Simd>(lanes: Lanes<Self>, steps: usize) -> S::V;
}

/// Biases, weights and slopes are elements alike, and sums begin with the biases.
impl<E: Element> Weight for E {
    const BEFORE: usize = 1;
    const SLOPE: usize = 1;

    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const E) -> S::V {
        // SAFETY: `Vectors::load` asks for what `# Safety` of `Weight::load` asks for.
        unsafe { <E as super::element::Vectors>::load::<S>(p) }
    }

    #[inline(always)]
    unsafe fn begin<S: Simd>(lanes: Lanes<E>) -> S::V {
        // SAFETY: the panel begins with its biases, and after a narrow one whole vectors find elements to read:
        // `# Safety` of `Weight::begin`.
        unsafe { <E as super::element::Vectors>::load::<S>(lanes.panel.wrapping_add(lanes.first)) }
    }

    #[inline(always)]
    unsafe fn end<S: Simd, const M: usize, const N: usize>(_: &[Lanes<E>; N], _: &mut [[S::V; N]; M]) {}

    #[inline(always)]
    unsafe fn slopes<S: Simd>(lanes: Lanes<E>, steps: usize) -> S::V {
        // SAFETY: the slopes come after the weights, and after a narrow panel whole vectors find elements to read:
        // `# Safety` of `Weight::slopes`.
        unsafe { <E as super::element::Vectors>::load::<S>(lanes.at(steps)) }
    }
}

impl Weight for i8 {
    const BEFORE: usize = size_of::<f32>() + size_of::<F16>();
    const SLOPE: usize = size_of::<F16>();

    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const i8) -> S::V {
        // SAFETY: `p` is good for `LANES` bytes, in `Job::run`: `# Safety` of `Weight::load`.
        unsafe { S::load_byte(p) }
    }

    #[inline(always)]
    unsafe fn begin<S: Simd>(_: Lanes<i8>) -> S::V {
        // SAFETY: `splat` asks to be called in `Job::run`, and so does `# Safety` of `Weight::begin`.
        unsafe { S::splat(0.0) }
    }

    #[inline(always)]
    unsafe fn end<S: Simd, const M: usize, const N: usize>(
        lanes: &[Lanes<i8>; N],
        sums: &mut [[S::V; N]; M],
    ) {
        for (v, &Lanes { panel, width, first }) in lanes.iter().enumerate() {
            let left = width.saturating_sub(first);
            // SAFETY: the panel begins with the scales and then the biases of its `width` channels, of which `left`
            // follow the vector's first: `# Safety` of `Weight::end`.
            unsafe {
                let scale = floats::<S>(panel.wrapping_add(size_of::<f32>() * first), left);
                let biases = size_of::<f32>() * width + size_of::<F16>() * first;
                let bias = halves::<S>(panel.wrapping_add(biases), left);
                for sums in sums.iter_mut() {
                    sums[v] = S::mul_add(sums[v], scale, bias);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn slopes<S: Simd>(Lanes { panel, width, first }: Lanes<i8>, steps: usize) -> S::V {
        let at = width * (Self::BEFORE + steps) + size_of::<F16>() * first;
        // SAFETY: the slopes of the `width` channels come after the weights, and `width - first` of them from here on:
        // `# Safety` of `Weight::slopes`.
        unsafe { halves::<S>(panel.wrapping_add(at), width.saturating_sub(first)) }
    }
}

/// A weight in a panel whose scales, biases and slopes are 32-bit floats.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Scaled<T>(T);

/// A number that is widened as it is loaded.
pub(crate) trait Narrow: Copy + Send + Sync + 'static {
    /// The `LANES` numbers at `p`.
    ///
    /// # Safety
    /// As [`Simd::load`].
    unsafe fn widen<S: Simd>(p: *const Self) -> S::V;
}

impl Narrow for i8 {
    #[inline(always)]
    unsafe fn widen<S: Simd>(p: *const i8) -> S::V {
        // SAFETY: `p` is good for `LANES` bytes, in `Job::run`: `# Safety` of `Narrow::widen`.
        unsafe { S::load_byte(p) }
    }
}

impl Narrow for F16 {
    #[inline(always)]
    unsafe fn widen<S: Simd>(p: *const F16) -> S::V {
        // SAFETY: `p` is good for `LANES` halves, in `Job::run`: `# Safety` of `Narrow::widen`.
        unsafe { S::load_half(p) }
    }
}

impl<T: Narrow> Weight for Scaled<T> {
    const BEFORE: usize = 2 * size_of::<f32>() / size_of::<T>();
    const SLOPE: usize = size_of::<f32>() / size_of::<T>();

    #[inline(always)]
    unsafe fn load<S: Simd>(p: *const Self) -> S::V {
        // SAFETY: `Scaled` is transparent, so `p` is good for `LANES` of its numbers: `# Safety` of `Weight::load`.
        unsafe { T::widen::<S>(p.cast()) }
    }

    #[inline(always)]
    unsafe fn begin<S: Simd>(_: Lanes<Self>) -> S::V {
        // SAFETY: `splat` asks to be called in `Job::run`, and so does `# Safety` of `Weight::begin`.
        unsafe { S::splat(0.0) }
    }

    #[inline(always)]
    unsafe fn end<S: Simd, const M: usize, const N: usize>(
        lanes: &[Lanes<Self>; N],
        sums: &mut [[S::V; N]; M],
    ) {
        for (v, &Lanes { panel, width, first }) in lanes.iter().enumerate() {
            let (scales, left) = (panel.cast::<i8>(), width.saturating_sub(first));
            // SAFETY: the panel begins with the scales and then the biases of its `width` channels, of which `left`
            // follow the vector's first: `# Safety` of `Weight::end`.
            unsafe {
                let scale = floats::<S>(scales.wrapping_add(size_of::<f32>() * first), left);
                let bias = floats::<S>(scales.wrapping_add(size_of::<f32>() * (width + first)), left);
                for sums in sums.iter_mut() {
                    sums[v] = S::mul_add(sums[v], scale, bias);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn slopes<S: Simd>(Lanes { panel, width, first }: Lanes<Self>, steps: usize) -> S::V {
        let slopes = panel.wrapping_add(width * (Self::BEFORE + steps)).cast::<i8>();
        // SAFETY: the slopes of the `width` channels come after the weights, and `width - first` of them from here on:
        // `# Safety` of `Weight::slopes`.
        unsafe { floats::<S>(slopes.wrapping_add(size_of::<f32>() * first), width.saturating_sub(first)) }
    }
}

/// A vector of the floats at `p`, of which no more than `left` are there.
///
/// # Safety
/// In [`super::arch::Job::run`]. `p` is good for `left` floats, or for a vector of them if that is less; it needs no
/// alignment.
#[inline(always)]
unsafe fn floats<S: Simd>(p: *const i8, left: usize) -> S::V {
    // SAFETY: `p` is good for a vector if `left` is as many, else for `left` floats: `# Safety` of this function.
    // `whole` has room for a panel, and no vector is longer.
    unsafe {
        if left >= S::LANES {
            return S::load(p.cast());
        }
        let mut whole = [0.0f32; PANEL];
        core::ptr::copy_nonoverlapping(p, whole.as_mut_ptr().cast(), size_of::<f32>() * left);
        S::load(whole.as_ptr())
    }
}

/// The same for halves, widened.
///
/// # Safety
/// As [`floats`].
#[inline(always)]
unsafe fn halves<S: Simd>(p: *const i8, left: usize) -> S::V {
    // SAFETY: `p` is good for a vector if `left` is as many, else for `left` halves: `# Safety` of this function.
    // `whole` has room for a panel, and no vector is longer.
    unsafe {
        if left >= S::LANES {
            return S::load_half(p.cast());
        }
        let mut whole = [F16::default(); PANEL];
        core::ptr::copy_nonoverlapping(p, whole.as_mut_ptr().cast(), size_of::<F16>() * left);
        S::load_half(whole.as_ptr())
    }
}
