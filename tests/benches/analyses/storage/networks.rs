//! Graphs of convolutional networks, a token a row: what the analyses are for.

use csdf::{Actor, ActorId, Channel, Graph, Rates, Reader};

/// The rows of a tensor, and who makes them.
#[derive(Debug, Clone)]
struct Tensor {
    actor: ActorId,
    rows: u64,
    readers: Vec<Reader>,
}

/// Layers that fire once a row of output; a tensor is one channel, whoever reads it.
struct Network {
    graph: Graph,
    tensors: Vec<Tensor>,
}

impl Network {
    fn new(rows: u64) -> Network {
        let mut network = Network { graph: Graph::new(), tensors: Vec::new() };
        network.actor(rows);
        network
    }

    fn actor(&mut self, rows: u64) -> usize {
        let name = format!("l{}", self.tensors.len());
        let actor = self.graph.add_actor(Actor::new(name, rows)).unwrap();
        self.tensors.push(Tensor { actor, rows, readers: Vec::new() });
        self.tensors.len() - 1
    }

    /// A layer with this many rows in its window and this stride, padded such that ⌈rows / stride⌉ come out.
    fn layer(&mut self, input: usize, window: u64, stride: u64) -> usize {
        let rows = self.tensors[input].rows;
        let output = self.actor(rows.div_ceil(stride));
        self.read(output, input, window, stride);
        output
    }

    /// An element-wise layer of several inputs.
    fn join(&mut self, inputs: &[usize]) -> usize {
        let output = self.actor(self.tensors[inputs[0]].rows);
        inputs.iter().for_each(|&input| self.read(output, input, 1, 1));
        output
    }

    /// Lets a layer read a tensor through windows with half of the padding above. A row that no window uses
    /// passes through the firing before it.
    fn read(&mut self, reader: usize, input: usize, window: u64, stride: u64) {
        let (height, firings) = (self.tensors[input].rows, self.tensors[reader].rows);
        let padding = (((firings - 1) * stride + window).saturating_sub(height)) / 2;
        let (mut acquired, mut released) = (0, 0);
        let (mut acquire, mut release) = (Vec::new(), Vec::new());
        for firing in 0..firings {
            let last = firing + 1 == firings;
            let first_kept = if last { height } else { ((firing + 1) * stride).saturating_sub(padding) };
            let needed = (firing * stride + window).saturating_sub(padding).max(first_kept).min(height);
            acquire.push(needed - acquired);
            acquired = needed;
            release.push(first_kept - released);
            released = first_kept;
        }
        let (acquire, release) = (Rates::from_sequence(&acquire), Rates::from_sequence(&release));
        let reader = Reader { actor: self.tensors[reader].actor, acquire, release };
        self.tensors[input].readers.push(reader);
    }

    fn finish(mut self) -> Graph {
        for (index, tensor) in self.tensors.into_iter().enumerate() {
            if !tensor.readers.is_empty() {
                let production = Rates::constant(tensor.rows, 1);
                let channel = Channel::new(format!("t{index}"), tensor.actor, production, tensor.readers);
                self.graph.add_channel(channel).unwrap();
            }
        }
        self.graph
    }
}

/// A chain of 3×3 layers from 224 rows down to 7: five of stride 2, spread evenly over `layers`, the others of
/// stride 1.
pub fn window_chain(layers: u64) -> Graph {
    let mut network = Network::new(224);
    let mut tensor = 0;
    for layer in 0..layers {
        let halves = (layer + 1) * 5 / layers > layer * 5 / layers;
        tensor = network.layer(tensor, 3, if halves { 2 } else { 1 });
    }
    network.finish()
}

/// An identity skip over two 3×3 layers of `rows` rows, with plain rates: one channel a reader, each of which
/// consumes what it newly reads.
pub fn skip(rows: u64) -> Graph {
    let mut graph = Graph::new();
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| graph.add_actor(Actor::new(name, rows)).unwrap());
    let row = Rates::constant(rows, 1);
    let mut window = vec![1; rows as usize];
    (window[0], window[rows as usize - 1]) = (2, 0);
    let window = Rates::from_sequence(&window);
    for (from, to, rates) in [(a, b, &window), (b, c, &window), (c, d, &row), (a, d, &row)] {
        let reader = Reader::consuming(to, rates.clone());
        let name = format!("{}{}", from.index(), to.index());
        graph.add_channel(Channel::new(name, from, row.clone(), vec![reader])).unwrap();
    }
    graph
}

/// As ResNet-50: 16 blocks of three layers in four stages, each block with a skip past it.
pub fn residual() -> Graph {
    let mut network = Network::new(224);
    let first = network.layer(0, 7, 2);
    let mut tensor = network.layer(first, 3, 2);
    for (stage, blocks) in [3, 4, 6, 3].into_iter().enumerate() {
        for block in 0..blocks {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let narrow = network.layer(tensor, 1, 1);
            let wide = network.layer(narrow, 3, stride);
            let out = network.layer(wide, 1, 1);
            let skip = if block == 0 { network.layer(tensor, 1, stride) } else { tensor };
            tensor = network.join(&[out, skip]);
        }
    }
    network.finish()
}

/// As DenseNet-121: four blocks of 6, 12, 24 and 16 pairs of layers, each of whose outputs is joined to all before
/// it.
pub fn dense() -> Graph {
    let mut network = Network::new(224);
    let first = network.layer(0, 7, 2);
    let mut tensor = network.layer(first, 3, 2);
    for (block, layers) in [6, 12, 24, 16].into_iter().enumerate() {
        if block > 0 {
            let narrow = network.layer(tensor, 1, 1);
            tensor = network.layer(narrow, 2, 2);
        }
        for _ in 0..layers {
            let narrow = network.layer(tensor, 1, 1);
            let grown = network.layer(narrow, 3, 1);
            tensor = network.join(&[tensor, grown]);
        }
    }
    network.finish()
}

/// 600 actors in groups of three around a cycle, which together fire 20.1 million times an iteration, at rates
/// that share few factors; groups are joined in a chain with skips.
pub fn large() -> Graph {
    let mut graph = Graph::new();
    let counts = [31_500, 33_000, 36_000];
    let ids: Vec<ActorId> = (0..600)
        .map(|index| {
            let times = Rates::constant(1, 1 + index % 7);
            graph.add_actor(Actor { execution_times: times, ..Actor::new(format!("a{index}"), 1) }).unwrap()
        })
        .collect();
    let mut connect = |from: usize, to: usize, iterations: u64| {
        let (produced, consumed) = (counts[to % 3] / 1500, counts[from % 3] / 1500);
        let reader = Reader::consuming(ids[to], Rates::constant(1, consumed));
        let name = format!("{from}>{to}");
        let channel = Channel::new(name, ids[from], Rates::constant(1, produced), vec![reader]);
        let initial_tokens = iterations * produced * counts[from % 3];
        graph.add_channel(Channel { initial_tokens, ..channel }).unwrap();
    };
    for actor in 1..600 {
        connect(actor - 1, actor, 0);
        if actor % 3 == 2 {
            connect(actor, actor - 2, 1);
        }
        if actor % 10 == 9 {
            connect(actor - 9, actor, 0);
        }
    }
    graph
}
