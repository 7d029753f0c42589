//! Algorithm 2 of the main paper: a genetic search for the layers that process their data by parts, one bit a layer, for all
//! CNNs of an application at once.
//!
//! Two figures rate a chromosome: its memory (`EvalMemory`), which is the result of Algorithm 1 over the whole
//! application for the buffers and schedule of the chromosome, and the modelled frame rate of each CNN
//! (`EvalThroughput`). The search differs from the printed algorithm in two points, which
//! [`Method::PaperPrinted`](csdfc_input::app::spec::Method) leaves out:
//!
//! - The first generation does not begin at random only (`starts`).
//! - Algorithm 1 may visit edges in another order ([`reuse_buffers`](crate::storage::edges::reuse_buffers)). The search
//!   tries few orders for each chromosome, and many for the front.

mod chromosomes;
mod starts;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use csdfc_ga::{Evaluation, Settings, fronts, search_with};
use csdfc_input::app::resolve::{Application, Cnn};
use csdfc_input::app::spec::Prefer;
use csdfc_input::units::MemoryGoal;
use rayon::prelude::*;

use self::chromosomes::{Chromosomes, Point, bits};
use super::watch::{Limit, Stopped, Watch};
use super::{Found, Rate, Shortfall};
use crate::search::problem::PlanningProblem;
use crate::storage::Effort;
use crate::storage::edges::BufferSharing;

/// If the search ends early, the front also has this many of the chromosomes with which it began.
const IN_A_HURRY: usize = 10;

/// A Pareto front over chromosomes.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperFront {
    /// The points that none dominates, by rising memory. Of equal points, the one with the least chromosome stays.
    pub points: Vec<Point>,
    /// Chromosomes that were evaluated.
    pub evaluations: u64,
    /// Why the search ended.
    pub stopped: Stopped,
}

/// Runs Algorithm 2. When the watch ends it, the result is the best so far. It begins with the chromosomes that are
/// `known` from old plans. A limit on evaluations takes the place of the application's number of generations.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn search(
    problem: &PlanningProblem<'_>,
    known: &[Vec<bool>],
    watch: &Watch<'_>,
) -> Result<Found, csdf::Error> {
    let goal = problem.application.constraints.memory;
    let limit = match goal {
        Some(MemoryGoal::Bytes(bytes)) => bytes,
        Some(MemoryGoal::Min) | None => u64::MAX,
    };
    let chromosomes = Chromosomes::new(problem, watch);
    // Lines 1 to 5: reuse alone is enough.
    let whole = chromosomes.point(&vec![false; chromosomes.len()], Effort::Final)?;
    let front = if goal != Some(MemoryGoal::Min) && whole.memory <= limit {
        PaperFront { points: vec![whole.clone()], evaluations: 1, stopped: Stopped::Complete }
    } else {
        front(problem, known, watch)?
    };
    // If a search ends before it has found anything, the point that needs no search remains.
    let points = if front.points.is_empty() { vec![whole] } else { front.points };
    let (best, shortfall) = choose(problem, &points, limit);
    Ok(Found {
        design_points: chromosomes.design_points(&best.unwrap_or(&points[0]).chromosome)?,
        shortfall,
        pareto: points.iter().rev().map(|point| chromosomes.describe(point)).collect(),
        evaluations: front.evaluations,
        stopped: front.stopped,
    })
}

/// The Pareto front that the genetic search finds (line 8), whatever the constraints.
///
/// # Errors
/// Those of the dataflow analyses.
pub fn front(
    problem: &PlanningProblem<'_>,
    known: &[Vec<bool>],
    watch: &Watch<'_>,
) -> Result<PaperFront, csdf::Error> {
    let chromosomes = Chromosomes::new(problem, watch);
    let spec = &problem.application.search;
    let (generations, most) = match watch.limit {
        Limit::Default => (Some(spec.generations as u64), None),
        Limit::Evaluations(most) => (None, Some(most)),
        Limit::Time(_) => (None, None),
    };
    let (starts, tried) = match problem.sharing {
        BufferSharing::Printed => (Vec::new(), 0),
        _ => starts::starts(problem.tasks, &chromosomes, spec.population, most)?,
    };
    let warm_starts = known
        .iter()
        .chain(&starts)
        .map(|start| start.iter().map(|gene| i64::from(*gene)).collect())
        .collect();
    let settings = Settings {
        seed: spec.seed,
        population: spec.population,
        generations,
        evaluations: most.map(|most| most.saturating_sub(tried)),
        time: chromosomes.time_left(),
        crossover_rate: spec.crossover,
        mutation_rate: spec.mutation,
        warm_starts,
        ..Settings::default()
    };
    let outcome = search_with(&chromosomes, &settings, &mut |progress| {
        let least = progress.front.first().map_or(0, |member| member.evaluation.objectives[0] as u64);
        chromosomes.tell(tried + progress.evaluations, progress.front.len(), least);
        !watch.is_stopped()
    });
    if let Some(error) = chromosomes.failure() {
        return Err(error);
    }
    let stopped = Stopped::of(outcome.stopped, watch.limit);
    let mut found: Vec<Vec<bool>> = outcome.front.iter().map(|found| bits(&found.genome)).collect();
    if stopped != Stopped::Complete {
        // The search may have ended before it reached the chromosomes that it was to begin with.
        found.extend(known.iter().cloned().chain(starts.into_iter().take(IN_A_HURRY)));
    }
    let point = |chromosome: &Vec<bool>| chromosomes.point(chromosome, Effort::Final);
    let points = found.par_iter().map(point).collect::<Result<_, _>>()?;
    Ok(PaperFront { points: undominated(points), evaluations: tried + outcome.evaluations, stopped })
}

/// The points that none dominates, by rising memory. Of equal points, the one with the least chromosome stays.
fn undominated(points: Vec<Point>) -> Vec<Point> {
    let objectives = |point: &Point| {
        let rates = point.fps.iter().map(|fps| -fps);
        Evaluation::of(std::iter::once(point.memory as f64).chain(rates).collect::<Vec<_>>())
    };
    let all: Vec<Evaluation> = points.iter().map(objectives).collect();
    let best = fronts(&all).into_iter().next().unwrap_or_default();
    let mut points: Vec<Point> = best.into_iter().map(|place| points[place].clone()).collect();
    let by_rate = |a: &Point, b: &Point| b.fps.partial_cmp(&a.fps).unwrap_or(Ordering::Equal);
    points.sort_by(|a, b| {
        a.memory.cmp(&b.memory).then(by_rate(a, b)).then_with(|| a.chromosome.cmp(&b.chromosome))
    });
    points.dedup_by(|later, first| later.memory == first.memory && later.fps == first.fps);
    points
}

/// Lines 9 to 16. If no chromosome meets the constraints, it takes the nearest. With [`Prefer::Fps`], the fastest takes
/// the place of the smallest in line 14.
fn choose<'p>(
    problem: &PlanningProblem<'_>,
    points: &'p [Point],
    limit: u64,
) -> (Option<&'p Point>, Option<Shortfall>) {
    let Application { cnns, constraints, prefer, .. } = problem.application;
    let reaches = |point: &Point| {
        let rates = point.fps.iter().zip(&point.latency_ns);
        cnns.iter()
            .zip(rates)
            .all(|(cnn, (fps, latency_ns))| constraints.of(&cnn.name).is_met(*fps, *latency_ns))
    };
    let fits = |point: &Point| point.memory <= limit;
    let best = |cnn: usize| points.iter().map(|point| point.fps[cnn]).fold(0.0, f64::max);
    let best: Vec<f64> = (0..cnns.len()).map(best).collect();
    let slowdown = |point: &Point| -> f64 { best.iter().zip(&point.fps).map(|(best, fps)| best / fps).sum() };
    let smallest = |of: &dyn Fn(&Point) -> bool| {
        let of = points.iter().filter(|point| of(point));
        of.min_by(|a, b| a.memory.cmp(&b.memory).then(slowdown(a).total_cmp(&slowdown(b))))
    };
    let fastest = |of: &dyn Fn(&Point) -> bool| {
        let of = points.iter().filter(|point| of(point));
        of.min_by(|a, b| slowdown(a).total_cmp(&slowdown(b)).then(a.memory.cmp(&b.memory)))
    };
    let meets = |point: &Point| fits(point) && reaches(point);
    let least_memory = *prefer == Prefer::Memory || constraints.memory == Some(MemoryGoal::Min);
    let chosen = if least_memory { smallest(&meets) } else { fastest(&meets) };
    if chosen.is_some() {
        return (chosen, None);
    }
    let rates = |point: &Point| {
        let rates = point.fps.iter().zip(&point.latency_ns);
        let rate = |(cnn, (fps, latency_ns)): (&Cnn, (&f64, &u64))| {
            (cnn.name.clone(), Rate { fps: *fps, latency_ns: *latency_ns })
        };
        cnns.iter().zip(rates).map(rate).collect::<BTreeMap<_, _>>()
    };
    let mut best_rates = fastest(&|_| true).map(rates).unwrap_or_default();
    for (i, cnn) in cnns.iter().enumerate() {
        if let Some(rate) = best_rates.get_mut(&cnn.name) {
            rate.latency_ns = points.iter().map(|point| point.latency_ns[i]).min().unwrap_or(rate.latency_ns);
        }
    }
    let least = smallest(&|_| true);
    let shortfall = Shortfall {
        least_memory: least.map(|point| point.memory),
        memory_at_rates: smallest(&reaches).map(|point| point.memory),
        rates_in_memory: fastest(&fits).filter(|_| limit < u64::MAX).map(rates),
        best_rates,
    };
    (least, Some(shortfall))
}
