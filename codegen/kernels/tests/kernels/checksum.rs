//! CRC-32C against published values and its definition.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::checksum::*;

/// RFC 3720, appendix B.4, and the check value that catalogues of CRCs print.
#[test]
fn published_remainders() {
    let ascending: Vec<u8> = (0..32).collect();
    let descending: Vec<u8> = (0..32).rev().collect();
    for isa in Isa::all() {
        for (bytes, expected) in [
            (&[0; 32][..], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (&descending, 0x113f_db5c),
            (b"123456789", 0xe306_9283),
            (b"", 0),
        ] {
            assert_eq!(crc32c(isa, bytes), expected, "{}, {bytes:?}", isa.name());
        }
    }
}

/// Bit by bit, as the definition divides, from every place and of every length.
#[test]
fn every_length_and_place() {
    let divide = |bytes: &[u8]| {
        let mut remainder = !0u32;
        for bit in bytes.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1)) {
            let low = remainder as u8 & 1 ^ bit;
            remainder = remainder >> 1 ^ if low == 1 { 0x82f6_3b78 } else { 0 };
        }
        !remainder
    };
    let bytes: Vec<u8> = (0..10_000u32).map(|i| (i * i % 8191 * 31 + 7) as u8).collect();
    for isa in Isa::all() {
        // Three lanes, and twice as many.
        for length in [3071, 3072, 3073, 3080, 4096, 6143, 6144, 6145, 9999] {
            let bytes = &bytes[1..][..length];
            assert_eq!(crc32c(isa, bytes), divide(bytes), "{}, {length}", isa.name());
        }
        let bytes = &bytes[..80];
        for start in 0..8 {
            for end in start..bytes.len() {
                let bytes = &bytes[start..end];
                assert_eq!(crc32c(isa, bytes), divide(bytes), "{}, {start}..{end}", isa.name());
            }
        }
    }
}
