//! Weights for any plan: any bytes, if there are enough.

use crate::WEIGHT_BYTES;

/// Why weights were refused: they are fewer than [`WEIGHT_BYTES`], or do not begin at a multiple of 4 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WeightsError;

impl core::fmt::Display for WeightsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("there are too few weights, or they do not begin at a multiple of 4 bytes")
    }
}

impl core::error::Error for WeightsError {}

/// The bytes, if a plan can use them.
pub(crate) fn verify(bytes: &[u8]) -> Result<&[u8], WeightsError> {
    let fit = bytes.len() >= WEIGHT_BYTES && bytes.as_ptr().cast::<f32>().is_aligned();
    if fit { Ok(bytes) } else { Err(WeightsError) }
}
