//! Puts the layers of a network into the order that lowers the peak of its tensors, partition by partition.
//!
//! The order of the model's file stays in three cases: where no other order has a lower peak, in storage model `edges`,
//! and in partitions that have a schedule of their own. When a plan is loaded, the model's layers are put into the
//! plan's order (`saved::reload` of the compiler).

use super::order::{LayerOrder, least_peak};
use crate::component::{components, stops};
use crate::{LayerId, Network};

/// The layers of one partition.
#[derive(Debug, Clone, Copy)]
pub struct PartitionLayers<'a> {
    /// The layers, ascending.
    pub layers: &'a [LayerId],
    /// Whether they have a schedule of their own, and so stay where they are.
    pub is_scheduled: bool,
}

/// Reorders the layers of a network within its partitions. Layers stay within their run of layers of one partition, and
/// on their side of a layer at which partitions wait for each other. `cnn` is the name of the network. If the
/// partitions are a pipeline, a tensor that goes from one to another is stored all the time, and so does not count.
pub fn reorder(
    cnn: &str,
    network: Network,
    partitions: &[PartitionLayers<'_>],
    is_pipeline: bool,
) -> Network {
    let mut stage = vec![0; network.layers.len()];
    for (index, partition) in partitions.iter().enumerate() {
        partition.layers.iter().for_each(|id| stage[id.0] = index);
    }
    let readers = network.readers();
    let crosses = |id: LayerId| readers[id.0].iter().any(|reader| stage[reader.0] != stage[id.0]);
    let stored = |id: LayerId| {
        let layer = network.layer(id);
        // At its peak a network is executed layer by layer, and its inputs are delivered whole.
        if layer.is_read_in_place() || is_pipeline && crosses(id) { 0 } else { layer.tensor_bytes() }
    };
    let bytes: Vec<u64> = network.ids().map(stored).collect();
    let stops = stops(&network, &stage, &components(&network, &stage, partitions.len()));
    let ids: Vec<LayerId> = network.ids().collect();
    let runs = ids.chunk_by(|a, b| stage[a.0] == stage[b.0] && stops.binary_search(a).is_err());
    let own_order = runs.filter(|run| !partitions[stage[run[0].0]].is_scheduled);
    let ranges: Vec<_> = own_order.map(|run| run[0].0..run[run.len() - 1].0 + 1).collect();
    let LayerOrder { layers, peak, before, exact } = least_peak(&network, &ranges, &bytes);
    if !layers.is_sorted() {
        tracing::info!(cnn, peak, before, exact, "layers reordered");
    }
    network.reordered(&layers)
}
