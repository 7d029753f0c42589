//! The complete search for regions of blocks.
//!
//! It gives one block after another a region, the block with the most to lose first. A region is closed for a block if
//! its bytes no longer fit a clique there. A branch ends where the bounds say that it costs no less than what is known,
//! or where some blocks of a region are known not to fit it. Once all blocks have a region, each region is packed.
//!
//! It also searches among a few blocks, while all others keep their regions.

use super::RegionPacking;
use super::prices::Prices;
use super::task::Task;
use crate::budget::Meter;
use crate::decompose::Fit;
use crate::graph::BitSet;

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Nothing that fits costs less than this and less than the best.
    AtLeast(u64),
    /// Its steps were used up.
    Cut,
}

/// The state of a search.
pub struct Search<'a> {
    pub task: &'a Task<'a>,
    /// Two bounds: at no prices, and at prices. The second says what to try first.
    prices: [Prices; 2],
    /// The best packing so far.
    pub best: RegionPacking,
    /// Steps of complete searches for a packing of one region.
    pub steps_of_fit: u64,
    /// By block: its region.
    chosen: Vec<Option<usize>>,
    /// By block that has a region: which decision that was. 0 for those that keep theirs.
    depth: Vec<usize>,
    /// By block and region: whether the block may go there.
    open: Vec<Vec<bool>>,
    /// By region: its blocks.
    sets: Vec<BitSet>,
    /// By region and clique: bytes in use.
    loads: Vec<Vec<u64>>,
    /// By clique: the bytes of its largest member.
    largest: Vec<u64>,
    /// By bound: the sum of priced costs, each block without a region in its cheapest open one.
    sums: [i128; 2],
    /// Blocks that do not fit so many bytes.
    refuted: Vec<(BitSet, u64)>,
    /// The blocks that the search is about.
    free: Vec<usize>,
    /// The least cost of what could neither be packed nor refuted.
    unsettled: u64,
    /// When to end, in steps of the budget.
    end: u64,
    is_cut: bool,
}

/// Maximum number of sets of blocks that are known not to fit. Others replace the oldest of them.
const MAX_REFUTED: usize = 256;

/// Blocks for which a region was closed.
type Trail = Vec<(usize, usize)>;

impl<'a> Search<'a> {
    /// A search for what is better than this packing.
    pub fn new(task: &'a Task<'a>, best: RegionPacking, prices: Prices, steps_of_fit: u64) -> Self {
        let (count, regions) = (task.count(), task.limits.len());
        let mut search = Search {
            task,
            prices: [Prices::none(task), prices],
            steps_of_fit,
            chosen: vec![None; count],
            depth: vec![0; count],
            open: vec![vec![false; regions]; count],
            sets: vec![BitSet::new(count); regions],
            loads: vec![vec![0; task.cliques.len()]; regions],
            largest: task
                .cliques
                .iter()
                .map(|clique| clique.iter().map(|use_| use_.1).max().unwrap_or(0))
                .collect(),
            sums: [0; 2],
            refuted: Vec::new(),
            free: Vec::new(),
            unsettled: u64::MAX,
            end: 0,
            is_cut: false,
            best,
        };
        for block in 0..count {
            search.choose(block, search.best.regions[block], 0);
        }
        search
    }

    /// Searches for regions of these blocks, while all others keep theirs, for so many steps.
    pub fn search(&mut self, free: &[usize], steps: u64, budget: &mut Meter) -> Ended {
        self.end = budget.spent().saturating_add(steps);
        self.unsettled = u64::MAX;
        self.is_cut = false;
        self.free = free.to_vec();
        free.iter().for_each(|block| self.release(*block));
        for &block in free {
            self.open[block].fill(false);
            for region in self.task.allowed(block) {
                let limit = self.task.limits[region];
                let uses = &self.task.uses[block];
                self.open[block][region] =
                    uses.iter().all(|(c, bytes)| self.loads[region][*c] + bytes <= limit);
            }
            budget.spend((self.task.uses[block].len() * self.task.limits.len()) as u64);
        }
        self.sums = [0, 1].map(|bound| {
            let priced = |block: usize| match self.chosen[block] {
                Some(region) => self.prices[bound].priced[block][region],
                None => self.least(block, bound).unwrap_or(0),
            };
            (0..self.task.count()).map(priced).sum()
        });
        budget.spend(self.task.count() as u64);
        let is_open = |block: &usize| self.open[*block].contains(&true);
        if free.iter().all(is_open) {
            self.descend(1, budget);
        }
        for &block in free {
            self.choose(block, self.best.regions[block], 0);
        }
        if self.is_cut { Ended::Cut } else { Ended::AtLeast(self.unsettled) }
    }

    /// The prices of the higher bound.
    pub fn prices(&self) -> &Prices {
        &self.prices[1]
    }

    /// Goes on from a better packing.
    pub fn adopt(&mut self, packing: RegionPacking) {
        (0..self.task.count()).for_each(|block| self.release(block));
        self.best = packing;
        (0..self.task.count()).for_each(|block| self.choose(block, self.best.regions[block], 0));
    }

    /// What all packings cost at least that go on from here.
    pub fn bound(&self) -> u64 {
        let bounds = self.prices.iter().zip(self.sums).map(|(prices, sum)| prices.cost(sum));
        bounds.max().unwrap_or(0)
    }

    /// A packing of use costs less than this.
    pub fn target(&self) -> u64 {
        if self.task.excess(&self.best) == 0 { self.best.cost } else { u64::MAX }
    }

    fn least(&self, block: usize, bound: usize) -> Option<i128> {
        let priced = self.prices[bound].priced[block].iter().zip(&self.open[block]);
        priced.filter(|(_, is_open)| **is_open).map(|(priced, _)| *priced).min()
    }

    fn choose(&mut self, block: usize, region: usize, depth: usize) {
        self.chosen[block] = Some(region);
        self.depth[block] = depth;
        self.sets[region].insert(block);
        for (c, bytes) in &self.task.uses[block] {
            self.loads[region][*c] += bytes;
        }
    }

    fn release(&mut self, block: usize) {
        let Some(region) = self.chosen[block].take() else { return };
        self.sets[region].remove(block);
        for (c, bytes) in &self.task.uses[block] {
            self.loads[region][*c] -= bytes;
        }
    }

    /// Tries all regions for all blocks without one. Returns the last decision that must be another one.
    fn descend(&mut self, depth: usize, budget: &mut Meter) -> usize {
        if self.bound() >= self.target() {
            return depth - 1;
        }
        let Some(block) = self.next(budget) else { return self.pack(depth, budget) };
        let mut regions: Vec<usize> = (0..self.task.limits.len()).filter(|r| self.open[block][*r]).collect();
        regions.sort_by_key(|region| (self.prices[1].priced[block][*region], *region));
        for region in regions {
            if budget.spent() >= self.end || budget.exhausted() {
                self.is_cut = true;
                return 0;
            }
            let (sums, mut trail) = (self.sums, Trail::new());
            let back = match self.put(block, region, depth, &mut trail, budget) {
                true => self.descend(depth + 1, budget),
                false => depth,
            };
            trail.into_iter().for_each(|(other, region)| self.open[other][region] = true);
            self.release(block);
            self.sums = sums;
            if back < depth {
                return back;
            }
        }
        depth - 1
    }

    /// The block to decide next: one with one open region, or else the one that loses most in its second best.
    fn next(&self, budget: &mut Meter) -> Option<usize> {
        budget.spend(self.free.len() as u64);
        let loss = |block: &usize| {
            let priced = self.prices[1].priced[*block].iter().zip(&self.open[*block]);
            let open = priced.filter(|(_, is_open)| **is_open).map(|(priced, _)| *priced);
            let (least, second) =
                open.fold((i128::MAX, i128::MAX), |(least, second), priced| match priced < least {
                    true => (priced, least),
                    false => (least, second.min(priced)),
                });
            (second.saturating_sub(least), self.task.bytes(*block))
        };
        self.free.iter().copied().filter(|block| self.chosen[*block].is_none()).max_by_key(loss)
    }

    /// Gives a block a region and closes the region for blocks that no longer fit there. Says whether each block still
    /// has an open region.
    fn put(
        &mut self,
        block: usize,
        region: usize,
        depth: usize,
        trail: &mut Trail,
        budget: &mut Meter,
    ) -> bool {
        let task = self.task;
        for bound in 0..2 {
            self.sums[bound] +=
                self.prices[bound].priced[block][region] - self.least(block, bound).unwrap_or(0);
        }
        self.choose(block, region, depth);
        budget.spend(task.uses[block].len() as u64 + self.refuted.len() as u64 / 4);
        let is_refuted = |(blocks, bytes): &(BitSet, u64)| {
            task.limits[region] <= *bytes && blocks.contains(block) && blocks.is_subset(&self.sets[region])
        };
        if self.refuted.iter().any(is_refuted) {
            return false;
        }
        for &(c, _) in &task.uses[block] {
            let room = task.limits[region].saturating_sub(self.loads[region][c]);
            if room >= self.largest[c] {
                continue;
            }
            budget.spend(task.cliques[c].len() as u64);
            for &(other, bytes) in &task.cliques[c] {
                if bytes <= room || self.chosen[other].is_some() || !self.open[other][region] {
                    continue;
                }
                let before = [0, 1].map(|bound| self.least(other, bound));
                self.open[other][region] = false;
                trail.push((other, region));
                let after = [0, 1].map(|bound| self.least(other, bound));
                for (sum, least) in self.sums.iter_mut().zip(before.into_iter().zip(after)) {
                    let (Some(before), Some(after)) = least else { return false };
                    *sum += after - before;
                }
            }
        }
        true
    }

    /// Packs each region, now that all blocks have one. Returns the last decision that must be another one.
    fn pack(&mut self, depth: usize, budget: &mut Meter) -> usize {
        let regions: Vec<usize> = self.chosen.iter().map(|region| region.unwrap_or(0)).collect();
        let mut offsets = vec![0; regions.len()];
        for region in 0..self.task.limits.len() {
            let blocks: Vec<usize> = self.sets[region].iter().collect();
            match self.fit(&blocks, region, budget) {
                Fit::Yes(found) => blocks.iter().zip(found).for_each(|(block, at)| offsets[*block] = at),
                Fit::No => {
                    if self.refuted.len() == MAX_REFUTED {
                        self.refuted.remove(0);
                    }
                    self.refuted.push((self.sets[region].clone(), self.task.limits[region]));
                    return blocks.iter().map(|block| self.depth[*block]).max().unwrap_or(0);
                }
                Fit::Unknown => {
                    self.unsettled = self.unsettled.min(self.bound());
                    return depth - 1;
                }
            }
        }
        self.best = self.task.packing(regions, offsets);
        depth - 1
    }

    /// Whether these blocks fit a region. The blocks that are new there may have room among those that are not.
    fn fit(&self, blocks: &[usize], region: usize, budget: &mut Meter) -> Fit {
        let mut offsets = vec![None; self.task.count()];
        let (old, mut new): (Vec<usize>, Vec<usize>) =
            blocks.iter().partition(|block| self.best.regions[**block] == region);
        let ends_low =
            |block: &usize| self.best.offsets[*block] + self.task.bytes(*block) <= self.task.limits[region];
        old.iter().for_each(|block| offsets[*block] = Some(self.best.offsets[*block]));
        new.sort_by_key(|block| std::cmp::Reverse(self.task.bytes(*block)));
        if old.iter().all(ends_low) && self.task.put(&new, region, &mut offsets, budget) {
            return Fit::Yes(blocks.iter().map(|block| offsets[*block].unwrap_or(0)).collect());
        }
        self.task.fit(blocks, region, self.steps_of_fit, budget)
    }
}
