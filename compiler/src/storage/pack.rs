//! Packing by address: the rings of an application as a packing problem.

use crate::packing::{self, Block, Budget, Limit, Packing, Problem, Solution, Stopped};

use super::{Effort, Item, Storage};

/// Steps of the complete search for a plan that is one of many, and for one that is kept.
const CANDIDATE_STEPS: u64 = 20_000;
const FINAL_STEPS: u64 = 30_000_000;

/// Places rings so that no two which conflict overlap. `peak` are rings that are all stored at once.
///
/// Offsets are sums of sizes, so they are aligned as the sizes are.
pub(super) fn pack(storage: &Storage<'_>, items: &[Item<'_>], peak: &[usize], effort: Effort) -> Solution {
    let blocks: Vec<Block> = items.iter().map(|item| Block::of_bytes(item.request.bytes)).collect();
    let mut cliques: Vec<Vec<usize>> =
        (0..storage.executions.len()).flat_map(|cnn| moments(items, cnn)).collect();
    let conflicts = storage.conflicts(items);
    let meet = |i: &usize, j: &usize| conflicts[*i].binary_search(j).is_ok();
    if peak.iter().enumerate().all(|(at, i)| peak[at + 1..].iter().all(|j| meet(i, j))) {
        cliques.push(peak.to_vec());
    }
    let steps = match effort {
        Effort::Candidate => CANDIDATE_STEPS,
        Effort::Final => FINAL_STEPS,
    };
    match Problem::new(blocks, &conflicts, &cliques) {
        Ok(problem) => packing::pack(&problem, &mut Budget::new(Limit::Work(steps))),
        // Only sizes that no memory has add up to too much.
        Err(_) => {
            let packing = stacked(items);
            Solution { packing, bound: 0, stopped: Stopped::Complete, work: 0 }
        }
    }
}

/// The rings stored at each firing of a CNN after which one ends and before which one began.
fn moments(items: &[Item<'_>], cnn: usize) -> Vec<Vec<usize>> {
    let own: Vec<usize> = (0..items.len()).filter(|i| items[*i].cnn == cnn).collect();
    let mut events: Vec<(usize, bool, usize)> = Vec::new();
    for &i in &own {
        let (first, last) = items[i].request.live;
        events.push((first, false, i));
        events.push((last, true, i));
    }
    // What begins goes before what ends at the same firing: both are stored then.
    events.sort_unstable();
    let mut live: Vec<usize> = Vec::new();
    let mut moments = Vec::new();
    let mut grown = false;
    for (_, ends, i) in events {
        if ends {
            if std::mem::take(&mut grown) {
                moments.push(live.clone());
            }
            live.retain(|other| *other != i);
        } else {
            live.push(i);
            grown = true;
        }
    }
    moments
}

/// One ring above the other.
fn stacked(items: &[Item<'_>]) -> Packing {
    let mut bytes = 0u64;
    let place = |item: &Item<'_>| {
        let at = bytes;
        bytes = bytes.saturating_add(item.request.bytes);
        at
    };
    let offsets = items.iter().map(place).collect();
    Packing { offsets, bytes }
}
