//! Frames on which networks are measured.

use csdfc_network::{Layer, Network};
use csdfc_plan::operator::{Input, Operator};
use csdfc_runtime::run::{Data, Value, element, input_dims};

use crate::error::Error;

/// The inputs of a network, and how each is handed over.
pub fn inputs(network: &Network) -> impl Iterator<Item = (&Layer, &Input)> {
    network.layers.iter().filter_map(|layer| match &layer.operator {
        Operator::Input(input) => Some((layer, input)),
        _ => None,
    })
}

/// Checks that there are frames, and that each has a finite tensor for each input.
pub(crate) fn check(network: &Network, frames: &[Vec<Value>]) -> Result<(), Error> {
    if frames.is_empty() {
        return Err(Error::NoFrame);
    }
    let count = inputs(network).count();
    for (number, frame) in (1..).zip(frames) {
        if frame.len() != count {
            return Err(Error::Tensors { frame: number, found: frame.len(), inputs: count });
        }
        for ((layer, input), value) in inputs(network).zip(frame) {
            let name = &layer.name;
            let (wanted, dims) = (element(input), input_dims(input, &layer.shape));
            if value.data.element() != wanted {
                let found = value.data.element();
                return Err(Error::Element { frame: number, input: name.clone(), expected: wanted, found });
            }
            if value.dims != dims || value.data.len() != layer.shape.elements() {
                let found = value.dims.clone();
                return Err(Error::Dimensions { frame: number, input: name.clone(), expected: dims, found });
            }
            if let Data::F32(values) = &value.data
                && let Some(value) = values.iter().find(|value| !value.is_finite())
            {
                return Err(Error::InfiniteInput { frame: number, input: name.clone(), value: *value });
            }
        }
    }
    Ok(())
}
