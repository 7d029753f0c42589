//! Binds what makes a CNN a stream.

use std::collections::BTreeMap;

use super::fault::AppFault;
use super::locate::PathStep;
use super::spec::{AppSpec, CnnSpec, Primitives, StreamSpec, WeightsPlace};
use csdfc_network::stream::of_hops;
use csdfc_network::suggest::{self, clip};
use csdfc_network::{Layer, Network};
use csdfc_plan::plan::StorageModel;

/// Checks what needs no model: what an application of streams cannot have.
pub(super) fn check(spec: &AppSpec, storage: StorageModel) -> Result<(), AppFault> {
    let Some(i) = spec.cnns.iter().position(|cnn| cnn.stream.is_some()) else { return Ok(()) };
    let at = ["cnns".into(), i.into(), PathStep::from("stream")];
    let fault = |message: &str, help: &str| Err(AppFault::new(&at, message, "a stream").help(help));
    if let Some(i) = spec.cnns.iter().position(|cnn| cnn.stream.is_some() && cnn.partitions.len() > 1) {
        let at = ["cnns".into(), i.into(), PathStep::from("stream")];
        let message = "a stream has one partition";
        return Err(AppFault::new(&at, message, "a stream").help("leave out its `partitions`"));
    }
    if storage != StorageModel::Tensors {
        return fault(
            "a stream needs storage model `tensors`",
            "leave out the storage model and the paper's methods",
        );
    }
    if matches!(spec.primitives, Primitives::Named(_)) {
        return fault(
            "the layers of a stream, and of CNNs beside it, are computed by their first primitives",
            "leave out `primitives`",
        );
    }
    if spec.weights == WeightsPlace::Streamed {
        let message = "the weights of a stream, and of CNNs beside it, stay in memory";
        return fault(message, "leave out `weights`");
    }
    if spec.has_auto_precision() {
        let message = "the precision of a stream, and of CNNs beside it, is not chosen";
        return fault(message, "state it: fp32, half or mixed");
    }
    Ok(())
}

/// Checks that nothing runs at the same time if there is a stream. `parallel` has the names of partitions.
pub(super) fn check_parallel(spec: &AppSpec, parallel: &[Vec<String>]) -> Result<(), AppFault> {
    if spec.cnns.iter().all(|cnn| cnn.stream.is_none()) || parallel.iter().all(|element| element.len() == 1) {
        return Ok(());
    }
    let message = "beside a stream, CNNs and partitions take turns";
    Err(AppFault::new(&["parallel".into()], message, "at the same time").help("leave out `parallel`"))
}

/// The network whose frames are hops, if the specification says that the CNN is a stream. `path` is that of the CNN.
pub(super) fn bind(network: Network, spec: &CnnSpec, path: &[PathStep]) -> Result<Network, AppFault> {
    let Some(StreamSpec { inputs, hop, window }) = &spec.stream else { return Ok(network) };
    let path = [path, &["stream".into()]].concat();
    check_inputs(&network, inputs, &path)?;
    of_hops(network, *hop, *window).map_err(|error| {
        let fault = AppFault::new(&path, error.to_string(), "a stream");
        match error.help() {
            Some(help) => fault.help(help),
            None => fault,
        }
    })
}

/// All inputs are streamed, along their rows.
fn check_inputs(
    network: &Network,
    named: &BTreeMap<String, Option<usize>>,
    path: &[PathStep],
) -> Result<(), AppFault> {
    let inputs = || network.layers.iter().filter(|layer| layer.is_input());
    let is = |layer: &Layer, name: &str| layer.name == name || layer.output == name;
    for (name, axis) in named {
        let Some(layer) = inputs().find(|layer| is(layer, name)) else {
            let known = suggest::help(name, "its inputs are", inputs().map(|layer| layer.name.as_str()));
            return Err(AppFault::new(
                path,
                format!("the model has no input `{}`", clip(name)),
                "no such input",
            )
            .help(known));
        };
        let rows = layer.shape.row_axis();
        if let (Some(axis), true) = (axis, *axis != rows) {
            let message = match layer.shape.dims.len() {
                rank if *axis >= rank => {
                    format!("input `{}` of shape {} has no dimension {axis}", clip(name), layer.shape)
                }
                _ => format!(
                    "dimension {axis} of input `{}`, {}, does not count its rows",
                    clip(name),
                    layer.shape
                ),
            };
            let help = match rows {
                Some(rows) => {
                    format!("rows are dimension {rows}; export the model with time as that dimension")
                }
                None => "a stream takes images, [1, C, H, W], whose rows H follow each other in time".into(),
            };
            return Err(AppFault::new(path, message, "not the rows").help(help));
        }
    }
    match inputs().find(|layer| !named.is_empty() && !named.keys().any(|name| is(layer, name))) {
        Some(layer) => {
            let message =
                format!("input `{}` is not a stream, but another input of the CNN is", clip(&layer.name));
            Err(AppFault::new(path, message, "not all inputs")
                .help("name every input: --stream A --stream B"))
        }
        None => Ok(()),
    }
}
