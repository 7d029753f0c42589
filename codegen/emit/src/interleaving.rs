//! The order in which the partitions of a group fire on a single thread.

use csdfc_plan::check::{Resolved, RowOrder};
use csdfc_plan::plan::Step;

/// Longest body of a loop that is looked for, in firings.
const MAX_PERIOD: usize = 64;

/// The layers of a group in the order in which they fire in a frame that begins with all rings empty. Each partition
/// goes on as long as the rows that it waits for are written and there is room for the rows that it makes.
pub(super) fn turns(resolved: &Resolved<'_>, c: usize, group: &[usize]) -> Vec<u32> {
    let (index, allocations) = (&resolved.index, &resolved.allocations[c]);
    let cnn = &index.cnns[c];
    let mut done = vec![0; group.len()];
    let mut fired = vec![0u64; cnn.layers.len()];
    let mut order = Vec::new();
    // The rows of a tensor that a layer's firings so far have released.
    let released = |reader: usize, tensor: usize, fired: &[u64]| {
        let held = resolved.rates[c][reader].iter().find(|held| held.tensor == tensor);
        held.and_then(|held| held.keep.get(fired[reader] as usize)).map_or(u64::MAX, |&row| row.into())
    };
    let written = |l: usize, fired: &[u64]| match fired[l] {
        0 => 0,
        firings => cnn.layers[l].rows_of_firing(firings - 1).end,
    };
    let is_ready = |l: usize, fired: &[u64]| {
        let (entry, p) = (&cnn.layers[l], fired[l]);
        let mut held = resolved.rates[c][l].iter().filter(|held| index.is_cut_edge(c, held.tensor, l));
        let arrived = held.all(|held| u64::from(held.need[p as usize]) <= written(held.tensor, fired));
        let mut cut = allocations
            .iter()
            .filter(|allocation| allocation.tensor == l && allocation.kind == RowOrder::RunsOn);
        let room = cut.all(|allocation| {
            let free = allocation.readers.iter().map(|&reader| released(reader, l, fired)).min();
            entry.rows_of_firing(p).end <= free.unwrap_or(u64::MAX).saturating_add(allocation.ring_rows)
        });
        arrived && room
    };
    loop {
        let before = order.len();
        for (&p, done) in group.iter().zip(&mut done) {
            while let Some(&layer) = resolved.schedules[p].get(*done) {
                if !is_ready(layer as usize, &fired) {
                    break;
                }
                order.push(layer);
                fired[layer as usize] += 1;
                *done += 1;
            }
        }
        // The checker has replayed the group, so this is the end of all schedules.
        if order.len() == before {
            return order;
        }
    }
}

/// A sequence of firings as loops.
pub(super) fn loops(order: &[u32], name: &dyn Fn(u32) -> String) -> Vec<Step> {
    let (mut steps, mut at) = (Vec::new(), 0);
    while at < order.len() {
        let rest = &order[at..];
        let repeats = |period: usize| {
            rest.chunks_exact(period).take_while(|chunk| *chunk == &rest[..period]).count().max(1)
        };
        // The period that covers the most firings; the shortest of equal ones.
        let covers = |&period: &usize| (repeats(period) * period, std::cmp::Reverse(period));
        let periods = (1..=MAX_PERIOD.min(rest.len())).filter(|&period| period == 1 || repeats(period) > 1);
        let period = periods.max_by_key(covers).unwrap_or(1);
        let times = repeats(period);
        let body = match period {
            1 => vec![Step::Fire { fire: name(rest[0]) }],
            _ => loops(&rest[..period], name),
        };
        match times {
            1 => steps.extend(body),
            _ => steps.push(Step::Repeat { repeat: times as u64, body }),
        }
        at += period * times;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unroll(steps: &[Step], order: &mut Vec<String>) {
        for step in steps {
            match step {
                Step::Fire { fire } => order.push(fire.clone()),
                Step::Repeat { repeat, body } => (0..*repeat).for_each(|_| unroll(body, order)),
            }
        }
    }

    #[test]
    fn loops_unroll_to_the_same_firings() {
        for (order, steps) in [
            (&[][..], 0),
            (&[1], 1),
            (&[1, 1, 1], 1),
            (&[1, 2, 1, 2, 1, 2, 3], 2),
            (&[1, 1, 2, 1, 1, 2, 1, 3], 3),
            (&[4, 1, 2, 3], 4),
        ] {
            let loops = loops(order, &|layer| layer.to_string());
            assert_eq!(loops.len(), steps, "{order:?}: {loops:?}");
            let mut unrolled = Vec::new();
            unroll(&loops, &mut unrolled);
            assert_eq!(unrolled, order.iter().map(ToString::to_string).collect::<Vec<_>>());
        }
    }
}
