//! Taking a problem apart, and putting the packings of its parts together.

use super::budget::{Meter, Stopped};
use super::goal::Goal;
use super::graph::{self, BitSet};
use super::problem::{Link, Packing, Problem, Solution};
use super::subproblem::{MAX_BLOCKS, Subproblem};
use super::{bound, optimum, reduce};

/// Packs a problem as low as the budget allows. It ends early when the height is proven to be the least. The problem is
/// NP-hard. All steps are polynomial in the number of blocks, except the complete searches, which count against the
/// budget.
///
/// The same problem and budget of steps give the same packing on every machine.
pub fn pack(problem: &Problem, budget: &mut Meter) -> Solution {
    reach(problem, Goal::MINIMUM, budget)
}

/// Packs a problem just low enough to fit `capacity` bytes. It ends early when its bound says that this is impossible.
pub fn decide(problem: &Problem, capacity: u64, budget: &mut Meter) -> Solution {
    reach(problem, Goal { enough: capacity, give_up: capacity }, budget)
}

fn reach(problem: &Problem, goal: Goal, budget: &mut Meter) -> Solution {
    let ids: Vec<usize> = (0..problem.blocks.len()).collect();
    let before = budget.spent();
    let packed = Solver { problem, budget }.solve(&ids, goal, 0);
    let reached = packed.bytes <= goal.enough.max(packed.bound) || packed.bound > goal.give_up;
    Solution {
        stopped: if reached || !budget.exhausted() { Stopped::Complete } else { budget.reason() },
        work: budget.spent() - before,
        bound: packed.bound,
        packing: Packing { offsets: packed.offsets, bytes: packed.bytes },
    }
}

/// Packs some of a problem's blocks, given ascending, as low as the budget allows.
pub(super) fn pack_some(problem: &Problem, ids: &[usize], budget: &mut Meter) -> Packing {
    let packed = Solver { problem, budget }.solve(ids, Goal::MINIMUM, 0);
    Packing { offsets: packed.offsets, bytes: packed.bytes }
}

/// Whether some blocks fit a capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// They do, at these offsets.
    Yes(Vec<u64>),
    /// They do not.
    No,
    /// Not known in the budget.
    Unknown,
}

/// Whether some of a problem's blocks, given ascending, fit `capacity` bytes.
pub(super) fn fit(problem: &Problem, ids: &[usize], capacity: u64, budget: &mut Meter) -> Fit {
    let goal = Goal { enough: capacity, give_up: capacity };
    let packed = Solver { problem, budget }.solve(ids, goal, 0);
    match (packed.bytes <= capacity, packed.bound > capacity) {
        (true, _) => Fit::Yes(packed.offsets),
        (_, true) => Fit::No,
        _ => Fit::Unknown,
    }
}

/// Deepest nesting of parts that are taken apart.
const DEEPEST: usize = 100;

struct Solver<'a> {
    problem: &'a Problem,
    budget: &'a mut Meter,
}

/// A packing of some blocks.
struct Packed {
    /// In the order of the blocks' numbers.
    offsets: Vec<u64>,
    bytes: u64,
    /// No packing takes less.
    bound: u64,
}

impl Solver<'_> {
    /// Packs these blocks, given ascending.
    fn solve(&mut self, ids: &[usize], goal: Goal, depth: usize) -> Packed {
        let part = Subproblem::new(self.problem, ids);
        let neighbours = neighbours(&part);
        let mut all = BitSet::new(ids.len());
        (0..ids.len()).for_each(|i| all.insert(i));
        if depth >= DEEPEST {
            return self.whole(&part, &neighbours, goal);
        }
        let apart = graph::components(&all, &neighbours, false);
        if apart.len() > 1 {
            return self.pack_components(&part, ids, &apart, goal, depth);
        }
        if !part.unfixed || ids.len() > MAX_BLOCKS {
            return self.whole(&part, &neighbours, goal);
        }
        let together = graph::components(&all, &wholly_apart(&part), true);
        // Elsewhere, bytes may be lost to alignments between parts, or saved within them.
        if together.len() > 1 && part.free {
            return self.together(ids, &together, depth);
        }
        let height = bound::of_part(&part).max(goal.enough);
        let reduction = reduce::reduce(&part, &neighbours, height);
        if reduction.rest.len() == ids.len() {
            return self.whole(&part, &neighbours, goal);
        }
        let rest: Vec<usize> = reduction.rest.iter().map(|i| ids[*i]).collect();
        let packed = self.solve(&rest, goal, depth + 1);
        let mut offsets = vec![None; ids.len()];
        for (i, at) in reduction.rest.iter().zip(&packed.offsets) {
            offsets[*i] = Some(*at);
        }
        reduction.restore(&part, &mut offsets);
        let offsets: Vec<u64> = offsets.into_iter().map(|at| at.unwrap_or(0)).collect();
        let ends = offsets.iter().zip(&part.blocks).map(|(at, block)| at + block.bytes);
        Packed { bytes: ends.max().unwrap_or(0), bound: packed.bound.max(bound::of_part(&part)), offsets }
    }

    /// Packs parts that never conflict: each begins at address 0, and the highest determines the height. The part that
    /// needs most is packed first, so that no other part needs to be lower than it.
    fn pack_components(
        &mut self,
        part: &Subproblem,
        ids: &[usize],
        parts: &[Vec<usize>],
        goal: Goal,
        depth: usize,
    ) -> Packed {
        let mut bounds = vec![0; parts.len()];
        let mut part_of = vec![0; ids.len()];
        for (p, members) in parts.iter().enumerate() {
            for i in members {
                part_of[*i] = p;
                let block = part.blocks[*i];
                bounds[p] = bounds[p].max(block.offset.unwrap_or(0) + block.bytes);
            }
        }
        for clique in &part.cliques {
            let p = part_of[clique[0].block];
            bounds[p] = bounds[p].max(clique.iter().map(|m| m.high - m.low).sum());
        }
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_by_key(|p| (std::cmp::Reverse(bounds[*p]), *p));
        let bound = bounds.iter().copied().max().unwrap_or(0);
        let mut all = Packed { offsets: vec![0; ids.len()], bytes: 0, bound };
        let mut goal = Goal { enough: goal.enough.max(bound), ..goal };
        for p in order {
            let members: Vec<usize> = parts[p].iter().map(|i| ids[*i]).collect();
            let packed = self.solve(&members, goal, depth + 1);
            for (i, at) in parts[p].iter().zip(&packed.offsets) {
                all.offsets[*i] = *at;
            }
            goal.enough = goal.enough.max(packed.bytes);
            all.bytes = all.bytes.max(packed.bytes);
            all.bound = all.bound.max(packed.bound);
        }
        all
    }

    /// Packs parts in which each block of one part conflicts as a whole with each block of the others. The parts lie
    /// one above the other, since no two of them can use the same address. (The addresses that belong to one part can
    /// be pushed together without cutting any block of it. Blocks of the part that are in use in part lie above each
    /// other as before, because the addresses that are taken out between two of them are beyond the end of both.)
    fn together(&mut self, ids: &[usize], parts: &[Vec<usize>], depth: usize) -> Packed {
        let mut all = Packed { offsets: vec![0; ids.len()], bytes: 0, bound: 0 };
        for part in parts {
            let members: Vec<usize> = part.iter().map(|i| ids[*i]).collect();
            let packed = self.solve(&members, Goal::MINIMUM, depth + 1);
            for (i, at) in part.iter().zip(&packed.offsets) {
                all.offsets[*i] = all.bytes + at;
            }
            all.bytes += packed.bytes;
            all.bound += packed.bound;
        }
        all
    }

    fn whole(&mut self, part: &Subproblem, neighbours: &[BitSet], goal: Goal) -> Packed {
        let (packing, bound) = optimum::optimum(part, neighbours, goal, self.budget);
        Packed { offsets: packing.offsets, bytes: packing.bytes, bound }
    }
}

/// The blocks that each conflicts with.
fn neighbours(part: &Subproblem) -> Vec<BitSet> {
    linked(part, |_, _| true)
}

/// The blocks that each conflicts with as a whole.
fn wholly_apart(part: &Subproblem) -> Vec<BitSet> {
    linked(part, |i, link| link.is_whole(part.blocks[i].bytes, part.blocks[link.other].bytes))
}

fn linked(part: &Subproblem, keep: impl Fn(usize, &Link) -> bool) -> Vec<BitSet> {
    let set = |(i, links): (usize, &Vec<Link>)| {
        let mut set = BitSet::new(part.blocks.len());
        links.iter().filter(|link| keep(i, link)).for_each(|link| set.insert(link.other));
        set
    };
    part.links.iter().enumerate().map(set).collect()
}
