//! Bound layers whose weights are streamed: their tiles in the store, the blocks that tiles are read into, and the calls
//! that make their output channels. `run` and `emit` read weights by the same tables.
//!
//! ```
//! use csdfc_plan::check::resolve;
//! use csdfc_plan::plan::{Block, Plan, Store, StreamedWeights};
//! use csdfc_runtime::bind::bind_layer;
//! use csdfc_runtime::streamed::Streamed;
//!
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let mut plan = Plan::parse(&text)?;
//! # plan.store = Some(Store { bytes: 2496, bytes_per_second: None });
//! # (plan.memory.parameters_resident, plan.memory.arena, plan.memory.bound) = (Some(0), 4416, 4416);
//! # plan.cnns[0].bytes_read = Some(2496);
//! # if let Some(witness) = &mut plan.certificate.bound {
//! #     witness.tensors.push("block 0 of pair/l2".into());
//! #     witness.bytes = 4416;
//! # }
//! // A convolution of 8 filters of 5·5·3 weights. Each frame reads them in one tile, to above the ring of its input.
//! let block = Block { offset: 1920, bytes: 2496, after: None };
//! let streamed = StreamedWeights { at: 0, filters: None, tiles: "2496".into(), blocks: vec![block] };
//! plan.cnns[0].layers[1].streamed = Some(streamed);
//!
//! let resolved = resolve(&plan).map_err(|violations| violations[0].to_string())?;
//! let call = bind_layer(&resolved.index.cnns[0], &resolved.allocations[0], 1, 32)?.ok_or("nothing to compute")?;
//! let streamed = Streamed::new(&resolved, 0, 1, &call)?.ok_or("its weights stay in memory")?;
//! assert_eq!((streamed.tiles.len(), streamed.block(0).range.clone()), (1, 1920..4416));
//! let mut store = Vec::new();
//! streamed.pack(&call, &|parameter| Ok(vec![1.0; [600, 8][parameter]].into()), &mut |tile| {
//!     store.extend_from_slice(tile);
//!     Ok(())
//! })?;
//! assert_eq!(store.len(), 2496);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::ops::Range;

use crate::bind::Call;
use crate::bytes::Bytes;
use crate::error::LayerError;
use crate::weights;
use csdfc_plan::check::{Begin, Resolved};
use csdfc_plan::operator::Operator;

/// A layer's tiles.
#[derive(Debug)]
pub struct Streamed {
    /// In turn; tile k goes into block k mod their number.
    pub tiles: Vec<Tile>,
    /// Where tiles go.
    pub blocks: Vec<Block>,
    /// The call for a tile with this number of output channels; none if there is only one tile.
    calls: Vec<(usize, Call)>,
}

/// Some output channels.
#[derive(Debug)]
pub struct Tile {
    /// Its place in the store.
    pub at: u64,
    /// Bytes of its packed weights.
    pub bytes: usize,
    /// The channels; none if they are not divided into tiles.
    pub filters: Range<usize>,
}

/// Where tiles go.
#[derive(Debug)]
pub struct Block {
    /// Its place among the CNN's allocations.
    pub allocation: usize,
    /// Its bytes of the arena.
    pub range: Range<usize>,
    /// The moment from which it may be written.
    pub begin: Begin,
}

impl Streamed {
    /// The streaming of a layer that is bound to `call`; `None` if its weights stay in memory.
    ///
    /// # Errors
    /// When no kernel makes some of its output channels.
    pub fn new(resolved: &Resolved<'_>, c: usize, l: usize, call: &Call) -> Result<Option<Self>, LayerError> {
        let cnn = &resolved.index.cnns[c];
        let layer = cnn.layers[l].layer;
        let Some(stated) = &layer.streamed else { return Ok(None) };
        let of_layer =
            resolved.allocations[c].iter().enumerate().filter(|(_, allocation)| allocation.tensor == l);
        let block = |(s, allocation): (usize, &csdfc_plan::check::Allocation)| {
            let start = *allocation.bases.first()? as usize;
            Some(Block {
                allocation: s,
                range: start..start + allocation.ring_bytes() as usize,
                begin: allocation.begin()?,
            })
        };
        let blocks: Vec<Block> = of_layer.filter_map(block).collect();
        if blocks.len() != stated.blocks.len() || blocks.is_empty() {
            return Err(LayerError::Mistake("it has blocks that are nowhere: a mistake in csdfc"));
        }
        let mut streamed = Streamed { tiles: Vec::new(), blocks, calls: Vec::new() };
        let Some(each) = stated.filters else {
            let bytes = weights::stored_len(call);
            streamed.tiles.push(Tile { at: stated.at, bytes, filters: 0..0 });
            return Ok(Some(streamed));
        };
        let all = match &layer.operator {
            Operator::Conv(conv) => conv.filters,
            Operator::Gemm(gemm) => gemm.units,
            _ => 0,
        };
        let mut at = stated.at;
        for start in (0..all).step_by((each as usize).max(1)) {
            let filters = start..all.min(start + each as usize);
            let tile = call.tile(&layer.operator, filters.len());
            let tile =
                tile.ok_or(LayerError::Mistake("no kernel computes it in tiles: a mistake in csdfc"))?;
            let bytes = weights::stored_len(&tile);
            if streamed.calls.iter().all(|(count, _)| *count != filters.len()) {
                streamed.calls.push((filters.len(), tile));
            }
            streamed.tiles.push(Tile { at, bytes, filters });
            at += bytes as u64;
        }
        Ok(Some(streamed))
    }

    /// The call that makes the channels of a tile; none if it is the layer's own.
    pub fn call(&self, tile: usize) -> Option<&Call> {
        let count = self.tiles[tile].filters.len();
        self.calls.iter().find(|(of, _)| *of == count).map(|(_, call)| call)
    }

    /// The block of a tile.
    pub fn block(&self, tile: usize) -> &Block {
        &self.blocks[tile % self.blocks.len()]
    }

    /// Packs the parameters of the layer, and hands them over tile by tile, in turn. `values` gives the parameter of an
    /// index.
    ///
    /// # Errors
    /// When values cannot be read, their number is wrong, or `take` fails.
    pub fn pack(
        &self,
        call: &Call,
        values: &weights::Values<'_>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), LayerError>,
    ) -> Result<(), LayerError> {
        let bytes = weights::stored_len(call);
        let mut whole = Bytes::zeros(bytes).ok_or(LayerError::Memory { bytes })?;
        weights::pack(call, values, &mut whole)?;
        for (number, tile) in self.tiles.iter().enumerate() {
            match self.call(number) {
                None => take(&whole)?,
                Some(part) => {
                    let packed = weights::tile(call, part, &whole, tile.filters.clone());
                    take(
                        &packed.ok_or(LayerError::Mistake(
                            "it has no such output channels: a mistake in csdfc",
                        ))?,
                    )?;
                }
            }
        }
        Ok(())
    }
}
