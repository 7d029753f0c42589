//! Occupancy: which bytes of a ring are in use, firing by firing.
//!
//! A ring whose rows wrap is in use as a whole as long as it lives, and so is a ring between stages. A *whole* ring
//! holds every row of a frame at a place of its own. Only the rows from the first that a reader still needs to the last
//! begun are in use. Other rings may lie at addresses whose rows are not yet begun, or no longer needed:
//!
//! ```text
//! rows of a ring
//!    ^         . . . . .
//!    |      begun  /  x
//!    |           / x x x
//!    |         / x x x x        x: in use
//!    |       / x x x /  released by all readers
//!    |     / x x x /
//!    +------------------> firings
//! ```
//!
//! The same holds from row to row within one firing that makes several rows. Row o is made when the rows below
//! `keep(o)` of each operand are free. Here `keep` is the count for one row per firing (`operators/rows.rs`).
//!
//! # Layers that write where they read
//! A plan says that two rings share bytes by their addresses alone. If a layer's ring shares bytes with a ring that it
//! reads, the layer makes its rows one by one, ascending. Row o is written when exactly the rows below `keep(o)` are
//! released. So a kernel never writes what it reads. `run` and the emitted crate hand the kernel the rows that it reads
//! as a ring of their own, and one row to write. A mistake in a plan could therefore give wrong figures, but no slice
//! would cover another. The checker replays exactly this in an arena of tags.
//!
//! ```
//! use csdfc_plan::plan::StorageModel;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::execution::{Rings, execute};
//! use csdfc_planner::frame::lower::RateTable;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let task = &task::tasks(&application)[0];
//! let (rates, choice) = (RateTable::new(task.network), Choice::none(task.network));
//! let execution = execute(task, &rates, &choice, StorageModel::Tensors, Rings::OnDemand)?;
//!
//! // When the 2×2 pool makes row o, the rows of its operand below 2 o are free: [6, 28] floats each.
//! let sweep = execution.sharing.sweeps.iter().find(|sweep| task.network.layer(sweep.layer).name == "S2");
//! let sweep = sweep.ok_or("the pool makes its rows at once")?;
//! let free = &sweep.operands[0].free;
//! assert_eq!(free[..3], [0, 2 * 672, 4 * 672]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use csdfc_network::{Layer, LayerId};
use csdfc_plan::operator::Operator;

use super::lower::{RateTable, TensorRates};
use super::request::{FiringOrder, OccupancyProfile, Request};
use super::task::PartitionedCnn;

/// A firing that makes several rows of a whole ring, one after another. While it does, rows of the whole rings that it
/// reads become free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// The firing.
    pub firing: usize,
    /// The layer that fires.
    pub layer: LayerId,
    /// The ring that it writes, an index into the execution's requests.
    pub output: usize,
    /// Bytes of that ring begun when each row of the firing is made.
    pub begun: Vec<u64>,
    /// The rings that it reads and that make room.
    pub operands: Vec<Swept>,
    /// Whether it costs time to make one row at a time. Then the layer is one of [`AddressSharing::costly`].
    pub is_costly: bool,
}

/// A ring of which rows become free while a firing goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Swept {
    /// The ring, an index into the execution's requests.
    pub request: usize,
    /// Bytes of it that are free when each row of the firing is made.
    pub free: Vec<u64>,
}

impl Sweep {
    /// The row at which the rings that count are fullest, and the bytes that this saves compared with all rows of the
    /// firing begun and none released. If several rows are fullest, it is the first.
    pub fn fullest(&self, counts: impl Fn(usize) -> bool) -> (usize, u64) {
        let begun = |row: usize| if counts(self.output) { self.begun[row] } else { 0 };
        let operands = || self.operands.iter().filter(|operand| counts(operand.request));
        let free = |row: usize| operands().map(|operand| operand.free[row]).sum::<u64>();
        let last = self.begun.len() - 1;
        // More bytes may be free when a row is made than have been begun by then, but never more than were in use
        // before.
        let less = |row: usize| (begun(last) - begun(row)) + (free(row) - free(0));
        let fullest = (0..=last).min_by_key(|row| less(*row)).unwrap_or(0);
        (fullest, less(fullest))
    }

    /// The distance of the two rings for this firing, in bytes. If the ring that is read, of `bytes` bytes, lies above
    /// the ring that is written, it must start at least this far above that ring's start. Rows that are made when all of
    /// it is free do not count: so the first operand of a concat along rows does not keep the other operands' rows away.
    pub fn distance(&self, operand: &Swept, bytes: u64) -> i64 {
        let in_use = self.begun.iter().zip(&operand.free).filter(|(_, free)| **free < bytes);
        in_use.map(|(begun, free)| *begun as i64 - *free as i64).max().unwrap_or(0)
    }
}

/// Within which firings rings may share addresses, and which rings never do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressSharing {
    /// Firings that may go row by row, ascending.
    pub sweeps: Vec<Sweep>,
    /// Pairs of requests that share no address, because one of them wraps or the layer is computed in tiles. The layer
    /// writes the first and reads the second.
    pub apart: Vec<(usize, usize)>,
    /// The layers for which it costs time to make one row at a time, ascending. For these, a choice decides whether
    /// they do.
    pub costly: Vec<RowByRowOption>,
}

/// A layer that makes a firing's rows at once or, which takes longer, one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowByRowOption {
    /// The layer.
    pub layer: LayerId,
    /// Pairs of requests that share no address, unless the layer makes its rows one by one. It writes the first and
    /// reads the second.
    pub pairs: Vec<(usize, usize)>,
}

/// The most bytes of filters that stay in the nearest cache, so that it costs nothing to read them again for every row.
const CACHED_FILTERS: u64 = 64 * 1024;

/// The fewest pixels of a line of integers for which a call of its own takes next to no time. On a Cortex-A57, kernels of
/// integers compute pixels in fours and prepare their filters at each call: a network of 5 pixels a line took 1.6 times as long.
const WIDE_LINE: usize = 8;

/// Whether the rows of a layer are single pixels, or lines of integers of so few that a call for each row takes noticeably
/// longer than one for all.
pub fn has_narrow_rows(layer: &Layer) -> bool {
    !layer.shape.is_image() || layer.quantization.is_some() && layer.shape.dims[3] < WIDE_LINE
}

/// Finds which bytes of every whole ring are in use, and how the rings may share addresses. `requests` are all requests
/// of one network, in storage model `tensors`.
pub fn fill(
    task: &PartitionedCnn<'_>,
    rates: &RateTable<'_>,
    rows: &[u64],
    orders: &[FiringOrder],
    requests: &mut [Request],
) -> AddressSharing {
    let network = task.network;
    let times = Times::new(network.layers.len(), orders);
    let mut whole = vec![None; network.layers.len()];
    for (index, request) in requests.iter().enumerate() {
        let height = network.layer(request.tensor).rows() as u64;
        let is_of_frame = !request.pipelined && !request.persists() && request.state.is_none();
        if is_of_frame && request.is_ring() && request.ring_rows >= height {
            whole[request.tensor.0] = Some(index);
        }
    }
    let mut readings: Vec<Vec<Reading>> = vec![Vec::new(); network.layers.len()];
    for reader in network.ids() {
        for TensorRates { tensor, released, .. } in rates.get(reader, rows[reader.0]).iter() {
            if whole[tensor.0].is_some() {
                readings[tensor.0].push(Reading { reader, released: Arc::clone(released) });
            }
        }
    }
    let lives = Lives { task, rates, rows, times, whole, readings };
    let mut request_of = vec![None; network.layers.len()];
    for (index, request) in requests.iter_mut().enumerate().filter(|(_, request)| request.is_ring()) {
        request_of[request.tensor.0] = Some(index);
        if lives.whole[request.tensor.0].is_some() {
            request.occupancy_profile = Some(lives.occupancy_profile(request.tensor));
        }
    }
    let mut sharing = AddressSharing::default();
    for id in network.ids() {
        let mut pairs = Vec::new();
        for tensor in network.layer(id).inputs.iter().map(|operand| operand.layer) {
            let (Some(written), Some(read)) = (request_of[id.0], request_of[tensor.0]) else { continue };
            match (lives.whole[id.0], lives.whole[tensor.0]) {
                (Some(_), Some(_)) if !lives.is_tiled(id) => pairs.push((written, read)),
                _ => sharing.apart.push((written, read)),
            }
        }
        if lives.is_costly(id) && !pairs.is_empty() {
            sharing.costly.push(RowByRowOption { layer: id, pairs });
        }
        sharing.sweeps.extend(lives.sweeps(id));
    }
    sharing.sweeps.sort_unstable_by_key(|sweep| sweep.firing);
    sharing
}

/// How a layer reads a tensor.
#[derive(Debug, Clone)]
struct Reading {
    reader: LayerId,
    /// Rows released after each of its firings.
    released: Arc<[u64]>,
}

/// The firings of each layer on the time line, ascending.
struct Times {
    /// Those of layer i are `all[starts[i]..starts[i + 1]]`.
    all: Vec<usize>,
    starts: Vec<usize>,
}

impl Times {
    fn new(layers: usize, orders: &[FiringOrder]) -> Self {
        let order = || orders.iter().flat_map(FiringOrder::order);
        let mut starts = vec![0; layers + 1];
        order().for_each(|layer| starts[layer.0 + 1] += 1);
        for layer in 0..layers {
            starts[layer + 1] += starts[layer];
        }
        let (mut all, mut next) = (vec![0; starts[layers]], starts.clone());
        for (time, layer) in order().enumerate() {
            all[next[layer.0]] = time;
            next[layer.0] += 1;
        }
        Times { all, starts }
    }

    fn firings_of(&self, layer: LayerId) -> &[usize] {
        &self.all[self.starts[layer.0]..self.starts[layer.0 + 1]]
    }
}

/// When each layer fires, and which rings are whole. Occupancy follows from this.
struct Lives<'a> {
    task: &'a PartitionedCnn<'a>,
    rates: &'a RateTable<'a>,
    rows: &'a [u64],
    times: Times,
    /// By tensor, the request of its whole ring.
    whole: Vec<Option<usize>>,
    /// By tensor, who reads its whole ring.
    readings: Vec<Vec<Reading>>,
}

impl Lives<'_> {
    /// Whether it takes longer to make the rows of a firing one by one. It does if filters have to be read again for
    /// each row, if a row has few pixels, or if workers could share the rows.
    fn is_costly(&self, id: LayerId) -> bool {
        let layer = self.task.network.layer(id);
        let is_light =
            self.task.workers == 1 && !has_narrow_rows(layer) && filter_bytes(layer) <= CACHED_FILTERS;
        self.rows[id.0] > 1 && !is_light
    }

    /// Whether a layer makes its output in tiles of channels, each for all rows. Its operands then stay until the last
    /// tile.
    fn is_tiled(&self, id: LayerId) -> bool {
        self.task.tiling(id, self.rows[id.0]).is_some()
    }

    fn occupancy_profile(&self, tensor: LayerId) -> OccupancyProfile {
        let layer = self.task.network.layer(tensor);
        let (height, row_bytes) = (layer.rows() as u64, layer.row_bytes());
        let made = |p: u64| ((p + 1) * self.rows[tensor.0]).min(height) * row_bytes;
        let begun = self.times.firings_of(tensor).iter().zip(0..).map(|(time, p)| (*time, made(p))).collect();
        let readings = &self.readings[tensor.0];
        // The firings of a single reader, of which most tensors have no more, are in order already.
        if let [only] = readings.as_slice() {
            let mut last = 0;
            let ends = self.times.firings_of(only.reader).iter().zip(&*only.released);
            let releases = ends.filter(|&(_, &rows)| std::mem::replace(&mut last, rows) < rows);
            let released = releases.map(|(time, rows)| (*time, rows * row_bytes)).collect();
            return OccupancyProfile { begun, released };
        }
        let many = readings.iter().map(|reading| reading.released.len()).sum();
        let mut ends: Vec<(usize, usize, u64)> = Vec::with_capacity(many);
        for (r, reading) in readings.iter().enumerate() {
            let times = self.times.firings_of(reading.reader);
            ends.extend(times.iter().zip(&*reading.released).map(|(time, rows)| (*time, r, *rows)));
        }
        ends.sort_unstable();
        let mut each = vec![0; readings.len()];
        let mut released: Vec<(usize, u64)> = Vec::with_capacity(many);
        let mut last = 0;
        for (time, reader, rows) in ends {
            each[reader] = rows;
            let all = each.iter().copied().min().unwrap_or(0);
            if all > last {
                last = all;
                released.push((time, all * row_bytes));
            }
        }
        OccupancyProfile { begun, released }
    }

    /// Rows of a tensor that all readers but one have released before a firing.
    fn released_by_others(&self, tensor: LayerId, reader: LayerId, firing: usize) -> u64 {
        let others = self.readings[tensor.0].iter().filter(|reading| reading.reader != reader);
        let released = others.map(|reading| {
            let fired = self.times.firings_of(reading.reader).partition_point(|time| *time < firing);
            fired.checked_sub(1).map_or(0, |last| reading.released[last])
        });
        released.min().unwrap_or(u64::MAX)
    }

    /// The firings of a layer that may go row by row.
    fn sweeps(&self, id: LayerId) -> Vec<Sweep> {
        let (layer, rows) = (self.task.network.layer(id), self.rows[id.0]);
        let goes_row_by_row = rows > 1 && !self.is_tiled(id);
        let Some(output) = self.whole[id.0].filter(|_| goes_row_by_row) else { return Vec::new() };
        let by_row = self.rates.get(id, 1);
        let operands =
            || by_row.iter().filter_map(|by| Some((by.tensor, self.whole[by.tensor.0]?, &*by.released)));
        if operands().next().is_none() {
            return Vec::new();
        }
        let height = layer.rows() as u64;
        let is_costly = self.is_costly(id);
        let mut keeps: Vec<(WholeRing, &[u64])> = Vec::new();
        for (tensor, request, released) in operands() {
            let row_bytes = self.task.network.layer(tensor).row_bytes();
            keeps.push((WholeRing { tensor, request, row_bytes }, released));
        }
        let mut sweeps = Vec::new();
        let row_bytes = layer.row_bytes();
        for (&firing, p) in self.times.firings_of(id).iter().zip(0..) {
            let made = p * rows..((p + 1) * rows).min(height);
            let mut operands = Vec::new();
            for (operand, released) in &keeps {
                let others = self.released_by_others(operand.tensor, id, firing);
                // The rows released before this one is made.
                let kept = |row: u64| match row.checked_sub(1) {
                    Some(before) => released[before as usize].min(others),
                    None => 0,
                };
                if kept(made.end - 1) > kept(made.start) {
                    let free = made.clone().map(|row| kept(row) * operand.row_bytes).collect();
                    operands.push(Swept { request: operand.request, free });
                }
            }
            if !operands.is_empty() {
                let begun = made.map(|row| (row + 1) * row_bytes).collect();
                sweeps.push(Sweep { firing, layer: id, output, begun, operands, is_costly });
            }
        }
        sweeps
    }
}

/// A whole ring that a firing reads.
#[derive(Debug, Clone, Copy)]
struct WholeRing {
    tensor: LayerId,
    request: usize,
    row_bytes: u64,
}

/// Bytes of a layer's filters, if it has any.
pub fn filter_bytes(layer: &Layer) -> u64 {
    match layer.operator {
        Operator::Conv(_) | Operator::ConvTranspose(_) | Operator::Gemm(_) | Operator::Recurrent(_) => {
            layer.parameters.first().map_or(0, |filters| filters.elements() as u64 * 4)
        }
        _ => 0,
    }
}
