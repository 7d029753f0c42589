//! Rows of a stream as kernels see them: counted from its start.
//!
//! A layer that works along time computes an endless tensor, of which each hop makes some rows. Its kernel gets the rows
//! of that tensor, so that it takes rows before row 0 for padding, as at the top of a frame. Row i of hop f is row
//! f · H + i − delay. After some hops, no window reads such padding any more. From then on, hops whose rows lie in the
//! same slots of the rings are alike, and the count of hops starts again before it gets large.
//!
//! ```
//! use csdfc_plan::check;
//! use csdfc_plan::plan::Plan;
//! use csdfc_runtime::stream::Hops;
//!
//! // A plan that is no stream computes each frame like the first.
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let plan = Plan::parse(&text)?;
//! let resolved = check::resolve(&plan).map_err(|violations| violations[0].to_string())?;
//! let hops = Hops::new(&resolved.index.cnns[0], &resolved.allocations[0])?;
//! assert_eq!((hops.count(0), hops.count(7)), (0, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;

use csdfc_plan::check::{Allocation, CnnIndex};
use csdfc_plan::operator::Operator;
use csdfc_plan::shape::Shape;

use crate::error::LayerError;

/// Rows of a tensor that does not end, for kernels that ask.
const ENDLESS: usize = 1 << 30;

/// How hops are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hops {
    /// From this hop on, no window reads rows before the start of the stream, and no layer begins with its first state.
    pub first_full: u64,
    /// Hops after which all rings that live from hop to hop are again at their first slots.
    pub period: u64,
}

impl Hops {
    /// Those of a CNN.
    ///
    /// # Errors
    /// When rows would be counted too far before the count can start again.
    pub fn new(cnn: &CnnIndex<'_>, allocations: &[Allocation]) -> Result<Self, LayerError> {
        let mut hops = Hops { first_full: 0, period: 1 };
        let mut most = 1;
        for (l, entry) in cnn.layers.iter().enumerate() {
            let Some(stream) = entry.tensor.stream else { continue };
            // With a state, row 0 differs from all others.
            let before = stream.history.max(entry.layer.operator.has_state().into());
            hops.first_full = hops.first_full.max((stream.delay + before).div_ceil(entry.rows()));
            let rings =
                allocations.iter().filter(|ring| ring.tensor == l && ring.persists() && ring.is_ring());
            for ring in rings {
                let period = ring.ring_rows / gcd(ring.ring_rows, entry.rows());
                hops.period = hops.period.saturating_mul(period / gcd(hops.period, period));
            }
            most = entry.rows().max(most);
        }
        let rows = hops.first_full.saturating_add(hops.period).saturating_add(1).saturating_mul(most);
        match rows < ENDLESS as u64 {
            true => Ok(hops),
            false => Err(LayerError::Period { hops: hops.period }),
        }
    }

    /// The hop as it is counted: a hop that is like this one.
    pub fn count(self, hop: u64) -> u64 {
        match hop.checked_sub(self.first_full) {
            Some(full) => self.first_full + full % self.period,
            None => hop,
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The row of the endless tensor of a layer that is row 0 of a hop, as counted. Negative if the row does not exist.
pub fn row_0(cnn: &CnnIndex<'_>, layer: usize, hop: u64) -> i64 {
    let entry = &cnn.layers[layer];
    let delay = entry.tensor.stream.map_or(0, |stream| stream.delay);
    (hop * entry.rows()) as i64 - delay as i64
}

/// A shape with its rows, if it is one of a layer that works along time, without end.
pub(crate) fn endless(over_time: bool, shape: &Shape) -> Cow<'_, Shape> {
    match shape.row_axis() {
        Some(axis) if over_time => {
            let mut shape = shape.clone();
            shape.dims[axis] = ENDLESS;
            Cow::Owned(shape)
        }
        _ => Cow::Borrowed(shape),
    }
}

/// An operator that makes rows without end.
pub(crate) fn endless_operator<'o>(
    over_time: bool,
    operator: &'o Operator,
    output: &Shape,
) -> Cow<'o, Operator> {
    match (operator, output.row_axis()) {
        (Operator::Slice(slice), Some(axis)) if over_time => {
            let mut slice = slice.clone();
            slice.lengths[axis] = ENDLESS;
            Cow::Owned(Operator::Slice(slice))
        }
        _ => Cow::Borrowed(operator),
    }
}
