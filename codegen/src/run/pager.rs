//! Paged weights: a file of packed weights without a name, and what each layer reads of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::bind::Call;
use crate::bytes::Bytes;
use crate::check::{Begin, Resolved};
use crate::operator::Operator;
use crate::weights;

use super::arena::Arena;
use super::memory::ring_bytes;
use super::state::State;
use super::{Parameters, RunError, layer_error, store_error};

/// The file that slices are read from.
#[derive(Debug)]
pub(super) struct Pager {
    file: File,
    /// Bytes that were read.
    pub read: u64,
}

/// A layer's slices.
#[derive(Debug)]
pub(super) struct Paged {
    /// In turn; slice k goes into block k mod their number.
    pub slices: Vec<Slice>,
    pub blocks: Vec<Block>,
    /// What makes the output channels of a slice of so many; none if there is only one slice.
    calls: Vec<(usize, Call)>,
}

/// Some output channels.
#[derive(Debug)]
pub(super) struct Slice {
    /// Its place in the file.
    at: u64,
    bytes: usize,
    filters: Range<usize>,
}

/// Where slices go.
#[derive(Debug)]
pub(super) struct Block {
    range: Range<usize>,
    /// From when on.
    pub begin: Begin,
}

/// What is needed to use a slice.
pub(super) struct Part<'a> {
    /// The call; the layer's own if there is none.
    pub call: Option<&'a Call>,
    /// Its output channels.
    pub filters: Range<usize>,
    /// The bytes of the arena where it lies.
    pub block: Range<usize>,
}

impl Paged {
    /// A slice in its block.
    pub fn of(&self, slice: usize) -> Part<'_> {
        let Slice { bytes, filters, .. } = &self.slices[slice];
        let start = self.blocks[slice % self.blocks.len()].range.start;
        let call = self.calls.iter().find(|(count, _)| *count == filters.len()).map(|(_, call)| call);
        Part { call, filters: filters.clone(), block: start..start + bytes }
    }
}

impl Pager {
    /// Packs the paged weights of all CNNs into a file, which nobody else sees, and notes where each layer's lie.
    pub fn new(
        resolved: &Resolved<'_>,
        cnns: &mut [State],
        parameters: &Parameters<'_>,
    ) -> Result<Self, RunError> {
        let mut file = tempfile::tempfile().map_err(|why| store_error(resolved, 0, 0, why))?;
        for (c, state) in cnns.iter_mut().enumerate() {
            for (l, entry) in resolved.index.cnns[c].layers.iter().enumerate() {
                let (Some(stated), Some(call)) = (&entry.layer.paged, &state.calls[l]) else { continue };
                let fail = |why: String| layer_error(resolved, c, l, why);
                let failed = |why: io::Error| store_error(resolved, c, l, why);
                let bytes = weights::stored_len(call);
                let room = RunError::Memory { bytes: bytes as u64 };
                let mut whole = Bytes::zeros(bytes).ok_or(room)?;
                let values = |parameter: usize| parameters(c, l, parameter);
                weights::pack(call, &values, &mut whole).map_err(fail)?;
                let store = |block: usize| {
                    let name =
                        format!("block {block} of {}/{}", resolved.index.cnns[c].cnn.name, entry.layer.name);
                    resolved.stores[c].iter().find(|store| store.name == name)
                };
                let block = |block: usize| {
                    let store = store(block)?;
                    Some(Block { range: ring_bytes(store, 0), begin: store.begin()? })
                };
                let blocks = (0..stated.blocks.len()).map(block).collect::<Option<_>>();
                let blocks =
                    blocks.ok_or_else(|| fail("it has blocks that are nowhere: a mistake".into()))?;
                let mut paged = Paged { slices: Vec::new(), blocks, calls: Vec::new() };
                let mut at = stated.at;
                file.seek(SeekFrom::Start(at)).map_err(failed)?;
                match stated.filters {
                    None => {
                        file.write_all(&whole).map_err(failed)?;
                        paged.slices.push(Slice { at, bytes, filters: 0..0 });
                    }
                    Some(each) => {
                        let all = match &entry.layer.operator {
                            Operator::Conv(conv) => conv.filters,
                            Operator::Gemm(gemm) => gemm.units,
                            _ => 0,
                        };
                        let none = || fail("no kernel computes it in slices".into());
                        for start in (0..all).step_by((each as usize).max(1)) {
                            let filters = start..all.min(start + each as usize);
                            let slice = call.slice(&entry.layer.operator, filters.len()).ok_or_else(none)?;
                            let packed =
                                weights::slice(call, &slice, &whole, filters.clone()).ok_or_else(none)?;
                            file.write_all(&packed).map_err(failed)?;
                            if paged.calls.iter().all(|(count, _)| *count != filters.len()) {
                                paged.calls.push((filters.len(), slice));
                            }
                            paged.slices.push(Slice { at, bytes: packed.len(), filters });
                            at += packed.len() as u64;
                        }
                    }
                }
                state.paged[l] = Some(paged);
            }
        }
        Ok(Pager { file, read: 0 })
    }

    /// Reads a slice into its block.
    pub fn load(&mut self, paged: &Paged, slice: usize, arena: &mut Arena) -> io::Result<()> {
        let Slice { at, bytes, .. } = paged.slices[slice];
        let block = paged.of(slice).block;
        let Some(block) = arena.get_mut(block) else {
            return Err(io::Error::other(format!("{bytes} bytes are beyond the arena: a mistake")));
        };
        self.file.seek(SeekFrom::Start(at))?;
        self.file.read_exact(block)?;
        self.read += bytes as u64;
        Ok(())
    }
}
