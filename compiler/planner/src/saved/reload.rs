//! Loads the networks of a plan again from its models. `run` and `emit` need the values of their weights, and `check`
//! compares the plan's layers with those of its models.
//!
//! ```
//! use std::path::Path;
//!
//! use csdfc_input::device::DeviceProfile;
//! use csdfc_planner::driver;
//! use csdfc_planner::open::open;
//! use csdfc_planner::saved::reload::reload;
//!
//! let application = open("builtin:lenet5")?.resolve()?;
//! let device = DeviceProfile::find("generic", Path::new(""))?;
//! let plan = driver::plan(&application, &device, vec!["builtin:lenet5".into()])?.plan;
//!
//! let networks = reload(&plan, Path::new(""))?;
//! // The filters of the first convolution: 6 of 5×5×1.
//! assert_eq!(networks.parameter(0, 1, 0)?.len(), 150);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use csdfc_input::app::load::{self, ModelRequest};
use csdfc_network::pass::{self, Fusion};
use csdfc_network::{LayerId, Network, Operand};
use csdfc_network::{state, stream};
use csdfc_plan::format::{Element, Quantization};
use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_plan::plan::{Cnn, Plan, State, Stream};
use csdfc_plan::shape::{Order, Shape};
use csdfc_runtime::ParameterError;
use csdfc_runtime::bind::Primitive;
use serde_json::Value;

use crate::error::Error;
use crate::saved::identity;

/// The networks of a plan, in the order of its CNNs, with the layers of the plan.
#[derive(Debug, Clone)]
pub struct Networks(Vec<Network>);

/// Loads the models of a plan that lies in `folder`.
///
/// # Errors
/// When a model cannot be read, is not the one that the plan was made from, or has other layers than the plan.
pub fn reload(plan: &Plan, folder: &Path) -> Result<Networks, Error> {
    let network = |cnn: &Cnn| {
        load(plan, cnn, folder)?.map_err(|differences| {
            let more = match differences.len() {
                0 | 1 => String::new(),
                count => format!(", and {} more differences", count - 1),
            };
            let first = differences.into_iter().next().unwrap_or_default();
            Error::Input { message: first + &more, help: Some(HELP.into()) }
        })
    };
    plan.cnns.iter().map(network).collect::<Result<_, _>>().map(Networks)
}

/// Compares the layers of a plan that lies in `folder` with those of its models: names, operators, attributes,
/// operands, shapes and quantizations. Returns the differences, each with the layer and both values. Two things may
/// differ: how an input is handed over, which the application decides, and the ONNX nodes of a layer, which are only a
/// remark.
///
/// # Errors
/// When a model cannot be read or is not the one that the plan was made from.
pub fn differences(plan: &Plan, folder: &Path) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    for cnn in &plan.cnns {
        all.extend(load(plan, cnn, folder)?.err().unwrap_or_default());
    }
    Ok(all)
}

/// What to do about a plan that does not belong to its model.
const HELP: &str = "plan the application again with this version of csdfc";

impl Networks {
    /// Values of a parameter of a layer, in the order of the operator's documentation.
    ///
    /// # Errors
    /// When there is no such parameter, or its values cannot be read.
    pub fn parameter(
        &self,
        cnn: usize,
        layer: usize,
        parameter: usize,
    ) -> Result<Cow<'_, [f32]>, ParameterError> {
        let network = self.0.get(cnn).ok_or(ParameterError::NoCnn { cnn })?;
        network.parameter(layer, parameter)
    }
}

/// The network of a CNN of a plan, or where the plan differs from it.
fn load(plan: &Plan, cnn: &Cnn, folder: &Path) -> Result<Result<Network, Vec<String>>, Error> {
    identity::verify(folder, cnn)?;
    let inputs = cnn.layers.iter().filter(|layer| matches!(layer.operator, Operator::Input(_)));
    let shapes: BTreeMap<String, Vec<usize>> = match cnn.model.path.starts_with("builtin:") {
        true => BTreeMap::new(),
        false => inputs.map(|layer| (layer.name.clone(), frame_dims(cnn, &layer.output_shape))).collect(),
    };
    let mut least: Option<Vec<String>> = None;
    // A plan does not state its fusion level, but its layers show it: it is the level from which the plan differs
    // least.
    for fusion in Fusion::ALL {
        let request = ModelRequest {
            model: &cnn.model.path,
            folder,
            shapes: &shapes,
            values: &cnn.model.values,
            batch: (cnn.batch > 1).then_some(cnn.batch as usize),
            part: &cnn.model.part,
            fusion,
        };
        let loaded = load::load(&request).map_err(|error| Error::Model {
            cnn: cnn.name.clone(),
            model: cnn.model.path.clone(),
            source: Box::new(error),
        })?;
        let cameras = cnn.layers.iter().filter_map(|layer| match &layer.operator {
            Operator::Input(Input { camera: Some(camera), .. }) => Some((&layer.name, camera)),
            _ => None,
        });
        let mut network = loaded.network;
        for (name, camera) in cameras {
            if let Some(id) = network.find(name) {
                let operator = Input { element: InputElement::U8, camera: Some(camera.clone()) };
                network.layers[id.0].operator = Operator::Input(operator);
            }
        }
        let network = match cnn.stream {
            Some(Stream { window, .. }) => {
                let input = cnn.layers.iter().find(|layer| matches!(layer.operator, Operator::Input(_)));
                let hop = input.map(|input| input.output_shape.rows());
                stream::of_hops(network, hop, window.map(|window| window as usize)).map_err(|error| {
                    Error::Input { message: format!("CNN `{}`: {error}", cnn.name), help: Some(HELP.into()) }
                })?
            }
            None => network,
        };
        // The model may have states of its own.
        let is_own = |state: &&State| network.state_of_input(&state.input).is_some();
        let pairs: Vec<(String, String)> = cnn
            .states
            .iter()
            .filter(|state| !is_own(state))
            .map(|state| (state.output.clone(), state.input.clone()))
            .collect();
        let network = state::bind(network, &pairs).map_err(|error| Error::Input {
            message: format!("CNN `{}`: {error}", cnn.name),
            help: Some(HELP.into()),
        })?;
        let network = in_order_of(cnn, pass::legalise(with_primitives(cnn, network)));
        let found = compare(plan, cnn, &network);
        if found.is_empty() {
            return Ok(Ok(network));
        }
        if least.as_ref().is_none_or(|least| found.len() < least.len()) {
            least = Some(found);
        }
    }
    Ok(Err(least.unwrap_or_default()))
}

/// The dimensions of an input in a frame of the model. In a stream, an input of the plan has the rows of a hop.
fn frame_dims(cnn: &Cnn, shape: &Shape) -> Vec<usize> {
    let mut dims = shape.dims.clone();
    if let (Some(stream), Some(axis)) = (cnn.stream, shape.row_axis()) {
        dims[axis] = stream.frame as usize;
    }
    dims
}

/// The network, in which the plan's primitives compute the layers.
fn with_primitives(cnn: &Cnn, mut network: Network) -> Network {
    for layer in &mut network.layers {
        let planned = cnn.layers.iter().find(|planned| planned.name == layer.name);
        let chosen = planned.and_then(|planned| Primitive::find(&planned.primitive));
        let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
        // The model says which layers compute on integers.
        let is_of_integers = |primitive: Primitive| primitive.elements().contains(&Element::U8);
        let chosen = chosen.filter(|chosen| {
            chosen.computes(&layer.operator, &inputs)
                && is_of_integers(*chosen) == is_of_integers(layer.primitive())
        });
        if chosen.is_some_and(|chosen| chosen != layer.primitive()) {
            layer.primitive = chosen;
        }
    }
    network
}

/// The network with its layers in the plan's order. If that is no possible order, the network is unchanged.
fn in_order_of(cnn: &Cnn, network: Network) -> Network {
    let places: BTreeMap<&str, LayerId> =
        network.ids().map(|id| (network.layer(id).name.as_str(), id)).collect();
    let order: Vec<LayerId> =
        cnn.layers.iter().filter_map(|layer| places.get(layer.name.as_str()).copied()).collect();
    let mut place = vec![None; network.layers.len()];
    for (at, id) in order.iter().enumerate() {
        place[id.0] = Some(at);
    }
    // Each layer once, and after its operands.
    let behind =
        |id: LayerId| network.layer(id).inputs.iter().all(|input| place[input.layer.0] < place[id.0]);
    let lawful = order.len() == place.len() && place.iter().all(Option::is_some) && network.ids().all(behind);
    if lawful { network.reordered(&order) } else { network }
}

/// Where the layers of a CNN of a plan differ from those of a network.
pub fn compare(plan: &Plan, cnn: &Cnn, network: &Network) -> Vec<String> {
    let mut found = Vec::new();
    let tensors = plan.tensors.iter().filter(|tensor| tensor.cnn == cnn.name);
    let quantizations: BTreeMap<&str, Quantization> =
        tensors.filter_map(|tensor| Some((tensor.name.as_str(), tensor.quantization?))).collect();
    if cnn.layers.len() != network.layers.len() {
        let (plan, model) = (cnn.layers.len(), network.layers.len());
        found.push(format!("CNN `{}` has {plan} layers in the plan, {model} in the model", cnn.name));
    }
    let planned = cnn.states.iter().map(|state| (&state.output, &state.input, state.initial.to_bits()));
    let states = network.states.iter().map(|state| (&state.output, &state.input, state.initial.to_bits()));
    if planned.collect::<BTreeSet<_>>() != states.collect() {
        found.push(format!("CNN `{}` has other states in the plan than in the model", cnn.name));
    }
    if cnn.stream != network.stream {
        found.push(format!("CNN `{}` is another stream in the plan than its model makes", cnn.name));
    }
    for (planned, layer) in cnn.layers.iter().zip(&network.layers) {
        let name = format!("layer `{}/{}`", cnn.name, planned.name);
        let mut differs = |what: &str, plan: &str, model: &str| {
            if plan != model {
                found.push(format!("{name}: {what} is {plan} in the plan, {model} in the model"));
            }
        };
        differs("name", &planned.name, &layer.name);
        differs("operator", planned.operator.kind(), layer.operator.kind());
        let both_inputs =
            matches!((&planned.operator, &layer.operator), (Operator::Input(_), Operator::Input(_)));
        if planned.operator != layer.operator
            && planned.operator.kind() == layer.operator.kind()
            && !both_inputs
        {
            let [plan, model] = [&planned.operator, &layer.operator].map(|operator| {
                let value = serde_json::to_value(operator).unwrap_or_default();
                value.get("attributes").cloned().unwrap_or_default()
            });
            attributes("", &plan, &model, &mut differs);
        }
        let plan: Vec<String> = planned
            .inputs
            .iter()
            .map(|input| viewed_tensor(cnn, &input.tensor, input.view.as_ref()))
            .collect();
        let model: Vec<String> = layer.inputs.iter().map(|operand| read(network, operand)).collect();
        differs("what it reads", &plan.join(", "), &model.join(", "));
        differs("output", &planned.output, &layer.output);
        differs("output shape", &order(&planned.output_shape), &order(&layer.shape));
        if let Some(owner) = &planned.parameters_of {
            let shared = network.find(owner).map(|owner| &network.layer(owner).parameters);
            let is_same = shared.is_some_and(|shared| *shared == layer.parameters);
            let model = if is_same { "the same" } else { "others" };
            differs(&format!("its parameters, beside those of `{owner}`,"), "the same", model);
        }
        let planned = quantizations.get(planned.output.as_str()).copied();
        differs("quantization of its output", &quantized(planned), &quantized(layer.quantization));
    }
    let named = |(name, tensor): (&String, String)| format!("{name}: {tensor}");
    let plan = cnn.outputs.iter().map(|out| (&out.name, viewed_tensor(cnn, &out.tensor, out.view.as_ref())));
    let model = network.callers_outputs().map(|out| (&out.name, read(network, &out.operand)));
    let [plan, model] =
        [plan.map(named).collect::<Vec<_>>(), model.map(named).collect()].map(|outputs| outputs.join(", "));
    if plan != model {
        found.push(format!("CNN `{}` has the outputs {plan} in the plan, {model} in the model", cnn.name));
    }
    found
}

/// Where the attributes of an operator differ, by their path, such as `stride[0]`.
fn attributes(path: &str, plan: &Value, model: &Value, differs: &mut dyn FnMut(&str, &str, &str)) {
    match (plan, model) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let [plan, model] = [a, b].map(|map| map.get(name).unwrap_or(&Value::Null));
                attributes(&path, plan, model, differs);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (plan, model)) in a.iter().zip(b).enumerate() {
                attributes(&format!("{path}[{at}]"), plan, model, differs);
            }
        }
        _ => {
            let text = |value: &Value| if value.is_null() { "absent".into() } else { value.to_string() };
            differs(&format!("`{path}`"), &text(plan), &text(model));
        }
    }
}

/// Which numbers integers stand for.
fn quantized(quantization: Option<Quantization>) -> String {
    match quantization {
        Some(Quantization { scale, zero_point }) => format!("scale {scale}, zero point {zero_point}"),
        None => "absent".into(),
    }
}

/// A tensor of a plan as it is seen.
fn viewed_tensor(cnn: &Cnn, tensor: &str, view: Option<&Shape>) -> String {
    let own = || cnn.layers.iter().find(|layer| layer.output == tensor).map(|layer| &layer.output_shape);
    match view.or_else(own) {
        Some(shape) => format!("`{tensor}` as {}", order(shape)),
        None => format!("`{tensor}`"),
    }
}

/// A tensor of a network as it is seen.
fn read(network: &Network, operand: &Operand) -> String {
    format!("`{}` as {}", network.layer(operand.layer).output, order(&operand.shape))
}

/// A shape and, where that means anything, the order of its dimensions.
fn order(shape: &Shape) -> String {
    let is_last = shape.rank() == 4 && shape.order == Order::ChannelsLast;
    format!("{shape}{}", if is_last { ", channels last" } else { "" })
}
