//! The events of a frame of a plan, for people to look at: when layers fire, when weights are read, where everything
//! lies in the arena, and which bytes of the arena are in use at each time.
//!
//! The bytes in use come from the checker's own walk along a frame, with which it computes the bound (`check::bound`
//! defines a moment and what a ring occupies at it). So if the partitions of a plan follow each other, the most bytes
//! of [`Timeline::usage`] are [`Memory::bound`](crate::plan::Memory::bound). If partitions run at the same time,
//! [`Timeline::usage`] usually stays below the bound, which counts the peaks of all of them as if they came at the same
//! time.
//!
//! Times are simulated (`simulate`): each firing takes its share of the time that the plan states of its layer.
//!
//! ```
//! use csdfc_plan::plan::Plan;
//! use csdfc_plan::timeline::timeline;
//!
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let plan = Plan::parse(&text)?;
//! let timeline = timeline(&plan).map_err(|violations| violations[0].to_string())?;
//! // An input and a convolution, 32 firings each. The ring between them is all that lies in the arena.
//! assert_eq!((timeline.firings.len(), timeline.places.len()), (64, 1));
//! assert_eq!((timeline.places[0].name.as_str(), timeline.places[0].bytes()), ("pair/l1", 1920));
//! let most = timeline.usage.iter().map(|[_, bytes]| *bytes).fold(0.0, f64::max);
//! assert_eq!(most, plan.memory.bound as f64);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod occupancy;
mod simulate;

use std::ops::Range;

use crate::check::{self, Allocation, Resolved, RowOrder, Violation};
use crate::plan::{Plan, TimeBasis};

pub use simulate::{Firing, Load};

/// A frame of every CNN, and some frames of a pipeline.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// Everything that lies in the arena.
    pub places: Vec<Place>,
    /// The firings, by when they start.
    pub firings: Vec<Firing>,
    /// The reads of streamed weights, by when they start.
    pub loads: Vec<Load>,
    /// The parts in use of each place, frame by frame.
    pub lives: Vec<Life>,
    /// Bytes in use from a time on: nanoseconds and bytes, ascending. If several moments fall on one time, the least
    /// and the most of their bytes are listed too.
    pub usage: Vec<[f64; 2]>,
    /// The moment at which most bytes are in use.
    pub peak: Peak,
    /// Nanoseconds until everything has ended.
    pub ns: f64,
    /// Where the times of layers come from; `None` if the plan does not state them. Each firing then counts a nanosecond.
    pub basis: Option<TimeBasis>,
}

/// A ring, a workspace, or a block of weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// `cnn/tensor`, `workspace of cnn/layer`, or `block 0 of cnn/layer`; in storage model `edges` `cnn/tensor → reader`.
    pub name: String,
    /// What it is.
    pub kind: PlaceKind,
    /// Its CNN.
    pub cnn: usize,
    /// The layer that writes it, or whose workspace or block it is.
    pub layer: usize,
    /// The layers that read it.
    pub readers: Vec<usize>,
    /// Its first address, or both of a double buffer.
    pub offsets: Vec<u64>,
    /// Rows that it has room for; 1 of a workspace or a block.
    pub rows: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
}

/// The content of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// All rows of a tensor. Only some of them may be in use at a time.
    Whole,
    /// Fewer rows than the tensor has, all in use.
    Wraps,
    /// Rows between partitions that run at the same time, in use throughout.
    Cut,
    /// Rows that stay from hop to hop, in use throughout.
    State,
    /// A layer's own memory.
    Workspace,
    /// Tiles of weights.
    Block,
}

impl PlaceKind {
    /// Its name in pages and traces.
    pub fn name(self) -> &'static str {
        match self {
            PlaceKind::Whole => "whole tensor",
            PlaceKind::Wraps => "ring of rows",
            PlaceKind::Cut => "ring between stages",
            PlaceKind::State => "ring kept from hop to hop",
            PlaceKind::Workspace => "workspace",
            PlaceKind::Block => "block of weights",
        }
    }
}

impl Place {
    /// Whether rows of a tensor lie in it.
    pub fn is_ring(&self) -> bool {
        !matches!(self.kind, PlaceKind::Workspace | PlaceKind::Block)
    }

    /// Bytes of it, of both halves of a double buffer.
    pub fn bytes(&self) -> u64 {
        self.rows * self.row_bytes * self.offsets.len() as u64
    }
}

/// The part of a place that is in use in one frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Life {
    /// The place, by its index.
    pub place: usize,
    /// The frame, from 0.
    pub frame: u64,
    /// From a time on, in nanoseconds, these rows are in use. The last entry has none.
    pub steps: Vec<(f64, Range<u64>)>,
}

/// The moment at which the most bytes are in use, and the places in use then.
///
/// If partitions run at the same time, each is at its own peak, as the bound counts them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Peak {
    /// The layers that fire: a CNN, a layer of it, and the number of the firing.
    pub firings: Vec<[usize; 3]>,
    /// Places in use, the largest first.
    pub occupied: Vec<Occupied>,
}

/// A place in use at the peak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occupied {
    /// The place, by its index.
    pub place: usize,
    /// The rows in use.
    pub rows: Range<u64>,
    /// Their bytes.
    pub bytes: u64,
}

/// The events of a frame of a plan.
///
/// # Errors
/// As [`check::check`]; when the plan has too many firings, partitions or tiles.
pub fn timeline(plan: &Plan) -> Result<Timeline, Vec<Violation>> {
    let resolved = check::resolve(plan)?;
    simulate::check_work(&resolved)?;
    let basis = simulate::basis(plan);
    let run = simulate::simulate(&resolved, basis.is_some());
    Ok(of_run(&resolved, run, basis))
}

fn of_run(resolved: &Resolved<'_>, run: simulate::Simulated, basis: Option<TimeBasis>) -> Timeline {
    let (lives, usage) = occupancy::occupancy(resolved, &run);
    let peak = peak(resolved);
    let simulate::Simulated { mut firings, mut loads, ns, .. } = run;
    firings.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    loads.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    Timeline { places: places(resolved), firings, loads, lives, usage, peak, ns, basis }
}

/// The events of a measured frame of a plan. `firings` and `loads` are those of one frame of each CNN, in which each
/// partition has fired in its own order.
///
/// # Errors
/// As [`check::check`].
pub fn measured(plan: &Plan, firings: Vec<Firing>, loads: Vec<Load>) -> Result<Timeline, Vec<Violation>> {
    let resolved = check::resolve(plan)?;
    let run = simulate::Simulated::of_measured(&resolved, firings, loads);
    Ok(of_run(&resolved, run, Some(TimeBasis::Measured)))
}

fn places(resolved: &Resolved<'_>) -> Vec<Place> {
    let of_cnn = |(c, allocations): (usize, &Vec<Allocation>)| -> Vec<Place> {
        let place = |allocation: &Allocation| Place {
            name: allocation.name.clone(),
            kind: match allocation.kind {
                RowOrder::Workspace | RowOrder::Recurrent => PlaceKind::Workspace,
                RowOrder::Block(_) => PlaceKind::Block,
                RowOrder::RunsOn | RowOrder::Halves => PlaceKind::Cut,
                RowOrder::Persists | RowOrder::State => PlaceKind::State,
                RowOrder::Restarts
                    if allocation.ring_rows < resolved.index.cnns[c].layers[allocation.tensor].rows() =>
                {
                    PlaceKind::Wraps
                }
                RowOrder::Restarts | RowOrder::Kept => PlaceKind::Whole,
            },
            cnn: c,
            layer: allocation.tensor,
            readers: allocation.readers.clone(),
            offsets: allocation.bases.clone(),
            rows: allocation.ring_rows,
            row_bytes: allocation.row_bytes,
        };
        allocations.iter().map(place).collect()
    };
    resolved.allocations.iter().enumerate().flat_map(of_cnn).collect()
}

/// Of each CNN, the index of its first place.
fn first_places(resolved: &Resolved<'_>) -> Vec<usize> {
    let counts = resolved.allocations.iter().map(Vec::len);
    let first = counts.scan(0, |next, count| Some(std::mem::replace(next, *next + count)));
    first.collect()
}

fn peak(resolved: &Resolved<'_>) -> Peak {
    let found = check::peak(resolved);
    let firing = |&(p, at): &(usize, usize)| {
        let schedule = &resolved.schedules[p];
        let layer = schedule[at];
        let before = schedule[..at].iter().filter(|other| **other == layer).count();
        [resolved.index.partitions[p].cnn, layer as usize, before]
    };
    let firsts = first_places(resolved);
    let occupied = found.occupied.into_iter().map(|(c, s, rows)| {
        let allocation = &resolved.allocations[c][s];
        let bytes = (rows.end - rows.start) * allocation.row_bytes * allocation.bases.len() as u64;
        Occupied { place: firsts[c] + s, rows, bytes }
    });
    let mut occupied: Vec<Occupied> = occupied.collect();
    occupied.sort_by_key(|occupied| (std::cmp::Reverse(occupied.bytes), occupied.place));
    Peak { firings: found.firings.iter().map(firing).collect(), occupied }
}
