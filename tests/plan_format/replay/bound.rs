//! Section 10: what `bound` counts.

use std::collections::BTreeSet;

use super::model::{Cnn, Kind, Plan, Ring};

/// The bound of the rings that count.
pub fn bound(plan: &Plan<'_>, counts: &dyn Fn(&Ring) -> bool) -> u64 {
    plan.elements.iter().map(|element| of_element(plan, element, counts)).max().unwrap_or(0)
}

fn of_element(plan: &Plan<'_>, element: &[usize], counts: &dyn Fn(&Ring) -> bool) -> u64 {
    let Stored { own, shared } = stored(plan, element, counts);
    let shared: u64 = shared.iter().map(|ring| ring.bytes()).sum();
    shared + element.iter().zip(&own).map(|(&p, own)| peak(plan, p, own)).sum::<u64>()
}

/// What is stored while the partitions of an element run.
struct Stored<'p> {
    /// By partition, its own rings, by their places among those of its CNN.
    own: Vec<Vec<usize>>,
    /// Rings of several.
    shared: Vec<&'p Ring>,
}

fn stored<'p>(plan: &'p Plan<'_>, element: &[usize], counts: &dyn Fn(&Ring) -> bool) -> Stored<'p> {
    let mut stored = Stored { own: vec![Vec::new(); element.len()], shared: Vec::new() };
    for (c, cnn) in plan.cnns.iter().enumerate() {
        for (s, ring) in cnn.rings.iter().enumerate().filter(|(_, ring)| counts(ring)) {
            let members = || 0..element.len();
            let users: Vec<usize> = members().filter(|&m| ring.partitions.contains(&element[m])).collect();
            let meets = |&m: &usize| {
                let [begin, end] = window(plan, element[m]);
                plan.partitions[element[m]].cnn == c && ring.life[0] < end && begin <= ring.life[1]
            };
            let is_alone = |p: usize| !ring.partitions.iter().any(|&q| q != p && plan.together[p][q]);
            let homes = if users.is_empty() { members().filter(meets).collect() } else { users };
            match homes.as_slice() {
                // What persists lives on while other CNNs run.
                [] if !ring.persists() => {}
                [m] if !ring.is_cut() || is_alone(element[*m]) => stored.own[*m].push(s),
                _ => stored.shared.push(ring),
            }
        }
    }
    stored
}

/// Section 11: whether layers of these names, one of each partition of an element, fire at a moment of that element at
/// which exactly the tensors of these names occupy `bytes`.
pub fn is_moment(plan: &Plan<'_>, firing: &[&str], tensors: &[&str], bytes: u64) -> bool {
    let of_element = |element: &&Vec<usize>| of_element(plan, element, &|_| true) == bytes;
    plan.elements.iter().filter(|element| element.len() == firing.len()).filter(of_element).any(|element| {
        let Stored { own, shared } = stored(plan, element, &|_| true);
        let mut sets: BTreeSet<BTreeSet<&str>> =
            BTreeSet::from([shared.iter().map(|ring| ring.name.as_str()).collect()]);
        for (&p, own) in element.iter().zip(&own) {
            let cnn = &plan.cnns[plan.partitions[p].cnn];
            let (most, mut full) = (peak(plan, p, own), BTreeSet::new());
            moments(plan, p, own, &mut |l, sizes| {
                let fires = firing.contains(&format!("{}/{}", cnn.name, cnn.layers[l].name).as_str());
                if fires && sizes.iter().sum::<u64>() == most {
                    let is_used =
                        |(&s, &size): (&usize, &u64)| (size > 0).then(|| cnn.rings[s].name.as_str());
                    full.insert(own.iter().zip(sizes).filter_map(is_used).collect::<BTreeSet<&str>>());
                }
            });
            sets = sets.iter().flat_map(|set| full.iter().map(move |own| set | own)).collect();
        }
        sets.contains(&tensors.iter().copied().collect())
    })
}

/// The firings of a partition on its CNN's line.
fn window(plan: &Plan<'_>, p: usize) -> [usize; 2] {
    let before = (0..p).filter(|&other| plan.partitions[other].cnn == plan.partitions[p].cnn);
    let begin = before.map(|other| plan.partitions[other].schedule.len()).sum();
    [begin, begin + plan.partitions[p].schedule.len()]
}

/// The most bytes that rings occupy at a moment of a partition.
fn peak(plan: &Plan<'_>, p: usize, own: &[usize]) -> u64 {
    let mut most = 0;
    moments(plan, p, own, &mut |_, sizes| most = most.max(sizes.iter().sum()));
    most
}

/// The moments of a partition: the layer that fires, and the bytes that each of its own rings occupies.
fn moments(plan: &Plan<'_>, p: usize, own: &[usize], see: &mut dyn FnMut(usize, &[u64])) {
    let c = plan.partitions[p].cnn;
    let cnn = &plan.cnns[c];
    let line = plan.line(&plan.partitions_of(c));
    let [begin, end] = window(plan, p);
    let mut fired = vec![0; cnn.layers.len()];
    // Rows begun of each tensor, and released of each tensor that a layer holds.
    let mut begun = vec![0; cnn.layers.len()];
    let mut released: Vec<Vec<u64>> = cnn.layers.iter().map(|layer| vec![0; layer.held.len()]).collect();
    for (at, &l) in line.iter().enumerate().take(end) {
        let layer = &cnn.layers[l];
        let firing = fired[l];
        let rows = firing * layer.r..layer.end(firing);
        let by_rows = layer.held.iter().any(|held| held.keep_1.is_some());
        for row in if by_rows { rows } else { rows.end - 1..rows.end } {
            for (held, released) in layer.held.iter().zip(&mut released[l]) {
                if let Some(keep) = &held.keep_1 {
                    *released = keep[row as usize];
                }
            }
            begun[l] = row + 1;
            if begin <= at {
                let bytes = |&s: &usize| occupied(cnn, &cnn.rings[s], at, &begun, &released);
                see(l, &own.iter().map(bytes).collect::<Vec<u64>>());
            }
        }
        for (held, released) in layer.held.iter().zip(&mut released[l]) {
            *released = held.keep[firing as usize + 1];
        }
        fired[l] += 1;
    }
}

fn occupied(cnn: &Cnn, ring: &Ring, at: usize, begun: &[u64], released: &[Vec<u64>]) -> u64 {
    if at < ring.life[0] || ring.life[1] < at {
        return 0;
    }
    if ring.kind != Kind::Whole {
        return ring.bytes();
    }
    let of = |&reader: &usize| {
        let at = cnn.layers[reader].held.iter().position(|held| held.tensor == ring.tensor);
        at.map(|at| released[reader][at])
    };
    let low = ring.readers.iter().filter_map(of).min().unwrap_or(0);
    begun[ring.tensor].saturating_sub(low) * ring.row_bytes
}
