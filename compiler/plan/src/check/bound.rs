//! The liveness bound: the most bytes that are *occupied* at one moment of a frame, whatever the addresses.
//!
//! No placement takes fewer bytes. The planner computes the same bound by code of its own, and the two must agree.
//!
//! # What a ring occupies
//!
//! ```text
//! a whole ring of 6 rows                         a ring of 2 rows (it wraps)
//! row
//!  5 |  . . . . x x
//!  4 |  . . . x x x     rows from hi on
//!  3 |  . . x x x .     are not yet begun
//!  2 |  . x x x . .
//!  1 |  x x x . . .     rows below lo are         1 |  x x x x x x
//!  0 |  x x . . . .     released by all readers   0 |  x x x x x x
//!    +-------------> firings                        +-------------> firings
//!       2 3 3 3 3 2     rows occupied                  2 2 2 2 2 2
//! ```
//!
//! - Some rings occupy *all their bytes*, from the first firing of their producer to the last firing of any user.
//!   These are all rings in storage model `edges`. In model `tensors` they are the rings that wrap and the rings
//!   between stages.
//! - Every other ring occupies the *rows [lo, hi)*. Here `hi` is the number of rows begun, and `lo` is the least
//!   number of rows that any reader has released. A reader that has not fired has released none.
//!
//! # Moments
//! A firing is a moment. If the layer reads some operand by rows, each row o of the firing is a moment of its own,
//! whether or not the layer makes its rows one by one. At row o:
//!
//! - `hi` of the layer's output is o + 1.
//! - The layer has released the rows below `keep(o)` of every tensor that it reads by rows only. This is the `keep` of
//!   one row per firing, and `keep(0)` is 0. If several operands are the same tensor, the least of their `keep(o)`
//!   counts.
//!
//! A layer that reads no operand by rows begins all rows of a firing at one moment. A tensor that a layer needs whole
//! is released at the end of the layer's last firing. A tensor that no layer reads is released at the end of its
//! producer's last firing.
//!
//! Rings that live from hop to hop occupy all their bytes, also while other CNNs run.
//!
//! Partitions that run at the same time have no common line of time. Their bound is the sum of their own peaks and of
//! the rings that they share, each as a whole. A ring between stages is shared in this sense whenever one of these
//! stages runs.
//!
//! # What the certificate says
//! Its witness names a moment of the most bytes: the layers that fire, the rings that occupy bytes, and the number of
//! their bytes. The checker verifies all of it (`witness`). A plan is `proven` if its arena equals the bound.
//!
//! Sometimes packing finds that no placement reaches the bound, whichever layers make their rows one by one. The higher
//! lower bound that it found is `certificate.claimed`. Nothing in a plan proves it: the checker only compares it with
//! the bound and the arena. So plan, report and `check` call it claimed.

use std::collections::BTreeSet;
use std::ops::Range;

use super::index::Index;
use super::life::Life;
use super::occupied::{Event, TimeLine};
use super::{Findings, MAX_WORK};

/// The data from which the bound is computed.
pub(super) struct Moments<'a> {
    pub(super) index: &'a Index<'a>,
    /// The rings of each CNN.
    pub(super) lives: &'a [Vec<Life<'a>>],
    /// The time line of each CNN.
    lines: Vec<TimeLine<'a>>,
    /// Each partition's firings on the line of its CNN.
    pub(super) windows: Vec<Range<usize>>,
    /// The elements of `parallel`, as partitions.
    pub(super) elements: BTreeSet<Vec<usize>>,
}

impl<'a> Moments<'a> {
    pub fn new(
        index: &'a Index<'a>,
        lives: &'a [Vec<Life<'a>>],
        lines: Vec<TimeLine<'a>>,
        schedules: &[Vec<u32>],
    ) -> Self {
        let mut windows = vec![0..0; index.partitions.len()];
        for cnn in &index.cnns {
            let mut start = 0;
            for &p in &cnn.partitions {
                windows[p] = start..start + schedules[p].len();
                start = windows[p].end;
            }
        }
        let ids = |element: &Vec<String>| -> Vec<usize> {
            (0..index.partitions.len())
                .filter(|&p| element.contains(&index.partitions[p].partition.name))
                .collect()
        };
        let elements = index.plan.parallel.iter().map(ids).collect();
        Moments { index, lives, lines, windows, elements }
    }

    /// Checks that the bound can be computed in reasonable time.
    pub fn check_work(&self, findings: &mut Findings) -> bool {
        let of = |&p: &usize| {
            let cnn = self.index.partitions[p].cnn;
            self.lines[cnn].work().saturating_add(self.lives[cnn].len() as u64)
        };
        let work = self.elements.iter().flatten().map(of).fold(0, u64::saturating_add);
        findings.limit("the number of rows and rings of all elements of `parallel`", Some(work), MAX_WORK);
        work <= MAX_WORK
    }

    /// The maximum over the elements of `parallel`. For each element, it is the sum of its partitions' own peaks, of
    /// the rings that several of them share, and of those that persist of other CNNs. Each of these counts once, since it
    /// lives throughout. Only rings for which `is_counted` holds count.
    pub fn bound(&self, is_counted: impl Fn(&Life<'_>) -> bool) -> u64 {
        self.elements.iter().map(|members| self.of_element(members, &is_counted)).max().unwrap_or(0)
    }

    /// The moment at which the most bytes are occupied, in the first element of `parallel` that reaches them: the rows
    /// that each partition occupies at its own peak, and the rings that several partitions share.
    pub fn peak(&self) -> Peak {
        let all = |members: &&Vec<usize>| self.of_element(members, &|_| true);
        let mut peak = Peak::default();
        // If several are equal, `max_by_key` gives the last.
        let Some(members) = self.elements.iter().rev().max_by_key(all) else { return peak };
        let (own, shared) = self.homes(members, &|_| true);
        peak.occupied.extend(shared.iter().map(|life| (life.cnn, life.number, 0..life.allocation.ring_rows)));
        for (counted, &p) in own.iter().zip(members) {
            let (line, window, cnn) = (self.line(p), &self.windows[p], self.index.partitions[p].cnn);
            let most = line.peak(counted, window);
            let mut rows = vec![0..0; line.rings()];
            let mut found = None;
            line.walk(counted, window.end, &mut |event| match event {
                _ if found.is_some() => {}
                Event::Moment { firing, bytes } if bytes == most && window.start <= firing => {
                    found = Some(firing);
                }
                Event::Occupies { allocation, rows: now } => rows[allocation] = now,
                _ => {}
            });
            peak.firings.extend(found.map(|firing| (p, firing - window.start)));
            let occupied = rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
            peak.occupied.extend(occupied.map(|(allocation, rows)| (cnn, allocation, rows)));
        }
        peak
    }

    pub(super) fn line(&self, partition: usize) -> &TimeLine<'a> {
        &self.lines[self.index.partitions[partition].cnn]
    }

    fn of_element(&self, members: &[usize], is_counted: &impl Fn(&Life<'_>) -> bool) -> u64 {
        let (own, shared) = self.homes(members, is_counted);
        self.bytes(members, &own, &shared)
    }

    /// The bound of partitions that run at the same time: the sum of their own peaks, and of all that they share.
    pub(super) fn bytes(&self, members: &[usize], own: &[Vec<bool>], shared: &[&Life<'_>]) -> u64 {
        let bytes = shared.iter().map(|life| life.allocation.bytes()).fold(0, u64::saturating_add);
        let peak = |(counted, p): (&Vec<bool>, &usize)| self.line(*p).peak(counted, &self.windows[*p]);
        own.iter().zip(members).map(peak).fold(bytes, u64::saturating_add)
    }

    /// The rings that each member of an element has to itself, by allocation, and the rings that live throughout: those
    /// that several members share, and those that persist of other CNNs.
    pub(super) fn homes(
        &self,
        members: &[usize],
        is_counted: &impl Fn(&Life<'_>) -> bool,
    ) -> (Vec<Vec<bool>>, Vec<&'a Life<'a>>) {
        let mut own: Vec<Vec<bool>> = members.iter().map(|&p| vec![false; self.line(p).rings()]).collect();
        let mut shared = Vec::new();
        for life in self.lives.iter().flatten().filter(|life| is_counted(life)) {
            let uses = |p: &usize| life.partitions.contains(p);
            // A ring that no member uses lives on while they run if it is used before and after them.
            let passes = |p: &usize| {
                let window = &self.windows[*p];
                let meets = life.first < window.end && window.start <= life.last;
                self.index.partitions[*p].cnn == life.cnn && meets
            };
            let mut homes: Vec<usize> = (0..members.len()).filter(|&m| uses(&members[m])).collect();
            if homes.is_empty() {
                homes = (0..members.len()).filter(|&m| passes(&members[m])).collect();
            }
            // A cut ring counts as a whole for a partition that runs while another one uses the ring.
            let is_alone = |home: usize| {
                let others = life.partitions.iter().filter(|&&q| q != members[home]);
                !life.allocation.is_cut() || !others.copied().any(|q| self.index.concurrent[members[home]][q])
            };
            match homes[..] {
                // Other rings are stored only while partitions of their own CNN run.
                [] if !life.allocation.persists() => {}
                [home] if is_alone(home) => own[home][life.number] = true,
                _ => shared.push(life),
            }
        }
        (own, shared)
    }
}

/// A moment at which the most bytes are occupied.
#[derive(Default)]
pub(crate) struct Peak {
    /// The firings: a partition, and the number of the firing in its frame.
    pub firings: Vec<(usize, usize)>,
    /// The occupied rows: a CNN, one of its allocations, and the rows of that allocation.
    pub occupied: Vec<(usize, usize, Range<u64>)>,
}
