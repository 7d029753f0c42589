//! Finds packings with next to no waste. The search knows how many bytes each section of the line of time may leave
//! unused.
//!
//! Blocks are piled up from address 0. A *valley* is a run of sections at one level between higher ones:
//!
//! ```text
//!    |    |            |
//!    |    +--+      +--+     the walls
//!    |       |      |        a block on the floor of the valley lies between the walls,
//!    +-------+------+        and together the blocks there cover it from end to end
//! ```
//!
//! Only sections that can afford to waste some bytes may stay uncovered. The section that the fewest blocks can cover
//! is decided first; sections at which the search failed before count for more. Of its blocks, wide blocks and blocks
//! that come level with a wall of the valley are tried first. A section that no block covers is raised to the lower of
//! its walls. A branch ends
//!
//! - where no block can cover the floor of a section that may waste nothing (a block lies above everything below it,
//!   and no lower than its sections can be level with each other: `partial`);
//! - where a branch with the same blocks still to come, and the same waste, has failed.
//!
//! Sections between which no block is still to come are searched one after the other. Success or failure mostly depends
//! on the first few blocks. So the search starts anew after ever longer times, with other blocks first. Most of these
//! searches first *join* blocks that are unlikely to be level with each other by accident (`joins`).
//!
//! The ideas of a partial packing, sections and their slack are those of MiniMalloc (Moffitt, ASPLOS 2023); restarts follow Luby, Sinclair
//! and Zuckerman (1993), the weights of sections `dom/wdeg` (Boussemart et al., ECAI 2004).

pub(super) mod joins;
mod partial;
mod placements;
mod table;

use self::joins::Piece;
use self::partial::PartialPacking;
use self::placements::Placements;
use self::table::{Table, mix};
use super::budget::Meter;
use super::line::TimeLine;

/// The outcome of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// A packing: one offset per block.
    Packed(Vec<u64>),
    /// Nothing was left to try. This proves nothing, since states are known by their hashes only.
    Exhausted,
    /// The steps were used up.
    Cut,
}

/// Steps of a search until the next is begun, in the unit of Luby's sequence.
const STEPS_OF_A_SEARCH: u64 = 60_000;

/// One of this many consecutive searches joins nothing.
const SEARCHES_A_ROUND: u64 = 4;

/// Searches for a packing of one height, which can be continued.
pub(super) struct Skyline {
    line: TimeLine,
    height: u64,
    /// The search with nothing joined.
    plain: PileSearch,
    searches: u64,
}

impl Skyline {
    /// Searches for packings of at most `height` bytes, which is at least every section's load.
    pub fn new(line: &TimeLine, height: u64) -> Self {
        let weight = vec![1.0; line.loads.len()];
        let plain = PileSearch::new(joins::singletons(line), line, height, weight);
        Skyline { line: line.clone(), height, plain, searches: 0 }
    }

    /// Goes on searching for this many steps.
    pub fn search(&mut self, steps: u64, budget: &mut Meter) -> Attempt {
        let mut rest = steps;
        while rest > 0 && !budget.exhausted() {
            let (round, turn) = (self.searches / SEARCHES_A_ROUND + 1, self.searches % SEARCHES_A_ROUND);
            self.searches += 1;
            let allowed = rest.min(STEPS_OF_A_SEARCH.saturating_mul(luby(round)));
            let (mut joined, mut used) = (None, 1);
            if turn > 0 {
                let (pieces, looked) = joins::join(&self.line, self.searches);
                used += looked;
                if pieces.len() < self.line.sizes.len() {
                    let weight = std::mem::take(&mut self.plain.weight);
                    joined = Some(PileSearch::new(pieces, &self.line, self.height, weight));
                }
            }
            let state = joined.as_mut().unwrap_or(&mut self.plain);
            let verdict = state.search(allowed, self.searches);
            used += allowed - state.partial.left;
            rest = rest.saturating_sub(used);
            budget.spend(used);
            match verdict {
                Verdict::Found => return Attempt::Packed(state.offsets()),
                Verdict::Refuted if joined.is_none() => return Attempt::Exhausted,
                Verdict::Refuted | Verdict::Cut => {}
            }
            if let Some(joined) = joined {
                self.plain.weight = joined.weight;
            }
        }
        Attempt::Cut
    }
}

/// Luby's sequence, from 1: 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 …
fn luby(mut i: u64) -> u64 {
    loop {
        let power = (i + 1).next_power_of_two();
        if power == i + 1 {
            return power / 2;
        }
        i -= power / 2 - 1;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Found,
    Refuted,
    Cut,
}

struct PileSearch {
    /// By place in the order of the search.
    pieces: Vec<Piece>,
    partial: PartialPacking,
    /// By section: how often the search failed there.
    weight: Vec<f64>,
    /// By piece: how much this search prefers it, below 1.
    taste: Vec<f64>,
    /// Branches that failed, each by the pieces that were not yet placed and the bytes that could still be wasted.
    failures: Table,
    placements: Placements,
}

impl PileSearch {
    fn new(mut pieces: Vec<Piece>, line: &TimeLine, height: u64, weight: Vec<f64>) -> Self {
        pieces.sort_by_key(|piece| (piece.span, piece.size));
        PileSearch {
            weight,
            taste: vec![0.0; pieces.len()],
            partial: PartialPacking::new(&pieces, &line.loads, height),
            failures: Table::default(),
            placements: Placements::default(),
            pieces,
        }
    }

    /// Searches from an empty packing for so many steps.
    fn search(&mut self, steps: u64, seed: u64) -> Verdict {
        self.partial.left = steps;
        for (i, taste) in (0..).zip(&mut self.taste) {
            *taste = (mix(seed << 32 | i) % 1024) as f64 / 1024.0;
        }
        let all: Vec<usize> = (0..self.pieces.len()).collect();
        let verdict = self.place_all(&all);
        if verdict == Verdict::Cut {
            self.partial.take_back(0);
        }
        verdict
    }

    /// By block: where it lies.
    fn offsets(&self) -> Vec<u64> {
        let count = self.pieces.iter().map(|piece| piece.blocks.len()).sum();
        let mut offsets = vec![0; count];
        for (piece, at) in self.pieces.iter().zip(&self.partial.offsets) {
            for (block, above) in &piece.blocks {
                offsets[*block] = at + above;
            }
        }
        offsets
    }

    /// Places these blocks, given ascending. Blocks of separate sections are placed by themselves.
    fn place_all(&mut self, blocks: &[usize]) -> Verdict {
        let mut parts = Vec::new();
        let (mut first, mut end) = (0, 0);
        for (at, i) in blocks.iter().enumerate() {
            if self.partial.items[*i].from >= end && at > first {
                parts.push(first..at);
                first = at;
            }
            end = end.max(self.partial.items[*i].to);
        }
        parts.push(first..blocks.len());
        // Small parts fail soonest.
        parts.sort_by_key(|part| (part.len(), part.start));
        let mark = self.partial.mark();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let verdict = self.place(&blocks[part]);
            if verdict != Verdict::Found {
                self.partial.take_back(mark);
                return verdict;
            }
        }
        Verdict::Found
    }

    fn place(&mut self, blocks: &[usize]) -> Verdict {
        let from = self.partial.items[blocks[0]].from;
        let to = blocks.iter().map(|i| self.partial.items[*i].to).max().unwrap_or(from);
        let key = self.key(blocks, from, to);
        if self.failures.get(key).is_some() {
            return Verdict::Refuted;
        }
        let mark = self.partial.mark();
        let verdict = loop {
            if self.partial.left == 0 {
                break Verdict::Cut;
            }
            let Some(section) = self.tightest(blocks, from, to) else { break Verdict::Refuted };
            let mut verdict = Verdict::Refuted;
            for next in self.candidates(section) {
                let before = self.partial.mark();
                self.partial.put(next);
                let rest: Vec<usize> = blocks.iter().copied().filter(|i| *i != next).collect();
                verdict = self.place_all(&rest);
                if verdict != Verdict::Refuted {
                    break;
                }
                self.partial.take_back(before);
            }
            if verdict != Verdict::Refuted || self.partial.spare[section] == 0 {
                break verdict;
            }
            self.partial.leave_bare(section);
        };
        if verdict == Verdict::Refuted {
            self.partial.take_back(mark);
            self.failures.insert(key, 0);
        }
        verdict
    }

    /// All that the search of these blocks depends on, as a hash.
    fn key(&self, blocks: &[usize], from: usize, to: usize) -> u64 {
        let key = blocks.iter().fold(0, |key: u64, i| key.wrapping_add(mix(self.partial.twin[*i] as u64)));
        let spare = (from..to).filter(|s| self.partial.spare[*s] > 0 || self.partial.bare[*s]);
        spare.fold(key, |key, s| {
            mix(key ^ mix((s as u64) << 1 | u64::from(self.partial.bare[s])) ^ self.partial.spare[s])
        })
    }

    /// The section to decide next, and which blocks can lie where. `None` if some section cannot be covered.
    fn tightest(&mut self, blocks: &[usize], from: usize, to: usize) -> Option<usize> {
        loop {
            self.partial.spend(2 * blocks.len());
            if !self.partial.raise(from, to) {
                return None;
            }
            if let Some(section) = self.placements.find(&mut self.partial, blocks, from, to) {
                self.weight[section] += 1.0;
                return None;
            }
            let mut changed = false;
            let mut best: Option<(f64, usize)> = None;
            for section in from..to {
                let at = section - from;
                if self.placements.valley[at] == (0, 0) || self.partial.bare[section] {
                    continue;
                }
                let count = self.placements.count[at];
                if count == 0 && self.partial.spare[section] == 0 {
                    self.weight[section] += 1.0;
                    return None;
                }
                if count == 0 {
                    self.partial.leave_bare(section);
                    changed = true;
                    continue;
                }
                let placements = count + u64::from(self.partial.spare[section] > 0);
                let looseness =
                    if placements == 1 { 0.0 } else { placements as f64 / self.weight[section].sqrt() };
                if best.is_none_or(|(least, _)| looseness < least) {
                    best = Some((looseness, section));
                }
            }
            if !changed {
                return best.map(|(_, section)| section);
            }
        }
    }

    /// The blocks that can cover the skyline of this section, the best first. These are wide blocks, which are hard to
    /// place later, and blocks that come level with a wall. A block is less good if it ends between two sections at one
    /// level and other blocks have to lie across that end.
    fn candidates(&self, section: usize) -> Vec<usize> {
        let skyline = self.partial.skyline[section];
        let end_of = |edge: usize, beyond: Option<usize>, size: u64| {
            let beyond =
                beyond.and_then(|s| self.partial.skyline.get(s)).filter(|_| self.partial.crossing[edge] > 0);
            match beyond {
                Some(level) if *level == skyline => -LIKING_OF_LEVEL,
                Some(level) if *level == skyline + size => LIKING_OF_LEVEL,
                _ => 0.0,
            }
        };
        let liking = |i: &usize| {
            let item = self.partial.items[*i];
            let ends = end_of(item.from, item.from.checked_sub(1), item.size)
                + end_of(item.to, Some(item.to), item.size);
            (item.to - item.from) as f64 + ends + self.taste[*i]
        };
        let here =
            |i: &&usize| self.partial.items[**i].from <= section && section < self.partial.items[**i].to;
        let mut candidates: Vec<(usize, f64)> =
            self.placements.blocks.iter().filter(here).map(|i| (*i, liking(i))).collect();
        candidates.sort_by(|(i, a), (j, b)| b.total_cmp(a).then(i.cmp(j)));
        candidates.into_iter().map(|(i, _)| i).collect()
    }
}

/// What it is worth to come level with a wall, in sections of width.
const LIKING_OF_LEVEL: f64 = 2.0;
