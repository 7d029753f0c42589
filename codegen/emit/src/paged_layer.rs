//! A layer whose weights are paged, and the bytes of its slices in the store.

use csdfc_kernels::arch::Isa;
use csdfc_kernels::checksum::crc32c;
use csdfc_runtime::LayerError;
use csdfc_runtime::bind::Call;
use csdfc_runtime::paged::Paged;
use csdfc_runtime::weights::Values;

/// A layer whose weights are paged.
pub(super) struct PagedLayer {
    /// Its slices and blocks.
    pub paged: Paged,
    /// For each slice, the CRC-32C of its packed weights.
    pub checksums: Vec<u32>,
}

impl PagedLayer {
    /// Appends the layer's slices to the bytes of the store.
    ///
    /// # Errors
    /// When parameters cannot be read or packed.
    pub fn pack(
        paged: Paged,
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
        paged.pack(call, values, &mut take)?;
        Ok(PagedLayer { paged, checksums })
    }
}
