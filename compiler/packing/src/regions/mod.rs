//! Packing into several memories of given sizes, *regions* in the words of a linker script: for example 128 kB of
//! tightly coupled memory, 512 kB of SRAM and 8 MB of PSRAM.
//!
//! Each block goes to one region, and to an offset there. In each region, blocks that conflict do not overlap; blocks
//! of different regions never conflict. A block costs something in each region that it may lie in, such as the time of
//! its accesses. The sum of costs is to be the least.
//!
//! ```
//! use csdfc_packing::{Block, Budget, Life, Meter, lives, regions};
//!
//! let life = |bytes, lower, upper| Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() };
//! // The first two buffers are in use together, and so are the last two.
//! let problem = lives::problem(&[life(100, 0, 5), life(60, 3, 8), life(100, 6, 9)])?;
//! // A fast memory of 120 bytes, in which the third must not lie, and a slow one of 1000.
//! let costs = [vec![Some(1), Some(10)], vec![Some(2), Some(8)], vec![None, Some(10)]];
//! let solution = regions::pack_regions(&problem, &[120, 1000], &costs, &mut Meter::new(Budget::Work(10_000)));
//! assert_eq!(solution.packing.regions, [0, 1, 1]);
//! assert_eq!((solution.packing.cost, solution.bound, solution.excess), (19, 19, 0));
//! # Ok::<(), csdfc_packing::PackError>(())
//! ```
//!
//! [`pack_regions`] works in this order:
//!
//! 1. Greedy orders give each block the cheapest region with room for it (`starts`).
//! 2. Prices of bytes give a lower bound (`prices`).
//! 3. Rounds of searches, each with more steps, find better packings and higher bounds: along time (`sweep`), among all
//!    blocks, and among a few blocks while the others keep their regions (`search`). `improve` conducts them.
//!
//! All of these first look at the bytes in use at each moment. Whether the blocks of a region pack is decided as
//! [`pack`] does.

mod improve;
mod prices;
mod search;
mod starts;
mod sweep;
mod task;

use super::budget::{Meter, Stopped};
use super::decompose::pack;
use super::problem::Problem;
use task::Task;

/// Regions and offsets of blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionPacking {
    /// By block: the region that it lies in.
    pub regions: Vec<usize>,
    /// By block: its offset in that region, in bytes.
    pub offsets: Vec<u64>,
    /// By region: the end of its highest block, in bytes.
    pub bytes: Vec<u64>,
    /// The sum of costs, in the unit of the costs that were given.
    pub cost: u64,
}

/// The best packing into regions that was found, and a bound on better ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegionSolution {
    /// The packing.
    pub packing: RegionPacking,
    /// No packing that keeps all limits costs less, in the unit of the costs. If every packing exceeds limits, this says
    /// nothing.
    pub bound: u64,
    /// Bytes by which the packing exceeds limits, 0 if it fits.
    pub excess: u64,
    /// Why it ended. [`Stopped::Complete`] says that the cost is the least, or, if the packing exceeds limits, that
    /// every packing does.
    pub stopped: Stopped,
    /// Steps done, as in [`Solution::work`](super::Solution::work).
    pub work: u64,
}

/// Packs blocks into regions of at most `limits` bytes each, where `costs` is what a block costs in a region, by block
/// and then by region, in any unit; `None` where it must not lie. Costs add up to less than 2^64. It ends early when the
/// cost is proven to be the least. The problem is NP-hard. More than 1000 blocks are only packed greedily.
///
/// Of greedy packings that cost the same, the one is kept that takes fewer bytes in total, and then the one that uses
/// earlier regions. In the end, each region is packed as low as a part of the budget allows.
///
/// If nothing is found that keeps the limits, the largest of the regions that a block may lie in takes what fits nowhere
/// else.
///
/// Offsets are counted from the beginning of each region, which is aligned as its blocks ask. A given offset
/// ([`Block::offset`](super::Block::offset)) names no region, and is ignored.
///
/// The same problem and budget of steps give the same packing on every machine. Greedy orders and the trials that have
/// begun may take a few more steps than the budget.
///
/// # Panics
/// If there is not one entry of `costs` for each block and region, or a block that may lie in no region.
pub fn pack_regions(
    problem: &Problem,
    limits: &[u64],
    costs: &[Vec<Option<u64>>],
    budget: &mut Meter,
) -> RegionSolution {
    let is_complete =
        costs.len() == problem.blocks.len() && costs.iter().all(|row| row.len() == limits.len());
    assert!(is_complete, "each block has a cost in each region that it may lie in");
    let has_a_region = |row: &Vec<Option<u64>>| row.iter().any(Option::is_some);
    assert!(!limits.is_empty() && costs.iter().all(has_a_region), "blocks need a region");
    let before = budget.spent();
    let mut problem = problem.clone();
    problem.blocks.iter_mut().for_each(|block| block.offset = None);
    let task = Task::new(&problem, limits, costs);
    if let [limit] = *limits {
        let solution = pack(&problem, budget);
        let packing = task.packing(vec![0; costs.len()], solution.packing.offsets);
        let excess = task.excess(&packing);
        let is_decided = excess == 0 || solution.bound > limit;
        return RegionSolution {
            stopped: if is_decided { Stopped::Complete } else { solution.stopped },
            work: solution.work,
            bound: packing.cost,
            packing,
            excess,
        };
    }
    let bound = task.least_costs();
    let best = starts::best(&task, bound, budget);
    let (best, known) = improve::improve(&task, best, bound, budget);
    let packing = task.tightened(best, budget);
    let excess = task.excess(&packing);
    let is_decided = known.is_none_or(|known| excess == 0 && packing.cost <= known);
    RegionSolution {
        stopped: if is_decided { Stopped::Complete } else { budget.reason() },
        work: budget.spent() - before,
        packing,
        bound: known.unwrap_or(bound),
        excess,
    }
}
