//! Measures a store: reads of a file of random bytes, short and long ones by turns.
//!
//! The page cache would answer instead of the store. So the reads bypass it, if the system can do that.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Instant;

use csdfc_input::device::store::Store;
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

use crate::error::Error;

/// A store reads whole blocks of so many bytes: that of most file systems, and a multiple of what a device reads at least.
const BLOCK: usize = 4096;
/// Bytes of a long read.
const CHUNK: usize = 1 << 20;
/// Chunks of the file.
const CHUNKS: usize = 64;

/// What was measured of a store.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The store.
    pub store: Store,
    /// Whether the page cache answered, because the system cannot bypass it for this store.
    pub is_cached: bool,
}

/// Measures the store that a folder is in. For that it writes 64 MiB there, and removes them.
///
/// # Errors
/// When files in the folder cannot be written or read.
pub fn store(folder: &Path) -> Result<Reading, Error> {
    let mut written = tempfile::NamedTempFile::new_in(folder).map_err(|error| Error::write(folder, error))?;
    let (mut random, mut chunk) = (ChaCha8Rng::seed_from_u64(1), vec![0; CHUNK]);
    for _ in 0..CHUNKS {
        random.fill_bytes(&mut chunk);
        written.write_all(&chunk).map_err(|error| Error::write(folder, error))?;
    }
    written.as_file().sync_all().map_err(|error| Error::write(folder, error))?;
    let path = written.path();
    let measured = match open_uncached(path) {
        // Some systems refuse only the first read.
        Ok(file) => times(file, &mut random).map(|times| (times, false)),
        Err(error) => Err(error),
    };
    let (times, is_cached) = match measured {
        Ok(measured) => measured,
        Err(_) => {
            let read = File::open(path).and_then(|file| times(file, &mut random));
            (read.map_err(|error| Error::read(path, error))?, true)
        }
    };
    Ok(Reading { store: fitted(times), is_cached })
}

/// Opens a file whose reads bypass the page cache.
#[cfg(target_os = "linux")]
fn open_uncached(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)
}

#[cfg(not(target_os = "linux"))]
fn open_uncached(_: &Path) -> std::io::Result<File> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Median nanoseconds of reads of a block and of a chunk, at places in random order.
fn times(mut file: File, random: &mut ChaCha8Rng) -> std::io::Result<[f64; 2]> {
    // Reads that bypass the cache need memory that is aligned like blocks.
    let mut memory = vec![0; CHUNK + BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
    let memory = &mut memory[start..][..CHUNK];
    let mut taken = [Vec::new(), Vec::new()];
    for chunk in 0..CHUNKS {
        for (bytes, taken) in [BLOCK, CHUNK].into_iter().zip(&mut taken) {
            // Long reads take each chunk once. A short read takes one block anywhere.
            let place = match bytes {
                CHUNK => chunk * CHUNK,
                _ => random.next_u32() as usize % (CHUNKS * CHUNK / BLOCK) * BLOCK,
            };
            let begun = Instant::now();
            file.seek(SeekFrom::Start(place as u64))?;
            file.read_exact(&mut memory[..bytes])?;
            taken.push(begun.elapsed().as_nanos() as f64);
        }
    }
    Ok(taken.map(|mut taken| {
        taken.sort_by(f64::total_cmp);
        taken[taken.len() / 2]
    }))
}

/// The store that takes these times for a block and for a chunk.
fn fitted([block, chunk]: [f64; 2]) -> Store {
    // Noise may make a short read as slow as a long one. Then there is no latency to be seen.
    let more = if chunk > block { chunk - block } else { chunk };
    let ns_per_byte = (more / (CHUNK - BLOCK) as f64).max(1e-3);
    let latency_ns = if chunk > block { (block - ns_per_byte * BLOCK as f64).max(0.0) } else { 0.0 };
    Store {
        bytes_per_second: (1e9 / ns_per_byte).max(1.0) as u64,
        latency_ns: latency_ns as u64,
        block: BLOCK as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fitted store gives back the times that the model of a read predicts for it.
    #[test]
    fn a_fitted_store_takes_what_was_measured() {
        for (bytes_per_second, latency_ns) in
            [(250_000_000, 80_000), (2_000_000_000, 0), (1_000_000, 5_000_000)]
        {
            let store = Store { bytes_per_second, latency_ns, block: BLOCK as u64 };
            let found = fitted([BLOCK, CHUNK].map(|bytes| store.read_ns(bytes as u64)));
            assert!(
                found.bytes_per_second.abs_diff(bytes_per_second) <= bytes_per_second / 1000,
                "{found:?}"
            );
            assert!(found.latency_ns.abs_diff(latency_ns) <= 1 + latency_ns / 1000, "{found:?}");
        }
        // Noise.
        let found = fitted([3e6, 2e6]);
        assert_eq!((found.latency_ns, found.block), (0, 4096));
        assert!((500_000_000..550_000_000).contains(&found.bytes_per_second), "{found:?}");
        assert!(fitted([0.0, 0.0]).bytes_per_second > 0);
    }

    #[test]
    fn a_folder_has_a_store() {
        let folder = tempfile::tempdir().unwrap();
        let reading = store(folder.path()).unwrap();
        assert!(reading.store.bytes_per_second > 0 && reading.store.block == 4096, "{reading:?}");
        // Nothing stays.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(store(&folder.path().join("none")).is_err());
    }
}
