//! The least height of a part that cannot be taken apart.
//!
//! Greedy orders come first. If they miss the liveness bound, they may still meet the stacked bound ([`bound`]). Then
//! come complete searches:
//!
//! - [`zones`] goes along time. With few zones it is the quickest way to a good packing, also for a sketch. With all
//!   zones it proves that no packing is lower. Chains of segments need that: few rings live at once there, and they
//!   fill while others drain, so the liveness bound is often out of reach.
//! - [`search`] goes upwards. If all blocks are in use as a whole, it is complete, and better than `zones`. Otherwise
//!   it may not know every way in which two blocks can lie. Then it proves nothing if it finds nothing.
//! - [`skyline`](super::skyline) takes turns with `search` where lives lie on one line of time. It finds packings of
//!   many blocks without waste. It proves nothing, since it stores only hashes of the sets that failed.
//!
//! All limits are counted in steps. A clock is looked at only if `--budget` names a time.

use std::cmp::Reverse;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::bound::{self, Heights};
use super::budget::Meter;
use super::goal::Goal;
use super::graph::BitSet;
use super::line::TimeLine;
use super::problem::Packing;
use super::search::{self, Answer, Tightest};
use super::skyline::{Attempt, Skyline};
use super::subproblem::{MAX_BLOCKS, Subproblem};
use super::{greedy, zones};

/// Steps of the first search for each height; each round over all heights doubles them.
const FIRST_STEPS: u64 = 50_000;

/// How often each round searches at the lowest height that is not refuted. The reason: packings without waste are
/// common.
const TRIES_OF_FLOOR: usize = 4;

/// Steps of the search along a line for each one of a search for a height.
const LINE_STEPS: u64 = 16;

/// Packs a part as low as the budget allows, but no lower than the goal. Also returns a height below which it cannot be
/// packed.
pub(super) fn optimum(
    part: &Subproblem,
    neighbours: &[BitSet],
    goal: Goal,
    budget: &mut Meter,
) -> (Packing, u64) {
    let mut bound = bound::of_part(part);
    let mut best = greedy::portfolio(part, bound.max(goal.enough));
    if best.bytes <= bound.max(goal.enough) || part.blocks.len() > MAX_BLOCKS {
        return (best, bound);
    }
    bound = bound::of_stacks(part, best.bytes, budget);
    if best.bytes <= bound {
        return (best, bound);
    }
    let heights = Heights::new(part, best.bytes);
    // The search finds nothing below this. It is a bound if the search knows every way.
    let mut floor = heights.at_least(bound);
    along_time(part, &heights, goal, &mut best, &mut floor, budget);
    if part.two_ways {
        bound = floor;
    }
    let mut steps = FIRST_STEPS;
    let mut tries = Tries::new(part);
    let mut line = LineSearch { line: TimeLine::new(part), begun: None };
    let decided = |best: &Packing, floor: u64| best.bytes <= floor.max(goal.enough) || floor > goal.give_up;
    while !decided(&best, floor) && !budget.exhausted() {
        // Heights that this round has not settled are tried again for longer: the floor itself, then halfway to the
        // best.
        let mut from = floor;
        let mut again = TRIES_OF_FLOOR;
        // Heights close to each other are refuted by leaps.
        let mut leap = 0;
        while from < best.bytes && !decided(&best, floor) && !budget.exhausted() {
            let half = from + (best.bytes - 1 - from) / 2;
            let height = if from == floor { half.min(floor + leap) } else { half };
            let height = height.max(goal.enough);
            let (order, tightest) = tries.next();
            match search::search(part, neighbours, &order, tightest, height, steps, budget) {
                Answer::Packed(offsets) => {
                    best = packing(part, offsets);
                    leap = 0;
                }
                Answer::Impossible => {
                    floor = heights.at_least(height + 1).min(best.bytes);
                    from = floor;
                    leap = (2 * leap).max(part.unit);
                }
                Answer::Unknown if from == floor && leap > 0 => leap = 0,
                Answer::Unknown if from == floor && again > 1 => again -= 1,
                Answer::Unknown => from = height + 1,
            }
        }
        let height = floor.max(goal.enough);
        if !decided(&best, floor)
            && let Some(offsets) = line.search(height, steps.saturating_mul(LINE_STEPS), budget)
        {
            best = packing(part, offsets);
        }
        steps = steps.saturating_mul(2);
    }
    if part.exact {
        bound = floor;
    }
    (best, bound)
}

/// The numbers of zones that the first and the last round of searches along time keep.
const WIDTHS: std::ops::RangeInclusive<usize> = 4..=2048;
const WIDER: usize = 4;

/// Maximum number of steps of searches along time.
const STEPS_ALONG_TIME: u64 = 20_000_000;

/// After a search that settled nothing, the next heights are skipped: this fraction, one in 64, of the gap to the best.
/// Rounds that keep more zones try them again.
const COARSENESS: u64 = 64;

/// Searches along time, with more zones in each round, for at most half of the budget. It first tries the floor, which
/// often is the least height. Then it tries the height just below the best, because the best often is the least height
/// itself. Then it tries heights halfway.
fn along_time(
    part: &Subproblem,
    heights: &Heights,
    goal: Goal,
    best: &mut Packing,
    floor: &mut u64,
    budget: &mut Meter,
) {
    // Where all blocks are in use as a whole, the search by offset is the better one.
    if part.easy || !part.unfixed {
        return;
    }
    let orders = [true, false].map(|large_first| in_time(part, large_first));
    let end = budget.spent() + (budget.left() / 2).min(STEPS_ALONG_TIME);
    let mut width = *WIDTHS.start();
    while width <= *WIDTHS.end() {
        for order in &orders {
            let mut from = *floor;
            let mut tries = 0;
            while from < best.bytes {
                let is_decided = best.bytes <= goal.enough.max(*floor) || *floor > goal.give_up;
                if is_decided || budget.spent() >= end || budget.exhausted() {
                    return;
                }
                let height = match tries {
                    0 => from,
                    1 => best.bytes - 1,
                    _ => from + (best.bytes - 1 - from) / 2,
                };
                let height = height.max(goal.enough);
                tries += 1;
                match zones::search(part, order, height, width, budget) {
                    Answer::Packed(offsets) => {
                        let ends = offsets.iter().zip(&part.blocks).map(|(at, block)| at + block.bytes);
                        *best = Packing { bytes: ends.max().unwrap_or(0), offsets };
                    }
                    Answer::Impossible => {
                        *floor = heights.at_least(height + 1).min(best.bytes);
                        from = *floor;
                    }
                    Answer::Unknown if tries == 2 => {}
                    Answer::Unknown => from = height + 1 + (best.bytes - height) / COARSENESS,
                }
            }
        }
        width *= WIDER;
    }
}

/// Blocks in the order of time, which is counted in cliques. With `large_first`, a block comes before the blocks that
/// conflict with it and have less than half its size, so that they are placed around it.
fn in_time(part: &Subproblem, large_first: bool) -> Vec<usize> {
    let mut first = vec![usize::MAX; part.blocks.len()];
    for (at, clique) in part.cliques.iter().enumerate().rev() {
        clique.iter().for_each(|member| first[member.block] = at);
    }
    let bytes = |i: usize| part.blocks[i].bytes;
    let begin = |i: usize| {
        let smaller = part.links[i].iter().map(|link| link.other);
        let smaller = smaller.filter(|other| large_first && bytes(*other) < bytes(i) / 2);
        smaller.chain([i]).map(|i| first[i]).min().unwrap_or(0)
    };
    let mut order: Vec<usize> = (0..part.blocks.len()).collect();
    order.sort_by_cached_key(|i| (begin(*i), Reverse(if large_first { bytes(*i) } else { 0 }), *i));
    order
}

fn packing(part: &Subproblem, offsets: Vec<u64>) -> Packing {
    let ends = offsets.iter().zip(&part.blocks).map(|(at, block)| at + block.bytes);
    Packing { bytes: ends.max().unwrap_or(0), offsets }
}

/// The search along a line of time, if lives lie on one.
struct LineSearch {
    line: Option<TimeLine>,
    /// The height that is searched for, and the search, unless it has ended.
    begun: Option<(u64, Option<Skyline>)>,
}

impl LineSearch {
    /// Looks for a packing of at most `height` bytes for this many steps. It goes on from where it ended last.
    fn search(&mut self, height: u64, steps: u64, budget: &mut Meter) -> Option<Vec<u64>> {
        let line = self.line.as_ref()?;
        if self.begun.as_ref().is_none_or(|(begun, _)| *begun != height) {
            self.begun = Some((height, Some(Skyline::new(line, height))));
        }
        let (_, search) = self.begun.as_mut()?;
        match search.as_mut()?.search(steps.min(budget.left()), budget) {
            Attempt::Packed(offsets) => Some(offsets),
            Attempt::Exhausted => {
                *search = None;
                None
            }
            Attempt::Cut => None,
        }
    }
}

/// How the next search orders its blocks.
struct Tries {
    orders: Vec<Vec<usize>>,
    count: usize,
    random: ChaCha8Rng,
}

impl Tries {
    fn new(part: &Subproblem) -> Self {
        Tries { orders: orders(part), count: 0, random: ChaCha8Rng::seed_from_u64(0) }
    }

    /// One of the orders, with some blocks moved. The later it is tried, the more blocks are moved, since it is best to
    /// begin a search anew if it went wrong early.
    fn next(&mut self) -> (Vec<usize>, Tightest) {
        let tightest = if self.count.is_multiple_of(2) { Tightest::Candidates } else { Tightest::Slack };
        let mut order = self.orders[self.count / 2 % self.orders.len()].clone();
        for _ in 0..self.count / (2 * self.orders.len()) {
            let [from, to] = [0, 0].map(|_| self.random.random_range(0..order.len()));
            let block = order.remove(from);
            order.insert(to, block);
        }
        self.count += 1;
        (order, tightest)
    }
}

/// The orders in which blocks are tried if several could start at one offset. First come the blocks in the fullest
/// cliques, those in the most cliques, or those with the largest area (size times cliques).
fn orders(part: &Subproblem) -> Vec<Vec<usize>> {
    let count = part.blocks.len();
    let (mut width, mut fullest) = (vec![0u128; count], vec![0u128; count]);
    for clique in &part.cliques {
        let sum = clique.iter().map(|m| u128::from(m.high - m.low)).sum();
        for member in clique {
            width[member.block] += 1;
            fullest[member.block] = fullest[member.block].max(sum);
        }
    }
    let area = |i: usize| width[i].max(1) * u128::from(part.blocks[i].bytes);
    let keys: [&dyn Fn(usize) -> [u128; 3]; 3] =
        [&|i| [fullest[i], area(i), width[i]], &|i| [width[i], area(i), fullest[i]], &|i| {
            [area(i), width[i], fullest[i]]
        }];
    let order = |key: &&dyn Fn(usize) -> [u128; 3]| {
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|i| (Reverse(key(*i)), *i));
        order
    };
    keys.iter().map(order).collect()
}
