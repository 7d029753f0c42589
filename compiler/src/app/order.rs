//! Puts the layers of an application's CNNs into an order that lowers the peak of their tensors.

use csdfc_codegen::operator::{InputElement, Operator};

use super::resolve::Cnn;
use crate::network::{LayerId, Network};
use crate::order::{Order, least_peak};

/// Reorders the layers of a CNN within its partitions, those with a schedule of their own excepted. `parallel` is J, whose
/// names are those of partitions.
pub(super) fn reorder(cnn: &mut Cnn, parallel: &[Vec<String>]) {
    let is_one = |name: &String| cnn.partitions.iter().any(|partition| partition.name == *name);
    // What crosses from one stage of a pipeline to another is stored throughout.
    let is_piped = parallel.iter().any(|element| element.iter().filter(|name| is_one(name)).count() > 1);
    let mut stage = vec![0; cnn.network.layers.len()];
    for (index, partition) in cnn.partitions.iter().enumerate() {
        partition.layers.iter().for_each(|id| stage[id.0] = index);
    }
    let readers = cnn.network.readers();
    let crosses = |id: LayerId| readers[id.0].iter().any(|reader| stage[reader.0] != stage[id.0]);
    let bytes: Vec<u64> = cnn
        .network
        .ids()
        .map(|id| if is_piped && crosses(id) { 0 } else { stored(&cnn.network, id) })
        .collect();
    let own_order = cnn.partitions.iter().filter(|partition| partition.schedule.is_none());
    let ranges: Vec<_> = own_order
        .filter_map(|partition| Some(partition.layers.first()?.0..partition.layers.last()?.0 + 1))
        .collect();
    let Order { layers, peak, before, exact } = least_peak(&cnn.network, &ranges, &bytes);
    if !layers.is_sorted() {
        tracing::info!(cnn = cnn.name, peak, before, exact, "layers reordered");
    }
    cnn.network = std::mem::take(&mut cnn.network).reordered(&layers);
}

/// Bytes of a layer's tensor where it is stored whole: none for an input that the caller holds.
fn stored(network: &Network, id: LayerId) -> u64 {
    let layer = network.layer(id);
    match &layer.operator {
        Operator::Input(input) if input.element == InputElement::F32 => 0,
        _ => layer.shape.rows() as u64 * layer.row_bytes(),
    }
}
