//! Lower bounds.

use super::part::Part;
use super::{Member, Problem};

/// Bytes that some moment needs: the most of any clique, block or given address. No packing takes less.
pub fn liveness(problem: &Problem) -> u64 {
    let cliques = problem.cliques.iter().map(|clique| clique.iter().map(|m| m.high - m.low).sum());
    let ends = problem.blocks.iter().map(|block| block.offset.unwrap_or(0) + block.bytes);
    cliques.chain(ends).max().unwrap_or(0)
}

/// As [`liveness`], of some of the blocks, given ascending.
pub(super) fn of_blocks(problem: &Problem, ids: &[usize]) -> u64 {
    let here = |m: &&Member| ids.binary_search(&m.block).is_ok();
    let cliques =
        problem.cliques.iter().map(|clique| clique.iter().filter(here).map(|m| m.high - m.low).sum());
    let ends = ids.iter().map(|i| problem.blocks[*i]).map(|block| block.offset.unwrap_or(0) + block.bytes);
    cliques.chain(ends).max().unwrap_or(0)
}

/// As [`liveness`], of a part.
pub(super) fn of_part(part: &Part) -> u64 {
    let cliques = part.cliques.iter().map(|clique| clique.iter().map(|m| m.high - m.low).sum());
    let ends = part.blocks.iter().map(|block| block.offset.unwrap_or(0) + block.bytes);
    cliques.chain(ends).max().unwrap_or(0)
}

/// Most units of the heights that are listed one by one.
const MOST_HEIGHTS: u64 = 1 << 20;

/// The heights that a packing can have at all. Pushed down, every block lies on another or on the ground, so that the
/// highest end is a sum of sizes; where alignments or given offsets matter, it is only known to be a multiple of the
/// unit and of nothing else.
#[derive(Debug)]
pub(super) struct Heights {
    unit: u64,
    /// Whether so many units are a sum of sizes, where these are listed.
    sums: Option<Vec<bool>>,
}

impl Heights {
    /// The heights up to `most` bytes.
    pub fn new(part: &Part, most: u64) -> Self {
        let unit = part.unit;
        let count = most / unit;
        let listed = part.easy && count.saturating_mul(part.blocks.len() as u64) <= 64 * MOST_HEIGHTS;
        let sums = (listed && count <= MOST_HEIGHTS).then(|| {
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

    /// The least height of at least so many bytes, within those that were asked for.
    pub fn at_least(&self, bytes: u64) -> u64 {
        let units = bytes.div_ceil(self.unit);
        let next = self.sums.as_ref().and_then(|sums| {
            let from = usize::try_from(units).ok()?;
            sums.get(from..)?.iter().position(|is_sum| *is_sum).map(|more| units + more as u64)
        });
        next.unwrap_or(units) * self.unit
    }
}
