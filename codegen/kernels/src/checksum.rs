//! CRC-32C. It verifies that weights read from a store are the weights that were written there.
//!
//! The polynomial is Castagnoli's (RFC 3720, section 12.1), for which x86-64 and 64-bit Arm have instructions.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::Isa;
//! use csdfc_kernels::checksum::crc32c;
//!
//! assert_eq!(crc32c(Isa::detect(), b"123456789"), 0xe306_9283);
//! ```
#![allow(unsafe_code, reason = "instructions of the processor; each block says why it is sound")]

use super::arch::Isa;
#[cfg(target_arch = "x86_64")]
use super::arch::IsaLevel;

/// The CRC-32C of some bytes.
pub fn crc32c(isa: Isa, bytes: &[u8]) -> u32 {
    !by_words(isa, !0, bytes)
}

/// Goes on from a remainder, with the best instructions available.
fn by_words(isa: Isa, remainder: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if isa.kind() != IsaLevel::Portable {
        // SAFETY: on x86-64, an `Isa` other than the portable one has AVX2 or AVX-512, and whatever has these has SSE
        // 4.2.
        return unsafe { x86::crc(remainder, bytes) };
    }
    #[cfg(target_arch = "aarch64")]
    if isa != Isa::PORTABLE && arm::is_there() {
        // SAFETY: `is_there` has found the instructions of CRC-32.
        return unsafe { arm::crc(remainder, bytes) };
    }
    let _ = isa;
    by_tables(remainder, bytes)
}

/// The remainders of each byte, followed by 0 to 7 zeros.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    // The polynomial, its lowest power in the highest bit.
    const POLYNOMIAL: u32 = 0x82f6_3b78;
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut remainder, mut bit) = (byte as u32, 0);
        while bit < 8 {
            let low = remainder & 1;
            remainder >>= 1;
            if low == 1 {
                remainder ^= POLYNOMIAL;
            }
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = before >> 8 ^ tables[0][(before & 0xff) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

fn by_tables(mut remainder: u32, bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let word = (u64::from_le_bytes(*word) ^ u64::from(remainder)).to_le_bytes();
        let each = word.iter().zip(TABLES.iter().rev());
        remainder = each.fold(0, |all, (byte, table)| all ^ table[usize::from(*byte)]);
    }
    let step = |remainder: u32, byte: &u8| remainder >> 8 ^ TABLES[0][usize::from(remainder as u8 ^ byte)];
    rest.iter().fold(remainder, step)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod lanes {
    /// Bytes of a lane. The remainders of three lanes are computed side by side, because an instruction waits three
    /// cycles for the one before it in its own lane.
    const LANE: usize = 1024;

    /// The remainders of each byte of a remainder, followed by a lane of zeros.
    static LANES: [[u32; 256]; 4] = lanes();

    const fn lanes() -> [[u32; 256]; 4] {
        let tables = super::tables();
        let mut lanes = [[0; 256]; 4];
        let mut bit = 0;
        while bit < 32 {
            let (mut remainder, mut zeros) = (1u32 << bit, 0);
            while zeros < LANE {
                remainder = remainder >> 8 ^ tables[0][(remainder & 0xff) as usize];
                zeros += 1;
            }
            let mut byte = 0;
            while byte < 256 {
                if byte >> (bit % 8) & 1 == 1 {
                    lanes[bit / 8][byte] ^= remainder;
                }
                byte += 1;
            }
            bit += 1;
        }
        lanes
    }

    /// The remainder followed by a lane of zeros.
    fn lane_later(remainder: u32) -> u32 {
        let bytes = remainder.to_le_bytes();
        bytes.iter().zip(&LANES).fold(0, |all, (byte, table)| all ^ table[usize::from(*byte)])
    }

    /// Goes on from a remainder with an instruction that takes a word: three lanes at a time, as long as there are
    /// three, and then word by word. Returns the bytes that are left, less than a word.
    #[inline(always)]
    pub fn by_lanes(mut remainder: u32, bytes: &[u8], word: impl Fn(u32, u64) -> u32) -> (u32, &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let (threes, words) = words.as_chunks::<{ 3 * LANE / 8 }>();
        for three in threes {
            let (first, others) = three.split_at(LANE / 8);
            let (second, third) = others.split_at(LANE / 8);
            let mut lanes = [remainder, 0, 0];
            for ((a, b), c) in first.iter().zip(second).zip(third) {
                let [one, two, three] = lanes;
                lanes = [
                    word(one, u64::from_le_bytes(*a)),
                    word(two, u64::from_le_bytes(*b)),
                    word(three, u64::from_le_bytes(*c)),
                ];
            }
            let [first, second, third] = lanes;
            remainder = lane_later(lane_later(first) ^ second) ^ third;
        }
        remainder = words.iter().fold(remainder, |sum, bytes| word(sum, u64::from_le_bytes(*bytes)));
        (remainder, rest)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{_mm_crc32_u8, _mm_crc32_u64};

    use super::lanes::by_lanes;

    /// # Safety
    /// The processor has SSE 4.2.
    #[target_feature(enable = "sse4.2")]
    pub unsafe fn crc(remainder: u32, bytes: &[u8]) -> u32 {
        let word = |sum: u32, word: u64| _mm_crc32_u64(u64::from(sum), word) as u32;
        let (remainder, rest) = by_lanes(remainder, bytes, word);
        rest.iter().fold(remainder, |sum, byte| _mm_crc32_u8(sum, *byte))
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use core::arch::aarch64::{__crc32cb, __crc32cd};

    use super::lanes::by_lanes;

    /// Whether the processor has the instructions. They are optional on the first 64-bit Arm processors.
    pub fn is_there() -> bool {
        #[cfg(feature = "std")]
        {
            extern crate std;
            std::arch::is_aarch64_feature_detected!("crc")
        }
        #[cfg(not(feature = "std"))]
        {
            cfg!(target_feature = "crc")
        }
    }

    /// # Safety
    /// The processor has the instructions of CRC-32.
    #[target_feature(enable = "crc")]
    pub unsafe fn crc(remainder: u32, bytes: &[u8]) -> u32 {
        let (remainder, rest) = by_lanes(remainder, bytes, |sum, word| __crc32cd(sum, word));
        rest.iter().fold(remainder, |sum, byte| __crc32cb(sum, *byte))
    }
}
