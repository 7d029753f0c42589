//! Packing by address: the rings of an application as a packing problem.

use csdfc_packing::{self, Block, Budget, Link, Member, Meter, Packing, Problem};

use super::item::{Item, Stored};
use super::moments::RowByRow;
use super::{Effort, Peak, Storage, distance};

/// Steps of the complete searches, for a plan that is one of thousands, one of many, one of a few, and for the plan
/// that is kept.
const SKETCH_STEPS: u64 = 50_000;
const CANDIDATE_STEPS: u64 = 300_000;
const FRONT_STEPS: u64 = 3_000_000;
const FINAL_STEPS: u64 = 30_000_000;

/// A packing of rings, and a bound on better ones.
pub(super) struct Placed {
    pub packing: Packing,
    /// No placement takes fewer bytes.
    pub least: u64,
}

/// Steps of the search that finds out how low the rings could lie if more layers made their rows one by one.
const STEPS_BEYOND: u64 = 3_000_000;

/// Steps of the complete searches.
pub(super) fn steps(effort: Effort) -> u64 {
    match effort {
        Effort::Sketch => SKETCH_STEPS,
        Effort::Candidate => CANDIDATE_STEPS,
        Effort::Front => FRONT_STEPS,
        Effort::Final => FINAL_STEPS,
    }
}

/// Places rings such that no two use an address at the same time, and only chosen layers make rows one by one at a
/// price. `peak` is the liveness bound.
pub(super) fn pack(storage: &Storage<'_>, items: &[Item<'_>], peak: &Peak, effort: Effort) -> Placed {
    let steps = steps(effort);
    let Some(chosen) = problem(storage, items, peak, RowByRow::Chosen) else {
        // The sum only overflows for sizes beyond any memory.
        return Placed { packing: stacked(items), least: peak.bytes };
    };
    let best = csdfc_packing::pack(&chosen, &mut Meter::new(Budget::Work(steps)));
    let is_all = storage.executions.iter().all(|e| e.one_by_one.len() == e.sharing.costly.len());
    let least = match effort {
        _ if is_all => best.bound,
        Effort::Final if best.packing.bytes > peak.bytes => {
            let all = problem(storage, items, peak, RowByRow::All);
            let below = best.packing.bytes - 1;
            all.map_or(0, |all| bound_beyond(&all, below)).min(best.packing.bytes)
        }
        _ => 0,
    };
    Placed { packing: best.packing, least: least.max(peak.bytes) }
}

/// A lower bound of all packings: more than `below` if none fits so many bytes, else as high as the search gets.
fn bound_beyond(problem: &Problem, below: u64) -> u64 {
    let budget = &mut Meter::new(Budget::Work(STEPS_BEYOND));
    let decided = csdfc_packing::decide(problem, below, budget);
    match decided.packing.bytes <= below {
        true => csdfc_packing::pack(problem, budget).bound.max(decided.bound),
        false => decided.bound,
    }
}

/// Rings as a packing problem. `None` if their sizes are beyond any memory.
pub(super) fn problem(
    storage: &Storage<'_>,
    items: &[Item<'_>],
    peak: &Peak,
    row_by_row: RowByRow,
) -> Option<Problem> {
    let links = distance::links(storage, items, row_by_row);
    let mut sets: Vec<Vec<Stored>> = (0..storage.executions.len())
        .flat_map(|cnn| storage.line(items, cnn, row_by_row).fullest(&storage.while_running(items, cnn)))
        .collect();
    if at_once(&peak.stored, &links) {
        sets.push(peak.stored.clone());
    }
    let block =
        |item: &Item<'_>| Block { alignment: item.request.alignment, ..Block::of_bytes(item.request.bytes) };
    let blocks: Vec<Block> = items.iter().map(block).collect();
    let member =
        |stored: &Stored| Member { block: stored.item, low: stored.bytes.start, high: stored.bytes.end };
    let sets = sets.iter().map(|set| set.iter().map(member).collect()).collect();
    Problem::from_links(blocks, links, sets).ok()
}

/// Whether rings are in use at one moment, pair by pair.
fn at_once(stored: &[Stored], links: &[Vec<Link>]) -> bool {
    let meet = |a: usize, b: usize| links[a].iter().any(|link| link.other == b);
    stored.iter().enumerate().all(|(at, one)| stored[at + 1..].iter().all(|other| meet(one.item, other.item)))
}

/// One ring above the other.
pub(super) fn stacked(items: &[Item<'_>]) -> Packing {
    let mut bytes = 0u64;
    let place = |item: &Item<'_>| {
        let at = bytes.checked_next_multiple_of(item.request.alignment).unwrap_or(u64::MAX);
        bytes = at.saturating_add(item.request.bytes);
        at
    };
    let offsets = items.iter().map(place).collect();
    Packing { offsets, bytes }
}
