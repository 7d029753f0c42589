//! Rows that a row is made from.

/// For one output row the smallest row read and the row after the largest; [`NOTHING`] if it reads none. Rows
/// outside of the operand (padding) are let through and cut off later.
pub(super) type Span = (i64, i64);

/// The span of an output row that reads nothing.
pub(super) const NOTHING: Span = (i64::MAX, i64::MIN);
