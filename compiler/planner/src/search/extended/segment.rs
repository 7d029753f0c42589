//! The memory and time of a segment: a run of layers that is streamed between two cut tensors.
//!
//! In an execution on demand, the rows that a layer makes, and when, depend only on the layers after it. So one
//! execution from the first layer to a cut describes all runs that end at that cut: they are its tails.

use csdfc_network::{LayerId, Network};
use csdfc_plan::plan::StorageModel;

use super::moments::Moments;
use crate::frame::request::{FiringOrder, Request, RequestKind};
use crate::frame::{lower, occupancy};
use crate::search::evaluate::Evaluator;

/// A run of layers streamed to completion.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The cut after which it begins: its index plus one. 0 if the segment begins with the first layer.
    pub from: usize,
    /// The cut with which it ends, by its index and one more.
    pub to: usize,
    /// How often each of its layers fires. A layer with fewer rows fires once per row.
    pub firings: u64,
    /// Maximum number of bytes in use at once. They count its rings, the tensor with which it begins, and everything
    /// that is kept for later segments.
    pub bytes: u64,
    /// Modelled nanoseconds of its firings.
    pub time_ns: f64,
}

/// Rows per firing with which a tensor of this height takes about `firings` firings.
pub fn rows(height: u64, firings: u64) -> u64 {
    height.div_ceil(firings.max(1)).max(1)
}

/// The segments of a partition that end with the cut of index `to`, and whose layers fire `firings` times each. `rows`
/// has the rows per firing that follow.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn tails(
    evaluator: &Evaluator<'_>,
    partition: usize,
    cuts: &[usize],
    to: usize,
    firings: u64,
    chosen: &[u64],
) -> Result<Vec<Segment>, csdf::Error> {
    let layers = &evaluator.task.partitions[partition].layers[..=cuts[to]];
    let tail = Tail::run(evaluator, layers, &cuts[..to], chosen)?;

    let mut time_ns = 0.0;
    let mut in_use = Moments::new(tail.moments);
    let mut segments = Vec::new();
    let mut next = layers.len();
    for from in (0..=to).rev() {
        let cut = from.checked_sub(1).map(|before| cuts[before]);
        let first = cut.map_or(0, |cut| cut + 1);
        for at in (first..next).rev() {
            time_ns += evaluator.layer_ns(partition, layers[at], chosen[layers[at].0]);
            tail.add(at, &mut in_use);
        }
        next = first;
        segments.push(Segment { from, to: to + 1, firings, bytes: tail.peak(&mut in_use, cut), time_ns });
    }
    Ok(segments)
}

/// The execution of layers that end with a cut.
struct Tail {
    /// How many firings there are.
    moments: usize,
    /// When each layer fires.
    firings: Vec<Vec<usize>>,
    /// By layer, how the bytes in use of its tensor change, and when.
    changes: Vec<Vec<(usize, i128)>>,
    /// The same by layer for tensors that exist from the start, since a segment may begin with them.
    given: Vec<Vec<(usize, i128)>>,
    /// By firing, the bytes that are saved because it goes row by row.
    slack: Vec<u64>,
    /// The same if the cut tensors are whole.
    slack_given: Vec<u64>,
    /// By layer, the layers of which its tensor is the last cut tensor that they read.
    readers: Vec<Vec<usize>>,
}

impl Tail {
    /// Runs `layers` on demand with these rows per firing.
    fn run(
        evaluator: &Evaluator<'_>,
        layers: &[LayerId],
        cuts: &[usize],
        chosen: &[u64],
    ) -> Result<Self, csdf::Error> {
        let (network, rates) = (evaluator.task.network, evaluator.rates());
        let lowering = lower::lower(rates, layers, chosen, StorageModel::Tensors)?;
        let all: Vec<_> = lowering.graph.actor_ids().collect();
        let execution = csdf::sequential(&lowering.graph, &[all])?;
        let end = execution.firings.len();
        let mut firings = vec![Vec::new(); layers.len()];
        execution.firings.iter().enumerate().for_each(|(time, actor)| firings[actor.index()].push(time));
        let orders = [FiringOrder { layers: lowering.layers, firings: execution.firings }];

        let mut inside = vec![None; network.layers.len()];
        layers.iter().enumerate().for_each(|(at, id)| inside[id.0] = Some(at));
        let readers = network.readers();
        let mut rings = vec![0; layers.len()];
        for (channel, capacity) in lowering.graph.channels().iter().zip(&execution.capacities) {
            rings[channel.producer.index()] = *capacity;
        }
        let mut requests = Vec::new();
        let mut whole_cuts = Vec::new();
        for (at, &tensor) in layers.iter().enumerate() {
            let last = |reader: &LayerId| inside[reader.0].map_or(end, |reader| execution.spans[reader].1);
            let Some(last) = readers[tensor.0].iter().map(last).max() else { continue };
            let is_read_later = last == end;
            let ring_rows = if is_read_later { height(network, tensor) } else { rings[at] };
            let live = (execution.spans[at].0, last.min(end.saturating_sub(1)));
            let request = |ring_rows: u64| Request {
                tensor,
                kind: RequestKind::Ring,
                consumer: None,
                half: None,
                ring_rows,
                bytes: ring_rows * network.layer(tensor).row_bytes(),
                alignment: network.layer(tensor).format().element.bytes(),
                live,
                partition: 0,
                touched: Vec::new(),
                pipelined: false,
                history: 0,
                state: None,
                occupancy_profile: None,
            };
            let whole = if cuts.binary_search(&at).is_ok() { height(network, tensor) } else { ring_rows };
            whole_cuts.push(request(whole));
            requests.push(request(ring_rows));
        }
        let mut slack = vec![0; end];
        let mut slack_given = vec![0; end];
        if evaluator.storage == StorageModel::Tensors {
            for sweep in occupancy::fill(evaluator.task, rates, chosen, &orders, &mut requests).sweeps {
                slack[sweep.firing] = if sweep.is_costly { 0 } else { sweep.fullest(|_| true).1 };
            }
            for sweep in occupancy::fill(evaluator.task, rates, chosen, &orders, &mut whole_cuts).sweeps {
                // Whether its output ring is whole does not depend on where the segment begins.
                if !sweep.is_costly && requests[sweep.output].occupancy_profile.is_some() {
                    slack_given[sweep.firing] = sweep.fullest(|_| true).1;
                }
            }
        }
        let mut changes = vec![Vec::new(); layers.len()];
        let mut given = vec![Vec::new(); layers.len()];
        for (request, whole) in requests.iter().zip(&whole_cuts) {
            let Some(at) = inside[request.tensor.0] else { continue };
            // An input of floats that is delivered whole lies in the caller's memory. A segment that begins with an
            // input finds it whole.
            let layer = network.layer(request.tensor);
            let in_tensors = evaluator.storage == StorageModel::Tensors;
            if !(in_tensors && layer.is_held_by_caller(chosen[request.tensor.0])) {
                changes[at] = steps(request, false);
            }
            if !(in_tensors && layer.is_read_in_place()) {
                given[at] = steps(whole, true);
            }
        }
        // Weights that are read stay in memory from the layer's first firing to its last.
        for (at, id) in layers.iter().enumerate() {
            let bytes = i128::from(evaluator.task.block_bytes(*id, chosen[id.0]));
            if bytes > 0 {
                let (first, last) = execution.spans[at];
                changes[at].extend([(first, bytes), (last + 1, -bytes)]);
            }
        }
        let place = |id: LayerId| inside[id.0].filter(|at| cuts.binary_search(at).is_ok());
        let mut readers = vec![Vec::new(); layers.len()];
        for (at, id) in layers.iter().enumerate() {
            let reads = network.layer(*id).inputs.iter().filter_map(|operand| place(operand.layer)).max();
            reads.into_iter().for_each(|cut: usize| readers[cut].push(at));
        }
        Ok(Tail { moments: end, firings, changes, given, slack, slack_given, readers })
    }

    /// Adds what a layer has in use. All layers after it have been added.
    fn add(&self, layer: usize, in_use: &mut Moments) {
        self.changes[layer].iter().for_each(|(time, bytes)| in_use.add_from(*time, *bytes));
        self.firings[layer].iter().for_each(|time| in_use.add_at(*time, -i128::from(self.slack[*time])));
    }

    /// The most bytes that are in use at once by the layers added, which come after `cut`, and by the tensor of `cut`.
    fn peak(&self, in_use: &mut Moments, cut: Option<usize>) -> u64 {
        cut.inspect(|cut| self.add_given(*cut, in_use, 1));
        let most = in_use.max();
        cut.inspect(|cut| self.add_given(*cut, in_use, -1));
        u64::try_from(most).unwrap_or(0)
    }

    /// Adds so many times what the tensor of a cut has in use if it exists from the start.
    fn add_given(&self, cut: usize, in_use: &mut Moments, times: i128) {
        self.given[cut].iter().for_each(|(time, bytes)| in_use.add_from(*time, times * bytes));
        for time in self.readers[cut].iter().flat_map(|reader| &self.firings[*reader]) {
            let more = i128::from(self.slack[*time]) - i128::from(self.slack_given[*time]);
            in_use.add_at(*time, times * more);
        }
    }
}

/// How the bytes of a ring that are in use change, in the order of time. If the ring is `given`, all of it is in use
/// from the start.
fn steps(request: &Request, given: bool) -> Vec<(usize, i128)> {
    let bytes = i128::from(request.bytes);
    let begin = if given { 0 } else { request.live.0 };
    let Some(occupancy_profile) = &request.occupancy_profile else {
        return vec![(begin, bytes), (request.live.1 + 1, -bytes)];
    };
    let mut steps = Vec::with_capacity(occupancy_profile.begun.len() + occupancy_profile.released.len());
    let mut push = |at: usize, before: &mut u64, bytes: u64, sign: i128| {
        steps.push((at, sign * i128::from(bytes - *before)));
        *before = bytes;
    };
    let mut before = 0;
    match given {
        true => push(0, &mut before, request.bytes, 1),
        false => occupancy_profile.begun.iter().for_each(|(at, bytes)| push(*at, &mut before, *bytes, 1)),
    }
    let mut before = 0;
    occupancy_profile.released.iter().for_each(|(at, bytes)| push(at + 1, &mut before, *bytes, -1));
    steps.sort_unstable();
    steps
}

fn height(network: &Network, id: LayerId) -> u64 {
    network.layer(id).rows() as u64
}
