//! The independent checker: it replays a plan, and shares no code with the planner.
//!
//! A plan is accepted only if all of the following hold. *Layer* l makes rows `[p·r, min((p+1)·r, H))` of its tensor in
//! firing p. By the definition of l's operator (`rows`), `need(l, o, p)` is the number of leading rows of operand o
//! that firings 0..=p read, and `keep(l, o, p)` is the first row that firings p.. still read.
//!
//! 1. *Structure* (`structure`). Names are unique and resolve. Layers are in topological order, each in one partition.
//!    No data flows to an earlier partition, unless the two run at the same time. Each tensor states its true producer,
//!    readers, shape and sizes. A view has as many elements as its tensor.
//! 2. *Shapes* (`shapes`). Each layer's output shape and parameters follow from its operator and its inputs.
//!    *Primitives* (`primitives`). Each layer's primitive is one that computes its operator, and tensors lie in the
//!    layouts that it reads and writes. *Shared parameters* (`shared`). A layer that uses the parameters of an earlier
//!    layer would keep the same bytes.
//! 3. *Rates* (`rates`). Firings are ⌈H / r⌉; `acquire(p) = need(p) − need(p−1)`, `release(p) = keep(p+1) − keep(p)`;
//!    the firing before rows that no firing reads acquires and releases them (`need(p) ≥ keep(p+1)`), and the last
//!    firing acquires and releases all that is left.
//!    Layers of a stream also read rows of the hops before (`stream`). These are in the ring when a hop begins. So are
//!    all rows of a state (`state`).
//! 4. *Storage* (`storage`). Each tensor (model `tensors`) or edge (model `edges`) has one ring inside the arena, or
//!    a double buffer, or the caller's copy. Row i of a frame lies at `offset + (i mod ring_rows) · row_bytes`; for a
//!    tensor cut between partitions that run at the same time, i runs on over frames.
//!    Streamed weights (`streamed`) come in tiles of the sizes that the primitive keeps, one after another in the store, into
//!    blocks of the arena. The firing after which a block may be written comes before the layer's own first firing.
//! 5. *Lifetimes* (`lifetimes`). A ring lives from its producer's first firing to the last firing of any reader. It is
//!    stored in the partitions that touch it, and in those of its CNN that fire meanwhile. A ring of fewer rows than
//!    its tensor *wraps*; all other rings are *whole*. A workspace and a block count as rings that wrap. A workspace in
//!    which a layer leaves its state lives from hop to hop, as a ring with a history does. A block lives
//!    from the end of the firing after which it may be written to its layer's last firing. So nothing else is in the
//!    block, whenever a load starts and ends in between. These share no byte:
//!    - two rings that are stored in partitions that run at the same time, whenever they live;
//!    - a ring between such partitions, and any other ring that lives at the same time;
//!    - in model `edges`, any two rings that live at the same time;
//!    - two rings that wrap and live at the same time;
//!    - a ring that persists from hop to hop of a stream, and any ring, workspace or block of another CNN.
//!
//!    A ring that wraps has all its bytes to itself while it lives. A whole ring *occupies* the bytes of the rows that
//!    are begun and that some reader still needs. Other rows may lie in the rest of its bytes, as far as rule 7 lets
//!    them. A layer may write where it reads only if both rings are whole, and only if it reads that ring by rows.
//! 6. *Schedule* (`schedule`). Each partition fires each of its layers the number of times that rule 3 gives.
//! 7. *Replay* (`replay`). The plan is replayed with an arena of tags (tensor, row, frame), over several frames.
//!    Partitions that run at the same time are replayed in several interleavings, under the blocking rule of
//!    `concurrent`.
//!    - At each firing every row held, `[keep(p), need(p))`, carries its own tag in every byte.
//!    - No row is written over a row that is written and not yet released by all its readers, nor into another ring
//!      that wraps and lives.
//!    - When a ring that wraps begins, no row that is needed lies in it.
//!    - No interleaving deadlocks.
//!
//!    A firing that writes in part where it reads is made row by row. Row o of its output is written when the rows
//!    below `keep(l, o, o)` of what it reads by rows are released, and no others. Here `keep` is that of one row per
//!    firing.
//! 8. *Sums* (`sums`). Every sum equals the sum of its parts. `memory.bound` is the most bytes that are occupied at one
//!    moment (`bound`). The certificate names such a moment, and all that is stored then (`witness`). `proven` is true
//!    exactly if the arena is as large as the bound, and `met` exactly if the plan meets the constraints. Partitions
//!    that run at the same time keep no more cores busy than there are. The checker does not prove
//!    `certificate.claimed`. It refuses a claim that is not above the bound, or that is above the arena.
//!
//! Every check is bounded: a plan beyond the limits below is refused as [`Violation::TooLarge`].
//!
//! ```
//! use csdfc_plan::check::{Violation, check};
//! use csdfc_plan::plan::{Plan, Ring};
//!
//! // A 5×5 convolution of an image of 32 rows, row by row.
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let mut plan = Plan::parse(&text)?;
//! let report = check(&plan).map_err(|violations| violations[0].to_string())?;
//! assert_eq!((report.layers, report.rings, report.peak_bytes), (2, 1, 5 * 384));
//!
//! // The window reads five rows. In a ring of four, the fifth lies where the first is still needed.
//! plan.tensors[0].ring = Some(Ring { ring_rows: 4, offset: 0, bytes: 4 * 384 });
//! let violations = check(&plan).err().unwrap_or_default();
//! assert!(violations.iter().any(|violation| matches!(violation, Violation::OverwritesNeeded { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod allocation;
mod bound;
mod concurrent;
mod delivery;
mod edges;
mod families;
mod index;
mod integers;
mod life;
mod lifetimes;
mod occupied;
pub mod parameters;
mod primitive;
pub mod primitives;
mod rates;
mod regions;
mod replay;
mod resample;
mod rows;
mod schedule;
mod shape_error;
mod shapes;
mod shared;
mod span;
mod state;
mod storage;
mod stream;
mod streamed;
mod structure;
mod sums;
#[cfg(test)]
pub(crate) mod tests;
mod violation;
mod winograd;
mod witness;

use serde::Serialize;

use crate::plan::Plan;

pub use allocation::{Allocation, Begin, RowOrder};
pub use index::{CnnIndex, Index, LayerIndex, PartitionIndex};
pub(crate) use lifetimes::{line, peak};
pub(crate) use occupied::Event;
pub use rates::{Held, Rates};
use storage::Accesses;
pub use streamed::{TilesError, tiles};
pub use violation::{Addresses, Violation};

/// Maximum number of layers, tensors, edges, or other named things of one kind.
const MAX_NAMES: usize = 20_000;
/// Maximum number of partitions.
const MAX_PARTITIONS: usize = 1_000;
/// Maximum number of workers that share a firing.
const MAX_THREADS: usize = 256;
/// Maximum number of rows of one tensor.
const MAX_ROWS: u64 = 1_000_000;
/// Maximum number of dimensions of one tensor.
const MAX_RANK: usize = 16;
/// Maximum number of elements of one tensor.
const MAX_ELEMENTS: u64 = 1 << 48;
/// Maximum number of rows of all rings, rows of all operands, and firings of one frame, each.
const MAX_TABLE: u64 = 1 << 23;
/// Maximum number of loops within each other in a schedule.
const MAX_DEPTH: usize = 64;
/// Maximum number of tags read or written by one replay.
const MAX_WORK: u64 = 1 << 30;
/// Maximum number of bytes of the arena.
const MAX_ARENA: u64 = 1 << 40;
/// Maximum number of violations reported by one rule.
const MAX_VIOLATIONS: usize = 100;

/// Counts of the replay of an accepted plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// CNNs.
    pub cnns: usize,
    /// Partitions.
    pub partitions: usize,
    /// Layers of all CNNs.
    pub layers: usize,
    /// Operands whose rates were recomputed.
    pub operands: usize,
    /// Rings in the arena; an edge in a double buffer counts as one.
    pub rings: usize,
    /// Replays of whole CNNs: one for each CNN, or one for each interleaving of concurrent partitions.
    pub replays: u64,
    /// Firings, over all replays.
    pub firings: u64,
    /// Rows written, over all replays.
    pub rows_written: u64,
    /// Rows read and found intact, over all replays.
    pub rows_read: u64,
    /// Maximum number of bytes of rings occupied at the same time.
    pub peak_bytes: u64,
}

/// Checks a plan by the rules atop this module.
///
/// # Errors
/// The violations, never empty. There may be more violations than these, since a rule is only checked if the rules that
/// it builds on hold.
pub fn check(plan: &Plan) -> Result<Report, Vec<Violation>> {
    Ok(resolve(plan)?.report)
}

/// An accepted plan with its names resolved, and the tables of its replay.
pub struct Resolved<'a> {
    /// The plan with all its names resolved.
    pub index: Index<'a>,
    /// The tensors held, by CNN and layer.
    pub rates: Rates,
    /// Where rows lie in the arena, by CNN.
    pub allocations: Vec<Vec<Allocation>>,
    /// By CNN and layer, whether its output ring shares bytes with a ring that it reads, so that it makes its rows one
    /// by one.
    pub follows: Vec<Vec<bool>>,
    /// By partition, the layers in the order in which they fire in one frame.
    pub schedules: Vec<Vec<u32>>,
    report: Report,
}

/// Checks a plan, and returns the tables that the checks made.
///
/// # Errors
/// As [`check`].
pub fn resolve(plan: &Plan) -> Result<Resolved<'_>, Vec<Violation>> {
    let index = structure::check(plan)?;
    shapes::check(&index)?;
    stream::check(&index)?;
    state::check(&index)?;
    primitives::check(&index)?;
    shared::check(&index)?;
    let rates = rates::check(&index)?;
    let allocations = storage::check(&index)?;
    let schedules = schedule::check(&index)?;
    streamed::check_events(&index, &allocations, &schedules)?;
    let lifetimes = lifetimes::check(&index, &rates, &allocations, &schedules)?;
    let mut violations = sums::check(&index, &allocations, &lifetimes).err().unwrap_or_default();
    let mut report = Report {
        cnns: index.cnns.len(),
        partitions: index.partitions.len(),
        layers: index.cnns.iter().map(|cnn| cnn.layers.len()).sum(),
        operands: index.cnns.iter().flat_map(|cnn| &cnn.layers).map(|layer| layer.inputs.len()).sum(),
        rings: allocations.iter().map(Vec::len).sum(),
        peak_bytes: lifetimes.bound,
        ..Report::default()
    };
    for cnn in 0..index.cnns.len() {
        let replayed =
            concurrent::replay(&index, cnn, &rates[cnn], &allocations[cnn], &schedules, &mut report);
        violations.extend(replayed.err().map(|violation| *violation));
    }
    if violations.is_empty() {
        let follows = (0..index.cnns.len()).map(|c| {
            let cnn = &index.cnns[c];
            let uses = Accesses::new(cnn, &rates[c], &allocations[c]);
            (0..cnn.layers.len()).map(|l| uses.follows(l, &allocations[c])).collect()
        });
        let follows = follows.collect();
        Ok(Resolved { index, rates, allocations, follows, schedules, report })
    } else {
        Err(violations)
    }
}

/// The violations found by one rule, the first [`MAX_VIOLATIONS`] of them.
#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn push(&mut self, violation: Violation) {
        if self.0.len() < MAX_VIOLATIONS {
            self.0.push(violation);
        }
    }

    /// Pushes a violation if a sum is wrong.
    fn sum(&mut self, what: impl Into<String>, stated: u64, expected: Option<u64>) {
        if expected != Some(stated) {
            let expected = expected.map_or("beyond 64 bits".into(), |sum| sum.to_string());
            self.push(Violation::Sum { what: what.into(), stated: stated.to_string(), expected });
        }
    }

    /// Pushes a violation if a value is beyond a limit.
    fn limit(&mut self, what: impl Into<String>, value: Option<u64>, limit: u64) {
        if value.is_none_or(|value| value > limit) {
            let value = value.map_or("beyond 64 bits".into(), |value| value.to_string());
            self.push(Violation::TooLarge { what: what.into(), value, limit });
        }
    }

    /// `value` if nothing was found.
    fn or<T>(self, value: T) -> Result<T, Vec<Violation>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}
