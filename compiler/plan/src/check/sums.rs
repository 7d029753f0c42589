//! Rule 8: every sum is what its parts add up to.

use std::collections::BTreeMap;

use crate::format::Element;
use crate::operator::Operator;
use crate::plan::{Partition, Plan, StorageModel};

use super::allocation::Allocation;
use super::index::{Index, LayerIndex};
use super::lifetimes::Lifetimes;
use super::{Findings, Violation, integers, parameters, primitives, regions, streamed};

/// Recomputes every sum of the plan.
pub(super) fn check(
    index: &Index<'_>,
    allocations: &[Vec<Allocation>],
    lifetimes: &Lifetimes,
) -> Result<(), Vec<Violation>> {
    let mut findings = Findings::default();
    let (plan, memory) = (index.plan, &index.plan.memory);
    check_parameters(index, &mut findings);

    let end = |of: fn(&Allocation) -> bool| {
        let allocations = allocations.iter().flatten().filter(|allocation| of(allocation));
        allocations.flat_map(Allocation::addresses).map(|range| range.end).max().unwrap_or(0)
    };
    let buffers = match plan.storage_model {
        StorageModel::Edges => sum(plan.buffers.iter().map(|buffer| Some(buffer.bytes))),
        StorageModel::Tensors => Some(end(Allocation::is_ring)),
    };
    findings.sum("memory.buffers", memory.buffers, buffers);
    let arena = buffers.map(|buffers| buffers.max(end(|_| true)));
    findings.sum("memory.arena", memory.arena, arena);
    findings.sum("memory.workspace", memory.workspace, Some(lifetimes.workspaces));
    for region in &plan.regions {
        let addresses = allocations.iter().flatten().flat_map(Allocation::addresses);
        let within = addresses.filter(|range| regions::overlaps(region, range));
        let bytes = within.map(|range| range.end - region.offset).max().unwrap_or(0);
        findings.sum(format!("the bytes of memory region `{}`", region.name), region.bytes, Some(bytes));
    }
    let resident = match plan.regions.is_empty() {
        true => memory.parameters_resident.unwrap_or(memory.parameters_stored),
        false => 0,
    };
    let total = sum([resident, memory.arena].map(Some));
    findings.sum("memory.total", memory.total, total);
    let naive = sum(allocations.iter().zip(&index.cnns).flat_map(|(allocations, cnn)| {
        let whole = |allocation: &Allocation| {
            let frames = if allocation.is_cut() { 2 } else { 1 };
            let entry = &cnn.layers[allocation.tensor];
            let kept = entry.tensor.history().checked_mul(entry.tensor.row_bytes)?;
            entry.whole_bytes().checked_mul(frames)?.checked_add(kept)
        };
        allocations.iter().filter(|allocation| allocation.is_ring()).map(whole)
    }));
    findings.sum("memory.naive", memory.naive, naive);
    findings.sum("memory.bound", memory.bound, Some(lifetimes.bound));
    let mut is = |what: &str, stated: bool, expected: bool| {
        if stated != expected {
            let [stated, expected] = [stated, expected].map(|value| value.to_string());
            findings.push(Violation::Sum { what: what.into(), stated, expected });
        }
    };
    is("memory.proven", memory.proven, memory.arena == lifetimes.bound);
    is("constraints.met", plan.constraints.met, is_met(plan));

    let inputs = layers(index)
        .filter(|entry| matches!(entry.layer.operator, Operator::Input(_)))
        .filter(|entry| entry.tensor.external && entry.tensor.ring.is_none())
        .map(|entry| Some(entry.whole_bytes()));
    findings.sum("memory.external.inputs", memory.external.inputs, sum(inputs));
    let outputs = index.cnns.iter().flat_map(|cnn| {
        let bytes = |name: &str| {
            cnn.layers.iter().find(|entry| entry.tensor.name == name).map(LayerIndex::whole_bytes)
        };
        cnn.cnn.outputs.iter().map(move |output| bytes(&output.tensor))
    });
    findings.sum("memory.external.outputs", memory.external.outputs, sum(outputs));

    check_rates_of_frames(plan, &mut findings);
    check_times(index, &mut findings);
    check_loads(plan, &mut findings);
    check_certificate(plan, lifetimes, &mut findings);
    check_claimed(plan, lifetimes.bound, &mut findings);
    findings.or(())
}

fn layers<'a>(index: &'a Index<'a>) -> impl Iterator<Item = &'a LayerIndex<'a>> {
    index.cnns.iter().flat_map(|cnn| &cnn.layers)
}

/// The sum, or `None` if it or a term is beyond 64 bits.
fn sum(terms: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    terms.into_iter().try_fold(0u64, |sum, term| sum.checked_add(term?))
}

fn check_parameters(index: &Index<'_>, findings: &mut Findings) {
    let memory = &index.plan.memory;
    let mut stored = Some(0u64);
    for cnn in &index.cnns {
        for (l, entry) in cnn.layers.iter().enumerate() {
            let (operator, inputs) = (&entry.layer.operator, cnn.seen_all(l));
            let elements = parameters::elements(operator, &inputs);
            let primitive = primitives::find(entry.layer, &inputs);
            let bytes =
                elements.zip(primitive).and_then(|(elements, primitive)| match primitive.elements[0] {
                    _ if primitive.is_mixed => parameters::mixed_bytes(operator, &inputs),
                    Element::U8 => {
                        let offset = if primitive.has_offset { 4 } else { 0 };
                        integers::parameter_bytes(operator, &inputs, elements)?.checked_add(offset)
                    }
                    float => match primitive.scaled {
                        Some(width) => parameters::scaled_bytes(operator, &inputs, width),
                        None => elements.checked_mul(float.bytes()),
                    },
                });
            let what = format!("parameters of layer `{}/{}`", cnn.cnn.name, entry.layer.name);
            findings.sum(what, entry.layer.parameters, bytes);
            if entry.parameters_of.is_some() {
                continue;
            }
            let packed = primitive.and_then(|primitive| (primitive.stored)(operator, &inputs));
            stored = stored.zip(packed).and_then(|(sum, packed)| sum.checked_add(packed));
        }
    }
    let own = layers(index).filter(|entry| entry.parameters_of.is_none());
    let all = sum(own.map(|entry| Some(entry.layer.parameters)));
    findings.sum("memory.parameters", memory.parameters, all);
    findings.sum("memory.parameters_stored", memory.parameters_stored, stored);
    streamed::check_sums(index, findings);
}

fn is_met(plan: &Plan) -> bool {
    let fps = |name: &str| plan.cnns.iter().find(|cnn| cnn.name == name).map_or(0.0, |cnn| cnn.fps);
    let latency_ns = |name: &str| plan.cnns.iter().find(|cnn| cnn.name == name).map(|cnn| cnn.latency_ns);
    plan.constraints.memory.is_none_or(|most| plan.memory.total <= most)
        && plan.constraints.flash.is_none_or(|most| plan.memory.parameters_stored <= most)
        && plan.regions.iter().all(|region| region.taken() <= region.limit)
        && plan.constraints.fps.iter().all(|(cnn, &least)| fps(cnn) >= least)
        && plan.constraints.latency_ns.iter().all(|(cnn, &most)| latency_ns(cnn).is_some_and(|ns| ns <= most))
}

fn check_rates_of_frames(plan: &Plan, findings: &mut Findings) {
    let wrong = |what: String, fps: f64| Violation::Sum {
        what,
        stated: fps.to_string(),
        expected: "a positive number".into(),
    };
    for cnn in plan.cnns.iter().filter(|cnn| !(cnn.fps.is_finite() && cnn.fps > 0.0)) {
        findings.push(wrong(format!("fps of CNN `{}`", cnn.name), cnn.fps));
    }
    for (name, &fps) in &plan.constraints.fps {
        if !(fps.is_finite() && fps > 0.0) {
            findings.push(wrong(format!("constraints.fps of `{name}`"), fps));
        }
    }
    for (i, point) in plan.pareto.iter().enumerate() {
        for (name, &fps) in point.fps.iter().filter(|(_, fps)| !(fps.is_finite() && **fps > 0.0)) {
            findings.push(wrong(format!("pareto[{i}].fps of `{name}`"), fps));
        }
    }
    let constraints = &plan.constraints;
    let limits = [
        ("constraints.fps", keys(&constraints.fps)),
        ("constraints.latency_ns", keys(&constraints.latency_ns)),
    ];
    let points = plan
        .pareto
        .iter()
        .flat_map(|point| [("pareto.fps", keys(&point.fps)), ("pareto.choices", keys(&point.choices))]);
    let all = limits.into_iter().chain(points).chain([("search.choices", keys(&plan.search.choices))]);
    for (place, name) in all.flat_map(|(place, names)| names.into_iter().map(move |name| (place, name))) {
        if !plan.cnns.iter().any(|cnn| cnn.name == *name) {
            let (kind, name, place) = ("CNN".into(), name.clone(), place.into());
            findings.push(Violation::UnknownName { kind, name, place });
        }
    }
}

fn keys<T>(map: &BTreeMap<String, T>) -> Vec<&String> {
    map.keys().collect()
}

/// Checks that the times of layers are times, and that no input has one.
fn check_times(index: &Index<'_>, findings: &mut Findings) {
    for cnn in &index.cnns {
        for entry in &cnn.layers {
            let Some(time) = &entry.layer.time else { continue };
            let is_input = matches!(entry.layer.operator, Operator::Input(_));
            if is_input || !(time.ns.is_finite() && time.ns >= 0.0) {
                findings.push(Violation::Sum {
                    what: format!("time of layer `{}/{}`", cnn.cnn.name, entry.layer.name),
                    stated: time.ns.to_string(),
                    expected: if is_input { "absent".into() } else { "nanoseconds".into() },
                });
            }
        }
    }
}

/// Checks that partitions which run at the same time on a processor keep no more cores busy than it has, as far as the
/// plan states this.
fn check_loads(plan: &Plan, findings: &mut Findings) {
    for partition in &plan.partitions {
        let Some(load) = partition.load else { continue };
        if !(load.is_finite() && load >= 0.0) {
            let (stated, expected) = (load.to_string(), "a number of cores".into());
            let what = format!("load of partition `{}`", partition.name);
            findings.push(Violation::Sum { what, stated, expected });
        }
        if !plan.device.cores.contains_key(&partition.processor) {
            let (kind, name) = ("processor".into(), partition.processor.clone());
            findings.push(Violation::UnknownName {
                kind,
                name,
                place: format!("partition `{}`", partition.name),
            });
        }
    }
    let is_used = |name: &String| plan.partitions.iter().any(|partition| partition.processor == *name);
    for name in plan.device.cores.keys().filter(|name| !is_used(name)) {
        let why = format!("no partition runs on `{name}`");
        findings.push(Violation::Structure { place: "device.cores".into(), why });
    }
    for (number, element) in plan.parallel.iter().enumerate() {
        for (processor, &cores) in &plan.device.cores {
            let runs = |partition: &&Partition| {
                partition.processor == *processor && element.contains(&partition.name)
            };
            let load: f64 = plan.partitions.iter().filter(runs).filter_map(|partition| partition.load).sum();
            // Loads are rounded, each by less than this.
            if load > cores as f64 * (1.0 + 1e-9) {
                findings.push(Violation::Sum {
                    what: format!("the load of processor `{processor}` in element {number} of `parallel`"),
                    stated: load.to_string(),
                    expected: format!("at most {cores}, its cores"),
                });
            }
        }
    }
}

/// Checks that the claim of a search about placements contradicts neither the bound nor the plan's own placement.
fn check_claimed(plan: &Plan, bound: u64, findings: &mut Findings) {
    let Some(claimed) = plan.certificate.claimed else { return };
    let placed = plan.storage_model == StorageModel::Tensors;
    if !placed || claimed <= bound || plan.memory.arena < claimed {
        let expected = match plan.storage_model {
            StorageModel::Tensors => format!("more than {bound} and at most {}", plan.memory.arena),
            StorageModel::Edges => "nothing in model `edges`".into(),
        };
        findings.push(Violation::Sum {
            what: "certificate.claimed".into(),
            stated: claimed.to_string(),
            expected,
        });
    }
}

/// Checks that the certificate names a moment of the most bytes, if anything is stored.
fn check_certificate(plan: &Plan, lifetimes: &Lifetimes, findings: &mut Findings) {
    if let Some(moment) = &lifetimes.unstated {
        findings.push(Violation::Witness { moment: moment.clone() });
    } else if lifetimes.bound == 0 && plan.certificate.bound.is_some() {
        let why = "nothing is stored, so that it should be null".into();
        findings.push(Violation::Structure { place: "certificate.bound".into(), why });
    }
}
