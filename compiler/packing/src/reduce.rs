//! Blocks that fit wherever the others lie, and so can be left out of a search.

use super::graph::BitSet;
use super::greedy;
use super::problem::Link;
use super::subproblem::Subproblem;

/// A block left out.
#[derive(Debug, Clone, Copy)]
struct Removed {
    block: usize,
    /// The block at whose offset it goes. `None` if it goes wherever there is room.
    host: Option<usize>,
}

/// The blocks that remain of a part, and how to put the others back.
#[derive(Debug)]
pub(super) struct Reduction {
    /// The blocks that remain, ascending.
    pub rest: Vec<usize>,
    removed: Vec<Removed>,
}

/// Leaves out one block after another. A block can be left out if it is
/// - *hosted*: another block is as large, is not in use at the same time, and conflicts with all blocks with which this
///   one conflicts, at no smaller distances. Then this block can lie where the other block lies;
/// - *loose*: wherever its neighbours lie, some offset below `height` is free.
///
/// Neither changes the least height, if that is at least `height`. The part must be unfixed.
pub(super) fn reduce(part: &Subproblem, neighbours: &[BitSet], height: u64) -> Reduction {
    let count = part.blocks.len();
    let mut present = vec![true; count];
    // Neighbours that are still there.
    let mut near = neighbours.to_vec();
    let mut removed = Vec::new();
    loop {
        let before = removed.len();
        for b in 0..count {
            if !present[b] {
                continue;
            }
            let fits = |a: &usize| present[*a] && hosts(part, &near, *a, b);
            // A host conflicts with all neighbours, so it is among the neighbours of each of them.
            let host = match near[b].first() {
                Some(neighbour) => near[neighbour].iter().find(fits),
                None => (0..count).find(fits),
            };
            if host.is_some() || is_loose(part, &near[b], b, height) {
                removed.push(Removed { block: b, host });
                present[b] = false;
                for link in &part.links[b] {
                    near[link.other].remove(b);
                }
            }
        }
        if removed.len() == before {
            break;
        }
    }
    Reduction { rest: (0..count).filter(|i| present[*i]).collect(), removed }
}

fn hosts(part: &Subproblem, near: &[BitSet], a: usize, b: usize) -> bool {
    let (host, block) = (part.blocks[a], part.blocks[b]);
    let is_aligned = host.alignment.is_multiple_of(block.alignment);
    let fits = a != b && is_aligned && block.bytes <= host.bytes && !near[b].contains(a);
    fits && near[b].is_subset(&near[a]) && (part.easy || as_far(part, &near[b], a, b))
}

/// Whether `a` lies as far from each of these as `b` must.
fn as_far(part: &Subproblem, near: &BitSet, a: usize, b: usize) -> bool {
    let of_b = part.links[b].iter().filter(|link| near.contains(link.other));
    of_b.into_iter().all(|link| {
        let of_a = part.links[a].binary_search_by_key(&link.other, |link| link.other);
        of_a.is_ok_and(|at| part.links[a][at].above >= link.above && part.links[a][at].below >= link.below)
    })
}

fn is_loose(part: &Subproblem, near: &BitSet, b: usize, height: u64) -> bool {
    let size = part.blocks[b].bytes;
    let Some(room) = height.checked_sub(size) else { return false };
    let present = part.links[b].iter().filter(|link| near.contains(link.other));
    // Offsets are multiples of the unit, or of the alignment at least.
    let step = if part.free { part.unit } else { part.blocks[b].alignment };
    // A neighbour that may lie in more ways than above and below leaves at least these offsets.
    let blocked = |link: &Link| {
        let between = link.above.saturating_add(link.below).unsigned_abs();
        if part.free { between / step - 1 } else { between.saturating_sub(1).div_ceil(step) }
    };
    let blocked = present.map(blocked).fold(0, u64::saturating_add);
    blocked < room / step + 1
}

impl Reduction {
    /// Places the blocks that were left out among the placed ones.
    pub fn restore(&self, part: &Subproblem, offsets: &mut [Option<u64>]) {
        for removed in self.removed.iter().rev() {
            let at = removed.host.and_then(|host| offsets[host]);
            offsets[removed.block] = Some(at.unwrap_or_else(|| greedy::lowest(part, removed.block, offsets)));
        }
    }
}
