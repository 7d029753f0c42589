//! Layers of half and mixed precision, executed. Random networks in which some or all layers have these precisions make
//! the same bytes however they are planned. Debug builds put guards around the arena, and fill each released row with
//! NaN. If no function amplifies the rounding, the outputs are near those of the textbook.

use std::collections::BTreeMap;

use csdfc_network::Network;
use csdfc_network::pass::{Precision, in_precisions};
use csdfc_network::weights::Weights;
use csdfc_plan::format::Element;
use csdfc_plan::operator::{ElementWise, Function, Operator};
use csdfc_plan::plan::StorageModel;
use csdfc_runtime::bind::Primitive;
use csdfc_tests::{generate, random, until_all_are_tested};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::layouts::outputs;
use super::{bits, floats, inputs, textbook};

/// Networks drawn.
const NETWORKS: u64 = 250;

/// The most that an output may differ, as a share of the largest of its tensor and of those before it.
const TOLERANCE: f64 = 2e-2;

/// A random network.
fn drawn(random: &mut ChaCha8Rng) -> Network {
    let bytes: Vec<u8> = (0..random.random_range(20..200)).map(|_| random.random()).collect();
    generate::application(&bytes, StorageModel::Tensors).cnns[0].network.clone()
}

/// Whether small differences of its inputs make only small differences of its output.
fn is_steady(operator: &Operator) -> bool {
    match operator {
        Operator::Conv(_)
        | Operator::Gemm(_)
        | Operator::Pool(_)
        | Operator::Concat(_)
        | Operator::Slice(_) => true,
        Operator::ElementWise(ElementWise { function }) => {
            matches!(function, Function::Relu | Function::Sigmoid)
        }
        Operator::Input(_) | Operator::Convert | Operator::Pad(_) | Operator::Transpose(_) => true,
        _ => false,
    }
}

/// The network with the weights that layers of mixed precision keep: 127ths of the largest of each output channel.
fn with_weights_of(drawn: &Network, mixed: &Network) -> Network {
    let mut network = drawn.clone();
    for layer in &mut network.layers {
        let kept = mixed.layers.iter().find(|kept| kept.name == layer.name);
        if !kept.is_some_and(|kept| kept.primitive().is_mixed()) {
            continue;
        }
        let mut values = layer.parameters[0].values().unwrap();
        let elements = values.len();
        // The weights of a channel follow each other, or their distance is the number of channels.
        let (channels, step) = match &layer.operator {
            Operator::Conv(conv) => (conv.filters, 1),
            Operator::Gemm(gemm) => (gemm.units, if gemm.transposed { 1 } else { gemm.units }),
            _ => continue,
        };
        for channel in 0..channels {
            let each = elements / channels;
            let at = |i: usize| if step == 1 { channel * each + i } else { channel + i * step };
            let scale = (0..each).fold(0.0f32, |most, i| most.max(values[at(i)].abs())) / 127.0;
            for i in 0..each {
                let integer = if scale == 0.0 { 0.0 } else { (values[at(i)] / scale).round_ties_even() };
                values[at(i)] = integer * scale;
            }
        }
        layer.parameters[0] = Weights::new(layer.parameters[0].dims.clone(), values);
    }
    network
}

#[test]
fn halves_are_the_same_however_they_are_planned() {
    let executed: BTreeMap<&str, u64> = Primitive::all()
        .filter(|primitive| primitive.elements().contains(&Element::F16))
        .map(|p| (p.name(), 0))
        .collect();
    let mut compared = 0;
    until_all_are_tested(NETWORKS, 10, executed, |stream, executed| {
        let random = &mut random(stream);
        let drawn = drawn(random);
        let all = random.random_range(0..2) == 0;
        let main = [Precision::Half, Precision::Mixed][random.random_range(0..2)];
        let mut one =
            || [main, Precision::Fp32, Precision::Half, Precision::Mixed][random.random_range(0..4)];
        let precisions: Vec<Precision> =
            drawn.layers.iter().map(|_| if all { main } else { one() }).collect();
        let halved = in_precisions(drawn.clone(), &precisions);
        for layer in &halved.layers {
            executed.entry(layer.primitive().name()).and_modify(|count| *count += 1);
        }
        let outputs = outputs(&halved);
        for (i, found) in outputs.iter().enumerate() {
            assert_eq!(bits(&outputs[0]), bits(found), "stream {stream}, plan {i}");
        }
        if drawn.layers.iter().all(|layer| is_steady(&layer.operator)) {
            compared += 1;
            let inputs: Vec<Vec<f64>> = inputs(&drawn, 0)
                .iter()
                .map(|input| floats(input).iter().copied().map(f64::from).collect())
                .collect();
            let drawn = with_weights_of(&drawn, &halved);
            let tensors = textbook::evaluate(&drawn, &inputs);
            for (output, value) in drawn.outputs.iter().zip(&outputs[0][0]) {
                let of = output.operand.layer.0;
                let finite = tensors[..=of].iter().flatten().filter(|x| x.is_finite());
                let largest = finite.fold(0.0, |a: f64, b| a.max(b.abs()));
                for (&want, got) in tensors[of].iter().zip(floats(value).iter().copied().map(f64::from)) {
                    // A window that lies in the padding alone has no largest element, and no mean.
                    let same = got == want || got.is_nan() && want.is_nan();
                    let near = same || (want - got).abs() <= TOLERANCE * largest;
                    assert!(near, "stream {stream}: {got}, not {want} of {largest}");
                }
            }
        }
    });
    assert!(compared > 10, "{compared}");
}
