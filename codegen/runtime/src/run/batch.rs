//! The frames of a batch as one value, in which they lie one after another along the first dimension.

use csdfc_plan::operator::Operator;

use super::value::{Data, Value, input_dims};
use super::{RunError, Runner};
use crate::error::InputError;

/// The dimensions of a batch of frames of these dimensions: a first dimension of 1 is that of the batch.
///
/// ```
/// use csdfc_runtime::run::batch_dims;
///
/// assert_eq!(batch_dims(&[1, 3, 8, 8], 4), [4, 3, 8, 8]);
/// assert_eq!(batch_dims(&[8, 8, 3], 4), [4, 8, 8, 3]);
/// ```
pub fn batch_dims(frame: &[usize], batch: usize) -> Vec<usize> {
    [&[batch], frame.strip_prefix(&[1]).unwrap_or(frame)].concat()
}

impl Value {
    /// The frames of a batch of so many, each with `rank` dimensions; `None` if its first dimension is not that of the batch.
    pub fn frames(&self, batch: usize, rank: usize) -> Option<Vec<Value>> {
        let frame = self.dims.strip_prefix(&[batch])?;
        let dims = if self.dims.len() == rank { [&[1], frame].concat() } else { frame.to_vec() };
        let len = frame.iter().product::<usize>();
        let part = |number: usize| {
            let range = number * len..(number + 1) * len;
            let data = match &self.data {
                Data::F32(values) => Data::F32(values.get(range)?.to_vec()),
                Data::U8(values) => Data::U8(values.get(range)?.to_vec()),
                Data::I8(values) => Data::I8(values.get(range)?.to_vec()),
                Data::I64(values) => Data::I64(values.get(range)?.to_vec()),
            };
            Some(Value { dims: dims.clone(), data })
        };
        (0..batch).map(part).collect()
    }

    /// The batch of frames of the same dimensions and elements; `None` if there is none.
    pub fn of_frames(frames: &[Value]) -> Option<Value> {
        let (first, others) = frames.split_first()?;
        let mut data = first.data.clone();
        for frame in others {
            match (&mut data, &frame.data) {
                (Data::F32(all), Data::F32(values)) => all.extend(values),
                (Data::U8(all), Data::U8(values)) => all.extend(values),
                (Data::I8(all), Data::I8(values)) => all.extend(values),
                (Data::I64(all), Data::I64(values)) => all.extend(values),
                _ => return None,
            }
        }
        Some(Value { dims: batch_dims(&first.dims, frames.len()), data })
    }
}

impl Runner<'_> {
    /// Runs the frames of a call of a CNN, as many as its plan states, one after another. Inputs and outputs have them along
    /// their first dimension. With a batch of 1 it is [`Runner::infer`].
    ///
    /// # Errors
    /// As [`Runner::infer`].
    pub fn infer_batch(&mut self, cnn: usize, inputs: &[Value]) -> Result<Vec<Value>, RunError> {
        let index = &self.resolved.index.cnns[cnn];
        let batch = index.cnn.batch as usize;
        if batch == 1 {
            return self.infer(cnn, inputs);
        }
        let mut frames = vec![Vec::new(); batch];
        for (value, &layer) in inputs.iter().zip(&self.cnns[cnn].inputs) {
            let entry = &index.layers[layer];
            let Operator::Input(input) = &entry.layer.operator else { continue };
            let dims = input_dims(input, &entry.tensor.shape);
            let Some(of_input) = value.frames(batch, dims.len()) else {
                let why =
                    InputError::Dimensions { found: value.dims.clone(), expected: batch_dims(&dims, batch) };
                return Err(RunError::Input {
                    cnn: index.cnn.name.clone(),
                    input: entry.layer.name.clone(),
                    why: Box::new(why),
                });
            };
            frames.iter_mut().zip(of_input).for_each(|(frame, value)| frame.push(value));
        }
        let mut made = vec![Vec::new(); index.cnn.outputs.len()];
        for frame in frames {
            let outputs = self.infer(cnn, &frame)?;
            made.iter_mut().zip(outputs).for_each(|(made, output)| made.push(output));
        }
        Ok(made.iter().filter_map(|made| Value::of_frames(made)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_apart_and_put_together() {
        for (dims, rank, frame) in [(vec![2, 3], 2, vec![1, 3]), (vec![2, 3, 1], 2, vec![3, 1])] {
            let batch = Value { dims, data: Data::I8((0..6).collect()) };
            let frames = batch.frames(2, rank).unwrap();
            assert_eq!(frames[1], Value { dims: frame, data: Data::I8(vec![3, 4, 5]) });
            assert_eq!(Value::of_frames(&frames), Some(batch.clone()));
            assert_eq!(batch.frames(3, rank), None);
        }
        assert_eq!(Value::of_frames(&[]), None);
    }
}
