//! Lower bounds.
//!
//! The *liveness* bound is the most bytes that are in use at one moment. If some rings fill and drain among many that
//! do not, as in DenseNet-121 with all parts, no packing reaches this bound. The *stacked* bound is higher then. The
//! blocks of a moment lie one above the other in some order, each at its distance from the one below. Finding the
//! lowest stack is a travelling salesman problem. The bound relaxes it to an assignment, which gives each block another
//! block that lies next above it. An assignment is never longer than the shortest path, and is quick to compute. This
//! bound is often the least height.
//!
//! ```
//! use csdfc_packing::{Block, Life, bound, lives};
//!
//! let life = |bytes, lower, upper| Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() };
//! // The first two buffers are in use together from 3 to 5, the last two from 6 to 8.
//! let problem = lives::problem(&[life(300, 0, 5), life(200, 3, 8), life(400, 6, 9)])?;
//! assert_eq!(bound::liveness(&problem), 600);
//! # Ok::<(), csdfc_packing::PackError>(())
//! ```

use std::cmp::Reverse;

use super::assignment;
use super::budget::Meter;
use super::problem::{Member, Problem};
use super::subproblem::Subproblem;

/// The liveness bound: the most bytes of any clique, and at least the end of any block alone. No packing takes less. It
/// takes O(members of all cliques) time.
pub fn liveness(problem: &Problem) -> u64 {
    let cliques = problem.cliques.iter().map(|clique| clique.iter().map(|m| m.high - m.low).sum());
    let ends = problem.blocks.iter().map(|block| block.offset.unwrap_or(0) + block.bytes);
    cliques.chain(ends).max().unwrap_or(0)
}

/// As [`liveness`], of a part.
pub(super) fn of_part(part: &Subproblem) -> u64 {
    let cliques = part.cliques.iter().map(|clique| clique.iter().map(|m| m.high - m.low).sum());
    let ends = part.blocks.iter().map(|block| block.offset.unwrap_or(0) + block.bytes);
    cliques.chain(ends).max().unwrap_or(0)
}

/// To find how high cliques stack takes at most this many steps, and at most one in `SHARE_OF_STACKS` of the budget.
const STEPS_OF_STACKS: u64 = 5_000_000;
const SHARE_OF_STACKS: u64 = 4;

/// The larger of [`of_part`] and the stacked bound of the cliques. It stops when the bound is `enough`, or when a part
/// of the budget is spent.
pub(super) fn of_stacks(part: &Subproblem, enough: u64, budget: &mut Meter) -> u64 {
    let used = |clique: &&Vec<Member>| clique.iter().map(|m| m.high - m.low).sum::<u64>();
    let mut cliques: Vec<&Vec<Member>> = part.cliques.iter().collect();
    cliques.sort_by_cached_key(|clique| Reverse(used(clique)));
    let end = budget.spent() + (budget.left() / SHARE_OF_STACKS).min(STEPS_OF_STACKS);
    let mut bound = of_part(part);
    for clique in cliques {
        if bound >= enough || budget.spent() >= end || budget.exhausted() {
            break;
        }
        bound = bound.max(stack(part, clique, bound, end, budget).unwrap_or(0));
    }
    bound
}

/// The stacked bound of a clique: how high its blocks stack at least. `None` if it cannot be more than `bound`, or if
/// the budget has spent `end` steps before it is found.
///
/// At the moment of the clique, the blocks lie one above another, from the ground up. If no two blocks can lie in a
/// third way, they lie in this order at all times, at their distances. So a packing is at least as high as a path
/// through all blocks is long. The shortest path is the one of an asymmetric travelling salesman. An assignment, in
/// which each block is followed by one other block in any way, is no longer than this path (Balas and Toth, Branch and
/// bound methods, in The Traveling Salesman Problem, 1985). Here the assignment maximises the bytes that are spared,
/// compared with blocks that lie wholly above each other.
fn stack(part: &Subproblem, clique: &[Member], bound: u64, end: u64, budget: &mut Meter) -> Option<u64> {
    let members: Vec<&Member> = clique.iter().filter(|member| member.low < member.high).collect();
    let whole: u64 = members.iter().map(|member| part.blocks[member.block].bytes).sum();
    if whole <= bound {
        return None;
    }
    let looks = members.len().pow(2) as u64 / assignment::LOOKS_A_STEP;
    if budget.spent() + looks > end {
        return None;
    }
    budget.spend(looks);
    let spared = |lower: &&Member| {
        let row: Vec<i64> = members.iter().map(|upper| spared(part, lower, upper)).collect();
        row.iter().any(|spared| *spared > 0).then_some(row)
    };
    let spared: Vec<Vec<i64>> = members.iter().filter_map(spared).collect();
    let spared = assignment::max_worth(&spared, end, budget)?;
    Some(whole - spared.unsigned_abs())
}

/// The bytes spared if `upper` lies next above `lower` at a moment: the size of `lower` less the distance of the two.
fn spared(part: &Subproblem, lower: &Member, upper: &Member) -> i64 {
    if lower.block == upper.block {
        return 0;
    }
    let links = &part.links[lower.block];
    let link = links.binary_search_by_key(&upper.block, |link| link.other).ok().map(|at| links[at]);
    let now = lower.high as i64 - upper.low as i64;
    let above = link.filter(|link| link.is_exact).map_or(now, |link| link.above.max(now));
    (part.blocks[lower.block].bytes as i64 - above).max(0)
}

/// Maximum number of units of the heights that are listed one by one.
const MAX_HEIGHTS: u64 = 1 << 20;

/// The heights that a packing can have at all. If all blocks are pushed down, every block lies on another one or on the
/// ground, so the height is a sum of sizes. If alignments or given offsets matter, the height is only known to be a
/// multiple of the unit.
#[derive(Debug)]
pub(super) struct Heights {
    unit: u64,
    /// For each number of units, whether it is a sum of sizes. `None` if the sums are not listed.
    sums: Option<Vec<bool>>,
}

impl Heights {
    /// The heights up to `most` bytes.
    pub fn new(part: &Subproblem, most: u64) -> Self {
        let unit = part.unit;
        let count = most / unit;
        let listed = part.easy && count.saturating_mul(part.blocks.len() as u64) <= 64 * MAX_HEIGHTS;
        let sums = (listed && count <= MAX_HEIGHTS).then(|| {
            let mut sums = vec![false; count as usize + 1];
            sums[0] = true;
            for size in part.blocks.iter().map(|block| (block.bytes / unit) as usize) {
                for to in (size..sums.len()).rev() {
                    sums[to] |= sums[to - size];
                }
            }
            sums
        });
        Heights { unit, sums }
    }

    /// The least height of at least `bytes` bytes, among the heights that were asked for.
    pub fn at_least(&self, bytes: u64) -> u64 {
        let units = bytes.div_ceil(self.unit);
        let next = self.sums.as_ref().and_then(|sums| {
            let from = usize::try_from(units).ok()?;
            sums.get(from..)?.iter().position(|is_sum| *is_sum).map(|more| units + more as u64)
        });
        next.unwrap_or(units) * self.unit
    }
}
