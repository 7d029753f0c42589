//! What a CNN keeps from one frame, or hop of a stream, to the next.

use serde::{Deserialize, Serialize};

/// A CNN whose inputs never end. A *hop* is one execution: it takes the next rows of the inputs, and makes the rows of
/// each tensor that follow from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Rows of the inputs in a frame of the model, which a stream has without end.
    pub frame: u64,
    /// Rows of the input over which layers look that would need all of time, such as a global pool. None if there is no
    /// such layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// How the rows of a tensor of a stream follow those of the hops before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamRows {
    /// How many rows the tensor lags behind the rows that the stream has delivered: row i of hop f is row
    /// f · H + i − `delay` of the endless tensor. Rows before row 0 are not made.
    pub delay: u64,
    /// Rows of earlier hops that readers still need when a hop begins: the initial tokens of its channel.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub history: u64,
}

fn is_zero(rows: &u64) -> bool {
    *rows == 0
}

/// An input and an output of a model that the caller neither hands over nor gets: in each frame, the input is what the
/// output was in the frame before. In the first frame all its elements are `initial`.
///
/// The ring of the input lives all the time. When a frame has ended, the bytes of the output's tensor are copied to it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Name of the layer that delivers the input.
    pub input: String,
    /// The output's name in the model.
    pub output: String,
    /// The tensor that the output is, or is a view of. It lies in memory as the input does.
    pub tensor: String,
    /// What all elements of the input are in the first frame.
    #[serde(default, skip_serializing_if = "is_positive_zero")]
    pub initial: f32,
}

fn is_positive_zero(value: &f32) -> bool {
    value.to_bits() == 0
}
