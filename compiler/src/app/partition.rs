//! Cuts the layers of a CNN into partitions and binds their schedules.

use std::collections::BTreeMap;

use super::fault::AppFault;
use super::locate::PathStep;
use super::spec::PartitionSpec;
use crate::network::{LayerId, Network};
use crate::suggest::{self, clip};

/// A part of a CNN that one processor runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its name, unique in the application.
    pub name: String,
    /// Its layers, at least one, which are consecutive in topological order.
    pub layers: Vec<LayerId>,
    /// The processor.
    pub processor: String,
    /// The steps of its schedule, whose layers live together. Each layer is in the step of its producers or in a later
    /// one. `None` leaves the schedule to the planner.
    pub schedule: Option<Vec<Vec<LayerId>>>,
}

/// Cuts the layers of a network into partitions. The layers are in the order of the model's file; later the plan may
/// give them another order within each partition. `path` is the path of the CNN in the application file, `cnn` its
/// name.
pub(super) fn cut(
    network: &Network,
    cnn: &str,
    specs: &[PartitionSpec],
    path: &[PathStep],
) -> Result<Vec<Partition>, AppFault> {
    if specs.is_empty() {
        let layers = network.ids().collect();
        let name = cnn.to_string();
        return Ok(vec![Partition { name, layers, processor: "cpu".into(), schedule: None }]);
    }
    let mut partitions = Vec::new();
    let mut start = 0;
    for (i, spec) in specs.iter().enumerate() {
        let at = [path, &["partitions".into(), i.into()]].concat();
        let name = name(cnn, i, spec);
        let end = end(network, spec, start, i + 1 == specs.len(), &name, &at)?;
        let layers: Vec<LayerId> = (start..end).map(LayerId).collect();
        let schedule = match &spec.schedule {
            None => None,
            Some(steps) => {
                Some(bind_schedule(network, &layers, steps, &[&at[..], &["schedule".into()]].concat())?)
            }
        };
        let processor = spec.processor.clone().unwrap_or_else(|| "cpu".into());
        partitions.push(Partition { name, layers, processor, schedule });
        start = end;
    }
    Ok(partitions)
}

/// The name of partition `index` of a CNN, given or made.
pub(super) fn name(cnn: &str, index: usize, spec: &PartitionSpec) -> String {
    spec.name.clone().unwrap_or_else(|| format!("{cnn}.p{}", index + 1))
}

/// The layer that a name stands for. The name is that of the layer itself, or of an ONNX node or tensor that became
/// part of it.
pub fn find_layer(network: &Network, name: &str) -> Option<LayerId> {
    let position =
        |test: &dyn Fn(&crate::network::Layer) -> bool| network.layers.iter().position(test).map(LayerId);
    // Storage model `tensors` splits pools between concats and convolutions into parts, `pool.1` and so on.
    let whole = || {
        let (whole, part) = name.rsplit_once('.')?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| network.find(whole))?
    };
    network
        .find(name)
        .or_else(|| position(&|layer| layer.onnx_nodes.iter().any(|node| node == name)))
        .or_else(|| position(&|layer| layer.output == name))
        .or_else(whole)
}

/// The layer after the last one of a partition.
fn end(
    network: &Network,
    spec: &PartitionSpec,
    start: usize,
    last: bool,
    name: &str,
    path: &[PathStep],
) -> Result<usize, AppFault> {
    let count = network.layers.len();
    let at = [path, &["upto".into()]].concat();
    let Some(upto) = &spec.upto else {
        if !last {
            let message = format!("partition `{}` does not say where it ends", clip(name));
            return Err(AppFault::new(path, message, "`upto` is missing")
                .help("give `upto`, its last layer; only the last partition of a CNN may omit it"));
        }
        return match start < count {
            true => Ok(count),
            false => Err(AppFault::new(
                path,
                format!("partition `{}` has no layers", clip(name)),
                "nothing is left",
            )
            .help("the partition before it already ends with the CNN's last layer")),
        };
    };
    let Some(LayerId(layer)) = find_layer(network, upto) else {
        let message = format!("partition `{}` ends with an unknown layer `{}`", clip(name), clip(upto));
        return Err(unknown_layer(network, upto, &at, message));
    };
    if layer < start {
        let message = format!(
            "partition `{}` ends with `{}`, which belongs to an earlier partition",
            clip(name),
            clip(upto)
        );
        return Err(AppFault::new(&at, message, "before the partition starts")
            .help("partitions follow each other in the order of the model's file, and none may be empty"));
    }
    if last && layer + 1 < count {
        let message = format!(
            "the last partition, `{}`, ends with layer `{}`, but the CNN ends with `{}`",
            clip(name),
            clip(upto),
            clip(&network.layers[count - 1].name)
        );
        return Err(AppFault::new(&at, message, "not the last layer")
            .help("omit `upto` here, or add a partition for the layers that follow"));
    }
    Ok(layer + 1)
}

fn unknown_layer(network: &Network, name: &str, path: &[PathStep], message: String) -> AppFault {
    let layers = network.layers.iter().map(|layer| layer.name.as_str());
    AppFault::new(path, message, "no such layer").help(suggest::help(name, "the layers are", layers))
}

/// The steps of a schedule that lists exactly `layers`. Network inputs that it leaves out come first, each a step.
fn bind_schedule(
    network: &Network,
    layers: &[LayerId],
    steps: &[Vec<String>],
    path: &[PathStep],
) -> Result<Vec<Vec<LayerId>>, AppFault> {
    let mut seat: BTreeMap<LayerId, (usize, &str)> = BTreeMap::new();
    let mut bound = Vec::new();
    for (i, step) in steps.iter().enumerate() {
        let mut ids = Vec::new();
        for (j, name) in step.iter().enumerate() {
            let at = [path, &[i.into(), j.into()]].concat();
            let shown = clip(name);
            let Some(id) = find_layer(network, name) else {
                return Err(unknown_layer(
                    network,
                    name,
                    &at,
                    format!("the schedule lists an unknown layer `{shown}`"),
                ));
            };
            if layers.binary_search(&id).is_err() {
                return Err(AppFault::new(
                    &at,
                    format!("`{shown}` is no layer of this partition"),
                    "of another partition",
                ));
            }
            match seat.get(&id) {
                None => {
                    seat.insert(id, (i, name));
                    ids.push(id);
                }
                // A node that was folded into a layer already listed fires with it.
                Some((_, listed)) if listed != name && network.layer(id).name != *name => {}
                Some(_) => {
                    return Err(AppFault::new(
                        &at,
                        format!("the schedule lists `{shown}` twice"),
                        "once more",
                    ));
                }
            }
        }
        ids.sort();
        if !ids.is_empty() {
            bound.push(ids);
        }
    }
    let left_out = |id: &&LayerId| !seat.contains_key(id);
    if let Some(missing) = layers.iter().filter(left_out).find(|id| !network.layer(**id).is_input()) {
        let message = format!("the schedule leaves out layer `{}`", clip(&network.layer(*missing).name));
        return Err(AppFault::new(path, message, "incomplete")
            .help("a schedule lists every layer of its partition once"));
    }
    check_order(network, &seat, path)?;
    let inputs = layers.iter().filter(left_out).map(|id| vec![*id]);
    Ok(inputs.chain(bound).collect())
}

/// Checks that no layer of a schedule comes before a layer whose output it reads. `seat` has the step and the name of
/// each layer.
fn check_order(
    network: &Network,
    seat: &BTreeMap<LayerId, (usize, &str)>,
    path: &[PathStep],
) -> Result<(), AppFault> {
    for (id, (step, name)) in seat {
        for operand in &network.layer(*id).inputs {
            if let Some((produced, producer)) = seat.get(&operand.layer)
                && produced > step
            {
                let message = format!(
                    "the schedule has `{}` before `{}`, whose output it reads",
                    clip(name),
                    clip(producer)
                );
                return Err(AppFault::new(&[path, &[(*step).into()]].concat(), message, "too early")
                    .help("a layer comes after its producers, or in the same step"));
            }
        }
    }
    Ok(())
}
