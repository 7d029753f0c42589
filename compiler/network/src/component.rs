//! Partitions that wait for each other within a frame.
//!
//! Suppose that a partition reads tensors of a second one, and the second one reads tensors of the first, directly or
//! through other partitions. Then both work on one frame at a time. They are in one *component*, a strongly connected
//! component of the graph of partitions. For example, if each inception module of a CNN has a branch on another
//! processor, these branches and the rest of the CNN are one component. A component is a stage of a pipeline as a
//! whole. Partitions of different components work on different frames.
//!
//! The layers of a partition fire in topological order. A segment ends where the partition waits for another one, and
//! where another one waits for it ([`stops`]). So the segments of a component have an order in which each finds the
//! tensors that it reads, and no choice of rows can deadlock the partitions.
//!
//! A partition with a branch on another processor, and the same layers in a chain:
//!
//! ```
//! use csdfc_network::component::{components, stops};
//! # use csdfc_network::{Layer, LayerId, Network, Operand};
//! # use csdfc_plan::operator::{ElementWise, Function, Input, InputElement, Operator};
//! # use csdfc_plan::shape::Shape;
//! # let mut network = Network::default();
//! # let shape = Shape::image(2, 4, 4);
//! # for (at, name) in ["image", "relu1", "relu2", "relu3"].into_iter().enumerate() {
//! #     let operator = match at {
//! #         0 => Operator::Input(Input { element: InputElement::F32, camera: None }),
//! #         _ => Operator::ElementWise(ElementWise { function: Function::Relu }),
//! #     };
//! #     let inputs = at.checked_sub(1).map(|at| Operand { layer: LayerId(at), shape: shape.clone() });
//! #     network.add(Layer {
//! #         name: name.into(),
//! #         onnx_nodes: Vec::new(),
//! #         operator,
//! #         inputs: inputs.into_iter().collect(),
//! #         parameters: Vec::new(),
//! #         output: name.into(),
//! #         shape: shape.clone(),
//! #         primitive: None,
//! #         quantization: None,
//! #     });
//! # }
//!
//! // `network` is an image and three Relus, each of which reads the layer before it.
//! let branch = [0, 0, 1, 0];
//! assert_eq!(components(&network, &branch, 2), [[0, 1]]);
//! assert_eq!(stops(&network, &branch, &[vec![0, 1]]), [LayerId(1), LayerId(2)]);
//! let chain = [0, 0, 1, 2];
//! assert_eq!(components(&network, &chain, 3), [[0], [1], [2]]);
//! ```

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::{LayerId, Network};

/// The components of `count` partitions, in the order of data. `partition_of` has the partition of each layer. A
/// component lists its partitions, ascending. Components that do not depend on each other are in the order of their
/// first layers.
pub fn components(network: &Network, partition_of: &[usize], count: usize) -> Vec<Vec<usize>> {
    let edges: BTreeSet<(usize, usize)> = crossing(network, partition_of)
        .map(|(producer, reader)| (partition_of[producer.0], partition_of[reader.0]))
        .collect();
    let mut graph = DiGraph::<(), ()>::new();
    let nodes: Vec<NodeIndex> = (0..count).map(|_| graph.add_node(())).collect();
    for (from, to) in &edges {
        graph.add_edge(nodes[*from], nodes[*to], ());
    }
    let mut component_of = vec![0; count];
    let mut members: Vec<Vec<usize>> = Vec::new();
    for nodes in tarjan_scc(&graph) {
        let mut component: Vec<usize> = nodes.into_iter().map(NodeIndex::index).collect();
        component.sort_unstable();
        component.iter().for_each(|p| component_of[*p] = members.len());
        members.push(component);
    }
    let mut first = vec![usize::MAX; members.len()];
    for (layer, p) in partition_of.iter().enumerate() {
        let first = &mut first[component_of[*p]];
        *first = (*first).min(layer);
    }
    let mut waits: Vec<usize> = vec![0; members.len()];
    let mut feeds: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (from, to) in edges.into_iter().map(|(from, to)| (component_of[from], component_of[to])) {
        if from != to && feeds.entry(from).or_default().insert(to) {
            waits[to] += 1;
        }
    }
    let mut ready: BTreeSet<(usize, usize)> =
        (0..members.len()).filter(|c| waits[*c] == 0).map(|c| (first[c], c)).collect();
    let mut order = Vec::new();
    while let Some((_, component)) = ready.pop_first() {
        order.push(std::mem::take(&mut members[component]));
        for to in feeds.remove(&component).unwrap_or_default() {
            waits[to] -= 1;
            if waits[to] == 0 {
                ready.insert((first[to], to));
            }
        }
    }
    order
}

/// Puts the layers of a network into an order in which those of a component follow each other. Gives the partition of each
/// layer in this order. `partition_of` and `components` are as in [`components`].
pub fn gather(network: Network, partition_of: &[usize], components: &[Vec<usize>]) -> (Network, Vec<usize>) {
    let rank = ranks(components);
    let mut order: Vec<LayerId> = network.ids().collect();
    order.sort_by_key(|id| rank[partition_of[id.0]]);
    (network.reordered(&order), order.iter().map(|id| partition_of[id.0]).collect())
}

/// The component of each partition.
fn ranks(components: &[Vec<usize>]) -> Vec<usize> {
    let mut rank = vec![0; components.iter().map(Vec::len).sum()];
    for (at, component) in components.iter().enumerate() {
        component.iter().for_each(|p| rank[*p] = at);
    }
    rank
}

/// The layers after which a partition's segment ends, ascending. In a component of several partitions, these are the
/// layers whose tensor another partition of the component reads, and the layers right before a layer that reads a
/// tensor of such a partition. `partition_of` and `components` are as in [`components`].
pub fn stops(network: &Network, partition_of: &[usize], components: &[Vec<usize>]) -> Vec<LayerId> {
    let component_of = ranks(components);
    let mut stops = BTreeSet::new();
    for (producer, reader) in crossing(network, partition_of) {
        if component_of[partition_of[producer.0]] == component_of[partition_of[reader.0]] {
            stops.insert(producer);
            let own = |layer: &usize| partition_of[*layer] == partition_of[reader.0];
            stops.extend((0..reader.0).rev().find(own).map(LayerId));
        }
    }
    stops.into_iter().collect()
}

/// The partition of each layer of a network, given the layers of each partition.
pub fn partition_of<'l>(network: &Network, partitions: impl Iterator<Item = &'l [LayerId]>) -> Vec<usize> {
    let mut of = vec![0; network.layers.len()];
    for (index, layers) in partitions.enumerate() {
        layers.iter().for_each(|id| of[id.0] = index);
    }
    of
}

/// The producer and the reader of each operand that comes from another partition.
fn crossing(network: &Network, partition_of: &[usize]) -> impl Iterator<Item = (LayerId, LayerId)> {
    let operands = network
        .ids()
        .flat_map(|reader| network.layer(reader).inputs.iter().map(move |operand| (operand.layer, reader)));
    operands.filter(|(producer, reader)| partition_of[producer.0] != partition_of[reader.0])
}
