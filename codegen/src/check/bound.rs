//! The liveness bound: the most bytes that must be stored at one moment, whatever the addresses.

use std::collections::BTreeSet;
use std::ops::Range;

use super::index::Index;
use super::life::Life;
use super::occupied::TimeLine;
use super::{Findings, MAX_WORK};

/// What the bound is made of.
pub(super) struct Moments<'a> {
    index: &'a Index<'a>,
    lives: &'a [Life<'a>],
    /// Of each CNN.
    lines: Vec<TimeLine<'a>>,
    /// Of each partition, its firings on the line of its CNN.
    windows: Vec<Range<usize>>,
    /// The elements of `parallel`, as partitions.
    elements: BTreeSet<Vec<usize>>,
}

impl<'a> Moments<'a> {
    pub fn new(
        index: &'a Index<'a>,
        lives: &'a [Life<'a>],
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

    /// That the bound can be had in reasonable time.
    pub fn check_work(&self, findings: &mut Findings) -> bool {
        let of = |&p: &usize| {
            self.lines[self.index.partitions[p].cnn].work().saturating_add(self.lives.len() as u64)
        };
        let work = self.elements.iter().flatten().map(of).fold(0, u64::saturating_add);
        findings.limit("the number of rows and rings of all elements of `parallel`", Some(work), MAX_WORK);
        work <= MAX_WORK
    }

    /// Over the elements of `parallel`, the sum of its partitions' own peaks and of the rings that several of them
    /// share, each once, since they live throughout. Only rings that are counted are.
    pub fn bound(&self, is_counted: impl Fn(&Life<'_>) -> bool) -> u64 {
        self.elements.iter().map(|members| self.of_element(members, &is_counted)).max().unwrap_or(0)
    }

    fn of_element(&self, members: &[usize], is_counted: &impl Fn(&Life<'_>) -> bool) -> u64 {
        let line = |&p: &usize| &self.lines[self.index.partitions[p].cnn];
        let mut own: Vec<Vec<bool>> = members.iter().map(|p| vec![false; line(p).rings()]).collect();
        let mut bytes = 0u64;
        for life in self.lives.iter().filter(|life| is_counted(life)) {
            let uses = |p: &usize| life.partitions.contains(p);
            // One that no member uses lives on while they run if it is used before and after.
            let passes = |p: &usize| {
                let window = &self.windows[*p];
                let meets = life.first < window.end && window.start <= life.last;
                !life.store.is_cut() && self.index.partitions[*p].cnn == life.cnn && meets
            };
            let mut homes: Vec<usize> = (0..members.len()).filter(|&m| uses(&members[m])).collect();
            if homes.is_empty() {
                homes = (0..members.len()).filter(|&m| passes(&members[m])).collect();
            }
            match homes[..] {
                [] => {}
                [home] if !life.store.is_cut() => own[home][life.number] = true,
                _ => bytes = bytes.saturating_add(life.store.bytes()),
            }
        }
        let peak = |(counted, p): (&Vec<bool>, &usize)| line(p).peak(counted, &self.windows[*p]);
        own.iter().zip(members).map(peak).fold(bytes, u64::saturating_add)
    }
}
