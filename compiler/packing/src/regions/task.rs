//! What is to be packed into regions, and whether the blocks of one region fit it.

use super::RegionPacking;
use crate::budget::{Budget, Meter};
use crate::decompose::{self, Fit};
use crate::greedy;
use crate::problem::Problem;
use crate::subproblem::Subproblem;

/// Steps that a trial to fit blocks is worth, for each conflict among them: about so many greedy orders look at each
/// conflict. They are not counted elsewhere.
const ORDERS: u64 = 16;

/// The final packing of a region takes at most so many steps, and at most one in `SHARE_OF_TIGHTENING` of those that are
/// left.
const STEPS_OF_TIGHTENING: u64 = 1_000_000;
const SHARE_OF_TIGHTENING: u64 = 8;

/// A problem and its regions.
pub struct Task<'a> {
    problem: &'a Problem,
    /// All of it.
    pub part: Subproblem,
    /// By region, in bytes.
    pub limits: &'a [u64],
    /// By block and region, `None` where the block must not lie.
    costs: &'a [Vec<Option<u64>>],
    /// By block: the regions that it may lie in, the cheapest first.
    pub preferences: Vec<Vec<usize>>,
    /// Cliques that do not fit every region: the blocks, and their bytes in use.
    pub cliques: Vec<Vec<(usize, u64)>>,
    /// By block: its cliques, and its bytes in use there.
    pub uses: Vec<Vec<(usize, u64)>>,
}

impl<'a> Task<'a> {
    /// A problem without given offsets, and limits and costs of regions.
    pub fn new(problem: &'a Problem, limits: &'a [u64], costs: &'a [Vec<Option<u64>>]) -> Self {
        let part = Subproblem::new(problem, &(0..problem.blocks.len()).collect::<Vec<_>>());
        let preference = |costs: &Vec<Option<u64>>| {
            let mut regions: Vec<usize> =
                (0..limits.len()).filter(|region| costs[*region].is_some()).collect();
            regions.sort_by_key(|region| (costs[*region], *region));
            regions
        };
        let least = limits.iter().copied().min().unwrap_or(0);
        let cliques = part.cliques.iter().map(|clique| {
            let members = clique.iter().map(|member| (member.block, member.high - member.low));
            members.filter(|(_, bytes)| *bytes > 0).collect()
        });
        let is_limited = |clique: &Vec<(usize, u64)>| clique.iter().map(|use_| use_.1).sum::<u64>() > least;
        let cliques: Vec<Vec<(usize, u64)>> = cliques.filter(is_limited).collect();
        let mut uses = vec![Vec::new(); problem.blocks.len()];
        for (c, clique) in cliques.iter().enumerate() {
            clique.iter().for_each(|(block, bytes)| uses[*block].push((c, *bytes)));
        }
        let preferences = costs.iter().map(preference).collect();
        Task { problem, part, limits, costs, preferences, cliques, uses }
    }

    /// How many blocks there are.
    pub fn count(&self) -> usize {
        self.problem.blocks.len()
    }

    /// The size of a block.
    pub fn bytes(&self, block: usize) -> u64 {
        self.problem.blocks[block].bytes
    }

    /// The regions that a block may lie in and that are as large as it.
    pub fn allowed(&self, block: usize) -> impl Iterator<Item = usize> + '_ {
        let may_hold = move |region: &usize| {
            self.costs[block][*region].is_some() && self.bytes(block) <= self.limits[*region]
        };
        (0..self.limits.len()).filter(may_hold)
    }

    /// The region with the largest limit of those that a block may lie in.
    pub fn largest(&self, block: usize) -> usize {
        let regions = self.preferences[block].iter().copied();
        regions.max_by_key(|region| (self.limits[*region], usize::MAX - region)).unwrap_or(0)
    }

    /// What a block costs in a region that it may lie in.
    pub fn cost_of(&self, block: usize, region: usize) -> u64 {
        self.costs[block][region].unwrap_or(u64::MAX)
    }

    /// What a block costs in each region that it may lie in.
    pub fn costs_of(&self, block: usize) -> impl Iterator<Item = u64> + '_ {
        self.costs[block].iter().filter_map(|cost| *cost)
    }

    /// What all blocks cost if each lies in the cheapest region that is as large as the block.
    pub fn least_costs(&self) -> u64 {
        let least = |block: usize| {
            let regions = self.preferences[block].iter().copied();
            let large = regions.clone().find(|region| self.bytes(block) <= self.limits[*region]);
            self.cost_of(block, large.or(regions.clone().next()).unwrap_or(0))
        };
        (0..self.count()).map(least).fold(0, u64::saturating_add)
    }

    /// What all blocks cost at most.
    pub fn most_costs(&self) -> u64 {
        (0..self.count()).filter_map(|block| self.costs_of(block).max()).fold(0, u64::saturating_add)
    }

    /// Bytes by which a packing exceeds limits.
    pub fn excess(&self, packing: &RegionPacking) -> u64 {
        packing.bytes.iter().zip(self.limits).map(|(bytes, limit)| bytes.saturating_sub(*limit)).sum()
    }

    /// The better of two packings, the first if they are equal.
    pub fn better(&self, one: RegionPacking, other: RegionPacking) -> RegionPacking {
        let rank = |packing: &RegionPacking| {
            (self.excess(packing), packing.cost, packing.bytes.iter().sum::<u64>(), packing.regions.clone())
        };
        if rank(&other) < rank(&one) { other } else { one }
    }

    /// What blocks cost in these regions.
    pub fn cost(&self, regions: &[usize]) -> u64 {
        let costs = regions.iter().enumerate().map(|(block, region)| self.cost_of(block, *region));
        costs.fold(0, u64::saturating_add)
    }

    /// The packing of these regions and offsets.
    pub fn packing(&self, regions: Vec<usize>, offsets: Vec<u64>) -> RegionPacking {
        let mut bytes = vec![0; self.limits.len()];
        for (block, (&region, at)) in regions.iter().zip(&offsets).enumerate() {
            bytes[region] = at.saturating_add(self.bytes(block)).max(bytes[region]);
        }
        RegionPacking { cost: self.cost(&regions), regions, offsets, bytes }
    }

    /// Puts blocks into a region one by one, each as low as it can lie. Says whether all end below the limit.
    pub fn put(
        &self,
        blocks: &[usize],
        region: usize,
        offsets: &mut [Option<u64>],
        budget: &mut Meter,
    ) -> bool {
        blocks.iter().all(|&block| {
            budget.spend(self.part.links[block].len() as u64 + 1);
            let at = greedy::lowest(&self.part, block, offsets);
            offsets[block] = Some(at);
            at + self.bytes(block) <= self.limits[region]
        })
    }

    /// Whether these blocks, given ascending, fit a region. Complete searches take at most so many steps.
    pub fn fit(&self, blocks: &[usize], region: usize, steps: u64, budget: &mut Meter) -> Fit {
        let links: usize = blocks.iter().map(|block| self.part.links[*block].len()).sum();
        budget.spend(ORDERS * (links + blocks.len()) as u64);
        let mut meter = Meter::new(Budget::Work(steps.min(budget.left())));
        let fit = decompose::fit(self.problem, blocks, self.limits[region], &mut meter);
        budget.spend(meter.spent());
        fit
    }

    /// A packing of blocks in these regions. If none is found, the region for which that is so.
    pub fn packed(&self, regions: &[usize], steps: u64, budget: &mut Meter) -> Result<RegionPacking, usize> {
        let mut offsets = vec![0; self.count()];
        for region in 0..self.limits.len() {
            let blocks: Vec<usize> = (0..self.count()).filter(|block| regions[*block] == region).collect();
            let Fit::Yes(found) = self.fit(&blocks, region, steps, budget) else { return Err(region) };
            blocks.iter().zip(found).for_each(|(block, at)| offsets[*block] = at);
        }
        Ok(self.packing(regions.to_vec(), offsets))
    }

    /// The same packing with each region packed as low as some of the budget allows.
    pub fn tightened(&self, packing: RegionPacking, budget: &mut Meter) -> RegionPacking {
        let RegionPacking { regions, mut offsets, bytes, .. } = packing;
        for (region, bytes) in bytes.into_iter().enumerate() {
            let blocks: Vec<usize> = (0..regions.len()).filter(|block| regions[*block] == region).collect();
            let left = if budget.exhausted() { 0 } else { budget.left() };
            let steps = (left / SHARE_OF_TIGHTENING).min(STEPS_OF_TIGHTENING);
            let mut meter = Meter::new(Budget::Work(steps));
            let packed = decompose::pack_some(self.problem, &blocks, &mut meter);
            budget.spend(meter.spent());
            if packed.bytes < bytes {
                blocks.iter().zip(packed.offsets).for_each(|(block, at)| offsets[*block] = at);
            }
        }
        self.packing(regions, offsets)
    }
}
