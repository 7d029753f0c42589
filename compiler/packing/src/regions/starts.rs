//! Greedy packings into regions: blocks come in some order, and each goes to the cheapest region with room for it.

use std::cmp::Reverse;

use super::RegionPacking;
use super::task::Task;
use crate::budget::Meter;

/// Bits of a quotient that are kept behind the point.
const FRACTION: u32 = 60;

/// Steps of complete searches for each region.
const STEPS: u64 = 10_000;

/// The best of several orders, and of what is found if only the bytes in use at each moment count. It stops at a
/// packing that costs `bound`.
pub fn best(task: &Task, bound: u64, budget: &mut Meter) -> RegionPacking {
    let orders = orders(task);
    let by_bytes = orders.iter().map(|order| in_use(task, order, budget));
    let by_bytes = by_bytes.min_by_key(|regions| task.cost(regions)).unwrap_or_default();
    let mut best =
        task.packed(&by_bytes, STEPS, budget).unwrap_or_else(|_| close_to(task, &by_bytes, budget));
    for order in orders {
        if budget.exhausted() || task.excess(&best) == 0 && best.cost <= bound {
            break;
        }
        best = task.better(best, inserted(task, &order, &task.preferences, budget));
    }
    best
}

/// The orders: by what a wrong region costs, also for each byte and for each byte at each moment, by size, and by size
/// times life. Time is counted in cliques.
fn orders(task: &Task) -> Vec<Vec<usize>> {
    let bytes = |i: usize| u128::from(task.bytes(i));
    let area = |i: usize| bytes(i) * (task.uses[i].len() as u128).max(1);
    let spread = |i: usize| {
        let (least, most) = (task.costs_of(i).min(), task.costs_of(i).max());
        u128::from(most.unwrap_or(0) - least.unwrap_or(0))
    };
    let keys: [&dyn Fn(usize) -> u128; 5] = [
        &|i| (spread(i) << FRACTION) / bytes(i).max(1),
        &spread,
        &|i| (spread(i) << FRACTION) / area(i).max(1),
        &bytes,
        &area,
    ];
    let order = |key: &&dyn Fn(usize) -> u128| {
        let mut order: Vec<usize> = (0..task.count()).collect();
        order.sort_by_cached_key(|i| (Reverse(key(*i)), *i));
        order
    };
    keys.iter().map(order).collect()
}

/// A packing close to these regions, which may not pack. Large blocks come first, and what has no room goes elsewhere.
pub fn close_to(task: &Task, regions: &[usize], budget: &mut Meter) -> RegionPacking {
    let preference = |(block, region): (usize, &usize)| {
        let others = task.preferences[block].iter().filter(|other| *other != region);
        std::iter::once(region).chain(others).copied().collect()
    };
    let preferences: Vec<Vec<usize>> = regions.iter().enumerate().map(preference).collect();
    let mut order: Vec<usize> = (0..task.count()).collect();
    order.sort_by_key(|block| (Reverse(task.bytes(*block)), *block));
    inserted(task, &order, &preferences, budget)
}

/// Each block goes to the first of its regions in which it ends below the limit, and as low there as it can lie.
fn inserted(task: &Task, order: &[usize], preferences: &[Vec<usize>], budget: &mut Meter) -> RegionPacking {
    let mut regions: Vec<usize> = (0..task.count()).map(|block| task.largest(block)).collect();
    let mut offsets = vec![vec![None; task.count()]; task.limits.len()];
    for &block in order {
        let fits = |region: &usize| {
            let fits = task.put(&[block], *region, &mut offsets[*region], budget);
            if !fits {
                offsets[*region][block] = None;
            }
            fits
        };
        match preferences[block].iter().copied().find(fits) {
            Some(region) => regions[block] = region,
            None => _ = task.put(&[block], regions[block], &mut offsets[regions[block]], budget),
        }
    }
    let offsets = regions.iter().enumerate().map(|(block, region)| offsets[*region][block].unwrap_or(0));
    let offsets = offsets.collect();
    task.packing(regions, offsets)
}

/// Each block goes to the first region in which no clique comes to use more bytes than the limit.
fn in_use(task: &Task, order: &[usize], budget: &mut Meter) -> Vec<usize> {
    let mut regions = vec![0; task.count()];
    let mut loads = vec![vec![0; task.cliques.len()]; task.limits.len()];
    for &block in order {
        let uses = &task.uses[block];
        let has_room = |region: &usize| {
            let limit = task.limits[*region];
            budget.spend(uses.len() as u64);
            task.bytes(block) <= limit && uses.iter().all(|(c, bytes)| loads[*region][*c] + bytes <= limit)
        };
        let region =
            task.preferences[block].iter().copied().find(has_room).unwrap_or_else(|| task.largest(block));
        regions[block] = region;
        uses.iter().for_each(|(c, bytes)| loads[region][*c] += bytes);
    }
    regions
}
