//! Attributes of operators that look for the largest or the least elements.

use serde::{Deserialize, Serialize};

/// Attributes of [`super::Operator::ArgMax`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArgMax {
    /// The dimension searched.
    pub axis: usize,
    /// Whether that dimension stays, with size 1.
    pub keep_dims: bool,
    /// Whether the last of equal elements wins instead of the first.
    pub select_last: bool,
}

/// Attributes of [`super::Operator::TopK`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopK {
    /// The dimension searched.
    pub axis: usize,
    /// Its size in the output.
    pub count: usize,
    /// Whether the largest come first, instead of the least. Of equal elements the first comes first.
    pub largest: bool,
    /// Whether it makes the places of the elements instead of themselves.
    pub indices: bool,
}
