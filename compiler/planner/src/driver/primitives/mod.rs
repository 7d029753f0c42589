//! Which primitives compute the layers, on a device that was measured.
//!
//! Primitives, layouts, rows per firing and segments are chosen together, under one budget. The plan is the best of these:
//!
//! 1. *Fixed*: the first primitive of each layer.
//! 2. *Primitives first, then memory*: the time optimum of [`selection`](crate::selection), which counts the time of
//!    conversions, planned within the budget.
//! 3. *Memory first, then primitives*: the rows and segments of the fixed plan, with faster primitives where the memory
//!    that is left allows (`upgrade`).
//! 4. *Joint*: offers of [`joint`](crate::search::joint), in the layouts of 1, in those of 2, and in those of the table's
//!    optimum at prices of stored bytes (`layouts`). A few that should be the fastest within the budget are planned
//!    exactly as they are (`offers`). The best so far is upgraded, and a search with its
//!    primitives goes on from there.
//!
//! So a plan is never worse than those of 1, 2 and 3. Three things are exact: the table's time optimum; the offers, for
//! the prices that are tried; and the memory and modelled time of every plan. It is not proven that no other plan is
//! better.

pub mod explain;
mod layouts;
mod named;
mod offers;
mod upgrade;

use std::collections::BTreeMap;

use csdfc_plan::plan::StorageModel;
use csdfc_runtime::bind::Primitive;
use tracing::info;

pub(super) use self::named::named;
use csdfc_input::app::resolve::{Application, Cnn, RowsChoice};
use csdfc_input::app::spec::{Method, Primitives};
use csdfc_input::device::DeviceProfile;
use csdfc_network::LayerId;

use super::assemble::parameters_resident;
use super::{Planned, limit};
use crate::cost::ProcessorShare;
use crate::cost::measured::fastest;
use crate::driver::compare::{better, is_better};
use crate::error::Error;
use crate::frame::choice::Choice;
use crate::frame::task;
use crate::search::code;
use crate::search::known::Start;
use crate::search::watch::Shares;

/// Plans an application with the primitives that it has.
pub(super) type Plan<'a> = &'a dyn Fn(&Start, &Application) -> Result<Planned, Error>;

/// A plan, and the application that was planned.
struct Candidate {
    /// The application with its primitives and conversions.
    application: Application,
    planned: Planned,
}

/// The plans that compete with the joint one, for comparisons.
#[derive(Debug)]
pub struct Ways {
    /// With the first primitive of each layer.
    pub fixed: Planned,
    /// The time optimum of the primitives, planned within the budget. `None` if no primitive is measured to be faster.
    pub primitives_first: Option<Planned>,
    /// The fixed plan with faster primitives in the memory that is left. `None` if none fits.
    pub memory_first: Option<Planned>,
}

/// The most searches for the best plan of an application: with fixed primitives, with the time optimum, for offers, and
/// from the best plan so far. One if primitives are not chosen.
pub(super) fn searches(application: &Application, device: &DeviceProfile) -> usize {
    if are_chosen(application, device) { 4 } else { 1 }
}

/// The best plan of an application, whose plan with fixed primitives is known. The search for offers is the next of
/// `shares`.
pub(super) fn improved(
    fixed: Planned,
    start: &Start,
    application: &Application,
    device: &DeviceProfile,
    shares: &Shares<'_>,
    plan: Plan<'_>,
) -> Result<Planned, Error> {
    if !are_chosen(application, device) {
        return Ok(fixed);
    }
    let arena = fixed.plan.memory.arena;
    let mut best = Candidate { application: application.clone(), planned: fixed };
    let upgraded = upgrade::upgraded(&best, device, plan)?;
    let mut sources = vec![application.clone()];
    if let Some(faster) = primitives_first(application, device)? {
        let has_other_layers = layers(&faster) != layers(application);
        if has_other_layers {
            sources.push(faster.clone());
        }
        let is_met = best.planned.shortfall.is_none() && best.planned.refused.is_none();
        if !(is_met && exceeds_by_parameters(&faster)) {
            let start = if has_other_layers { &Start::default() } else { start };
            let planned = plan(start, &faster)?;
            best = best.or(Candidate { application: faster, planned }, application);
        }
    }
    if let Some(upgraded) = upgraded {
        best = best.or(upgraded, application);
    }
    let is_searched = matches!(start, Start::Search(_)) && application.rows == RowsChoice::Default;
    let method = application.search.method.unwrap_or_default();
    if !is_searched || method != Method::Extended {
        return Ok(best.planned);
    }
    if has_open_layouts(application) {
        sources.extend(layouts::within(application, device, arena)?);
    }
    if application.storage == StorageModel::Tensors
        && let Some(offer) = offers::planned(&sources, application, device, &shares.next(), plan)?
    {
        best = best.or(offer, application);
    }
    if let Some(upgraded) = upgrade::upgraded(&best, device, plan)? {
        best = best.or(upgraded, application);
    }
    // The rows of the best plan may come from a search with other primitives. Within a budget, a search that starts
    // from the plans of an earlier one often finds better plans.
    let is_given = best.planned.plan.search.method != method.name();
    if is_given || limit(application).is_some() {
        let planned = plan(&Start::Search(best.known()), &best.application)?;
        best.planned = better(planned, best.planned, application);
    }
    best.planned.plan.search.method = method.name().into();
    Ok(best.planned)
}

impl Candidate {
    fn or(self, other: Candidate, application: &Application) -> Candidate {
        if is_better(&other.planned, &self.planned, application) { other } else { self }
    }

    /// The choice of each CNN.
    fn choices(&self) -> Vec<Choice> {
        self.read(&self.planned.plan.search.choices)
    }

    /// The choices of the plan and of its front.
    fn known(&self) -> Vec<Vec<Option<Choice>>> {
        let plan = &self.planned.plan;
        let all = std::iter::once(&plan.search.choices).chain(plan.pareto.iter().map(|point| &point.choices));
        let mut known: Vec<Vec<Option<Choice>>> = Vec::new();
        for choices in all.map(|choices| self.read(choices).into_iter().map(Some).collect()) {
            if !known.contains(&choices) {
                known.push(choices);
            }
        }
        known
    }

    fn read(&self, choices: &BTreeMap<String, String>) -> Vec<Choice> {
        let choice = |cnn: &Cnn| {
            let text = choices.get(&cnn.name).map_or("", String::as_str);
            // The text was written for this very network.
            code::read(text, &cnn.network).unwrap_or_else(|_| Choice::none(&cnn.network))
        };
        self.application.cnns.iter().map(choice).collect()
    }
}

/// Whether the parameters alone exceed the memory. Then no plan meets the constraints.
fn exceeds_by_parameters(application: &Application) -> bool {
    limit(application).is_some_and(|limit| parameters_resident(&task::tasks(application)) > limit)
}

fn layers(application: &Application) -> Vec<usize> {
    application.cnns.iter().map(|cnn| cnn.network.layers.len()).collect()
}

/// Whether primitives are chosen. They are not if they are fixed, if nothing was measured on a processor that the
/// application uses, or if weights are paged, since the choice does not know blocks yet.
fn are_chosen(application: &Application, device: &DeviceProfile) -> bool {
    let mut partitions = application.cnns.iter().flat_map(|cnn| &cnn.partitions);
    let is_measured = partitions.any(|partition| {
        let processor = device.processor(&partition.processor);
        processor.is_ok_and(|processor| !processor.measured.is_empty())
    });
    application.primitives == Primitives::Auto && application.paged.is_none() && is_measured
}

/// The application with the primitives of the time optimum, and conversions. If the layouts are given, each convolution
/// has its fastest primitive. `None` if the application has these primitives already.
fn primitives_first(application: &Application, device: &DeviceProfile) -> Result<Option<Application>, Error> {
    if !has_open_layouts(application) {
        return Ok(with_fastest(application, device));
    }
    Ok(layouts::optimum(application, &layouts::tables(application, device)?, 0.0).map(|(faster, _)| faster))
}

/// Whether layouts may change. They may not if the application gives rows of layers or steps of a schedule, or in
/// storage model `edges`.
fn has_open_layouts(application: &Application) -> bool {
    let mut partitions = application.cnns.iter().flat_map(|cnn| &cnn.partitions);
    application.rows == RowsChoice::Default
        && application.storage == StorageModel::Tensors
        && partitions.all(|partition| partition.schedule.is_none())
}

/// The application with, for each layer, the fastest measured primitive that keeps its layouts. `None` if the
/// application has these primitives already.
fn with_fastest(application: &Application, device: &DeviceProfile) -> Option<Application> {
    let mut changes = Vec::new();
    for (c, cnn) in application.cnns.iter().enumerate() {
        for partition in &cnn.partitions {
            let Ok(processor) = device.processor(&partition.processor) else { continue };
            let threads = ProcessorShare::alone(processor, application.threads).workers;
            for id in &partition.layers {
                let layer = cnn.network.layer(*id);
                let fastest = fastest(processor, layer, threads, application.max_primitive_error);
                changes.extend(fastest.map(|fastest| (c, *id, fastest)));
            }
        }
    }
    with(application, &changes)
}

/// The application with these primitives, none of which changes a layout. `None` if the application has them already.
fn with(application: &Application, changes: &[(usize, LayerId, Primitive)]) -> Option<Application> {
    let has = |(c, id, primitive): &(usize, LayerId, Primitive)| {
        application.cnns[*c].network.layer(*id).primitive() == *primitive
    };
    if changes.iter().all(has) {
        return None;
    }
    let mut changed = application.clone();
    for (c, id, primitive) in changes.iter().filter(|change| !has(change)) {
        changed.cnns[*c].network.layers[id.0].primitive = Some(*primitive);
    }
    info!(layers = changes.len(), "other primitives");
    Some(changed)
}

/// The plans with which the joint one is compared.
pub(super) fn ways(
    fixed: Planned,
    application: &Application,
    device: &DeviceProfile,
    plan: Plan<'_>,
) -> Result<Ways, Error> {
    let faster = primitives_first(application, device)?;
    let primitives_first = faster.map(|faster| plan(&Start::default(), &faster)).transpose()?;
    let from = Candidate { application: application.clone(), planned: fixed };
    let memory_first = upgrade::upgraded(&from, device, plan)?.map(|upgraded| upgraded.planned);
    Ok(Ways { fixed: from.planned, primitives_first, memory_first })
}
