//! Attributes of recurrent networks.

use serde::{Deserialize, Serialize};

use super::Function;

/// Attributes of [`super::Operator::Recurrent`].
///
/// The first operand is an image with a row for each step and a column for each sequence. Its channels are the products
/// of the inputs and their weights, with all biases that are added to them: `size` for each gate, in ONNX's order. If
/// `initial`, two operands follow for an LSTM, and one for other cells: the state before the first step and the memory
/// before it, images of one row and `size` channels. If not, both are zero. The output has the states, and with
/// [`Cell::Lstm::memory`] the memories as further channels.
///
/// Parameters: the weights of the state, `[size, gates · size]`; then, if `linear_before_reset`, the biases of the product
/// that the gate r resets, `[size]`, or, with `peepholes`, the weights of the memory for the gates i, o and f, `[3 · size]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recurrent {
    /// What a step computes.
    pub cell: Cell,
    /// Channels of the state.
    pub size: usize,
    /// ONNX's functions f, g and h, as many of them as the cell has. None is a PRelu.
    pub activations: Vec<Function>,
    /// The largest absolute value of a sum that goes into f or g; none if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f32>,
    /// Whether the first state is an operand, and of an LSTM the first memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub initial: bool,
}

/// What a step of a recurrent network computes, by ONNX's definition of the operator of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Cell {
    /// f(sum).
    Rnn,
    /// The gates z and r, and what is new.
    Gru {
        /// Whether the state is multiplied by its weights before r resets it, not after.
        linear_before_reset: bool,
    },
    /// The gates i, o and f, and what is new. Beside the state there is a memory, which ONNX calls the cell state.
    Lstm {
        /// Whether f is 1 − i.
        input_forget: bool,
        /// Whether the gates see the memory.
        peepholes: bool,
        /// Whether the memory is part of the output.
        memory: bool,
    },
}

impl Cell {
    /// How many matrices lie side by side in the weights.
    pub fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 3,
            Cell::Lstm { .. } => 4,
        }
    }

    /// How many vectors a step hands on to the next: the state and, of an LSTM, the memory.
    pub fn states(self) -> usize {
        match self {
            Cell::Rnn | Cell::Gru { .. } => 1,
            Cell::Lstm { .. } => 2,
        }
    }

    /// How many functions there are.
    pub fn functions(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru { .. } => 2,
            Cell::Lstm { .. } => 3,
        }
    }
}
