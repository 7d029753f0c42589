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
use csdfc_plan::timeline::{self, PlaceKind};
use tracing::info;

use super::candidate::{Candidate, Planned};
use super::{Context, LayerOf, Situation};
use crate::error::Error;
use crate::frame::task;
use crate::objective::{Least, Objective};
use crate::search::watch::{Shares, Watch};
use crate::strategy::Strategy;

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
    // Larger blocks and loads that overlap take time to find, and change neither what fits nor how much is read.
    let without = [context.watch.without, &[Strategy::LargerBlocks, Strategy::OverlappingLoads]].concat();
    let quick = &Context { watch: &Watch { without: &without, ..*context.watch }, ..*context };
    let choices = best.choices();
    let mut sketch = quick.plan_picked(choices.clone(), &with(&again))?;
    let mut usage = Usage::new(&sketch.plan);
    for layer in by_bytes(&best.planned) {
        if context.watch.is_over() {
            break;
        }
        let bytes = stored.get(&layer).copied().unwrap_or(0);
        if usage.as_ref().is_some_and(|usage| !usage.may_keep(&sketch.plan, &layer, bytes, most)) {
            continue;
        }
        let mut fewer = again.clone();
        fewer.remove(&layer);
        let tried = quick.plan_picked(choices.clone(), &with(&fewer))?;
        let (total, read) = (tried.plan.memory.total, bytes_read(&tried));
        info!(layer = layer.1, total, bytes = read, "keeps its weights");
        if meets_as_much(&tried, &sketch) && total <= most && read < bytes_read(&sketch) {
            (sketch, again) = (tried, fewer);
            usage = Usage::new(&sketch.plan);
        }
    }
    if again.len() < stored.len() {
        let mut planned = context.plan_picked(choices, &with(&again))?;
        if meets_as_much(&planned, &best.planned) {
            // The plan states the search that found its choices.
            (planned.plan.search, planned.plan.pareto) = (best.planned.plan.search, best.planned.plan.pareto);
            best = Candidate { application: with(&again), planned };
        }
    }
    Ok(Some(best))
}

/// Whether a plan is not refused, and meets its constraints if another one does.
fn meets_as_much(planned: &Planned, other: &Planned) -> bool {
    planned.refused.is_none() && (planned.shortfall.is_none() || other.shortfall.is_some())
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

/// What a plan has in use, apart from blocks of weights, and when its layers fire.
struct Usage {
    /// From a time on, in nanoseconds, so many bytes are in use; ascending.
    used: Vec<(f64, u64)>,
    /// From when to when a layer fires, by its CNN and its place there; ascending.
    firings: BTreeMap<(usize, usize), Vec<(f64, f64)>>,
}

impl Usage {
    /// Of a plan; `None` if it has no timeline.
    fn new(plan: &plan::Plan) -> Option<Self> {
        let timeline = timeline::timeline(plan).ok()?;
        let blocks = timeline.lives.iter().filter_map(|life| {
            let place = &timeline.places[life.place];
            let ((start, _), (end, _)) = life.steps.first().zip(life.steps.last())?;
            (place.kind == PlaceKind::Block).then_some((*start, *end, place.bytes()))
        });
        let (mut starts, mut ends): (Vec<_>, Vec<_>) =
            blocks.map(|(start, end, bytes)| ((start, bytes), (end, bytes))).unzip();
        starts.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        ends.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (mut starts, mut ends) = (starts.into_iter().peekable(), ends.into_iter().peekable());
        let mut in_blocks = 0;
        let without_blocks = |[ns, used]: &[f64; 2]| {
            while let Some((_, bytes)) = starts.next_if(|(start, _)| start <= ns) {
                in_blocks += bytes;
            }
            while let Some((_, bytes)) = ends.next_if(|(end, _)| end < ns) {
                in_blocks -= bytes;
            }
            (*ns, (*used as u64).saturating_sub(in_blocks))
        };
        let used = timeline.usage.iter().map(without_blocks).collect();
        let mut firings: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for firing in &timeline.firings {
            firings.entry((firing.cnn, firing.layer)).or_default().push((firing.start_ns, firing.end_ns));
        }
        Some(Usage { used, firings })
    }

    /// Whether a layer of the plan could keep `bytes` bytes of weights in a total of `most` bytes. This is optimistic:
    /// rings may lie anywhere, and other blocks take no room. It asks only whether the bytes in use between the layer's
    /// firings leave enough room.
    fn may_keep(&self, plan: &plan::Plan, (cnn, name): &LayerOf, bytes: u64, most: u64) -> bool {
        let layer = plan.cnns[*cnn].layers.iter().position(|layer| layer.name == *name);
        let own = layer.and_then(|layer| self.firings.get(&(*cnn, layer)));
        let Some([(_, from), .., (to, _)]) = own.map(Vec::as_slice) else { return true };
        let firings = own.map_or(&[][..], Vec::as_slice);
        let fires = |ns: f64| {
            let before = firings.partition_point(|(start, _)| *start <= ns);
            before > 0 && ns <= firings[before - 1].1
        };
        let after = self.used.partition_point(|(ns, _)| ns <= from);
        let between = self.used[after..].iter().take_while(|(ns, _)| ns < to).filter(|(ns, _)| !fires(*ns));
        let used = between.map(|(_, used)| *used).max();
        used.unwrap_or(0) + bytes <= most - plan.memory.parameters_resident.unwrap_or(0)
    }
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
