//! Where rows lie: in rings of the arena, or in the caller's copy of a tensor.

use std::ops::Range;

use crate::check::{Kind, Store};

/// The caller's copy of a tensor.
#[derive(Default)]
pub(super) enum External {
    #[default]
    None,
    F32(Vec<f32>),
    I64(Vec<i64>),
}

/// The elements of a ring; of a double buffer those of the half that this frame takes.
pub(super) fn elements(store: &Store, frame: u64) -> Range<usize> {
    let half = if store.kind == Kind::Halves { frame % 2 } else { 0 };
    let base = store.bases[half as usize] / 4;
    base as usize..(base + store.ring_bytes() / 4) as usize
}

/// Slot of the first of a frame's `rows` rows.
pub(super) fn first_slot(store: &Store, frame: u64, rows: u64) -> usize {
    match store.kind {
        Kind::RunsOn => (frame * rows % store.ring_rows) as usize,
        Kind::Restarts | Kind::Halves | Kind::Workspace => 0,
    }
}

/// The elements of a row of a frame of so many rows.
pub(super) fn row_elements(store: &Store, frame: u64, rows: u64, row: u64) -> Range<usize> {
    let slot = (first_slot(store, frame, rows) as u64 + row) % store.ring_rows;
    let start = elements(store, frame).start as u64 + slot * store.row_bytes / 4;
    start as usize..(start + store.row_bytes / 4) as usize
}
