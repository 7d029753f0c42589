//! How the code of a layer reaches what it reads and writes: rings, the caller, and the channels of a tile.

use std::fmt::Display;

use csdfc_plan::check::RowOrder;
use csdfc_runtime::bind::Call;

use super::model::Model;
use super::stream;

/// The part of a layer that a call of a kernel makes: all output channels, or some of them.
pub(super) struct Part<'c> {
    /// The call.
    pub call: &'c Call,
    /// Number of the tile of its weights, an expression, if they are streamed.
    pub tile: Option<&'c str>,
    /// Whether it makes only channels from `first` on.
    pub is_tiled: bool,
}

impl<'c> Part<'c> {
    /// All of it.
    pub fn whole(call: &'c Call) -> Self {
        Part { call, tile: None, is_tiled: false }
    }

    /// The storage `data` of so many elements as the call sees it: from the channels of the tile on, if it holds channels
    /// that are tiled.
    pub fn channels(&self, data: String, holds_tiled: bool, elements: &dyn Display) -> String {
        match self.is_tiled && holds_tiled {
            true => format!("{data}.part(first, {elements} - first)"),
            false => data,
        }
    }
}

/// The text before the names of network inputs and outputs. A frame has them as fields; stages get them as parameters.
pub(super) fn caller(model: &Model<'_>) -> &'static str {
    if model.stages.is_empty() { "self." } else { "" }
}

/// The module of the rings that a layer reaches.
pub(super) fn ring_path(model: &Model<'_>, layer: usize) -> String {
    let partition = model.cnn().layers[layer].partition;
    match model.stages.iter().find(|stage| stage.partition == partition) {
        Some(stage) => format!("ring::{}", stage.name),
        None => "ring".into(),
    }
}

/// The ring of a allocation as a layer reaches it, in this frame.
pub(super) fn ring(model: &Model<'_>, layer: usize, allocation: usize) -> String {
    let path = format!("{}::{}", ring_path(model, layer), model.rings[allocation]);
    match model.allocations()[allocation].kind {
        RowOrder::Halves if model.stages.is_empty() => format!("{path}[0]"),
        RowOrder::Halves => format!("{path}[self.frame % 2]"),
        RowOrder::Restarts
        | RowOrder::RunsOn
        | RowOrder::Persists
        | RowOrder::State
        | RowOrder::Kept
        | RowOrder::Workspace
        | RowOrder::Recurrent
        | RowOrder::Block(_) => path,
    }
}

/// The slot of row 0 of this frame, as the kernel of a layer counts rows.
pub(super) fn first(model: &Model<'_>, layer: usize, allocation: usize) -> String {
    if model.is_stream() {
        return stream::first(model, layer, &model.allocations()[allocation]);
    }
    let Some(rows) = runs_on(model, allocation) else { return "0".into() };
    format!("self.frame * {rows} % {}", model.allocations()[allocation].ring_rows)
}

/// The row of a ring that is row `y` of the frame, counted over all frames if its count runs on.
pub(super) fn slot(model: &Model<'_>, allocation: usize, y: &str) -> String {
    if model.is_stream() {
        return stream::slot(model, &model.allocations()[allocation], y);
    }
    match runs_on(model, allocation) {
        Some(rows) => format!("self.frame * {rows} + {y}"),
        None => y.into(),
    }
}

/// The rows of a frame, if the next frame begins in another slot.
fn runs_on(model: &Model<'_>, allocation: usize) -> Option<u64> {
    let allocation = &model.allocations()[allocation];
    let rows = model.cnn().layers[allocation.tensor].rows();
    let moves = !rows.is_multiple_of(allocation.ring_rows);
    (allocation.kind == RowOrder::RunsOn && moves && !model.stages.is_empty()).then_some(rows)
}
