//! Chooses design points on a board with several memories.
//!
//! The design points of a front take less memory the slower they are. On such a board, one that takes less memory may yet be
//! the faster one, because more of it lies in the fast memory. So each choice of the front is placed in the memories, and
//! the times that the memories cost are added to its own.

use std::collections::BTreeMap;

use csdfc_input::device::memory::Memory;
use csdfc_plan::plan;

use crate::objective::Figures;
use crate::search::{DesignPoint, Rate, Shortfall};
use crate::storage::Effort;

use super::Chooser;

/// A choice that is placed in the memories of the board.
struct PlacedChoice {
    /// The design point of each CNN.
    chosen: Vec<usize>,
    /// Bytes of the arena.
    bytes: u64,
    /// Bytes that memories lack, together.
    lacking: u64,
    /// How fast each CNN is.
    rates: Vec<Rate>,
}

impl PlacedChoice {
    fn figures(&self) -> Figures {
        Figures { memory: self.bytes, time: Figures::time(self.rates.iter().map(|rate| 1e9 / rate.fps)) }
    }
}

impl Chooser<'_> {
    /// The best choice and, if no choice meets the constraints, what can be reached. Also the front of the choices that fit
    /// the memories.
    pub(super) fn choose_in_memories(&self) -> (Vec<usize>, Option<Shortfall>, Vec<plan::ParetoPoint>) {
        let (any, objective) = (self.selection(&self.nothing_demanded()), self.problem.objective);
        let mut choices: Vec<Vec<usize>> = Vec::new();
        let fastest = any.thresholds().into_iter().filter_map(|budget| any.fastest(budget));
        for chosen in fastest.chain(self.known.iter().cloned()) {
            if !choices.contains(&chosen) {
                choices.push(chosen);
            }
        }
        let placed: Vec<PlacedChoice> = choices.into_iter().map(|chosen| self.placed(chosen)).collect();
        let is_fast_enough = |choice: &&PlacedChoice| objective.is_fast_enough(choice.rates.iter().copied());
        let compare =
            |a: &&PlacedChoice, b: &&PlacedChoice| objective.least.compare(&a.figures(), &b.figures());
        let fitting = || placed.iter().filter(|choice| choice.lacking == 0);
        let front = self.front_of(fitting().collect());
        if let Some(best) = fitting().filter(is_fast_enough).min_by(compare) {
            return (best.chosen.clone(), None, front);
        }
        let nearest = fitting().min_by(compare);
        let nearest = nearest.or_else(|| placed.iter().min_by_key(|choice| choice.lacking));
        let shortfall = Shortfall {
            least_memory: None,
            memory_at_rates: None,
            rates_in_memory: None,
            best_rates: nearest.map(|nearest| self.named(nearest)).unwrap_or_default(),
        };
        // Every CNN has design points if nothing is demanded, so there is a choice.
        let chosen =
            nearest.map_or_else(|| vec![0; self.design_points.len()], |choice| choice.chosen.clone());
        (chosen, Some(shortfall), front)
    }

    fn placed(&self, chosen: Vec<usize>) -> PlacedChoice {
        let storage = self.storage(&chosen);
        let (arrangement, waits) = self.problem.arrange_in_memories(&storage, Effort::Candidate);
        let taken = arrangement.regions.iter().map(|region| region.end - region.start);
        let lacks = |(bytes, memory): (u64, &Memory)| (bytes + memory.stack).saturating_sub(memory.bytes);
        let lacking = taken.zip(self.problem.memories()).map(lacks);
        let rate = |(cnn, point): (usize, &DesignPoint)| {
            let frame = self.problem.frame_in_memories(cnn, &point.execution, &waits[cnn]);
            Rate { fps: 1e9 / frame.period_ns, latency_ns: frame.latency_ns.round() as u64 }
        };
        PlacedChoice {
            bytes: arrangement.bytes,
            lacking: lacking.sum(),
            rates: self.points(&chosen).enumerate().map(rate).collect(),
            chosen,
        }
    }

    fn named(&self, choice: &PlacedChoice) -> BTreeMap<String, Rate> {
        self.by_name(choice.rates.iter().copied())
    }

    /// The front of these choices: none of them is worse than another in both memory and frame rates. Sorted by falling
    /// memory.
    fn front_of(&self, mut choices: Vec<&PlacedChoice>) -> Vec<plan::ParetoPoint> {
        choices.sort_by(|a, b| a.bytes.cmp(&b.bytes).then(a.figures().time.total_cmp(&b.figures().time)));
        let is_worse = |choice: &PlacedChoice, before: &PlacedChoice| {
            choice.rates.iter().zip(&before.rates).all(|(rate, before)| rate.fps <= before.fps)
        };
        let mut front: Vec<&PlacedChoice> = Vec::new();
        for choice in choices {
            if !front.iter().any(|before| is_worse(choice, before)) {
                front.push(choice);
            }
        }
        let point =
            |choice: &&PlacedChoice| self.pareto_point(&choice.chosen, choice.bytes, self.named(choice));
        front.iter().rev().map(point).collect()
    }
}
