//! A part of a TFLite model: other tensors become its inputs and outputs.

use csdfc_plan::part::ModelPart;

use super::schema::Model;
use crate::import::cut::unknown;
use crate::import::error::ImportError;

/// Makes the inputs and outputs of a part those of the model. Inputs of the model that the part needs remain.
///
/// # Errors
/// When no operator computes a tensor.
pub(super) fn cut(model: &str, stated: &mut Model<'_>, part: &ModelPart) -> Result<(), ImportError> {
    let made: Vec<usize> = stated
        .operators
        .iter()
        .flat_map(|operator| &operator.outputs)
        .chain(&stated.inputs)
        .copied()
        .collect();
    let find = |stated: &Model<'_>, name: &String| {
        let names = made.iter().map(|index| stated.tensors[*index].name.as_str());
        let found = made.iter().find(|index| stated.tensors[**index].name == *name);
        found.copied().ok_or_else(|| unknown(model, name, names))
    };
    if !part.outputs.is_empty() {
        let outputs = part.outputs.iter().map(|name| find(stated, name));
        stated.outputs = outputs.collect::<Result<_, _>>()?;
    }
    let inputs = part.inputs.iter().map(|name| find(stated, name)).collect::<Result<Vec<usize>, _>>()?;
    for index in inputs {
        if stated.inputs.contains(&index) {
            continue;
        }
        // Whoever reads the tensor reads the input instead. What else its operator computes may still be needed.
        let input = stated.tensors.len();
        let tensor = stated.tensors[index].clone();
        stated.tensors[index].name.push_str(" (computed)");
        stated.tensors.push(tensor);
        stated.inputs.push(input);
        let read = stated.operators.iter_mut().flat_map(|operator| &mut operator.inputs).flatten();
        read.filter(|read| **read == index).for_each(|read| *read = input);
        stated.outputs.iter_mut().filter(|output| **output == index).for_each(|output| *output = input);
    }
    Ok(())
}
