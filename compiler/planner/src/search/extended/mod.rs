//! The extended search, the default: rows per firing for each layer, and where segments end.
//!
//! A network is a chain of blocks with *cut tensors* between them (`cuts`). The search has these steps:
//!
//! 1. *Segments* (`stream`). Which rows a layer makes, and when, depends only on the layers after it. So one
//!    execution on demand, from the first layer to a cut, gives the bytes and time of every segment that ends at this
//!    cut. A few hundred executions give those of thousands of segments, each with some twenty numbers of firings per
//!    frame.
//! 2. *Chains* (`chains`). The bytes of a chain of segments are those of its largest segment. Its time is the sum of
//!    all times. Keeping the undominated chains at each cut therefore gives the exact front.
//! 3. *Evolution* (`design_space`, `evolve`). NSGA-II starts from that front, from the simple choices, and from the choices
//!    of old plans (`--from`). It changes single layers, runs of layers, and barriers, and evaluates sketched
//!    placements. It adds well below one percent of hypervolume.
//! 4. *Placement*. The choices that were found are placed in memory, with the smallest rings, like any other choice.
//! 5. *Refinement* (`refine`), if weights are streamed: the smallest choice may become smaller if segments end elsewhere.
//!
//! There are two special cases:
//!
//! - In a network in which at most eight layers can go by parts, all their choices are tried.
//! - Inception networks have several tensors between their modules. For such a network, one more choice streams row by
//!   row from each such place to the next. Chains of such segments are not searched for. The chain model assumes that a
//!   segment makes its outputs in step. But a segment whose input image is whole makes them one after another.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::cost::timing::Timing;
//! use csdfc_planner::frame::task;
//! use csdfc_planner::open::open;
//! use csdfc_planner::search::evaluate::Evaluator;
//! use csdfc_planner::search::extended;
//! use csdfc_planner::search::watch::Watch;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let (tasks, device) = (task::tasks(&application), DeviceProfile::find("generic", Path::new(""))?);
//! let timing = Timing::alone(device.processor("cpu")?, 1);
//! let evaluator = Evaluator::new(&tasks[0], &timing, application.storage);
//! let front = extended::front(&evaluator, 1, "lenet5", &[], &Watch::unwatched())?.design_points;
//!
//! // Each design point is slower than the one before it, and smaller.
//! assert!(front.windows(2).all(|pair| pair[0].fps() >= pair[1].fps() && pair[0].buffers > pair[1].buffers));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chains;
mod cuts;
pub(super) mod design_space;
mod evolve;
mod moments;
mod refine;
pub(super) mod segment;

#[cfg(test)]
mod tests;

use csdfc_network::LayerId;
use rayon::prelude::*;
use tracing::info_span;

use self::chains::Chain;
use self::design_space::DesignSpace;
use self::segment::Segment;
use super::budget::Stopped;
use super::simple::{self, DesignFront};
use super::watch::{Progress, Watch};
use crate::frame::choice::Choice;
use crate::frame::execution::Rings;
use crate::frame::task::PartitionedCnn;
use crate::search::evaluate::Evaluator;
use crate::search::{DesignPoint, execution_variants};
use crate::storage::Effort;
use crate::strategy::Strategy;

/// If at most so many layers of a network can go by parts, all combinations are tried of layers that make one row at a
/// time.
const ENUMERATED: usize = 8;

/// Searches the choices for one CNN. It starts from the choices of old plans, among others.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front(
    evaluator: &Evaluator<'_>,
    seed: u64,
    name: &str,
    known: &[&Choice],
    watch: &Watch<'_>,
) -> Result<DesignFront, csdf::Error> {
    let tell = |evaluations, front, least| {
        (watch.progress)(&Progress { of: name, evaluations, front, least });
    };
    tell(0, 0, 0);
    let (task, deadline_ns) = (evaluator.task, evaluator.timing.deadline_ns);
    let is_left_out = |strategy| evaluator.without.contains(&strategy);
    let design_space = DesignSpace::new(task);
    let mut starts = match is_left_out(Strategy::Chains) {
        true => Vec::new(),
        false => info_span!("chains").in_scope(|| chains(evaluator, &design_space, &|| watch.is_over()))?,
    };
    starts.extend(design_space.ladder.iter().map(|firings| design_space.steady(*firings)));
    starts.extend(design_space.prefixes());
    starts.extend(known.iter().map(|choice| design_space.nearest_genome(choice)));
    let settings = evolve::EvolutionSettings { seed, name, watch };
    let found =
        info_span!("evolution").in_scope(|| evolve::evolve(evaluator, &design_space, starts, &settings));
    tell(found.evaluations, 0, 0);
    let mut choices = simple::choices(task.network);
    choices.extend(bits(task));
    choices.extend(found.genomes.iter().map(|genome| design_space.choice(genome)));
    if found.stopped > Stopped::Evaluations {
        // If the time is over, place the choices that were found. Also place those that need no search, so that there
        // is an answer.
        choices.retain(|choice| choice.barriers.is_some() || choice.name == "none");
    }
    let mut front = info_span!("placement").in_scope(|| simple::front_of(evaluator, &choices))?;
    if found.stopped <= Stopped::Evaluations {
        let least =
            front.design_points.iter().map(|design_point| design_point.buffers).min().unwrap_or(u64::MAX);
        let smaller: Vec<DesignPoint> = match is_left_out(Strategy::BlockByBlock) {
            true => Vec::new(),
            false => block_by_block(evaluator, &design_space, least)?.into_iter().collect(),
        };
        let smaller =
            DesignFront { evaluations: smaller.len() as u64, design_points: smaller, stopped: found.stopped };
        front.join(smaller, deadline_ns);
        let smallest = front.design_points.iter().min_by_key(|design_point| design_point.buffers);
        if let Some(smallest) =
            smallest.filter(|_| !task.streaming.is_empty() && !is_left_out(Strategy::Refinement))
            && let Some(refined) =
                info_span!("refinement").in_scope(|| refine::refined(evaluator, smallest, watch))?
        {
            let refined =
                DesignFront { evaluations: 1, design_points: vec![refined], stopped: found.stopped };
            front.join(refined, deadline_ns);
        }
    }
    // Somebody may have asked after the evolution.
    let stopped = if watch.is_stopped() { Stopped::Asked } else { found.stopped };
    Ok(DesignFront { evaluations: found.evaluations + front.evaluations, stopped, ..front })
}

/// The choice that goes row by row, with a segment's end at each place after which few bytes are kept. `None` if all
/// these places have a single tensor, or if the choice takes no fewer bytes than `least`. Between the modules of an
/// inception network, several tensors are kept, if its concats are images in parts. Chains of such segments are not
/// searched for, because their cost would be wrong: a segment that reads whole tensors makes its outputs one after
/// another, but in the tail from which its cost would be taken, it makes them in step. The rings of this choice are
/// many and short, and take patience to place.
fn block_by_block(
    evaluator: &Evaluator<'_>,
    design_space: &DesignSpace<'_>,
    least: u64,
) -> Result<Option<DesignPoint>, csdf::Error> {
    let (task, network) = (evaluator.task, evaluator.task.network);
    let (mut ends, mut has_several) = (Vec::new(), false);
    for partition in task.partitions.iter().filter(|partition| partition.steps.is_none()) {
        let layers = &partition.layers;
        let cuts = cuts::cuts(network, layers);
        // A quarter of the bytes is left for the rings of a segment.
        let low = cuts::low(network, layers, least - least / 4);
        has_several |= low.iter().any(|at| !cuts.contains(at));
        ends.extend(low.into_iter().filter(|at| at + 1 < layers.len()).map(|at| layers[at]));
    }
    if !has_several {
        return Ok(None);
    }
    let most = design_space.ladder.last().copied().unwrap_or(1);
    let choice = design_space.choice(&design_space.genome(&vec![most; network.layers.len()], &ends));
    if evaluator.bound(&evaluator.execute(&choice, Rings::OnDemand)?) >= least {
        return Ok(None);
    }
    let execution = evaluator.execute(&choice, Rings::Smallest)?;
    let all = execution.costly();
    let design_point =
        execution_variants::placed(evaluator, &choice, &execution, &all, Rings::Smallest, Effort::Final)?;
    Ok((design_point.buffers < least).then_some(design_point))
}

/// The genomes of the best chains of segments. For a CNN with several partitions, the chains of the partitions are
/// combined. For each memory, it combines the fastest chains within that memory, and for each time, the smallest chains
/// within that time.
fn chains(
    evaluator: &Evaluator<'_>,
    design_space: &DesignSpace<'_>,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Vec<i64>>, csdf::Error> {
    let partitions = evaluator.task.partitions.iter().enumerate();
    let of_partition = |(p, partition): (usize, &crate::frame::task::PartitionTask)| match partition.steps {
        Some(_) => Ok(Vec::new()),
        None => partition_chains(evaluator, design_space, p, is_over),
    };
    let each: Vec<Vec<PartitionExecution>> = partitions.map(of_partition).collect::<Result<_, _>>()?;
    let mut bytes: Vec<u64> = each.iter().flatten().map(|executions| executions.bytes).collect();
    let mut times: Vec<f64> = each.iter().flatten().map(|executions| executions.time_ns).collect();
    bytes.sort_unstable();
    times.sort_unstable_by(f64::total_cmp);
    let fastest_within = |most: &u64| -> Vec<Option<&PartitionExecution>> {
        each.iter()
            .map(|all| all.iter().find(|executions| executions.bytes <= *most).or(all.last()))
            .collect()
    };
    let smallest_within = |most: &f64| -> Vec<Option<&PartitionExecution>> {
        each.iter()
            .map(|all| all.iter().rev().find(|executions| executions.time_ns <= *most).or(all.first()))
            .collect()
    };
    let mut together: Vec<Vec<Option<&PartitionExecution>>> = bytes.iter().map(fastest_within).collect();
    together.extend(times.iter().map(smallest_within));
    let genome = |parts: Vec<Option<&PartitionExecution>>| {
        let mut firings = vec![1; evaluator.task.network.layers.len()];
        let mut barriers = Vec::new();
        for executions in parts.into_iter().flatten() {
            for (id, often) in &executions.firings {
                firings[id.0] = *often;
            }
            barriers.extend(&executions.barriers);
        }
        design_space.genome(&firings, &barriers)
    };
    let mut genomes: Vec<Vec<i64>> = together.into_iter().map(genome).collect();
    genomes.dedup();
    Ok(genomes)
}

/// How one partition is executed.
#[derive(Debug)]
struct PartitionExecution {
    bytes: u64,
    time_ns: f64,
    /// How often each of its layers fires.
    firings: Vec<(LayerId, u64)>,
    /// The layers after which segments end.
    barriers: Vec<LayerId>,
}

/// The segments of a partition, and its cuts. If the search is over, the segments that are known by then.
pub(super) fn segments(
    evaluator: &Evaluator<'_>,
    design_space: &DesignSpace<'_>,
    partition: usize,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<(Vec<usize>, Vec<Segment>), csdf::Error> {
    let layers = &evaluator.task.partitions[partition].layers;
    let cuts = cuts::cuts(evaluator.task.network, layers);
    let rows: Vec<Vec<u64>> = design_space
        .ladder
        .iter()
        .map(|firings| design_space.choice(&design_space.steady(*firings)).rows)
        .collect();
    let runs: Vec<(usize, usize)> =
        (0..rows.len()).flat_map(|step| (0..cuts.len()).map(move |to| (to, step))).collect();
    let tails = |&(to, step): &(usize, usize)| match step > 0 && is_over() {
        true => Ok(Vec::new()),
        false => segment::tails(evaluator, partition, &cuts, to, design_space.ladder[step], &rows[step]),
    };
    let segments: Vec<Vec<Segment>> = runs.par_iter().map(tails).collect::<Result<_, _>>()?;
    Ok((cuts, segments.into_iter().flatten().collect()))
}

/// The best chains of one partition, the fastest first. If the search is over, the best chains of the segments that are
/// known by then.
fn partition_chains(
    evaluator: &Evaluator<'_>,
    design_space: &DesignSpace<'_>,
    partition: usize,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<PartitionExecution>, csdf::Error> {
    let layers = &evaluator.task.partitions[partition].layers;
    let (cuts, segments) = segments(evaluator, design_space, partition, is_over)?;
    let executions = |chain: Chain| {
        let mut firings = Vec::with_capacity(layers.len());
        let mut barriers = Vec::new();
        for segment in chain.segments.iter().map(|index| &segments[*index]) {
            let end = cuts[segment.to - 1];
            firings.extend(layers[firings.len()..=end].iter().map(|id| (*id, segment.firings)));
            barriers.push(layers[end]);
        }
        barriers.pop();
        PartitionExecution { bytes: chain.bytes, time_ns: chain.time_ns, firings, barriers }
    };
    Ok(chains::front(&segments, cuts.len()).into_iter().map(executions).collect())
}

/// Every choice of one row or all rows for each layer, for a network of few layers.
fn bits(task: &PartitionedCnn<'_>) -> Vec<Choice> {
    let network = task.network;
    let by_parts: Vec<LayerId> = network.ids().filter(|id| network.layer(*id).rows() > 1).collect();
    if by_parts.len() > ENUMERATED {
        return Vec::new();
    }
    let choice = |bits: usize| {
        let mut choice = Choice { name: format!("parts {bits:#b}"), ..Choice::none(network) };
        let parts = by_parts.iter().enumerate().filter(|(at, _)| bits >> at & 1 == 1);
        parts.for_each(|(_, id)| choice.rows[id.0] = 1);
        choice
    };
    (0..1 << by_parts.len()).map(choice).collect()
}
