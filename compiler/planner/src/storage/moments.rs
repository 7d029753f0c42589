//! How full memory is, moment by moment. A moment is a firing. Within a firing that goes row by row, it is the
//! fullest row.
//!
//! The planner's liveness bound is the fullest moment if every layer that can makes its rows one by one. The checker
//! computes the same bound by code of its own (`csdfc_plan::check`).

use std::ops::Range;

use super::item::{Item, Stored};
use crate::frame::execution::Execution;
use crate::frame::occupancy::Sweep;

/// Which firings go row by row. In these, the rows of operands that are released leave room for the rows that are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowByRow {
    /// All that can.
    All,
    /// Firings for which it costs no time, and firings of layers that were chosen for it.
    Chosen,
    /// Firings for which it costs no time.
    Free,
}

impl RowByRow {
    /// Whether this firing of an execution goes row by row.
    pub fn takes(self, execution: &Execution, sweep: &Sweep) -> bool {
        match self {
            RowByRow::All => true,
            RowByRow::Chosen => !sweep.is_costly || execution.goes_one_by_one(sweep.layer),
            RowByRow::Free => !sweep.is_costly,
        }
    }
}

/// Some of the rings of one CNN, and some that persist of others, as the time of that CNN goes by.
#[derive(Debug, Clone, Copy)]
pub(super) struct RingLives<'a> {
    pub items: &'a [Item<'a>],
    pub cnn: usize,
    /// The CNN's execution, and the first of its items.
    pub execution: &'a Execution,
    pub first: usize,
    pub row_by_row: RowByRow,
}

/// A firing at which something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub firing: usize,
    /// Bytes in use.
    pub bytes: u64,
    /// Whether a ring's life has begun or ended since the moment before.
    pub others: bool,
}

impl RingLives<'_> {
    /// The moments within a half-open window of the time line, of the rings given.
    pub fn moments(&self, rings: &[usize], window: &Range<usize>) -> Vec<Moment> {
        let mut events: Vec<(usize, i128, bool)> = Vec::new();
        for item in rings.iter().map(|i| self.items[*i]) {
            let (request, (first, last)) = (item.request, self.life(item));
            if first >= window.end || last < window.start {
                continue;
            }
            let mut push = |at: usize, bytes: i128, is_end: bool| {
                if at < window.end {
                    events.push((at.max(window.start), bytes, is_end));
                }
            };
            let Some(occupancy_profile) = &request.occupancy_profile else {
                push(first, i128::from(request.bytes), true);
                push(last + 1, -i128::from(request.bytes), true);
                continue;
            };
            for (steps, sign, after) in
                [(&occupancy_profile.begun, 1, 0), (&occupancy_profile.released, -1, 1)]
            {
                let mut before = 0;
                for &(at, bytes) in steps {
                    let is_end = if sign > 0 { before == 0 } else { bytes == request.bytes };
                    push(at + after, sign * i128::from(bytes - before), is_end);
                    before = bytes;
                }
            }
        }
        events.sort_unstable();
        let counted = self.counted(rings);
        let mut sweeps = self.execution.sharing.sweeps.as_slice();
        let mut moments: Vec<Moment> = Vec::new();
        let mut all = 0;
        for now in events.chunk_by(|a, b| a.0 == b.0) {
            let firing = now[0].0;
            all += now.iter().map(|(_, bytes, _)| bytes).sum::<i128>();
            sweeps = &sweeps[sweeps.partition_point(|sweep| sweep.firing < firing)..];
            let sweep = sweeps.first().filter(|sweep| sweep.firing == firing && self.takes(sweep));
            let slack = sweep.map_or(0, |sweep| i128::from(sweep.fullest(|request| counted[request]).1));
            let bytes = u64::try_from(all - slack).unwrap_or(0);
            moments.push(Moment { firing, bytes, others: now.iter().any(|(.., is_end)| *is_end) });
        }
        moments
    }

    /// The first and the last firing of the CNN's frame at which an item is stored. What persists of another CNN is
    /// stored all the time.
    fn life(&self, item: Item<'_>) -> (usize, usize) {
        if item.cnn == self.cnn { item.request.live } else { (0, usize::MAX - 1) }
    }

    fn takes(&self, sweep: &Sweep) -> bool {
        self.row_by_row.takes(self.execution, sweep)
    }

    /// By request of the execution, whether it is one of these rings.
    fn counted(&self, rings: &[usize]) -> Vec<bool> {
        let mut counted = vec![false; self.execution.requests.len()];
        for i in rings.iter().filter(|i| self.items[**i].cnn == self.cnn) {
            counted[i - self.first] = true;
        }
        counted
    }

    /// What is in use at the fullest moment of a firing, of the rings given.
    pub fn stored(&self, rings: &[usize], firing: usize) -> Vec<Stored> {
        let sweeps = &self.execution.sharing.sweeps;
        let sweep = sweeps.binary_search_by_key(&firing, |sweep| sweep.firing).ok();
        let counted = self.counted(rings);
        let sweep = sweep.map(|at| &sweeps[at]).filter(|sweep| self.takes(sweep));
        let sweep = sweep.map(|sweep| (sweep, sweep.fullest(|request| counted[request]).0));
        let stored = |&item: &usize| {
            let (request, (first, last)) = (self.items[item].request, self.life(self.items[item]));
            let lives = first <= firing && firing <= last;
            let mut bytes = match &request.occupancy_profile {
                _ if !lives => return None,
                Some(occupancy_profile) => occupancy_profile.at(firing),
                None => 0..request.bytes,
            };
            if let Some((sweep, row)) = sweep {
                if self.first + sweep.output == item {
                    bytes.end = sweep.begun[row];
                }
                let own = sweep.operands.iter().find(|operand| self.first + operand.request == item);
                bytes.start = own.map_or(bytes.start, |operand| operand.free[row]);
            }
            (!bytes.is_empty()).then_some(Stored { item, bytes })
        };
        rings.iter().filter_map(stored).collect()
    }

    /// Sets of rings that are in use at one moment. There is one set for each stretch of time in which the same rings
    /// live, taken at its fullest moment. A set is left out if the one before or after contains it.
    pub fn fullest(&self, rings: &[usize]) -> Vec<Vec<Stored>> {
        let moments = self.moments(rings, &(0..usize::MAX));
        let mut sets: Vec<Vec<Stored>> = Vec::new();
        for stretch in moments.chunk_by(|_, next| !next.others) {
            let Some(fullest) = stretch.iter().rev().max_by_key(|moment| moment.bytes) else { continue };
            let set = self.stored(rings, fullest.firing);
            if sets.last().is_some_and(|last| covers(last, &set)) {
                continue;
            }
            if sets.last().is_some_and(|last| covers(&set, last)) {
                sets.pop();
            }
            sets.push(set);
        }
        sets
    }
}

/// Whether all of `part` is in `whole`; both ascend by item.
fn covers(whole: &[Stored], part: &[Stored]) -> bool {
    part.iter().all(|stored| {
        whole.binary_search_by_key(&stored.item, |other| other.item).is_ok_and(|at| {
            let other = &whole[at].bytes;
            other.start <= stored.bytes.start && stored.bytes.end <= other.end
        })
    })
}
