//! Proved optima of small layers: shortest paths over sets of done patches.
//!
//! A state is a set D of patches that are done, with the pixels M that the last step left in memory and that an undone
//! patch needs. If the next group does not cover a pixel of M, the pixel must be loaded again later. This load is paid
//! when the pixel is dropped. So a state has a lower bound: the cost paid so far, one load of every pixel, and the
//! fewest steps still to come. No strategy through the state costs less. States are taken in the order of this bound.
//! The first state with all patches done is an optimum over all numbers of steps. A search that is cut short still
//! proves a bound. If a reflection of the grid turns two states into each other, they count as one.

mod grid;
mod states;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use self::grid::Reflection;
use self::states::{States, hash};
use super::problem::Problem;
use super::stop::is_asked;
use super::strategy::Groups;

pub use self::grid::{Grid, MAX_PATCHES};

/// Maximum number of bits in which drops of a pixel are counted.
const COUNTERS: usize = 2;

/// Groups tried between two looks at the clock.
const PER_LOOK: u64 = 1024;

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactAnswer {
    /// Groups of less duration than the one to beat, if there are any within the limit.
    pub groups: Option<Groups>,
    /// No strategy has a smaller duration.
    pub bound: u64,
    /// Groups that were tried.
    pub work: u64,
}

/// Limits of a search.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'s> {
    /// Maximum number of groups tried.
    pub work: u64,
    /// Maximum number of states kept.
    pub states: usize,
    /// When to stop at the latest.
    pub deadline: Option<Instant>,
    /// Once this is true, the search ends.
    pub stop: Option<&'s AtomicBool>,
}

/// Searches for groups of a duration below `to_beat`. `None` if the method does not apply: for more than
/// [`MAX_PATCHES`] patches, more classes of pixels than fit its sets, or filters that are loaded in passes.
///
/// If the search ends within its limits and finds nothing, `bound` is `to_beat`.
pub fn search(problem: &Problem, to_beat: u64, limits: Limits<'_>) -> Option<ExactAnswer> {
    let grid = Grid::new(problem)?;
    // Without the bound on loads there are fewer states, and the result mostly keeps the bound anyway.
    let free = Search::<0>::new(problem, &grid, None, limits).run(to_beat);
    let Some(reload) = problem.reload else { return Some(free) };
    let kept = free.groups.as_ref().is_none_or(|groups| problem.admits(&problem.cost(groups)));
    if kept {
        return Some(free);
    }
    if reload as usize > 1 << COUNTERS {
        return Some(ExactAnswer { groups: None, ..free });
    }
    let limits = Limits { work: limits.work.saturating_sub(free.work), ..limits };
    let bounded = Search::<COUNTERS>::new(problem, &grid, Some(reload - 1), limits).run(to_beat);
    Some(ExactAnswer { bound: bounded.bound.max(free.bound), work: bounded.work + free.work, ..bounded })
}

/// A state on the way to an optimum. `drops` counts in binary how often each pixel was dropped that is still needed;
/// it has no digits where loads are not bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct State<const N: usize> {
    done: u64,
    held: u128,
    drops: [u128; N],
}

/// A state that was reached, reflected so that it is the least of its images.
#[derive(Debug, Clone, Copy)]
struct Reached<const N: usize> {
    state: State<N>,
    /// The group that led here, in the frame of the state that it was computed in.
    group: u64,
    parent: u32,
    /// The reflection that led from the parent's frame to this one's.
    reflection: u8,
    /// Cycles that every strategy through this state takes at least.
    cost: u64,
}

struct Search<'a, const N: usize> {
    problem: &'a Problem,
    grid: &'a Grid,
    most_drops: Option<u32>,
    reached: Vec<Reached<N>>,
    states: States,
    heap: BinaryHeap<(Reverse<u64>, u32, Reverse<u32>)>,
    limits: Limits<'a>,
    work: u64,
    /// Whether a limit has ended the search.
    is_cut: bool,
}

/// The data of one expansion, against which groups are tried.
struct Expansion<const N: usize> {
    from: Reached<N>,
    parent: u32,
    /// Patches not yet done.
    open: Vec<u32>,
    /// For each place in `open`, the pixels that the patches from there on cover.
    rest: Vec<u128>,
    /// Costs from here on are of no use.
    to_beat: u64,
}

impl<'a, const N: usize> Search<'a, N> {
    fn new(problem: &'a Problem, grid: &'a Grid, most_drops: Option<u32>, limits: Limits<'a>) -> Self {
        Search {
            problem,
            grid,
            most_drops,
            reached: Vec::new(),
            states: States::default(),
            heap: BinaryHeap::new(),
            limits,
            work: 0,
            is_cut: false,
        }
    }

    fn run(mut self, to_beat: u64) -> ExactAnswer {
        let state = State { done: 0, held: 0, drops: [0; N] };
        let cost = self.problem.duration(self.grid.covered(), self.problem.fewest_groups() as u64);
        self.reached.push(Reached { state, group: 0, parent: 0, reflection: 0, cost });
        if cost < to_beat {
            self.heap.push((Reverse(cost), 0, Reverse(0)));
        }
        while let Some((Reverse(cost), done, Reverse(index))) = self.heap.pop() {
            if done as usize == self.grid.patches() {
                return ExactAnswer { groups: Some(self.groups(index)), bound: cost, work: self.work };
            }
            let from = self.reached[index as usize];
            if index > 0 && self.find(&from.state) != Some(index) {
                continue;
            }
            self.expand(from, index, to_beat);
            // The groups that the expansion has not tried cost no less than the state that it began with.
            if self.is_cut {
                return ExactAnswer { groups: None, bound: cost, work: self.work };
            }
        }
        ExactAnswer { groups: None, bound: to_beat, work: self.work }
    }

    fn expand(&mut self, from: Reached<N>, parent: u32, to_beat: u64) {
        let open: Vec<u32> =
            (0..self.grid.patches() as u32).filter(|patch| from.state.done >> patch & 1 == 0).collect();
        let mut rest = vec![0; open.len() + 1];
        for (place, patch) in open.iter().enumerate().rev() {
            rest[place] = rest[place + 1] | self.grid.cover(*patch);
        }
        let expansion = Expansion { from, parent, open, rest, to_beat };
        self.extend(&expansion, 0, 0, 0, 0);
    }

    /// Tries this group and every one that extends it by patches from `place` on.
    fn extend(&mut self, at: &Expansion<N>, place: usize, group: u64, covered: u128, size: usize) {
        self.work += 1;
        self.is_cut |= self.is_over();
        if self.is_cut {
            return;
        }
        let surely_dropped = at.from.state.held & !(covered | at.rest[place]);
        if at.from.cost + self.grid.weight(surely_dropped) * self.problem.load_cycles() >= at.to_beat {
            return;
        }
        if size > 0 {
            self.reach(at, group, covered);
        }
        if size == self.problem.group {
            return;
        }
        for next in place..at.open.len() {
            let patch = at.open[next];
            let (group, covered) = (group | 1 << patch, covered | self.grid.cover(patch));
            if self.grid.always_fits || self.problem.fits(self.grid.pixels(group, covered), size + 1) {
                self.extend(at, next + 1, group, covered, size + 1);
            }
            if self.is_cut {
                return;
            }
        }
    }

    fn is_over(&self) -> bool {
        let late = || {
            is_asked(self.limits.stop)
                || self.limits.deadline.is_some_and(|deadline| Instant::now() >= deadline)
        };
        self.work >= self.limits.work
            || self.reached.len() >= self.limits.states
            || self.work.is_multiple_of(PER_LOOK) && late()
    }

    fn reach(&mut self, at: &Expansion<N>, group: u64, covered: u128) {
        let done = at.from.state.done | group;
        let dropped = at.from.state.held & !covered;
        // A group that is not full may cost a step more than the fewest.
        let steps = |done: u64| {
            (self.grid.patches() - done.count_ones() as usize).div_ceil(self.problem.group) as u64
        };
        let more_steps = 1 + steps(done) - steps(at.from.state.done);
        let loads = self.grid.weight(dropped) * self.problem.load_cycles();
        let cost = at.from.cost + loads + more_steps * self.problem.accelerator.tacc;
        if cost >= at.to_beat {
            return;
        }
        let held = self.grid.needed(covered, done);
        let Some(drops) = self.count(&at.from.state.drops, dropped, done) else { return };
        let (state, reflection) = self.least_image(&State { done, held, drops });
        if self.find(&state).is_some_and(|found| self.reached[found as usize].cost <= cost) {
            return;
        }
        // The limit on states is far below 2^32.
        let index = self.reached.len() as u32;
        self.reached.push(Reached { state, group, parent: at.parent, reflection, cost });
        let reached = &self.reached;
        self.states.insert(hash_of(&state), index, |other| reached[other as usize].state == state);
        self.heap.push((Reverse(cost), done.count_ones(), Reverse(index)));
    }

    /// Counts drops of pixels. `None` if a pixel is dropped too often.
    fn count(&self, drops: &[u128; N], dropped: u128, done: u64) -> Option<[u128; N]> {
        let Some(most) = self.most_drops else { return Some([0; N]) };
        let at_most = drops.iter().enumerate().fold(u128::MAX, |all, (digit, plane)| {
            if most >> digit & 1 == 1 { all & plane } else { all & !plane }
        });
        if dropped & at_most != 0 {
            return None;
        }
        let mut carry = dropped;
        let mut counted = *drops;
        for plane in &mut counted {
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
        Some(counted.map(|plane| self.grid.needed(plane, done)))
    }

    fn find(&self, state: &State<N>) -> Option<u32> {
        self.states.find(hash_of(state), |index| self.reached[index as usize].state == *state)
    }

    fn least_image(&self, state: &State<N>) -> (State<N>, u8) {
        let image = |(number, reflection): (usize, &Reflection)| {
            let drops = state.drops.map(|plane| reflection.classes(plane));
            let held = reflection.classes(state.held);
            (State { done: reflection.done(state.done), held, drops }, number as u8)
        };
        self.grid.reflections().iter().enumerate().map(image).min().unwrap_or((*state, 0))
    }

    /// The groups that led to a state, each in the frame of the layer.
    fn groups(&self, mut index: u32) -> Groups {
        let mut path = Vec::new();
        while index > 0 {
            path.push(self.reached[index as usize]);
            index = self.reached[index as usize].parent;
        }
        // Where each patch of the frame lies in the layer.
        let mut places: Vec<u32> = (0..self.grid.patches() as u32).collect();
        let mut groups = Groups::new();
        for Reached { group, reflection, .. } in path.into_iter().rev() {
            let members = (0..places.len()).filter(|patch| group >> patch & 1 == 1);
            let mut members: Vec<u32> = members.map(|patch| places[patch]).collect();
            members.sort_unstable();
            groups.push(members);
            let before = places.clone();
            for (from, to) in self.grid.reflections()[reflection as usize].patches.iter().enumerate() {
                places[*to as usize] = before[from];
            }
        }
        groups
    }
}

fn hash_of<const N: usize>(state: &State<N>) -> u64 {
    let halves = |set: u128| [set as u64, (set >> 64) as u64];
    hash([state.done].into_iter().chain(halves(state.held)).chain(state.drops.into_iter().flat_map(halves)))
}
