//! Layers of half precision, executed. Random networks, of which all layers or some are of half precision, make the same
//! bytes however they are planned. Debug builds put guards around the arena and fill each row that is released with what
//! is no number. Where no function spreads the rounding, they make about what the textbook says.

use std::collections::BTreeMap;

use csdfc::network::Network;
use csdfc::pass::halve;
use csdfc_codegen::bind::Primitive;
use csdfc_codegen::format::Element;
use csdfc_codegen::operator::{ElementWise, Function, Operator};
use csdfc_codegen::plan::StorageModel;
use csdfc_tests::{generate, random};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

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

/// Whether small differences of what it reads are small differences of what it makes.
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

#[test]
fn halves_are_the_same_however_they_are_planned() {
    let mut executed: BTreeMap<&str, u64> = Primitive::all()
        .filter(|primitive| primitive.elements().contains(&Element::F16))
        .map(|p| (p.name(), 0))
        .collect();
    let mut compared = 0;
    for stream in 0..NETWORKS {
        let random = &mut random(stream);
        let drawn = drawn(random);
        let all = random.random_range(0..2) == 0;
        let is_half: Vec<bool> = drawn.layers.iter().map(|_| all || random.random_range(0..2) == 0).collect();
        let halved = halve(drawn.clone(), &is_half);
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
            let tensors = textbook::evaluate(&drawn, &inputs);
            for (output, value) in drawn.outputs.iter().zip(&outputs[0][0]) {
                let of = output.operand.layer.0;
                let largest = tensors[..=of].iter().flatten().fold(0.0, |a: f64, b| a.max(b.abs()));
                for (want, got) in tensors[of].iter().zip(floats(value)) {
                    let error = (want - f64::from(*got)).abs();
                    assert!(error <= TOLERANCE * largest, "stream {stream}: {got}, not {want} of {largest}");
                }
            }
        }
    }
    assert!(executed.values().all(|count| *count > 10), "{executed:?}");
    assert!(compared > 10, "{compared}");
}
