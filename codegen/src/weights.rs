//! The packed parameters of a plan.

use std::ops::Range;

use crate::bind::{Call, LINE};

/// The packed parameters of many layers, one after another.
#[derive(Debug)]
pub struct Blob {
    data: Vec<f32>,
    /// Elements before the first layer's.
    start: usize,
}

impl Blob {
    /// Room for the parameters of these layers, from the start of a cache line.
    pub fn for_layers<'c>(calls: impl Iterator<Item = &'c Call>) -> Self {
        let elements: usize = calls.map(stored_len).sum();
        let mut data: Vec<f32> = Vec::with_capacity(elements + LINE);
        let start = data.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        data.resize(start, 0.0);
        Blob { data, start }
    }

    /// Bytes of all.
    pub fn bytes(&self) -> u64 {
        self.data().len() as u64 * 4
    }

    /// All elements.
    pub fn data(&self) -> &[f32] {
        &self.data[self.start..]
    }

    /// Packs the parameters of one more layer, and returns where they are. `values` gives the parameter of an index.
    ///
    /// # Errors
    /// When values cannot be had, or are not as many as the operator needs.
    pub fn push(
        &mut self,
        call: &Call,
        values: &dyn Fn(usize) -> Result<Vec<f32>, String>,
    ) -> Result<Range<usize>, String> {
        let start = self.data.len();
        self.data.resize(start + stored_len(call), 0.0);
        pack(call, values, &mut self.data[start..])?;
        Ok(start - self.start..start - self.start + packed_len(call))
    }

    /// The packed parameters of a layer.
    pub fn of(&self, layer: &Range<usize>) -> &[f32] {
        &self.data()[layer.clone()]
    }
}

/// Packs the parameters of a layer into [`stored_len`] elements, which are zero at first. `values` gives the parameter
/// of an index.
///
/// # Errors
/// When values cannot be had, or are not as many as the operator needs.
pub(crate) fn pack(
    call: &Call,
    values: &dyn Fn(usize) -> Result<Vec<f32>, String>,
    packed: &mut [f32],
) -> Result<(), String> {
    for constant in &call.constants {
        let parameters: Vec<Vec<f32>> = constant.parameters.clone().map(values).collect::<Result<_, _>>()?;
        constant.packing.pack(&parameters, &mut packed[constant.range.clone()])?;
    }
    Ok(())
}

/// Elements of a layer's packed parameters and of what fills up their last cache line.
pub(crate) fn stored_len(call: &Call) -> usize {
    packed_len(call).next_multiple_of(LINE)
}

/// Elements of a layer's packed parameters.
pub(crate) fn packed_len(call: &Call) -> usize {
    call.constants.last().map_or(0, |constant| constant.range.end)
}
