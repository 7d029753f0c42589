//! The complete search for regions of blocks.
//!
//! It gives one block after another a region, the block with the most to lose first. A region is closed for a block if
//! its bytes no longer fit a clique there. A branch ends where the bounds say that it costs no less than what is known,
//! or where some blocks of a region are known not to fit it. Once all blocks have a region, each region is packed. If one
//! cannot be packed, the search goes back to the last decision for one of the blocks that are too many.
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
    /// The oldest first.
    refused: Vec<Refused>,
    /// The blocks that the search is about.
    free: Vec<usize>,
    /// The least cost of what could neither be packed nor refuted.
    unsettled: u64,
    /// When to end, in steps of the budget.
    end: u64,
    is_cut: bool,
}

/// Blocks that were not packed.
struct Refused {
    blocks: BitSet,
    /// The limit of the region.
    bytes: u64,
    /// Whether they are known not to fit. If not, more steps may pack them.
    is_proven: bool,
}

/// Maximum number of sets of blocks that are remembered. Others replace the oldest of them.
const MAX_REFUSED: usize = 256;

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
            refused: Vec::new(),
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

    /// The least priced cost of a block in its open regions.
    fn least(&self, block: usize, bound: usize) -> Option<i128> {
        let priced = self.prices[bound].priced[block].iter().zip(&self.open[block]);
        priced.filter(|(_, is_open)| **is_open).map(|(priced, _)| *priced).min()
    }

    /// Gives a block a region.
    fn choose(&mut self, block: usize, region: usize, depth: usize) {
        self.chosen[block] = Some(region);
        self.depth[block] = depth;
        self.sets[region].insert(block);
        for (c, bytes) in &self.task.uses[block] {
            self.loads[region][*c] += bytes;
        }
    }

    /// Takes the region of a block away.
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
        budget.spend(task.uses[block].len() as u64 + self.refused.len() as u64 / 4);
        // A search among a few blocks proves nothing, so a doubt is enough there.
        let counts = |refused: &Refused| refused.is_proven || self.free.len() < task.count();
        let is_refused = |refused: &Refused| {
            task.limits[region] <= refused.bytes
                && refused.blocks.contains(block)
                && refused.blocks.is_subset(&self.sets[region])
                && counts(refused)
        };
        if self.refused.iter().any(is_refused) {
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
            let (fit, tried) = self.fit(&blocks, region, budget);
            if let Fit::Yes(found) = fit {
                blocks.iter().zip(found).for_each(|(block, at)| offsets[*block] = at);
                continue;
            }
            let last = tried.iter().map(|block| self.depth[*block]).max().unwrap_or(0);
            let is_proven = fit == Fit::No;
            self.refuse(&tried, region, is_proven);
            if is_proven {
                return last;
            }
            self.unsettled = self.unsettled.min(self.bound());
            return depth - 1;
        }
        self.best = self.task.packing(regions, offsets);
        depth - 1
    }

    /// Remembers blocks that were not packed.
    fn refuse(&mut self, blocks: &[usize], region: usize, is_proven: bool) {
        if self.refused.len() == MAX_REFUSED {
            self.refused.remove(0);
        }
        let mut set = BitSet::new(self.task.count());
        blocks.iter().for_each(|block| set.insert(*block));
        self.refused.push(Refused { blocks: set, bytes: self.task.limits[region], is_proven });
    }

    /// Allows so many steps for the packing of one region, and tries again what fewer did not pack.
    pub fn allow_steps_of_fit(&mut self, steps: u64) {
        self.steps_of_fit = steps;
        self.refused.retain(|refused| refused.is_proven);
    }

    /// Whether these blocks fit a region, and by which of them that was found. The blocks that are new there may have
    /// room among those that are not. If not, they and those that conflict with them may be too many by themselves.
    fn fit(&self, blocks: &[usize], region: usize, budget: &mut Meter) -> (Fit, Vec<usize>) {
        let task = self.task;
        let mut offsets = vec![None; task.count()];
        let (old, mut new): (Vec<usize>, Vec<usize>) =
            blocks.iter().partition(|block| self.best.regions[**block] == region);
        let ends_low = |block: &usize| self.best.offsets[*block] + task.bytes(*block) <= task.limits[region];
        old.iter().for_each(|block| offsets[*block] = Some(self.best.offsets[*block]));
        new.sort_by_key(|block| std::cmp::Reverse(task.bytes(*block)));
        if old.iter().all(ends_low) && task.put(&new, region, &mut offsets, budget) {
            return (Fit::Yes(blocks.iter().map(|block| offsets[*block].unwrap_or(0)).collect()), Vec::new());
        }
        let mut near = BitSet::new(task.count());
        for &block in &new {
            near.insert(block);
            task.part.links[block].iter().for_each(|link| near.insert(link.other));
        }
        let near: Vec<usize> = blocks.iter().copied().filter(|block| near.contains(*block)).collect();
        if near.len() < blocks.len() {
            let fit = task.fit(&near, region, self.steps_of_fit, budget);
            if !matches!(fit, Fit::Yes(_)) {
                return (fit, near);
            }
        }
        (task.fit(blocks, region, self.steps_of_fit, budget), blocks.to_vec())
    }
}
