//! The types that state facts of operators: which rows an operator reads, what is wrong with a shape, and how large a
//! tensor may be.

use std::ops::Range;

use csdfc_plan::shape::Shape;

/// Largest number of elements of a tensor. This is far beyond the memory of a board. It is small enough that bytes,
/// strides and products of a dimension and an attribute never overflow.
pub const MAX_ELEMENTS: usize = 1 << 36;

/// Largest number of rows of a tensor.
pub const MAX_ROWS: usize = 1 << 20;

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
        /// Rows of padding above the operand. Negative if the first window starts below its top.
        top: i64,
    },
    /// Output row y reads the rows of range y. From one y to the next, neither end of the range falls. An empty range
    /// reads nothing.
    Rows(Vec<Range<usize>>),
    /// Every output row needs the whole operand.
    Whole,
}

/// Why an operator cannot take these inputs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

/// Checks that a tensor of this shape is not empty, and not larger than [`MAX_ELEMENTS`] and [`MAX_ROWS`] allow.
///
/// # Errors
/// When it is.
pub fn check_size(shape: &Shape) -> Result<(), ShapeError> {
    if shape.dims.contains(&0) {
        return fail(format!("a tensor of shape {shape} is empty"));
    }
    let elements = shape.dims.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
    if elements.is_none_or(|elements| elements > MAX_ELEMENTS) {
        return fail(format!("a tensor of shape {shape} has more than {MAX_ELEMENTS} elements"));
    }
    if shape.rows() > MAX_ROWS {
        return fail(format!("a tensor of shape {shape} has more than {MAX_ROWS} rows"));
    }
    Ok(())
}

/// The window of so many rows, with so many rows of padding above.
pub(super) fn window(kernel: usize, stride: usize, dilation: usize, top: usize) -> RowAccess {
    // Attributes beyond this range are refused with the shape.
    RowAccess::Window { kernel, stride, dilation, top: i64::try_from(top).unwrap_or(i64::MAX) }
}

/// A product, saturated.
pub(super) fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1, |product: u64, &factor| product.saturating_mul(factor as u64))
}

/// Says what is wrong with a shape.
pub(super) fn fail<T>(message: String) -> Result<T, ShapeError> {
    Err(ShapeError(message))
}

/// An attribute as a number that products with a dimension cannot overflow.
pub(super) fn bounded(value: usize, what: &str) -> Result<i128, ShapeError> {
    match i32::try_from(value) {
        Ok(value) => Ok(i128::from(value)),
        Err(_) => fail(format!("{what} {value} is out of range")),
    }
}

/// A computed dimension.
pub(super) fn dimension(value: i128, what: &str) -> Result<usize, ShapeError> {
    match usize::try_from(value) {
        Ok(value) if value > 0 => Ok(value),
        _ => fail(format!("{what} would be {value}")),
    }
}

/// Batch, channels, height and width of a feature map.
pub(super) fn image(shape: &Shape, kind: &str) -> Result<[usize; 4], ShapeError> {
    match shape.dims.as_slice() {
        &[n, c, h, w] => Ok([n, c, h, w]),
        _ => fail(format!("{kind} needs a tensor of rank 4, got {shape}")),
    }
}

/// The names of the two axes of an image.
pub(super) const AXES: [&str; 2] = ["height", "width"];
