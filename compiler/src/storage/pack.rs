//! Packing by address: offsets for rings of known sizes and conflicts, by the best of several greedy orders.

/// A ring to be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// Size in bytes.
    pub bytes: u64,
    /// Beginning of its life.
    pub start: usize,
    /// End of its life, inclusive.
    pub end: usize,
}

/// Offsets, and the bytes that they span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// One offset per block, in bytes.
    pub offsets: Vec<u64>,
    /// End of the highest block.
    pub bytes: u64,
}

/// Places blocks so that no two which conflict overlap: the best of the greedy orders, each with first fit and best
/// fit, then mended. Ties go to the order tried first. Stops early at `bound`, below which no placement can be.
/// Offsets are sums of sizes, so they are aligned as the sizes are.
pub fn pack(blocks: &[Block], conflicts: &[Vec<usize>], bound: u64) -> Packing {
    let mut best: Option<(Packing, Vec<usize>)> = None;
    for order in orders(blocks, conflicts) {
        for fit in [Fit::First, Fit::Best] {
            let packing = place(blocks, conflicts, &order, fit);
            let done = packing.bytes <= bound;
            if best.as_ref().is_none_or(|(best, _)| packing.bytes < best.bytes) {
                best = Some((packing, order.clone()));
            }
            if done {
                break;
            }
        }
    }
    match best {
        Some((packing, order)) => mend(blocks, conflicts, bound, packing, order),
        None => Packing { offsets: Vec::new(), bytes: 0 },
    }
}

/// Most rounds of [`mend`], and most pairs of conflicting blocks that its rounds look at together.
const MENDING_ROUNDS: usize = 100;
const MENDING_WORK: usize = 1_000_000;

/// Places again and again, each time with the block that lies highest moved to the front of the order, and keeps the
/// best placement.
fn mend(
    blocks: &[Block],
    conflicts: &[Vec<usize>],
    bound: u64,
    packing: Packing,
    mut order: Vec<usize>,
) -> Packing {
    let mut best = packing.clone();
    let mut last = packing;
    let pairs: usize = conflicts.iter().map(Vec::len).sum();
    for _ in 0..MENDING_ROUNDS.min(MENDING_WORK / pairs.max(1)) {
        if best.bytes <= bound {
            break;
        }
        let highest = |i: &usize| last.offsets[*i] + blocks[*i].bytes == last.bytes;
        let Some(position) = order.iter().position(highest) else { break };
        order[..=position].rotate_right(1);
        last = place(blocks, conflicts, &order, Fit::First);
        if last.bytes < best.bytes {
            best = last.clone();
        }
    }
    best
}

#[derive(Clone, Copy)]
enum Fit {
    /// The lowest gap that is large enough.
    First,
    /// The gap that leaves least.
    Best,
}

/// The orders: by size, by area (size times life), by the pressure of a block's neighbourhood, by length of life, by
/// beginning forwards and by end backwards.
fn orders(blocks: &[Block], conflicts: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let life = |i: usize| (blocks[i].end - blocks[i].start + 1) as u128;
    let size = |i: usize| u128::from(blocks[i].bytes);
    let pressure: Vec<u128> =
        (0..blocks.len()).map(|i| size(i) + conflicts[i].iter().map(|j| size(*j)).sum::<u128>()).collect();
    let keys: [&dyn Fn(usize) -> (u128, u128); 6] = [
        &|i| (size(i), life(i)),
        &|i| (size(i) * life(i), size(i)),
        &|i| (pressure[i], size(i)),
        &|i| (life(i), size(i)),
        &|i| (u128::MAX - blocks[i].start as u128, size(i)),
        &|i| (blocks[i].end as u128, size(i)),
    ];
    keys.iter()
        .map(|key| {
            let mut order: Vec<usize> = (0..blocks.len()).collect();
            order.sort_by_key(|i| (std::cmp::Reverse(key(*i)), *i));
            order
        })
        .collect()
}

/// Places blocks in this order, each clear of the conflicting blocks placed before it.
fn place(blocks: &[Block], conflicts: &[Vec<usize>], order: &[usize], fit: Fit) -> Packing {
    let mut offsets: Vec<Option<u64>> = vec![None; blocks.len()];
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for &i in order {
        taken.clear();
        taken.extend(conflicts[i].iter().filter_map(|j| offsets[*j].map(|at| (at, at + blocks[*j].bytes))));
        taken.sort_unstable();
        let mut end = 0;
        let mut chosen: Option<(u64, u64)> = None;
        for &(from, to) in &taken {
            if from >= end + blocks[i].bytes {
                let left = from - end - blocks[i].bytes;
                if chosen.is_none_or(|(least, _)| left < least) {
                    chosen = Some((left, end));
                }
                if matches!(fit, Fit::First) {
                    break;
                }
            }
            end = end.max(to);
        }
        offsets[i] = Some(chosen.map_or(end, |(_, at)| at));
    }
    let offsets: Vec<u64> = offsets.into_iter().map(|at| at.unwrap_or(0)).collect();
    let bytes = offsets.iter().zip(blocks).map(|(at, block)| at + block.bytes).max().unwrap_or(0);
    Packing { offsets, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn overlap(a: &Block, b: &Block) -> bool {
        a.start <= b.end && b.start <= a.end
    }

    fn conflicts(blocks: &[Block]) -> Vec<Vec<usize>> {
        let with =
            |i: usize| (0..blocks.len()).filter(|j| *j != i && overlap(&blocks[i], &blocks[*j])).collect();
        (0..blocks.len()).map(with).collect()
    }

    fn bound(blocks: &[Block]) -> u64 {
        let live = |at: usize| blocks.iter().filter(|b| b.start <= at && at <= b.end).map(|b| b.bytes).sum();
        (0..32).map(live).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn placements_are_lawful(raw in prop::collection::vec((1u64..50, 0usize..20, 0usize..10), 0..24)) {
            let blocks: Vec<Block> =
                raw.iter().map(|(bytes, start, life)| Block { bytes: *bytes, start: *start, end: start + life }).collect();
            let bound = bound(&blocks);
            let packing = pack(&blocks, &conflicts(&blocks), bound);
            prop_assert!(packing.bytes >= bound);
            for (i, a) in blocks.iter().enumerate() {
                prop_assert!(packing.offsets[i] + a.bytes <= packing.bytes);
                for (j, b) in blocks.iter().enumerate().skip(i + 1) {
                    let (p, q) = (packing.offsets[i], packing.offsets[j]);
                    prop_assert!(!overlap(a, b) || p + a.bytes <= q || q + b.bytes <= p);
                }
            }
        }
    }

    #[test]
    fn a_chain_meets_its_bound() {
        let sizes = [4, 9, 2, 7, 7, 1];
        let blocks: Vec<Block> = sizes
            .iter()
            .enumerate()
            .map(|(i, bytes)| Block { bytes: *bytes, start: i, end: i + 1 })
            .collect();
        assert_eq!(pack(&blocks, &conflicts(&blocks), 14).bytes, 14);
    }
}
