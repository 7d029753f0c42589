//! How much a quantized network errs, layer by layer.
//!
//! An error is relative: the norm of the changes, divided by the norm of the tensor, over all frames. The signal-to-noise ratio in decibels is −20 times its decimal logarithm.

use std::borrow::Cow;
use std::collections::BTreeMap;

use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::operator::{Input, InputElement, Operator};
use csdfc_runtime::run::{Data, Value};
use serde::Serialize;

use super::scheme::{Converted, Role, Scheme};
use super::simulate::Simulation;
use crate::error::Error;

/// How much a quantized network errs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Frames that it was calibrated with.
    pub frames: usize,
    /// The layers that could compute on integers, the worst first. A Relu or Clip that bounds the sums of the layer before it
    /// counts as that layer.
    pub layers: Vec<LayerError>,
    /// The network's outputs.
    pub outputs: Vec<OutputError>,
}

/// How much a layer errs on integers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerError {
    /// Its name.
    pub layer: String,
    /// What it computes, as plans call it.
    pub operator: &'static str,
    /// Its own error: it computes on integers, and its inputs have only the error of being rounded to integers.
    pub own: f64,
    /// The error of its tensor in the quantized network, including the errors of all layers before it. `None` if it
    /// stays with floats.
    pub error: Option<f64>,
}

/// How much a network's output errs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputError {
    /// Its name.
    pub output: String,
    /// Its error.
    pub error: f64,
    /// For outputs of at most two dimensions, the share of rows whose greatest element stayed at its place.
    pub agreement: Option<f64>,
}

/// Sums of squares of a tensor and of its changes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Squares {
    tensor: f64,
    change: f64,
}

impl Squares {
    pub fn add(&mut self, exact: &[f32], got: &[f32]) {
        for (exact, got) in exact.iter().zip(got) {
            let (exact, got) = (f64::from(*exact), f64::from(*got));
            self.tensor += exact * exact;
            self.change += (exact - got) * (exact - got);
        }
    }

    /// The relative error. If the tensor is 0, it is 0 without changes, and 1 with changes.
    pub fn error(self) -> f64 {
        if self.change == 0.0 { 0.0 } else { (self.change / self.tensor.max(self.change)).sqrt() }
    }
}

/// A layer alone: a network of it, its bounds and its inputs, quantized.
struct LayerNetwork {
    simulation: Simulation,
    /// The tensors that are its inputs.
    inputs: Vec<(String, Vec<usize>)>,
    /// The tensor that it makes.
    output: String,
}

/// The own error of each layer that computes on integers. A Relu or Clip that bounds sums counts with the layer of the
/// sums.
pub(super) fn own(
    network: &Network,
    reference: &Simulation,
    scheme: &Scheme,
    frames: &[Vec<Value>],
) -> Result<Vec<Option<f64>>, Error> {
    let mut errors = vec![None; network.layers.len()];
    let mut alone = Vec::new();
    for id in network.ids().filter(|id| scheme.roles[id.0] == Role::Computes) {
        let is_bound = network.layer(id).inputs.iter().any(|x| scheme.bounds[x.layer.0] == Some(id));
        if !is_bound {
            alone.push((id, LayerNetwork::new(network, scheme, id)?));
        }
    }
    let mut runners = Vec::new();
    for (_, alone) in &alone {
        runners.push((alone.simulation.runner()?, Squares::default()));
    }
    let mut runner = reference.runner()?;
    for frame in frames {
        let mut tensors: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        reference.frame(&mut runner, frame, &mut |layer, values| {
            tensors.insert(layer.output.clone(), values.to_vec());
        })?;
        for ((_, alone), (runner, squares)) in alone.iter().zip(&mut runners) {
            let value = |(tensor, dims): &(String, Vec<usize>)| {
                let data = Data::F32(tensors.get(tensor).cloned().unwrap_or_default());
                Value { dims: dims.clone(), data }
            };
            let inputs: Vec<Value> = alone.inputs.iter().map(value).collect();
            let outputs = alone.simulation.frame(runner, &inputs, &mut |_, _| {})?;
            if let (Some(exact), Some(Value { data: Data::F32(got), .. })) =
                (tensors.get(&alone.output), outputs.first())
            {
                squares.add(exact, got);
            }
        }
    }
    for ((id, _), (_, squares)) in alone.iter().zip(&runners) {
        errors[id.0] = Some(squares.error());
    }
    Ok(errors)
}

impl LayerNetwork {
    fn new(network: &Network, scheme: &Scheme, id: LayerId) -> Result<Self, Error> {
        let mut small = Network::default();
        let mut tensors = Vec::new();
        let mut inputs = Vec::new();
        let mut layer = network.layer(id).clone();
        let mut places: BTreeMap<LayerId, LayerId> = BTreeMap::new();
        for operand in &mut layer.inputs {
            let read = network.layer(operand.layer);
            operand.layer = *places.entry(operand.layer).or_insert_with(|| {
                inputs.push((read.output.clone(), read.shape.dims.clone()));
                tensors.push(scheme.tensors[operand.layer.0]);
                small.add(Layer {
                    operator: Operator::Input(Input { element: InputElement::F32, camera: None }),
                    inputs: Vec::new(),
                    parameters: Vec::new(),
                    ..read.clone()
                })
            });
        }
        let mut roles = vec![Role::Floats; tensors.len()];
        let mut bounds = vec![None; tensors.len()];
        let mut last = small.add(layer);
        let last_of = scheme.bounds[id.0].unwrap_or(id);
        if last_of != id {
            let bound = network.layer(last_of).clone();
            let inputs = vec![Operand { layer: last, shape: bound.inputs[0].shape.clone() }];
            last = small.add(Layer { inputs, ..bound });
            roles.push(Role::Computes);
            bounds.push(Some(last));
            tensors.push(None);
        }
        roles.push(Role::Computes);
        bounds.push(None);
        tensors.push(scheme.tensors[last_of.0]);
        let Layer { output, shape, .. } = small.layer(last).clone();
        let operand = Operand { layer: last, shape };
        small.outputs.push(NetworkOutput::new(format!("{output}_alone"), operand));
        let converted = Scheme { roles, tensors, bounds }.apply(&small)?;
        Ok(LayerNetwork { simulation: Simulation::new(converted.network)?, inputs, output })
    }
}

/// The errors of the quantized network, in addition to the own error of each layer.
pub(super) fn whole(
    network: &Network,
    reference: &Simulation,
    (scheme, converted): (&Scheme, &Converted),
    own: &[Option<f64>],
    frames: &[Vec<Value>],
) -> Result<Report, Error> {
    let quantized = Simulation::new(converted.network.clone())?;
    let (mut exact, mut rounded) = (reference.runner()?, quantized.runner()?);
    let mut layers = vec![Squares::default(); network.layers.len()];
    let mut outputs = vec![(Squares::default(), 0, 0); network.outputs.len()];
    let place: BTreeMap<&String, usize> =
        converted.tensors.iter().enumerate().filter_map(|(at, name)| Some((name.as_ref()?, at))).collect();
    for (number, frame) in (1..).zip(frames) {
        let mut odd = None;
        let mut tensors: BTreeMap<String, Vec<f32>> = BTreeMap::new();
        let wanted = reference.frame(&mut exact, frame, &mut |layer, values| {
            tensors.insert(layer.output.clone(), values.to_vec());
        })?;
        let got = quantized.frame(&mut rounded, frame, &mut |layer, values| {
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                odd.get_or_insert((layer.name.clone(), *value));
            }
            if let Some(&at) = place.get(&layer.output)
                && let Some(exact) = tensors.get(&network.layers[at].output)
            {
                layers[at].add(exact, values);
            }
        })?;
        if let Some((layer, value)) = odd {
            return Err(Error::InfiniteQuantized { frame: number, layer, value });
        }
        for ((squares, same, rows), (wanted, got)) in outputs.iter_mut().zip(wanted.iter().zip(&got)) {
            let (Some(exact), Some(values)) = (numbers(&wanted.data), numbers(&got.data)) else { continue };
            squares.add(&exact, &values);
            let columns = wanted.dims.last().copied().unwrap_or(1).max(1);
            for (exact, values) in exact.chunks(columns).zip(values.chunks(columns)) {
                *rows += 1;
                *same += usize::from(greatest(exact) == greatest(values));
            }
        }
    }
    let line = |(at, own): (usize, &Option<f64>)| {
        let layer = &network.layers[at];
        let made = scheme.bounds[at].map_or(at, |bound| bound.0);
        Some(LayerError {
            layer: layer.name.clone(),
            operator: layer.operator.kind(),
            own: (*own)?,
            error: (scheme.roles[at] == Role::Computes).then(|| layers[made].error()),
        })
    };
    let mut lines: Vec<LayerError> = own.iter().enumerate().filter_map(line).collect();
    lines.sort_by(|a, b| b.own.total_cmp(&a.own));
    let output = |(output, (squares, same, rows)): (&NetworkOutput, &(Squares, usize, usize))| OutputError {
        output: output.name.clone(),
        error: squares.error(),
        agreement: (output.operand.shape.rank() <= 2 && *rows > 0).then(|| *same as f64 / *rows as f64),
    };
    let outputs = network.outputs.iter().zip(&outputs).map(output).collect();
    Ok(Report { frames: frames.len(), layers: lines, outputs })
}

/// An output as numbers; nothing of indices.
fn numbers(data: &Data) -> Option<Cow<'_, [f32]>> {
    match data {
        Data::F32(values) => Some(values.into()),
        Data::U8(values) => Some(values.iter().map(|q| f32::from(*q)).collect()),
        Data::I8(_) | Data::I64(_) => None,
    }
}

/// Index of the greatest element, the first of several.
fn greatest(row: &[f32]) -> usize {
    let all = row.iter().enumerate();
    all.fold(0, |best, (at, value)| if *value > row[best] { at } else { best })
}
