//! Sizes of the rings between partitions that run at the same time: the least that keep the pipeline's speed.
//!
//! A tensor between partitions that run one after another is stored whole. Between partitions that run at the same
//! time, storage model `edges` has a double buffer. Storage model `tensors` has the smallest ring at which the pipeline
//! keeps its full speed. That is at most two frames of rows, unless the tensor skips a stage.
//!
//! To find its size, each partition becomes one actor, with a phase for each firing of its schedule. A tensor cut
//! between partitions is a channel: each firing makes, needs and forgets as many of its rows as the layer that fires.
//! Execution times come from the device profile, stretched because partitions share their processor. The rings get the
//! smallest capacities at which that graph is as fast as with unbounded channels.

use std::num::NonZero;

use csdf::{Actor, ActorId, Budget, Channel, Error, Goal, Graph, Rates, Reader, StorageOptions, Unit};
use csdfc_network::{LayerId, Network};

use super::task::PartitionedCnn;
use crate::frame::execution::Execution;
use crate::frame::lower::{self, RateTable, TensorRates};

/// The budget of the search for one group of partitions, in steps, so that the answer is the same on any machine.
const BUDGET: Budget = Budget { work: 1 << 26, time: None, stop: None };

/// Sizes the rings between partitions of a CNN that run at the same time. `cost_ns` is the modelled time of all firings
/// of a layer in a frame, by partition. If a layer makes or reads a whole frame at once, the ring keeps whole frames.
/// If the search ends without an answer, a ring has as many frames as there are stages from the first that uses it to
/// the last. At full speed, no stage gets further ahead.
///
/// # Errors
/// Those of the dataflow analyses, none on an execution of this task.
pub fn couple(
    task: &PartitionedCnn<'_>,
    rates: &RateTable<'_>,
    execution: &mut Execution,
    cost_ns: &dyn Fn(usize, LayerId) -> f64,
) -> Result<(), Error> {
    for group in groups(task, execution) {
        let found = smallest(task, rates, execution, &group, cost_ns)?;
        for (index, &request) in group.requests.iter().enumerate() {
            let request = &mut execution.requests[request];
            let layer = task.network.layer(request.tensor);
            let ends = request.touched.iter().min().zip(request.touched.iter().max());
            let stages = ends.map_or(0, |(first, last)| last - first + 1);
            let frames = || stages as u64 * layer.rows() as u64;
            request.ring_rows = found.as_ref().map_or_else(frames, |rings| rings[index]);
            request.bytes = request.ring_rows * layer.row_bytes();
        }
    }
    Ok(())
}

/// Partitions that are tied together by tensors, and those tensors' places among the requests.
struct Group {
    partitions: Vec<usize>,
    requests: Vec<usize>,
}

/// The groups of an execution. A group is left out if it has a tensor that is shared by partitions which do not all run
/// at the same time. The rows that such a tensor keeps from one frame to the next do not depend on speed alone.
fn groups(task: &PartitionedCnn<'_>, execution: &Execution) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, request) in execution.requests.iter().enumerate() {
        if !request.pipelined || request.half.is_some() {
            continue;
        }
        let mut merged = Group { partitions: request.touched.clone(), requests: vec![index] };
        let (tied, others): (Vec<Group>, Vec<Group>) = groups
            .into_iter()
            .partition(|group| group.partitions.iter().any(|p| merged.partitions.contains(p)));
        for group in tied {
            merged.partitions.extend(group.partitions);
            merged.requests.extend(group.requests);
        }
        merged.partitions.sort_unstable();
        merged.partitions.dedup();
        groups = others;
        groups.push(merged);
    }
    let together = |group: &Group| {
        let pairs = group.partitions.iter().flat_map(|p| group.partitions.iter().map(move |q| (*p, *q)));
        pairs.filter(|(p, q)| p != q).all(|(p, q)| task.together[p][q])
    };
    groups.retain(together);
    groups
}

/// Rows of each ring of a group.
fn smallest(
    task: &PartitionedCnn<'_>,
    rates: &RateTable<'_>,
    execution: &Execution,
    group: &Group,
    cost_ns: &dyn Fn(usize, LayerId) -> f64,
) -> Result<Option<Vec<u64>>, Error> {
    let network = task.network;
    let mut graph = Graph::new();
    let mut actors: Vec<Option<ActorId>> = vec![None; task.partitions.len()];
    for &partition in &group.partitions {
        let actor = actor(network, execution, partition, cost_ns);
        actors[partition] = Some(graph.add_actor(actor)?);
    }
    let of_layer = |partition: usize, layer: LayerId, rates: &Rates| {
        let mut firing = rates.iter();
        let rate = |id: LayerId| if id == layer { firing.next().unwrap_or(0) } else { 0 };
        Rates::from_sequence(&execution.orders[partition].order().map(rate).collect::<Vec<_>>())
    };
    let mut granularity = Vec::new();
    for &request in &group.requests {
        let request = &execution.requests[request];
        let (tensor, height) = (request.tensor, network.layer(request.tensor).rows() as u64);
        let production = lower::production(height, execution.rows[tensor.0]);
        let Some(producer) = actors[request.partition] else { return Ok(None) };
        let mut whole = production.len() == 1;
        let mut ends = Vec::new();
        for &reader in rates.readers(tensor) {
            let of = task.partitions.iter().position(|partition| partition.layers.contains(&reader));
            let Some((partition, actor)) = of.and_then(|of| Some((of, actors[of]?))) else { return Ok(None) };
            for TensorRates { tensor: read, acquire, release, .. } in
                rates.get(reader, execution.rows[reader.0]).iter()
            {
                if *read == tensor {
                    whole |= acquire.iter().any(|rows| rows == height);
                    let acquire = of_layer(partition, reader, acquire);
                    ends.push(Reader { actor, acquire, release: of_layer(partition, reader, release) });
                }
            }
        }
        let production = of_layer(request.partition, tensor, &production);
        let channel = Channel::new(network.layer(tensor).output.clone(), producer, production, ends);
        graph.add_channel(Channel { token_bytes: network.layer(tensor).row_bytes(), ..channel })?;
        granularity.push(if whole { height } else { 1 });
    }
    let options = StorageOptions { unit: Unit::Bytes, budget: BUDGET, granularity };
    match csdf::smallest(&graph, Goal::Maximal, &options) {
        Ok(storage) => Ok(Some(storage.capacities)),
        Err(Error::Exhausted) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A partition as an actor. It has a phase for each firing of its schedule, with the time of the layer that fires.
fn actor(
    network: &Network,
    execution: &Execution,
    partition: usize,
    cost_ns: &dyn Fn(usize, LayerId) -> f64,
) -> Actor {
    let times: Vec<u64> = execution.orders[partition]
        .order()
        .map(|id| {
            let firings = lower::firings(network, id, execution.rows[id.0]).max(1);
            // Whole nanoseconds, saturated.
            (cost_ns(partition, id) / firings as f64).round() as u64
        })
        .collect();
    Actor {
        name: format!("p{partition}"),
        phases: times.len() as u64,
        execution_times: Rates::from_sequence(&times),
        concurrency: NonZero::<u64>::MIN,
    }
}
