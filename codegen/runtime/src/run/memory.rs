//! Where rows lie in the rings of the arena.

use std::ops::Range;

use csdfc_plan::check::{Allocation, RowOrder};

/// The bytes of a ring, or of the half of a double buffer that this frame takes.
pub(super) fn ring_bytes(allocation: &Allocation, frame: u64) -> Range<usize> {
    let half = if allocation.kind == RowOrder::Halves { frame % 2 } else { 0 };
    let base = allocation.bases[half as usize];
    base as usize..(base + allocation.ring_bytes()) as usize
}

/// Slot of the first of a frame's `rows` rows.
pub(super) fn first_slot(allocation: &Allocation, frame: u64, rows: u64) -> usize {
    match allocation.kind {
        RowOrder::RunsOn => (frame * rows % allocation.ring_rows) as usize,
        RowOrder::Restarts | RowOrder::Halves | RowOrder::Workspace | RowOrder::Block(_) => 0,
    }
}

/// The bytes of a row of a frame with `rows` rows.
pub(super) fn row_bytes(allocation: &Allocation, frame: u64, rows: u64, row: u64) -> Range<usize> {
    let slot = (first_slot(allocation, frame, rows) as u64 + row) % allocation.ring_rows;
    let start = ring_bytes(allocation, frame).start as u64 + slot * allocation.row_bytes;
    start as usize..(start + allocation.row_bytes) as usize
}
