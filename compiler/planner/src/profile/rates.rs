//! The rates of a processor, by which layers are modelled that were not measured.

use csdfc_input::device::measured::Measured;
use csdfc_input::device::{Core, Processor};
use csdfc_network::operators;
use csdfc_network::{Layer, Network};
use csdfc_plan::operator::Operator;

use super::machine;
use super::speeds::{MeasuredWork, Rate, Speeds, own_cache, speeds};
use crate::cost::measured::samples;

/// This machine's processor. The rates are those of the networks' layers with their first primitives and one worker. A
/// rate that no layer shows is that of `like`. `cache_bytes` are the caches of a core, from the nearest to the farthest.
pub fn processor(
    networks: &[&Network],
    measured: Vec<Measured>,
    cache_bytes: &[u64],
    like: &Processor,
) -> Processor {
    let known = Processor { cores: machine::cores(), measured, ..like.clone() };
    let done = |layer: &Layer| {
        let (samples, rows) = (samples(&known, layer, 1), layer.rows() as u64);
        let find = |rows: u64| samples.iter().find(|sample| sample.rows == rows).map(|sample| sample.ns);
        let (kind, amount) = work(layer);
        Some(MeasuredWork { kind, amount, rows, whole_ns: find(rows)?, by_rows_ns: find(1) })
    };
    let layers = networks.iter().flat_map(|network| &network.layers);
    let speeds = speeds(layers.filter_map(done), like_speeds(&like.core));
    let core = Core {
        macs_per_second: speeds.macs_per_second,
        depthwise_efficiency: speeds.depthwise_efficiency,
        elements_per_second: speeds.elements_per_second,
        bytes_per_second: machine::bytes_per_second(),
        firing_ns: speeds.firing_ns,
        half_speed: like.core.half_speed,
    };
    Processor { core, cache_bytes: own_cache(cache_bytes).unwrap_or(like.cache_bytes), ..known }
}

/// The rates of a core that layers show.
pub(super) fn like_speeds(core: &Core) -> Speeds {
    Speeds {
        macs_per_second: core.macs_per_second,
        depthwise_efficiency: core.depthwise_efficiency,
        elements_per_second: core.elements_per_second,
        firing_ns: core.firing_ns,
    }
}

/// Which rate a layer shows, and how much work it is.
pub(super) fn work(layer: &Layer) -> (Rate, f64) {
    match &layer.operator {
        Operator::Conv(conv) => {
            let macs = operators::macs(&layer.operator, &layer.input_shapes(), &layer.shape);
            (if conv.groups > 1 { Rate::Depthwise } else { Rate::Dense }, macs as f64)
        }
        _ if layer.parameters.is_empty() => (Rate::Elements, layer.shape.elements() as f64),
        _ => (Rate::Other, 0.0),
    }
}
