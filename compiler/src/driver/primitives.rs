//! Which primitives compute the layers, on a device that was measured.

use super::Planned;
use crate::app::resolve::Application;
use crate::app::spec::{Prefer, Primitives};
use crate::cost::measured::fastest;
use crate::cost::{DeviceProfile, Seat};
use crate::units::MemoryGoal;

/// The application with the fastest measured primitive for each layer. `None` if these are the ones that it has.
pub(super) fn with_fastest(application: &Application, device: &DeviceProfile) -> Option<Application> {
    let is_measured = |processor: &crate::cost::Processor| !processor.measured.is_empty();
    if application.primitives == Primitives::Fixed || !device.processors.values().any(is_measured) {
        return None;
    }
    let mut faster = application.clone();
    let mut differs = false;
    for cnn in &mut faster.cnns {
        for partition in &cnn.partitions {
            let Ok(processor) = device.processor(&partition.processor) else { continue };
            let threads = Seat::alone(processor, application.threads).workers;
            for id in &partition.layers {
                let layer = &cnn.network.layers[id.0];
                let chosen = fastest(processor, layer, threads, application.max_error);
                if let Some(chosen) = chosen.filter(|chosen| *chosen != layer.primitive()) {
                    cnn.network.layers[id.0].primitive = Some(chosen);
                    differs = true;
                }
            }
        }
    }
    differs.then_some(faster)
}

/// The better of two plans of an application: one that the judge accepts, that meets the constraints, and that takes less
/// memory or is faster, as is asked for. Frame rates of several CNNs are multiplied.
pub(super) fn better(first: Planned, other: Planned, application: &Application) -> Planned {
    let least =
        application.constraints.memory == Some(MemoryGoal::Min) || application.prefer == Prefer::Memory;
    let limit = match application.constraints.memory {
        Some(MemoryGoal::Bytes(bytes)) => bytes,
        Some(MemoryGoal::Min) | None => u64::MAX,
    };
    let rank = |planned: &Planned| {
        let memory = planned.plan.memory.total;
        let rates: f64 = planned.plan.cnns.iter().map(|cnn| cnn.fps.ln()).sum();
        let is_unmet = (planned.refused.is_some(), planned.shortfall.is_some(), memory.saturating_sub(limit));
        let worth = if least { (memory as f64, -rates) } else { (-rates, memory as f64) };
        (is_unmet, worth)
    };
    if rank(&other) < rank(&first) { other } else { first }
}
