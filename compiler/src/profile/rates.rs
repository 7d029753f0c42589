//! The rates of a processor: what a plan goes by where a layer was not measured.

use csdfc_codegen::operator::Operator;

use super::machine;
use crate::cost::measured::{Measured, samples};
use crate::cost::{Core, Processor};
use crate::network::Network;
use crate::operators;

/// A sum of work, and the nanoseconds that it took.
#[derive(Default)]
struct Work {
    amount: f64,
    ns: f64,
}

impl Work {
    fn add(&mut self, amount: f64, ns: f64) {
        self.amount += amount;
        self.ns += ns;
    }

    fn per_second(&self) -> Option<f64> {
        (self.amount > 0.0 && self.ns > 0.0).then(|| self.amount / self.ns * 1e9)
    }
}

/// This machine's processor. The rates are those of the networks' layers with their first primitives and one worker. A
/// rate that no layer shows is that of `like`. `cache_bytes` are the caches of a core, from the nearest to the farthest.
pub fn processor(
    networks: &[&Network],
    measured: Vec<Measured>,
    cache_bytes: &[u64],
    like: &Processor,
) -> Processor {
    let mut known = Processor { cores: machine::cores(), measured, ..like.clone() };
    let (mut dense, mut depthwise, mut elements, mut firings) =
        (Work::default(), Work::default(), Work::default(), Work::default());
    for layer in networks.iter().flat_map(|network| &network.layers) {
        let inputs = layer.input_shapes();
        let samples = samples(&known, layer, 1);
        let Some(whole) = samples.iter().find(|sample| sample.rows == layer.rows() as u64) else { continue };
        match &layer.operator {
            Operator::Conv(conv) => {
                let macs = operators::macs(&layer.operator, &inputs, &layer.shape) as f64;
                let rate = if conv.groups > 1 { &mut depthwise } else { &mut dense };
                rate.add(macs, whole.ns);
            }
            _ if layer.parameters.is_empty() => elements.add(layer.shape.elements() as f64, whole.ns),
            _ => {}
        }
        if let Some(by_rows) = samples.iter().find(|sample| sample.rows == 1 && whole.rows > 1) {
            firings.add((whole.rows - 1) as f64, by_rows.ns - whole.ns);
        }
    }
    let like = like.core;
    let macs_per_second = dense.per_second().unwrap_or(like.macs_per_second);
    known.core = Core {
        macs_per_second,
        depthwise_efficiency: depthwise
            .per_second()
            .map_or(like.depthwise_efficiency, |rate| rate / macs_per_second),
        elements_per_second: elements.per_second().unwrap_or(like.elements_per_second),
        bytes_per_second: machine::bytes_per_second(),
        // What layers by parts take longer is the price of their firings.
        firing_ns: firings.per_second().map_or(like.firing_ns, |rate| 1e9 / rate),
        half_speed: like.half_speed,
    };
    if let [_, own, ..] | [own] = cache_bytes {
        known.cache_bytes = *own;
    }
    known
}
