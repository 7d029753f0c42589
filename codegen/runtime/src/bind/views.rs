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
    /// The number of tensor rows that form [`Input::into`] rows of the shape, if the two differ. Then all rows are
    /// stored. A shape without rows counts as one row.
    pub fold: usize,
    /// The number of rows of the shape that `fold` tensor rows form. The slot of the first row is divided by `fold` and
    /// multiplied by `into`.
    pub into: usize,
}

impl<S> Input<S> {
    /// Rows of the shape that are the rows of the tensor.
    pub(super) fn whole(shape: S) -> Self {
        Input { shape, fold: 1, into: 1 }
    }
}
