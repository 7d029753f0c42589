//! A layer whose weights are streamed, and the bytes of its tiles in the store.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::checksum::crc32c;
use csdfc_runtime::LayerError;
use csdfc_runtime::bind::Call;
use csdfc_runtime::streamed::Streamed;
use csdfc_runtime::weights::Values;

/// A layer whose weights are streamed.
pub(super) struct StreamedLayer {
    /// Its tiles and blocks.
    pub streamed: Streamed,
    /// For each tile, the CRC-32C of its packed weights.
    pub checksums: Vec<u32>,
}

impl StreamedLayer {
    /// Appends the layer's tiles to the bytes of the store.
    ///
    /// # Errors
    /// When parameters cannot be read or packed.
    pub fn pack(
        streamed: Streamed,
        call: &Call,
        values: &Values<'_>,
        store: &mut Vec<u8>,
    ) -> Result<Self, LayerError> {
        let isa = Isa::detect();
        let mut checksums = Vec::new();
        let mut take = |packed: &[u8]| {
            checksums.push(crc32c(isa, packed));
            let bytes = packed.len();
            store.try_reserve(bytes).map_err(|_| LayerError::Memory { bytes })?;
            store.extend_from_slice(packed);
            Ok(())
        };
        streamed.pack(call, values, &mut take)?;
        Ok(StreamedLayer { streamed, checksums })
    }
}
