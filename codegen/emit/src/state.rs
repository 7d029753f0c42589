//! The code by which a model keeps something from frame to frame: begins anew, saves and restores.
//!
//! What is saved are the rings that live from frame to frame, one after another, and before them the number of the hop, if
//! the model is a stream.

use super::model::Model;
use super::source::Source;

/// Bytes of the number of a hop.
const HOP_BYTES: u64 = 4;

/// The rings that live from frame to frame, and where the bytes of each begin in what is saved.
fn rings(model: &Model<'_>) -> Vec<(usize, u64)> {
    let mut at = if model.is_stream() { HOP_BYTES } else { 0 };
    let persisting = model.allocations().iter().enumerate().filter(|(_, allocation)| allocation.persists());
    let place = |(s, allocation): (usize, &csdfc_plan::check::Allocation)| {
        at += allocation.bytes();
        (s, at - allocation.bytes())
    };
    persisting.map(place).collect()
}

/// Bytes of what is saved.
pub(super) fn saved_bytes(model: &Model<'_>) -> u64 {
    let end = |(s, at): &(usize, u64)| at + model.allocations()[*s].bytes();
    rings(model).last().map_or(0, end)
}

/// Writes the constant with the bytes of what is saved.
pub(super) fn write_size(source: &mut Source, model: &Model<'_>) {
    source.line("/// Bytes of what the model keeps from frame to frame.");
    source.line(format!("pub const STATE_BYTES: usize = {};", saved_bytes(model)));
    source.gap();
}

/// Writes `reset`, `save` and `restore`.
pub(super) fn write_methods(source: &mut Source, model: &Model<'_>) {
    source.line(match model.is_stream() {
        true => "/// Begins a new stream: the rows so far are forgotten.",
        false => "/// Begins anew: what was kept of the frames so far is forgotten.",
    });
    source.open("pub fn reset(&mut self) {");
    if model.is_stream() {
        source.line("self.hop = 0;");
    }
    for ([_, to], initial) in model.states() {
        source.line(format!("self.memory.fill(ring::{}, {initial:?});", model.rings[to]));
    }
    source.close("}");
    source.gap();
    source.line("/// Writes down what the model keeps from frame to frame, for [`Model::restore`].");
    source.open("pub fn save(&self, state: &mut [u8; STATE_BYTES]) {");
    if model.is_stream() {
        source.line(format!("state[..{HOP_BYTES}].copy_from_slice(&(self.hop as u32).to_le_bytes());"));
    }
    for (s, at) in rings(model) {
        let end = at + model.allocations()[s].bytes();
        source.line(format!("self.memory.save(ring::{}, &mut state[{at}..{end}]);", model.rings[s]));
    }
    source.close("}");
    source.gap();
    source
        .line("/// Goes on from what [`Model::save`] has written, perhaps of another model of this crate's.");
    source.open("pub fn restore(&mut self, state: &[u8; STATE_BYTES]) {");
    if model.is_stream() {
        let end = model.hops.first_full + model.hops.period;
        source.line("let [a, b, c, d, ..] = *state;");
        source.line(format!("self.hop = u32::from_le_bytes([a, b, c, d]) as usize % {end};"));
    }
    for (s, at) in rings(model) {
        let end = at + model.allocations()[s].bytes();
        source.line(format!("self.memory.restore(ring::{}, &state[{at}..{end}]);", model.rings[s]));
    }
    source.close("}");
    source.gap();
}
