//! Networks as a quantized model states them: each tensor is rounded to 8-bit integers and back.

use std::sync::Arc;

use csdfc_kernels::half::F16;
use csdfc_network::pass::{Fusion, integers, normalise};
use csdfc_network::weights::{Integers, StoredElement, WeightSource, Weights};
use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{BatchNorm, Concat, Conv, Function, Operator};
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::generate;

/// The network with a conversion to integers and one back after each layer that has a quantization, and with the weights
/// and the constant operands of these layers as integers. Layers do not compute on them yet.
///
/// # Panics
/// When weights cannot be read.
pub fn quantized(network: &Network, quantizations: &[Option<Quantization>]) -> Network {
    let mut result = Network::default();
    let mut places: Vec<LayerId> = Vec::new();
    for (layer, quantization) in network.layers.iter().zip(quantizations) {
        let mut layer = layer.clone();
        layer.inputs.iter_mut().for_each(|operand| operand.layer = places[operand.layer.0]);
        if quantization.is_some() {
            quantize_parameters(&mut layer);
        }
        let mut made = result.add(layer.clone());
        if let Some(quantization) = quantization {
            let to = [("quantize", Some(*quantization)), ("dequantize", None)];
            for (how, quantization) in to {
                made = result.add(Layer {
                    name: format!("{}_{how}", layer.name),
                    output: format!("{}_{how}", layer.output),
                    onnx_nodes: Vec::new(),
                    operator: Operator::Convert,
                    inputs: vec![Operand { layer: made, shape: layer.shape.clone() }],
                    parameters: Vec::new(),
                    shape: layer.shape.clone(),
                    primitive: Primitive::find(&format!("convert-{how}-hwc-hwc")),
                    quantization,
                });
            }
        }
        places.push(made);
    }
    result.outputs.clone_from(&network.outputs);
    for output in &mut result.outputs {
        output.operand.layer = places[output.operand.layer.0];
    }
    result
}

/// A quantization that covers the numbers from `low` to `high`, and 0.
pub fn quantization([low, high]: [f64; 2]) -> Quantization {
    let (low, high) = (low.min(0.0), high.max(0.0));
    let scale = ((high - low) / 255.0).max(1e-6) as f32;
    Quantization { scale, zero_point: (-low / f64::from(scale)).round() as u8 }
}

/// A block of convolutions, each of which reads what all before it have made, as in DenseNet, and their layers quantized: the
/// 1×1 ones read a concat by way of a batch norm, and the last one reads it as it is.
pub fn dense_block(random: &mut ChaCha8Rng) -> Network {
    let mut network = Network::default();
    let (height, width) = (random.random_range(3..7), random.random_range(3..9));
    let mut quantizations = Vec::new();
    let mut of = |network: &Network, quantization: Quantization| {
        quantizations.resize(network.layers.len(), Some(quantization));
    };
    let conv = |filters, side, bias, activation| conv(filters, side, 1, bias, activation);
    let activations = [None, Some(Function::Relu), Some(Function::Clip { min: Some(-0.5), max: Some(1.5) })];
    let image = |channels| Shape::image(channels, height, width);
    let block = quantization([-5.0, 4.0]);
    let mut all = vec![generate::input(&mut network, image(random.random_range(1..20)))];
    of(&network, block);
    let mut whole = all[0].clone();
    for _ in 0..random.random_range(1..4) {
        let channels = whole.shape.channels();
        let activation = activations[random.random_range(0..3)].clone();
        let norm = Operator::BatchNorm(BatchNorm { channels, activation });
        let x = generate::add(&mut network, norm, vec![whole.clone()], image(channels));
        of(&network, quantization([-1.5, 2.0]));
        let inner = random.random_range(2..20);
        let reduce = conv(inner, 1, random.random_range(0..2) == 0, Some(Function::Relu));
        let x = generate::add(&mut network, reduce, vec![x], image(inner));
        of(&network, quantization([0.0, 6.0]));
        let grown = random.random_range(1..9);
        all.push(generate::add(&mut network, conv(grown, 3, false, None), vec![x], image(grown)));
        of(&network, block);
        let read = match random.random_range(0..2) {
            0 => all.clone(),
            _ => vec![whole, all[all.len() - 1].clone()],
        };
        let channels = read.iter().map(|x| x.shape.channels()).sum();
        whole = generate::add(&mut network, Operator::Concat(Concat { axis: 1 }), read, image(channels));
        of(&network, block);
    }
    let operand = generate::add(&mut network, conv(5, 1, true, None), vec![whole], image(5));
    of(&network, quantization([-8.0, 8.0]));
    network.outputs.push(NetworkOutput::new("y", operand));
    integers(quantized(&network, &quantizations))
}

/// A batch norm with an activation, and a 1×1 convolution after it, all quantized.
pub fn after_norm(channels: usize, filters: usize, groups: usize, activation: Option<Function>) -> Network {
    let mut network = Network::default();
    let image = |channels| Shape::image(channels, 4, 5);
    let x = generate::input(&mut network, image(channels));
    let norm = Operator::BatchNorm(BatchNorm { channels, activation });
    let x = generate::add(&mut network, norm, vec![x], image(channels));
    let operand = generate::add(&mut network, conv(filters, 1, groups, true, None), vec![x], image(filters));
    network.outputs.push(NetworkOutput::new("y", operand));
    let quantizations = [[-2.0, 2.0], [-1.5, 2.5], [-4.0, 4.0]].map(|ends| Some(quantization(ends)));
    integers(quantized(&network, &quantizations))
}

/// A convolution that makes as many rows and columns as it reads.
fn conv(filters: usize, side: usize, groups: usize, bias: bool, activation: Option<Function>) -> Operator {
    let (kernel, stride, dilation, pads) = ([side; 2], [1; 2], [1; 2], [side / 2; 4]);
    let (pre, residual) = (None, false);
    Operator::Conv(Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation })
}

/// The network with weights that are narrower than its tensors, as the file of a model may have them: 16-bit floats, or
/// integers with a scale for each output channel. Weights are multiples of 1/16 that both stand for exactly.
///
/// # Panics
/// When weights cannot be read.
pub fn narrow(network: &Network, are_halves: bool) -> Network {
    let mut network = network.clone();
    for layer in &mut network.layers {
        let axis = match &layer.operator {
            Operator::Conv(_) => 0,
            Operator::Gemm(gemm) => usize::from(!gemm.transposed),
            _ => continue,
        };
        let weights = &mut layer.parameters[0];
        let values = weights.values().expect("weights of a test");
        let dims = weights.dims.clone();
        let source = if are_halves {
            let bytes = values.iter().flat_map(|x| F16::from_f32(*x).to_bits().to_le_bytes()).collect();
            WeightSource::Bytes { bytes: Arc::new(bytes), element: StoredElement::F16 }
        } else {
            let inner = dims[axis + 1..].iter().product();
            let scales: Vec<f32> =
                (0..dims[axis]).map(|i| if i % 2 == 0 { 0.0625 } else { -0.03125 }).collect();
            let integer = |(i, x): (usize, &f32)| (x / scales[i / inner % dims[axis]]) as i32;
            let values = values.iter().enumerate().map(integer).collect();
            let zero_points = vec![0; dims[axis]];
            WeightSource::Integers(Arc::new(Integers { values, inner, scales, zero_points }))
        };
        *weights = Weights { dims, source, scale: None };
    }
    normalise(network, Fusion::None)
}

/// Weights as integers with a scale for each output channel, or with one for an odd number of them, a constant operand with one
/// for all.
fn quantize_parameters(layer: &mut Layer) {
    let axis = match &layer.operator {
        Operator::Conv(_) => Some(0),
        Operator::Gemm(gemm) => Some(usize::from(!gemm.transposed)),
        Operator::Binary(_) => None,
        _ => return,
    };
    let Some(weights) = layer.parameters.first_mut() else { return };
    let values = weights.values().expect("weights of a test");
    let (inner, channels) = match axis {
        Some(axis) => (weights.dims[axis + 1..].iter().product::<usize>(), weights.dims[axis]),
        None => (1, 1),
    };
    let integers = match axis {
        // Unsigned integers with one scale and a zero point, as older quantized models have.
        Some(_) if channels % 2 == 1 => {
            let ends = values.iter().fold([0.0; 2], |[low, high]: [f64; 2], &value| {
                [low.min(value.into()), high.max(value.into())]
            });
            let to = quantization(ends);
            let values = values.iter().map(|value| to.integer(*value).into()).collect();
            Integers { values, inner, scales: vec![to.scale], zero_points: vec![to.zero_point.into()] }
        }
        _ => {
            let mut scales = vec![1e-6_f32; channels];
            for (i, value) in values.iter().enumerate() {
                let scale = &mut scales[i / inner % channels];
                *scale = scale.max(value.abs() / 127.0);
            }
            let integer = |(i, value): (usize, &f32)| (value / scales[i / inner % channels]).round() as i32;
            let values = values.iter().enumerate().map(integer).collect();
            Integers { values, inner, scales, zero_points: vec![0; channels] }
        }
    };
    let source = WeightSource::Integers(Arc::new(integers));
    *weights = Weights { dims: weights.dims.clone(), source, scale: None };
}
