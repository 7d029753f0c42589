//! The code of streams: which rows of a hop exist, and how kernels that work along time count them.

use csdfc_plan::check::{Allocation, RowOrder};

use super::model::Model;
use super::source::Source;

/// The variable with the rows that a kernel makes, as it counts them, if they are not those of the hop.
pub(super) const COUNTED: &str = "counted";

/// Writes the code that leaves out the rows of variable `rows` that do not exist, since the tensor lags behind and the
/// stream has just begun.
pub(super) fn write_existing(source: &mut Source, model: &Model<'_>, tensor: usize, rows: &str) {
    let (height, delay) = size(model, tensor);
    if delay > 0 {
        let missing = format!("usize::saturating_sub({delay}, {})", rows_before(height));
        source.line(format!("let missing = {missing};"));
        source.line(format!("let {rows} = {rows}.start.max(missing).min({rows}.end)..{rows}.end;"));
    }
}

/// Whether rows of a tensor are missing in the first hops.
pub(super) fn lags(model: &Model<'_>, tensor: usize) -> bool {
    size(model, tensor).1 > 0
}

/// Rows `rows` of a hop, as the kernel of a layer counts them that works along time: from the start of the stream.
pub(super) fn counted(model: &Model<'_>, tensor: usize, rows: &str) -> String {
    let (height, delay) = size(model, tensor);
    let hops = rows_before(height);
    let end = |end: &str| match delay {
        0 => format!("{hops} + {rows}.{end}"),
        delay => format!("{hops} + {rows}.{end} - {delay}"),
    };
    format!("{}..{}", end("start"), end("end"))
}

/// The slot of the row that a kernel counts as row 0: of the stream if the layer works along time, otherwise of the hop.
pub(super) fn first(model: &Model<'_>, layer: usize, allocation: &Allocation) -> String {
    let (height, delay) = size(model, allocation.tensor);
    let (ring_rows, history) = (allocation.ring_rows, history(model, allocation.tensor));
    let moves = height % ring_rows != 0;
    let hops = rows_before(height);
    match (model.cnn().is_over_time(layer), allocation.kind) {
        (true, RowOrder::Persists) => ((history + delay) % ring_rows).to_string(),
        (true, _) if moves => {
            format!("({delay} + {ring_rows} - {hops} % {ring_rows}) % {ring_rows}")
        }
        (true, _) => (delay % ring_rows).to_string(),
        (false, RowOrder::Persists) if moves => format!("({hops} + {history}) % {ring_rows}"),
        (false, RowOrder::Persists) => (history % ring_rows).to_string(),
        (false, _) => "0".into(),
    }
}

/// Row `y` of a hop, counted such that it gives the slot of a ring.
pub(super) fn slot(model: &Model<'_>, allocation: &Allocation, y: &str) -> String {
    let hops = rows_before(size(model, allocation.tensor).0);
    match history(model, allocation.tensor) {
        0 => y.into(),
        history => format!("{hops} + {history} + {y}"),
    }
}

/// Rows of all hops before this one, of a tensor of so many rows.
fn rows_before(height: u64) -> String {
    if height == 1 { "self.hop".into() } else { format!("self.hop * {height}") }
}

/// Rows of a tensor in a hop, and by how many it lags behind.
fn size(model: &Model<'_>, tensor: usize) -> (u64, u64) {
    let entry = &model.cnn().layers[tensor];
    (entry.rows(), entry.tensor.stream.map_or(0, |stream| stream.delay))
}

fn history(model: &Model<'_>, tensor: usize) -> u64 {
    model.cnn().layers[tensor].tensor.history()
}
