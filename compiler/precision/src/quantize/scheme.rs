//! Which tensors become integers, and the network that says so.

use std::sync::Arc;

use csdfc_network::pass::{self, Names};
use csdfc_network::weights::{Integers, WeightSource, Weights};
use csdfc_network::{Layer, LayerId, Network, Operand};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{BinaryFunction, Function, Gemm, Operator, PoolKind};
use csdfc_runtime::bind::Primitive;
use petgraph::unionfind::UnionFind;

use super::equalise::values;
use super::norms;
use super::ranges::quantization;
use crate::error::Error;

/// How each layer computes, and what its tensor consists of.
pub(super) struct Scheme {
    /// How each layer computes.
    pub roles: Vec<Role>,
    /// The quantization of each layer's tensor, if it becomes integers.
    pub tensors: Vec<Option<Quantization>>,
    /// The bounds that a layer's sums go through before they are rounded: a Relu or Clip that alone reads them.
    pub bounds: Vec<Option<LayerId>>,
}

/// How a layer computes between integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// With floats.
    Floats,
    /// With floats that were not rounded to integers before, if layers make them.
    Kept,
    /// On integers.
    Computes,
    /// It moves integers, and keeps their scales.
    Moves,
}

/// A network with conversions.
pub(super) struct Converted {
    pub network: Network,
    /// The tensors of integers, one for each layer of the network without conversions that has one.
    pub tensors: Vec<Option<String>>,
}

impl Scheme {
    /// Lets all layers that can compute on integers do so, except the insides of norms, those that are kept, and those that make the operands
    /// of kept layers. `ranges` are the quantizations that each tensor would have.
    pub fn new(network: &Network, ranges: &[Option<Quantization>], is_kept: &dyn Fn(usize) -> bool) -> Self {
        let uses = read_counts(network);
        let mut roles: Vec<Role> = network.layers.iter().map(role).collect();
        for (role, is_inside) in roles.iter_mut().zip(norms::insides(network)) {
            if is_inside {
                *role = Role::Floats;
            }
        }
        let bounds: Vec<Option<LayerId>> =
            network.ids().map(|id| bound(network, &roles, &uses, id)).collect();
        for id in network.ids() {
            let last = bounds[id.0].unwrap_or(id);
            if is_bound_of_norm(network, &uses, id) {
                roles[id.0] = Role::Floats;
            } else if roles[id.0] == Role::Computes && is_kept(id.0) {
                (roles[id.0], roles[last.0]) = (Role::Kept, Role::Kept);
            } else if ranges[last.0].is_none() {
                (roles[id.0], roles[last.0]) = (Role::Floats, Role::Floats);
            }
        }
        for id in network.ids() {
            let last = bounds[id.0].unwrap_or(id);
            let is_read = |by: LayerId| network.layer(by).inputs.iter().any(|operand| operand.layer == last);
            let by_kept = network.ids().any(|by| roles[by.0] == Role::Kept && is_read(by));
            if roles[id.0] == Role::Computes && by_kept {
                (roles[id.0], roles[last.0]) = (Role::Floats, Role::Floats);
            }
        }
        let wanted = wanted(network, &roles, &bounds);
        let own = ranges.iter().zip(&wanted).map(|(range, wanted)| range.filter(|_| *wanted)).collect();
        let tensors = shared(network, &roles, own);
        Scheme { roles, tensors, bounds }
    }

    /// The network with conversions around what becomes integers, and with integers for weights.
    pub fn apply(&self, network: &Network) -> Result<Converted, Error> {
        let mut names = Names::new(network);
        let (outputs, states) = (network.outputs.clone(), network.states.clone());
        let mut result = Network { outputs, states, ..Network::default() };
        let mut tensors: Vec<Option<String>> = Vec::new();
        // The layers, and what makes the numbers of their integers.
        let (mut made_by, mut places): (Vec<LayerId>, Vec<LayerId>) = Default::default();
        for id in network.ids() {
            let mut layer = network.layer(id).clone();
            if self.roles[id.0] == Role::Computes {
                let read = layer.inputs.first().and_then(|operand| self.tensors[operand.layer.0]);
                quantize_parameters(&mut layer, read)?;
            }
            for operand in &mut layer.inputs {
                let is_exact = self.roles[id.0] == Role::Kept && self.roles[operand.layer.0] != Role::Moves;
                operand.layer = if is_exact { &made_by } else { &places }[operand.layer.0];
            }
            let mut made = result.add(layer.clone());
            made_by.push(made);
            tensors.push(None);
            if self.tensors[id.0].is_some() {
                for (how, primitive, quantization) in [
                    ("QuantizeLinear", "convert-quantize-hwc-hwc", self.tensors[id.0]),
                    ("DequantizeLinear", "convert-dequantize-hwc-hwc", None),
                ] {
                    let [name, output] = [&layer.name, &layer.output];
                    let output = names.unique(format!("{output}_{how}_Output"));
                    if quantization.is_some() {
                        tensors[id.0] = Some(output.clone());
                    }
                    made = result.add(Layer {
                        name: names.unique(format!("{name}_{how}")),
                        output,
                        onnx_nodes: Vec::new(),
                        operator: Operator::Convert,
                        inputs: vec![Operand { layer: made, shape: layer.shape.clone() }],
                        parameters: Vec::new(),
                        shape: layer.shape.clone(),
                        primitive: Primitive::find(primitive),
                        quantization,
                    });
                }
            }
            places.push(made);
        }
        for output in &mut result.outputs {
            output.operand.layer = places[output.operand.layer.0];
        }
        Ok(Converted { network: result, tensors })
    }
}

/// How often each tensor is read, network outputs counted.
fn read_counts(network: &Network) -> Vec<usize> {
    let mut uses = vec![0; network.layers.len()];
    let operands = network.layers.iter().flat_map(|layer| &layer.inputs);
    operands.chain(network.outputs.iter().map(|x| &x.operand)).for_each(|x| uses[x.layer.0] += 1);
    uses
}

/// The best role of a layer. With 8 bits, sums, activations, products and means are as accurate as their operands.
/// Square roots, quotients and softmax, for instance, are not.
fn role(layer: &Layer) -> Role {
    if pass::of_moved_integers(layer).is_some() {
        return Role::Moves;
    }
    let is_good = match &layer.operator {
        Operator::Conv(_) | Operator::Gemm(_) | Operator::Reduce(_) => true,
        // ONNX Runtime's means of integers know no dilation, and its optimiser does not see that.
        Operator::Pool(pool) => pool.kind == PoolKind::Max || pool.dilation == [1, 1],
        Operator::ElementWise(element_wise) => element_wise.function.is_activation(),
        Operator::Binary(binary) => matches!(binary.function, BinaryFunction::Add | BinaryFunction::Mul),
        _ => false,
    };
    if is_good && pass::of_integers(layer).is_some() { Role::Computes } else { Role::Floats }
}

/// The Relu or Clip that alone reads a layer's sums.
fn bound(network: &Network, roles: &[Role], uses: &[usize], id: LayerId) -> Option<LayerId> {
    let layer = network.layer(id);
    let sums = matches!(layer.operator, Operator::Conv(_) | Operator::Gemm(_) | Operator::Binary(_));
    if !sums || roles[id.0] != Role::Computes || uses[id.0] != 1 {
        return None;
    }
    network.ids().skip(id.0 + 1).find(|reader| {
        let Layer { operator: Operator::ElementWise(by), inputs, .. } = network.layer(*reader) else {
            return false;
        };
        let bounds = matches!(by.function, Function::Relu | Function::Clip { .. });
        bounds && inputs[0] == Operand { layer: id, shape: layer.shape.clone() }
    })
}

/// The tensors that become integers: those that a layer on integers reads or makes, and those of layers that only move
/// such tensors.
fn wanted(network: &Network, roles: &[Role], bounds: &[Option<LayerId>]) -> Vec<bool> {
    let mut wanted = vec![false; network.layers.len()];
    for id in network.ids().filter(|id| roles[id.0] == Role::Computes) {
        wanted[id.0] = bounds[id.0].is_none();
        for operand in &network.layer(id).inputs {
            wanted[operand.layer.0] |= bounds[operand.layer.0] != Some(id);
        }
    }
    let moves = || network.ids().filter(|id| roles[id.0] == Role::Moves);
    for id in moves().collect::<Vec<_>>().into_iter().rev() {
        if wanted[id.0] {
            network.layer(id).inputs.iter().for_each(|operand| wanted[operand.layer.0] = true);
        }
    }
    for id in moves() {
        wanted[id.0] |= network.layer(id).inputs.iter().all(|operand| wanted[operand.layer.0]);
    }
    wanted
}

/// Whether a layer bounds the output of a batch norm and is its only reader. Then the two are one layer of floats, and
/// one rounding is enough.
fn is_bound_of_norm(network: &Network, uses: &[usize], id: LayerId) -> bool {
    let Layer { operator: Operator::ElementWise(by), inputs, shape, .. } = network.layer(id) else {
        return false;
    };
    let read = inputs[0].layer;
    let norm = network.layer(read);
    matches!(by.function, Function::Relu | Function::Clip { .. })
        && matches!(norm.operator, Operator::BatchNorm(_))
        && uses[read.0] == 1
        && norm.shape == *shape
}

/// The quantization of each tensor. A layer that moves integers has the quantization of its operands. So all operands
/// of a concat have the same one, as in TFLite, and the concat need not round them again. A shared quantization reaches
/// as far as any of its tensors needs.
fn shared(network: &Network, roles: &[Role], own: Vec<Option<Quantization>>) -> Vec<Option<Quantization>> {
    let moves = |id: &LayerId| roles[id.0] == Role::Moves && own[id.0].is_some();
    let mut groups = UnionFind::<usize>::new(own.len());
    for id in network.ids().filter(moves) {
        for operand in network.layer(id).inputs.iter().filter(|x| own[x.layer.0].is_some()) {
            groups.union(id.0, operand.layer.0);
        }
    }
    let mut of_groups: Vec<Option<Quantization>> = vec![None; own.len()];
    for id in network.ids().filter(|id| !moves(id)) {
        let of_group = &mut of_groups[groups.find(id.0)];
        *of_group = match (*of_group, own[id.0]) {
            (Some(a), Some(b)) if a != b => Some(merged(a, b)),
            (a, b) => a.or(b),
        };
    }
    let is = |id: LayerId| own[id.0].and_then(|own| of_groups[groups.find(id.0)].or(Some(own)));
    network.ids().map(is).collect()
}

/// Integers that stand for all numbers for which either do.
fn merged(a: Quantization, b: Quantization) -> Quantization {
    let [low, high] = [u8::MIN, u8::MAX].map(|q| [a.number(q), b.number(q)]);
    quantization([low[0].min(low[1]), high[0].max(high[1])])
}

/// Makes the parameters of a layer integers. `read` is the quantization of its input.
fn quantize_parameters(layer: &mut Layer, read: Option<Quantization>) -> Result<(), Error> {
    let axis = match &layer.operator {
        Operator::Conv(_) => 0,
        Operator::Gemm(Gemm { transposed, .. }) => usize::from(!transposed),
        Operator::Binary(binary) if binary.constant.is_some() => {
            let values = values(layer, 0)?;
            layer.parameters[0] = operand(&layer.parameters[0], &values);
            return Ok(());
        }
        _ => return Ok(()),
    };
    let weights = values(layer, 0)?;
    let bias = if layer.parameters.len() > 1 { Some(values(layer, 1)?) } else { None };
    let read = read.map_or(1.0, |read| read.scale);
    let dims = layer.parameters[0].dims.clone();
    let (inner, channels) = (dims[axis + 1..].iter().product::<usize>(), dims[axis]);
    let mut scales = vec![0.0_f32; channels];
    for (at, w) in weights.iter().enumerate() {
        let scale = &mut scales[at / inner % channels];
        *scale = scale.max(w.abs() / 127.0);
    }
    for (channel, scale) in scales.iter_mut().enumerate() {
        // A bias has 31 bits besides its sign, and sums need some of them.
        let bias = bias.as_ref().map_or(0.0, |bias| bias[channel].abs());
        *scale = scale.max(bias / read / (1_u32 << 30) as f32);
        if !scale.is_normal() {
            *scale = 1.0;
        }
    }
    let integer = |(at, w): (usize, &f32)| (w / scales[at / inner % channels]).round_ties_even() as i32;
    let integers = weights.iter().enumerate().map(integer).collect();
    if let Some(bias) = bias {
        let scales: Vec<f32> = scales.iter().map(|scale| read * scale).collect();
        let integer = |(b, scale): (&f32, &f32)| (f64::from(*b) / f64::from(*scale)).round_ties_even() as i32;
        let integers = bias.iter().zip(&scales).map(integer).collect();
        layer.parameters[1] = of_integers(vec![channels], integers, 1, scales);
    }
    layer.parameters[0] = of_integers(dims, integers, inner, scales);
    Ok(())
}

/// Integers without a zero point.
fn of_integers(dims: Vec<usize>, values: Vec<i32>, inner: usize, scales: Vec<f32>) -> Weights {
    let zero_points = vec![0; scales.len()];
    let source = WeightSource::Integers(Arc::new(Integers { values, inner, scales, zero_points }));
    Weights { dims, source, scale: None }
}

/// A constant operand as integers with one scale and one zero point, like those of a tensor.
fn operand(constant: &Weights, values: &[f32]) -> Weights {
    let ends = values.iter().fold([0.0_f32; 2], |[low, high], &x| [low.min(x), high.max(x)]);
    let to = quantization(ends);
    let integers = Integers {
        values: values.iter().map(|x| i32::from(to.integer(*x))).collect(),
        inner: 1,
        scales: vec![to.scale],
        zero_points: vec![to.zero_point.into()],
    };
    let source = WeightSource::Integers(Arc::new(integers));
    Weights { dims: constant.dims.clone(), source, scale: None }
}
