//! Attributes of operators that look for the largest or the least elements, or for boxes with the highest scores.

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
    /// Whether indices are 32-bit floats, which other layers can read, instead of 64-bit integers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub floats: bool,
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
    /// Whether it makes the places of the elements instead of the elements.
    pub indices: bool,
    /// Whether indices are 32-bit floats, which other layers can read, instead of 64-bit integers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub floats: bool,
}

/// Attributes of [`super::Operator::NonMaxSuppression`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NonMaxSuppression {
    /// The most boxes of a class that are kept, at most all of them.
    pub most: usize,
    /// Two boxes overlap if their intersection is more than this share of their union; from 0 to 1.
    pub overlap: f32,
    /// Only boxes with higher scores are looked at; none for all boxes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f32>,
    /// Whether a box is `[x, y, width, height]` with x and y in its middle, instead of two opposite corners.
    pub centred: bool,
    /// Whether indices are 32-bit floats, which other layers can read, instead of 64-bit integers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub floats: bool,
}

impl NonMaxSuppression {
    /// The most boxes. Up to this number, floats hold indices exactly.
    pub const MAX_BOXES: usize = 1 << 24;
}

/// Attributes of [`super::Operator::GatherElements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatherElements {
    /// The dimension in which indices choose elements. In all other dimensions, the indices are no larger than the
    /// tensor.
    pub axis: usize,
}
