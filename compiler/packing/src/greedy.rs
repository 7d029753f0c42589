//! Greedy packings: blocks come in some order, and each goes into the lowest or the tightest gap among those before it.
//! A packing in a given order takes O(n · d · log d) time for n blocks of d neighbours each.
//!
//! ```
//! use csdfc_packing::{Block, Life, greedy, lives};
//!
//! let life = |bytes, lower, upper| Life { block: Block::of_bytes(bytes), lower, upper, gaps: Vec::new() };
//! // The largest buffer lies at 0. The other two are in use one after the other, and share the bytes above it.
//! let problem = lives::problem(&[life(200, 0, 5), life(300, 0, 10), life(100, 5, 10)])?;
//! let packing = greedy::by_size(&problem);
//! assert_eq!((packing.offsets, packing.bytes), (vec![300, 0, 300], 500));
//! # Ok::<(), csdfc_packing::PackError>(())
//! ```

use std::cmp::Reverse;

use super::problem::{Block, Link, Member, Packing, Problem};
use super::subproblem::Subproblem;

/// The usual baseline: the largest block comes first, and each goes into the gap that it fits tightest.
pub fn by_size(problem: &Problem) -> Packing {
    let part = Subproblem::new(problem, &(0..problem.blocks.len()).collect::<Vec<_>>());
    let mut order: Vec<usize> = (0..part.blocks.len()).collect();
    order.sort_by_key(|i| (Reverse(part.blocks[*i].bytes), *i));
    place(&part, &order, Fit::Tightest)
}

/// The best packing of several orders, each tried with both fits and then mended. If blocks are in use in part,
/// packings from the top downwards are tried as well. Of equal packings, the first is kept. It stops when a packing has
/// a height of `enough`.
pub(super) fn portfolio(part: &Subproblem, enough: u64) -> Packing {
    let best = upwards(part, enough);
    if best.bytes <= enough || part.easy || !part.free {
        return best;
    }
    let downwards = upwards(&upside_down(part), enough);
    if downwards.bytes >= best.bytes {
        return best;
    }
    let from_top = |(at, block): (&u64, &Block)| downwards.bytes - at - block.bytes;
    let offsets = downwards.offsets.iter().zip(&part.blocks).map(from_top).collect();
    Packing { offsets, bytes: downwards.bytes }
}

/// The part upside down: each of its packings, turned over, is a packing of this part.
fn upside_down(part: &Subproblem) -> Subproblem {
    let size = |i: usize| part.blocks[i].bytes as i64;
    let turn = |i: usize, link: &Link| Link {
        above: link.below + size(i) - size(link.other),
        below: link.above + size(link.other) - size(i),
        ..*link
    };
    let links = part.links.iter().enumerate();
    let links = links.map(|(i, links)| links.iter().map(|link| turn(i, link)).collect()).collect();
    let member = |member: &Member| {
        let bytes = part.blocks[member.block].bytes;
        Member { low: bytes - member.high, high: bytes - member.low, ..*member }
    };
    let cliques = part.cliques.iter().map(|clique| clique.iter().map(member).collect()).collect();
    Subproblem { blocks: part.blocks.clone(), links, cliques, rise: part.rise.clone(), ..*part }
}

fn upwards(part: &Subproblem, enough: u64) -> Packing {
    let mut best: Option<(Packing, Vec<usize>)> = None;
    for order in orders(part) {
        for fit in [Fit::Lowest, Fit::Tightest] {
            let packing = place(part, &order, fit);
            let done = packing.bytes <= enough;
            if best.as_ref().is_none_or(|(best, _)| packing.bytes < best.bytes) {
                best = Some((packing, order.clone()));
            }
            if done {
                break;
            }
        }
    }
    match best {
        Some((packing, order)) => mend(part, enough, packing, order),
        None => Packing { offsets: Vec::new(), bytes: 0 },
    }
}

/// Maximum number of rounds of [`mend`], and of links that its rounds look at together.
const MENDING_ROUNDS: usize = 30;
const MENDING_WORK: usize = 1_000_000;

/// Places the blocks again and again, and keeps the best placement. Each time, the block that lies highest moves to the
/// front of the order.
fn mend(part: &Subproblem, enough: u64, packing: Packing, mut order: Vec<usize>) -> Packing {
    let mut best = packing.clone();
    let mut last = packing;
    let links: usize = part.links.iter().map(Vec::len).sum();
    for _ in 0..MENDING_ROUNDS.min(MENDING_WORK / links.max(1)) {
        if best.bytes <= enough {
            break;
        }
        let highest = |i: &usize| last.offsets[*i] + part.blocks[*i].bytes == last.bytes;
        let Some(position) = order.iter().position(highest) else { break };
        order[..=position].rotate_right(1);
        last = place(part, &order, Fit::Lowest);
        if last.bytes < best.bytes {
            best = last.clone();
        }
    }
    best
}

#[derive(Clone, Copy, PartialEq)]
enum Fit {
    /// The lowest gap that is large enough.
    Lowest,
    /// The gap that leaves least.
    Tightest,
}

/// The orders: by size, by area (size times life), by the pressure of a block's neighbourhood, by length of life, by
/// beginning forwards and by end backwards. Time is counted in cliques. If blocks are in use in part, there are two
/// more orders, by number backwards and forwards. The reason: a block that fills while another drains mostly lies below
/// it, and mostly has the higher number.
fn orders(part: &Subproblem) -> Vec<Vec<usize>> {
    let mut lives = vec![(u64::MAX, 0); part.blocks.len()];
    for (at, clique) in (0u64..).zip(&part.cliques) {
        for member in clique {
            let (first, last) = &mut lives[member.block];
            *first = at.min(*first);
            *last = at;
        }
    }
    let life = |i: usize| u128::from(lives[i].1.saturating_sub(lives[i].0) + 1);
    let size = |i: usize| u128::from(part.blocks[i].bytes);
    let pressure = |i: usize| size(i) + part.links[i].iter().map(|link| size(link.other)).sum::<u128>();
    let keys: [&dyn Fn(usize) -> (u128, u128); 6] = [
        &|i| (size(i), life(i)),
        &|i| (size(i) * life(i), size(i)),
        &|i| (pressure(i), size(i)),
        &|i| (life(i), size(i)),
        &|i| (u128::from(u64::MAX - lives[i].0), size(i)),
        &|i| (u128::from(lives[i].1), size(i)),
    ];
    let order = |key: &&dyn Fn(usize) -> (u128, u128)| {
        let mut order: Vec<usize> = (0..part.blocks.len()).collect();
        order.sort_by_cached_key(|i| (Reverse(key(*i)), *i));
        order
    };
    let mut orders: Vec<Vec<usize>> = keys.iter().map(order).collect();
    if !part.easy {
        orders.push((0..part.blocks.len()).rev().collect());
        orders.push((0..part.blocks.len()).collect());
    }
    orders
}

/// Places blocks in this order, those with given offsets before all others.
fn place(part: &Subproblem, order: &[usize], fit: Fit) -> Packing {
    let mut offsets: Vec<Option<u64>> = part.blocks.iter().map(|block| block.offset).collect();
    for &i in order {
        if offsets[i].is_none() {
            offsets[i] = Some(fitting(part, i, &offsets, fit));
        }
    }
    let offsets: Vec<u64> = offsets.into_iter().map(|at| at.unwrap_or(0)).collect();
    let bytes = offsets.iter().zip(&part.blocks).map(|(at, block)| at + block.bytes).max().unwrap_or(0);
    Packing { offsets, bytes }
}

/// The lowest offset at which a block is clear of the neighbours that are placed.
pub(super) fn lowest(part: &Subproblem, block: usize, offsets: &[Option<u64>]) -> u64 {
    fitting(part, block, offsets, Fit::Lowest)
}

fn fitting(part: &Subproblem, block: usize, offsets: &[Option<u64>], fit: Fit) -> u64 {
    let alignment = part.blocks[block].alignment;
    // Offsets between these two, both excluded, would overlap. An end below 0 limits nothing.
    let placed = part.links[block].iter().filter_map(|link| offsets[link.other].map(|at| (link, at)));
    let mut taken: Vec<(Option<u64>, u64)> = Vec::with_capacity(part.links[block].len());
    taken.extend(
        placed.map(|(link, at)| (at.checked_add_signed(-link.above), at.saturating_add_signed(link.below))),
    );
    taken.sort_unstable();
    let mut free = 0;
    let mut chosen: Option<(u64, u64)> = None;
    for (from, to) in taken {
        if let Some(left) = from.and_then(|from| from.checked_sub(free)) {
            if chosen.is_none_or(|(least, _)| left < least) {
                chosen = Some((left, free));
            }
            if fit == Fit::Lowest {
                break;
            }
        }
        free = free.max(to.next_multiple_of(alignment));
    }
    chosen.map_or(free, |(_, at)| at)
}
