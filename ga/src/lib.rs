//! Multi-objective genetic search.
//!
//! NSGA-II (Deb, Pratap, Agarwal and Meyarivan, *A fast and elitist multiobjective genetic algorithm*, IEEE Transactions
//! on Evolutionary Computation 6(2), 2002) and the Pareto tools that go with it. It knows genomes and objectives, and
//! nothing of dataflow or CNNs.
//!
//! A [`Problem`] has a [`Space`] of genomes, which consist of bits, bounded integers and permutations in any mixture, and
//! evaluates them. [`search`] returns the best genomes that it saw. The same seed gives the same result on any number of
//! threads: every child draws from a random stream of its own, and each genome is evaluated once.
//!
//! A generation of n individuals with k objectives takes O(k · n²) time for the fronts, and at most n evaluations.
//!
//! ```
//! use csdfc_ga::{Evaluation, Problem, Section, Settings, Space, search};
//!
//! /// Which of six things to carry, for little weight and much worth.
//! struct Knapsack {
//!     space: Space,
//! }
//!
//! const WEIGHT: [f64; 6] = [4.0, 2.0, 6.0, 1.0, 3.0, 5.0];
//! const WORTH: [f64; 6] = [5.0, 3.0, 6.0, 1.0, 4.0, 2.0];
//!
//! impl Problem for Knapsack {
//!     fn space(&self) -> &Space {
//!         &self.space
//!     }
//!
//!     fn evaluate(&self, genome: &[i64]) -> Evaluation {
//!         let sum = |of: &[f64; 6]| genome.iter().zip(of).map(|(gene, each)| *gene as f64 * each).sum::<f64>();
//!         // Objectives are minimised.
//!         Evaluation::new([sum(&WEIGHT), -sum(&WORTH)])
//!     }
//! }
//!
//! let problem = Knapsack { space: Space::new(vec![Section::Bits(6)]) };
//! let outcome = search(&problem, &Settings { population: 20, generations: Some(20), ..Settings::default() });
//! let lightest = &outcome.front[0];
//! assert_eq!((lightest.genome.as_slice(), &lightest.evaluation.objectives[..]), (&[0; 6][..], &[0.0, 0.0][..]));
//! ```

mod archive;
mod dominance;
mod indicators;
mod nsga2;
mod space;

pub use archive::{Archive, Individual};
pub use dominance::{Evaluation, crowding, fronts};
pub use indicators::{hypervolume, spacing};
pub use nsga2::{Crossover, Mutation, Outcome, Problem, Progress, Settings, StopReason, search, search_with};
pub use space::{Section, Space, mutate_one_gene, one_point};
