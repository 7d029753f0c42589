//! Rule 5: which rings may share bytes. The replay checks whether the bytes are free when they are written. The same
//! lifetimes also give the number of bytes that must be stored at once.

use std::ops::Range;

use crate::plan::PeakWitness;

use super::allocation::Allocation;
use super::bound::{Moments, Peak};
use super::index::Index;
use super::life::Life;
use super::occupied::TimeLine;
use super::rates::Rates;
use super::violation::Addresses;
use super::{Findings, MAX_WORK, Resolved, Violation, streamed};

/// The figures that follow from the lifetimes of rings.
pub(super) struct Lifetimes {
    /// The most bytes that are occupied at the same time. No placement of the rings takes fewer.
    pub bound: u64,
    /// A moment of the most bytes, if something is stored and the certificate does not name such a moment.
    pub unstated: Option<PeakWitness>,
    /// The most bytes that workspaces occupy at the same time.
    pub workspaces: u64,
}

/// Checks that rings share no bytes if rule 5 forbids it.
pub(super) fn check(
    index: &Index<'_>,
    rates: &Rates,
    allocations: &[Vec<Allocation>],
    schedules: &[Vec<u32>],
) -> Result<Lifetimes, Vec<Violation>> {
    let lives: Vec<Vec<Life<'_>>> = allocations
        .iter()
        .enumerate()
        .map(|(cnn, allocations)| lives(index, cnn, allocations, schedules))
        .collect();
    let mut findings = Findings::default();
    check_disjoint(index, rates, &lives, &mut findings);
    let line = |c: usize| TimeLine::new(&index.cnns[c], &rates[c], &allocations[c], schedules);
    let moments = Moments::new(index, &lives, (0..index.cnns.len()).map(line).collect(), schedules);
    if !moments.check_work(&mut findings) {
        return findings.or(Lifetimes { bound: 0, unstated: None, workspaces: 0 });
    }
    let bound = moments.bound(|_| true);
    let stated = index.plan.certificate.bound.as_ref();
    let is_stated = stated.is_some_and(|witness| moments.is_witness(witness, bound));
    let unstated = (bound > 0 && !is_stated).then(|| moments.witness(bound, schedules));
    let workspaces = moments.bound(|life| life.allocation.is_workspace());
    findings.or(Lifetimes { bound, unstated, workspaces })
}

/// The moment of an accepted plan at which the most bytes are occupied.
pub(crate) fn peak(resolved: &Resolved<'_>) -> Peak {
    let Resolved { index, allocations, schedules, .. } = resolved;
    let lives: Vec<Vec<Life<'_>>> = allocations
        .iter()
        .enumerate()
        .map(|(cnn, allocations)| lives(index, cnn, allocations, schedules))
        .collect();
    let lines = (0..index.cnns.len()).map(|c| line(resolved, c)).collect();
    Moments::new(index, &lives, lines, schedules).peak()
}

/// The firings of a CNN of an accepted plan, and the allocations that they touch.
pub(crate) fn line<'a>(resolved: &'a Resolved<'a>, c: usize) -> TimeLine<'a> {
    TimeLine::new(&resolved.index.cnns[c], &resolved.rates[c], &resolved.allocations[c], &resolved.schedules)
}

/// Whether a layer that reads `operand` may write rows of `written` over it: it reads `operand` by rows, and both rings
/// are whole.
fn may_follow(rates: &Rates, cnn: usize, operand: &Allocation, written: &Allocation) -> bool {
    let held = rates[cnn][written.tensor].iter().find(|held| held.tensor == operand.tensor);
    !operand.exclusive && !written.exclusive && held.is_some_and(|held| !held.rows.is_empty())
}

fn lives<'a>(
    index: &Index<'_>,
    c: usize,
    allocations: &'a [Allocation],
    schedules: &[Vec<u32>],
) -> Vec<Life<'a>> {
    let cnn = &index.cnns[c];
    // Every layer fires (rules 3 and 6), so that both are overwritten.
    let mut span = vec![(usize::MAX, 0); cnn.layers.len()];
    let firings = cnn.partitions.iter().flat_map(|&p| &schedules[p]);
    // Of each partition, its firings.
    let mut next = 0;
    let windows: Vec<(usize, Range<usize>)> = cnn
        .partitions
        .iter()
        .map(|&p| {
            let window = next..next + schedules[p].len();
            next = window.end;
            (p, window)
        })
        .collect();
    for (at, &layer) in firings.enumerate() {
        let (first, last) = &mut span[layer as usize];
        *first = at.min(*first);
        *last = at;
    }
    allocations
        .iter()
        .enumerate()
        .map(|(number, allocation)| {
            let users = [allocation.tensor].into_iter().chain(allocation.readers.iter().copied());
            let last = users.clone().map(|layer| span[layer].1).max().unwrap_or(0);
            let mut partitions: Vec<usize> = users.map(|layer| cnn.layers[layer].partition).collect();
            partitions.sort_unstable();
            partitions.dedup();
            let first = match allocation.begin() {
                None => span[allocation.tensor].0,
                Some(begin) => streamed::begun_at(begin, allocation, cnn, schedules).unwrap_or(0),
            };
            let first = if allocation.persists() { 0 } else { first };
            let last = if allocation.stays() { next.saturating_sub(1) } else { last };
            let fires = |(p, window): &(usize, Range<usize>)| {
                partitions.contains(p) || first < window.end && window.start <= last
            };
            let stored_in = windows.iter().filter(|entry| fires(entry)).map(|(p, _)| *p).collect();
            Life { allocation, cnn: c, number, first, last, partitions, stored_in }
        })
        .collect()
}

/// Checks that no two rings share bytes that this rule keeps apart. It allows rings to share bytes if neither is
/// exclusive, or if one is exclusive and the other is not live at the same time or has free bytes there. The replay
/// checks these.
fn check_disjoint(index: &Index<'_>, rates: &Rates, lives: &[Vec<Life<'_>>], findings: &mut Findings) {
    let mut places: Vec<(Addresses, &Life<'_>)> = lives
        .iter()
        .flatten()
        .flat_map(|life| life.allocation.addresses().map(move |range| (range, life)))
        .collect();
    places.sort_by_key(|(range, _)| range.start);
    let mut work = 0;
    for (i, (range, a)) in places.iter().enumerate() {
        for (other, b) in places[i + 1..].iter().take_while(|(other, _)| other.start < range.end) {
            work += (a.stored_in.len() * b.stored_in.len()) as u64;
            let addresses = other.start..range.end.min(other.end);
            let names = || (a.allocation.name.clone(), b.allocation.name.clone());
            let meet = |p: &usize| b.stored_in.iter().find(|&&q| index.concurrent[*p][q]).map(|&q| (*p, q));
            if let Some((p, q)) = a.stored_in.iter().find_map(meet) {
                let [first_partition, second_partition] =
                    [p, q].map(|p| index.partitions[p].partition.name.clone());
                let (first, second) = names();
                let violation = Violation::SharedByConcurrent {
                    first_partition,
                    second_partition,
                    first,
                    second,
                    addresses,
                };
                findings.push(violation);
            } else if a.cnn == b.cnn && a.first <= b.last && b.first <= a.last {
                let alone = a.allocation.is_cut()
                    || b.allocation.is_cut()
                    || a.allocation.exclusive && b.allocation.exclusive;
                let clash = |operand: &Life<'_>, written: &Life<'_>| {
                    operand.allocation.readers.contains(&written.allocation.tensor)
                        && !may_follow(rates, a.cnn, operand.allocation, written.allocation)
                };
                if alone || clash(a, b) || clash(b, a) {
                    let (first, second) = names();
                    findings.push(Violation::Overlap { first, second, addresses });
                }
            }
        }
        if work > MAX_WORK {
            findings.limit("the number of rings at the same addresses", Some(work), MAX_WORK);
            return;
        }
    }
}
