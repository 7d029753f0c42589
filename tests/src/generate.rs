//! Random small networks, cut and run in random ways.

mod operands;
mod views;

use std::collections::BTreeMap;

use csdfc_input::app::load::ModelSource;
use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, Cnn, Constraints, RowsChoice};
use csdfc_input::app::spec::{Prefer, Primitives, SearchSpec};
use csdfc_network::operators::{output_shape, parameter_dims};
use csdfc_network::pass::Fusion;
use csdfc_network::weights::{WeightSource, Weights};
use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand, component};
use csdfc_plan::operator::{
    BatchNorm, Binary, BinaryFunction, Concat, Conv, ConvTranspose, Coordinates, Crop, DepthToSpace,
    ElementWise, Filter, Function, Gemm, Input, InputElement, InstanceNorm, Operator, Pad, PadMode, Pool,
    PoolKind, Ratio, Reduce, ReduceFunction, Resize, ResizeMode, Rounding, Scale, Slice, Softmax,
    SpaceToDepth, Transpose,
};
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Numbers drawn from random bytes, so that proptest can shrink a network.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    /// A number from `low` to `high`.
    fn pick(&mut self, low: usize, high: usize) -> usize {
        low + usize::from(self.0.next().copied().unwrap_or(0)) % (high - low + 1)
    }

    fn flag(&mut self) -> bool {
        self.pick(0, 1) == 1
    }
}

/// Adds a layer, unless its operator cannot take these operands.
pub fn push(network: &mut Network, operator: Operator, inputs: Vec<Operand>) -> Option<Operand> {
    let shapes: Vec<Shape> = inputs.iter().map(|operand| operand.shape.clone()).collect();
    let shape = match &operator {
        Operator::Input(_) => return None,
        operator => output_shape(operator, &shapes).ok()?,
    };
    if shape.elements() == 0 || shape.elements() > 20_000 {
        return None;
    }
    Some(add(network, operator, inputs, shape))
}

/// Random multiples of 1/16 from -1 to below 1: sums of products of two such numbers are exact in 32 bits, in whatever
/// order. So sums whose terms cancel each other are exact, too.
pub fn sixteenths(seed: u64) -> impl Iterator<Item = f32> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    std::iter::repeat_with(move || random.random_range(-16i8..16).into()).map(|x: f32| x / 16.0)
}

/// Adds a layer of this output shape, its parameters drawn.
pub fn add(network: &mut Network, operator: Operator, inputs: Vec<Operand>, shape: Shape) -> Operand {
    let shapes: Vec<Shape> = inputs.iter().map(|operand| operand.shape.clone()).collect();
    // The values differ from tensor to tensor, so that a test notices if tensors are exchanged.
    let mut values = sixteenths(network.layers.len() as u64);
    let weights = |dims: Vec<usize>| {
        let values = values.by_ref().take(dims.iter().product()).collect();
        Weights { dims, source: WeightSource::Values(values), scale: None }
    };
    let name = format!("{}{}", operator.kind(), network.layers.len());
    let layer = network.add(Layer {
        output: format!("t{}", network.layers.len()),
        name,
        onnx_nodes: Vec::new(),
        parameters: parameter_dims(&operator, &shapes).into_iter().map(weights).collect(),
        operator,
        inputs,
        shape: shape.clone(),
        primitive: None,
        quantization: None,
    });
    Operand { layer, shape }
}

/// Adds a network input.
pub fn input(network: &mut Network, shape: Shape) -> Operand {
    add(network, Operator::Input(Input { element: InputElement::F32, camera: None }), Vec::new(), shape)
}

/// An existing tensor; the latest ones are more likely.
fn operand(network: &Network, random: &mut Choices<'_>) -> Operand {
    let count = network.layers.len();
    let back = if random.flag() { random.pick(1, 2.min(count)) } else { random.pick(1, count) };
    let layer = LayerId(count - back);
    Operand { layer, shape: network.layer(layer).shape.clone() }
}

/// Another tensor that `suits`, or the same once more.
fn partner(
    network: &Network,
    x: &Operand,
    random: &mut Choices<'_>,
    suits: fn(&Shape, &Shape) -> bool,
) -> Operand {
    let all: Vec<LayerId> = network.ids().filter(|id| suits(&network.layer(*id).shape, &x.shape)).collect();
    match all.len() {
        0 => x.clone(),
        n => {
            let layer = all[random.pick(0, n - 1)];
            Operand { layer, shape: network.layer(layer).shape.clone() }
        }
    }
}

/// Whether two feature maps can be put together along their channels.
fn columns(b: &Shape, a: &Shape) -> bool {
    a.rank() == 4 && b.rank() == 4 && a.dims[2..] == b.dims[2..]
}

/// Adds one or two layers of a random kind, or none if they do not fit.
fn grow(network: &mut Network, random: &mut Choices<'_>) {
    let mut x = operand(network, random);
    if random.pick(0, 5) == 0 {
        x.shape = views::view(&x.shape, random);
    }
    let channels = x.shape.channels();
    let mut pads = |most: usize| [0; 4].map(|_: usize| random.pick(0, most));
    let (pads_0, pads_1) = (pads(1), pads(3));
    let pair = |random: &mut Choices<'_>, low, high| [random.pick(low, high), random.pick(low, high)];
    let (kernel, stride, dilation) = (pair(random, 1, 4), pair(random, 1, 3), pair(random, 1, 2));
    let image = |b: &Shape, a: &Shape| {
        a.rank() == 4 && b.rank() == 4 && a.dims[1] == b.dims[1] && a.dims[3] == b.dims[3]
    };
    let (operator, inputs) = match random.pick(0, 18) {
        0..=2 => {
            let groups = if random.flag() { channels } else { 1 };
            let filters = groups * random.pick(1, 2);
            let pads = if random.flag() { pads_1 } else { pads_0 };
            let conv = Conv {
                filters,
                kernel,
                stride,
                dilation,
                pads,
                groups,
                bias: true,
                pre: None,
                residual: false,
                activation: None,
            };
            (Operator::Conv(conv), vec![x])
        }
        3 => {
            let kind =
                if random.flag() { PoolKind::Max } else { PoolKind::Average { count_include_pad: true } };
            let ceil = random.flag();
            (Operator::Pool(Pool { kind, kernel, stride, dilation, pads: pads_0, ceil }), vec![x])
        }
        4 => {
            let mut other = partner(network, &x, random, |a, b| a == b);
            if let ([1, dims @ ..], 0) = (x.shape.dims.as_slice(), random.pick(0, 3)) {
                // An operand of another rank, whose rows are in another dimension.
                other.shape = Shape::new(dims);
            }
            let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
            (Operator::Binary(add), vec![x, other])
        }
        5 => {
            let other = partner(network, &x, random, columns);
            (Operator::Concat(Concat { axis: 1 }), vec![x, other])
        }
        6 => {
            let other = partner(network, &x, random, image);
            (Operator::Concat(Concat { axis: 2 }), vec![other, x])
        }
        7 => {
            let mut slice = Slice {
                starts: vec![0; x.shape.rank()],
                steps: vec![1; x.shape.rank()],
                lengths: x.shape.dims.clone(),
            };
            if let Some(axis) = x.shape.row_axis() {
                let height = x.shape.dims[axis];
                let step = random.pick(1, 3);
                let length = random.pick(1, height.div_ceil(step));
                let room = height - (length - 1) * step - 1;
                let first = random.pick(0, room);
                slice.lengths[axis] = length;
                (slice.starts[axis], slice.steps[axis]) = match random.flag() {
                    true => (first, step as i64),
                    false => (first + (length - 1) * step, -(step as i64)),
                };
            }
            (Operator::Slice(slice), vec![x])
        }
        8 => {
            let mode = match random.pick(0, 2) {
                0 => PadMode::Constant { value: Some(0.0) },
                1 => PadMode::Edge,
                _ => PadMode::Reflect,
            };
            let mut pad = Pad { mode, before: vec![0; x.shape.rank()], after: vec![0; x.shape.rank()] };
            if let Some(axis) = x.shape.row_axis() {
                pad.before[axis] = random.pick(0, 3) as i64 - 1;
                pad.after[axis] = random.pick(0, 3) as i64 - 1;
            }
            (Operator::Pad(pad), vec![x])
        }
        9 => {
            let (rows, columns) = match x.shape.dims.as_slice() {
                [_, _, rows, columns] => (*rows, *columns),
                _ => return,
            };
            let filter = |cubic, antialias, exclude_outside| {
                ResizeMode::Filter(Filter { cubic, antialias, exclude_outside })
            };
            let mode = match random.pick(0, 4) {
                0 => ResizeMode::Linear,
                1 => ResizeMode::Nearest { rounding: Rounding::RoundPreferFloor },
                2 => filter(None, true, random.flag()),
                3 => filter(Some(-0.5), true, random.flag()),
                _ => filter(Some(-0.75), false, random.flag()),
            };
            let crop = Crop { from: [-0.25, 0.0], to: [0.75, 1.0], outside: 0.5 };
            let coordinates = match random.pick(0, 3) {
                3 => Coordinates::TfCropAndResize(crop),
                0 => Coordinates::HalfPixel,
                1 => Coordinates::AlignCorners,
                _ => Coordinates::Asymmetric,
            };
            let size = [random.pick(1, 2 * rows), columns];
            let ratio = Ratio { over: size[0] as u32, under: rows as u32 };
            let scales = [Scale::Ratio(ratio), Scale::Float(1.0)];
            (Operator::Resize(Resize { mode, coordinates, scales, size }), vec![x])
        }
        10 => {
            // A gate: the mean of each channel times the tensor.
            let mean = Reduce { function: ReduceFunction::Mean, axes: vec![2, 3], keep_dims: true };
            if x.shape.rank() != 4 {
                return;
            }
            let Some(gate) = push(network, Operator::Reduce(mean), vec![x.clone()]) else { return };
            let mul = Binary { function: BinaryFunction::Mul, constant: None, activation: None };
            (Operator::Binary(mul), vec![x, gate])
        }
        11 => {
            let conv = ConvTranspose {
                filters: random.pick(1, 3),
                kernel,
                stride,
                dilation,
                pads: pads_0,
                output_padding: [0; 2],
                groups: 1,
                bias: false,
                activation: None,
            };
            (Operator::ConvTranspose(conv), vec![x])
        }
        12 if random.flag() => {
            (Operator::DepthToSpace(DepthToSpace { block: 2, depth_first: true }), vec![x])
        }
        12 => (Operator::SpaceToDepth(SpaceToDepth { block: 2 }), vec![x]),
        13 => {
            let shape = match (x.shape.rank(), random.flag()) {
                (2 | 3, true) => x.shape.clone(),
                _ => Shape::new([1, x.shape.elements()]),
            };
            let (inner, units) = (*shape.dims.last().unwrap_or(&1), random.pick(1, 9));
            let gemm = Gemm { inner, units, transposed: true, bias: true, activation: None };
            (Operator::Gemm(gemm), vec![Operand { layer: x.layer, shape }])
        }
        14 => match (random.pick(0, 2), x.shape.rank()) {
            (0, 4) => (Operator::Transpose(Transpose::new([0, 1, 3, 2])), vec![x]),
            (1, rank) if rank > 0 => {
                let axes = vec![random.pick(0, rank - 1)];
                (Operator::Softmax(Softmax { axes, log: false }), vec![x])
            }
            (_, 4) => {
                let reduce =
                    Reduce { function: ReduceFunction::Max, axes: vec![random.pick(1, 3)], keep_dims: true };
                (Operator::Reduce(reduce), vec![x])
            }
            _ => return,
        },
        15 => {
            // A convolution after a norm, and perhaps a rectifier; another layer may read either.
            let activation = random.flag().then_some(Function::Relu);
            let norm = Operator::BatchNorm(BatchNorm { channels, activation });
            let Some(x) = push(network, norm, vec![x]) else { return };
            let groups = if random.flag() { channels } else { 1 };
            let (filters, bias) = (groups * random.pick(1, 3), random.flag());
            let conv = Conv {
                filters,
                kernel,
                stride,
                dilation,
                pads: pads_1,
                groups,
                bias,
                pre: None,
                residual: false,
                activation: None,
            };
            (Operator::Conv(conv), vec![x])
        }
        16 => {
            // By another existing tensor, seen as a matrix.
            let (mut other, inner) = (operand(network, random), *x.shape.dims.last().unwrap_or(&1));
            let columns = other.shape.elements() / inner;
            let is_outer = random.flag();
            other.shape = Shape::new(if is_outer { vec![1, inner, columns] } else { vec![inner, columns] });
            if inner * columns != network.layer(other.layer).shape.elements() {
                return;
            }
            (Operator::MatMul, vec![x, other])
        }
        17 if x.shape.rank() > 2 => {
            (Operator::InstanceNorm(InstanceNorm { channels, epsilon: 1e-2 }), vec![x])
        }
        _ => (Operator::ElementWise(ElementWise { function: Function::Relu }), vec![x]),
    };
    push(network, operator, inputs);
}

fn network(random: &mut Choices<'_>) -> Network {
    let mut network = Network::default();
    for _ in 0..random.pick(1, 2) {
        let (channels, rows, columns) = (random.pick(1, 4), random.pick(1, 14), random.pick(1, 6));
        let shape = match random.pick(0, 15) {
            0 => Shape::new([1, rows, columns * channels]),
            1 => Shape::new([rows, columns * channels]),
            _ => Shape::image(channels, rows, columns),
        };
        input(&mut network, shape);
    }
    let inputs = network.layers.len();
    for _ in 0..random.pick(1, 7) {
        match random.pick(0, 2) {
            2 => drop(operands::grow(&mut network, random)),
            _ => grow(&mut network, random),
        }
    }
    // Passes drop an input that nobody reads.
    for id in 0..inputs {
        if network.readers()[id].is_empty() {
            let x = Operand { layer: LayerId(id), shape: network.layers[id].shape.clone() };
            push(&mut network, Operator::ElementWise(ElementWise { function: Function::Relu }), vec![x]);
        }
    }
    // Tensors that nobody reads are outputs, and so are some of the others.
    let readers = network.readers();
    for id in network.ids() {
        let layer = network.layer(id);
        if !layer.is_input() && (readers[id.0].is_empty() || random.pick(0, 7) == 0) {
            let operand = Operand { layer: id, shape: layer.shape.clone() };
            network.outputs.push(NetworkOutput::new(format!("out{}", id.0), operand));
        }
    }
    network
}

/// A CNN cut at random places, and which of its neighbouring partitions run at the same time.
fn cnn(name: &str, random: &mut Choices<'_>) -> (Cnn, Vec<Vec<String>>) {
    // All passes run more often than only some.
    let (network, less) = (network(random), random.pick(0, 4).saturating_sub(2));
    let network = csdfc_network::pass::normalise(network, Fusion::ALL[less]);
    let mut partitions: Vec<Partition> = Vec::new();
    let mut together: Vec<Vec<String>> = Vec::new();
    for id in network.ids() {
        if partitions.is_empty() || (partitions.len() < 3 && random.pick(0, 7) == 0) {
            let partition = format!("{name}.{}", partitions.len());
            match together.last_mut() {
                Some(element) if random.flag() => element.push(partition.clone()),
                _ => together.push(vec![partition.clone()]),
            }
            let processor = "cpu".into();
            partitions.push(Partition { name: partition, layers: Vec::new(), processor, schedule: None });
        }
        if let Some(partition) = partitions.last_mut() {
            partition.layers.push(id);
        }
    }
    (of_network(name, network, partitions), together)
}

/// The CNN of a network that comes from no file.
pub fn of_network(name: &str, network: Network, partitions: Vec<Partition>) -> Cnn {
    let model = ModelSource { name: name.into(), ..ModelSource::default() };
    Cnn { name: name.into(), network, model, partitions }
}

/// The application that these bytes describe: one or two CNNs in up to three partitions each, some of which run at the
/// same time, and any number of rows per firing.
pub fn application(bytes: &[u8], storage: StorageModel) -> Application {
    let mut random = Choices(bytes.iter());
    let (mut cnns, mut parallel) = (Vec::new(), Vec::new());
    let count = random.pick(1, 2);
    for name in ["a", "b"].iter().take(count) {
        let (cnn, together) = cnn(name, &mut random);
        cnns.push(cnn);
        parallel.extend(together);
    }
    if count == 2 && random.flag() {
        let last = parallel.pop().unwrap_or_default();
        parallel[0].extend(last);
        parallel.retain(|element| !element.is_empty());
    }
    let mut rows = BTreeMap::new();
    for (c, cnn) in cnns.iter().enumerate() {
        for id in cnn.network.ids() {
            let height = cnn.network.layer(id).rows();
            let of_layer = match random.pick(0, 3) {
                0 => height,
                1 => random.pick(1, height),
                _ => 1,
            };
            rows.insert((c, id), of_layer as u64);
        }
    }
    of_cnns(cnns, parallel, storage, RowsChoice::Layers(rows))
}

/// The same, but for the partitions: layers are dealt out at random to up to three of each CNN, all of which run at the same
/// time. Most of them wait for each other within a frame.
pub fn dealt(bytes: &[u8], storage: StorageModel) -> Application {
    let mut application = application(bytes, storage);
    let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
    let mut random = Choices(reversed.iter());
    for cnn in &mut application.cnns {
        let (count, mut now) = (random.pick(2, 3), 0);
        let mut place = Vec::new();
        for _ in cnn.network.ids() {
            if random.pick(0, 2) == 0 {
                now = random.pick(0, count - 1);
            }
            place.push(now);
        }
        let mut used = place.clone();
        used.sort_unstable();
        used.dedup();
        place.iter_mut().for_each(|p| *p = used.partition_point(|used| used < p));
        let components = component::components(&cnn.network, &place, used.len());
        let (network, place) = component::gather(std::mem::take(&mut cnn.network), &place, &components);
        let partition = |p: usize| Partition {
            name: format!("{}.{p}", cnn.name),
            layers: network.ids().filter(|id| place[id.0] == p).collect(),
            processor: "cpu".into(),
            schedule: None,
        };
        cnn.partitions = (0..used.len()).map(partition).collect();
        cnn.partitions.sort_by_key(|partition| partition.layers.last().copied());
        cnn.network = network;
    }
    let names = |cnn: &Cnn| cnn.partitions.iter().map(|partition| partition.name.clone()).collect();
    application.parallel = application.cnns.iter().map(names).collect();
    if random.flag() {
        application.parallel = vec![application.parallel.concat()];
    }
    if let RowsChoice::Layers(rows) = &mut application.rows {
        for ((cnn, id), rows) in rows {
            *rows = (*rows).min(application.cnns[*cnn].network.layer(*id).rows() as u64);
        }
    }
    application
}

/// The application of a network in one partition.
pub fn of_one(network: Network, storage: StorageModel, rows: RowsChoice) -> Application {
    let layers = network.ids().collect();
    let whole = Partition { name: "p".into(), layers, processor: "cpu".into(), schedule: None };
    of_cnns(vec![of_network("cnn", network, vec![whole])], vec![vec!["p".into()]], storage, rows)
}

/// The application of these CNNs.
pub fn of_cnns(
    cnns: Vec<Cnn>,
    parallel: Vec<Vec<String>>,
    storage: StorageModel,
    rows: RowsChoice,
) -> Application {
    Application {
        name: "random".into(),
        cnns,
        parallel,
        device: "generic".into(),
        constraints: Constraints::default(),
        search: SearchSpec::default(),
        storage,
        rows,
        fusion: Fusion::default(),
        threads: 1,
        primitives: Primitives::default(),
        max_primitive_error: 1e-4,
        streamed: None,
        may_be_streamed: None,
        prefer: Prefer::default(),
    }
}
