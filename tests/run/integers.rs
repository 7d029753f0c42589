//! Layers of 8-bit integers, executed. Random networks whose tensors are quantized make the same bytes however they are
//! planned. A layer alone makes the textbook's result for the numbers that its integers stand for, rounded once.

use std::collections::BTreeMap;

use csdfc_network::pass::{Fusion, fuse_integers, integers};
use csdfc_network::{Network, NetworkOutput, Operand};
use csdfc_plan::format::{Element, Quantization};
use csdfc_plan::operator::Function;
use csdfc_plan::plan::StorageModel;
use csdfc_runtime::bind::Primitive;
use csdfc_tests::quantized::{after_norm, dense_block, quantization, quantized};
use csdfc_tests::{generate, random, until_all_are_tested};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::layouts::outputs;
use super::{bits, floats, inputs, textbook};

/// Networks drawn.
const NETWORKS: u64 = 100;

/// A random network.
pub(super) fn drawn(random: &mut ChaCha8Rng) -> Network {
    let bytes: Vec<u8> = (0..random.random_range(20..200)).map(|_| random.random()).collect();
    generate::application(&bytes, StorageModel::Tensors).cnns[0].network.clone()
}

/// The tensors of a network by the textbook.
fn tensors(network: &Network) -> Vec<Vec<f64>> {
    let inputs = inputs(network, 0);
    let inputs: Vec<Vec<f64>> =
        inputs.iter().map(|input| floats(input).iter().copied().map(f64::from).collect()).collect();
    textbook::evaluate(network, &inputs)
}

/// A quantization for each tensor of numbers. It reaches from the least to the largest element, or not quite.
fn quantizations(network: &Network, random: &mut ChaCha8Rng) -> Vec<Option<Quantization>> {
    let ends = |tensor: &Vec<f64>, share: f64| {
        let end = |best: fn(f64, f64) -> f64| share * tensor.iter().copied().fold(0.0, best);
        [end(f64::min), end(f64::max)]
    };
    let tensors = tensors(network);
    let of = |(layer, tensor): (&csdfc_network::Layer, &Vec<f64>)| {
        let share = [1.0, 0.8][random.random_range(0..2)];
        let ends = ends(tensor, share);
        let is_finite = ends.iter().all(|end| end.is_finite() && end.abs() < 1e30);
        (is_finite && !layer.operator.makes_indices()).then(|| quantization(ends))
    };
    network.layers.iter().zip(&tensors).map(of).collect()
}

fn counts() -> BTreeMap<&'static str, u64> {
    let of_integers = |primitive: &Primitive| primitive.elements().contains(&Element::U8);
    Primitive::all().filter(of_integers).map(|primitive| (primitive.name(), 0)).collect()
}

#[test]
fn integers_are_the_same_however_they_are_planned() {
    until_all_are_tested(NETWORKS, 2, counts(), |stream, executed| {
        let random = &mut random(stream);
        let drawn = drawn(random);
        let mut quantizations = quantizations(&drawn, random);
        if random.random_range(0..2) == 0 {
            // Some layers stay with floats.
            quantizations.iter_mut().for_each(|to| *to = to.filter(|_| random.random_range(0..4) > 0));
        }
        let network = integers(quantized(&drawn, &quantizations));
        for layer in &network.layers {
            executed.entry(layer.primitive().name()).and_modify(|count| *count += 1);
        }
        let outputs = outputs(&network);
        for (i, found) in outputs.iter().enumerate() {
            assert_eq!(bits(&outputs[0]), bits(found), "stream {stream}, plan {i}");
        }
    });
}

/// Batch norms and concats that convolutions compute while they gather their windows: the result is that of separate
/// layers.
#[test]
fn fused_layers_make_the_same_bytes() {
    for stream in 0..NETWORKS {
        let network = dense_block(&mut random(stream));
        let [fused, norms] =
            [Fusion::Full, Fusion::Paper].map(|fusion| fuse_integers(network.clone(), fusion));
        let count = |network: &Network, kind: &str| {
            network.layers.iter().filter(|layer| layer.operator.kind() == kind).count()
        };
        // The only conversions are at the network's ends, and all other layers are convolutions.
        assert_eq!(count(&fused, "conv") + 3, fused.layers.len(), "{:?}", fused.layers);
        assert_eq!(count(&fused, "convert"), 2);
        assert_eq!((count(&norms, "concat"), count(&norms, "batch_norm")), (count(&network, "concat"), 0));
        let want = bits(&outputs(&network)[0]);
        for network in [norms, fused] {
            for (i, found) in outputs(&network).iter().enumerate() {
                assert_eq!(bits(found), want, "stream {stream}, plan {i}");
            }
        }
    }
}

/// Not every convolution has a kernel with every prologue. A prologue that no kernel computes stays a layer.
#[test]
fn only_what_a_kernel_does_is_fused() {
    for (channels, filters, groups, activation, fused) in [
        (6, 4, 1, None, true),
        (1, 4, 1, Some(Function::Relu), true),
        (6, 1, 1, Some(Function::Relu), true),
        (6, 4, 1, Some(Function::HardSwish), false),
        (6, 4, 1, Some(Function::LeakyRelu { alpha: 0.1 }), false),
        (6, 4, 2, None, false),
        (6, 6, 6, None, false),
        (1, 1, 1, None, false),
    ] {
        let network = after_norm(channels, filters, groups, activation.clone());
        let found = fuse_integers(network.clone(), Fusion::Full);
        let what = format!("{channels} channels, {filters} filters, {groups} groups, {activation:?}");
        assert_eq!(found.layers.len() < network.layers.len(), fused, "{what}");
        let want = bits(&outputs(&network)[0]);
        for found in outputs(&found) {
            assert_eq!(bits(&found), want, "{what}");
        }
    }
}

/// A network of this layer alone, which reads inputs of the shapes in which it sees its operands.
fn alone(network: &Network, layer: usize) -> Network {
    let mut layer = network.layers[layer].clone();
    (layer.name, layer.output) = ("alone".into(), "alone:0".into());
    let mut alone = Network::default();
    for operand in &mut layer.inputs {
        *operand = generate::input(&mut alone, operand.shape.clone());
    }
    let operand = Operand { shape: layer.shape.clone(), layer: alone.add(layer) };
    alone.outputs.push(NetworkOutput::new("y", operand));
    alone
}

#[test]
fn a_layer_rounds_once() {
    let mut kernels = counts();
    kernels.retain(|name, _| name.contains("int8"));
    let mut compared = 0;
    until_all_are_tested(3 * NETWORKS, 2, kernels, |stream, executed| {
        let random = &mut random(stream);
        let drawn = drawn(random);
        let layers = (0..drawn.layers.len()).filter(|&l| !drawn.layers[l].is_input());
        for l in layers {
            let alone = alone(&drawn, l);
            let mut to = quantizations(&alone, random);
            let Some(Some(made)) = to.last().copied() else { continue };
            // Inputs are sixteenths from −2 to 2 at most, so that they are what integers stand for.
            let count = to.len() - 1;
            let sixteenths = Quantization { scale: 0.0625, zero_point: 128 };
            to[..count].fill(Some(sixteenths));
            let made = if random.random_range(0..2) == 0 { sixteenths } else { made };
            to[count] = Some(made);
            let rounded = quantized(&alone, &to);
            let network = integers(rounded.clone());
            let Some(layer) = network.layers.iter().find(|layer| layer.is_of_integers()) else { continue };
            executed.entry(layer.primitive().name()).and_modify(|count| *count += 1);
            // The textbook computes with the rounded weights, and skips conversions.
            let all = tensors(&rounded);
            let of = rounded.layers.len() - 3;
            let got = &outputs(&network)[0][0][0];
            let [low, high] = [0, u8::MAX].map(|q| f64::from(made.number(q)));
            let scale = f64::from(made.scale);
            for (want, got) in all[of].iter().zip(floats(got)) {
                let error = (want.clamp(low, high) - f64::from(*got)).abs();
                // Half a step of the output, half a step of a bias, which is an integer too, and the rounding of 32-bit
                // floats.
                let most = 0.5 * (scale + 0.0625 / 127.0) + 1e-4 * (scale + want.abs());
                assert!(error <= most, "stream {stream}: {got}, not {want} ± {scale}: {:?}", alone.layers);
            }
            compared += 1;
        }
    });
    assert!(compared > 200, "{compared}");
}
