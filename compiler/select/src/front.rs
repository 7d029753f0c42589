//! Undominated sums of time and memory, by elimination.
//!
//! Elimination goes on as for least sums, but each cell of a message has all undominated pairs of a time and a memory.
//! This gives whole fronts. For one point of a front, [`SumRange`] leaves out the sums that cannot belong to it.

use crate::elimination::{Messages, Source};
use crate::model::{Model, Point, Weights};
use crate::problem::Selection;
use crate::stop::Stop;

/// Which sums are looked for.
#[derive(Debug)]
pub struct SumRange<'m> {
    /// The weights of the two quantities.
    pub weights: Weights,
    /// The weighed tables.
    pub tables: &'m [Vec<u128>],
    /// Their messages.
    pub messages: &'m Messages,
    /// For each bucket and combination of values, the least weight of a selection with these values.
    pub least_with: &'m [Vec<u128>],
    /// Maximum weight of a selection.
    pub most: u128,
}

/// Limits on the sums that are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Limits<'s> {
    /// Maximum time.
    pub time: u64,
    /// Maximum memory.
    pub memory: u64,
    /// Maximum number of pairs that may be looked at.
    pub work: u64,
    /// When to give up before that.
    pub stop: Stop<'s>,
}

/// A point of a front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// The time.
    pub time: u64,
    /// The memory.
    pub memory: u64,
    /// The place of its candidates in the traces.
    trace: usize,
}

/// A front, and the traces that give its selections.
#[derive(Debug)]
pub struct Front {
    /// Undominated points by rising time.
    pub points: Vec<Sum>,
    /// Pairs that were looked at.
    pub work: u64,
    traces: Vec<Trace>,
}

/// The candidates behind a sum.
#[derive(Debug, Clone, Copy)]
enum Trace {
    None,
    Taken { layer: usize, candidate: usize },
    Both(usize, usize),
}

/// Pairs that are sorted at a time: it takes some tenths of a second.
const SORTED_AT_ONCE: usize = 1 << 22;

/// The candidates of nothing.
const NO_TRACE: usize = 0;

/// All undominated sums of a model within limits. Of equal sums, the first is taken. `None` if there is too much work,
/// or somebody asks for the end. The model's tree must be exact.
pub fn undominated(model: &Model, band: Option<&SumRange<'_>>, limits: Limits<'_>) -> Option<Front> {
    let mut fronts = Fronts { model, band, limits, work: 0, traces: vec![Trace::None] };
    let tables = fronts.leaves();
    let mut messages: Vec<Vec<Vec<Sum>>> = Vec::with_capacity(model.tree.buckets.len());
    let mut all = vec![Sum { time: 0, memory: 0, trace: NO_TRACE }];
    for (at, bucket) in model.tree.buckets.iter().enumerate() {
        let values = model.tree.eliminated(bucket);
        let mut cells = vec![Vec::new(); model.tree.message_cells(bucket)];
        let mut ended = false;
        model.tree.visit(bucket, |place, parts| {
            let cell = &mut cells[place / values];
            ended = ended
                || fronts
                    .add(at, place, parts, &Known { tables: &tables, messages: &messages }, cell)
                    .is_none();
            if place % values + 1 == values {
                undominate(cell);
            }
        });
        if ended {
            return None;
        }
        if bucket.scope.len() == 1 {
            all = fronts.joined(&all, &cells[0], u128::MAX)?;
        }
        // A message that was read is no longer needed.
        for part in &bucket.parts {
            if let Source::Message(child) = part.source {
                messages[child] = Vec::new();
            }
        }
        messages.push(cells);
    }
    Some(Front { points: all, work: fronts.work, traces: fronts.traces })
}

impl Front {
    /// The selection of one of its points.
    pub fn selection(&self, point: &Sum, layers: usize) -> Selection {
        let mut selection = vec![0; layers];
        let mut open = vec![point.trace];
        while let Some(trace) = open.pop() {
            match self.traces[trace] {
                Trace::None => {}
                Trace::Taken { layer, candidate } => selection[layer] = candidate,
                Trace::Both(one, other) => open.extend([one, other]),
            }
        }
        selection
    }
}

/// The sums of tables and messages, by cell.
struct Known<'m> {
    tables: &'m [Vec<Vec<Sum>>],
    messages: &'m [Vec<Vec<Sum>>],
}

struct Fronts<'m> {
    model: &'m Model,
    band: Option<&'m SumRange<'m>>,
    limits: Limits<'m>,
    work: u64,
    traces: Vec<Trace>,
}

impl Fronts<'_> {
    /// Adds the sums of one combination of values of a bucket to a cell of its message.
    fn add(
        &mut self,
        at: usize,
        place: usize,
        parts: &[usize],
        known: &Known<'_>,
        cell: &mut Vec<Sum>,
    ) -> Option<()> {
        // How far above its least weight this combination may be.
        let spare = match self.band {
            None => u128::MAX,
            Some(band) => match band.most.checked_sub(band.least_with[at][place]) {
                None => return Some(()),
                Some(spare) => spare,
            },
        };
        let bucket = &self.model.tree.buckets[at];
        let mut sums = vec![Sum { time: 0, memory: 0, trace: NO_TRACE }];
        // The least weight of the parts so far.
        let mut least: u128 = 0;
        for (part, place) in bucket.parts.iter().zip(parts) {
            let (points, weight) = match part.source {
                Source::Table(table) => {
                    (&known.tables[table][*place], self.band.map(|band| band.tables[table][*place]))
                }
                Source::Message(child) => {
                    (&known.messages[child][*place], self.band.map(|band| band.messages.cells[child][*place]))
                }
            };
            least = least.saturating_add(weight.unwrap_or(0));
            sums = self.joined(&sums, points, spare.saturating_add(least))?;
            if sums.is_empty() {
                return Some(());
            }
        }
        cell.extend(sums);
        Some(())
    }

    /// The points of all tables.
    fn leaves(&mut self) -> Vec<Vec<Vec<Sum>>> {
        let mut tables = Vec::new();
        for (index, table) in self.model.tables.iter().enumerate() {
            let mut sum = |point: &Point| {
                let trace = self.model.layer(index).map_or(NO_TRACE, |layer| {
                    self.traces.push(Trace::Taken { layer, candidate: point.candidate });
                    self.traces.len() - 1
                });
                Sum { time: point.time, memory: point.memory, trace }
            };
            tables.push(table.cells.iter().map(|cell| cell.iter().map(&mut sum).collect()).collect());
        }
        tables
    }

    /// The undominated sums of each of `one` with each of `other`, within the limits and of at most this weight.
    fn joined(&mut self, one: &[Sum], other: &[Sum], most: u128) -> Option<Vec<Sum>> {
        self.work += (one.len() * other.len()) as u64;
        if self.work > self.limits.work {
            return None;
        }
        let mut pairs = Vec::new();
        let mut most_pairs = SORTED_AT_ONCE;
        for (i, a) in one.iter().enumerate() {
            if self.limits.stop.is_asked() {
                return None;
            }
            if pairs.len() > most_pairs {
                keep_undominated(&mut pairs);
                most_pairs = SORTED_AT_ONCE.max(2 * pairs.len());
            }
            for (j, b) in other.iter().enumerate() {
                let (time, memory) = (a.time + b.time, a.memory + b.memory);
                let light = self.band.is_none_or(|band| band.weights.weighted(time, memory) <= most);
                if light && time <= self.limits.time && memory <= self.limits.memory {
                    pairs.push((time, memory, i, j));
                }
            }
        }
        keep_undominated(&mut pairs);
        let mut sums = Vec::with_capacity(pairs.len());
        for (time, memory, i, j) in pairs {
            let trace = match (one[i].trace, other[j].trace) {
                (NO_TRACE, trace) | (trace, NO_TRACE) => trace,
                (a, b) => {
                    self.traces.push(Trace::Both(a, b));
                    self.traces.len() - 1
                }
            };
            sums.push(Sum { time, memory, trace });
        }
        Some(sums)
    }
}

/// Keeps the undominated pairs of a time and a memory by rising time; of equal ones, that of the first places.
fn keep_undominated(pairs: &mut Vec<(u64, u64, usize, usize)>) {
    pairs.sort_unstable();
    let mut lowest = None;
    pairs.retain(|(_, memory, ..)| {
        let is_lower = lowest.is_none_or(|lowest| *memory < lowest);
        if is_lower {
            lowest = Some(*memory);
        }
        is_lower
    });
}

/// Keeps the undominated sums by rising time; of equal ones, the first.
fn undominate(sums: &mut Vec<Sum>) {
    sums.sort_by_key(|sum| (sum.time, sum.memory));
    let mut lowest = None;
    sums.retain(|sum| {
        let better = lowest.is_none_or(|lowest| sum.memory < lowest);
        if better {
            lowest = Some(sum.memory);
        }
        better
    });
}
