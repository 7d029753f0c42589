//! Downsamples a timeline that is too long to draw: it becomes columns, each of which shows everything that happens within
//! it.

use std::ops::Range;

use csdfc_plan::timeline::{Firing, Timeline};

/// A timeline with more steps of lives, more firings, or more changes of the bytes in use than this is downsampled.
const MAX: usize = 60_000;

/// Columns of a downsampled timeline.
const COLUMNS: f64 = 8192.0;

/// The same timeline, with at most some thousand columns if it has more than can be drawn. Returns whether that is so.
pub fn downsample(timeline: &mut Timeline) -> bool {
    let steps: usize = timeline.lives.iter().map(|life| life.steps.len()).sum();
    if steps.max(timeline.firings.len()).max(timeline.usage.len()) <= MAX {
        return false;
    }
    let width = (timeline.ns / COLUMNS).max(f64::MIN_POSITIVE);
    let column = |ns: f64| (ns / width).floor();
    for life in &mut timeline.lives {
        let mut thinned: Vec<(f64, Range<u64>)> = Vec::new();
        for (ns, rows) in life.steps.drain(..) {
            match thinned.last_mut() {
                // Rows that are in use in a part of a column are drawn in the whole column.
                Some((last, union))
                    if column(*last) == column(ns) && !union.is_empty() && !rows.is_empty() =>
                {
                    *union = union.start.min(rows.start)..union.end.max(rows.end);
                }
                _ => thinned.push((ns, rows)),
            }
        }
        life.steps = thinned;
    }
    let mut usage: Vec<[f64; 2]> = Vec::new();
    for &[ns, bytes] in &timeline.usage {
        match usage.last_mut() {
            Some([last, most]) if column(*last) == column(ns) => *most = bytes.max(*most),
            _ => usage.push([ns, bytes]),
        }
    }
    timeline.usage = usage;
    timeline.firings.sort_by(|a, b| a.partition.cmp(&b.partition).then(a.start_ns.total_cmp(&b.start_ns)));
    let mut firings: Vec<Firing> = Vec::new();
    for firing in &timeline.firings {
        match firings.last_mut() {
            Some(last)
                if last.partition == firing.partition
                    && last.frame == firing.frame
                    && column(last.start_ns) == column(firing.end_ns) =>
            {
                last.end_ns = firing.end_ns;
            }
            _ => firings.push(*firing),
        }
    }
    timeline.firings = firings;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use csdfc_plan::timeline::Life;

    fn long(count: usize) -> Timeline {
        let at = |i: usize| i as f64;
        let firing = |i: usize| Firing {
            cnn: 0,
            layer: i % 2,
            partition: 0,
            frame: 0,
            firing: i as u64 / 2,
            start_ns: at(i),
            end_ns: at(i + 1),
        };
        let mut steps: Vec<(f64, Range<u64>)> = (0..count).map(|i| (at(i), i as u64..i as u64 + 3)).collect();
        steps.push((at(count), 0..0));
        Timeline {
            firings: (0..count).map(firing).collect(),
            lives: vec![Life { place: 0, frame: 0, steps }],
            usage: (0..count).map(|i| [at(i), if i == count / 3 { 1e9 } else { at(i) }]).collect(),
            ns: at(count),
            ..Timeline::default()
        }
    }

    #[test]
    fn what_is_too_much_is_drawn_in_columns() {
        let mut few = long(1000);
        assert!(!downsample(&mut few) && few == long(1000));
        let mut many = long(200_000);
        assert!(downsample(&mut many));
        let columns = COLUMNS as usize + 2;
        assert!(many.lives[0].steps.len() <= columns && many.usage.len() <= columns);
        assert!(many.firings.len() <= 2 * columns && many.firings.len() > 1000);
        // The peak is still there, and so are the first row, the last row and the end.
        assert!(many.usage.iter().any(|[_, bytes]| *bytes == 1e9));
        let steps = &many.lives[0].steps;
        assert_eq!((steps[0].1.start, steps[steps.len() - 2].1.end), (0, 200_002));
        assert!(steps.last().is_some_and(|(ns, rows)| *ns == 200_000.0 && rows.is_empty()));
        assert_eq!(many.firings.last().map(|firing| firing.end_ns), Some(200_000.0));
    }
}
