//! Problems stated as lives. A life says from when to when a buffer is in use, and which bytes of it.
//!
//! A buffer may lie in the gap of another one's life:
//!
//! ```
//! use csdfc_packing::{Block, Budget, Gap, Life, Meter, lives, pack};
//!
//! let life = |bytes, lower, upper, gaps| Life { block: Block::of_bytes(bytes), lower, upper, gaps };
//! let gap = Gap { lower: 4, upper: 6, window: None };
//! let problem = lives::problem(&[life(300, 0, 10, vec![gap]), life(200, 4, 6, Vec::new())])?;
//! let solution = pack(&problem, &mut Meter::new(Budget::Work(1_000)));
//! assert_eq!(solution.packing.offsets, [0, 0]);
//! assert_eq!(solution.packing.bytes, 300);
//! # Ok::<(), csdfc_packing::PackError>(())
//! ```

use super::problem::{Block, Link, MAX_PAIRS, Member, PackError, Problem};

/// A buffer and when it is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The buffer.
    pub block: Block,
    /// When it begins.
    pub lower: i64,
    /// The end of the life, which is not included. If it is not after `lower`, the buffer is never in use.
    pub upper: i64,
    /// Times within, in order and apart from each other, at which it is in use in part or not at all.
    pub gaps: Vec<Gap>,
}

/// A time within a life at which the buffer is in use in part or not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// When it begins.
    pub lower: i64,
    /// When it has ended.
    pub upper: i64,
    /// The bytes of the buffer that are in use even then, half-open, from its beginning.
    pub window: Option<(u64, u64)>,
}

/// A stretch of time in which the same bytes of a buffer are in use.
#[derive(Debug, Clone, Copy)]
struct Piece {
    lower: i64,
    upper: i64,
    low: u64,
    high: u64,
}

/// The problem of packing these buffers, in their order.
///
/// # Errors
/// Those of [`Problem::new`], and [`PackError::TooManyPairs`].
pub fn problem(lives: &[Life]) -> Result<Problem, PackError> {
    let blocks: Vec<Block> = lives.iter().map(|life| life.block).collect();
    let pieces: Vec<Vec<Piece>> = lives.iter().map(pieces).collect();
    let mut links = vec![Vec::new(); lives.len()];
    let mut order: Vec<usize> = (0..lives.len()).filter(|i| !pieces[*i].is_empty()).collect();
    order.sort_by_key(|i| pieces[*i][0].lower);
    // The buffers that begin after buffer `at` of the order and before its end.
    let later = |at: usize| {
        let (end, rest) = (pieces[order[at]].last().map_or(0, |last| last.upper), &order[at + 1..]);
        &rest[..rest.partition_point(|j| pieces[*j][0].lower < end)]
    };
    if (0..order.len()).map(|at| later(at).len()).sum::<usize>() > MAX_PAIRS {
        return Err(PackError::TooManyPairs);
    }
    for (at, &i) in order.iter().enumerate() {
        for &j in later(at) {
            let Some((above, below, is_exact)) = min_distance(&pieces[i], &pieces[j]) else { continue };
            links[i].push(Link { other: j, above, below, is_exact });
            links[j].push(Link { other: i, above: below, below: above, is_exact });
        }
    }
    Problem::from_links(blocks, links, cliques(&pieces))
}

fn pieces(life: &Life) -> Vec<Piece> {
    let whole = |lower, upper| Piece { lower, upper, low: 0, high: life.block.bytes };
    let mut pieces = Vec::new();
    let mut from = life.lower;
    for gap in &life.gaps {
        pieces.push(whole(from, gap.lower));
        if let Some((low, high)) = gap.window {
            pieces.push(Piece { lower: gap.lower, upper: gap.upper, low, high });
        }
        from = gap.upper;
    }
    pieces.push(whole(from, life.upper));
    pieces.retain(|piece| piece.lower < piece.upper && piece.low < piece.high);
    pieces
}

/// For two buffers that are in use together at some time: by how much at least the second must lie above the first, or
/// else the first above the second; and whether these are the only ways (the second could also lie above at one time
/// and below at another).
fn min_distance(first: &[Piece], second: &[Piece]) -> Option<(i64, i64, bool)> {
    let mut forbidden = Vec::new();
    let (mut a, mut b) = (0, 0);
    while let (Some(p), Some(q)) = (first.get(a), second.get(b)) {
        if p.lower < q.upper && q.lower < p.upper {
            // The second offset minus the first must not lie between these two.
            forbidden.push((i128::from(p.low) - i128::from(q.high), i128::from(p.high) - i128::from(q.low)));
        }
        if p.upper <= q.upper {
            a += 1;
        } else {
            b += 1;
        }
    }
    let below = forbidden.iter().map(|(from, _)| -from).max()?;
    let above = forbidden.iter().map(|(_, to)| *to).max()?;
    forbidden.sort_unstable();
    let mut reach = forbidden[0].1;
    let mut is_exact = true;
    for (from, to) in forbidden {
        is_exact &= from < reach || reach == above;
        reach = reach.max(to);
    }
    Some((i64::try_from(above).ok()?, i64::try_from(below).ok()?, is_exact))
}

/// The cliques: the pieces in use at one moment. A moment is left out if its pieces are a subset of those at the moment
/// before or after.
fn cliques(pieces: &[Vec<Piece>]) -> Vec<Vec<Member>> {
    let mut events: Vec<(i64, bool, usize, Piece)> = Vec::new();
    for (block, pieces) in pieces.iter().enumerate() {
        for piece in pieces {
            events.push((piece.lower, true, block, *piece));
            events.push((piece.upper, false, block, *piece));
        }
    }
    // At the same time, ends come before begins.
    events.sort_unstable_by_key(|(at, begins, block, _)| (*at, *begins, *block));
    let mut active: Vec<Member> = Vec::new();
    let mut cliques = Vec::new();
    let mut grown = false;
    for (_, begins, block, piece) in events {
        if begins {
            active.push(Member { block, low: piece.low, high: piece.high });
        } else {
            if std::mem::take(&mut grown) {
                cliques.push(active.clone());
            }
            active.retain(|member| member.block != block);
        }
        grown |= begins;
    }
    cliques
}
