//! Weights that are read again within a frame, because memory has too little room to keep them.
//!
//! A layer by parts keeps its weights from its first firing to its last. Where no such plan fits, or the least memory is asked
//! for, each firing may read them again instead, slice by slice, so that a block of one panel will do. The search for such a
//! plan lets all layers do so. Then those keep their weights that can without more memory, one after another, that with
//! the most bytes to read first.

use std::collections::BTreeSet;

use tracing::info;

use super::better::is_better;
use super::primitives::Plan;
use super::{LayerOf, Planned, limit};
use crate::app::resolve::{Application, Cnn, Paged};
use crate::error::Error;
use crate::frame::task;
use crate::search::code;
use crate::search::known::Start;
use crate::units::MemoryGoal;

/// The plan, or one that takes less memory because some layers read their weights again, if memory is what it lacks.
pub(super) fn smaller(
    planned: Planned,
    application: &Application,
    start: &Start,
    plan: Plan<'_>,
) -> Result<Planned, Error> {
    let Some(paged) = who(application, &planned) else { return Ok(planned) };
    let with = |again: &BTreeSet<LayerOf>| Application {
        paged: Some(Paged { again: again.clone(), ..paged.clone() }),
        may_be_paged: None,
        ..application.clone()
    };
    let mut again = sliceable(&with(&BTreeSet::new()));
    let mut best = plan(start, &with(&again))?;
    if best.plan.memory.total >= planned.plan.memory.total || !is_better(&best, &planned, application) {
        return Ok(planned);
    }
    let most = limit(application).unwrap_or(0).max(best.plan.memory.total);
    let Some(picked) = picked(&best, application) else { return Ok(best) };
    for layer in by_bytes(&best) {
        let mut fewer = again.clone();
        fewer.remove(&layer);
        let mut tried = plan(&picked, &with(&fewer))?;
        let is_met = tried.refused.is_none() && (tried.shortfall.is_none() || best.shortfall.is_some());
        info!(
            layer = layer.1,
            total = tried.plan.memory.total,
            bytes = bytes_read(&tried),
            "keeps its weights"
        );
        if is_met && tried.plan.memory.total <= most && bytes_read(&tried) < bytes_read(&best) {
            // The search is still that which found the choices.
            tried.plan.search = best.plan.search;
            tried.plan.pareto = best.plan.pareto;
            (best, again) = (tried, fewer);
        }
    }
    Ok(best)
}

/// Whose weights may be read again: nobody's if memory does not force it.
fn who<'a>(application: &'a Application, planned: &Planned) -> Option<&'a Paged> {
    match limit(application) {
        Some(limit) if planned.plan.memory.total > limit => {
            application.paged.as_ref().or(application.may_be_paged.as_ref())
        }
        Some(_) => None,
        None => {
            application.paged.as_ref().filter(|_| application.constraints.memory == Some(MemoryGoal::Min))
        }
    }
}

/// The layers whose weights can be read in slices.
fn sliceable(application: &Application) -> BTreeSet<LayerOf> {
    let mut layers = BTreeSet::new();
    for (cnn, task) in task::tasks(application).iter().enumerate() {
        let is_sliced = |id| task.paging(id).is_some_and(|paging| paging.slicing.is_some());
        let ids = task.network.ids().filter(|id| is_sliced(*id));
        layers.extend(ids.map(|id| (cnn, task.network.layer(id).name.clone())));
    }
    layers
}

/// The choices of a plan.
fn picked(planned: &Planned, application: &Application) -> Option<Start> {
    let choices = &planned.plan.search.choices;
    let choice = |cnn: &Cnn| code::read(choices.get(&cnn.name)?, &cnn.network).ok();
    application.cnns.iter().map(choice).collect::<Option<_>>().map(Start::Picked)
}

/// The layers that read their weights again, those first that read the most bytes more than once.
fn by_bytes(planned: &Planned) -> Vec<LayerOf> {
    let cnns = planned.plan.cnns.iter().enumerate();
    let layers = cnns.flat_map(|(c, cnn)| cnn.layers.iter().map(move |layer| (c, layer)));
    let mut again: Vec<(u64, LayerOf)> = layers
        .filter(|(_, layer)| layer.times_read() > 1)
        .map(|(c, layer)| (layer.parameters * (layer.firings - 1), (c, layer.name.clone())))
        .collect();
    // Stable: of equals, the first comes first.
    again.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    again.into_iter().map(|(_, layer)| layer).collect()
}

/// Bytes of weights that a frame of each CNN reads, in all.
fn bytes_read(planned: &Planned) -> u64 {
    planned.plan.cnns.iter().filter_map(|cnn| cnn.bytes_read).sum()
}
