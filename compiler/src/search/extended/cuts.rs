//! Cut tensors: where a network is a chain.

use crate::network::{LayerId, Network};

/// The places in `layers`, topologically ordered, after which all that later ones read of these is the tensor made there
/// (the last place among them). Between two such places lies a block, be it a layer or a residual block.
pub fn cuts(network: &Network, layers: &[LayerId]) -> Vec<usize> {
    let mut place = vec![None; network.layers.len()];
    for (at, id) in layers.iter().enumerate() {
        place[id.0] = Some(at);
    }
    let mut last_read: Vec<usize> = (0..layers.len()).collect();
    for (at, id) in layers.iter().enumerate() {
        for operand in &network.layer(*id).inputs {
            if let Some(from) = place[operand.layer.0] {
                last_read[from] = last_read[from].max(at);
            }
        }
    }
    let mut cuts = Vec::new();
    let mut open_until = 0;
    for (at, last) in last_read.iter().enumerate() {
        if open_until <= at {
            cuts.push(at);
        }
        open_until = open_until.max(*last);
    }
    cuts
}
