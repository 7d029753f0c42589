//! The store of a device: a flash, an eMMC or an NVMe, from which streamed weights are read.
//!
//! ```
//! use csdfc_input::device::store::Store;
//!
//! let store: Store = ron::from_str(r#"(bandwidth: "250MB/s", latency: "80us", block: 4096)"#)?;
//! // A read takes whole blocks: a byte takes as long as 4096.
//! assert_eq!(store.read_ns(1), store.read_ns(4096));
//! assert_eq!(store.read_ns(4096), 80_000.0 + 4096.0 * 4.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Serialize};

use crate::units::{self, Nanoseconds, TimeError};

/// What a store does: `(bandwidth: "250MB/s", latency: "80us", block: 4096)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, try_from = "Fields", into = "Fields")]
pub struct Store {
    /// Bytes per second.
    pub bytes_per_second: u64,
    /// Nanoseconds from the start of a read to its first byte.
    pub latency_ns: u64,
    /// A read takes whole blocks of so many bytes.
    pub block: u64,
}

/// A store as it stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "store")]
struct Fields {
    bandwidth: String,
    latency: String,
    block: u64,
}

/// Why a profile's store cannot be.
#[derive(Debug, thiserror::Error)]
enum StoreError {
    #[error("`{0}` is no bandwidth: give bytes a second, `250MB/s`")]
    Bandwidth(String),
    #[error(transparent)]
    Latency(#[from] TimeError),
    #[error("a store's block has 1 to 2^30 bytes, not {0}")]
    Block(u64),
}

impl TryFrom<Fields> for Store {
    type Error = StoreError;

    fn try_from(fields: Fields) -> Result<Self, StoreError> {
        let Fields { bandwidth, latency, block } = fields;
        let bytes = bandwidth.trim().strip_suffix("/s").and_then(|bytes| units::parse(bytes).ok());
        let Some(bytes_per_second) = bytes.filter(|bytes| *bytes > 0) else {
            return Err(StoreError::Bandwidth(bandwidth));
        };
        let Nanoseconds(latency_ns) = latency.parse()?;
        if !(1..=1 << 30).contains(&block) {
            return Err(StoreError::Block(block));
        }
        Ok(Store { bytes_per_second, latency_ns, block })
    }
}

impl From<Store> for Fields {
    fn from(store: Store) -> Self {
        let Store { bytes_per_second, latency_ns, block } = store;
        Fields { bandwidth: format!("{bytes_per_second}B/s"), latency: format!("{latency_ns}ns"), block }
    }
}

impl Store {
    /// Modelled nanoseconds of a read of so many bytes.
    pub fn read_ns(&self, bytes: u64) -> f64 {
        let bytes = bytes.div_ceil(self.block) * self.block;
        self.latency_ns as f64 + bytes as f64 / self.bytes_per_second as f64 * 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_takes_whole_blocks() {
        let read = |text: &str| ron::from_str::<Store>(text);
        let store = read(r#"(bandwidth: "250MB/s", latency: "80us", block: 4096)"#).unwrap();
        assert_eq!(store, Store { bytes_per_second: 250_000_000, latency_ns: 80_000, block: 4096 });
        // 4 ns a byte.
        for (bytes, blocks) in [(1, 1), (4096, 1), (4097, 2), (1 << 20, 256)] {
            assert_eq!(store.read_ns(bytes), 80_000.0 + 4.0 * 4096.0 * f64::from(blocks), "{bytes}");
        }
        assert_eq!(read(&ron::to_string(&store).unwrap()).unwrap(), store);
        for wrong in [
            r#"(bandwidth: "250MB", latency: "80us", block: 4096)"#,
            r#"(bandwidth: "0MB/s", latency: "80us", block: 4096)"#,
            r#"(bandwidth: "250MB/s", latency: "80", block: 4096)"#,
            r#"(bandwidth: "250MB/s", latency: "80us", block: 0)"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
