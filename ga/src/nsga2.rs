//! The search itself.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rayon::prelude::*;

use crate::archive::{Archive, Individual};
use crate::dominance::{Evaluation, crowding, fronts, order};
use crate::space::{self, Space};

/// A problem to search.
pub trait Problem: Sync {
    /// All genomes.
    fn space(&self) -> &Space;

    /// The value of a genome. Every genome has the same number of objectives, all minimised. The search calls this once
    /// per genome, from several threads. The result must depend only on the genome.
    fn evaluate(&self, genome: &[i64]) -> Evaluation;
}

/// Two children of two parents.
pub type Crossover<'a> = dyn Fn(&Space, [&[i64]; 2], &mut ChaCha8Rng) -> [Vec<i64>; 2] + Sync + 'a;

/// A change of a genome.
pub type Mutation<'a> = dyn Fn(&Space, &mut [i64], &mut ChaCha8Rng) + Sync + 'a;

/// How to search. The limits may be combined. Without any limit, the search ends after [`Settings::GENERATIONS`].
pub struct Settings<'a> {
    /// Seed of all random choices.
    pub seed: u64,
    /// Individuals of a generation, at least 2.
    pub population: usize,
    /// Maximum number of generations after the first.
    pub generations: Option<u64>,
    /// Maximum number of genomes to evaluate. If a generation has more, the last ones of it are left out.
    pub evaluations: Option<u64>,
    /// The longest wall time. If there is one, the result depends on the machine.
    pub time: Option<Duration>,
    /// Probability that two parents are crossed.
    pub crossover_rate: f64,
    /// Probability that a child is mutated.
    pub mutation_rate: f64,
    /// How parents are crossed.
    pub crossover: &'a Crossover<'a>,
    /// How a child is mutated.
    pub mutation: &'a Mutation<'a>,
    /// Genomes with which the first generation begins. Genomes that are not in the space are left out.
    pub warm_starts: Vec<Vec<i64>>,
}

impl Settings<'_> {
    /// Generations of a search that has no limit.
    pub const GENERATIONS: u64 = 200;

    /// A search without a limit on generations ends after this many generations without a new genome, since a small
    /// space runs out of genomes.
    pub const STALE: u64 = 50;
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            seed: 1,
            population: 100,
            generations: None,
            evaluations: None,
            time: None,
            crossover_rate: 0.9,
            mutation_rate: 0.1,
            crossover: &space::one_point,
            mutation: &space::mutate_one_gene,
            warm_starts: Vec::new(),
        }
    }
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// All generations have passed.
    Generations,
    /// As many genomes as allowed were evaluated.
    Evaluations,
    /// The time was over.
    Time,
    /// The caller's progress function returned false.
    Asked,
    /// There was no new genome for [`Settings::STALE`] generations, and the search has no limit on generations.
    Stale,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The Pareto front of all genomes that were evaluated and meet the constraints, sorted by the objectives. There is
    /// one individual for each point.
    pub front: Vec<Individual>,
    /// The last generation, the best individual first. If no individual meets the constraints, the nearest one is here.
    pub population: Vec<Individual>,
    /// Genomes that were evaluated, each once.
    pub evaluations: u64,
    /// Generations after the first.
    pub generations: u64,
    /// Why it ended.
    pub stopped: StopReason,
}

/// The state of a search after a generation.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Generations after the first.
    pub generation: u64,
    /// Genomes that were evaluated.
    pub evaluations: u64,
    /// The Pareto front so far.
    pub front: &'a [Individual],
}

/// Searches a problem.
pub fn search(problem: &dyn Problem, settings: &Settings<'_>) -> Outcome {
    search_with(problem, settings, &mut |_| true)
}

/// Searches a problem, and calls `progress` after each generation. The search goes on as long as `progress` returns true.
///
/// ```
/// use csdfc_ga::{Evaluation, Problem, Section, Settings, Space, StopReason, search_with};
///
/// /// An order of four things with the least distance between neighbours.
/// struct Tour(Space);
///
/// impl Problem for Tour {
///     fn space(&self) -> &Space {
///         &self.0
///     }
///
///     fn evaluate(&self, genome: &[i64]) -> Evaluation {
///         let places = [0.0, 5.0, 1.0, 3.0];
///         let stops: Vec<f64> = genome.iter().map(|gene| places[*gene as usize]).collect();
///         Evaluation::new([stops.windows(2).map(|pair: &[f64]| (pair[0] - pair[1]).abs()).sum::<f64>()])
///     }
/// }
///
/// let tour = Tour(Space::new(vec![Section::Permutation(4)]));
/// let mut generations = 0;
/// let outcome = search_with(&tour, &Settings { population: 10, ..Settings::default() }, &mut |progress| {
///     generations = progress.generation;
///     progress.front[0].evaluation.objectives[0] > 5.0
/// });
/// assert_eq!((outcome.stopped, outcome.generations), (StopReason::Asked, generations));
/// assert_eq!(outcome.front[0].evaluation.objectives, [5.0]);
/// ```
pub fn search_with(
    problem: &dyn Problem,
    settings: &Settings<'_>,
    progress: &mut dyn FnMut(&Progress<'_>) -> bool,
) -> Outcome {
    let mut run = Evolution {
        problem,
        settings,
        known: BTreeMap::new(),
        archive: Archive::default(),
        end: settings.time.and_then(|time| Instant::now().checked_add(time)),
    };
    let size = settings.population.max(2);
    let most = match (settings.generations, settings.evaluations, settings.time) {
        (None, None, None) => Settings::GENERATIONS,
        (generations, ..) => generations.unwrap_or(u64::MAX),
    };
    let mut population = run.evaluate(run.first(size));
    let mut generation = 0;
    // The number of known genomes when it last grew, and the generation in which it did.
    let mut grown = (0, 0);
    let stopped = loop {
        population = ranked(population, size);
        let evaluations = run.known.len() as u64;
        if evaluations > grown.0 {
            grown = (evaluations, generation);
        }
        let front = run.archive.members();
        if !progress(&Progress { generation, evaluations, front }) {
            break StopReason::Asked;
        } else if run.is_late() {
            break StopReason::Time;
        } else if settings.evaluations.is_some_and(|most| evaluations >= most) {
            break StopReason::Evaluations;
        } else if generation >= most {
            break StopReason::Generations;
        } else if most == u64::MAX && generation - grown.1 >= Settings::STALE {
            break StopReason::Stale;
        }
        generation += 1;
        let children = run.children(&population, size, generation);
        population.extend(run.evaluate(children).into_iter().map(|child| Ranked {
            front: 0,
            crowding: 0.0,
            ..child
        }));
    };
    Outcome {
        front: run.archive.into_members(),
        population: population.into_iter().map(|ranked| ranked.individual).collect(),
        evaluations: run.known.len() as u64,
        generations: generation,
        stopped,
    }
}

/// An individual and its place in its generation.
#[derive(Debug, Clone)]
struct Ranked {
    individual: Individual,
    front: usize,
    crowding: f64,
}

impl Ranked {
    /// The crowded comparison: the better front first, and within a front the larger crowding distance.
    fn compare(&self, other: &Ranked) -> Ordering {
        self.front.cmp(&other.front).then(order(other.crowding, self.crowding))
    }
}

struct Evolution<'a> {
    problem: &'a dyn Problem,
    settings: &'a Settings<'a>,
    /// All genomes that were evaluated.
    known: BTreeMap<Vec<i64>, Evaluation>,
    archive: Archive,
    end: Option<Instant>,
}

impl Evolution<'_> {
    fn is_late(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// The random stream of one individual.
    fn stream(&self, generation: u64, index: usize) -> ChaCha8Rng {
        let mut random = ChaCha8Rng::seed_from_u64(self.settings.seed);
        random.set_stream(generation << 24 | index as u64);
        random
    }

    fn first(&self, size: usize) -> Vec<Vec<i64>> {
        let space = self.problem.space();
        let warm =
            self.settings.warm_starts.iter().filter(|genome| space.accepts(genome)).take(size).cloned();
        let mut genomes: Vec<Vec<i64>> = warm.collect();
        genomes.extend((genomes.len()..size).map(|index| space.random(&mut self.stream(0, index))));
        genomes
    }

    fn children(&self, population: &[Ranked], size: usize, generation: u64) -> Vec<Vec<i64>> {
        let (space, settings) = (self.problem.space(), self.settings);
        let pair = |index: usize| {
            let random = &mut self.stream(generation, index);
            let [one, other] = [0, 0].map(|_| {
                let [a, b] = [0, 0].map(|_| &population[random.random_range(0..population.len())]);
                // Of equal ones, the first drawn.
                if b.compare(a).is_lt() { b } else { a }
            });
            let parents = [one, other].map(|parent| parent.individual.genome.as_slice());
            let mut children = if chance(settings.crossover_rate, random) {
                (settings.crossover)(space, parents, random)
            } else {
                parents.map(<[i64]>::to_vec)
            };
            for child in &mut children {
                if chance(settings.mutation_rate, random) {
                    (settings.mutation)(space, child, random);
                }
            }
            children
        };
        (0..size.div_ceil(2))
            .into_par_iter()
            .flat_map_iter(pair)
            .collect::<Vec<_>>()
            .into_iter()
            .take(size)
            .collect()
    }

    /// Evaluates the genomes that are not known yet, in parallel, within the limits.
    fn evaluate(&mut self, genomes: Vec<Vec<i64>>) -> Vec<Ranked> {
        let mut unknown: Vec<&Vec<i64>> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for genome in &genomes {
            if !self.known.contains_key(genome) && seen.insert(genome) {
                unknown.push(genome);
            }
        }
        let left = self.settings.evaluations.map(|most| most.saturating_sub(self.known.len() as u64));
        // At least one genome is evaluated, so that there is one to rank.
        let left = left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX));
        unknown.truncate(if self.known.is_empty() { left.max(1) } else { left });
        let evaluate = |genome: &&Vec<i64>| {
            let late = !self.known.is_empty() && self.is_late();
            (!late).then(|| self.problem.evaluate(genome))
        };
        let evaluations: Vec<Option<Evaluation>> = unknown.par_iter().map(evaluate).collect();
        for (genome, evaluation) in unknown.iter().zip(evaluations) {
            if let Some(evaluation) = evaluation {
                self.archive.insert(genome, &evaluation);
                self.known.insert((*genome).clone(), evaluation);
            }
        }
        let individual = |genome: Vec<i64>| {
            let evaluation = self.known.get(&genome)?.clone();
            Some(Ranked { individual: Individual { genome, evaluation }, front: 0, crowding: 0.0 })
        };
        genomes.into_iter().filter_map(individual).collect()
    }
}

fn chance(rate: f64, random: &mut ChaCha8Rng) -> bool {
    random.random_range(0.0..1.0) < rate
}

/// The `size` best of a population, ranked. A genome is taken twice only if there are too few different ones.
fn ranked(population: Vec<Ranked>, size: usize) -> Vec<Ranked> {
    let mut genomes = std::collections::BTreeSet::new();
    let (mut once, again): (Vec<Ranked>, Vec<Ranked>) =
        population.into_iter().partition(|ranked| genomes.insert(ranked.individual.genome.clone()));
    let missing = size.saturating_sub(once.len());
    once.extend(again.into_iter().take(missing));
    let evaluations: Vec<Evaluation> =
        once.iter().map(|ranked| ranked.individual.evaluation.clone()).collect();
    let mut kept: Vec<Ranked> = Vec::new();
    for (rank, front) in fronts(&evaluations).into_iter().enumerate() {
        let crowding = crowding(&evaluations, &front);
        let mut members: Vec<Ranked> = front
            .iter()
            .zip(crowding)
            .map(|(i, crowding)| Ranked { front: rank, crowding, ..once[*i].clone() })
            .collect();
        members.sort_by(Ranked::compare);
        members.truncate(size - kept.len());
        kept.extend(members);
        if kept.len() == size {
            break;
        }
    }
    kept
}
