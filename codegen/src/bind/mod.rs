//! From a layer of a plan to a kernel: which one computes it, with what constants, on what rows.

use std::ops::Range;

use crate::operator::Operator;
use crate::shape::Shape;

/// A layer as it stands among the rings that it reads and writes.
#[derive(Debug)]
pub struct Site<'a> {
    /// What it computes.
    pub operator: &'a Operator,
    /// Its operands.
    pub inputs: Vec<Operand<'a>>,
    /// Shape of its output.
    pub output: &'a Shape,
    /// Rows of the ring that it writes.
    pub ring_rows: usize,
}

/// An operand of a layer.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// Shape of the tensor.
    pub own: &'a Shape,
    /// The shape in which the layer sees it.
    pub seen: &'a Shape,
    /// Rows of the ring that it is read from.
    pub ring_rows: usize,
}

/// Rows that a firing reads.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The ring's storage.
    pub data: &'a [f32],
    /// Slot of row 0 of the frame.
    pub first: usize,
}

/// Rows that a firing writes.
#[derive(Debug)]
pub enum Target<'a> {
    /// Floats.
    F32(&'a mut [f32]),
    /// Indices.
    I64(&'a mut [i64]),
    /// Nothing: the tensor is stored nowhere.
    Nothing,
}

/// A layer bound to a kernel.
#[derive(Debug)]
pub enum Call {
}

/// Binds a layer to the kernel that computes it.
///
/// # Errors
/// When no kernel does.
pub fn bind(site: &Site<'_>) -> Result<Call, String> {
    Err(format!("no kernel computes {}", site.operator.kind()))
}

impl Call {
    /// Makes rows `y` of the layer's output, the first row of whose frame is in slot `first`. `weights` are the
    /// layer's parameters as packed.
    pub fn fire(&self, y: Range<usize>, inputs: &[Source<'_>], weights: &[f32], output: Target<'_>, first: usize) {
    }
}
