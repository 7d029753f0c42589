//! The limits that a plan was asked to keep, and whether it keeps them.

use csdfc_input::units;
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Layer, Plan, TimeBasis};

use super::board;

/// One limit, and what the plan has of it.
#[derive(Debug)]
pub struct Limit {
    /// What was asked for: `memory ≤ 2.00 MB (2 000 000 bytes)`.
    pub asked: String,
    /// What the plan has: `2.10 MB (2 100 000 bytes)`.
    pub has: String,
    /// Whether the plan keeps the limit.
    pub met: bool,
}

/// The limits of a plan, those of CNNs in the order of the CNNs. Checking a plan makes sure of its `met`, which says
/// whether all are kept.
pub fn limits(plan: &Plan) -> Vec<Limit> {
    let asked = &plan.constraints;
    let bytes = |name: &str, most: u64, has: u64| Limit {
        asked: format!("{name} ≤ {}", units::bytes(most)),
        has: units::bytes(has),
        met: has <= most,
    };
    let mut limits = Vec::new();
    limits.extend(asked.memory.map(|most| bytes("memory", most, plan.memory.total)));
    limits.extend(plan.regions.iter().map(|region| bytes(&region.name, region.limit, region.taken())));
    let stored = plan.memory.parameters_stored;
    limits.extend(asked.flash.map(|most| bytes("parameters in flash", most, stored)));
    for cnn in &plan.cnns {
        let (name, basis) = (&cnn.name, basis(&cnn.layers));
        limits.extend(asked.fps.get(name).map(|&least| Limit {
            asked: format!("{name} ≥ {least} fps ({basis})"),
            has: format!("{:.1} fps", cnn.fps),
            met: cnn.fps >= least,
        }));
        limits.extend(asked.latency_ns.get(name).map(|&most| Limit {
            asked: format!("{name} latency ≤ {} ({basis})", units::time(most)),
            has: units::time(cnn.latency_ns),
            met: cnn.latency_ns <= most,
        }));
    }
    limits
}

/// The limits that the plan does not keep, each in words.
pub fn missed(plan: &Plan) -> Vec<String> {
    let missed = limits(plan).into_iter().filter(|limit| !limit.met);
    let missed = missed.map(|limit| format!("{}: the plan has {}", limit.asked, limit.has));
    // The limit of flash counts the parameters alone, since a plan has no code.
    missed.chain(board::lacks_on_its_device(plan)).collect()
}

/// The word for a frame rate, by the origin of the times of its layers.
pub(super) fn basis<'l>(layers: impl IntoIterator<Item = &'l Layer>) -> &'static str {
    let (mut measured, mut modelled) = (false, false);
    for layer in layers.into_iter().filter(|layer| !matches!(layer.operator, Operator::Input(_))) {
        match layer.time.map(|time| time.basis) {
            Some(TimeBasis::Measured | TimeBasis::Interpolated) => measured = true,
            Some(TimeBasis::Modelled) | None => modelled = true,
        }
    }
    match (measured, modelled) {
        (true, false) => "measured",
        (true, true) => "measured in part",
        (false, _) => "modelled",
    }
}
