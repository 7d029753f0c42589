//! The search for regions of blocks along time.
//!
//! Blocks come one by one in the order of their first cliques. What is decided matters to the rest only by the regions
//! of the *frontier*, the blocks that are still to be seen in a clique. Of several ways that lead to the same regions of
//! the frontier, the cheapest is kept. If there are too many, those that may cost least are kept, by the bound of
//! [`Prices`]. What is left out gives a bound itself.
//!
//! The search looks at the bytes in use at each moment only. So its bound is one for all packings, but what it finds
//! may not pack.

use super::prices::Prices;
use super::task::Task;
use crate::budget::Meter;

/// What a search found.
pub struct Swept {
    /// By block: its region, if something is found below the target.
    pub regions: Option<Vec<usize>>,
    /// Nothing costs less than this and less than the target.
    pub bound: u64,
}

/// Regions of the blocks that have come.
#[derive(Clone)]
struct Way {
    /// By place in the frontier.
    regions: Vec<u16>,
    /// The sum of priced costs, the least one for each block that is to come, and of the prices of bytes that were left
    /// in the cliques so far.
    priced: i128,
    /// By region: bytes in use in the present clique.
    loads: Vec<u64>,
    /// The decision for the last block, from 1 on.
    last: usize,
}

/// A block, its region, and the decision before.
struct Decision {
    block: usize,
    region: usize,
    before: usize,
}

/// Looks for regions within these limits that cost less than `target`, and keeps up to `width` ways.
pub fn sweep(
    task: &Task,
    limits: &[u64],
    prices: &Prices,
    target: u64,
    width: usize,
    budget: &mut Meter,
) -> Swept {
    let mut swept = Swept { regions: None, bound: u64::MAX };
    let priced = |block: usize, region: usize| prices.priced[block][region];
    let allowed =
        |block: usize| task.allowed(block).filter(move |region| task.bytes(block) <= limits[*region]);
    let cheapest = |block: usize| allowed(block).min_by_key(|region| (priced(block, *region), *region));
    let cheapest: Option<Vec<usize>> = (0..task.count()).map(cheapest).collect();
    let Some(mut regions) = cheapest else { return swept };
    let sum = regions.iter().enumerate().map(|(block, region)| priced(block, *region)).sum();
    let mut last_clique = vec![0; task.count()];
    for (c, clique) in task.cliques.iter().enumerate() {
        clique.iter().for_each(|(block, _)| last_clique[*block] = c);
    }
    let mut frontier: Vec<usize> = Vec::new();
    let mut ways = vec![Way { regions: Vec::new(), priced: sum, loads: Vec::new(), last: 0 }];
    let mut decisions: Vec<Decision> = Vec::new();
    for (c, clique) in task.cliques.iter().enumerate() {
        let place = |block: usize| frontier.iter().position(|other| *other == block);
        let present: Vec<(usize, u64)> =
            clique.iter().filter_map(|(block, bytes)| Some((place(*block)?, *bytes))).collect();
        let coming: Vec<(usize, u64)> =
            clique.iter().copied().filter(|(block, _)| place(*block).is_none()).collect();
        budget.spend((ways.len() * (present.len() + 1)) as u64);
        ways.retain_mut(|way| {
            way.loads = vec![0; limits.len()];
            present.iter().for_each(|(at, bytes)| way.loads[usize::from(way.regions[*at])] += bytes);
            way.loads.iter().zip(limits).all(|(load, limit)| load <= limit)
        });
        for (block, bytes) in coming {
            // The sum of priced costs, the way before, and the region.
            let mut next: Vec<(i128, usize, usize)> = Vec::new();
            for (at, way) in ways.iter().enumerate() {
                for region in allowed(block).filter(|region| way.loads[*region] + bytes <= limits[*region]) {
                    let sum = way.priced + priced(block, region) - priced(block, regions[block]);
                    if prices.cost(sum) < target {
                        next.push((sum, at, region));
                    }
                }
            }
            budget.spend(((ways.len() + next.len()) * (1 + frontier.len() / 8)) as u64);
            next.sort_unstable();
            if let Some((sum, ..)) = next.get(width) {
                swept.bound = swept.bound.min(prices.cost(*sum));
                next.truncate(width);
            }
            frontier.push(block);
            let go_on = |(sum, at, region): (i128, usize, usize)| {
                let mut way = ways[at].clone();
                decisions.push(Decision { block, region, before: way.last });
                (way.priced, way.last) = (sum, decisions.len());
                way.loads[region] += bytes;
                way.regions.push(region as u16);
                way
            };
            ways = next.into_iter().map(go_on).collect();
        }
        // Bytes that were left in this clique are of no use later, so their price is part of the bound.
        for way in &mut ways {
            let left = way.loads.iter().zip(task.limits).enumerate();
            way.priced +=
                left.map(|(region, (load, limit))| prices.price(region, c, limit - load)).sum::<i128>();
        }
        ways.retain(|way| prices.cost(way.priced) < target);
        let stays: Vec<bool> = frontier.iter().map(|block| last_clique[*block] > c).collect();
        if stays.contains(&false) {
            let mut at = stays.iter();
            frontier.retain(|_| at.next() == Some(&true));
            for way in &mut ways {
                let mut at = stays.iter();
                way.regions.retain(|_| at.next() == Some(&true));
            }
            ways.sort_by(|one, other| one.regions.cmp(&other.regions).then(one.priced.cmp(&other.priced)));
            ways.dedup_by(|other, one| one.regions == other.regions);
        }
        if budget.exhausted() {
            return Swept { regions: None, bound: 0 };
        }
    }
    if let Some(way) = ways.first() {
        swept.bound = swept.bound.min(prices.cost(way.priced));
        let mut last = way.last;
        while let Some(decision) = last.checked_sub(1).map(|last| &decisions[last]) {
            regions[decision.block] = decision.region;
            last = decision.before;
        }
        swept.regions = Some(regions);
    }
    swept
}
