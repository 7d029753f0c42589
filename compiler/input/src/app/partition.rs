//! Deals the layers of a CNN out to partitions and binds their schedules.
//!
//! ```
//! use csdfc_input::app::load::load;
//! use csdfc_input::app::spec::{AppSpec, PartitionSpec};
//! use csdfc_input::app::{Origin, resolve};
//!
//! // The first partition ends with the second convolution, and the rest is the second partition.
//! let mut spec = AppSpec::of_model("builtin:lenet5");
//! let first = PartitionSpec { upto: Some("C3".into()), ..PartitionSpec::default() };
//! spec.cnns[0].partitions = vec![first, PartitionSpec::default()];
//! let application = resolve::resolve(&spec, &Origin::default(), "".as_ref(), &mut load)?;
//! let partitions = &application.cnns[0].partitions;
//! let names: Vec<&str> = partitions.iter().map(|partition| partition.name.as_str()).collect();
//! assert_eq!(names, ["lenet5.p1", "lenet5.p2"]);
//! assert!(partitions[0].layers.last() < partitions[1].layers.first());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::{BTreeMap, VecDeque};

use super::fault::AppFault;
use super::locate::PathStep;
use super::spec::{Method, PartitionSpec};
use csdfc_network::component::partition_of;
use csdfc_network::suggest::{self, clip};
use csdfc_network::{LayerId, Network, component};

/// A part of a CNN that one processor runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its name, unique in the application.
    pub name: String,
    /// Its layers, at least one, ascending.
    pub layers: Vec<LayerId>,
    /// The processor.
    pub processor: String,
    /// The steps of its schedule, whose layers live together. Each layer is in the step of its producers or in a later
    /// one. `None` leaves the schedule to the planner.
    pub schedule: Option<Vec<Vec<LayerId>>>,
}

/// Cuts the layers of a network into partitions, in the order of their last layers. If partitions list their layers,
/// the network's layers get an order in which the layers of a component ([`component`]) follow each other. Later the
/// plan may reorder layers within their partitions. `path` is the path of the CNN in the application file, `cnn` its
/// name.
pub(super) fn cut(
    network: Network,
    cnn: &str,
    specs: &[PartitionSpec],
    path: &[PathStep],
) -> Result<(Network, Vec<Partition>), AppFault> {
    if specs.is_empty() {
        let layers = network.ids().collect();
        let name = cnn.to_string();
        let whole = Partition { name, layers, processor: "cpu".into(), schedule: None };
        return Ok((network, vec![whole]));
    }
    let place = places(&network, cnn, specs, path)?;
    let components = component::components(&network, &place, specs.len());
    let waits = |p: usize| components.iter().any(|component| component.len() > 1 && component.contains(&p));
    let (network, place) = component::gather(network, &place, &components);
    let mut partitions = Vec::new();
    for (i, spec) in specs.iter().enumerate() {
        let at = [path, &["partitions".into(), i.into()]].concat();
        let layers: Vec<LayerId> = network.ids().filter(|id| place[id.0] == i).collect();
        let schedule = match &spec.schedule {
            None => None,
            Some(steps) => {
                let at = [&at[..], &["schedule".into()]].concat();
                if waits(i) {
                    let message =
                        format!("partition `{}` waits for others within a frame", clip(&name(cnn, i, spec)));
                    return Err(AppFault::new(&at, message, "a schedule of its own")
                        .help("leave out the schedule: where a partition waits depends on the others"));
                }
                Some(bind_schedule(&network, &layers, steps, &at)?)
            }
        };
        let processor = spec.processor.clone().unwrap_or_else(|| "cpu".into());
        partitions.push(Partition { name: name(cnn, i, spec), layers, processor, schedule });
    }
    partitions.sort_by_key(|partition| partition.layers.last().copied());
    Ok((network, partitions))
}

/// The partition of each layer. First, partitions that list their layers take them. Then each of the other partitions
/// takes what is left, up to its last layer.
fn places(
    network: &Network,
    cnn: &str,
    specs: &[PartitionSpec],
    path: &[PathStep],
) -> Result<Vec<usize>, AppFault> {
    let mut place: Vec<Option<usize>> = vec![None; network.layers.len()];
    for (i, spec) in specs.iter().enumerate() {
        let Some(names) = &spec.layers else { continue };
        let at = [path, &["partitions".into(), i.into()]].concat();
        let name = name(cnn, i, spec);
        if spec.upto.is_some() {
            let message = format!("partition `{}` has both `layers` and `upto`", clip(&name));
            return Err(AppFault::new(&[&at[..], &["upto".into()]].concat(), message, "one too many").help(
                "leave out one: `layers` lists all layers of a partition, `upto` names its last layer",
            ));
        }
        if names.is_empty() {
            return Err(no_layers(&name, &[&at[..], &["layers".into()]].concat())
                .help("name its layers, or leave out `layers`: the partition then has what others leave"));
        }
        list(network, &mut place, i, names, &|of| self::name(cnn, of, &specs[of]), &at)?;
    }
    let mut rest: VecDeque<LayerId> = network.ids().filter(|id| place[id.0].is_none()).collect();
    let others: Vec<usize> = (0..specs.len()).filter(|i| specs[*i].layers.is_none()).collect();
    for (&i, last) in others.iter().zip((1..=others.len()).map(|count| count == others.len())) {
        let at = [path, &["partitions".into(), i.into()]].concat();
        let end = end(network, &specs[i], &rest, last, &name(cnn, i, &specs[i]), &at)?;
        rest.drain(..end).for_each(|id| place[id.0] = Some(i));
    }
    if let Some(id) = rest.front() {
        let message = format!("no partition has layer `{}`", clip(&network.layer(*id).name));
        return Err(AppFault::new(&[path, &["partitions".into()]].concat(), message, "incomplete").help(
            "list it in a partition, or add one without `layers`, which gets all layers that are left",
        ));
    }
    Ok(place.into_iter().flatten().collect())
}

/// Puts the layers of these names into partition `index`. `name` gives the name of a partition.
fn list(
    network: &Network,
    place: &mut [Option<usize>],
    index: usize,
    names: &[String],
    name: &dyn Fn(usize) -> String,
    path: &[PathStep],
) -> Result<(), AppFault> {
    for (j, layer) in names.iter().enumerate() {
        let at = [path, &["layers".into(), j.into()]].concat();
        let own = name(index);
        let (own, shown) = (clip(&own), clip(layer));
        let Some(id) = find_layer(network, layer) else {
            let message = format!("partition `{own}` lists an unknown layer `{shown}`");
            return Err(unknown_layer(network, layer, &at, message));
        };
        match place[id.0] {
            Some(other) if other != index => {
                let other = name(other);
                let message = format!("partitions `{}` and `{own}` both list layer `{shown}`", clip(&other));
                return Err(AppFault::new(&at, message, "in another partition").help(
                    "a layer belongs to one partition; nodes that were folded into one layer go together",
                ));
            }
            Some(_) if names[..j].contains(layer) => {
                let message = format!("partition `{own}` lists `{shown}` twice");
                return Err(AppFault::new(&at, message, "once more"));
            }
            _ => place[id.0] = Some(index),
        }
    }
    Ok(())
}

fn no_layers(name: &str, path: &[PathStep]) -> AppFault {
    AppFault::new(path, format!("partition `{}` has no layers", clip(name)), "nothing is left")
}

/// Checks that partitions which wait for each other within a frame run at the same time. `parallel` is J.
pub(super) fn check_components(
    network: &Network,
    partitions: &[Partition],
    parallel: &[Vec<String>],
    method: Method,
) -> Result<(), AppFault> {
    let layers = partitions.iter().map(|partition| partition.layers.as_slice());
    let components = component::components(network, &partition_of(network, layers), partitions.len());
    for component in components {
        for pair in component.windows(2) {
            let [one, other] = [pair[0], pair[1]].map(|p| &partitions[p].name);
            let message = format!(
                "partitions `{}` and `{}` wait for each other within a frame",
                clip(one),
                clip(other)
            );
            if !parallel.iter().any(|element| element.contains(one) && element.contains(other)) {
                return Err(AppFault::new(&["parallel".into()], message, "not at the same time")
                    .help("list them together in one element of `parallel`"));
            }
            if method == Method::Reuse {
                return Err(AppFault::new(&["search".into(), "method".into()], message, "one after another")
                    .help("method `reuse` runs partitions one after another; take another method"));
            }
        }
    }
    Ok(())
}

/// The name of partition `index` of a CNN, given or made.
pub(super) fn name(cnn: &str, index: usize, spec: &PartitionSpec) -> String {
    spec.name.clone().unwrap_or_else(|| format!("{cnn}.p{}", index + 1))
}

/// The layer that a name stands for. The name is that of the layer itself, or of an ONNX node or tensor that became
/// part of it.
pub fn find_layer(network: &Network, name: &str) -> Option<LayerId> {
    let position =
        |test: &dyn Fn(&csdfc_network::Layer) -> bool| network.layers.iter().position(test).map(LayerId);
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

/// How many of the remaining layers belong to a partition that does not list its layers. `last` says whether it is the
/// last such partition.
fn end(
    network: &Network,
    spec: &PartitionSpec,
    rest: &VecDeque<LayerId>,
    last: bool,
    name: &str,
    path: &[PathStep],
) -> Result<usize, AppFault> {
    let at = [path, &["upto".into()]].concat();
    let Some(upto) = &spec.upto else {
        if !last {
            let message = format!("partition `{}` does not say where it ends", clip(name));
            return Err(AppFault::new(path, message, "`upto` is missing")
                .help("give `upto`, its last layer; only the last partition of a CNN may omit it"));
        }
        return match rest.is_empty() {
            false => Ok(rest.len()),
            true => {
                Err(no_layers(name, path).help("the other partitions already have all layers of the CNN"))
            }
        };
    };
    let Some(layer) = find_layer(network, upto) else {
        let message = format!("partition `{}` ends with an unknown layer `{}`", clip(name), clip(upto));
        return Err(unknown_layer(network, upto, &at, message));
    };
    let Some(place) = rest.iter().position(|id| *id == layer) else {
        let message = format!(
            "partition `{}` ends with `{}`, which belongs to another partition",
            clip(name),
            clip(upto)
        );
        return Err(AppFault::new(&at, message, "in another partition")
            .help("partitions without `layers` follow each other in the order of the model's file, and none may be empty"));
    };
    if last && let Some(end) = rest.back().filter(|end| **end != layer) {
        let message = format!(
            "the last partition, `{}`, ends with layer `{}`, but the CNN ends with `{}`",
            clip(name),
            clip(upto),
            clip(&network.layer(*end).name)
        );
        return Err(AppFault::new(&at, message, "not the last layer")
            .help("omit `upto` here, or add a partition for the layers that follow"));
    }
    Ok(place + 1)
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
