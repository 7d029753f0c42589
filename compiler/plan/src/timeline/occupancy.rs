//! The bytes in use over time: the checker's walk along a frame, at the times of a simulation.

use std::ops::Range;

use crate::check::{self, Allocation, Event, Resolved};

use super::simulate::{Firing, Simulated};
use super::{Life, first_places};

/// An event of the walk along a firing.
enum WalkEvent {
    Occupies { allocation: usize, rows: Range<u64> },
    Moment,
}

/// A change or a moment, at a time.
struct TimedEvent {
    ns: f64,
    /// By how many bytes the bytes in use change; `None` for a moment.
    change: Option<i64>,
}

/// The parts in use of each place in each frame, and the bytes in use over time.
pub(super) fn occupancy(resolved: &Resolved<'_>, run: &Simulated) -> (Vec<Life>, Vec<[f64; 2]>) {
    let firsts = first_places(resolved);
    let mut lives: Vec<Life> = Vec::new();
    // Of each place, its life in the latest frame.
    let mut latest = vec![None; resolved.allocations.iter().map(Vec::len).sum()];
    let mut events = Vec::new();
    for (c, allocations) in resolved.allocations.iter().enumerate() {
        let cnn = &resolved.index.cnns[c];
        let of_cnn = || cnn.partitions.iter().flat_map(|p| &run.firings[run.of_partition[*p].clone()]);
        for (s, allocation) in allocations.iter().enumerate().filter(|(_, ring)| is_in_use_throughout(ring)) {
            // Rings between stages are in use from the start of the first stage to the end of the last one, or to the
            // last firing of a later group that reads them. What persists is in use while other CNNs run, too.
            let producer = cnn.layers[allocation.tensor].partition;
            let uses = |firing: &&Firing| {
                let p = firing.partition;
                p == producer
                    || resolved.index.concurrent[p][producer]
                    || allocation.readers.contains(&firing.layer)
            };
            let uses = || of_cnn().filter(uses);
            let [from_ns, to_ns] = match allocation.persists() {
                true => [0.0, run.ns],
                false => {
                    let from_ns =
                        uses().map(|firing| firing.start_ns).fold(f64::INFINITY, f64::min).min(run.ns);
                    [from_ns, uses().map(|firing| firing.end_ns).fold(from_ns, f64::max)]
                }
            };
            let steps = vec![(from_ns, 0..allocation.ring_rows), (to_ns, 0..0)];
            lives.push(Life { place: firsts[c] + s, frame: 0, steps });
            let bytes = allocation.bytes() as i64;
            events.extend(
                [(from_ns, bytes), (to_ns, -bytes)]
                    .map(|(ns, change)| TimedEvent { ns, change: Some(change) }),
            );
        }
        let seen = firings(resolved, c);
        let mut before = 0;
        for &p in &cnn.partitions {
            let schedule = resolved.schedules[p].len();
            for (at, firing) in run.firings[run.of_partition[p].clone()].iter().enumerate() {
                let (frame, seen) = (firing.frame, &seen[before + at % schedule]);
                let moments = seen.iter().filter(|seen| matches!(seen, WalkEvent::Moment)).count().max(1);
                let mut passed = 0;
                for seen in seen {
                    let ns = match passed == moments {
                        true => firing.end_ns,
                        false => {
                            let share = passed as f64 / moments as f64;
                            firing.start_ns + (firing.end_ns - firing.start_ns) * share
                        }
                    };
                    match seen {
                        WalkEvent::Moment => {
                            passed += 1;
                            events.push(TimedEvent { ns, change: None });
                        }
                        WalkEvent::Occupies { allocation, rows } => {
                            let place = firsts[c] + allocation;
                            let bytes = allocations[*allocation].row_bytes as i64;
                            let life = latest[place].filter(|life: &usize| lives[*life].frame == frame);
                            let life = life.unwrap_or_else(|| {
                                lives.push(Life { place, frame, steps: Vec::new() });
                                lives.len() - 1
                            });
                            latest[place] = Some(life);
                            let steps = &mut lives[life].steps;
                            let before = steps.last().map_or(0, |(_, rows)| rows.end - rows.start);
                            let change = (rows.end - rows.start) as i64 - before as i64;
                            if steps.last().is_none_or(|(_, last)| last != rows) {
                                steps.push((ns, rows.clone()));
                            }
                            events.push(TimedEvent { ns, change: Some(change.saturating_mul(bytes)) });
                        }
                    }
                }
            }
            before += schedule;
        }
    }
    // Stages of a pipeline end amid a frame.
    for life in &mut lives {
        if life.steps.last().is_some_and(|(_, rows)| !rows.is_empty()) {
            life.steps.push((run.ns, 0..0));
        }
    }
    (lives, usage(events, run.ns))
}

/// Whether all of a ring is in use throughout: a ring between stages, or one that persists from hop to hop.
fn is_in_use_throughout(allocation: &Allocation) -> bool {
    allocation.is_cut() || allocation.persists()
}

/// For each firing of a CNN's frame, with its partitions one after another, its events in turn.
fn firings(resolved: &Resolved<'_>, c: usize) -> Vec<Vec<WalkEvent>> {
    let counted: Vec<bool> = resolved.allocations[c].iter().map(|ring| !is_in_use_throughout(ring)).collect();
    let mut all = Vec::new();
    let mut seen = Vec::new();
    check::line(resolved, c).walk(&counted, usize::MAX, &mut |event| match event {
        Event::Occupies { allocation, rows } => seen.push(WalkEvent::Occupies { allocation, rows }),
        Event::Moment { .. } => seen.push(WalkEvent::Moment),
        Event::Fired => all.push(std::mem::take(&mut seen)),
    });
    all
}

/// The bytes in use at each moment, and at each change that is no moment.
fn usage(mut events: Vec<TimedEvent>, end_ns: f64) -> Vec<[f64; 2]> {
    // The sort is stable: what happens at one time stays in turn.
    events.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    let mut bytes = 0;
    let mut usage: Vec<[f64; 2]> = Vec::new();
    let mut see = |ns: f64, bytes: i64| {
        if usage.last().is_none_or(|[_, last]| *last != bytes as f64) {
            usage.push([ns, bytes as f64]);
        }
    };
    for (i, event) in events.iter().enumerate() {
        bytes += event.change.unwrap_or(0);
        let is_last = events.get(i + 1).is_none_or(|next| next.ns > event.ns);
        if event.change.is_none() || is_last {
            see(event.ns, bytes);
        }
    }
    see(end_ns, 0);
    usage
}
