//! Kernels on integers of 8 bits.
//!
//! A tensor's elements are bytes, with a scale and a zero point that all of them share: an element `q` stands for
//! `scale · (q − zero_point)`. Weights are signed bytes, whose zero point is 0, with a scale for each output channel; or an
//! offset is added to each of them, as unsigned bytes with any zero point need. Sums of products are exact, in integers of 32 bits (modulo 2^32), and no instruction saturates on the way to them. Each
//! becomes an element once, by [`Requantize`], which is the same on every target to the bit.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::quantized::Requantize;
//!
//! // Sums stand for multiples of 0.5 of the element's scale; 10 stands for 0, and a Relu follows.
//! let requantize = Requantize { zero_point: 10, low: 10, high: 255 };
//! assert_eq!(requantize.apply(7, 0.5), 14); // 3.5 becomes 4
//! assert_eq!(requantize.apply(-7, 0.5), 10);
//! ```

#![allow(unsafe_code, reason = "vector instructions; each block says why it is sound")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod binary;
pub mod cast;
pub mod conv;
#[cfg(target_arch = "aarch64")]
mod dotprod;
#[cfg(all(target_arch = "arm", feature = "dsp"))]
mod dsp;
pub mod gemm;
#[cfg(all(target_arch = "arm", feature = "helium"))]
mod helium;
mod integers;
#[cfg(target_arch = "aarch64")]
mod neon;
mod panels;
pub mod pool;
pub mod pre;
#[cfg(all(any(target_arch = "riscv32", target_arch = "riscv64"), feature = "rvv"))]
mod rvv;
pub mod table;
mod tiles;

/// The integers that every processor of the target has: portable ones, or those of a feature.
#[cfg(not(any(
    all(target_arch = "arm", feature = "dsp"),
    all(any(target_arch = "riscv32", target_arch = "riscv64"), feature = "rvv")
)))]
type Baseline = super::arch::Portable;
#[cfg(all(target_arch = "arm", feature = "dsp", not(feature = "helium")))]
type Baseline = dsp::Dsp;
#[cfg(all(target_arch = "arm", feature = "helium"))]
type Baseline = helium::Helium;
#[cfg(all(any(target_arch = "riscv32", target_arch = "riscv64"), feature = "rvv"))]
type Baseline = rvv::Rvv;

/// 1.5 · 2^23: adding it to a number below 2^22 rounds that number to an integer, which the low bits then hold.
const ROUND: f32 = 12_582_912.0;

/// How an exact sum becomes an element. It is multiplied by a multiplier and rounded to the nearest integer; of two
/// equally near ones, to the even one. The zero point is added, and the result is kept within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Requantize {
    /// The element that stands for 0.
    pub zero_point: u8,
    /// Smallest element: 0, or more if an activation follows.
    pub low: u8,
    /// Largest element, at least `low`: 255, or less if an activation follows.
    pub high: u8,
}

impl Requantize {
    /// `clamp(round_half_even(f32(sum) · multiplier) + zero_point, low, high)`, where `f32(sum)` is the nearest float
    /// (of two equally near ones, the even one), and the product is one of floats.
    #[inline(always)]
    pub fn apply(self, sum: i32, multiplier: f32) -> u8 {
        self.round(sum as f32 * multiplier)
    }

    /// Rounds to a byte.
    pub const BYTES: Requantize = Requantize { zero_point: 0, low: 0, high: u8::MAX };

    /// `clamp(round_half_even(x) + zero_point, low, high)`. NaN becomes some element.
    #[inline(always)]
    pub fn round(self, x: f32) -> u8 {
        // The bounds are integers, so it does not matter whether bounding or rounding comes first. In this order, no
        // number leaves the range in which the rounding trick works.
        let [low, high] = self.bounds();
        let x = if x > high { high } else { x };
        let x = if x < low { low } else { x };
        nearest(x).wrapping_add(u32::from(self.zero_point)) as u8
    }

    /// The bounds, counted from the zero point.
    #[inline(always)]
    pub(crate) fn bounds(self) -> [f32; 2] {
        [self.low, self.high].map(|bound| f32::from(i16::from(bound) - i16::from(self.zero_point)))
    }
}

/// The nearest integer of a number below 2^22, modulo 2^32.
#[inline(always)]
pub(crate) fn nearest(x: f32) -> u32 {
    (x + ROUND).to_bits().wrapping_sub(ROUND.to_bits())
}
