//! Two searches for lower placements. The first places rings in many orders, each as low as it can be. The second
//! decides for one pair of rings after another which lies above, as one decides in a job shop which job goes first: a
//! placement is the longest paths of these decisions. It is complete if its steps suffice.

use std::cmp::Reverse;

use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::rings::Problem;

/// A placement.
#[derive(Debug, Clone)]
pub struct Placement {
    pub offsets: Vec<u64>,
    /// End of the highest ring.
    pub bytes: u64,
}

/// What the searches found.
#[derive(Debug)]
pub struct Found {
    pub lowest: Placement,
    /// Whether no placement is lower.
    pub is_least: bool,
}

/// How long to search.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Orders in which rings are placed.
    pub orders: usize,
    /// Decisions about pairs.
    pub decisions: usize,
}

/// The lowest placement that either search finds.
pub fn lowest(problem: &Problem, effort: Effort) -> Found {
    let mut lowest = by_orders(problem, effort.orders);
    if lowest.bytes <= problem.bound {
        return Found { lowest, is_least: true };
    }
    let count = problem.count();
    let mut decided = Decided { least: vec![vec![i64::MIN / 4; count]; count], floor: vec![0; count] };
    (0..count).for_each(|ring| decided.least[ring][ring] = 0);
    let mut decisions = Decisions { problem, lowest: &mut lowest, left: effort.decisions };
    decisions.decide(decided);
    let is_least = decisions.left > 0;
    Found { lowest, is_least }
}

/// By size, by time, and then by orders in which two rings change places, kept where that is no worse.
fn by_orders(problem: &Problem, orders: usize) -> Placement {
    let mut random = ChaCha8Rng::seed_from_u64(0);
    let all = || (0..problem.count()).collect::<Vec<usize>>();
    type Key<'k> = dyn Fn(&usize) -> (Reverse<u64>, usize) + 'k;
    let keys: [&Key<'_>; 3] =
        [&|i| (Reverse(problem.bytes[*i]), *i), &|i| (Reverse(0), problem.first[*i]), &|i| {
            (Reverse(0), usize::MAX - problem.first[*i])
        }];
    let mut starts: Vec<Vec<usize>> = Vec::new();
    for key in keys {
        let mut order = all();
        order.sort_by_key(key);
        starts.push(order);
    }
    let mut shuffled = all();
    shuffled.shuffle(&mut random);
    starts.push(shuffled);
    let mut best = place(problem, &starts[0]);
    let share = orders / starts.len();
    for mut order in starts {
        let mut here = place(problem, &order);
        for _ in 0..share {
            if here.bytes < best.bytes {
                best.clone_from(&here);
            }
            if order.len() < 2 || best.bytes <= problem.bound {
                break;
            }
            let [from, to] = [0, 0].map(|_| random.random_range(0..order.len()));
            order.swap(from, to);
            let there = place(problem, &order);
            if there.bytes <= here.bytes {
                here = there;
            } else {
                order.swap(from, to);
            }
        }
    }
    best
}

/// Each ring in this order as low as it can be.
fn place(problem: &Problem, order: &[usize]) -> Placement {
    let mut at: Vec<Option<i64>> = vec![None; problem.count()];
    for &ring in order {
        // Between these two offsets, both excluded, the ring would overlap another ring.
        let mut taken: Vec<(i64, i64)> = (0..at.len())
            .filter_map(|other| {
                let (there, lower, upper) =
                    (at[other]?, problem.above[ring][other]?, problem.above[other][ring]?);
                Some((there - lower, there + upper))
            })
            .collect();
        taken.sort_unstable();
        let mut low = 0;
        for (from, to) in taken {
            if from < low && low < to {
                low = to.unsigned_abs().next_multiple_of(problem.alignment[ring]) as i64;
            } else if from >= low {
                break;
            }
        }
        at[ring] = Some(low);
    }
    placement(problem, at.into_iter().map(|at| at.unwrap().unsigned_abs()).collect())
}

fn placement(problem: &Problem, offsets: Vec<u64>) -> Placement {
    let ends = offsets.iter().zip(&problem.bytes).map(|(at, bytes)| at + bytes);
    Placement { bytes: ends.max().unwrap_or(0), offsets }
}

/// The pairs that are decided, as what follows from them.
#[derive(Clone)]
struct Decided {
    /// By two rings: how much higher the second lies than the first at least.
    least: Vec<Vec<i64>>,
    /// By ring: its lowest offset.
    floor: Vec<i64>,
}

struct Decisions<'a> {
    problem: &'a Problem,
    lowest: &'a mut Placement,
    /// Decisions that are left.
    left: usize,
}

impl Decisions<'_> {
    /// Decides the pairs that are open, so that the placement is lower than the lowest so far.
    fn decide(&mut self, mut decided: Decided) {
        let above = &self.problem.above;
        let open = loop {
            if self.left == 0 || self.lowest.bytes <= self.problem.bound {
                return;
            }
            // The pair with the least room, and its better way first.
            let mut tightest: Option<(i64, [usize; 2])> = None;
            let mut forced = None;
            for (a, b) in (0..above.len()).flat_map(|a| (a + 1..above.len()).map(move |b| (a, b))) {
                let Some((up, down)) = above[a][b].zip(above[b][a]) else { continue };
                if decided.least[a][b] >= up || decided.least[b][a] >= down {
                    continue;
                }
                match [[a, b], [b, a]].map(|way| self.room(&decided, way)) {
                    [None, None] => return,
                    [Some(_), None] => forced = Some([a, b]),
                    [None, Some(_)] => forced = Some([b, a]),
                    [Some(one), Some(other)] => {
                        let way = if one >= other { [a, b] } else { [b, a] };
                        let room = one.max(other);
                        if tightest.is_none_or(|(least, _)| room < least) {
                            tightest = Some((room, way));
                        }
                    }
                }
                if forced.is_some() {
                    break;
                }
            }
            let Some(way) = forced else { break tightest };
            if !self.put(&mut decided, way) {
                return;
            }
        };
        let Some((_, [low, high])) = open else {
            *self.lowest =
                placement(self.problem, decided.floor.iter().map(|at| at.unsigned_abs()).collect());
            return;
        };
        for way in [[low, high], [high, low]] {
            self.left = self.left.saturating_sub(1);
            let mut decided = decided.clone();
            if self.put(&mut decided, way) {
                self.decide(decided);
            }
        }
    }

    /// Bytes that are left below the lowest placement so far if the second ring lies above the first. `None` if it
    /// cannot.
    fn room(&self, Decided { least, floor }: &Decided, [low, high]: [usize; 2]) -> Option<i64> {
        let by = self.problem.above[low][high]?;
        if least[high][low] + by > 0 {
            return None;
        }
        let end = |(more, bytes): (&i64, &u64)| floor[low] + by + more + *bytes as i64;
        let highest = least[high].iter().zip(&self.problem.bytes).map(end).max()?;
        Some(self.lowest.bytes as i64 - 1 - highest).filter(|room| *room >= 0)
    }

    /// Decides that the second ring lies above the first. Says whether the placement may still be lower than the lowest
    /// so far.
    fn put(&self, Decided { least, floor }: &mut Decided, [low, high]: [usize; 2]) -> bool {
        let Some(by) = self.problem.above[low][high] else { return true };
        let from_high = least[high].clone();
        for row in least.iter_mut() {
            let to_high = row[low] + by;
            for (least, more) in row.iter_mut().zip(&from_high) {
                *least = (*least).max(to_high + more);
            }
        }
        // Offsets that are rounded up push others up.
        loop {
            let before = floor.clone();
            for ring in 0..floor.len() {
                let at = (0..floor.len()).map(|other| floor[other] + least[other][ring]).max().unwrap_or(0);
                floor[ring] = at.unsigned_abs().next_multiple_of(self.problem.alignment[ring]) as i64;
                if floor[ring] as u64 + self.problem.bytes[ring] >= self.lowest.bytes {
                    return false;
                }
            }
            if *floor == before {
                return true;
            }
        }
    }
}
