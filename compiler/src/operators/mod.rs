//! What the compiler knows of each operator: its output's shape, its multiplications, its dependence on rows.
//!
//! One file a family; every function matches all of [`Operator`], so that a new operator is pointed to by the
//! compiler. The checker has a row table of its own and shares none of this.

use std::ops::Range;

use csdfc_codegen::operator::Operator;
use csdfc_codegen::shape::Shape;

/// Which rows of an operand an output row reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowAccess {
    /// Output row y reads rows `[y·stride − top, y·stride − top + (kernel − 1)·dilation + 1)`, cut to the operand.
    Window {
        /// Height of the window.
        kernel: usize,
        /// Rows between windows.
        stride: usize,
        /// Distance between rows of a window.
        dilation: usize,
        /// Rows of padding above the operand; negative where the first window starts below its top.
        top: i64,
    },
    /// Output row y reads these rows; both ends never fall from one y to the next. An empty range reads none.
    Rows(Vec<Range<usize>>),
    /// Every output row needs the whole operand.
    Whole,
}

/// Why an operator cannot take these inputs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

/// The shape of the operator's output.
///
/// # Errors
/// When it cannot take inputs of these shapes.
pub fn output_shape(operator: &Operator, inputs: &[Shape]) -> Result<Shape, ShapeError> {
    let _ = (operator, inputs);
    Err(ShapeError("not built".into()))
}

/// Multiply-accumulates of one frame.
pub fn macs(operator: &Operator, inputs: &[Shape], output: &Shape) -> u64 {
    let _ = (operator, inputs, output);
    0
}

/// The rows of operand `index` that each output row reads.
pub fn row_access(operator: &Operator, inputs: &[Shape], output: &Shape, index: usize) -> RowAccess {
    let _ = (operator, inputs, output, index);
    RowAccess::Whole
}
