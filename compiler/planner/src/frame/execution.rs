//! The execution of one frame of a CNN under a choice: the order in which the layers fire, how many rows each ring must
//! hold, and from when to when it must hold them.
//!
//! ```
//! use csdfc_network::LayerId;
//! use csdfc_plan::plan::StorageModel;
//! use csdfc_planner::frame::choice::Choice;
//! use csdfc_planner::frame::execution::{Rings, execute};
//! use csdfc_planner::frame::lower::RateTable;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//!
//! // An input of 32 rows and a 5×5 convolution with padding.
//! let application = open("builtin:paper_pair")?.resolve()?;
//! let task = &task::tasks(&application)[0];
//! let (rates, choice) = (RateTable::new(task.network), Choice::all(task.network));
//! let execution = execute(task, &rates, &choice, StorageModel::Tensors, Rings::OnDemand)?;
//!
//! // Three rows of the input, then one more for each row of the output, as long as there are any.
//! let order: Vec<LayerId> = execution.orders[0].order().collect();
//! let [input, conv] = [LayerId(0), LayerId(1)];
//! assert_eq!(order[..7], [input, input, input, conv, input, conv, input]);
//! assert_eq!(order.len(), 64);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use csdf::ActorId;
use csdfc_network::{LayerId, Network};
use csdfc_plan::plan::StorageModel;

use super::choice::Choice;
use super::lower::{self, Lowering, RateTable};
use super::occupancy::{self, AddressSharing};
use super::request::{FiringOrder, Request, RequestBuilder};
use super::task::{PartitionTask, PartitionedCnn};
use super::tighten::tighten;

/// One frame of a CNN: its partitions one after another on one time line, counted in firings. (Partitions that run
/// at the same time each keep their own stretch of that line.)
#[derive(Debug, Clone)]
pub struct Execution {
    /// Rows per firing of each layer.
    pub rows: Vec<u64>,
    /// The segment barriers that were asked for: [`Choice::barriers`].
    pub barriers: Option<Vec<LayerId>>,
    /// The order in which the layers of each partition fire.
    pub orders: Vec<FiringOrder>,
    /// The stretch of the time line that each partition takes.
    pub windows: Vec<Range<usize>>,
    /// What must be stored.
    pub requests: Vec<Request>,
    /// How they may share addresses at the same time.
    pub sharing: AddressSharing,
    /// The layers, in ascending order, that may share addresses at the price of making their rows one by one. They are
    /// some of [`AddressSharing::costly`].
    pub one_by_one: Vec<LayerId>,
}

impl Execution {
    /// Whether a layer may make its rows one by one at a cost in time.
    pub fn goes_one_by_one(&self, layer: LayerId) -> bool {
        self.one_by_one.binary_search(&layer).is_ok()
    }

    /// All layers that could do so.
    pub fn costly(&self) -> Vec<LayerId> {
        self.sharing.costly.iter().map(|costly| costly.layer).collect()
    }
}

/// How the order of firings within a segment is found. The rows of the rings follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rings {
    /// On demand: at once, and mostly the best there is.
    OnDemand,
    /// On demand, but if weights are streamed, layers run ahead of demand before another layer begins. The block of that
    /// layer begins to live when it begins, so it pays to release rows of whole rings before. Rings have the same
    /// numbers of rows, and no more bytes are in use at any time.
    Ahead,
    /// The same, but by search if that gives fewer bytes. Schedules that the application gives stay.
    Smallest,
}

/// Runs one frame of a CNN as chosen.
///
/// # Errors
/// Those of the dataflow analyses. There are none on networks that were imported or built.
pub fn execute(
    task: &PartitionedCnn<'_>,
    rates: &RateTable<'_>,
    choice: &Choice,
    storage: StorageModel,
    rings: Rings,
) -> Result<Execution, csdf::Error> {
    let network = task.network;
    // An input that no layer reads has no ring that rows could go to: if it is an output, the caller has all of it. All
    // of a state is there when the frame begins.
    let settled = |(id, rows): (LayerId, &u64)| match network.layer(id) {
        layer if layer.is_input() && rates.readers(id).is_empty() => layer.rows() as u64,
        layer if network.state_of_input(&layer.name).is_some() => layer.rows() as u64,
        _ => *rows,
    };
    let rows: Vec<u64> = network.ids().zip(&choice.rows).map(settled).collect();
    let mut orders = Vec::new();
    let mut windows = Vec::new();
    let mut capacities: BTreeMap<(LayerId, Option<LayerId>), u64> = BTreeMap::new();
    let mut span: Vec<Option<(usize, usize)>> = vec![None; network.layers.len()];
    let mut now = 0;
    for partition in &task.partitions {
        let lowering = lower::lower(rates, &partition.layers, &rows, storage)?;
        let segments = segments(network, partition, choice);
        let steps: Vec<Vec<ActorId>> = segments
            .iter()
            .map(|step| step.iter().filter_map(|id| lowering.actors[id.0]).collect())
            .collect();
        let expanded = csdf::Expanded::new(&lowering.graph)?;
        let mut execution = expanded.sequential(&steps)?;
        if rings == Rings::Smallest
            && partition.steps.is_none()
            && let Some(tighter) = tighten(&lowering.graph, &steps, &execution)?
        {
            execution = tighter;
        }
        if rings != Rings::OnDemand && may_run_ahead(task) && partition.steps.is_none() {
            let wrapping = wrapping(rates, network, &lowering, &execution);
            execution = expanded.ahead(&execution, |actor| wrapping[actor.index()])?;
        }
        for (origin, capacity) in lowering.channels.iter().zip(&execution.capacities) {
            capacities.insert((origin.tensor, origin.consumer), *capacity);
        }
        for (id, (first, last)) in lowering.layers.iter().zip(&execution.spans) {
            span[id.0] = Some((now + first, now + last));
        }
        if partition.steps.is_some() && storage == StorageModel::Edges {
            live_together(&segments, &mut span);
        }
        windows.push(now..now + execution.firings.len());
        now += execution.firings.len();
        orders.push(FiringOrder { layers: lowering.layers, firings: execution.firings });
    }
    let builder = RequestBuilder { task, rates, rows: &rows, capacities, windows: &windows, span };
    let mut requests = builder.requests(storage);
    let sharing = match storage {
        StorageModel::Tensors => occupancy::fill(task, rates, &rows, &orders, &mut requests),
        StorageModel::Edges => AddressSharing::default(),
    };
    let barriers = choice.barriers.clone();
    let is_chosen = |layer: &LayerId| choice.one_by_one.as_ref().is_some_and(|chosen| chosen.contains(layer));
    let one_by_one = sharing.costly.iter().map(|costly| costly.layer).filter(is_chosen).collect();
    Ok(Execution { rows, barriers, orders, windows, requests, sharing, one_by_one })
}

/// Whether layers may run ahead of demand. Partitions that run at the same time wait for each other's rows, and keep their order.
fn may_run_ahead(task: &PartitionedCnn<'_>) -> bool {
    !task.streaming.is_empty() && !task.together.iter().flatten().any(|together| *together)
}

/// For each actor, whether all rows that it makes go into a ring that wraps. Such a ring is in use as a whole from its
/// first row on, so rows made early take no more bytes.
fn wrapping(
    rates: &RateTable<'_>,
    network: &Network,
    lowering: &Lowering,
    execution: &csdf::Execution,
) -> Vec<bool> {
    let mut wrapping = vec![false; lowering.layers.len()];
    for (origin, capacity) in lowering.channels.iter().zip(&execution.capacities) {
        let is_local = rates.readers(origin.tensor).iter().all(|reader| lowering.actors[reader.0].is_some());
        if let Some(actor) = lowering.actors[origin.tensor.0] {
            wrapping[actor.index()] = is_local && *capacity < network.layer(origin.tensor).rows() as u64;
        }
    }
    wrapping
}

/// Layers of one given step live together (main paper, section 2.3): each spans the whole step.
fn live_together(segments: &[Vec<LayerId>], span: &mut [Option<(usize, usize)>]) {
    for step in segments {
        let spans: Vec<(usize, usize)> = step.iter().filter_map(|id| span[id.0]).collect();
        let first = spans.iter().map(|s| s.0).min();
        let last = spans.iter().map(|s| s.1).max();
        for id in step {
            span[id.0] = first.zip(last);
        }
    }
}

/// The segments of a partition, in topological order. The application may give them. Otherwise the choice's barriers
/// separate them. Without barriers, each run of layers that go by parts is a segment (with the single-firing layers
/// among them), and every other layer is a segment of its own. The partition's stops separate segments, too.
fn segments(network: &Network, partition: &PartitionTask, choice: &Choice) -> Vec<Vec<LayerId>> {
    if let Some(steps) = &partition.steps {
        return steps.clone();
    }
    let stops = |before: &LayerId| partition.stops.binary_search(before).is_ok();
    if let Some(barriers) = &choice.barriers {
        let within =
            |before: &LayerId, _: &LayerId| barriers.binary_search(before).is_err() && !stops(before);
        return partition.layers.chunk_by(within).map(<[LayerId]>::to_vec).collect();
    }
    let mut segments: Vec<Vec<LayerId>> = Vec::new();
    let mut streaming = false;
    for &id in &partition.layers {
        let height = network.layer(id).rows() as u64;
        let by_parts = choice.rows[id.0] < height;
        match segments.last_mut() {
            Some(segment) if streaming && (by_parts || height == 1) => segment.push(id),
            _ => {
                segments.push(vec![id]);
                streaming = by_parts;
            }
        }
        streaming &= !stops(&id);
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_end_segments() {
        let network = csdfc_input::builtin::network("lenet5").unwrap();
        let layers: Vec<LayerId> = network.ids().collect();
        let task = PartitionedCnn {
            network: &network,
            streaming: Vec::new(),
            workers: 1,
            partitions: vec![PartitionTask { layers, steps: None, stops: Vec::new() }],
            together: vec![vec![false]],
        };
        let rates = RateTable::new(&network);
        for barriers in [vec![], vec![LayerId(2)], vec![LayerId(0), LayerId(3)]] {
            let choice = Choice { barriers: Some(barriers.clone()), ..Choice::all(&network) };
            let execution = execute(&task, &rates, &choice, StorageModel::Tensors, Rings::OnDemand).unwrap();
            let segment = |id: LayerId| barriers.iter().filter(|barrier| **barrier < id).count();
            let order: Vec<LayerId> = execution.orders[0].order().collect();
            assert!(order.is_sorted_by_key(|id| segment(*id)), "{barriers:?}");
            assert!(!order.is_sorted(), "within a segment firings take turns");
            for request in &execution.requests {
                let height = network.layer(request.tensor).rows() as u64;
                assert!(!barriers.contains(&request.tensor) || request.ring_rows == height, "{request:?}");
                assert!(request.tensor.0 > 2 || request.ring_rows < height || !barriers.is_empty());
            }
        }
    }
}
