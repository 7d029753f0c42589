//! A strategy that changes step by step, and what it costs at every moment.

use crate::offload::coverage::Coverage;
use crate::offload::problem::Problem;
use crate::offload::strategy::Groups;

/// Cycles that a load too many of a pixel counts, in loads.
const PENALTY: i64 = 20;

/// Most groups of a run that is reversed.
const LONGEST_RUN: usize = 200;

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
    /// The run from after one group to another is computed in reverse order, so that the two become neighbours.
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
    groups: Groups,
    group_of: Vec<u32>,
    /// Groups in the order of their steps, and the place of each.
    order: Vec<u32>,
    place: Vec<u32>,
    /// Pixels that each group covers.
    size: Vec<i64>,
    /// Pixels that the group at each place shares with the one before it.
    shared: Vec<i64>,
    loads: Option<Loads>,
    pixels: i64,
    empty: i64,
    undo: Undo,
}

/// Loads of every pixel, where they are bounded.
#[derive(Debug)]
struct Loads {
    most: i32,
    of: Vec<i32>,
    /// Loads above the bound, summed over the pixels.
    over: i64,
}

impl Loads {
    fn change(&mut self, pixel: u32, by: i32) {
        let loads = &mut self.of[pixel as usize];
        let over = |loads: i32| i64::from((loads - self.most).max(0));
        self.over += over(*loads + by) - over(*loads);
        *loads += by;
    }
}

/// How to take the last change back.
#[derive(Debug, Default)]
struct Undo {
    edit: Option<Edit>,
    pixels: i64,
    empty: i64,
    sizes: Vec<(u32, i64)>,
    shared: Vec<(usize, i64)>,
}

/// A change in terms of places.
#[derive(Debug, Clone, Copy)]
enum Edit {
    /// This patch goes to that group, and perhaps another the other way.
    Patches { one: u32, from: u32, to: u32, two: Option<u32> },
    /// Places `first` to `last` are reversed.
    Reverse { first: usize, last: usize },
    /// Of places `first` to `last`, the first `by` come last.
    Rotate { first: usize, last: usize, by: usize },
}

impl<'a> Candidate<'a> {
    /// Starts from these groups.
    pub fn new(problem: &'a Problem, groups: &Groups) -> Self {
        let convolution = &problem.convolution;
        let mut group_of = vec![0; convolution.patches()];
        for (number, group) in groups.iter().enumerate() {
            for patch in group {
                group_of[*patch as usize] = number as u32;
            }
        }
        let loads = problem.reload.map(|most| Loads {
            most: most as i32,
            of: vec![0; convolution.pixels()],
            over: 0,
        });
        let mut state = Candidate {
            problem,
            coverage: Coverage::new(convolution),
            groups: groups.clone(),
            group_of,
            order: (0..groups.len() as u32).collect(),
            place: (0..groups.len() as u32).collect(),
            size: vec![0; groups.len()],
            shared: vec![0; groups.len()],
            loads,
            pixels: 0,
            empty: 0,
            undo: Undo::default(),
        };
        for group in 0..groups.len() as u32 {
            state.add_group(group);
        }
        for place in 1..groups.len() {
            state.add_pair(place);
        }
        state
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

    /// Cycles of loads and steps of one pass, and the penalty of loads that are too many.
    pub fn energy(&self) -> i64 {
        // At most 2^26 pixels are loaded, for 2^32 cycles each: these products fit.
        let load = self.problem.load_cycles() as i64;
        let over = self.loads.as_ref().map_or(0, |loads| loads.over);
        self.pixels * load - self.empty * self.problem.accelerator.tacc as i64 + over * PENALTY * load.max(1)
    }

    /// Makes a change. Returns `false` and changes nothing if the change has no effect, or if a group would not fit the
    /// memory.
    pub fn apply(&mut self, change: &Change) -> bool {
        let Some(edit) = self.edit(change) else { return false };
        let (pixels, empty) = (self.pixels, self.empty);
        self.undo = Undo { edit: Some(edit), pixels, empty, ..Undo::default() };
        self.make(edit);
        let fits = match edit {
            Edit::Patches { from, to, .. } => self.fits(from) && self.fits(to),
            _ => true,
        };
        if !fits {
            self.revert();
        }
        fits
    }

    /// Takes the last change back.
    pub fn revert(&mut self) {
        let Undo { edit, pixels, empty, sizes, shared } = std::mem::take(&mut self.undo);
        let Some(edit) = edit else { return };
        match edit {
            // The counts from before hold again. Only the loads per pixel must be counted anew.
            Edit::Patches { .. } if self.loads.is_none() => {
                self.exchange(edit.inverse());
                sizes.into_iter().for_each(|(group, size)| self.size[group as usize] = size);
                shared.into_iter().for_each(|(place, shared)| self.shared[place] = shared);
                (self.pixels, self.empty) = (pixels, empty);
            }
            _ => self.make(edit.inverse()),
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
                (first < last && last - first < LONGEST_RUN).then_some(Edit::Reverse { first, last })
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

    fn make(&mut self, edit: Edit) {
        match edit {
            Edit::Patches { from, to, .. } => {
                let groups = [from, to];
                let mut pairs = groups.map(|group| self.place[group as usize] as usize).to_vec();
                pairs.extend(groups.map(|group| self.place[group as usize] as usize + 1));
                pairs.retain(|place| (1..self.order.len()).contains(place));
                pairs.sort_unstable();
                pairs.dedup();
                self.undo.sizes = groups.map(|group| (group, self.size[group as usize])).to_vec();
                self.undo.shared = pairs.iter().map(|place| (*place, self.shared[*place])).collect();
                pairs.iter().for_each(|place| self.remove_pair(*place));
                groups.into_iter().for_each(|group| self.remove_group(group));
                self.exchange(edit);
                groups.into_iter().for_each(|group| self.add_group(group));
                pairs.iter().for_each(|place| self.add_pair(*place));
            }
            Edit::Reverse { first, last } => {
                let ends = [first, last + 1];
                self.remove_pairs(&ends);
                self.order[first..=last].reverse();
                self.shared[first + 1..=last].reverse();
                self.replace(first, last);
                self.add_pairs(&ends);
            }
            Edit::Rotate { first, last, by } => {
                self.remove_pairs(&[first, first + by, last + 1]);
                self.order[first..=last].rotate_left(by);
                self.shared[first..=last].rotate_left(by);
                self.replace(first, last);
                self.add_pairs(&[first, last + 1 - by, last + 1]);
            }
        }
    }

    fn exchange(&mut self, edit: Edit) {
        let Edit::Patches { one, from, to, two } = edit else { return };
        self.transfer(one, from, to);
        if let Some(two) = two {
            self.transfer(two, to, from);
        }
    }

    fn transfer(&mut self, patch: u32, from: u32, to: u32) {
        self.groups[from as usize].retain(|member| *member != patch);
        self.empty += i64::from(self.groups[from as usize].is_empty());
        self.empty -= i64::from(self.groups[to as usize].is_empty());
        self.groups[to as usize].push(patch);
        self.group_of[patch as usize] = to;
    }

    fn replace(&mut self, first: usize, last: usize) {
        for place in first..=last {
            self.place[self.order[place] as usize] = place as u32;
        }
    }

    fn fits(&self, group: u32) -> bool {
        let group = group as usize;
        // Sizes are counts.
        self.problem.fits(self.size[group] as usize, self.groups[group].len())
    }

    fn remove_pairs(&mut self, places: &[usize]) {
        let inner = 1..self.order.len();
        places.iter().filter(|place| inner.contains(place)).for_each(|place| self.remove_pair(*place));
    }

    fn add_pairs(&mut self, places: &[usize]) {
        let inner = 1..self.order.len();
        places.iter().filter(|place| inner.contains(place)).for_each(|place| self.add_pair(*place));
    }

    fn remove_group(&mut self, group: u32) {
        self.pixels -= self.size[group as usize];
        if let Some(loads) = &mut self.loads {
            self.coverage.fresh(&[], &self.groups[group as usize], |pixel| loads.change(pixel, -1));
        }
    }

    fn add_group(&mut self, group: u32) {
        let members = &self.groups[group as usize];
        let size = match &mut self.loads {
            Some(loads) => self.coverage.fresh(&[], members, |pixel| loads.change(pixel, 1)),
            None => self.coverage.size(members),
        };
        self.size[group as usize] = size as i64;
        self.pixels += size as i64;
    }

    fn remove_pair(&mut self, place: usize) {
        self.pixels += self.shared[place];
        if let Some(loads) = &mut self.loads {
            let [one, two] = [place - 1, place].map(|place| &self.groups[self.order[place] as usize]);
            self.coverage.shared(one, two, |pixel| loads.change(pixel, 1));
        }
    }

    fn add_pair(&mut self, place: usize) {
        let [one, two] = [place - 1, place].map(|place| &self.groups[self.order[place] as usize]);
        let shared = match &mut self.loads {
            Some(loads) => self.coverage.shared(one, two, |pixel| loads.change(pixel, -1)),
            None => self.coverage.shared(one, two, |_| ()),
        };
        self.shared[place] = shared as i64;
        self.pixels -= shared as i64;
    }
}

impl Edit {
    /// What takes an edit back.
    fn inverse(self) -> Self {
        match self {
            Edit::Patches { one, from, to, two } => Edit::Patches { one, from: to, to: from, two },
            Edit::Rotate { first, last, by } => Edit::Rotate { first, last, by: last + 1 - first - by },
            other => other,
        }
    }
}
