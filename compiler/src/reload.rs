//! The networks that a plan was made from, loaded again for the values of their weights.

use std::collections::BTreeMap;
use std::path::Path;

use csdfc_codegen::operator::Operator;
use csdfc_codegen::plan::{Cnn, Plan};

use crate::app::load::{self, ModelRequest};
use crate::error::Error;
use crate::identity;
use crate::network::{LayerId, Network};
use crate::pass::Fusion;

/// The networks of a plan, in the order of its CNNs, their layers those of the plan.
#[derive(Debug, Clone)]
pub struct Networks(Vec<Network>);

/// Loads the models of a plan that lies in `folder`.
///
/// # Errors
/// When a model cannot be read, is not the one that the plan was made from, or has other layers than the plan.
pub fn reload(plan: &Plan, folder: &Path) -> Result<Networks, Error> {
    plan.cnns.iter().map(|cnn| network(cnn, folder)).collect::<Result<_, _>>().map(Networks)
}

impl Networks {
    /// Values of a parameter of a layer, in the order of the operator's documentation.
    ///
    /// # Errors
    /// When there is no such parameter, or its values cannot be read.
    pub fn parameter(&self, cnn: usize, layer: usize, parameter: usize) -> Result<Vec<f32>, String> {
        let layer = self.0.get(cnn).and_then(|network| network.layers.get(layer));
        let weights = layer.and_then(|layer| layer.parameters.get(parameter));
        let weights = weights.ok_or_else(|| format!("it has no parameter {parameter}"))?;
        weights.values().map_err(|error| format!("its parameter {parameter} cannot be read: {error}"))
    }
}

fn network(cnn: &Cnn, folder: &Path) -> Result<Network, Error> {
    identity::verify(folder, cnn)?;
    let inputs = cnn.layers.iter().filter(|layer| matches!(layer.operator, Operator::Input(_)));
    let shapes: BTreeMap<String, Vec<usize>> = match cnn.model.path.starts_with("builtin:") {
        true => BTreeMap::new(),
        false => inputs.map(|layer| (layer.name.clone(), layer.output_shape.dims.clone())).collect(),
    };
    let mut difference = String::new();
    // A plan does not say what was made one layer of, but its layers do.
    for fusion in Fusion::ALL {
        let request = ModelRequest { model: &cnn.model.path, folder, shapes: &shapes, fusion };
        let loaded = load::load(&request).map_err(|error| Error::Model {
            cnn: cnn.name.clone(),
            model: cnn.model.path.clone(),
            source: Box::new(error),
        })?;
        let network = in_order_of(cnn, loaded.network);
        match compare(cnn, &network) {
            Ok(()) => return Ok(network),
            Err(why) => difference = why,
        }
    }
    Err(Error::Input {
        message: format!(
            "the plan of CNN {} does not fit its model, {}: {difference}",
            cnn.name, cnn.model.path
        ),
        help: Some("plan the application again with this version of csdfc".into()),
    })
}

/// The network with its layers in the order of the plan's, or as it is if that is no order for it.
fn in_order_of(cnn: &Cnn, network: Network) -> Network {
    let places: BTreeMap<&str, LayerId> =
        network.ids().map(|id| (network.layer(id).name.as_str(), id)).collect();
    let order: Vec<LayerId> =
        cnn.layers.iter().filter_map(|layer| places.get(layer.name.as_str()).copied()).collect();
    let mut place = vec![None; network.layers.len()];
    for (at, id) in order.iter().enumerate() {
        place[id.0] = Some(at);
    }
    // Each layer once, and behind what it reads.
    let behind =
        |id: LayerId| network.layer(id).inputs.iter().all(|input| place[input.layer.0] < place[id.0]);
    let lawful = order.len() == place.len() && place.iter().all(Option::is_some) && network.ids().all(behind);
    if lawful { network.reordered(&order) } else { network }
}

/// That the layers of a plan are those of the network.
fn compare(cnn: &Cnn, network: &Network) -> Result<(), String> {
    for (planned, layer) in cnn.layers.iter().zip(&network.layers) {
        // How an input is handed over is the application's choice.
        let both_inputs =
            matches!((&planned.operator, &layer.operator), (Operator::Input(_), Operator::Input(_)));
        if planned.name != layer.name || !(both_inputs || planned.operator == layer.operator) {
            return Err(format!(
                "where the plan has layer {} ({}), the model has {} ({})",
                planned.name,
                planned.operator.kind(),
                layer.name,
                layer.operator.kind()
            ));
        }
    }
    if cnn.layers.len() != network.layers.len() {
        return Err(format!("the plan has {} layers, the model {}", cnn.layers.len(), network.layers.len()));
    }
    Ok(())
}
