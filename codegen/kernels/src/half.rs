//! Floats of 16 bits, as they are stored.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::half::F16;
//!
//! let third = F16::from_f32(1.0 / 3.0);
//! assert_eq!(third.to_bits(), 0x3555);
//! assert_eq!(third.to_f32(), 0.333_251_95);
//! assert_eq!(F16::from_f32(1e6).to_f32(), f32::INFINITY);
//! ```
#![allow(unsafe_code, reason = "any bits are a value")]

use super::span::Plain;

/// A number of 16 bits: a sign, 5 bits of exponent and 10 of fraction (IEEE 754 binary16).
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct F16(u16);

impl F16 {
    /// The number of these bits.
    pub const fn from_bits(bits: u16) -> Self {
        F16(bits)
    }

    /// Its bits.
    pub const fn to_bits(self) -> u16 {
        self.0
    }

    /// The nearest number. What is too large becomes infinite, and NaN stays.
    pub const fn from_f32(x: f32) -> Self {
        let bits = x.to_bits();
        let sign = (bits >> 16 & 0x8000) as u16;
        let size = bits & 0x7fff_ffff;
        let rounded = match size {
            // The fraction's first bits, and the bit that says that NaN is quiet.
            0x7f80_0001.. => 0x7e00 | (size >> 13 & 0x3ff) as u16,
            // 65520 and more: infinity is nearer than the largest number, or as near.
            0x477f_f000.. => 0x7c00,
            // At least 2⁻¹⁴. Exponents differ by 112, and a carry out of the fraction is one of the exponent.
            0x3880_0000.. => {
                let odd = size >> 13 & 1;
                ((size - (112 << 23) + 0xfff + odd) >> 13) as u16
            }
            // A multiple of 2⁻²⁴. Of the sum with ½, the last bit counts those, and the sum has been rounded.
            _ => (f32::from_bits(size) + 0.5).to_bits() as u16,
        };
        F16(sign | rounded)
    }

    /// The same number.
    pub const fn to_f32(self) -> f32 {
        let sign = (self.0 as u32 & 0x8000) << 16;
        let size = self.0 as u32 & 0x7fff;
        let bits = match size {
            0x7c01.. => 0x7fc0_0000 | size << 13,
            0x7c00 => 0x7f80_0000,
            0x0400.. => (size << 13) + (112 << 23),
            // So many times 2⁻²⁴, counted in the last bits of ½ and taken from it.
            _ => (f32::from_bits(0x3f00_0000 | size) - 0.5).to_bits(),
        };
        f32::from_bits(sign | bits)
    }
}

// SAFETY: every pattern of 16 bits is a half, and none of its bytes is padding.
unsafe impl Plain for F16 {}

impl PartialEq for F16 {
    fn eq(&self, other: &Self) -> bool {
        self.to_f32() == other.to_f32()
    }
}

impl core::fmt::Debug for F16 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.to_f32().fmt(f)
    }
}
