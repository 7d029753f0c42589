//! The state of one CNN that lasts from frame to frame.

use std::ops::Range;

use crate::bind::{self, Call, Slots, Source};
use crate::bytes::Bytes;
use crate::stream::{self, Hops};
use crate::streamed::Streamed;
use csdfc_plan::check::{Allocation, CnnIndex, Held, LayerIndex, Resolved, RowOrder};
use csdfc_plan::format::Layout;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::Output;

use super::arena::{Arena, Rest};
use super::error::{RunError, layer_error};
use super::memory::{first_slot, ring_bytes, row_bytes, slot_bytes};
use super::value::{self, Value};

/// The state of one CNN that lasts from frame to frame.
pub(super) struct State {
    /// The call that computes each layer; `None` for network inputs, and for layers that nothing reads.
    pub calls: Vec<Option<Call>>,
    /// Each layer's parameters in the blob.
    pub weights: Vec<Range<usize>>,
    /// Each layer's slices in the store, if its weights are streamed.
    pub streamed: Vec<Option<Streamed>>,
    pub places: Vec<Places>,
    /// The rows of each layer's tensor that is in no ring but with the caller: all rows of an input, which layers read
    /// there, and those of one firing of an output.
    pub externals: Vec<Option<Bytes>>,
    /// Layers of the network inputs, in the plan's order.
    pub inputs: Vec<usize>,
    /// Layers that make the network outputs, in the plan's order.
    pub outputs: Vec<usize>,
    /// Rows written of each tensor, over all frames.
    pub written: Vec<u64>,
    /// Rows released by each layer of each tensor that it holds, over all frames.
    pub released: Vec<Vec<u64>>,
    /// Rows of each allocation that all its readers have released, over all frames.
    pub free: Vec<u64>,
    /// Firings of each layer, over all frames.
    pub fired: Vec<u64>,
    /// How the hops of a stream are counted.
    pub hops: Hops,
    /// The states that it keeps.
    pub states: Vec<Kept>,
}

/// A state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    /// The ring of its output.
    pub from: usize,
    /// The ring of its input, to which it is copied.
    pub to: usize,
    /// What all elements of the input are in the first frame.
    pub initial: f32,
}

/// Where a layer reads and writes.
pub(super) struct Places {
    /// By operand, the allocation; `None` for the caller's copy.
    pub reads: Vec<Option<usize>>,
    /// By tensor held, the allocation; `None` for the caller's copy.
    pub holds: Vec<Option<usize>>,
    /// The allocations written; the first by the kernel.
    pub writes: Vec<usize>,
    /// By operand, the index of its tensor among those held, if its ring shares bytes with the ring that is written.
    pub follows: Vec<Option<usize>>,
    /// The bytes of its workspace.
    pub workspace: Range<usize>,
}

/// Rows of an allocation that are free before the first frame, as if they had been released: all if nothing reads it.
fn free_at_first(allocation: &Allocation) -> u64 {
    if allocation.readers.is_empty() { u64::MAX } else { 0 }
}

/// Rows of a tensor for which there is room if no ring holds it.
pub(super) fn external_rows(entry: &LayerIndex<'_>) -> u64 {
    match entry.layer.operator {
        Operator::Input(_) => entry.rows(),
        _ => entry.layer.rows_per_firing,
    }
}

/// Whether it holds a part of a state, which is still needed when its readers have released it.
fn is_of_state(allocation: &Allocation) -> bool {
    matches!(allocation.kind, RowOrder::State | RowOrder::Kept)
}

impl State {
    pub fn new(resolved: &Resolved<'_>, c: usize) -> Result<Self, RunError> {
        let cnn = &resolved.index.cnns[c];
        let allocations = &resolved.allocations[c];
        let (mut calls, mut places, mut externals) = (Vec::new(), Vec::new(), Vec::new());
        let mut streamed = Vec::new();
        for (l, entry) in cnn.layers.iter().enumerate() {
            let fail = |why| layer_error(resolved, c, l, why);
            let read_from = |tensor: usize| bind::read_from(allocations, l, tensor);
            let reads: Vec<Option<usize>> = entry.inputs.iter().map(|&tensor| read_from(tensor)).collect();
            let writes = bind::written_by(allocations, l);
            let held = &resolved.rates[c][l];
            let follows = |&s: &Option<usize>| {
                let (read, own) = (&allocations[s?], &allocations[*writes.first()?]);
                held.iter().position(|held| held.tensor == read.tensor && read.overlaps(own))
            };
            let place = Places {
                follows: reads.iter().map(follows).collect(),
                holds: held.iter().map(|held| read_from(held.tensor)).collect(),
                workspace: bind::workspace_of(allocations, l)
                    .map_or(0..0, |s| ring_bytes(&allocations[s], 0)),
                reads,
                writes,
            };
            let room = external_rows(entry);
            let external = match entry.tensor.external && place.writes.is_empty() {
                false => None,
                true => {
                    let row = entry.tensor.shape.row_elements() as u64 * entry.tensor.format.element.bytes();
                    let bytes = room * row;
                    let room = usize::try_from(bytes).ok().and_then(Bytes::zeros);
                    Some(room.ok_or(RunError::Memory { bytes })?)
                }
            };
            let call = bind::bind_layer(cnn, allocations, l, room).map_err(fail)?;
            let own = call.as_ref().map_or(Ok(None), |call| Streamed::new(resolved, c, l, call));
            streamed.push(own.map_err(fail)?);
            calls.push(call);
            places.push(place);
            externals.push(external);
        }
        let find = |name: &String| cnn.layers.iter().position(|entry| entry.layer.name == *name);
        let ring_of = |l: Option<usize>| places[l?].writes.first().copied();
        let states = cnn.cnn.states.iter().filter_map(|state| {
            let from = cnn.layers.iter().position(|entry| entry.tensor.name == state.tensor);
            Some(Kept { from: ring_of(from)?, to: ring_of(find(&state.input))?, initial: state.initial })
        });
        let states = states.collect();
        let made = |output: &Output| cnn.layers.iter().position(|entry| entry.tensor.name == output.tensor);
        Ok(State {
            states,
            calls,
            weights: Vec::new(),
            streamed,
            places,
            externals,
            inputs: cnn.cnn.inputs.iter().filter_map(find).collect(),
            outputs: cnn.cnn.outputs.iter().filter_map(made).collect(),
            written: vec![0; cnn.layers.len()],
            released: resolved.rates[c].iter().map(|held| vec![0; held.len()]).collect(),
            free: allocations.iter().map(free_at_first).collect(),
            fired: vec![0; cnn.layers.len()],
            hops: Hops::new(cnn, allocations).map_err(|why| layer_error(resolved, c, 0, why))?,
        })
    }

    /// The row of a layer's tensor, as a kernel that works along time counts it, that is row 0 of a hop.
    pub fn row_0(&self, cnn: &CnnIndex<'_>, layer: usize, hop: u64) -> i64 {
        stream::row_0(cnn, layer, self.hops.count(hop))
    }

    /// How a kernel of layer `l` counts the first row of a tensor in a frame: from the start of the stream, if the layer
    /// works along time.
    pub fn kernel_row_0(&self, cnn: &CnnIndex<'_>, l: usize, tensor: usize, frame: u64) -> i64 {
        if cnn.is_over_time(l) { self.row_0(cnn, tensor, frame) } else { 0 }
    }

    /// The rows of a frame that exist, of some rows of a layer: those of a stream do once it has begun.
    pub fn existing(&self, cnn: &CnnIndex<'_>, l: usize, frame: u64, rows: Range<u64>) -> Range<u64> {
        let missing = u64::try_from(-self.row_0(cnn, l, frame)).unwrap_or(0);
        rows.start.max(missing).min(rows.end)..rows.end
    }

    /// Goes on as after `frames` frames: where the rings of a stream are.
    pub fn go_on(
        &mut self,
        cnn: &CnnIndex<'_>,
        rates: &[Vec<Held>],
        allocations: &[Allocation],
        frames: u64,
    ) {
        self.restart(allocations);
        let Some(last) = frames.checked_sub(1) else { return };
        for (l, entry) in cnn.layers.iter().enumerate() {
            self.fired[l] = frames * entry.layer.firings;
            self.written[l] = frames * entry.rows();
        }
        for (released, held) in self.released.iter_mut().zip(rates) {
            for (released, held) in released.iter_mut().zip(held) {
                let kept = held.keep.last().copied().unwrap_or(0);
                *released = last * cnn.layers[held.tensor].rows() + u64::from(kept);
            }
        }
        for (s, allocation) in allocations.iter().enumerate() {
            if let Some(free) = self.released_by_all(rates, allocation) {
                self.free[s] = free;
            }
        }
    }

    /// Rows of an allocation that all its readers have released. None if it has no readers.
    fn released_by_all(&self, rates: &[Vec<Held>], allocation: &Allocation) -> Option<u64> {
        let by = |&reader: &usize| {
            let i = rates[reader].iter().position(|held| held.tensor == allocation.tensor)?;
            Some(self.released[reader][i])
        };
        allocation.readers.iter().filter_map(by).min()
    }

    /// Forgets all frames so far, after one that was not finished.
    pub fn restart(&mut self, allocations: &[Allocation]) {
        self.written.fill(0);
        self.released.iter_mut().for_each(|of_layer| of_layer.fill(0));
        self.free = allocations.iter().map(free_at_first).collect();
        self.fired.fill(0);
    }

    /// The bytes that a layer reads as one of its operands to make rows `y`, from the arena without the bytes that are
    /// being written.
    pub fn source<'a>(
        &'a self,
        resolved: &Resolved<'_>,
        c: usize,
        l: usize,
        operand: usize,
        y: &Range<usize>,
        rest: Rest<'a>,
    ) -> Option<Source<'a>> {
        let (cnn, allocations) = (&resolved.index.cnns[c], &resolved.allocations[c]);
        let tensor = cnn.layers[l].inputs[operand];
        // A frame's rows are read by the firings of the same frame.
        let frame = self.fired[l] / cnn.layers[l].layer.firings;
        let places = &self.places[l];
        let row_0 = self.kernel_row_0(cnn, l, tensor, frame);
        // The slot of row 0 as the kernel counts, in a ring of so many rows, if the frame begins at this slot.
        let first = |slot: usize, rows: u64| (slot as i64 - row_0).rem_euclid(rows as i64) as usize;
        match (places.reads[operand], places.follows[operand]) {
            (Some(s), Some(held)) => {
                // One row is made, from only these rows.
                let window = resolved.rates[c][l][held].rows.get(y.start)?;
                let exists = usize::try_from(-row_0).unwrap_or(0);
                let rows = (window.start as usize).max(exists)..(window.end as usize).max(exists);
                let (ring, row) = (ring_bytes(&allocations[s], frame), allocations[s].row_bytes as usize);
                let data = match rows.is_empty() {
                    true => &[],
                    false => rest.get(ring.start + rows.start * row..ring.start + rows.end * row)?,
                };
                let kernel_row = |row: usize| (row as i64 + row_0) as usize;
                Some(Source { data, slots: Slots::Only(kernel_row(rows.start)..kernel_row(rows.end)) })
            }
            (Some(s), None) => {
                let data = rest.get(ring_bytes(&allocations[s], frame))?;
                let slot = first_slot(&allocations[s], frame, &cnn.layers[tensor]);
                Some(Source { data, slots: Slots::Ring(first(slot, allocations[s].ring_rows)) })
            }
            (None, _) => {
                let data = self.externals[tensor].as_deref()?;
                Some(Source { data, slots: Slots::Ring(first(0, cnn.layers[tensor].rows())) })
            }
        }
    }

    /// The tensor of a layer that makes it in one firing, just after, if it lies as HWC.
    pub fn whole(
        &self,
        cnn: &CnnIndex<'_>,
        allocations: &[Allocation],
        arena: &Arena,
        l: usize,
        frame: u64,
    ) -> Option<Value> {
        let entry = &cnn.layers[l];
        let (shape, element) = (&entry.tensor.shape, entry.tensor.format.element);
        if entry.tensor.format.layout != Layout::Hwc {
            return None;
        }
        let bytes = match (&self.externals[l], self.places[l].writes.first()) {
            (Some(rows), _) => return Some(value::read(rows, element, shape, shape)),
            (None, Some(&s)) => {
                let row = |y| arena.all().get(row_bytes(&allocations[s], frame, entry, y));
                (0..entry.rows()).map(row).collect::<Option<Vec<&[u8]>>>()?.concat()
            }
            (None, None) => return None,
        };
        Some(value::read(&bytes, element, shape, shape))
    }

    /// Notes that a layer has released the rows of a frame below `keep` of each tensor that it holds, and gives the
    /// rows that nobody needs any more. If `keep` is `None`, it has released no more than before.
    pub fn release(
        &mut self,
        cnn: &CnnIndex<'_>,
        rates: &[Vec<Held>],
        allocations: &[Allocation],
        l: usize,
        frame: u64,
        keep: impl Fn(&Held) -> Option<u32>,
    ) -> Vec<Range<usize>> {
        let mut freed = Vec::new();
        for (i, held) in rates[l].iter().enumerate() {
            let rows = cnn.layers[held.tensor].rows();
            let Some(keep) = keep(held) else { continue };
            self.released[l][i] = frame * rows + u64::from(keep);
            let Some(s) = self.places[l].holds[i].filter(|&s| !is_of_state(&allocations[s])) else {
                continue;
            };
            let free = self.released_by_all(rates, &allocations[s]).unwrap_or(self.free[s]);
            for row in std::mem::replace(&mut self.free[s], free)..free {
                let slot = match allocations[s].kind {
                    RowOrder::RunsOn | RowOrder::Persists => row,
                    _ => row % rows,
                };
                freed.push(slot_bytes(&allocations[s], row / rows, slot));
            }
        }
        freed
    }
}
