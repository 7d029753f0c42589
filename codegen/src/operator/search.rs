//! Attributes of operators that look for elements: by their size, or at places that another tensor holds.

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

/// Attributes of [`super::Operator::GridSample`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridSample {
    /// How a sample is made.
    pub mode: SampleMode,
    /// What lies outside the image.
    pub padding: SamplePadding,
    /// Whether −1 and 1 are the middles of the outermost pixels, instead of their outer edges.
    pub align_corners: bool,
}

/// How a sample of an image is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is ONNX's mode of that name")]
pub enum SampleMode {
    Nearest,
    Linear,
    Cubic,
}

/// What lies outside an image that is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is ONNX's padding_mode of that name")]
pub enum SamplePadding {
    Zeros,
    Border,
    Reflection,
}
