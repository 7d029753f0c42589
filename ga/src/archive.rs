//! The best that was ever seen.

use std::cmp::Ordering;

use crate::dominance::{Evaluation, order};
use crate::nsga2::Individual;

/// Individuals that meet the constraints and of which none dominates another. Of those that are equal in all objectives
/// the one with the least genome stays, so that the order of insertion does not matter.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    members: Vec<Individual>,
}

impl Archive {
    /// Its members, by their objectives, the first first.
    pub fn members(&self) -> &[Individual] {
        &self.members
    }

    /// The members themselves.
    pub fn into_members(self) -> Vec<Individual> {
        self.members
    }

    /// Puts in an individual, unless a member is at least as good, and takes out the members that it is better than.
    /// Returns whether it is in.
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
            // Only what comes before can be better, and only what comes after worse.
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
