//! Frames on which networks are measured.

use csdfc_network::{Layer, Network};
use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_planner::error::Error;
use csdfc_runtime::run::{Data, Value, input_dims};

use super::refused;

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
        return refused("there is no frame to calibrate with".into());
    }
    let count = inputs(network).count();
    for (number, frame) in (1..).zip(frames) {
        if frame.len() != count {
            return refused(format!(
                "frame {number} has {} tensors, but the model has {count} inputs",
                frame.len()
            ));
        }
        for ((layer, input), value) in inputs(network).zip(frame) {
            let name = &layer.name;
            let (wanted, dims) = (element(input), input_dims(input, &layer.shape));
            if value.data.element() != wanted {
                let given = value.data.element();
                return refused(format!("frame {number}: input {name} takes {wanted}, not {given}"));
            }
            if value.dims != dims || value.data.len() != layer.shape.elements() {
                let given = &value.dims;
                return refused(format!("frame {number}: input {name} takes {dims:?}, not {given:?}"));
            }
            if let Data::F32(values) = &value.data
                && let Some(value) = values.iter().find(|value| !value.is_finite())
            {
                return refused(format!("frame {number}: input {name} has an element that is {value}"));
            }
        }
    }
    Ok(())
}

/// Name of the element that an input takes.
fn element(input: &Input) -> &'static str {
    match input.element {
        InputElement::F32 => "float32",
        InputElement::U8 => "uint8",
    }
}
