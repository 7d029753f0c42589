//! The identity of a network that no file has.

use std::fmt::Write;

use csdfc_plan::shape::Shape;
use serde::Serialize;
use sha2::{Digest, Sha256};

use csdfc_network::weights::{Integers, WeightSource, Weights};
use csdfc_network::{Network, Operand};

/// SHA-256, in hexadecimal, of everything that determines what the network computes: the outputs, and every layer's
/// name, operator, inputs, shape and weights. Seeded weights count by their seed, stored ones by their bytes, those of
/// an external file by their place in it. In a plan, it takes the place of the hash of a model file.
pub fn fingerprint(network: &Network) -> String {
    let mut hash = Sha256::new();
    for layer in &network.layers {
        let inputs: Vec<_> = layer.inputs.iter().map(operand).collect();
        add_json(&mut hash, &(&layer.name, &layer.operator, inputs, &layer.shape));
        for weights in &layer.parameters {
            add_weights(&mut hash, weights);
        }
    }
    for output in &network.outputs {
        add_json(&mut hash, &(&output.name, operand(&output.operand)));
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn operand(operand: &Operand) -> (usize, &Shape) {
    (operand.layer.0, &operand.shape)
}

/// Adds one line of JSON. JSON delimits its fields, so two different networks never have the same text.
fn add_json(hash: &mut Sha256, value: &impl Serialize) {
    // Cannot fail: the values are structures, sequences, numbers and strings, and a vector takes every write.
    hash.update(serde_json::to_vec(value).unwrap_or_default());
    hash.update(b"\n");
}

fn add_weights(hash: &mut Sha256, weights: &Weights) {
    add_json(hash, &weights.dims);
    match &weights.source {
        WeightSource::Values(values) => values.iter().for_each(|value| hash.update(value.to_le_bytes())),
        WeightSource::Bytes { bytes, element } => {
            hash.update([element.bytes() as u8]);
            hash.update(bytes.as_slice());
        }
        WeightSource::File { path, offset, element } => {
            add_json(hash, &(path.to_string_lossy(), offset, element.bytes()));
        }
        WeightSource::Integers(integers) => {
            let Integers { values, inner, scales, zero_points } = &**integers;
            add_json(hash, &(values, inner, scales, zero_points));
        }
        WeightSource::Transposed { of, perm } => {
            add_weights(hash, of);
            add_json(hash, perm);
        }
        WeightSource::Seeded { seed, bound, centre } => add_json(hash, &(seed, bound, centre)),
    }
    if let Some(scale) = &weights.scale {
        add_json(hash, &scale.axis);
        scale.factors.iter().for_each(|factor| hash.update(factor.to_le_bytes()));
    }
}
