//! Placing what is stored in several memories: what layers read and write most goes where a byte takes the least time, as far as it
//! fits, and each memory is packed by address.
//!
//! The memories lie one above the other in the arena's address space. So all that is known of offsets in an arena holds for
//! them as well, and only one thing is new: nothing lies across two of them.

use std::ops::Range;

use csdfc_input::device::memory::Memory;
use csdfc_network::LayerId;
use csdfc_packing::regions::{RegionPacking, pack_regions};
use csdfc_packing::{Budget, Meter};
use csdfc_plan::plan::{Content, Region};

use super::moments::RowByRow;
use super::{Arrangement, Effort, Item, Storage, pack};
use crate::frame::request::RequestKind;

/// The bytes of each item that layers read and write in a frame, by layer.
pub type Traffic = Vec<Vec<(LayerId, u64)>>;

/// Places all that is stored in some memories, such that reading and writing it takes the least time. If it does not fit, the largest
/// memory takes more than it has.
pub fn arrange(storage: &Storage<'_>, memories: &[Memory], traffic: &Traffic, effort: Effort) -> Arrangement {
    let items = storage.items();
    let bound = storage.bound(&items);
    let limits: Vec<u64> = memories.iter().map(Memory::room).collect();
    let costs: Vec<Vec<Option<u64>>> =
        items.iter().zip(traffic).map(|(item, traffic)| costs(memories, item, traffic)).collect();
    let packing = match pack::problem(storage, &items, &bound, RowByRow::Chosen) {
        Some(problem) => {
            let budget = &mut Meter::new(Budget::Work(pack::steps(effort)));
            pack_regions(&problem, &limits, &costs, budget).packing
        }
        None => stacked(&items, memories),
    };
    let mut regions: Vec<Range<u64>> = Vec::new();
    for bytes in &packing.bytes {
        let end = regions.last().map_or(0, |region| region.end);
        let start = end.checked_next_multiple_of(Region::ALIGNMENT).unwrap_or(u64::MAX);
        regions.push(start..start.saturating_add(*bytes));
    }
    let offset = |(region, offset): (&usize, &u64)| regions[*region].start.saturating_add(*offset);
    let offsets: Vec<u64> = packing.regions.iter().zip(&packing.offsets).map(offset).collect();
    let end = |(at, item): (&u64, &Item<'_>)| at.saturating_add(item.request.bytes);
    let bytes = offsets.iter().zip(&items).map(end).max().unwrap_or(0);
    Arrangement { bytes, least: bound.bytes, bound, offsets, buffers: Vec::new(), regions }
}

/// What it costs that something lies in each memory that may hold it: picoseconds in a frame. If the times of the memories
/// are not known, it is those bytes, times the number of memories before.
fn costs(memories: &[Memory], item: &Item<'_>, traffic: &[(LayerId, u64)]) -> Vec<Option<u64>> {
    let content = content(item);
    let bytes: u64 = traffic.iter().map(|(_, bytes)| bytes).sum();
    let cost = |(rank, memory): (u64, &Memory)| {
        memory.holds.contains(&content).then_some(match memory.ns_per_byte {
            Some(ns) => (bytes as f64 * ns * 1e3).round() as u64,
            None => bytes.saturating_mul(rank),
        })
    };
    (0..).zip(memories).map(cost).collect()
}

/// For each layer of a CNN, how much longer a frame takes because of the memories in which it reads and writes, in
/// nanoseconds.
pub fn waits(
    storage: &Storage<'_>,
    memories: &[Memory],
    traffic: &Traffic,
    arrangement: &Arrangement,
    cnn: usize,
    layers: usize,
) -> Vec<f64> {
    let mut waits = vec![0.0; layers];
    let items = storage.items();
    for ((item, traffic), offset) in items.iter().zip(traffic).zip(&arrangement.offsets) {
        // An empty region begins where the next one does, so the last of those that begin is meant.
        let begun = arrangement.regions.partition_point(|region| region.start <= *offset);
        let memory = begun.checked_sub(1).and_then(|region| memories.get(region));
        let ns = memory.and_then(|memory| memory.ns_per_byte).unwrap_or(0.0);
        for (layer, bytes) in traffic.iter().filter(|_| item.cnn == cnn) {
            waits[layer.0] += *bytes as f64 * ns;
        }
    }
    waits
}

/// What something that is stored is to a memory.
fn content(item: &Item<'_>) -> Content {
    match item.request.kind {
        RequestKind::Ring | RequestKind::Workspace => Content::Buffers,
        RequestKind::Block => Content::Weights,
    }
}

/// Everything in the first memory that may hold it, one above the other: sizes beyond any memory.
fn stacked(items: &[Item<'_>], memories: &[Memory]) -> RegionPacking {
    let offsets = pack::stacked(items).offsets;
    let first = |item: &Item<'_>| memories.iter().position(|memory| memory.holds.contains(&content(item)));
    let regions: Vec<usize> = items.iter().map(|item| first(item).unwrap_or(0)).collect();
    let mut bytes = vec![0; memories.len()];
    for ((item, region), offset) in items.iter().zip(&regions).zip(&offsets) {
        bytes[*region] = offset.saturating_add(item.request.bytes).max(bytes[*region]);
    }
    RegionPacking { regions, offsets, bytes, cost: 0 }
}
