//! Where rows lie in the rings of the arena.

use std::ops::Range;

use csdfc_plan::check::{Kind, Store};

/// The bytes of a ring, or of the half of a double buffer that this frame takes.
pub(super) fn ring_bytes(store: &Store, frame: u64) -> Range<usize> {
    let half = if store.kind == Kind::Halves { frame % 2 } else { 0 };
    let base = store.bases[half as usize];
    base as usize..(base + store.ring_bytes()) as usize
}

/// Slot of the first of a frame's `rows` rows.
pub(super) fn first_slot(store: &Store, frame: u64, rows: u64) -> usize {
    match store.kind {
        Kind::RunsOn => (frame * rows % store.ring_rows) as usize,
        Kind::Restarts | Kind::Halves | Kind::Workspace | Kind::Block(_) => 0,
    }
}

/// The bytes of a row of a frame with `rows` rows.
pub(super) fn row_bytes(store: &Store, frame: u64, rows: u64, row: u64) -> Range<usize> {
    let slot = (first_slot(store, frame, rows) as u64 + row) % store.ring_rows;
    let start = ring_bytes(store, frame).start as u64 + slot * store.row_bytes;
    start as usize..(start + store.row_bytes) as usize
}
