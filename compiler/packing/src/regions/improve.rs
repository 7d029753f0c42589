//! Improving a packing into regions, and proving that none costs less.

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::RegionPacking;
use super::prices::Prices;
use super::search::{Ended, Search};
use super::task::Task;
use super::{starts, sweep};
use crate::budget::Meter;
use crate::subproblem::MAX_BLOCKS;

/// Steps of the first search among all blocks, and as many among a few. Each round doubles them.
const FIRST_STEPS: u64 = 20_000;

/// Steps of the first complete searches for a packing of one region. Each round doubles them.
const FIRST_STEPS_OF_FIT: u64 = 1_000;

/// Where what a sweep finds does not pack, a limit is lowered by this share, one in 32.
const FINENESS: u64 = 32;

/// About so many steps are taken for each way and block of a sweep.
const STEPS_OF_A_WAY: u64 = 6;

/// Maximum number of decisions that a sweep stores, and the ways that it keeps at least.
const MAX_DECISIONS: u64 = 1 << 21;
const MIN_WIDTH: usize = 4;

/// Steps of searches among a few blocks for each of one among all.
const SHARE_OF_FEW: u64 = 2;

/// How many blocks are searched together, and for how many steps.
const FEW: std::ops::RangeInclusive<usize> = 4..=24;
const STEPS_OF_FEW: u64 = 4_000;

/// A packing that is no worse than this one, and what every packing that fits costs at least. If none fits, this is
/// `None`.
pub fn improve(
    task: &Task,
    best: RegionPacking,
    mut bound: u64,
    budget: &mut Meter,
) -> (RegionPacking, Option<u64>) {
    if task.excess(&best) == 0 && best.cost <= bound || task.count() > MAX_BLOCKS {
        return (best, Some(bound));
    }
    let known = if task.excess(&best) == 0 { best.cost } else { task.most_costs() };
    let prices = Prices::found(task, known, budget);
    bound = bound.max(prices.bound(task));
    let all: Vec<usize> = (0..task.count()).collect();
    let mut search = Search::new(task, best, prices, FIRST_STEPS_OF_FIT);
    let mut random = ChaCha8Rng::seed_from_u64(0);
    // Limits at which what a sweep finds packs more often.
    let mut lowered: Vec<u64> = task.limits.iter().map(|limit| limit - limit / FINENESS).collect();
    let mut steps = FIRST_STEPS;
    while search.target() > bound && !budget.exhausted() {
        let decisions = (steps / STEPS_OF_A_WAY).min(MAX_DECISIONS) as usize;
        let width = (decisions / task.count()).max(MIN_WIDTH);
        let mut limits = task.limits.to_vec();
        bound = bound.max(sweep_and_pack(&mut search, &mut limits, width, budget));
        if limits != task.limits {
            sweep_and_pack(&mut search, &mut lowered, width, budget);
        }
        if let Ended::AtLeast(cost) = search.search(&all, steps, budget) {
            bound = bound.max(cost.min(search.target()));
        }
        if bound == u64::MAX {
            return (search.best, None);
        }
        let end = budget.spent().saturating_add(SHARE_OF_FEW.saturating_mul(steps));
        while search.target() > bound
            && search.target() < u64::MAX
            && budget.spent() < end
            && !budget.exhausted()
        {
            let few = few(task, &mut random);
            budget.spend(few.len() as u64);
            search.search(&few, STEPS_OF_FEW, budget);
        }
        steps = steps.saturating_mul(2);
        search.allow_steps_of_fit(search.steps_of_fit.saturating_mul(2));
    }
    (search.best, Some(bound))
}

/// Sweeps within these limits, and packs what is found. If that does not pack, the limit is lowered of a region that
/// does not. Returns what anything within these limits costs at least.
fn sweep_and_pack(search: &mut Search, limits: &mut [u64], width: usize, budget: &mut Meter) -> u64 {
    let (task, target) = (search.task, search.target());
    let swept = sweep::sweep(task, limits, search.prices(), target, width, budget);
    if let Some(regions) = swept.regions {
        let packing = task.packed(&regions, search.steps_of_fit, budget).unwrap_or_else(|region| {
            limits[region] -= limits[region] / FINENESS;
            starts::close_to(task, &regions, budget)
        });
        if task.excess(&packing) == 0 && packing.cost < target {
            search.adopt(packing);
        }
    }
    swept.bound.min(target)
}

/// A block, and some blocks that conflict with it or with one of those before.
fn few(task: &Task, random: &mut ChaCha8Rng) -> Vec<usize> {
    let count = random.random_range(FEW).min(task.count());
    let mut blocks = vec![random.random_range(0..task.count())];
    // Blocks without neighbours are drawn alone.
    for _ in 0..2 * count {
        let links = &task.part.links[blocks[random.random_range(0..blocks.len())]];
        if links.is_empty() || blocks.len() == count {
            break;
        }
        let other = links[random.random_range(0..links.len())].other;
        if !blocks.contains(&other) {
            blocks.push(other);
        }
    }
    blocks
}
