//! The packed weights of all models, embedded or handed over.
#![allow(unsafe_code, reason = "bytes of the right length and alignment are seen as floats")]

use crate::{WEIGHT_BYTES, WEIGHT_HASH};

#[cfg(target_endian = "big")]
compile_error!("the weights are little-endian, and so must the target be");

/// Why weights were refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightsError {
    /// They are not [`WEIGHT_BYTES`] bytes.
    Length,
    /// They do not begin at a multiple of 4 bytes; a multiple of 64 is best.
    Alignment,
    /// They are not those that this crate was emitted with.
    Hash,
}

impl core::fmt::Display for WeightsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            WeightsError::Length => "the weights are of another length than this model's",
            WeightsError::Alignment => "the weights do not begin at a multiple of 4 bytes",
            WeightsError::Hash => "the weights are not this model's",
        })
    }
}

impl core::error::Error for WeightsError {}

/// The weights embedded in the crate, a copy of `weights.bin`.
#[cfg(feature = "weights")]
pub(crate) fn embedded() -> &'static [f32] {
    #[repr(C, align(64))]
    struct Aligned<T: ?Sized>(T);
    static EMBEDDED: &Aligned<[u8]> = &Aligned(*include_bytes!("../weights.bin"));
    // Aligned, and as long as when it was emitted: a file that was changed since is refused before it is used.
    floats(&EMBEDDED.0).unwrap_or(&[])
}

/// Bytes handed over by the caller, if they are those of `weights.bin`.
pub(crate) fn verify(bytes: &[u8]) -> Result<&[f32], WeightsError> {
    if bytes.len() != WEIGHT_BYTES {
        return Err(WeightsError::Length);
    }
    let weights = floats(bytes).ok_or(WeightsError::Alignment)?;
    if super::hash::hash(bytes) == WEIGHT_HASH { Ok(weights) } else { Err(WeightsError::Hash) }
}

fn floats(bytes: &[u8]) -> Option<&[f32]> {
    // SAFETY: every four bytes are a valid `f32`, and `align_to` keeps to its alignment.
    let (before, floats, after) = unsafe { bytes.align_to::<f32>() };
    (before.is_empty() && after.is_empty()).then_some(floats)
}
