//! Bytes that begin at the start of a cache line, so that elements of every type lie at multiples of their size.
//!
//! ```
//! use csdfc_runtime::bytes::{Bytes, LINE};
//!
//! let bytes = Bytes::zeros(100).ok_or("no memory")?;
//! assert_eq!(bytes.len(), 100);
//! assert_eq!(bytes.as_ptr().addr() % LINE, 0);
//! # Ok::<(), &str>(())
//! ```

use std::ops::{Deref, DerefMut};

#[cfg(target_endian = "big")]
compile_error!("packed weights are little-endian, and so must the machine be that packs them");

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// Bytes that begin at the start of a cache line.
#[derive(Debug, Default)]
pub struct Bytes {
    memory: Vec<u8>,
    start: usize,
}

impl Bytes {
    /// `len` zeros. `None` if there is no memory for them.
    pub fn zeros(len: usize) -> Option<Self> {
        let all = len.checked_add(LINE)?;
        let mut memory: Vec<u8> = Vec::new();
        memory.try_reserve_exact(all).ok()?;
        let start = memory.as_ptr().align_offset(LINE).min(LINE);
        memory.resize(start + len, 0);
        Some(Bytes { memory, start })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..]
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..]
    }
}
