//! Which primitives compute the layers, on a device that was measured.
//!
//! Primitives, layouts, rows per firing and segments are chosen together, under one budget. The first plan has the first
//! primitive of each layer. The strategies make these plans:
//!
//! 1. *Primitives first, then memory* ([`primitives_first`]): the time optimum of [`selection`](crate::selection),
//!    which counts the time of conversions, planned within the budget.
//! 2. *Memory first, then primitives* ([`memory_first`]): the rows and segments of the first plan, with faster
//!    primitives where the memory that is left allows (`upgrade`).
//! 3. *Joint* ([`joint`]): offers of [`joint`](crate::search::joint), in the layouts of the first plan, in those of 1,
//!    and in those of the table's optimum at prices of stored bytes (`layouts`). A few that should be the fastest within
//!    the budget are planned exactly as they are (`offers`). The best plan so far is upgraded ([`upgrade`]), and a search
//!    with its primitives goes on from there ([`search_again`]).
//!
//! So a plan is never worse than the first plan and those of 1 and 2. Three things are exact: the table's time optimum;
//! the offers, for the prices that are tried; and the memory and modelled time of every plan. It is not proven that no
//! other plan is better.

pub mod explain;
mod layouts;
mod named;
mod offers;
mod upgrade;

use csdfc_plan::plan::StorageModel;
use csdfc_runtime::bind::Primitive;
use tracing::info;

pub(super) use self::named::named;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::app::spec::{Method, Primitives};
use csdfc_input::device::DeviceProfile;
use csdfc_network::LayerId;

use super::assemble::parameters_resident;
use super::candidate::{Candidate, Planned};
use super::{Context, Situation, fixed};
use crate::cost::ProcessorShare;
use crate::cost::measured::fastest;
use crate::error::Error;
use crate::frame::task;
use crate::objective::Objective;
use crate::search::start::Start;
use crate::search::watch::{Shares, Watch};

/// The plans that compete with the joint one, for comparisons.
#[derive(Debug)]
pub struct SeparatePlans {
    /// With the first primitive of each layer.
    pub fixed: Planned,
    /// The time optimum of the primitives, planned within the budget. `None` if no primitive is measured to be faster.
    pub primitives_first: Option<Planned>,
    /// The fixed plan with faster primitives in the memory that is left. `None` if none fits.
    pub memory_first: Option<Planned>,
}

/// The primitives with which the layers and conversions of an application are the fastest, as measured.
pub(super) enum TimeOptimum {
    /// Not sought, because primitives are not chosen.
    NotSought,
    /// Those that the application has.
    Same,
    /// Others: the application with them.
    Other(Box<Application>),
}

impl TimeOptimum {
    /// That of an application.
    pub(super) fn new(application: &Application, device: &DeviceProfile) -> Result<Self, Error> {
        if !are_chosen(application, device) {
            return Ok(TimeOptimum::NotSought);
        }
        let optimum = time_optimum(application, device)?;
        Ok(optimum.map_or(TimeOptimum::Same, |optimum| TimeOptimum::Other(Box::new(optimum))))
    }
}

/// The most searches for the best plan of an application: with the first primitives, with the time optimum, for offers,
/// and from the best plan so far. One if primitives are not chosen.
pub(super) fn searches(application: &Application, device: &DeviceProfile) -> usize {
    if are_chosen(application, device) { 4 } else { 1 }
}

/// The plan with the time optimum of the primitives.
pub(super) fn primitives_first(situation: &Situation<'_>) -> Result<Option<Candidate>, Error> {
    let Situation { context, application, best, .. } = *situation;
    let TimeOptimum::Other(faster) = situation.time_optimum else { return Ok(None) };
    let is_met = best.planned.shortfall.is_none() && best.planned.refused.is_none();
    if is_met && exceeds_by_parameters(faster) {
        return Ok(None);
    }
    let start = if layers(faster) == layers(application) { situation.start } else { &Start::default() };
    let planned = context.plan(start, faster, situation.shares)?;
    Ok(Some(Candidate { application: faster.as_ref().clone(), planned }))
}

/// The first plan with faster primitives in the memory that it leaves.
pub(super) fn memory_first(situation: &Situation<'_>) -> Result<Option<Candidate>, Error> {
    match situation.time_optimum {
        TimeOptimum::NotSought => Ok(None),
        _ => upgrade::upgraded(situation.first, situation.context, situation.objective),
    }
}

/// The best plan of the offers.
pub(super) fn joint(situation: &Situation<'_>) -> Result<Option<Candidate>, Error> {
    let Situation { context, application, .. } = *situation;
    if !situation.is_joint() || application.storage != StorageModel::Tensors {
        return Ok(None);
    }
    let mut sources = vec![application.clone()];
    if let TimeOptimum::Other(faster) = situation.time_optimum
        && layers(faster) != layers(application)
    {
        sources.push(faster.as_ref().clone());
    }
    if has_open_layouts(application) {
        let arena = situation.first.planned.plan.memory.arena;
        sources.extend(layouts::layouts_within(application, context.device, situation.objective, arena)?);
    }
    offers::planned(&sources, context, situation.objective, &situation.shares.next())
}

/// The best plan so far with faster primitives in the memory that it leaves.
pub(super) fn upgrade(situation: &Situation<'_>) -> Result<Option<Candidate>, Error> {
    match situation.is_joint() {
        true => upgrade::upgraded(situation.best, situation.context, situation.objective),
        false => Ok(None),
    }
}

/// The plan of a search with the primitives of the best plan so far, which starts from that plan and its front. The rows
/// of the best plan may come from a search with other primitives. And within a limit, a search that starts from the
/// plans of an earlier one often finds better plans.
pub(super) fn search_again(situation: &Situation<'_>) -> Result<Option<Candidate>, Error> {
    let Situation { context, objective, best, .. } = *situation;
    let is_given = best.planned.plan.search.method != Method::Extended.name();
    if !situation.is_joint() || !(is_given || objective.limit.is_some()) {
        return Ok(None);
    }
    let planned = context.plan(&Start::Search(best.known_choices()), &best.application, situation.shares)?;
    Ok(Some(Candidate { application: best.application.clone(), planned }))
}

impl Situation<'_> {
    fn is_joint(&self) -> bool {
        is_joint(self.start, self.application, self.time_optimum)
    }
}

/// Whether primitives are chosen together with rows and segments, which are searched for.
pub(super) fn is_joint(start: &Start, application: &Application, time_optimum: &TimeOptimum) -> bool {
    fixed::method(start, application) == Some(Method::Extended)
        && !matches!(time_optimum, TimeOptimum::NotSought)
}

/// Whether the parameters alone exceed the memory. Then no plan meets the constraints.
fn exceeds_by_parameters(application: &Application) -> bool {
    !Objective::new(application).fits(parameters_resident(&task::tasks(application)))
}

fn layers(application: &Application) -> Vec<usize> {
    application.cnns.iter().map(|cnn| cnn.network.layers.len()).collect()
}

/// Whether primitives are chosen. They are not if they are fixed, if nothing was measured on a processor that the
/// application uses, or if weights are streamed, since the choice does not know blocks yet.
fn are_chosen(application: &Application, device: &DeviceProfile) -> bool {
    let mut partitions = application.cnns.iter().flat_map(|cnn| &cnn.partitions);
    let is_measured = partitions.any(|partition| {
        let processor = device.processor(&partition.processor);
        processor.is_ok_and(|processor| !processor.measured.is_empty())
    });
    application.primitives == Primitives::Auto && application.streamed.is_none() && is_measured
}

/// The application with the primitives of the time optimum, and conversions. If the layouts are given, each convolution
/// has its fastest primitive. `None` if the application has these primitives already.
fn time_optimum(application: &Application, device: &DeviceProfile) -> Result<Option<Application>, Error> {
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
    with_primitives(application, &changes)
}

/// The application with these primitives, none of which changes a layout. `None` if the application has them already.
fn with_primitives(
    application: &Application,
    changes: &[(usize, LayerId, Primitive)],
) -> Option<Application> {
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

/// The plans with which the plan of [`plan_from`](super::plan_from) is compared if primitives are chosen.
///
/// # Errors
/// As [`plan()`](super::plan()).
pub fn separate_plans(
    application: &Application,
    device: &DeviceProfile,
    model_paths: Vec<String>,
) -> Result<SeparatePlans, Error> {
    let watch = &Watch::unwatched();
    let context = Context { device, model_paths: &model_paths, watch, validate: &|_| Ok(()) };
    let shares = Shares::new(watch, searches(application, device));
    let plan = |application: &Application| context.plan(&Start::default(), application, &shares);
    let first = Candidate { application: application.clone(), planned: plan(application)? };
    let faster = time_optimum(application, device)?;
    let primitives_first = faster.map(|faster| plan(&faster)).transpose()?;
    let memory_first = upgrade::upgraded(&first, &context, &Objective::new(application))?;
    let memory_first = memory_first.map(|upgraded| upgraded.planned);
    Ok(SeparatePlans { fixed: first.planned, primitives_first, memory_first })
}
