//! Packing: from the parameter tensors of a layer to the form in which kernels read them.

use std::ops::Range;

use crate::operator::Operator;
use crate::shape::Shape;

/// Elements of a cache line: each layer's parameters begin at the start of one.
const LINE: usize = 16;

/// An operand of a layer, as the packing of its parameters needs to know it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Shape of the tensor.
    pub own: &'a Shape,
    /// The shape in which the layer sees it.
    pub seen: &'a Shape,
}

/// The packed parameters of many layers, one after another.
#[derive(Debug, Default)]
pub struct Blob {
    data: Vec<f32>,
}

impl Blob {
    /// Bytes of all.
    pub fn bytes(&self) -> u64 {
        self.data.len() as u64 * 4
    }

    /// All of them, little-endian.
    pub fn as_bytes(&self) -> Vec<u8> {
        self.data.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Packs the parameters of one more layer, whose values are asked for one tensor after another, and tells where
    /// they are.
    ///
    /// # Errors
    /// When values cannot be had, or are not as many as the operator needs.
    pub fn push(
        &mut self,
        operator: &Operator,
        inputs: &[Seen<'_>],
        values: &dyn Fn(usize) -> Result<Vec<f32>, String>,
    ) -> Result<Range<usize>, String> {
        Err("".into())
    }

    /// The packed parameters of a layer.
    pub fn of(&self, layer: &Range<usize>) -> &[f32] {
        &self.data[layer.clone()]
    }
}
