//! Spans of rows from which a row is made.

/// For one output row, the smallest row read and the row after the largest; [`NOTHING`] if it reads none. Rows outside
/// the operand (padding) are included here and cut off later.
pub(super) type Span = (i64, i64);

/// The span of an output row that reads nothing.
pub(super) const NOTHING: Span = (i64::MAX, i64::MIN);
