//! Frames whose tensors are whole, by rows.

use std::io;

use csdfc_plan::format::Element;
use csdfc_plan::operator::Input;
use csdfc_plan::plan::Tensor;
use csdfc_plan::shape::Shape;

use super::rows::{FrameRows, InputRow, OutputRow};
use super::value::{self, Data, Value};

/// A frame whose tensors are whole.
#[derive(Debug)]
pub struct WholeFrame<'a> {
    /// By input, how it is seen by the network, its shape there, and what is handed over, if it is.
    pub(super) inputs: Vec<(&'a Input, &'a Shape, Option<&'a Value>)>,
    pub(super) outputs: Vec<WholeOutput<'a>>,
}

/// The rows of an output.
#[derive(Debug)]
pub(super) struct WholeOutput<'a> {
    rows: Data,
    own: &'a Shape,
    seen: &'a Shape,
    /// Whether it may have fewer rows, since it lags behind a stream that has just begun.
    may_lag: bool,
}

impl<'a> WholeOutput<'a> {
    /// No rows yet of a tensor, which is returned in the shape `seen`.
    pub fn new(tensor: &'a Tensor, seen: &'a Shape) -> Self {
        let rows = match tensor.format.element {
            Element::I64 => Data::I64(Vec::new()),
            Element::U8 => Data::U8(Vec::new()),
            // No caller holds 16-bit floats, as the checker has verified.
            Element::F32 | Element::F16 => Data::F32(Vec::new()),
        };
        WholeOutput { rows, own: &tensor.shape, seen, may_lag: tensor.stream.is_some() }
    }

    /// The rows that were taken, in the model's dimensions.
    fn value(&self) -> Value {
        let taken = self.rows.len() / self.own.row_elements().max(1);
        let [own, seen] = [self.own, self.seen].map(|shape| value::of_rows(shape, taken, self.own.rows()));
        let data = match &self.rows {
            Data::F32(values) => Data::F32(value::collect(values, &own, &seen)),
            Data::I64(values) => Data::I64(value::collect(values, &own, &seen)),
            Data::U8(values) => Data::U8(value::collect(values, &own, &seen)),
            Data::I8(values) => Data::I8(value::collect(values, &own, &seen)),
        };
        Value { dims: seen.dims, data }
    }

    /// Whether all rows were taken that there are.
    fn is_taken(&self) -> bool {
        self.rows.len() == self.own.elements() || self.may_lag && !self.rows.is_empty()
    }
}

impl WholeFrame<'_> {
    /// The outputs, in the model's dimensions; none of those whose rows were not all taken. In the first hops of a stream,
    /// an output has only the rows that exist.
    pub fn outputs(self) -> Vec<Option<Value>> {
        self.outputs.iter().map(|output| output.is_taken().then(|| output.value())).collect()
    }

    /// The outputs, with the rows that were taken.
    pub(super) fn values(self) -> Vec<Value> {
        self.outputs.iter().map(WholeOutput::value).collect()
    }
}

impl FrameRows for WholeFrame<'_> {
    fn input(&mut self, input: usize, y: usize, row: InputRow<'_>) -> io::Result<()> {
        match self.inputs.get(input) {
            Some((input, shape, Some(value))) => value::copy_row(input, shape, value, y, row),
            _ => return Err(io::Error::other("it is not given")),
        }
        Ok(())
    }

    fn output(&mut self, output: usize, _: usize, row: OutputRow<'_>) -> io::Result<()> {
        let WholeOutput { rows, own, .. } = &mut self.outputs[output];
        match (rows, row) {
            (Data::F32(rows), OutputRow::F32(row)) => {
                rows.reserve_exact(own.elements() - rows.len());
                rows.extend_from_slice(row);
            }
            (Data::I64(rows), OutputRow::I64(row)) => rows.extend_from_slice(row),
            (Data::U8(rows), OutputRow::U8(row)) => rows.extend_from_slice(row),
            _ => return Err(io::Error::other("it has other elements than its tensor: a mistake in csdfc")),
        }
        Ok(())
    }
}
