//! The order of a network's layers that lowers the peak of its tensors, if these are stored whole.
//!
//! Which tensors are live between two layers depends only on which layers have fired, not on their order. So the least
//! peak of a set of fired layers follows from the sets with one layer less. The search is a dynamic program over these
//! sets, as in Ahn and others, "Ordering Chaos" (2020). It is exact as long as no step has more sets than are kept. Beyond that it is a beam search. Two observations
//! keep the sets few:
//!
//! - Some layers come before or after *every* other layer. They divide the order into stretches. The orders within two
//!   stretches do not concern each other, since between them the same tensors are live in any order.
//! - A layer that frees more bytes than it makes, and causes no new peak, fires at once.
//!
//! With both, the orders of all built-in networks are exact.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::{LayerId, Network};

/// Maximum number of sets of one size that are kept, in a stretch of any length.
const MAX_SETS: usize = 4096;
/// The number of sets of one size that are kept, times the square of the stretch's number of layers. This limits the
/// cost of the search.
const WORK: usize = 1 << 22;

/// An order of layers, and what it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerOrder {
    /// The layers in their new order. It is the network's own order wherever that has the least peak.
    pub layers: Vec<LayerId>,
    /// Bytes of whole tensors at the peak.
    pub peak: u64,
    /// The same in the network's own order.
    pub before: u64,
    /// Whether no order has a lower peak.
    pub exact: bool,
}

/// The order of least peak. Layers stay within these ranges of the network's order, and layers outside of the ranges
/// stay where they are. The ranges are disjoint and ascend. `bytes` has the bytes of each layer's tensor while it is
/// stored. It is 0 for a tensor that is stored nowhere, or all the time.
///
/// A stretch of n layers takes O(n² · k · d) time and O(n · k) memory, for layers with d operands and readers and k
/// sets kept of one size. k is at most 2^22 / n², so a long stretch takes hardly more time than a short one.
pub fn least_peak(network: &Network, ranges: &[Range<usize>], bytes: &[u64]) -> LayerOrder {
    let graph = LayerGraph::new(network, bytes);
    let mut layers: Vec<usize> = (0..network.layers.len()).collect();
    let mut exact = true;
    for range in ranges {
        for stretch in graph.stretches(range.clone()) {
            exact &= LayerRange::new(&graph, stretch.clone()).reorder(&mut layers[stretch]);
        }
    }
    let own: Vec<usize> = (0..network.layers.len()).collect();
    LayerOrder {
        peak: graph.peak(&layers),
        before: graph.peak(&own),
        layers: layers.into_iter().map(LayerId).collect(),
        exact,
    }
}

/// Which layers read which tensors.
struct LayerGraph<'a> {
    bytes: &'a [u64],
    /// Layers whose tensors each layer reads, each once.
    operands: Vec<Vec<usize>>,
    /// Layers that read each layer's tensor, ascending.
    readers: Vec<Vec<usize>>,
}

impl LayerGraph<'_> {
    fn new<'a>(network: &Network, bytes: &'a [u64]) -> LayerGraph<'a> {
        let readers: Vec<Vec<usize>> = network
            .readers()
            .into_iter()
            .map(|readers| readers.into_iter().map(|id| id.0).collect())
            .collect();
        let mut operands = vec![Vec::new(); readers.len()];
        for (tensor, readers) in readers.iter().enumerate() {
            readers.iter().for_each(|reader| operands[*reader].push(tensor));
        }
        LayerGraph { bytes, operands, readers }
    }

    /// The stretches of a range, of two layers or more. They lie between the layers that come before or after every
    /// other layer of the range.
    fn stretches(&self, range: Range<usize>) -> Vec<Range<usize>> {
        // All layers before a layer lead to it if, for each of them, the next layer that it leads to is not after the
        // layer. The same holds for the layers after it, backwards.
        let mut all_lead_here = vec![true; range.len()];
        let mut farthest = 0;
        for at in range.clone() {
            all_lead_here[at - range.start] = farthest <= at;
            let next = self.readers[at].first().copied().filter(|reader| *reader < range.end);
            farthest = farthest.max(next.unwrap_or(usize::MAX));
        }
        let mut stretches = Vec::new();
        let mut end = range.end;
        // The earliest of the layers that the layers behind read last. `None` once a layer behind reads nothing of the
        // range, since it could come before the whole range.
        let mut nearest = Some(usize::MAX);
        for at in range.clone().rev() {
            if nearest.is_some_and(|nearest| nearest >= at) && all_lead_here[at - range.start] {
                stretches.push(at + 1..end);
                end = at;
            }
            let last = self.operands[at].last().copied().filter(|operand| *operand >= range.start);
            nearest = nearest.zip(last).map(|(nearest, last)| nearest.min(last));
        }
        stretches.push(range.start..end);
        stretches.retain(|stretch| stretch.len() > 1);
        stretches.reverse();
        stretches
    }

    /// The most bytes that are live while any layer fires.
    fn peak(&self, order: &[usize]) -> u64 {
        let mut unread: Vec<usize> = self.readers.iter().map(Vec::len).collect();
        let (mut live, mut peak) = (0, 0);
        for &layer in order {
            if !self.readers[layer].is_empty() {
                live += self.bytes[layer];
            }
            peak = peak.max(live);
            for &operand in &self.operands[layer] {
                unread[operand] -= 1;
                if unread[operand] == 0 {
                    live -= self.bytes[operand];
                }
            }
        }
        peak
    }
}

/// Consecutive layers whose order may change.
struct LayerRange<'g> {
    graph: &'g LayerGraph<'g>,
    layers: Range<usize>,
    /// Bytes that are live before its first layer fires and not after its last.
    live: u64,
}

/// A set of a stretch's layers that have fired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Fired(Vec<u64>);

impl Fired {
    fn has(&self, layer: usize) -> bool {
        self.0[layer / 64] >> (layer % 64) & 1 == 1
    }

    fn with_layer(&self, layer: usize) -> Fired {
        let mut more = self.clone();
        more.0[layer / 64] |= 1 << (layer % 64);
        more
    }
}

/// The best way found to a set.
#[derive(Debug, Clone, Copy)]
struct BestOrder {
    peak: u64,
    live: u64,
    /// The place, among the sets of one layer less, of the set that it comes from.
    from: usize,
    /// The layer that fired last.
    layer: usize,
}

impl<'g> LayerRange<'g> {
    fn new(graph: &'g LayerGraph<'g>, layers: Range<usize>) -> Self {
        let mut stretch = LayerRange { graph, layers, live: 0 };
        let operands = stretch.layers.clone().flat_map(|layer| &graph.operands[layer]);
        let mut before: Vec<usize> =
            operands.filter(|tensor| **tensor < stretch.layers.start).copied().collect();
        before.sort_unstable();
        before.dedup();
        stretch.live = before.into_iter().map(|tensor| stretch.bytes(tensor)).sum();
        stretch
    }

    /// Bytes of a tensor, or 0 if it is live all the time: then every order has it in memory.
    fn bytes(&self, tensor: usize) -> u64 {
        let outlives = self.graph.readers[tensor].last().is_some_and(|last| *last >= self.layers.end);
        if tensor < self.layers.start && outlives { 0 } else { self.graph.bytes[tensor] }
    }

    /// Puts the layers of the stretch into an order of a lower peak, if it finds one. Returns whether no order has a
    /// lower peak than the result.
    fn reorder(&self, layers: &mut [usize]) -> bool {
        let own = self.own_peak();
        let least = self.layers.clone().map(|layer| self.min_bytes(layer)).max().unwrap_or(0);
        if own <= least {
            return true;
        }
        let count = self.layers.len();
        let kept = (WORK / (count * count)).min(MAX_SETS);
        let start = BestOrder { peak: least, live: self.live, from: 0, layer: 0 };
        let mut sets = vec![(Fired(vec![0; count.div_ceil(64)]), start)];
        let mut steps: Vec<Vec<BestOrder>> = Vec::new();
        let mut exact = true;
        for _ in 0..count {
            let mut next: BTreeMap<Fired, BestOrder> = BTreeMap::new();
            for (from, (fired, way)) in sets.iter().enumerate() {
                for way in self.moves(fired, way, from) {
                    if way.peak < own {
                        let known = next.entry(fired.with_layer(way.layer)).or_insert(way);
                        if way.peak < known.peak {
                            *known = way;
                        }
                    }
                }
            }
            sets = next.into_iter().collect();
            if sets.len() > kept {
                exact = false;
                sets.sort_by_key(|(_, way)| (way.peak, way.live));
                sets.truncate(kept);
            }
            steps.push(sets.iter().map(|(_, way)| *way).collect());
        }
        // Either one set is left, which has all layers, or no order beats the present one.
        let mut place = 0;
        if steps.last().is_none_or(Vec::is_empty) {
            return exact;
        }
        for (step, layer) in steps.iter().zip(layers.iter_mut()).rev() {
            *layer = self.layers.start + step[place].layer;
            place = step[place].from;
        }
        exact
    }

    /// The layers that can fire next after a set, and the best way to it. If one of them lowers what is live without a
    /// new peak, it is the only one, since it can do no harm.
    fn moves(&self, fired: &Fired, way: &BestOrder, from: usize) -> Vec<BestOrder> {
        let mut moves = Vec::new();
        for layer in (0..self.layers.len()).filter(|layer| !fired.has(*layer) && self.is_ready(fired, *layer))
        {
            let (during, after) = self.fire(fired, way.live, layer);
            let next = BestOrder { peak: way.peak.max(during), live: after, from, layer };
            if after <= way.live && during <= way.peak {
                return vec![next];
            }
            moves.push(next);
        }
        moves
    }

    fn is_ready(&self, fired: &Fired, layer: usize) -> bool {
        let start = self.layers.start;
        self.graph.operands[start + layer]
            .iter()
            .all(|operand| *operand < start || fired.has(operand - start))
    }

    /// Bytes that are live while a layer fires, and after that.
    fn fire(&self, fired: &Fired, live: u64, layer: usize) -> (u64, u64) {
        let (graph, start) = (self.graph, self.layers.start);
        let layer = start + layer;
        let own = if graph.readers[layer].is_empty() { 0 } else { graph.bytes[layer] };
        let is_done = |reader: usize| {
            reader == layer || reader < start || self.layers.contains(&reader) && fired.has(reader - start)
        };
        let dies = |operand: &&usize| graph.readers[**operand].iter().all(|reader| is_done(*reader));
        let freed: u64 = graph.operands[layer].iter().filter(dies).map(|operand| graph.bytes[*operand]).sum();
        (live + own, live + own - freed)
    }

    /// Bytes without which a layer cannot fire: its own tensor, and what it reads.
    fn min_bytes(&self, layer: usize) -> u64 {
        let own = if self.graph.readers[layer].is_empty() { 0 } else { self.graph.bytes[layer] };
        own + self.graph.operands[layer].iter().map(|operand| self.bytes(*operand)).sum::<u64>()
    }

    /// The peak of the stretch in its own order.
    fn own_peak(&self) -> u64 {
        let mut fired = Fired(vec![0; self.layers.len().div_ceil(64)]);
        let (mut live, mut peak) = (self.live, 0);
        for layer in 0..self.layers.len() {
            let (during, after) = self.fire(&fired, live, layer);
            (peak, live) = (peak.max(during), after);
            fired = fired.with_layer(layer);
        }
        peak
    }
}

#[cfg(test)]
mod tests {
    use csdfc_plan::operator::{Input, InputElement, Operator};
    use csdfc_plan::shape::Shape;
    use proptest::prelude::*;

    use super::*;
    use crate::{Layer, Operand};

    /// A network of layers that read these, each of so many bytes.
    fn network(reads: &[Vec<usize>]) -> Network {
        let mut network = Network::default();
        let shape = Shape::new([1, 1]);
        for (id, reads) in reads.iter().enumerate() {
            let inputs =
                reads.iter().map(|layer| Operand { layer: LayerId(*layer), shape: shape.clone() }).collect();
            network.add(Layer {
                name: id.to_string(),
                onnx_nodes: Vec::new(),
                operator: Operator::Input(Input { element: InputElement::F32, camera: None }),
                inputs,
                parameters: Vec::new(),
                output: id.to_string(),
                shape: shape.clone(),
                primitive: None,
                quantization: None,
            });
        }
        network
    }

    /// Bytes that are live at the peak of an order, counted anew at each moment.
    fn peak(reads: &[Vec<usize>], bytes: &[u64], order: &[usize]) -> u64 {
        let place = |layer: usize| order.iter().position(|other| *other == layer).unwrap();
        let until = |tensor: usize| (0..reads.len()).filter(|l| reads[*l].contains(&tensor)).map(place).max();
        let at = |moment: usize| {
            let live = (0..reads.len()).filter(|t| place(*t) <= moment && until(*t) >= Some(moment));
            live.map(|tensor| bytes[tensor]).sum()
        };
        (0..order.len()).map(at).max().unwrap_or(0)
    }

    /// The least peak of all orders, tried one by one.
    fn min_peak_by_enumeration(
        reads: &[Vec<usize>],
        bytes: &[u64],
        ranges: &[Range<usize>],
        order: &mut Vec<usize>,
    ) -> u64 {
        if order.len() == reads.len() {
            return peak(reads, bytes, order);
        }
        let at = order.len();
        let of = |layer: usize| ranges.iter().find(|range| range.contains(&layer));
        let next: Vec<usize> = (0..reads.len())
            .filter(|layer| !order.contains(layer) && reads[*layer].iter().all(|read| order.contains(read)))
            .filter(|layer| *layer == at || of(*layer).is_some_and(|range| range.contains(&at)))
            .collect();
        let mut best = u64::MAX;
        for layer in next {
            order.push(layer);
            best = best.min(min_peak_by_enumeration(reads, bytes, ranges, order));
            order.pop();
        }
        best
    }

    /// Which tensors each layer reads: up to three of the layers before it, from random bytes.
    fn graph(count: usize, random: &[u8]) -> Vec<Vec<usize>> {
        let mut random = random.iter().map(|byte| usize::from(*byte)).cycle();
        let mut pick = |most: usize| random.next().unwrap_or(0) % most;
        let mut reads = vec![Vec::new()];
        for layer in 1..count {
            let mut list: Vec<usize> = (0..pick(4)).map(|_| layer - 1 - pick(layer)).collect();
            list.sort_unstable();
            list.dedup();
            reads.push(list);
        }
        reads
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_order_is_better(
            random in prop::collection::vec(any::<u8>(), 40),
            bytes in prop::collection::vec(0u64..20, 8),
            cut in 0..8usize,
        ) {
            let reads = graph(8, &random);
            let ranges = [0..cut, cut..8];
            let order = least_peak(&network(&reads), &ranges, &bytes);
            let layers: Vec<usize> = order.layers.iter().map(|id| id.0).collect();
            let own: Vec<usize> = (0..8).collect();
            prop_assert!(order.exact);
            prop_assert_eq!(order.before, peak(&reads, &bytes, &own));
            prop_assert_eq!(order.peak, peak(&reads, &bytes, &layers));
            prop_assert_eq!(order.peak, min_peak_by_enumeration(&reads, &bytes, &ranges, &mut Vec::new()));
            for (at, layer) in layers.iter().enumerate() {
                prop_assert!((*layer < cut) == (at < cut));
                prop_assert!(reads[*layer].iter().all(|read| layers[..at].contains(read)));
            }
        }

    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

        /// If the search is a beam search, its order is still lawful and no worse than the network's own.
        #[test]
        fn beams_do_no_harm(random in prop::collection::vec(any::<u8>(), 200), count in 200..300usize) {
            let reads = graph(count, &random);
            let bytes: Vec<u64> = random.iter().cycle().take(count).map(|byte| u64::from(*byte)).collect();
            let order = least_peak(&network(&reads), std::slice::from_ref(&(0..count)), &bytes);
            prop_assert!(order.peak <= order.before);
            let mut place = vec![count; count];
            order.layers.iter().enumerate().for_each(|(at, id)| place[id.0] = at);
            for (layer, reads) in reads.iter().enumerate() {
                prop_assert!(place[layer] < count && reads.iter().all(|read| place[*read] < place[layer]));
            }
        }
    }

    #[test]
    fn branches_are_entered_where_least_is_live() {
        // A small tensor is read by a branch that grows and one that shrinks: the second goes first.
        let reads = [vec![], vec![0], vec![0], vec![2], vec![1, 3]];
        let order = least_peak(&network(&reads), std::slice::from_ref(&(0..5)), &[10, 40, 60, 1, 5]);
        assert_eq!(order.layers, [0, 2, 3, 1, 4].map(LayerId));
        assert_eq!((order.before, order.peak, order.exact), (110, 71, true));
    }

    #[test]
    fn layers_that_all_others_pass_part_the_order() {
        let reads = [vec![], vec![0], vec![0], vec![1, 2], vec![3], vec![3, 4], vec![3], vec![5, 6]];
        let network = network(&reads);
        let graph = LayerGraph::new(&network, &[1; 8]);
        assert_eq!(graph.stretches(0..8), [1..3, 4..7]);
        assert_eq!(graph.stretches(0..3), [Range { start: 1, end: 3 }]);
        assert_eq!(graph.stretches(1..7), [1..3, 4..7]);
        assert!(graph.stretches(3..3).is_empty());
    }
}
