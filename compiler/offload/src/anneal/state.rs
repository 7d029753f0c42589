//! A strategy that changes step by step, and its cost at every moment.
//!
//! A pixel is loaded once for each run of steps in a row whose groups cover it. So a patch that joins or leaves a group
//! changes only the loads of those of its pixels that the rest of the group does not cover. Whether the neighbouring
//! groups cover such a pixel decides by how much.

use super::loads::Loads;
use super::overlaps::Overlaps;
use crate::coverage::Coverage;
use crate::problem::Problem;
use crate::strategy::Groups;

/// The penalty of one load beyond the bound, in loads.
const PENALTY: i64 = 20;

/// Maximum number of groups of a run that is reversed.
const MAX_RUN_LEN: usize = 200;

/// A change of a strategy. Groups have numbers, which they keep when they change places.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// Two patches change groups.
    Swap {
        /// A patch.
        one: u32,
        /// One of another group.
        two: u32,
    },
    /// A patch joins another group.
    Move {
        /// The patch.
        patch: u32,
        /// The group.
        to: u32,
    },
    /// Reverses the run of groups that begins after one group and ends with another, so that the two become neighbours.
    Reverse {
        /// The one group.
        from: u32,
        /// The other.
        to: u32,
    },
    /// A run of groups moves to right after another group.
    Relocate {
        /// The run's first group.
        group: u32,
        /// The group that it comes after.
        beside: u32,
        /// Groups of the run.
        length: usize,
    },
}

/// A strategy under way.
#[derive(Debug)]
pub struct Candidate<'a> {
    problem: &'a Problem,
    coverage: Coverage<'a>,
    overlaps: Overlaps,
    groups: Groups,
    group_of: Vec<u32>,
    /// Groups in the order of their steps, and the place of each.
    order: Vec<u32>,
    place: Vec<u32>,
    /// Pixels that each group covers.
    size: Vec<usize>,
    loads: Loads,
    empty: i64,
    undo: Undo,
}

/// How to take the last change back, apart from its loads.
#[derive(Debug, Default)]
struct Undo {
    edit: Option<Edit>,
    /// Sizes of the two groups whose patches change.
    sizes: [usize; 2],
}

/// A change in terms of places.
#[derive(Debug, Clone, Copy)]
enum Edit {
    /// Patch `one` goes to group `to`, and perhaps patch `two` goes the other way.
    Patches { one: u32, from: u32, to: u32, two: Option<u32> },
    /// Places `first` to `last` are reversed.
    Reverse { first: usize, last: usize },
    /// Rotates places `first` to `last`, so that the first `by` of them come last.
    Rotate { first: usize, last: usize, by: usize },
}

impl<'a> Candidate<'a> {
    /// Starts from these groups.
    pub fn new(problem: &'a Problem, groups: &Groups) -> Self {
        let convolution = &problem.convolution;
        let mut coverage = Coverage::new(convolution);
        let mut group_of = vec![0; convolution.patches()];
        let mut loads = Loads::new(convolution.pixels(), problem.reload);
        let mut before: &[u32] = &[];
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|patch| group_of[*patch as usize] = number as u32);
            coverage.fresh(before, group, |pixel| loads.change(pixel, 1));
            before = group;
        }
        let order: Vec<u32> = (0..groups.len() as u32).collect();
        Candidate {
            problem,
            overlaps: Overlaps::new(convolution),
            groups: groups.clone(),
            group_of,
            place: order.clone(),
            order,
            size: groups.iter().map(|group| coverage.size(group)).collect(),
            coverage,
            loads,
            empty: 0,
            undo: Undo::default(),
        }
    }

    /// H_out and W_out.
    pub fn output(&self) -> [usize; 2] {
        self.problem.convolution.output()
    }

    /// The group of a patch.
    pub fn group_of(&self, patch: u32) -> u32 {
        self.group_of[patch as usize]
    }

    /// The groups in the order of their steps.
    pub fn groups(&self) -> Groups {
        let groups = self.order.iter().map(|group| self.groups[*group as usize].clone());
        groups.filter(|group| !group.is_empty()).collect()
    }

    /// Cycles of loads and steps of one pass, and the penalty for pixels that are loaded too often.
    pub fn energy(&self) -> i64 {
        // At most 2^26 pixels are loaded, for 2^32 cycles each: these products fit.
        let load = self.problem.load_cycles() as i64;
        let Loads { sum, over, .. } = self.loads;
        sum * load - self.empty * self.problem.accelerator.tacc as i64 + over * PENALTY * load.max(1)
    }

    /// Makes a change. Returns `false` and changes nothing if the change has no effect, or if a group would not fit the
    /// memory.
    pub fn apply(&mut self, change: &Change) -> bool {
        let Some(edit) = self.edit(change) else { return false };
        self.undo.edit = Some(edit);
        self.loads.begin();
        let Edit::Patches { one, from, to, two } = edit else {
            edit.ends().for_each(|place| self.count_pair(place, 1));
            self.arrange(edit);
            edit.inverse().ends().for_each(|place| self.count_pair(place, -1));
            return true;
        };
        self.undo.sizes = [from, to].map(|group| self.size[group as usize]);
        self.pass(one, from, to);
        if let Some(two) = two {
            self.pass(two, to, from);
        }
        let fits = self.fits(from) && self.fits(to);
        if !fits {
            self.revert();
        }
        fits
    }

    /// Takes the last change back.
    pub fn revert(&mut self) {
        let Some(edit) = self.undo.edit.take() else { return };
        self.arrange(edit.inverse());
        self.loads.revert();
        if let Edit::Patches { from, to, .. } = edit {
            [self.size[from as usize], self.size[to as usize]] = self.undo.sizes;
        }
    }

    fn edit(&self, change: &Change) -> Option<Edit> {
        let place = |group: u32| self.place[group as usize] as usize;
        match *change {
            Change::Swap { one, two } => {
                let (from, to) = (self.group_of(one), self.group_of(two));
                Some(Edit::Patches { one, from, to, two: Some(two) })
            }
            Change::Move { patch, to } => {
                let full = self.groups[to as usize].len() >= self.problem.group;
                (!full).then_some(Edit::Patches { one: patch, from: self.group_of(patch), to, two: None })
            }
            Change::Reverse { from, to } => {
                let (from, to) = (place(from), place(to));
                let (first, last) = if from < to { (from + 1, to) } else { (to, from - 1) };
                (first < last && last - first < MAX_RUN_LEN).then_some(Edit::Reverse { first, last })
            }
            Change::Relocate { group, beside, length } => {
                let (run, to) = (place(group), place(beside));
                if to < run {
                    let last = (run + length - 1).min(self.order.len() - 1);
                    let edit = Edit::Rotate { first: to + 1, last, by: run - to - 1 };
                    (run > to + 1).then_some(edit)
                } else {
                    (to >= run + length).then_some(Edit::Rotate { first: run, last: to, by: length })
                }
            }
        }
    }

    /// Moves patches and groups, but counts no loads.
    fn arrange(&mut self, edit: Edit) {
        let (first, last) = match edit {
            Edit::Patches { one, from, to, two } => {
                self.transfer(one, from, to);
                if let Some(two) = two {
                    self.transfer(two, to, from);
                }
                return;
            }
            Edit::Reverse { first, last } => {
                self.order[first..=last].reverse();
                (first, last)
            }
            Edit::Rotate { first, last, by } => {
                self.order[first..=last].rotate_left(by);
                (first, last)
            }
        };
        for place in first..=last {
            self.place[self.order[place] as usize] = place as u32;
        }
    }

    fn transfer(&mut self, patch: u32, from: u32, to: u32) {
        self.groups[from as usize].retain(|member| *member != patch);
        self.empty += i64::from(self.groups[from as usize].is_empty());
        self.empty -= i64::from(self.groups[to as usize].is_empty());
        self.groups[to as usize].push(patch);
        self.group_of[patch as usize] = to;
    }

    /// Transfers a patch and counts its loads.
    fn pass(&mut self, patch: u32, from: u32, to: u32) {
        self.count_patch(patch, from, false);
        self.transfer(patch, from, to);
        self.count_patch(patch, to, true);
    }

    fn fits(&self, group: u32) -> bool {
        let group = group as usize;
        self.problem.fits(self.size[group], self.groups[group].len())
    }

    /// Counts a patch as one that joins its group, or that leaves it.
    fn count_patch(&mut self, patch: u32, group: u32, joins: bool) {
        let place = self.place[group as usize] as usize;
        self.overlaps.begin(patch);
        for (bit, place) in [place.checked_sub(1), Some(place), Some(place + 1)].into_iter().enumerate() {
            let near = place.and_then(|place| self.order.get(place));
            let others = near.into_iter().flat_map(|group| &self.groups[*group as usize]);
            others.filter(|other| **other != patch).for_each(|other| self.overlaps.add(*other, 1 << bit));
        }
        for (pixel, found) in self.problem.convolution.pixels_of(patch).zip(self.overlaps.found()) {
            let [before, here, after] = [0, 1, 2].map(|bit| i32::from(found >> bit & 1));
            if here == 1 {
                continue;
            }
            // It is a run of its own, unless it joins the neighbouring runs.
            let loads = 1 - before - after;
            self.loads.change(pixel, if joins { loads } else { -loads });
            let size = &mut self.size[group as usize];
            *size = if joins { *size + 1 } else { *size - 1 };
        }
    }

    /// Counts the groups at a place and before it as neighbours (-1), or as neighbours no more (1).
    fn count_pair(&mut self, place: usize, by: i32) {
        if (1..self.order.len()).contains(&place) {
            let [one, two] = [place - 1, place].map(|place| &self.groups[self.order[place] as usize]);
            self.coverage.shared(one, two, |pixel| self.loads.change(pixel, by));
        }
    }
}

impl Edit {
    /// The edit that undoes this one.
    fn inverse(self) -> Self {
        match self {
            Edit::Patches { one, from, to, two } => Edit::Patches { one, from: to, to: from, two },
            Edit::Rotate { first, last, by } => Edit::Rotate { first, last, by: last + 1 - first - by },
            other => other,
        }
    }

    /// The places at which the runs of groups that stay together begin, and the place after them.
    fn ends(self) -> impl Iterator<Item = usize> {
        let ends = match self {
            Edit::Patches { .. } => [None; 3],
            Edit::Reverse { first, last } => [Some(first), None, Some(last + 1)],
            Edit::Rotate { first, last, by } => [Some(first), Some(first + by), Some(last + 1)],
        };
        ends.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anneal::propose;
    use crate::problem::Options;
    use crate::{Accelerator, Convolution, Spec};
    use rand::rngs::ChaCha8Rng;
    use rand::{Rng, SeedableRng};

    /// Makes random changes, takes every other back, and counts anew after each.
    fn keeps_count(spec: Spec, group: usize, reload: Option<u32>, mem: Option<u64>) {
        let options = Options { group: Some(group), reload, ..Options::default() };
        let accelerator = Accelerator { mem, ..Accelerator::default() };
        let problem = Problem::new(Convolution::new(spec).unwrap(), accelerator, &options).unwrap();
        let singles: Groups = (0..problem.convolution.patches() as u32).map(|patch| vec![patch]).collect();
        let mut state = Candidate::new(&problem, &singles);
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut made = 0;
        for _ in 0..2000 {
            let Some(change) = propose(&state, &mut random) else { continue };
            let (energy, groups) = (state.energy(), state.groups());
            if !state.apply(&change) {
                assert_eq!(state.energy(), energy, "{change:?}");
                continue;
            }
            if random.next_u32() % 2 == 0 {
                state.revert();
                assert_eq!(state.energy(), energy, "{change:?}");
                // Members of a group may lie in another order.
                let sorted = |groups: Groups| -> Groups {
                    let sort = |mut group: Vec<u32>| {
                        group.sort_unstable();
                        group
                    };
                    groups.into_iter().map(sort).collect()
                };
                assert_eq!(sorted(state.groups()), sorted(groups), "{change:?}");
            }
            made += 1;
            // Groups that have lost all patches stand between others, but take no step.
            let cost = problem.cost(&ordered(&state));
            let counted = Candidate::new(&problem, &ordered(&state));
            assert!(mem.is_none_or(|mem| cost.memory <= mem));
            assert_eq!(state.size, sizes(&state, &counted), "{change:?}");
            assert_eq!(
                (state.loads.sum, state.loads.over),
                (counted.loads.sum, counted.loads.over),
                "{change:?}"
            );
            assert_eq!(state.loads.sum, cost.pixels_loaded as i64);
        }
        assert!(made > 200, "{made}");
    }

    /// The groups by their steps, the empty ones too.
    fn ordered(state: &Candidate<'_>) -> Groups {
        state.order.iter().map(|group| state.groups[*group as usize].clone()).collect()
    }

    /// The sizes counted anew, by the numbers of the groups.
    fn sizes(state: &Candidate<'_>, counted: &Candidate<'_>) -> Vec<usize> {
        state.place.iter().map(|place| counted.size[*place as usize]).collect()
    }

    #[test]
    fn loads_and_sizes_are_those_of_the_groups() {
        let square = |size, filter| Spec::new([size, size], 1, [filter, filter], 1);
        keeps_count(square(7, 3), 3, Some(2), None);
        keeps_count(square(8, 5), 4, None, Some(60));
        keeps_count(square(5, 1), 2, Some(1), None);
        keeps_count(Spec { stride: [2, 3], ..Spec::new([13, 17], 1, [5, 4], 1) }, 3, Some(2), Some(55));
        keeps_count(
            Spec { dilation: [2, 3], stride: [1, 2], ..Spec::new([9, 17], 1, [3, 4], 1) },
            3,
            Some(3),
            None,
        );
        keeps_count(
            Spec { dilation: [4, 2], stride: [6, 1], ..Spec::new([30, 9], 1, [4, 2], 1) },
            2,
            None,
            None,
        );
    }
}
