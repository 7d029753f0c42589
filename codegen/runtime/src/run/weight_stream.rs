//! The store of streamed weights: a file of packed weights without a name.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use csdfc_kernels::arch::Isa;
use csdfc_kernels::checksum::crc32c;

use crate::error::LayerError;
use crate::streamed::Streamed;
use csdfc_plan::check::Resolved;

use super::arena::Arena;
use super::error::{Parameters, RunError, layer_error, store_error};
use super::state::State;

/// A tile of streamed weights that was read.
#[derive(Debug, Clone, Copy)]
pub struct Loaded {
    /// The layer, by its index in the CNN.
    pub layer: usize,
    /// The tile, from 0.
    pub tile: usize,
    /// Its bytes.
    pub bytes: u64,
    /// When the read began.
    pub start: Instant,
    /// How long it took.
    pub elapsed: Duration,
}

/// The file that tiles are read from.
#[derive(Debug)]
pub(super) struct WeightStream {
    file: File,
    isa: Isa,
    /// By CNN and layer, the checksum of each tile.
    checksums: Vec<Vec<Vec<u32>>>,
    /// Bytes that were read.
    pub read: u64,
    /// The reads since [`WeightStream::begin`].
    pub loads: Vec<Loaded>,
}

impl WeightStream {
    /// Packs the streamed weights of all CNNs into a file that nobody else sees.
    pub fn new(
        resolved: &Resolved<'_>,
        cnns: &[State],
        parameters: &Parameters<'_>,
        isa: Isa,
    ) -> Result<Self, RunError> {
        let mut file = tempfile::tempfile().map_err(|why| store_error(resolved, 0, 0, why))?;
        let mut checksums = Vec::new();
        for (c, state) in cnns.iter().enumerate() {
            let mut of_cnn = vec![Vec::new(); state.streamed.len()];
            for (l, (streamed, call)) in state.streamed.iter().zip(&state.calls).enumerate() {
                let (Some(streamed), Some(call)) = (streamed, call) else { continue };
                let fail = |why| layer_error(resolved, c, l, why);
                let start = streamed.tiles.first().map_or(0, |tile| tile.at);
                file.seek(SeekFrom::Start(start)).map_err(|why| store_error(resolved, c, l, why))?;
                let values = |parameter: usize| parameters(c, l, parameter);
                let mut take = |packed: &[u8]| {
                    of_cnn[l].push(crc32c(isa, packed));
                    file.write_all(packed).map_err(LayerError::Store)
                };
                streamed.pack(call, &values, &mut take).map_err(fail)?;
            }
            checksums.push(of_cnn);
        }
        Ok(WeightStream { file, isa, checksums, read: 0, loads: Vec::new() })
    }

    /// Begins a frame.
    pub fn begin(&mut self) {
        self.loads.clear();
    }

    /// Reads a tile of a layer into its block.
    pub fn load(
        &mut self,
        [c, l]: [usize; 2],
        streamed: &Streamed,
        tile: usize,
        arena: &mut Arena,
    ) -> io::Result<()> {
        let began = Instant::now();
        let bytes = streamed.tiles[tile].bytes;
        let start = streamed.block(tile).range.start;
        let Some(block) = arena.get_mut(start..start + bytes) else {
            return Err(io::Error::other(format!("{bytes} bytes are beyond the arena: a mistake")));
        };
        self.file.seek(SeekFrom::Start(streamed.tiles[tile].at))?;
        self.file.read_exact(block)?;
        if crc32c(self.isa, block) != self.checksums[c][l][tile] {
            return Err(io::Error::other("it gives other bytes than were written"));
        }
        self.read += bytes as u64;
        let elapsed = began.elapsed();
        self.loads.push(Loaded { layer: l, tile, bytes: bytes as u64, start: began, elapsed });
        Ok(())
    }
}
