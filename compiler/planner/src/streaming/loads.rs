//! Loads that overlap computing: when each load ends, and how blocks that live longer let it start earlier.
//!
//! The store reads one tile after another, in the order in which layers use them. The first load into a block starts
//! when the plan lets it and the store is free. A simulation of this gives the time of a frame. Without overlap, each
//! load would start right before it is needed, and computing and reading would take turns.
//!
//! Partitions that run at the same time are simulated one by one. They share the store, so their reads take longer. They
//! share the arena too, so each gets a part of the room that is left.

use csdfc_network::LayerId;
use csdfc_runtime::bind::Tiling;

use super::reads::read_ns;
use crate::cost::timing::Timing;
use crate::frame::execution::Execution;
use crate::frame::request::{FiringOrder, Request, RequestKind};
use crate::frame::task::PartitionedCnn;
use crate::storage::{Item, Storage};

/// One frame, simulated. Times are in nanoseconds; those of partitions that run at the same time begin with each of them.
pub(super) struct Simulated {
    /// By layer, how long its firings wait for weights.
    pub waits: Vec<f64>,
    /// When each firing ends.
    ends: Vec<f64>,
    /// By layer, when the store is free for the first load of its weights.
    free: Vec<f64>,
}

/// The blocks of a layer, in the order in which tiles use them, as indices of requests.
fn blocks(execution: &Execution, id: LayerId) -> Vec<usize> {
    let is_block = |request: &Request| request.kind == RequestKind::Block && request.tensor == id;
    (0..execution.requests.len()).filter(|i| is_block(&execution.requests[*i])).collect()
}

/// Simulates a frame of a CNN. `None` if the store is not known.
pub(super) fn simulated(
    task: &PartitionedCnn<'_>,
    timing: &Timing<'_>,
    execution: &Execution,
) -> Option<Simulated> {
    Some(Simulation::new(task, timing, execution)?.run(None, execution))
}

/// By layer, how much shorter the frame would be if its weights were in memory, in nanoseconds. Empty if that is not known.
pub fn exposed(task: &PartitionedCnn<'_>, timing: &Timing<'_>, execution: &Execution) -> Vec<f64> {
    let Some(simulation) = Simulation::new(task, timing, execution) else { return Vec::new() };
    let waits = |kept| simulation.run(kept, execution).waits.iter().sum::<f64>();
    let all = waits(None);
    let without = |id: LayerId| match task.streaming(id) {
        Some(_) => all - waits(Some(id)),
        None => 0.0,
    };
    task.network.ids().map(without).collect()
}

/// What a simulation needs to know of a frame, apart from when blocks begin to live.
struct Simulation<'a> {
    task: &'a PartitionedCnn<'a>,
    timing: &'a Timing<'a>,
    /// By partition, how many times longer reads take.
    stretch: Vec<f64>,
    layers: Vec<LayerReads>,
}

/// What the firings of a layer have in common.
struct LayerReads {
    /// How long each computes, in nanoseconds.
    ns: f64,
    /// How many of them read weights: the first ones.
    times: u64,
    /// The blocks of their tiles, as indices of requests.
    blocks: Vec<usize>,
    /// Bytes of each tile.
    tiles: Vec<u64>,
}

impl<'a> Simulation<'a> {
    /// Of a frame. `None` if the store is not known.
    fn new(task: &'a PartitionedCnn<'a>, timing: &'a Timing<'a>, execution: &Execution) -> Option<Self> {
        if !timing.has_store() {
            return None;
        }
        let of_layer = |(id, p): (LayerId, usize)| {
            let rows = execution.rows[id.0];
            let firings = (task.network.layer(id).rows() as u64).div_ceil(rows.max(1)).max(1);
            let times = task.times_read(id, rows);
            let blocks = if times > 0 { blocks(execution, id) } else { Vec::new() };
            let tiles = blocks.first().map(|first| task.tiles(id, rows, execution.requests[*first].bytes).1);
            LayerReads {
                ns: timing.layer_ns(task, p, id, rows, execution.goes_one_by_one(id)) / firings as f64,
                times,
                blocks,
                tiles: tiles.unwrap_or_default(),
            }
        };
        Some(Simulation {
            task,
            timing,
            stretch: timing.read_stretch(task, &read_ns(task, timing, execution)),
            layers: task.network.ids().zip(task.partition_of()).map(of_layer).collect(),
        })
    }

    /// Simulates the frame, with the weights of the layer `kept` in memory.
    fn run(&self, kept: Option<LayerId>, execution: &Execution) -> Simulated {
        let mut fired = vec![0u64; self.layers.len()];
        let mut free_for = vec![0.0; self.layers.len()];
        let mut waits = vec![0.0; self.layers.len()];
        // When the last firing of each layer has ended.
        let mut ended = vec![0.0; self.layers.len()];
        let (mut now, mut free) = (0.0f64, 0.0f64);
        let mut ends: Vec<f64> = Vec::new();
        for (p, order) in execution.orders.iter().enumerate() {
            if self.task.together[p].contains(&true) {
                (now, free) = (0.0, 0.0);
            }
            let began = now;
            for id in order.order() {
                let LayerReads { ns, times, blocks, tiles } = &self.layers[id.0];
                let is_first = fired[id.0] == 0;
                let reads = kept != Some(id) && fired[id.0] < *times;
                fired[id.0] += 1;
                if !reads || blocks.is_empty() {
                    now += ns;
                    ends.push(now);
                    continue;
                }
                if is_first {
                    free_for[id.0] = free;
                }
                let all = tiles.iter().sum::<u64>().max(1) as f64;
                let mut used: Vec<f64> = Vec::new();
                for (k, bytes) in tiles.iter().enumerate() {
                    let may = match k.checked_sub(blocks.len()) {
                        Some(before) => used[before],
                        None if !is_first => ended[id.0],
                        None => match execution.requests[blocks[k]].live.0 {
                            begin if begin > execution.windows[p].start => ends[begin - 1],
                            _ => began,
                        },
                    };
                    free = free.max(may) + self.timing.read_ns(&[*bytes]) * self.stretch[p];
                    // If a layer is not tiled, its first firing waits for all its weights, and so do the layers that
                    // read its rows.
                    let ready = now.max(free);
                    waits[id.0] += ready - now;
                    now = ready + ns * *bytes as f64 / all;
                    used.push(now);
                }
                ends.push(now);
                ended[id.0] = now;
            }
        }
        Simulated { waits, ends, free: free_for }
    }
}

/// By CNN and partition, the bytes that may be in use at once while it runs, of `budget` for all that run then. Each has what it
/// takes; those that read share what is left, `evenly` or by the bytes that they read.
pub(super) fn rooms(
    tasks: &[PartitionedCnn<'_>],
    storage: &Storage<'_>,
    budget: u64,
    evenly: bool,
) -> Vec<Vec<u64>> {
    let mut rooms: Vec<Vec<u64>> = tasks.iter().map(|task| vec![budget; task.partitions.len()]).collect();
    let items = storage.items();
    let profiles: Vec<Vec<u64>> = (0..tasks.len()).map(|cnn| storage.profile(cnn)).collect();
    for element in storage.elements.iter().filter(|element| element.len() > 1) {
        let window = |&(cnn, p): &(usize, usize)| &storage.executions[cnn].windows[p];
        let peak =
            |at: &(usize, usize)| profiles[at.0][window(at).clone()].iter().max().copied().unwrap_or(0);
        let peaks: Vec<u64> = element.iter().map(peak).collect();
        // A ring between partitions is in the peaks of all that it passes, but there is one of it.
        let between = |item: &Item<'_>| {
            let is_in = |at: &&(usize, usize)| {
                at.0 == item.cnn
                    && item.request.live.0 <= window(at).start
                    && window(at).end <= item.request.live.1 + 1
            };
            let times = element.iter().filter(is_in).count() as u64;
            item.request.bytes * times.saturating_sub(1)
        };
        let twice: u64 = items.iter().filter(|item| item.request.pipelined).map(between).sum();
        let weight = |&(cnn, p): &(usize, usize)| match tasks[cnn].bytes_streamed(p) {
            bytes if evenly => bytes.min(1),
            bytes => bytes,
        };
        let all: u64 = element.iter().map(weight).sum();
        let left = budget.saturating_add(twice).saturating_sub(peaks.iter().sum());
        for (at, peak) in element.iter().zip(peaks) {
            let own = peak + (u128::from(left) * u128::from(weight(at)) / u128::from(all.max(1))) as u64;
            let room = &mut rooms[at.0][at.1];
            *room = own.min(*room);
        }
    }
    rooms
}

/// Lets loads start earlier, as long as no partition has more bytes in use at once than `rooms` gives it. Tiles take turns
/// in two blocks. The life of a block begins earlier, by up to `share` of the way to the moment at which the store is free
/// for it.
pub(super) fn overlap(
    task: &PartitionedCnn<'_>,
    timing: &Timing<'_>,
    storage: &Storage<'_>,
    cnn: usize,
    rooms: &[u64],
    share: f64,
) -> Option<Execution> {
    let mut execution = storage.executions[cnn].clone();
    let mut used = storage.profile(cnn);
    let single = |execution: &Execution, id: LayerId| match blocks(execution, id).as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    for id in task.network.ids() {
        let (Some(tiling), Some(first)) = (task.tiling(id, execution.rows[id.0]), single(&execution, id))
        else {
            continue;
        };
        let request = &execution.requests[first];
        let (bytes, at) = (request.bytes, request.live.0);
        let budget = rooms[request.partition];
        let room = bytes + budget.saturating_sub(used[at]);
        // Half of the channels at most, so that there are two tiles.
        let half = tiling.filters.div_ceil(2).next_multiple_of(Tiling::PANEL);
        let filters = tiling.max_filters(room / 2).min(half);
        let each = tiling.bytes(filters);
        if filters >= tiling.filters || 2 * each > room {
            continue;
        }
        let (_, tiles) = task.tiles(id, execution.rows[id.0], each);
        let second = tiles.iter().skip(1).step_by(2).max().copied().unwrap_or(0);
        used[at] = used[at] - bytes + each + second;
        execution.requests[first].bytes = each;
        let other = Request { bytes: second, ..execution.requests[first].clone() };
        execution.requests.push(other);
    }
    let simulation = Simulation::new(task, timing, &execution)?;
    let mut seen = vec![false; task.network.layers.len()];
    let order: Vec<LayerId> = execution.orders.iter().flat_map(FiringOrder::order).collect();
    for id in order {
        if std::mem::replace(&mut seen[id.0], true) {
            continue;
        }
        let own = &simulation.layers[id.0].blocks;
        if own.is_empty() {
            continue;
        }
        let now = simulation.run(None, &execution);
        for &block in own {
            let Request { bytes, live, partition, .. } = execution.requests[block];
            let budget = rooms[partition];
            let start = execution.windows.iter().map(|window| window.start).filter(|at| *at <= live.0).max();
            let mut begin = live.0;
            while Some(begin) != start
                && used[begin - 1] + bytes <= budget
                && now.ends[begin - 1] > now.free[id.0]
            {
                begin -= 1;
            }
            let begin = live.0 - ((live.0 - begin) as f64 * share).round() as usize;
            used[begin..live.0].iter_mut().for_each(|used| *used += bytes);
            execution.requests[block].live.0 = begin;
        }
    }
    Some(execution)
}
