//! The packed weights of all models, embedded or handed over.

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
    /// They are not the weights with which this crate was emitted.
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
pub(crate) fn embedded() -> &'static [u8] {
    #[repr(C, align(64))]
    struct Aligned<T: ?Sized>(T);
    static EMBEDDED: &Aligned<[u8]> = &Aligned(*include_bytes!("../weights.bin"));
    &EMBEDDED.0
}

/// Bytes handed over by the caller, if they are those of `weights.bin`.
pub(crate) fn verify(bytes: &[u8]) -> Result<&[u8], WeightsError> {
    if bytes.len() != WEIGHT_BYTES {
        return Err(WeightsError::Length);
    }
    if !bytes.as_ptr().cast::<f32>().is_aligned() {
        return Err(WeightsError::Alignment);
    }
    if super::hash::hash(bytes) == WEIGHT_HASH { Ok(bytes) } else { Err(WeightsError::Hash) }
}
