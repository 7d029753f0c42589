//! Section 10: what `bound` counts.

use super::model::{Cnn, Kind, Plan, Ring};

/// The bound of the rings that count.
pub fn bound(plan: &Plan<'_>, counts: &dyn Fn(&Ring) -> bool) -> u64 {
    plan.elements.iter().map(|element| of_element(plan, element, counts)).max().unwrap_or(0)
}

fn of_element(plan: &Plan<'_>, element: &[usize], counts: &dyn Fn(&Ring) -> bool) -> u64 {
    let mut bytes = 0;
    let mut own: Vec<Vec<usize>> = vec![Vec::new(); element.len()];
    for (c, cnn) in plan.cnns.iter().enumerate() {
        for (s, ring) in cnn.rings.iter().enumerate().filter(|(_, ring)| counts(ring)) {
            let members = || 0..element.len();
            let users: Vec<usize> = members().filter(|&m| ring.partitions.contains(&element[m])).collect();
            let meets = |&m: &usize| {
                let [begin, end] = window(plan, element[m]);
                plan.partitions[element[m]].cnn == c && ring.life[0] < end && begin <= ring.life[1]
            };
            let is_alone = |p: usize| !ring.partitions.iter().any(|&q| q != p && plan.together[p][q]);
            match users.as_slice() {
                [] if ring.is_cut() => {}
                [] => {
                    let passed: Vec<usize> = members().filter(meets).collect();
                    match passed.as_slice() {
                        [] => {}
                        [m] => own[*m].push(s),
                        _ => bytes += ring.bytes(),
                    }
                }
                [m] if !ring.is_cut() || is_alone(element[*m]) => own[*m].push(s),
                _ => bytes += ring.bytes(),
            }
        }
    }
    bytes + element.iter().zip(&own).map(|(&p, own)| peak(plan, p, own)).sum::<u64>()
}

/// The firings of a partition on its CNN's line.
fn window(plan: &Plan<'_>, p: usize) -> [usize; 2] {
    let before = (0..p).filter(|&other| plan.partitions[other].cnn == plan.partitions[p].cnn);
    let begin = before.map(|other| plan.partitions[other].schedule.len()).sum();
    [begin, begin + plan.partitions[p].schedule.len()]
}

/// The most bytes that rings occupy at a moment of a partition.
fn peak(plan: &Plan<'_>, p: usize, own: &[usize]) -> u64 {
    let c = plan.partitions[p].cnn;
    let cnn = &plan.cnns[c];
    let line = plan.line(&plan.partitions_of(c));
    let [begin, end] = window(plan, p);
    let mut fired = vec![0; cnn.layers.len()];
    // Rows begun of each tensor, and released of each tensor that a layer holds.
    let mut begun = vec![0; cnn.layers.len()];
    let mut released: Vec<Vec<u64>> = cnn.layers.iter().map(|layer| vec![0; layer.held.len()]).collect();
    let mut most = 0;
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
                most = most.max(own.iter().map(bytes).sum());
            }
        }
        for (held, released) in layer.held.iter().zip(&mut released[l]) {
            *released = held.keep[firing as usize + 1];
        }
        fired[l] += 1;
    }
    most
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
