//! What it takes to stream a run of layers between two cut tensors.
//!
//! On demand, what a layer makes and when depends on the layers after it and not on those before. So one execution from
//! the first layer to a cut tells of all runs that end at that cut: they are its tails.

use crate::execution::PartitionTask;
use crate::lower;
use crate::network::{LayerId, Network};
use crate::search::evaluate::Evaluator;
use csdfc_codegen::operator::{InputElement, Operator};
use csdfc_codegen::plan::StorageModel;

/// A run of layers streamed to completion.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// The cut after which it begins, by its index and one more; 0 for the first layer.
    pub from: usize,
    /// The cut with which it ends, by its index and one more.
    pub to: usize,
    /// How often each of its layers fires, if it has as many rows.
    pub firings: u64,
    /// Bytes live at once: its rings, the tensor that it begins with, and all that is left for others.
    pub bytes: u64,
    /// Modelled nanoseconds of its firings.
    pub time_ns: f64,
}

/// Rows per firing at which a tensor of this height takes about so many firings.
pub fn rows(height: u64, firings: u64) -> u64 {
    height.div_ceil(firings.max(1)).max(1)
}

/// The segments of a partition that end with the cut of index `to` and whose layers fire `firings` times each.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn tails(
    evaluator: &Evaluator<'_>,
    partition: usize,
    cuts: &[usize],
    to: usize,
    firings: u64,
) -> Result<Vec<Segment>, csdf::Error> {
    let network = evaluator.task.network;
    let PartitionTask { layers, .. } = &evaluator.task.partitions[partition];
    let layers = &layers[..=cuts[to]];
    let mut chosen = vec![1; network.layers.len()];
    for &id in layers {
        chosen[id.0] = rows(height(network, id), firings);
    }
    let lowering = lower::lower(evaluator.rates(), layers, &chosen, StorageModel::Tensors)?;
    let all: Vec<_> = lowering.graph.actor_ids().collect();
    let run = csdf::sequential(&lowering.graph, &[all])?;
    let end = run.firings.len();

    // What is stored for each layer's tensor, and when.
    let mut stored: Vec<Option<(u64, usize, usize)>> = vec![None; layers.len()];
    let readers = network.readers();
    for (channel, capacity) in lowering.graph.channels().iter().zip(&run.capacities) {
        let at = channel.producer.index();
        let last = channel.readers.iter().map(|reader| run.spans[reader.actor.index()].1).max();
        stored[at] = last.map(|last| (capacity * channel.token_bytes, run.spans[at].0, last + 1));
    }
    let inside: Vec<bool> = {
        let mut inside = vec![false; network.layers.len()];
        layers.iter().for_each(|id| inside[id.0] = true);
        inside
    };
    for (at, id) in layers.iter().enumerate() {
        if readers[id.0].iter().any(|reader| !inside[reader.0]) {
            stored[at] = Some((whole_bytes(network, *id), run.spans[at].0, end));
        } else if evaluator.storage == StorageModel::Tensors && is_caller_s(network, *id, chosen[id.0]) {
            stored[at] = None;
        }
    }

    let mut time_ns = 0.0;
    let mut change = vec![0i128; end + 1];
    let mut segments = Vec::new();
    let mut next = layers.len();
    for from in (0..=to).rev() {
        // Layers after the cut before, down to it.
        let first = if from == 0 { 0 } else { cuts[from - 1] + 1 };
        for at in (first..next).rev() {
            time_ns += evaluator.layer_ns(partition, layers[at], chosen[layers[at].0]);
            if let Some((bytes, begin, end)) = stored[at] {
                change[begin] += i128::from(bytes);
                change[end] -= i128::from(bytes);
            }
        }
        next = first;
        let (given, given_until) = match from {
            0 => (0, 0),
            from => {
                let at = cuts[from - 1];
                (whole_bytes(network, layers[at]), stored[at].map_or(0, |(_, _, end)| end))
            }
        };
        let bytes = peak(&change, given, given_until);
        segments.push(Segment { from, to: to + 1, firings, bytes, time_ns });
    }
    Ok(segments)
}

fn height(network: &Network, id: LayerId) -> u64 {
    network.layer(id).shape.rows() as u64
}

fn whole_bytes(network: &Network, id: LayerId) -> u64 {
    height(network, id) * network.layer(id).row_bytes()
}

/// Whether a tensor lies in the caller's storage only.
fn is_caller_s(network: &Network, id: LayerId, rows: u64) -> bool {
    let floats = |operator: &Operator| matches!(operator, Operator::Input(input) if input.element == InputElement::F32);
    floats(&network.layer(id).operator) && lower::firings(network, id, rows) == 1
}

/// The most that is live at once: what changes say, and `given` bytes before `until`.
fn peak(change: &[i128], given: u64, until: usize) -> u64 {
    let (mut live, mut most) = (0, 0);
    for (at, change) in change.iter().enumerate() {
        live += change;
        most = most.max(live + if at < until { i128::from(given) } else { 0 });
    }
    u64::try_from(most).unwrap_or(u64::MAX)
}
