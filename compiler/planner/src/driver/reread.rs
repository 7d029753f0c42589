//! Weights that are read again within a frame, because memory has too little room to keep them.
//!
//! A layer by parts keeps its weights from its first firing to its last. If no such plan fits the memory, each firing
//! may read the weights again instead, tile by tile. Then a block of one panel suffices. First, csdfc searches for a
//! plan in which all layers read their weights again. Then it takes the layers one after another, beginning with the
//! layer that reads the most bytes, and lets each keep its weights if that takes no more memory than the budget or, if
//! the least memory (`min`) is asked for, no more than the smallest plan.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_input::app::resolve::{Application, Streamed};
use csdfc_plan::plan;
use csdfc_plan::timeline::{self, PlaceKind, Timeline};
use tracing::info;

use super::candidate::{Candidate, Planned};
use super::{LayerOf, Situation};
use crate::error::Error;
use crate::frame::task;
use crate::objective::{Least, Objective};
use crate::search::watch::Shares;

/// The plan in which some layers read their weights again, if the best plan so far lacks memory and this one takes less.
pub(super) fn reread(situation: &Situation<'_>) -> Result<Option<Candidate>, Error> {
    let Situation { context, application, objective, .. } = *situation;
    let kept = &situation.best.planned;
    let Some(streamed) = how_streamed(application, objective, kept) else { return Ok(None) };
    let with = |again: &BTreeSet<LayerOf>| Application {
        streamed: Some(Streamed { again: again.clone(), ..streamed.clone() }),
        may_be_streamed: None,
        ..application.clone()
    };
    let stored = tileable(&with(&BTreeSet::new()));
    let mut again: BTreeSet<LayerOf> = stored.keys().cloned().collect();
    let planned = context.plan(situation.start, &with(&again), &Shares::new(context.watch, 1))?;
    let mut best = Candidate { application: with(&again), planned };
    let is_smaller = best.planned.plan.memory.total < kept.plan.memory.total;
    if !is_smaller || !best.planned.is_better(kept, objective) {
        return Ok(None);
    }
    let least = best.planned.plan.memory.total;
    let most = match objective.least {
        Least::Memory => least,
        Least::Time => objective.limit.unwrap_or(0).max(least),
    };
    let choices = best.choices();
    let mut timeline = timeline::timeline(&best.planned.plan).ok();
    for layer in by_bytes(&best.planned) {
        if context.watch.is_over() {
            break;
        }
        let bytes = stored.get(&layer).copied().unwrap_or(0);
        if timeline.as_ref().is_some_and(|seen| !may_keep(&best.planned.plan, seen, &layer, bytes, most)) {
            continue;
        }
        let mut fewer = again.clone();
        fewer.remove(&layer);
        let mut tried = context.plan_picked(choices.clone(), &with(&fewer))?;
        let is_met =
            tried.refused.is_none() && (tried.shortfall.is_none() || best.planned.shortfall.is_some());
        info!(
            layer = layer.1,
            total = tried.plan.memory.total,
            bytes = bytes_read(&tried),
            "keeps its weights"
        );
        if is_met && tried.plan.memory.total <= most && bytes_read(&tried) < bytes_read(&best.planned) {
            // The plan states the search that found its choices.
            tried.plan.search = best.planned.plan.search;
            tried.plan.pareto = best.planned.plan.pareto;
            (best, again) = (Candidate { application: with(&fewer), planned: tried }, fewer);
            timeline = timeline::timeline(&best.planned.plan).ok();
        }
    }
    Ok(Some(best))
}

/// How weights are streamed, if memory forces layers to read them again, or the least memory is asked for; otherwise
/// `None`.
fn how_streamed<'a>(
    application: &'a Application,
    objective: &Objective,
    planned: &Planned,
) -> Option<&'a Streamed> {
    let is_forced = !objective.fits(planned.plan.memory.total);
    let asked = application.streamed.as_ref().filter(|_| is_forced || objective.least == Least::Memory);
    asked.or(application.may_be_streamed.as_ref().filter(|_| is_forced))
}

/// The layers whose weights can be read in tiles, with the bytes of their weights.
fn tileable(application: &Application) -> BTreeMap<LayerOf, u64> {
    let mut layers = BTreeMap::new();
    for (cnn, task) in task::tasks(application).iter().enumerate() {
        let stored = |id| {
            task.streaming(id)
                .filter(|streaming| streaming.tiling.is_some())
                .map(|streaming| streaming.stored)
        };
        let name = |id| (cnn, task.network.layer(id).name.clone());
        layers.extend(task.network.ids().filter_map(|id| Some((name(id), stored(id)?))));
    }
    layers
}

/// Whether a layer could keep `bytes` bytes of weights in a total of `most` bytes. This is optimistic: rings may lie
/// anywhere, and other blocks take no room. It asks only whether the bytes in use between the layer's firings leave
/// enough room.
fn may_keep(plan: &plan::Plan, seen: &Timeline, (cnn, name): &LayerOf, bytes: u64, most: u64) -> bool {
    let layers = &plan.cnns[*cnn].layers;
    let own = seen.firings.iter().filter(|firing| firing.cnn == *cnn && layers[firing.layer].name == *name);
    let own: Vec<(f64, f64)> = own.map(|firing| (firing.start_ns, firing.end_ns)).collect();
    let (Some((_, from)), Some((to, _))) = (own.first(), own.last()) else { return true };
    let is_between =
        |ns: f64| *from < ns && ns < *to && !own.iter().any(|(start, end)| *start <= ns && ns <= *end);
    let is_block = |life: &&timeline::Life| seen.places[life.place].kind == PlaceKind::Block;
    let lives = |life: &timeline::Life, ns: f64| {
        let (first, last) = (life.steps.first(), life.steps.last());
        first.zip(last).is_some_and(|((start, _), (end, _))| *start <= ns && ns <= *end)
    };
    let without_blocks = |[ns, used]: &[f64; 2]| {
        let blocks = seen.lives.iter().filter(is_block).filter(|life| lives(life, *ns));
        (*used as u64).saturating_sub(blocks.map(|life| seen.places[life.place].bytes()).sum())
    };
    let used = seen.usage.iter().filter(|[ns, _]| is_between(*ns)).map(without_blocks).max();
    used.unwrap_or(0) + bytes <= most - plan.memory.parameters_resident.unwrap_or(0)
}

/// The layers that read their weights again. The layer that reads the most bytes more than once comes first.
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
