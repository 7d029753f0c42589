//! How kernels see tensors.

use csdfc_kernels::elements::{Dims, ElementShape};

/// A tensor that a kernel sees element by element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Where the elements are.
    pub shape: ElementShape,
    /// The dimensions seen.
    pub seen: Dims,
}

/// How a kernel sees an operand: its rows (`RowShape`) or its elements ([`View`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input<S> {
    /// The rows or elements.
    pub shape: S,
    /// Rows of the tensor that are [`Input::into`] rows of the shape, where these are other ones: then all are there.
    /// A shape without rows counts as one.
    pub fold: usize,
    /// Rows of the shape that they are: the slot of the first is to be divided by the one and multiplied by the other.
    pub into: usize,
}

impl<S> Input<S> {
    /// Rows that are those of the tensor.
    pub(super) fn of(shape: S) -> Self {
        Input { shape, fold: 1, into: 1 }
    }
}
