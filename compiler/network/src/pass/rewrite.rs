//! The rewriting that passes need: absorbing one layer into another, adding layers before one, and removing layers that
//! nobody reads.

use crate::{Layer, LayerId, Network};

/// A pass in progress over the layers in topological order.
///
/// A pass must [visit](Rewrite::visit) a layer before it looks at it. Then the layer's operands name the layers that
/// now stand for those absorbed earlier.
pub(super) struct Rewrite {
    pub(super) network: Network,
    /// For each layer, the one that makes its tensor now.
    stands_for: Vec<LayerId>,
    /// For each layer, how many operands and network outputs read its tensor.
    uses: Vec<usize>,
}

impl Rewrite {
    pub(super) fn new(network: Network) -> Self {
        Rewrite { stands_for: network.ids().collect(), uses: uses(&network), network }
    }

    pub(super) fn visit(&mut self, id: LayerId) {
        for operand in &mut self.network.layers[id.0].inputs {
            operand.layer = self.stands_for[operand.layer.0];
        }
    }

    /// Whether only one operand, and no network output, reads this layer's tensor.
    pub(super) fn read_once(&self, id: LayerId) -> bool {
        self.uses[id.0] == 1
    }

    /// The producer of this layer's only input, if nothing else reads it and no view stands between.
    pub(super) fn sole_producer(&self, id: LayerId) -> Option<LayerId> {
        let [operand] = self.network.layer(id).inputs.as_slice() else { return None };
        let unchanged = self.network.layer(operand.layer).shape == operand.shape;
        (unchanged && self.read_once(operand.layer)).then_some(operand.layer)
    }

    /// Lets `producer` stand for `reader`, its only reader. It takes over the reader's tensor and nodes. The caller has
    /// already changed what it computes.
    pub(super) fn fuse_with_reader(&mut self, producer: LayerId, reader: LayerId) {
        let absorbed = &mut self.network.layers[reader.0];
        let nodes = std::mem::take(&mut absorbed.onnx_nodes);
        let (output, shape) = (absorbed.output.clone(), absorbed.shape.clone());
        let layer = &mut self.network.layers[producer.0];
        layer.onnx_nodes.extend(nodes);
        (layer.output, layer.shape) = (output, shape);
        self.stands_for[reader.0] = producer;
        self.uses[producer.0] = self.uses[reader.0];
    }

    /// Lets `producer` stand in the place of `reader`, its only reader. This is [`Rewrite::fuse_with_reader`] for a
    /// producer that now reads tensors which are made between the two.
    pub(super) fn move_to_reader(&mut self, producer: LayerId, reader: LayerId) {
        self.fuse_with_reader(producer, reader);
        self.network.layers.swap(producer.0, reader.0);
        self.stands_for[reader.0] = reader;
        self.uses[producer.0] = 0;
        // Nobody reads the old reader any more. Its operands would come after it, so it must have none.
        self.network.layers[producer.0].inputs.clear();
    }

    /// The network, without the absorbed layers.
    pub(super) fn finish(mut self) -> Network {
        for output in &mut self.network.outputs {
            output.operand.layer = self.stands_for[output.operand.layer.0];
        }
        drop_dead(self.network)
    }
}

/// How many operands and network outputs read the tensor of each layer.
pub(super) fn uses(network: &Network) -> Vec<usize> {
    let mut uses = vec![0; network.layers.len()];
    let operands = network.layers.iter().flat_map(|layer| &layer.inputs);
    for operand in operands.chain(network.outputs.iter().map(|output| &output.operand)) {
        uses[operand.layer.0] += 1;
    }
    uses
}

/// The network, layer by layer. `before` may add layers to the new network and let the layer read them. It is given the
/// layer's old place, and the layer itself, whose operands are already those of the new network.
pub(super) fn with_layers_before(
    network: Network,
    mut before: impl FnMut(&mut Network, LayerId, &mut Layer),
) -> Network {
    let ids = network.ids();
    let Network { layers, outputs, states, stream } = network;
    let mut result = Network { layers: Vec::new(), outputs, states, stream };
    // The new place of each layer.
    let mut places: Vec<LayerId> = Vec::new();
    for (id, mut layer) in ids.zip(layers) {
        for operand in &mut layer.inputs {
            operand.layer = places[operand.layer.0];
        }
        before(&mut result, id, &mut layer);
        places.push(result.add(layer));
    }
    for output in &mut result.outputs {
        output.operand.layer = places[output.operand.layer.0];
    }
    result
}

/// Drops the layers, network inputs among them, on which no network output depends.
pub(super) fn drop_dead(mut network: Network) -> Network {
    let mut live = vec![false; network.layers.len()];
    for output in &network.outputs {
        live[output.operand.layer.0] = true;
    }
    for (index, layer) in network.layers.iter().enumerate().rev() {
        if live[index] {
            for operand in &layer.inputs {
                live[operand.layer.0] = true;
            }
        }
    }
    let mut next = 0;
    let ids: Vec<LayerId> = live
        .iter()
        .map(|&live| {
            let id = LayerId(next);
            next += usize::from(live);
            id
        })
        .collect();
    let mut kept = live.iter();
    network.layers.retain(|_| kept.next() == Some(&true));
    let operands = network.layers.iter_mut().flat_map(|layer| &mut layer.inputs);
    for operand in operands.chain(network.outputs.iter_mut().map(|output| &mut output.operand)) {
        operand.layer = ids[operand.layer.0];
    }
    network
}
