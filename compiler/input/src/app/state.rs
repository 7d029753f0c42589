//! Binds the state that a CNN keeps from frame to frame.

use super::fault::AppFault;
use super::locate::PathStep;
use super::spec::{AppSpec, CnnSpec};
use csdfc_network::Network;
use csdfc_network::state;
use csdfc_plan::plan::StorageModel;

/// Checks what needs no model: what a CNN with states cannot have.
pub(super) fn check(spec: &AppSpec, storage: StorageModel) -> Result<(), AppFault> {
    for (i, cnn) in spec.cnns.iter().enumerate().filter(|(_, cnn)| !cnn.states.is_empty()) {
        let at = ["cnns".into(), i.into(), PathStep::from("states")];
        let fault = |message: &str, help: &str| Err(AppFault::new(&at, message, "states").help(help));
        if cnn.stream.is_some() {
            return fault(
                "a stream keeps what it needs itself, and has no states",
                "leave out `stream`: a frame of a model with states is a hop",
            );
        }
        if cnn.partitions.len() > 1 {
            return fault("a CNN with states has one partition", "leave out `partitions`");
        }
        if storage != StorageModel::Tensors {
            return fault(
                "states need storage model `tensors`",
                "leave out the storage model and the paper's methods",
            );
        }
        if spec.has_auto_precision() {
            return fault(
                "the precision of a CNN with states is not chosen",
                "state it: fp32, half or mixed",
            );
        }
    }
    Ok(())
}

/// The network that keeps the states of the specification. `path` is that of the CNN.
pub(super) fn bind(network: Network, spec: &CnnSpec, path: &[PathStep]) -> Result<Network, AppFault> {
    let pairs: Vec<(String, String)> =
        spec.states.iter().map(|(output, input)| (output.clone(), input.clone())).collect();
    state::bind(network, &pairs).map_err(|error| {
        let at = [path, &["states".into()]].concat();
        let fault = AppFault::new(&at, error.to_string(), "a state");
        match error.help() {
            Some(help) => fault.help(help),
            None => fault,
        }
    })
}
