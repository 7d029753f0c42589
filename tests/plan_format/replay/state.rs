//! Section 14: states, which are outputs of the frame before.

use std::collections::BTreeSet;

use serde_json::Value;

use super::model::Layer;
use super::rows::Shape;
use super::{Refusal, list, text};

/// A state: the layer of its input, its output, and the tensor.
pub struct State<'a> {
    pub input: &'a str,
    output: &'a str,
    pub tensor: &'a str,
}

/// The states of a CNN.
pub fn read(cnn: &Value) -> Result<Vec<State<'_>>, Refusal> {
    if cnn.get("states").is_none() {
        return Ok(Vec::new());
    }
    let state = |state| {
        let [input, output, tensor] = ["input", "output", "tensor"].map(|field| text(state, field));
        Ok::<_, Refusal>(State { input: input?, output: output?, tensor: tensor? })
    };
    let states = list(cnn, "states")?.iter().map(state).collect::<Result<Vec<State<'_>>, _>>()?;
    for name in [|state: &State<'_>| state.input.to_owned(), |state: &State<'_>| state.output.to_owned()] {
        if states.iter().map(name).collect::<BTreeSet<_>>().len() < states.len() {
            return Err("two states of one input or output".into());
        }
    }
    Ok(states)
}

/// Checks the states of a CNN, whose layers are read.
pub fn check(plan: &Value, cnn: &Value, states: &[State<'_>], layers: &[Layer]) -> Result<(), Refusal> {
    if states.is_empty() {
        return Ok(());
    }
    let own = list(plan, "partitions")?.iter().filter(|partition| partition["cnn"] == cnn["name"]).count();
    if cnn.get("stream").is_some() || own != 1 || text(plan, "storage_model")? != "tensors" {
        return Err("states where there can be none".into());
    }
    for state in states {
        let input = layers.iter().find(|layer| layer.name == state.input);
        let input = input.filter(|layer| layer.op == "input" && layer.attributes["element"] == "f32");
        let input = input.ok_or_else(|| format!("{} is no input of floats", state.input))?;
        let named = list(cnn, "layers")?.iter().position(|layer| layer["output"] == state.tensor);
        let output = named.and_then(|place| layers.get(place)).filter(|layer| layer.op != "input");
        let output = output.ok_or_else(|| format!("nothing computes {}", state.tensor))?;
        // No number of a file is infinite.
        let stated = cnn["states"].as_array().into_iter().flatten();
        let is_number = |state: &Value| state.get("initial").is_none_or(Value::is_number);
        if !stated.clone().all(is_number) {
            return Err("a state that begins with no number".into());
        }
        if input.r != input.rows() || input.external || !lie_alike(&input.shape, &output.shape) {
            return Err(format!("{} cannot be a state of {}", output.name, input.name));
        }
        for layer in [input, output] {
            let mut tensors = list(plan, "tensors")?.iter();
            let is_own =
                |tensor: &&Value| tensor["cnn"] == cnn["name"] && tensor["producer"] == layer.name.as_str();
            let tensor = tensors.find(is_own).ok_or("a layer without a tensor")?;
            let fits = tensor["ring_rows"] == layer.rows() && tensor["element"] == "f32";
            if !fits || layer.layout != "HWC" {
                return Err(format!("{} does not lie as a state does", layer.name));
            }
        }
    }
    Ok(())
}

fn lie_alike(a: &Shape, b: &Shape) -> bool {
    let is_same = match (a.is_image(), b.is_image()) {
        (true, true) => [a.channels(), a.rows()] == [b.channels(), b.rows()],
        _ => a.is_in_order() && b.is_in_order(),
    };
    is_same && a.elements() == b.elements()
}
