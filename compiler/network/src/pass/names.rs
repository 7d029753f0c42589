//! Names of layers that passes add.

use std::collections::BTreeSet;

use crate::Network;

/// The names of a network's layers and tensors.
#[derive(Debug)]
pub struct Names(BTreeSet<String>);

impl Names {
    /// The names of this network.
    pub fn new(network: &Network) -> Self {
        let names = network.layers.iter().flat_map(|layer| [layer.name.clone(), layer.output.clone()]);
        Names(names.collect())
    }

    /// A name that nothing else has: this one, if it is free.
    pub fn unique(&mut self, mut name: String) -> String {
        while !self.0.insert(name.clone()) {
            name += "_";
        }
        name
    }
}
