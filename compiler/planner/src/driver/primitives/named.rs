//! A primitive by name, for every layer that it computes.

use std::collections::BTreeMap;

use csdfc_input::app::primitive_name::PrimitiveName;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::device::DeviceProfile;
use csdfc_network::Layer;
use csdfc_plan::format::Layout;
use csdfc_runtime::bind::Primitive;
use tracing::warn;

use crate::cost::ProcessorShare;
use crate::cost::measured;
use crate::profile::alternatives;
use crate::selection;

/// The application whose layers the named primitive computes wherever it can, with conversions. If the name is that of
/// a family, each layer has the primitive of the family that was measured to be the fastest. Without measurements, it
/// has the first one that keeps the layouts, or else the first one.
pub(in crate::driver) fn named(
    application: &Application,
    name: PrimitiveName,
    device: &DeviceProfile,
) -> Application {
    let mut named = application.clone();
    let mut is_any = false;
    for (cnn, source) in named.cnns.iter_mut().zip(&application.cnns) {
        for partition in &source.partitions {
            let processor_share = device.processor(&partition.processor).ok();
            let processor_share =
                processor_share.map(|processor| ProcessorShare::alone(processor, application.threads));
            for id in &partition.layers {
                let layer = source.network.layer(*id);
                if layer.is_input() {
                    continue;
                }
                let time = |primitive: &Primitive| {
                    let by = Layer { primitive: Some(*primitive), ..layer.clone() };
                    let processor_share = processor_share.as_ref()?;
                    measured::samples(processor_share.processor, &by, processor_share.workers)
                        .last()
                        .map(|sample| sample.ns)
                };
                let rank = |primitive: &Primitive| {
                    let ns = time(primitive).unwrap_or(f64::INFINITY);
                    (ns, primitive.layouts() != [Layout::Hwc; 2])
                };
                let all = alternatives(&source.network, layer, None).filter(|one| name.names(*one));
                let best = all.min_by(|a, b| {
                    let (a, b) = (rank(a), rank(b));
                    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
                });
                is_any |= best.is_some();
                if let Some(best) = best.filter(|best| *best != layer.primitive()) {
                    cnn.network.layers[id.0].primitive = Some(best);
                }
            }
        }
        *cnn = selection::legalised(cnn.clone());
    }
    if !is_any {
        warn!("`{}` computes no layer of {}", name.name(), application.name);
    }
    if let RowsChoice::Layers(rows) = &application.rows {
        let mut moved = BTreeMap::new();
        for ((c, id), rows) in rows {
            let network = &named.cnns[*c].network;
            if let Some(id) = network.find(&application.cnns[*c].network.layer(*id).name) {
                // An image in CHW is one row.
                moved.insert((*c, id), (*rows).min(network.layer(id).rows() as u64));
            }
        }
        named.rows = RowsChoice::Layers(moved);
    }
    named
}
