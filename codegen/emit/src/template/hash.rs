//! The hash by which weights are recognised.

/// FNV-1a over little-endian words of eight bytes, the last one filled up with zeros.
pub fn hash(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let step =
        |hash: u64, word: &[u8; 8]| (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x0000_0100_0000_01b3);
    let hash = words.iter().fold(0xcbf2_9ce4_8422_2325, step);
    if rest.is_empty() { hash } else { step(hash, &last) }
}
