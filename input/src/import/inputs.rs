//! The shapes of a network's inputs. The user's shapes complete and override those of the model.

use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_plan::shape::{Order, Shape};
use rten_onnx::onnx::{DataType, Dimension, ValueInfoProto};

use super::ImportOptions;
use super::builder::{Builder, FROM_FIRST};
use super::constant::{PRECISION_HELP, float, type_name};
use super::error::ImportError;
use super::node::Tensor;
use csdfc_network::Network;

/// A network input of the model.
pub(super) struct InputSeat<'a> {
    pub name: &'a str,
    pub info: &'a ValueInfoProto,
    /// Whether all its readers are Transposes to channels-first.
    pub channels_last: bool,
}

/// Checks that every given shape belongs to an existing input.
pub(super) fn check_names(model: &str, names: &[&str], options: &ImportOptions) -> Result<(), ImportError> {
    for given in options.shapes.keys() {
        if names.contains(&given.as_str()) {
            continue;
        }
        let near = names.iter().map(|name| (strsim::jaro_winkler(name, given), name));
        let near = near.filter(|(score, _)| *score > 0.7).max_by(|a, b| a.0.total_cmp(&b.0));
        let help = match near {
            Some((_, name)) => format!("did you mean {name}?"),
            None => format!("the model's inputs are {}", names.join(", ")),
        };
        return Err(ImportError::UnknownInput { model: model.to_string(), input: given.clone(), help });
    }
    Ok(())
}

/// Those of a model's inputs that are no layers of its network.
pub(super) fn unused(names: &[&str], network: &Network) -> Vec<String> {
    let is_layer = |name: &str| {
        let mut inputs = network.layers.iter().filter(|layer| matches!(layer.operator, Operator::Input(_)));
        inputs.any(|layer| layer.name == name)
    };
    names.iter().filter(|name| !is_layer(name)).map(|name| (*name).to_string()).collect()
}

/// Adds the layer that delivers an input.
pub(super) fn add(
    model: &str,
    builder: &mut Builder,
    seat: &InputSeat,
    options: &ImportOptions,
) -> Result<Tensor, ImportError> {
    let wrong = |reason: String, help: String| ImportError::Input {
        model: model.to_string(),
        input: seat.name.to_string(),
        reason,
        help,
    };
    let tensor = seat.info.r#type.as_ref().and_then(|kind| kind.tensor_type.as_ref());
    let Some(tensor) = tensor else {
        return Err(wrong("it is no tensor".into(), "csdfc plans tensors only".into()));
    };
    let element = tensor.elem_type.unwrap_or(DataType(0));
    // Floats hold the integers of a quantised model.
    let is_integer = matches!(element, DataType::UINT8 | DataType::INT8);
    if float(element).is_none() && !is_integer {
        let reason = format!("its elements are {}, not floats", type_name(element));
        return Err(wrong(reason, PRECISION_HELP.into()));
    }
    let declared = tensor.shape.as_ref().map(|shape| shape.dim.as_slice());
    let dims = match options.shapes.get(seat.name) {
        Some(given) => {
            if let Some(declared) = declared.filter(|declared| declared.len() != given.len()) {
                let reason =
                    format!("--shape gives {} dimensions, the model has {}", given.len(), listed(declared));
                return Err(wrong(reason, format!("give all {} dimensions", declared.len())));
            }
            given.clone()
        }
        None => static_dims(seat.name, declared).map_err(|(reason, help)| wrong(reason, help))?,
    };
    // Tensors of rank 1 and 3 may as well have no batch.
    if matches!(dims.len(), 2 | 4..) && dims[0] > 1 {
        let mut one = dims.clone();
        one[0] = 1;
        return Err(wrong(
            format!("its batch is {}; csdfc plans one frame at a time", dims[0]),
            format!("plan it for a batch of 1 with --shape {}={}", seat.name, joined(&one)),
        ));
    }
    let last = seat.channels_last && dims.len() == FROM_FIRST.len() && dims[0] == 1;
    let order = if last { Order::ChannelsLast } else { Order::ChannelsFirst };
    let operator = Operator::Input(Input { element: InputElement::F32, camera: None });
    let input = builder
        .input(seat.name, operator, Shape { dims, order })
        .map_err(|fault| wrong(fault.reason, "give other dimensions with --shape".into()))?;
    Ok(if is_integer { input.as_integers(element) } else { input })
}

/// The declared dimensions with a dynamic batch of 1.
fn static_dims(name: &str, declared: Option<&[Dimension]>) -> Result<Vec<usize>, (String, String)> {
    let Some(declared) = declared else {
        return Err((
            "the model does not state its shape".into(),
            format!("give it with --shape, for instance --shape {name}=1,3,224,224"),
        ));
    };
    // Some exporters write a batch of 0 for any batch.
    if let Some(axis) = (1..declared.len()).find(|axis| declared[*axis].dim_value == Some(0)) {
        return Err((
            format!("dimension {axis} of its shape {} is 0: there is nothing to compute", listed(declared)),
            format!("give it another size with --shape {name}=…, or export the model anew"),
        ));
    }
    let mut dims = Vec::with_capacity(declared.len());
    let mut open = false;
    for (i, dim) in declared.iter().enumerate() {
        match dim.dim_value.and_then(|value| usize::try_from(value).ok()).filter(|value| *value > 0) {
            Some(value) => dims.push(value),
            None => {
                open |= i > 0;
                dims.push(1);
            }
        }
    }
    if !open {
        return Ok(dims);
    }
    // Models mostly leave the height and width of an image open.
    let example = |(i, dim): (usize, &Dimension)| match dims[i] {
        _ if i == 0 || is_static(dim) => dims[i].to_string(),
        _ if i >= 2 && dims.len() == 4 => "224".into(),
        _ => "16".into(),
    };
    let example: Vec<String> = declared.iter().enumerate().map(example).collect();
    Err((
        format!("its shape {} is dynamic", listed(declared)),
        format!("give every dimension a number, such as --shape {name}={}", example.join(",")),
    ))
}

fn is_static(dim: &Dimension) -> bool {
    dim.dim_value.is_some_and(|value| value > 0)
}

/// Dimensions as the model declares them: `[batch, 3, ?, ?]`.
fn listed(declared: &[Dimension]) -> String {
    let dims: Vec<String> = declared
        .iter()
        .map(|dim| match (&dim.dim_value, &dim.dim_param) {
            (Some(value), _) if *value >= 0 => value.to_string(),
            (_, Some(name)) if !name.is_empty() => name.clone(),
            _ => "?".into(),
        })
        .collect();
    format!("[{}]", dims.join(", "))
}

fn joined(dims: &[usize]) -> String {
    dims.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
}
