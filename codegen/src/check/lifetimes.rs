//! Rule 5: rings that live at the same time share no byte; and how many bytes live at once.

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
    findings.or(Lifetimes { bound: bound(index, &lives, schedules) })
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

/// The liveness bound: over the elements of `parallel`, the sum of its partitions' own peaks and of the rings cut
/// between partitions that run at the same time, each once, which live throughout.
fn bound(index: &Index<'_>, lives: &[Life<'_>], schedules: &[Vec<u32>]) -> u64 {
    let mut peaks = vec![0u64; index.partitions.len()];
    for (c, cnn) in index.cnns.iter().enumerate() {
        let firings: usize = cnn.partitions.iter().map(|&p| schedules[p].len()).sum();
        let (mut starts, mut ends) = (vec![0u64; firings], vec![0u64; firings + 1]);
        for life in lives.iter().filter(|life| life.cnn == c && !life.store.is_cut()) {
            starts[life.first] += life.store.bytes();
            ends[life.last + 1] += life.store.bytes();
        }
        let (mut live, mut at) = (0, 0);
        for &p in &cnn.partitions {
            for _ in &schedules[p] {
                live = live + starts[at] - ends[at];
                peaks[p] = live.max(peaks[p]);
                at += 1;
            }
        }
    }
    let ids = |element: &Vec<String>| -> Vec<usize> {
        (0..index.partitions.len())
            .filter(|&p| element.contains(&index.partitions[p].partition.name))
            .collect()
    };
    let bytes = |members: Vec<usize>| {
        let own: u64 = members.iter().map(|&p| peaks[p]).fold(0, u64::saturating_add);
        let cut = lives
            .iter()
            .filter(|life| life.store.is_cut() && life.partitions.iter().any(|p| members.contains(p)))
            .map(|life| life.store.bytes());
        cut.fold(own, u64::saturating_add)
    };
    index.plan.parallel.iter().map(|element| bytes(ids(element))).max().unwrap_or(0)
}
