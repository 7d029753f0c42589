//! The search itself.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use crate::archive::Archive;
use crate::dominance::{Evaluation, crowding, fronts, order};
use crate::space::{self, Space};

/// What is searched.
pub trait Problem: Sync {
    /// The genomes there are.
    fn space(&self) -> &Space;

    /// What a genome is worth: for every genome the same number of objectives, all minimised. It is asked once per
    /// genome, from several threads, and must answer the same whenever it is asked.
    fn evaluate(&self, genome: &[i64]) -> Evaluation;
}

/// Two children of two parents.
pub type Crossover<'a> = dyn Fn(&Space, [&[i64]; 2], &mut ChaCha8Rng) -> [Vec<i64>; 2] + Sync + 'a;

/// A change of a genome.
pub type Mutation<'a> = dyn Fn(&Space, &mut [i64], &mut ChaCha8Rng) + Sync + 'a;

/// How to search. The limits may be combined; with none the search ends after [`Settings::GENERATIONS`].
pub struct Settings<'a> {
    /// Seed of all random choices.
    pub seed: u64,
    /// Individuals of a generation, at least 2.
    pub population: usize,
    /// Most generations after the first.
    pub generations: Option<u64>,
    /// Most genomes to evaluate. (Those of a generation that exceeds it are left out from its end.)
    pub evaluations: Option<u64>,
    /// Most time. What is found then depends on the machine.
    pub time: Option<Duration>,
    /// How likely two parents are crossed.
    pub crossover_rate: f64,
    /// How likely a child is mutated.
    pub mutation_rate: f64,
    /// How parents are crossed.
    pub crossover: &'a Crossover<'a>,
    /// How a child is mutated.
    pub mutation: &'a Mutation<'a>,
    /// Genomes that the first generation begins with; those that are none of the space are left out.
    pub warm_starts: Vec<Vec<i64>>,
}

impl Settings<'_> {
    /// Generations where nothing limits a search.
    pub const GENERATIONS: u64 = 200;

    /// Generations without a new genome after which a search without a limit on generations ends: a small space runs out.
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

/// A genome and what it is worth.
#[derive(Debug, Clone, PartialEq)]
pub struct Individual {
    /// The genome.
    pub genome: Vec<i64>,
    /// What it is worth.
    pub evaluation: Evaluation,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// All generations have passed.
    Generations,
    /// So many genomes were evaluated.
    Evaluations,
    /// The time was over.
    Time,
    /// Who was told of the progress said so.
    Asked,
    /// Nothing new came up for [`Settings::STALE`] generations, and their number is not what limits the search.
    Stale,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The individuals, of all that were evaluated, that meet the constraints and that none dominates, one per point, by
    /// their objectives.
    pub front: Vec<Individual>,
    /// The last generation, the best first; where no individual meets the constraints, the nearest is here.
    pub population: Vec<Individual>,
    /// Genomes that were evaluated, each once.
    pub evaluations: u64,
    /// Generations after the first.
    pub generations: u64,
    /// Why it ended.
    pub stopped: StopReason,
}

/// How far a search is, after each generation.
#[derive(Debug)]
pub struct Progress<'a> {
    /// Generations after the first.
    pub generation: u64,
    /// Genomes that were evaluated.
    pub evaluations: u64,
    /// The best so far.
    pub front: &'a [Individual],
}

/// Searches a problem.
pub fn search(problem: &dyn Problem, settings: &Settings<'_>) -> Outcome {
    search_with(problem, settings, &mut |_| true)
}

/// Searches a problem, and tells of the progress after each generation; the search goes on as long as the answer is true.
pub fn search_with(
    problem: &dyn Problem,
    settings: &Settings<'_>,
    progress: &mut dyn FnMut(&Progress<'_>) -> bool,
) -> Outcome {
    let mut run = Run {
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
    // How many genomes were known when there were last more than before, and in which generation.
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
    /// The crowded comparison: the nearer front, there the lonelier.
    fn compare(&self, other: &Ranked) -> Ordering {
        self.front.cmp(&other.front).then(order(other.crowding, self.crowding))
    }
}

struct Run<'a> {
    problem: &'a dyn Problem,
    settings: &'a Settings<'a>,
    /// All that was evaluated.
    known: BTreeMap<Vec<i64>, Evaluation>,
    archive: Archive,
    end: Option<Instant>,
}

impl Run<'_> {
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
                // Of equals the first drawn.
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

    /// Evaluates what is not known yet, in parallel, within the limits.
    fn evaluate(&mut self, genomes: Vec<Vec<i64>>) -> Vec<Ranked> {
        let mut unknown: Vec<&Vec<i64>> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for genome in &genomes {
            if !self.known.contains_key(genome) && seen.insert(genome) {
                unknown.push(genome);
            }
        }
        let left = self.settings.evaluations.map(|most| most.saturating_sub(self.known.len() as u64));
        // Somebody must be there to be ranked.
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

/// The best of a population, ranked. Of genomes that are there twice one is enough, as long as there are others.
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
