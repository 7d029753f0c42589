//! The best individuals that were ever seen.

use std::cmp::Ordering;

use crate::dominance::{Evaluation, order};

/// A genome and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Individual {
    /// The genome.
    pub genome: Vec<i64>,
    /// Its value.
    pub evaluation: Evaluation,
}

/// A Pareto front: individuals that meet the constraints. None of them dominates another. If several individuals are
/// equal in all objectives, the archive keeps the one with the smallest genome. So its content does not depend on the
/// order of insertion.
///
/// ```
/// use csdfc_ga::{Archive, Evaluation};
///
/// let mut front = Archive::default();
/// for (gene, objectives) in [(0, [3.0, 1.0]), (1, [1.0, 3.0]), (2, [3.0, 2.0]), (3, [2.0, 2.0])] {
///     front.insert(&[gene], &Evaluation::new(objectives));
/// }
/// // Genome 2 is no better than genome 0 in any objective, and worse in one.
/// let genes: Vec<i64> = front.members().iter().map(|member| member.genome[0]).collect();
/// assert_eq!(genes, [1, 3, 0]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Archive {
    members: Vec<Individual>,
}

impl Archive {
    /// Its members, sorted by the first objective, then by the second, and so on.
    pub fn members(&self) -> &[Individual] {
        &self.members
    }

    /// Its members, in the same order.
    pub fn into_members(self) -> Vec<Individual> {
        self.members
    }

    /// Inserts an individual, unless a member is at least as good, and removes the members that it dominates. Returns
    /// whether the individual is in. It takes O(m · k) time for m members and k objectives.
    pub fn insert(&mut self, genome: &[i64], evaluation: &Evaluation) -> bool {
        if !evaluation.is_feasible() {
            return false;
        }
        let place = self.members.binary_search_by(|member| by_objectives(&member.evaluation, evaluation));
        match place {
            Ok(same) => {
                let smaller = genome < self.members[same].genome.as_slice();
                if smaller {
                    self.members[same].genome = genome.to_vec();
                }
                smaller
            }
            // Only members before this place can be better, and only members after it can be worse.
            Err(at) if self.members[..at].iter().any(|member| member.evaluation.dominates(evaluation)) => {
                false
            }
            Err(at) => {
                let mut index = 0;
                self.members.retain(|member| {
                    index += 1;
                    index <= at || !evaluation.dominates(&member.evaluation)
                });
                self.members
                    .insert(at, Individual { genome: genome.to_vec(), evaluation: evaluation.clone() });
                true
            }
        }
    }
}

fn by_objectives(a: &Evaluation, b: &Evaluation) -> Ordering {
    let pairs = a.objectives.iter().zip(&b.objectives);
    pairs.map(|(a, b)| order(*a, *b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}
