//! Weights that are streamed only because memory has too little room for them.
//!
//! The smallest plan with all weights streamed says how much room is left. This room has two uses. Weights that stay in
//! memory need no reading. Larger blocks let loads start early, while other layers are computed, and several layers use
//! the same block within a frame. Which use of a byte saves more time depends on the network and on the store. So csdfc
//! tries several shares of the room for weights that stay, leaves the rest to blocks, and takes the best plan.
//!
//! Two orders say which weights stay. In both, small weights come first, since each saves the latency of a read. Then
//! one order takes the largest weights. The other order takes the weights whose reading, when all are streamed, makes the
//! frame longest for each of their bytes.

use std::collections::{BTreeMap, BTreeSet};

use csdfc_input::app::resolve::{Application, Cnn, Streamed};
use csdfc_input::units::MemoryGoal;
use tracing::info;

use super::candidate::{Candidate, Planned};
use super::{LayerOf, Situation};
use crate::error::Error;
use crate::frame::task;
use crate::search::code;
use crate::search::start::Start;
use crate::search::watch::Shares;

/// Weights of no more bytes than this are small.
const SMALL: u64 = 64 * 1024;

/// Shares of the room that weights which stay may take, in percent.
const SHARES: [u64; 6] = [100, 90, 75, 50, 25, 10];

/// For this many sets of weights that stay, a plan is searched for. All other sets are planned with the choices of one
/// front.
const SEARCHED: usize = 2;

/// The most searches, if a plan can be fast enough: one for the smallest plan, one for a plan with all the room for
/// blocks, and one for each of the best sets.
const SEARCHES: usize = 2 + SEARCHED;

/// The best plan with some weights streamed, if weights may be streamed and the best plan so far exceeds the limit. If
/// even the smallest exceeds it, that is the plan.
pub(super) fn streamed(situation: &Situation<'_>) -> Result<Option<Candidate>, Error> {
    let Situation { context, application, objective, best: resident, .. } = *situation;
    let (Some(limit), Some(may_be_streamed)) = (objective.limit, &application.may_be_streamed) else {
        return Ok(None);
    };
    if objective.fits(resident.planned.plan.memory.total) {
        return Ok(None);
    }
    let shares = Shares::new(context.watch, SEARCHES);
    let with = |resident: &BTreeSet<LayerOf>| Application {
        streamed: Some(Streamed { resident: resident.clone(), ..Streamed::default() }),
        may_be_streamed: None,
        ..application.clone()
    };
    let searched = |application: Application| -> Result<Candidate, Error> {
        let planned = context.plan(&Start::default(), &application, &shares)?;
        Ok(Candidate { application, planned })
    };
    let all = with(&may_be_streamed.resident);
    let mut smallest = all.clone();
    smallest.constraints.memory = Some(MemoryGoal::Min);
    let mut smallest = searched(smallest)?;
    if smallest.planned.shortfall.is_some() {
        // No plan is as fast as is asked for, so the nearest one is as fast as memory permits.
        let mut slower = smallest.application.clone();
        (slower.constraints.fps, slower.constraints.latency_ns) = Default::default();
        smallest = searched(slower)?;
    }
    let smallest = smallest.planned.plan;
    let mut best = searched(all)?;
    let Some(room) = limit.checked_sub(smallest.memory.total) else { return Ok(Some(best)) };
    let mut sketches: Vec<(Candidate, BTreeSet<LayerOf>)> = Vec::new();
    for layers in orders(&best.application, &best.planned.exposed) {
        for share in SHARES {
            if context.watch.is_over() {
                break;
            }
            let mut left = room / 100 * share;
            let mut resident = may_be_streamed.resident.clone();
            for (bytes, layer) in &layers {
                if *bytes <= left {
                    left -= bytes;
                    resident.insert(layer.clone());
                }
            }
            let kept = room / 100 * share - left;
            if kept == 0 || sketches.iter().any(|(_, sketched)| *sketched == resident) {
                continue;
            }
            let application = with(&resident);
            let mut sketch: Option<Planned> = None;
            for start in starts(&smallest, &application, limit - kept) {
                let planned = context.plan(&start, &application, &shares)?;
                sketch = Some(match sketch {
                    Some(sketch) => sketch.or(planned, objective),
                    None => planned,
                });
            }
            sketches.extend(sketch.map(|planned| (Candidate { application, planned }, resident)));
        }
    }
    // Stable, so that of equals the first stays first.
    sketches.sort_by(|(a, _), (b, _)| a.planned.compare(&b.planned, objective));
    for (rank, (sketch, resident)) in sketches.into_iter().enumerate() {
        if rank < SEARCHED && !context.watch.is_over() {
            best = best.or(searched(with(&resident))?, objective);
        }
        let plan = &sketch.planned.plan;
        let fps = plan.cnns.iter().map(|cnn| cnn.fps).collect::<Vec<f64>>();
        info!(resident = resident.len(), ?fps, total = plan.memory.total, "pages the rest");
        best = best.or(sketch, objective);
    }
    Ok(Some(best))
}

/// Choices with which to plan in about this many bytes: the fastest of a front that fits them, and the smallest. If the
/// choices are for other layers, a search.
fn starts(front: &csdfc_plan::plan::Plan, application: &Application, bytes: u64) -> Vec<Start> {
    let fitting = front.pareto.iter().find(|point| point.memory <= bytes);
    let points = [fitting.map(|point| &point.choices), Some(&front.search.choices)];
    let choice = |choices: &BTreeMap<String, String>, cnn: &Cnn| {
        code::read(choices.get(&cnn.name)?, &cnn.network).ok()
    };
    let picked = |choices: &BTreeMap<String, String>| {
        application.cnns.iter().map(|cnn| choice(choices, cnn)).collect::<Option<_>>().map(Start::Picked)
    };
    let mut starts: Vec<Start> = points.into_iter().flatten().filter_map(picked).collect();
    starts.dedup();
    if starts.is_empty() { vec![Start::default()] } else { starts }
}

/// The layers whose weights may stay, with the bytes of their weights, in both orders.
fn orders(application: &Application, exposed: &BTreeMap<LayerOf, f64>) -> [Vec<(u64, LayerOf)>; 2] {
    let mut layers = Vec::new();
    for (cnn, task) in task::tasks(application).iter().enumerate() {
        let layer = |id| Some((task.streaming(id)?.stored, (cnn, task.network.layer(id).name.clone())));
        layers.extend(task.network.ids().filter_map(layer));
    }
    // Small weights, the smallest first; then the others, the largest first.
    layers.sort_by_key(|(bytes, _)| if *bytes <= SMALL { (0, *bytes) } else { (1, u64::MAX - *bytes) });
    let large = layers.partition_point(|(bytes, _)| *bytes <= SMALL);
    let mut by_exposure = layers.clone();
    let each =
        |(bytes, layer): &(u64, LayerOf)| exposed.get(layer).map_or(0.0, |ns| ns.max(0.0)) / *bytes as f64;
    by_exposure[large..].sort_by(|a, b| each(b).total_cmp(&each(a)));
    [layers, by_exposure]
}
