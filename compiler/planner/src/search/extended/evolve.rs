//! The genetic search among the choices of a [`DesignSpace`].

use csdfc_ga::{Evaluation, Problem, Space, one_point, search_with};
use rand::rngs::ChaCha8Rng;

use super::design_space::DesignSpace;
use crate::frame::execution::Rings;
use crate::search::budget::{Budget, Stopped};
use crate::search::evaluate::Evaluator;
use crate::search::watch::{Progress, Watch};
use crate::storage::Effort;
use crate::strategy::Strategy;

/// Genomes that are evaluated by default, in addition to those from which the search starts. Chains of segments are
/// already so good that twice as many evaluations enlarge the front's hypervolume by far less than one percent.
const EVALUATIONS: u64 = 800;

/// Layers that are evaluated in them at most. Each takes time, and networks of hundreds of layers take minutes otherwise.
const LAYERS: u64 = 150_000;

/// Genomes of a generation, unless there are more to start from.
const POPULATION: usize = 64;

/// How a search goes.
pub(super) struct EvolutionSettings<'a> {
    /// Seed of all random choices.
    pub seed: u64,
    /// The CNN's name, for those who watch.
    pub name: &'a str,
    /// What ends it.
    pub watch: &'a Watch<'a>,
}

/// What was found.
pub(super) struct Evolved {
    /// The front of genomes, by memory, time and the bound on memory. The smallest memory comes first.
    pub genomes: Vec<Vec<i64>>,
    /// Genomes that were evaluated.
    pub evaluations: u64,
    /// Why it ended.
    pub stopped: Stopped,
}

/// Searches from the genomes given.
pub(super) fn evolve(
    evaluator: &Evaluator<'_>,
    design_space: &DesignSpace<'_>,
    mut starts: Vec<Vec<i64>>,
    settings: &EvolutionSettings<'_>,
) -> Evolved {
    let watch = settings.watch;
    starts.sort_unstable();
    starts.dedup();
    let (evaluations, time) = match watch.budget {
        _ if evaluator.without.contains(&Strategy::Evolution) => (Some(starts.len() as u64), None),
        Budget::Default => {
            let layers = evaluator.task.network.layers.len() as u64;
            (Some(EVALUATIONS.min(LAYERS / layers.max(1)) + starts.len() as u64), None)
        }
        Budget::Evaluations(evaluations) => (Some(evaluations), None),
        Budget::Time(_) => (None, watch.left()),
    };
    let mutation =
        |_: &Space, genome: &mut [i64], random: &mut ChaCha8Rng| design_space.mutate(genome, random);
    let crossover = |space: &Space, parents: [&[i64]; 2], random: &mut ChaCha8Rng| {
        let mut children = one_point(space, parents, random);
        children.iter_mut().for_each(|child| design_space.settle(child));
        children
    };
    let ga = csdfc_ga::Settings {
        seed: settings.seed,
        population: starts.len().max(POPULATION),
        evaluations,
        time,
        crossover_rate: 0.5,
        mutation_rate: 0.9,
        crossover: &crossover,
        mutation: &mutation,
        warm_starts: starts,
        ..csdfc_ga::Settings::default()
    };
    let outcome = search_with(&Choices { evaluator, design_space, settings }, &ga, &mut |progress| {
        let least = progress.front.first().map_or(0, |member| member.evaluation.objectives[0] as u64);
        (watch.progress)(&Progress {
            of: settings.name,
            evaluations: progress.evaluations,
            front: progress.front.len(),
            least,
        });
        !watch.is_stopped()
    });
    let stopped = Stopped::new(outcome.stopped, watch.budget);
    let genomes = outcome.front.into_iter().map(|member| member.genome).collect();
    Evolved { genomes, evaluations: outcome.evaluations, stopped }
}

/// The problem: choices for a CNN. Two objectives are the bytes of the rings, in a sketched placement, and the time
/// between frames. The third objective is a lower bound on the bytes. It keeps genomes that a patient placement may
/// improve.
struct Choices<'a> {
    evaluator: &'a Evaluator<'a>,
    design_space: &'a DesignSpace<'a>,
    settings: &'a EvolutionSettings<'a>,
}

impl Problem for Choices<'_> {
    fn space(&self) -> &Space {
        self.design_space.space()
    }

    fn evaluate(&self, genome: &[i64]) -> Evaluation {
        let unusable = Evaluation { objectives: vec![f64::INFINITY; 3], violation: 1.0 };
        if self.settings.watch.is_over() {
            return unusable;
        }
        let choice = self.design_space.choice(genome);
        match self.evaluator.execute(&choice, Rings::OnDemand) {
            Ok(execution) => Evaluation::new([
                self.evaluator.buffers(&execution, Effort::Sketch) as f64,
                self.evaluator.period_ns(&choice.rows, &[]),
                self.evaluator.bound(&execution) as f64,
            ]),
            Err(_) => unusable,
        }
    }
}
