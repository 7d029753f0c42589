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
use csdfc_input::units::MemoryGoal;
use rayon::prelude::*;

use self::chromosomes::{Chromosomes, Point, bits};
use super::budget::{Budget, Stopped};
use super::watch::Watch;
use super::{Found, Rate, Shortfall};
use crate::objective::Least;
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
    let objective = problem.objective;
    let chromosomes = Chromosomes::new(problem, watch);
    // Lines 1 to 5: reuse alone is enough.
    let whole = chromosomes.point(&vec![false; chromosomes.len()], Effort::Final)?;
    let is_min = problem.application.constraints.memory == Some(MemoryGoal::Min);
    let front = if !is_min && objective.fits(whole.memory) {
        PaperFront { points: vec![whole.clone()], evaluations: 1, stopped: Stopped::Complete }
    } else {
        front(problem, known, watch)?
    };
    // If a search ends before it has found anything, the point that needs no search remains.
    let points = if front.points.is_empty() { vec![whole] } else { front.points };
    let (best, shortfall) = choose(problem, &points);
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
    let (generations, most) = match watch.budget {
        Budget::Default => (Some(spec.generations as u64), None),
        Budget::Evaluations(most) => (None, Some(most)),
        Budget::Time(_) => (None, None),
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
        chromosomes.report_progress(tried + progress.evaluations, progress.front.len(), least);
        !watch.is_stopped()
    });
    if let Some(error) = chromosomes.failure() {
        return Err(error);
    }
    let stopped = Stopped::new(outcome.stopped, watch.budget);
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
        Evaluation::new(std::iter::once(point.memory as f64).chain(rates).collect::<Vec<_>>())
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
///
/// [`Prefer::Fps`]: csdfc_input::app::spec::Prefer::Fps
fn choose<'p>(problem: &PlanningProblem<'_>, points: &'p [Point]) -> (Option<&'p Point>, Option<Shortfall>) {
    let (cnns, objective) = (&problem.application.cnns, problem.objective);
    let is_fast_enough = |point: &Point| objective.is_fast_enough(point.rates());
    let fits = |point: &Point| objective.fits(point.memory);
    let best = |least: Least, of: &dyn Fn(&Point) -> bool| -> Option<&'p Point> {
        let of = points.iter().filter(|point| of(point));
        of.min_by(|a, b| least.compare(&a.figures(), &b.figures()))
    };
    let chosen = best(objective.least, &|point| fits(point) && is_fast_enough(point));
    if chosen.is_some() {
        return (chosen, None);
    }
    let rates = |point: &Point| -> BTreeMap<String, Rate> {
        cnns.iter().zip(point.rates()).map(|(cnn, rate)| (cnn.name.clone(), rate)).collect()
    };
    let mut best_rates = best(Least::Time, &|_| true).map(rates).unwrap_or_default();
    for (i, cnn) in cnns.iter().enumerate() {
        if let Some(rate) = best_rates.get_mut(&cnn.name) {
            rate.latency_ns = points.iter().map(|point| point.latency_ns[i]).min().unwrap_or(rate.latency_ns);
        }
    }
    let smallest = best(Least::Memory, &|_| true);
    let shortfall = Shortfall {
        least_memory: smallest.map(|point| point.memory),
        memory_at_rates: best(Least::Memory, &is_fast_enough).map(|point| point.memory),
        rates_in_memory: objective.limit.and(best(Least::Time, &fits)).map(rates),
        best_rates,
    };
    (smallest, Some(shortfall))
}
