//! The complete search by rising offset: is there a packing below a given height?
//!
//! Blocks are placed by rising offset, each as low as the blocks below it allow. That loses nothing: among the packings
//! of one height, a packing with the least sum of offsets is of this kind (a canonical packing of MiniMalloc, Moffitt,
//! ASPLOS 2023). At each step the search takes the block that can start lowest, and starts it there. If that is
//! refuted, the block is *put off*: it will rest on a block that is still to come, which gives a lower bound on its
//! start. A branch ends
//!
//! - where a clique no longer fits: the lowest start of its blocks that are still to come, plus all their bytes, is too
//!   high;
//! - where a block that is still to come would fit wholly below the present one;
//! - where the same blocks with the same room have failed before.
//!
//! If the blocks that are still to come fall into parts that do not conflict, each part is searched by itself.
//!
//! If a block is in use only in part, it may lie above the used part of another block and yet start lower. Then the
//! search orders blocks not by their starts but by a point in each ([`Subproblem::rise`]). The points are chosen such
//! that the higher block has the higher point.

use super::budget::Meter;
use super::graph::{self, BitSet};
use super::problem::{Link, Member};
use super::subproblem::Subproblem;

/// What a search found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// A packing: one offset per block.
    Packed(Vec<u64>),
    /// There is none.
    Impossible,
    /// The steps were used up.
    Unknown,
}

/// How to measure which clique is the tightest. Of the blocks that can start lowest, the one in the tightest clique is
/// decided first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tightest {
    /// The clique that may waste the fewest bytes.
    Slack,
    /// The clique with the fewest blocks that can come next.
    Candidates,
}

/// Looks for a packing of at most `capacity` bytes in at most `steps` steps. It tries blocks in this order if nothing
/// else decides.
pub(super) fn search(
    part: &Subproblem,
    neighbours: &[BitSet],
    order: &[usize],
    tightest: Tightest,
    capacity: u64,
    steps: u64,
    budget: &mut Meter,
) -> Answer {
    let count = part.blocks.len();
    let mut rank = vec![0; count];
    for (at, block) in order.iter().enumerate() {
        rank[*block] = at;
    }
    let mut cliques_of = vec![Vec::new(); count];
    for (c, clique) in part.cliques.iter().enumerate() {
        for member in clique {
            cliques_of[member.block].push((c, member.high - member.low));
        }
    }
    let lowest: Vec<u64> =
        part.blocks.iter().zip(&part.rise).map(|(block, rise)| block.offset.unwrap_or(0) + rise).collect();
    let rest: Vec<u64> =
        part.cliques.iter().map(|clique| clique.iter().map(|m| m.high - m.low).sum()).collect();
    let fits = |i: usize| lowest[i] - part.rise[i] + part.blocks[i].bytes <= capacity;
    if !(0..count).all(fits) || rest.iter().any(|rest| *rest > capacity) {
        return Answer::Impossible;
    }
    let mut state = OffsetSearch {
        part,
        neighbours,
        capacity,
        twins: Symmetries::new(part, neighbours, &rank),
        rank,
        cliques_of,
        least: lowest.clone(),
        lowest,
        offsets: vec![0; count],
        placed: vec![false; count],
        put_off: vec![false; count],
        rest,
        mark: vec![0; part.cliques.len()],
        marks: 0,
        tightest,
        looseness: vec![0; part.cliques.len()],
        reach: (0..count).map(|i| part.reach(i)).collect(),
        failures: Failures::default(),
        steps,
        budget,
    };
    let mut all = BitSet::new(count);
    (0..count).for_each(|i| all.insert(i));
    match state.place_all(&all) {
        Verdict::Found => {
            Answer::Packed(state.offsets.iter().zip(&part.rise).map(|(at, rise)| at - rise).collect())
        }
        Verdict::Refuted => Answer::Impossible,
        Verdict::Cut => Answer::Unknown,
    }
}

/// Blocks that conflict with the same blocks, each other included, so that they can be swapped.
struct Symmetries {
    /// By block: the class that it is in.
    class: Vec<usize>,
    /// By block: a twin of the same size that may be required to lie below it.
    below: Vec<Option<usize>>,
}

impl Symmetries {
    fn new(part: &Subproblem, neighbours: &[BitSet], rank: &[usize]) -> Self {
        let count = part.blocks.len();
        let mut twins = Symmetries { class: (0..count).collect(), below: vec![None; count] };
        if !part.easy {
            return twins;
        }
        let closed = |i: usize| {
            let mut set = neighbours[i].clone();
            set.insert(i);
            set
        };
        let closed: Vec<BitSet> = (0..count).map(closed).collect();
        for i in 0..count {
            let same = || part.links[i].iter().map(|link| link.other).filter(|j| closed[i] == closed[*j]);
            twins.class[i] = same().min().unwrap_or(i).min(i);
            let before =
                same().filter(|j| part.blocks[i].bytes == part.blocks[*j].bytes && rank[*j] < rank[i]);
            twins.below[i] = before.max_by_key(|j| rank[*j]);
        }
        twins
    }
}

enum Verdict {
    Found,
    Refuted,
    Cut,
}

struct OffsetSearch<'a> {
    part: &'a Subproblem,
    neighbours: &'a [BitSet],
    capacity: u64,
    rank: Vec<usize>,
    twins: Symmetries,
    /// By block: the cliques that it is in, and its bytes there.
    cliques_of: Vec<Vec<(usize, u64)>>,
    /// By block: the lowest offset above what is placed. Offsets here are those of points ([`Subproblem::rise`]).
    lowest: Vec<u64>,
    /// By block: an offset below which it will not lie, as [`OffsetSearch::propagate`] found it last.
    least: Vec<u64>,
    /// By block that is placed: its offset.
    offsets: Vec<u64>,
    /// By block: how far above it any other block has room.
    reach: Vec<u64>,
    placed: Vec<bool>,
    /// By block that is to come: whether it will not lie at its lowest offset.
    put_off: Vec<bool>,
    /// By clique: bytes of its blocks that are to come.
    rest: Vec<u64>,
    /// By clique: when it was looked at last.
    mark: Vec<u64>,
    marks: u64,
    tightest: Tightest,
    /// By clique: the measure of [`Tightest`], as [`OffsetSearch::propagate`] found it last.
    looseness: Vec<u64>,
    failures: Failures,
    steps: u64,
    budget: &'a mut Meter,
}

/// Rounds in which a raised start is passed on to the blocks that would rest on it.
const ROUNDS: usize = 3;

impl OffsetSearch<'_> {
    fn spend(&mut self, steps: usize) {
        let steps = steps as u64;
        self.steps = self.steps.saturating_sub(steps);
        self.budget.spend(steps);
    }

    /// Places the blocks that are to come, each independent part by itself.
    fn place_all(&mut self, open: &BitSet) -> Verdict {
        let mut parts = graph::components(open, self.neighbours, false);
        // Small parts fail soonest.
        parts.sort_by_key(Vec::len);
        for part in parts {
            self.spend(part.len());
            match self.place(&part) {
                Verdict::Found => {}
                verdict => return verdict,
            }
        }
        Verdict::Found
    }

    /// Places the blocks of a connected part.
    fn place(&mut self, blocks: &[usize]) -> Verdict {
        if let [block] = *blocks {
            self.offsets[block] = self.lowest[block];
            return if self.put_off[block] { Verdict::Refuted } else { Verdict::Found };
        }
        let key = self.key(blocks);
        if self.failures.contains(&key) {
            return Verdict::Refuted;
        }
        let mut open = BitSet::new(self.part.blocks.len());
        blocks.iter().for_each(|i| open.insert(*i));
        // If a block would fit below another one, it need not lie above it.
        let below = blocks.iter().map(|i| self.lowest[*i] + self.reach[*i]).min().unwrap_or(0);
        let mut put_off = Vec::new();
        let verdict = loop {
            if self.steps == 0 || self.budget.exhausted() {
                break Verdict::Cut;
            }
            let next = self.propagate(blocks).then(|| self.next(blocks)).flatten();
            let Some(block) = next.filter(|block| self.lowest[*block] < below) else {
                break Verdict::Refuted;
            };
            let mut trail = Vec::new();
            let verdict = if self.put(block, &mut trail) {
                open.remove(block);
                let verdict = self.place_all(&open);
                open.insert(block);
                verdict
            } else {
                Verdict::Refuted
            };
            self.take_back(block, trail);
            if !matches!(verdict, Verdict::Refuted) {
                break verdict;
            }
            self.put_off[block] = true;
            put_off.push(block);
        };
        for block in put_off {
            self.put_off[block] = false;
        }
        if matches!(verdict, Verdict::Refuted) {
            self.failures.insert(key);
        }
        verdict
    }

    /// Finds how low each of these blocks can lie, and says whether all cliques may still fit.
    fn propagate(&mut self, blocks: &[usize]) -> bool {
        let part = self.part;
        let mut looked = 0;
        for &i in blocks {
            self.least[i] = self.lowest[i];
        }
        for _ in 0..ROUNDS {
            let mut changed = false;
            for &i in blocks {
                // Twins can be swapped, so one need only be tried above the other. A block that was put off rests on a
                // block that is to come: at best on the one whose top is lowest.
                let support = if let Some(twin) = self.twins.below[i].filter(|twin| !self.placed[*twin]) {
                    self.least[twin] + part.blocks[twin].bytes
                } else if self.put_off[i] {
                    looked += part.links[i].len();
                    let open = part.links[i].iter().filter(|link| !self.placed[link.other]);
                    let on = |link: &Link| {
                        self.least[link.other].saturating_add_signed(part.distance_below(i, link))
                    };
                    open.map(on).min().unwrap_or(u64::MAX)
                } else {
                    continue;
                };
                let fixed_below = part.blocks[i].offset.is_some_and(|fixed| fixed < support);
                if support > self.capacity - part.blocks[i].bytes + part.rise[i] || fixed_below {
                    self.spend(looked);
                    return false;
                }
                if support > self.least[i] {
                    self.least[i] = part.aligned(i, support);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        self.marks += 1;
        let mut fits = true;
        'cliques: for &i in blocks {
            for &(c, _) in &self.cliques_of[i] {
                if self.mark[c] == self.marks {
                    continue;
                }
                self.mark[c] = self.marks;
                let clique = &part.cliques[c];
                looked += clique.len();
                // The blocks of a clique that are to come lie one above the other, from the lowest of their starts on.
                let open = || clique.iter().filter(|m| !self.placed[m.block]);
                let start_of = |m: &Member| self.least[m.block] - part.rise[m.block] + m.low;
                let start = open().map(start_of).min().unwrap_or(0);
                let Some(slack) = (self.capacity - self.rest[c]).checked_sub(start) else {
                    fits = false;
                    break 'cliques;
                };
                self.looseness[c] = match self.tightest {
                    Tightest::Slack => slack,
                    Tightest::Candidates => open().filter(|m| start_of(m) <= start + slack).count() as u64,
                };
            }
        }
        self.spend(looked + blocks.len());
        fits
    }

    /// The block to decide next. Of the blocks that can start lowest, it is the one in the tightest clique.
    fn next(&self, blocks: &[usize]) -> Option<usize> {
        let free =
            |i: &&usize| !self.put_off[**i] && self.twins.below[**i].is_none_or(|twin| self.placed[twin]);
        let looseness = |i: usize| self.cliques_of[i].iter().map(|(c, _)| self.looseness[*c]).min();
        let lowest = blocks.iter().filter(free).map(|i| self.lowest[*i]).min()?;
        let first = blocks.iter().filter(free).filter(|i| self.lowest[**i] == lowest);
        first.copied().min_by_key(|i| (looseness(*i), self.rank[*i]))
    }

    /// Places a block at its lowest offset and says whether each of its neighbours may still fit.
    fn put(&mut self, block: usize, trail: &mut Trail) -> bool {
        let part = self.part;
        let at = self.lowest[block];
        self.placed[block] = true;
        self.offsets[block] = at;
        for &(c, height) in &self.cliques_of[block] {
            self.rest[c] -= height;
        }
        self.spend(part.links[block].len() + self.cliques_of[block].len());
        for link in part.links[block].iter().filter(|link| !self.placed[link.other]) {
            let other = link.other;
            let above = part.aligned(other, at.saturating_add_signed(part.distance_above(block, link)));
            if above > self.lowest[other] {
                trail.push((other, self.lowest[other], self.put_off[other]));
                self.lowest[other] = above;
                // If twins lie on each other, the first in rank lies below.
                self.put_off[other] =
                    self.twins.class[block] == self.twins.class[other] && self.rank[other] < self.rank[block];
                let fixed_below = part.blocks[other].offset.is_some_and(|fixed| fixed < above);
                if fixed_below || above - part.rise[other] + part.blocks[other].bytes > self.capacity {
                    return false;
                }
            }
        }
        true
    }

    fn take_back(&mut self, block: usize, trail: Trail) {
        self.placed[block] = false;
        for (other, lowest, put_off) in trail {
            self.lowest[other] = lowest;
            self.put_off[other] = put_off;
        }
        for &(c, height) in &self.cliques_of[block] {
            self.rest[c] += height;
        }
    }

    /// All that the search of a part depends on.
    fn key(&self, blocks: &[usize]) -> Box<[u64]> {
        let state = |i: usize| [(i as u64) << 1 | u64::from(self.put_off[i]), self.lowest[i]];
        blocks.iter().flat_map(|i| state(*i)).collect()
    }
}

/// What the placement of a block has changed: blocks, the lowest offsets that they had before, and whether they were
/// put off.
type Trail = Vec<(usize, u64, bool)>;

/// States in which nothing was found, the last few thousand of them.
#[derive(Default)]
struct Failures {
    slots: Vec<Option<Box<[u64]>>>,
}

/// Slots for states, a power of two.
const SLOTS: usize = 1 << 15;

impl Failures {
    fn slot(key: &[u64]) -> usize {
        let mix = |hash: u64, word: &u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        (key.iter().fold(0, mix) >> 17) as usize % SLOTS
    }

    fn contains(&self, key: &[u64]) -> bool {
        self.slots.get(Self::slot(key)).is_some_and(|slot| slot.as_deref() == Some(key))
    }

    fn insert(&mut self, key: Box<[u64]>) {
        if self.slots.is_empty() {
            self.slots = vec![None; SLOTS];
        }
        let slot = Self::slot(&key);
        // What was there is forgotten. That costs time at most, since whole states are compared and not their hashes.
        self.slots[slot] = Some(key);
    }
}
