//! Rule 5: rings that live at the same time share no byte; and how many bytes live at once.

use std::collections::BTreeSet;

use super::index::Index;
use super::storage::Store;
use super::violation::Addresses;
use super::{Findings, MAX_WORK, Violation};

/// What the lifetimes of rings say.
pub(super) struct Lifetimes {
    /// Most bytes that live at the same time: no placement of the rings takes less.
    pub bound: u64,
}

/// The life of one ring.
struct Life<'a> {
    store: &'a Store,
    cnn: usize,
    /// First and last firing of the CNN's frame, its partitions one after another, at which it lives.
    first: usize,
    last: usize,
    /// The partitions that write or read it.
    partitions: Vec<usize>,
}

/// Checks that rings are disjoint where they must be.
pub(super) fn check(
    index: &Index<'_>,
    stores: &[Vec<Store>],
    schedules: &[Vec<u32>],
) -> Result<Lifetimes, Vec<Violation>> {
    let lives: Vec<Life<'_>> =
        stores.iter().enumerate().flat_map(|(cnn, stores)| lives(index, cnn, stores, schedules)).collect();
    let mut findings = Findings::default();
    check_disjoint(index, &lives, &mut findings);
    check_workspaces(index, &mut findings);
    let bound = bound(index, &lives, schedules, &mut findings);
    findings.or(Lifetimes { bound })
}

fn lives<'a>(index: &Index<'_>, c: usize, stores: &'a [Store], schedules: &[Vec<u32>]) -> Vec<Life<'a>> {
    let cnn = &index.cnns[c];
    // Every layer fires (rules 3 and 6), so that both are overwritten.
    let mut span = vec![(usize::MAX, 0); cnn.layers.len()];
    let firings = cnn.partitions.iter().flat_map(|&p| &schedules[p]);
    for (at, &layer) in firings.enumerate() {
        let (first, last) = &mut span[layer as usize];
        *first = at.min(*first);
        *last = at;
    }
    stores
        .iter()
        .map(|store| {
            let users = [store.tensor].into_iter().chain(store.readers.iter().copied());
            let last = users.clone().map(|layer| span[layer].1).max().unwrap_or(0);
            let mut partitions: Vec<usize> = users.map(|layer| cnn.layers[layer].partition).collect();
            partitions.sort_unstable();
            partitions.dedup();
            Life { store, cnn: c, first: span[store.tensor].0, last, partitions }
        })
        .collect()
}

fn check_disjoint(index: &Index<'_>, lives: &[Life<'_>], findings: &mut Findings) {
    let mut places: Vec<(Addresses, &Life<'_>)> =
        lives.iter().flat_map(|life| life.store.addresses().map(move |range| (range, life))).collect();
    places.sort_by_key(|(range, _)| range.start);
    let mut work = 0;
    for (i, (range, a)) in places.iter().enumerate() {
        for (other, b) in places[i + 1..].iter().take_while(|(other, _)| other.start < range.end) {
            work += (a.partitions.len() * b.partitions.len()) as u64;
            let addresses = other.start..range.end.min(other.end);
            let (first, second) = (a.store.name.clone(), b.store.name.clone());
            let meet = |p: &usize| b.partitions.iter().find(|&&q| index.concurrent[*p][q]).map(|&q| (*p, q));
            if let Some((p, q)) = a.partitions.iter().find_map(meet) {
                let [first_partition, second_partition] =
                    [p, q].map(|p| index.partitions[p].partition.name.clone());
                let violation = Violation::SharedByConcurrent {
                    first_partition,
                    second_partition,
                    first,
                    second,
                    addresses,
                };
                findings.push(violation);
            } else if a.cnn == b.cnn && a.first <= b.last && b.first <= a.last {
                findings.push(Violation::Overlap { first, second, addresses });
            }
        }
        if work > MAX_WORK {
            findings.limit("the number of rings at the same addresses", Some(work), MAX_WORK);
            return;
        }
    }
}

/// That layers of partitions that run at the same time have disjoint workspaces, and all are within theirs.
fn check_workspaces(index: &Index<'_>, findings: &mut Findings) {
    let mut places = Vec::new();
    for cnn in &index.cnns {
        for entry in cnn.layers.iter().filter(|entry| entry.layer.workspace.bytes > 0) {
            let workspace = entry.layer.workspace;
            let name = format!("workspace of {}/{}", cnn.cnn.name, entry.layer.name);
            match workspace.offset.checked_add(workspace.bytes) {
                Some(end) => places.push((workspace.offset, end, entry.partition, name)),
                None => findings.limit(name, None, u64::MAX),
            }
        }
    }
    places.sort_unstable();
    for (i, (_, end, p, name)) in places.iter().enumerate() {
        for (start, other_end, q, other) in places[i + 1..].iter().take_while(|place| place.0 < *end) {
            if index.concurrent[*p][*q] {
                findings.push(Violation::SharedByConcurrent {
                    first_partition: index.partitions[*p].partition.name.clone(),
                    second_partition: index.partitions[*q].partition.name.clone(),
                    first: name.clone(),
                    second: other.clone(),
                    addresses: *start..*end.min(other_end),
                });
            }
        }
    }
}

/// The liveness bound: over the elements of `parallel`, the sum of its partitions' own peaks and of the rings that
/// several of them share, each once, since they live throughout.
fn bound(index: &Index<'_>, lives: &[Life<'_>], schedules: &[Vec<u32>], findings: &mut Findings) -> u64 {
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
    let elements: BTreeSet<Vec<usize>> = index.plan.parallel.iter().map(ids).collect();
    let members = elements.iter().map(|members| members.len() as u64).sum::<u64>();
    let work = members.saturating_mul(lives.len() as u64);
    if work > MAX_WORK {
        findings.limit("the number of rings of all elements of `parallel`", Some(work), MAX_WORK);
        return 0;
    }
    elements.iter().map(|members| element_bound(index, lives, &windows, members)).max().unwrap_or(0)
}

fn element_bound(
    index: &Index<'_>,
    lives: &[Life<'_>],
    windows: &[std::ops::Range<usize>],
    members: &[usize],
) -> u64 {
    let mut own: Vec<Vec<&Life<'_>>> = vec![Vec::new(); members.len()];
    let mut bytes = 0u64;
    for life in lives {
        let uses = |p: &usize| life.partitions.contains(p);
        // One that no member uses lives on while they run if it is used before and after.
        let passes = |p: &usize| {
            let window = &windows[*p];
            let meets = life.first < window.end && window.start <= life.last;
            !life.store.is_cut() && index.partitions[*p].cnn == life.cnn && meets
        };
        let mut homes: Vec<usize> = (0..members.len()).filter(|&m| uses(&members[m])).collect();
        if homes.is_empty() {
            homes = (0..members.len()).filter(|&m| passes(&members[m])).collect();
        }
        match homes[..] {
            [] => {}
            [home] if !life.store.is_cut() => own[home].push(life),
            _ => bytes = bytes.saturating_add(life.store.bytes()),
        }
    }
    let peaks = own.iter().zip(members).map(|(lives, &p)| peak(lives, windows[p].start));
    peaks.fold(bytes, u64::saturating_add)
}

/// Most bytes of these rings that live at the same time, from a firing on.
fn peak(lives: &[&Life<'_>], from: usize) -> u64 {
    let starts = lives.iter().map(|life| (life.first.max(from), true, life.store.bytes()));
    let ends = lives.iter().map(|life| (life.last + 1, false, life.store.bytes()));
    // What ends goes before what starts at the same firing.
    let mut events: Vec<(usize, bool, u64)> = starts.chain(ends).collect();
    events.sort_unstable();
    let (mut live, mut most) = (0u64, 0);
    for (_, starts, bytes) in events {
        live = if starts { live.saturating_add(bytes) } else { live.saturating_sub(bytes) };
        most = live.max(most);
    }
    most
}
