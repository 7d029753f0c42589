//! Several memories: which buffer lies in which, so that a frame's traffic takes least time.

use super::budget::{Budget, Stopped};
use super::decompose::{Fit, fit};
use super::{Problem, bound};

/// A memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Bank {
    /// Its name.
    pub name: String,
    /// Its bytes; without limit if absent.
    pub capacity: Option<u64>,
    /// Bytes that it reads or writes per second.
    pub bytes_per_second: f64,
}

/// Where every buffer lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Shares {
    /// By block: the index of its bank.
    pub bank: Vec<usize>,
    /// By block: its offset in that.
    pub offsets: Vec<u64>,
    /// Time of all traffic.
    pub seconds: f64,
    /// Whether no other choice takes less.
    pub proven: bool,
    /// Why the search ended.
    pub stopped: Stopped,
}

/// Shares blocks among banks. `traffic` is what is read and written of each per frame, in bytes. Every choice of banks is
/// tried that could take less time than the best so far, the blocks of most traffic per byte first, each in the fastest
/// bank that can still hold what is in it. `None` if no way was found to hold all blocks.
pub fn share(problem: &Problem, traffic: &[u64], banks: &[Bank], budget: &mut Budget) -> Option<Shares> {
    let mut order: Vec<usize> = (0..problem.blocks().len()).collect();
    let density = |i: usize| traffic[i] as f64 / problem.blocks()[i].bytes.max(1) as f64;
    order.sort_by(|a, b| density(*b).total_cmp(&density(*a)).then(a.cmp(b)));
    let mut fastest: Vec<usize> = (0..banks.len()).collect();
    fastest.sort_by(|a, b| banks[*b].bytes_per_second.total_cmp(&banks[*a].bytes_per_second).then(a.cmp(b)));
    let speed = banks[*fastest.first()?].bytes_per_second;
    // What is to come at each place in the order takes at least this.
    let mut rest = vec![0.0; order.len() + 1];
    for (place, block) in order.iter().enumerate().rev() {
        rest[place] = rest[place + 1] + traffic[*block] as f64 / speed;
    }
    let mut search = Search {
        problem,
        traffic,
        banks,
        order,
        fastest,
        rest,
        members: vec![Vec::new(); banks.len()],
        found: vec![None; banks.len()],
        best: None,
        complete: true,
        budget,
    };
    search.place(0, 0.0);
    let Search { best, complete, budget, .. } = search;
    let (seconds, members) = best?;
    let mut shares = Shares {
        bank: vec![0; traffic.len()],
        offsets: vec![0; traffic.len()],
        seconds,
        proven: complete,
        stopped: if complete { Stopped::Complete } else { budget.reason() },
    };
    for (bank, (members, offsets)) in members.into_iter().enumerate() {
        for (block, offset) in members.into_iter().zip(offsets) {
            (shares.bank[block], shares.offsets[block]) = (bank, offset);
        }
    }
    Some(shares)
}

/// Blocks of a bank, ascending, and their offsets.
type Content = (Vec<usize>, Vec<u64>);

struct Search<'a> {
    problem: &'a Problem,
    traffic: &'a [u64],
    banks: &'a [Bank],
    order: Vec<usize>,
    fastest: Vec<usize>,
    rest: Vec<f64>,
    /// By bank: its blocks so far, ascending.
    members: Vec<Vec<usize>>,
    /// By bank: where these lie, if a search has found that.
    found: Vec<Option<Vec<u64>>>,
    best: Option<(f64, Vec<Content>)>,
    complete: bool,
    budget: &'a mut Budget,
}

impl Search<'_> {
    /// Tries all banks for the block at this place of the order, `seconds` being those of the blocks before it.
    fn place(&mut self, place: usize, seconds: f64) {
        if self.best.as_ref().is_some_and(|(best, _)| seconds + self.rest[place] >= *best) {
            return;
        }
        let Some(&block) = self.order.get(place) else {
            self.keep(seconds);
            return;
        };
        for bank in self.fastest.clone() {
            let at = self.members[bank].partition_point(|member| *member < block);
            self.members[bank].insert(at, block);
            let before = self.found[bank].take();
            let holds = self.holds(bank);
            if holds {
                let time = self.traffic[block] as f64 / self.banks[bank].bytes_per_second;
                self.place(place + 1, seconds + time);
            }
            self.members[bank].remove(at);
            self.found[bank] = before;
            // When nothing is left the first way down is still gone to its end.
            if holds && self.budget.exhausted() {
                self.complete = false;
                return;
            }
        }
    }

    /// Whether a bank holds its blocks. What is not known counts as no, and ends the proof.
    fn holds(&mut self, bank: usize) -> bool {
        let Some(capacity) = self.banks[bank].capacity else { return true };
        let members = &self.members[bank];
        let total: u64 = members.iter().map(|i| self.problem.blocks()[*i].bytes).sum();
        if bound::of_blocks(self.problem, members) > capacity {
            return false;
        }
        self.budget.spend(members.len() as u64);
        let simple = members.iter().all(|i| {
            let block = self.problem.blocks()[*i];
            block.alignment == 1 && block.offset.is_none()
        });
        if simple && total <= capacity {
            return true;
        }
        match fit(self.problem, members, capacity, self.budget) {
            Fit::Yes(offsets) => {
                self.found[bank] = Some(offsets);
                true
            }
            Fit::No => false,
            Fit::Unknown => {
                self.complete = false;
                false
            }
        }
    }

    fn keep(&mut self, seconds: f64) {
        let mut contents = Vec::new();
        for ((bank, members), found) in self.banks.iter().zip(&self.members).zip(&self.found) {
            let capacity = bank.capacity.unwrap_or(u64::MAX);
            if let Some(offsets) = found {
                contents.push((members.clone(), offsets.clone()));
                continue;
            }
            match fit(self.problem, members, capacity, self.budget) {
                Fit::Yes(offsets) => contents.push((members.clone(), offsets)),
                Fit::No => return,
                Fit::Unknown => {
                    self.complete = false;
                    return;
                }
            }
        }
        self.best = Some((seconds, contents));
    }
}
