//! Binds the precision of layers, and how much accuracy may be lost if csdfc chooses it.
//!
//! ```
//! use csdfc_input::app::precisions::of_layers;
//! use csdfc_input::app::spec::AppSpec;
//! use csdfc_input::builtin;
//! use csdfc_network::pass::Precision;
//!
//! // Half precision, but for the last layer.
//! let mut spec = AppSpec::of_model("builtin:lenet5");
//! spec.cnns[0].precision = Precision::Half;
//! spec.cnns[0].precisions = [("output".into(), Precision::Fp32)].into();
//! let precisions = of_layers(&spec.cnns[0], &builtin::network("lenet5")?);
//! assert_eq!(precisions.last(), Some(&Precision::Fp32));
//! assert_eq!(precisions.iter().filter(|precision| **precision == Precision::Fp32).count(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use csdfc_network::pass;
use csdfc_network::pass::Precision;
use csdfc_network::suggest::{self, clip};
use csdfc_network::{LayerId, Network};

use super::fault::AppFault;
use super::locate::PathStep;
use super::partition::find_layer;
use super::spec::CnnSpec;

/// Maximum number of random frames.
const MAX_FRAMES: u64 = 1_000;

/// Checks what needs no model. `path` is that of the CNN.
pub(super) fn check(spec: &CnnSpec, path: &[PathStep]) -> Result<(), AppFault> {
    let at = |field: &str| [path, &[PathStep::from(field)]].concat();
    let int8 = |path: &[PathStep]| {
        AppFault::new(path, "only a quantized model has precision int8", "not chosen here")
            .help("quantize the model with `csdfc quantize`, or choose mixed, half or fp32")
    };
    if spec.precision == Precision::Int8 {
        return Err(int8(&at("precision")));
    }
    if let Some((layer, _)) = spec.precisions.iter().find(|(_, p)| **p == Precision::Int8) {
        return Err(int8(&[&at("precisions")[..], &[layer.as_str().into()]].concat()));
    }
    let of_accuracy = |field: &str| [&at("accuracy")[..], &[PathStep::from(field)]].concat();
    let accuracy = &spec.accuracy;
    if accuracy.max_error.is_nan() || accuracy.max_error < 0.0 {
        let message = format!("the largest error of outputs must be at least 0, not {}", accuracy.max_error);
        return Err(AppFault::new(&of_accuracy("max_error"), message, "out of range"));
    }
    match accuracy.random {
        Some(_) if !accuracy.calibrate.is_empty() => Err(AppFault::new(
            &of_accuracy("random"),
            "`random` and `calibrate` are both given",
            "one of them",
        )
        .help("leave out one of the two")),
        Some(count) if !(1..=MAX_FRAMES).contains(&count) => {
            let message = format!("random frames must be 1 to {MAX_FRAMES}, not {count}");
            Err(AppFault::new(&of_accuracy("random"), message, "out of range"))
        }
        _ => Ok(()),
    }
}

/// The network with its layers in their precisions. `path` is that of the CNN.
pub(super) fn bind(network: Network, spec: &CnnSpec, path: &[PathStep]) -> Result<Network, AppFault> {
    if let Some(layer) = spec.precisions.keys().find(|layer| find_layer(&network, layer).is_none()) {
        let at = [path, &["precisions".into(), PathStep::Key(layer.clone())]].concat();
        let layers = network.layers.iter().map(|layer| layer.name.as_str());
        let message = format!("a precision for an unknown layer `{}`", clip(layer));
        return Err(AppFault::new(&at, message, "no such layer").help(suggest::help(
            layer,
            "the layers are",
            layers,
        )));
    }
    let precisions = of_layers(spec, &network);
    match precisions.iter().any(|precision| *precision != Precision::Fp32) {
        true => Ok(pass::in_precisions(network, &precisions)),
        false => Ok(network),
    }
}

/// The precision of each layer of a CNN's network, as its model is loaded.
pub fn of_layers(spec: &CnnSpec, network: &Network) -> Vec<Precision> {
    let mut precisions = vec![spec.precision; network.layers.len()];
    for (layer, precision) in &spec.precisions {
        if let Some(LayerId(layer)) = find_layer(network, layer) {
            precisions[layer] = *precision;
        }
    }
    precisions
}
