//! Where rows lie in the rings of the arena.

use std::ops::Range;

use csdfc_plan::check::{Allocation, LayerIndex, RowOrder};

/// The bytes of a ring, or of the half of a double buffer that this frame takes.
pub(super) fn ring_bytes(allocation: &Allocation, frame: u64) -> Range<usize> {
    let half = if allocation.kind == RowOrder::Halves { frame % 2 } else { 0 };
    let base = allocation.bases[half as usize];
    base as usize..(base + allocation.ring_bytes()) as usize
}

/// Slot of the first row of a frame of this tensor. If the ring lives from hop to hop, rows of the hops before come first.
pub(super) fn first_slot(allocation: &Allocation, frame: u64, entry: &LayerIndex<'_>) -> usize {
    match allocation.kind {
        RowOrder::RunsOn | RowOrder::Persists => {
            ((frame * entry.rows() + entry.tensor.history()) % allocation.ring_rows) as usize
        }
        RowOrder::Restarts
        | RowOrder::State
        | RowOrder::Kept
        | RowOrder::Halves
        | RowOrder::Workspace
        | RowOrder::Recurrent
        | RowOrder::Block(_) => 0,
    }
}

/// The bytes of a row of a frame of this tensor.
pub(super) fn row_bytes(
    allocation: &Allocation,
    frame: u64,
    entry: &LayerIndex<'_>,
    row: u64,
) -> Range<usize> {
    slot_bytes(allocation, frame, first_slot(allocation, frame, entry) as u64 + row)
}

/// The bytes of a slot, counted beyond the end of the ring.
pub(super) fn slot_bytes(allocation: &Allocation, frame: u64, slot: u64) -> Range<usize> {
    let slot = slot % allocation.ring_rows;
    let start = ring_bytes(allocation, frame).start as u64 + slot * allocation.row_bytes;
    start as usize..(start + allocation.row_bytes) as usize
}
