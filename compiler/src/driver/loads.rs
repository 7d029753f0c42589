//! Loads that overlap computing: when each load ends, and how blocks that live longer let it start earlier.
//!
//! The store reads one slice after another, in the order in which layers use them. The first load into a block starts
//! when the plan lets it and the store is free. A simulation of this gives the time of a frame. Without overlap, each
//! load would start right before it is needed, and computing and reading would take turns.

use crate::cost::timing::Timing;
use crate::frame::execution::Execution;
use crate::frame::request::{FiringOrder, Request, RequestKind};
use crate::frame::task::CnnTask;
use crate::network::LayerId;
use crate::storage::Storage;

use csdfc_codegen::bind::Slicing;

/// One frame, simulated.
pub(super) struct Simulated {
    /// Nanoseconds from its beginning to its end.
    pub ns: f64,
    /// When each firing ends.
    ends: Vec<f64>,
    /// By layer, when the store is free for the first load of its weights.
    free: Vec<f64>,
}

/// The blocks of a layer, in the order in which slices use them, as indices of requests.
fn blocks(execution: &Execution, id: LayerId) -> Vec<usize> {
    let is_block = |request: &Request| request.kind == RequestKind::Block && request.tensor == id;
    (0..execution.requests.len()).filter(|i| is_block(&execution.requests[*i])).collect()
}

/// Simulates a frame of a CNN whose partitions follow each other. `None` if some of them run at the same time, or the store
/// is not known.
pub(super) fn simulated(task: &CnnTask<'_>, timing: &Timing<'_>, execution: &Execution) -> Option<Simulated> {
    simulated_without(None, task, timing, execution)
}

/// By layer, how much shorter the frame would be if its weights were in memory, in nanoseconds. Empty if that is not known.
pub(super) fn exposed(task: &CnnTask<'_>, timing: &Timing<'_>, execution: &Execution) -> Vec<f64> {
    let Some(frame) = simulated(task, timing, execution) else { return Vec::new() };
    let without = |id: LayerId| match task.paging(id) {
        Some(_) => {
            simulated_without(Some(id), task, timing, execution).map_or(0.0, |less| frame.ns - less.ns)
        }
        None => 0.0,
    };
    task.network.ids().map(without).collect()
}

/// A frame as [`simulated`] has it, where the weights of the layer `kept` are in memory.
fn simulated_without(
    kept: Option<LayerId>,
    task: &CnnTask<'_>,
    timing: &Timing<'_>,
    execution: &Execution,
) -> Option<Simulated> {
    if task.together.iter().flatten().any(|together| *together) || !timing.has_store() {
        return None;
    }
    let mut fired = vec![0u64; task.network.layers.len()];
    let mut free_for = vec![0.0; task.network.layers.len()];
    // When the last firing of each layer has ended.
    let mut ended = vec![0.0; task.network.layers.len()];
    let (mut now, mut free) = (0.0f64, 0.0f64);
    let mut ends: Vec<f64> = Vec::new();
    for (p, order) in execution.orders.iter().enumerate() {
        for id in order.order() {
            let rows = execution.rows[id.0];
            let firings = (task.network.layer(id).rows() as u64).div_ceil(rows.max(1)).max(1);
            let ns = timing.layer_ns(task, p, id, rows, execution.goes_one_by_one(id)) / firings as f64;
            let is_first = fired[id.0] == 0;
            let reads = kept != Some(id) && fired[id.0] < task.times_read(id, rows);
            let own = if reads { blocks(execution, id) } else { Vec::new() };
            fired[id.0] += 1;
            let Some(first) = own.first() else {
                now += ns;
                ends.push(now);
                continue;
            };
            let (_, slices) = task.slices(id, rows, execution.requests[*first].bytes);
            if is_first {
                free_for[id.0] = free;
            }
            let all = slices.iter().sum::<u64>().max(1) as f64;
            let mut used: Vec<f64> = Vec::new();
            for (k, bytes) in slices.iter().enumerate() {
                let may = match k.checked_sub(own.len()) {
                    Some(before) => used[before],
                    None if !is_first => ended[id.0],
                    None => {
                        let begin = execution.requests[own[k]].live.0;
                        begin.checked_sub(1).map_or(0.0, |before| ends[before])
                    }
                };
                free = free.max(may) + timing.read_ns(&[*bytes]);
                // If a layer is not sliced, its first firing waits for all its weights, and so do the layers that read
                // its rows.
                now = now.max(free) + ns * *bytes as f64 / all;
                used.push(now);
            }
            ends.push(now);
            ended[id.0] = now;
        }
    }
    Some(Simulated { ns: now, ends, free: free_for })
}

/// Lets loads start earlier, as long as no more than `budget` bytes are in use at once. Slices take turns in two
/// blocks. The life of a block begins earlier, by up to `share` of the way to the moment at which the store is free for
/// it.
pub(super) fn overlap(
    task: &CnnTask<'_>,
    timing: &Timing<'_>,
    storage: &Storage<'_>,
    cnn: usize,
    budget: u64,
    share: f64,
) -> Option<Execution> {
    let mut execution = storage.executions[cnn].clone();
    let mut used = storage.profile(cnn);
    let single = |execution: &Execution, id: LayerId| match blocks(execution, id).as_slice() {
        [one] => Some(*one),
        _ => None,
    };
    for id in task.network.ids() {
        let (Some(slicing), Some(first)) = (task.slicing(id, execution.rows[id.0]), single(&execution, id))
        else {
            continue;
        };
        let request = &execution.requests[first];
        let (bytes, at) = (request.bytes, request.live.0);
        let room = bytes + budget.saturating_sub(used[at]);
        // Half of the channels at most, so that there are two slices.
        let half = slicing.filters.div_ceil(2).next_multiple_of(Slicing::PANEL);
        let filters = slicing.within(room / 2).min(half);
        let each = slicing.bytes(filters);
        if filters >= slicing.filters || 2 * each > room {
            continue;
        }
        let (_, slices) = task.slices(id, execution.rows[id.0], each);
        let second = slices.iter().skip(1).step_by(2).max().copied().unwrap_or(0);
        used[at] = used[at] - bytes + each + second;
        execution.requests[first].bytes = each;
        let other = Request { bytes: second, ..execution.requests[first].clone() };
        execution.requests.push(other);
    }
    let mut seen = vec![false; task.network.layers.len()];
    let order: Vec<LayerId> = execution.orders.iter().flat_map(FiringOrder::order).collect();
    for id in order {
        if std::mem::replace(&mut seen[id.0], true) {
            continue;
        }
        let own = blocks(&execution, id);
        if own.is_empty() {
            continue;
        }
        let now = simulated(task, timing, &execution)?;
        for block in own {
            let Request { bytes, live, .. } = execution.requests[block];
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
