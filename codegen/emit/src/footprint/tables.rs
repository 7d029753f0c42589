//! The tables, one file for each target, as `tests/emit/footprint.rs` wrote them.

mod thumbv7em;

use super::Table;

/// The targets, the processors that they stand for, and what was measured with optimisation for speed and for size.
pub(super) const TARGETS: &[(&str, &str, [&Table; 2])] =
    &[("thumbv7em-none-eabihf", "Cortex-M4 and M7", [&thumbv7em::FAST, &thumbv7em::SMALL])];
