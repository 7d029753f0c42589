//! Streams, hop by hop: the rows that come out are, to the byte, those of one long frame over the same signal, also if
//! other CNNs run between the hops.

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_input::builtin;
use csdfc_network::operators::output_shape;
use csdfc_network::pass::{self, Fusion};
use csdfc_network::stream::{StreamError, Streams, of_hops};
use csdfc_network::{LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::operator::{
    Binary, BinaryFunction, Cell, Concat, Conv, DepthToSpace, ElementWise, Function, Gemm, Operator, Pad,
    PadMode, Pool, PoolKind, Recurrent, Reduce, ReduceFunction, Slice, Softmax, SpaceToDepth,
};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{generate, plan, random, until_all_are_tested};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::floats;

/// Networks drawn.
const NETWORKS: u64 = 300;

/// Rows of the signal.
const ROWS: usize = 96;

/// A convolution of so many filters, with windows of so many rows.
fn conv(
    filters: usize,
    kernel: [usize; 2],
    stride: usize,
    dilation: usize,
    pads: [usize; 4],
    groups: usize,
) -> Operator {
    Operator::Conv(Conv {
        filters,
        kernel,
        stride: [stride, 1],
        dilation: [dilation, 1],
        pads,
        groups,
        bias: true,
        pre: None,
        residual: false,
        activation: Some(Function::Relu),
    })
}

fn pool(kind: PoolKind, kernel: [usize; 2], stride: [usize; 2], pads: [usize; 4]) -> Operator {
    Operator::Pool(Pool { kind, kernel, stride, dilation: [1, 1], pads, ceil: false })
}

/// A window of rows: its height, and how many rows of padding there are above and below. It keeps the number of rows
/// unless it has no padding.
fn window(random: &mut ChaCha8Rng) -> (usize, usize, [usize; 2]) {
    let (kernel, dilation) = (random.random_range(1..=4), random.random_range(1..=2));
    let all = (kernel - 1) * dilation;
    let pads = match random.random_range(0..4) {
        0 => [0, 0],
        1 => [all, 0],
        2 => [0, all],
        _ => [all / 2, all - all / 2],
    };
    (kernel, dilation, pads)
}

/// Adds a layer of a random kind; nothing if it does not fit.
fn grow(network: &mut Network, random: &mut ChaCha8Rng) {
    let back = random.random_range(1..=network.layers.len().min(3));
    let layer = LayerId(network.layers.len() - back);
    let x = Operand { layer, shape: network.layer(layer).shape.clone() };
    let (channels, columns) = (x.shape.dims[1], x.shape.dims[3]);
    let (kernel, dilation, [top, bottom]) = window(random);
    let stride = if random.random_range(0..4) == 0 { 2 } else { 1 };
    let across = random.random_range(1..=columns.min(3));
    let pads = [top, across / 2, bottom, (across - 1) / 2];
    let kernels = [kernel, across];
    let alike: Vec<LayerId> = network.ids().filter(|id| network.layer(*id).shape == x.shape).collect();
    let other = alike[random.random_range(0..alike.len())];
    let other = Operand { layer: other, shape: x.shape.clone() };
    let (operator, inputs) = match random.random_range(0..15) {
        0..=2 => (conv(random.random_range(1..=5), kernels, stride, dilation, pads, 1), vec![x]),
        3 => (conv(channels, kernels, stride, dilation, pads, channels), vec![x]),
        4 => {
            let kind = match random.random_range(0..3) {
                0 => PoolKind::Max,
                1 => PoolKind::Average { count_include_pad: true },
                _ => PoolKind::Average { count_include_pad: false },
            };
            // The padding of a pool is smaller than its window.
            let pads = [top.min(kernel - 1), pads[1].min(across - 1), bottom.min(kernel - 1), pads[3]];
            (pool(kind, kernels, [stride, 1], pads), vec![x])
        }
        5 | 6 => {
            let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
            (Operator::Binary(add), vec![x, other])
        }
        7 => (Operator::Concat(Concat { axis: 1 }), vec![x, other]),
        8 => (
            Operator::Softmax(Softmax { axes: vec![random.random_range(0..2) * 2 + 1], log: false }),
            vec![x],
        ),
        9 => {
            let gemm = Gemm { inner: columns, units: 3, transposed: true, bias: true, activation: None };
            (Operator::Gemm(gemm), vec![x])
        }
        10 => {
            let lengths = vec![1, channels.div_ceil(2), x.shape.dims[2], columns];
            (Operator::Slice(Slice { starts: vec![0; 4], steps: vec![1; 4], lengths }), vec![x])
        }
        11 => {
            let modes = [PadMode::Edge, PadMode::Constant { value: Some(0.5) }];
            let mode = modes[random.random_range(0..2)].clone();
            let pad = Pad { mode, before: vec![0, 0, 0, 1], after: vec![0; 4] };
            (Operator::Pad(pad), vec![x])
        }
        12 | 13 => {
            let cells = [
                Cell::Lstm { input_forget: false, peepholes: true, memory: true },
                Cell::Gru { linear_before_reset: true },
                Cell::Rnn,
            ];
            let Some(cell) = cells.into_iter().find(|cell| channels % cell.gates() == 0) else { return };
            let activations =
                [Function::Sigmoid, Function::Tanh, Function::Tanh][..cell.functions()].to_vec();
            let size = channels / cell.gates();
            let recurrent = Recurrent { cell, size, activations, clip: None, initial: false };
            (Operator::Recurrent(recurrent), vec![x])
        }
        _ if random.random() => {
            (Operator::DepthToSpace(DepthToSpace { block: 2, depth_first: true }), vec![x])
        }
        _ => (Operator::SpaceToDepth(SpaceToDepth { block: 2 }), vec![x]),
    };
    generate::push(network, operator, inputs);
}

/// A random network of images, whose outputs are the tensors that nobody reads, and perhaps a mean of all time.
pub fn network(random: &mut ChaCha8Rng) -> Network {
    let mut network = Network::default();
    let columns = if random.random() { 1 } else { random.random_range(2..=6) };
    generate::input(&mut network, Shape::image(random.random_range(1..=4), 32, columns));
    for _ in 0..random.random_range(1..=6) {
        grow(&mut network, random);
    }
    if random.random_range(0..4) == 0 {
        let last = LayerId(network.layers.len() - 1);
        let x = Operand { layer: last, shape: network.layer(last).shape.clone() };
        let axes = if random.random() { vec![2, 3] } else { vec![2] };
        let function = if random.random() { ReduceFunction::Mean } else { ReduceFunction::Max };
        let reduce = Reduce { function, axes, keep_dims: true };
        generate::push(&mut network, Operator::Reduce(reduce), vec![x]);
    }
    let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
    if network.layers.len() == 1 {
        let x = Operand { layer: LayerId(0), shape: network.layers[0].shape.clone() };
        generate::push(&mut network, relu, vec![x]);
    }
    let readers = network.readers();
    for id in network.ids().filter(|id| readers[id.0].is_empty()) {
        let operand = Operand { layer: id, shape: network.layer(id).shape.clone() };
        network.outputs.push(NetworkOutput::new(format!("out{}", id.0), operand));
    }
    network
}

/// The layers of a stream on one long frame.
fn long(hop: &Network) -> Option<Network> {
    let mut long = hop.clone();
    long.stream = None;
    for l in 0..long.layers.len() {
        let shapes: Vec<Shape> =
            long.layers[l].inputs.iter().map(|operand| long.layer(operand.layer).shape.clone()).collect();
        let layer = &mut long.layers[l];
        layer.inputs.iter_mut().zip(&shapes).for_each(|(operand, shape)| operand.shape = shape.clone());
        if let Operator::Slice(slice) = &mut layer.operator {
            slice.lengths[2] = shapes[0].dims[2];
        }
        match layer.is_input() {
            true => layer.shape.dims[2] = ROWS,
            false => layer.shape = output_shape(&layer.operator, &shapes).ok()?,
        }
    }
    for output in &mut long.outputs {
        output.operand.shape = long.layers[output.operand.layer.0].shape.clone();
    }
    Some(long)
}

/// The bits of each row of an image.
fn rows(value: &Value) -> Vec<Vec<u32>> {
    let [_, channels, rows, columns] = value.dims[..] else { unreachable!("an image") };
    let values = floats(value);
    let row = |y: usize| {
        let of_channel = |c: usize| values[(c * rows + y) * columns..][..columns].iter().map(|x| x.to_bits());
        (0..channels).flat_map(of_channel).collect()
    };
    (0..rows).map(row).collect()
}

/// Rows of a signal, as an image.
fn signal(shape: &Shape, from: usize) -> Value {
    let [_, channels, rows, columns] = shape.dims[..] else { unreachable!("an image") };
    let all: Vec<f32> = generate::sixteenths(5).take(channels * ROWS * columns).collect();
    let part = |c: usize| all[(c * ROWS + from) * columns..][..rows * columns].iter().copied();
    Value { dims: shape.dims.clone(), data: Data::F32((0..channels).flat_map(part).collect()) }
}

/// The rows of each output of a stream over the signal.
fn stream(hop: &Network, rows_choice: RowsChoice) -> Vec<Vec<Vec<u32>>> {
    let application = generate::of_one(hop.clone(), StorageModel::Tensors, rows_choice);
    let plan = plan(&application);
    let parameters = |_: usize, layer: usize, parameter: usize| hop.parameter(layer, parameter);
    let mut runner = Runner::poisoned(&plan, &parameters).unwrap();
    let input = &hop.layers[0].shape;
    let mut outputs = vec![Vec::new(); hop.outputs.len()];
    for from in (0..ROWS / input.dims[2]).map(|count| count * input.dims[2]) {
        let values = runner.infer(0, &[signal(input, from)]).unwrap();
        outputs.iter_mut().zip(&values).for_each(|(all, value)| all.extend(rows(value)));
    }
    outputs
}

#[test]
fn hops_make_the_rows_of_a_long_frame() {
    let kinds = [
        ("lag behind", 0),
        ("keep rows", 0),
        ("keep a state", 0),
        ("make several rows a hop", 0),
        ("end in a window", 0),
    ];
    until_all_are_tested(NETWORKS, 20, kinds.into(), |number, kinds| {
        let mut random = random(number);
        let network = network(&mut random);
        let smallest = match of_hops(network.clone(), None, Some(32)) {
            Ok(hop) => hop.layers[0].rows(),
            // A frame of 32 rows may be too short, and a window may end within every hop.
            Err(StreamError::ShortWindow { .. } | StreamError::Window { .. }) => return,
            Err(error) => panic!("network {number}: {error}"),
        };
        for times in [1, 3] {
            let Ok(hop) = of_hops(network.clone(), Some((times + number as usize % 3) * smallest), Some(32))
            else {
                continue;
            };
            let Some(long) = long(&hop) else { continue };
            let whole = generate::of_one(long.clone(), StorageModel::Tensors, RowsChoice::None);
            let parameters = |_: usize, layer: usize, parameter: usize| long.parameter(layer, parameter);
            let plan = plan(&whole);
            let mut runner = Runner::poisoned(&plan, &parameters).unwrap();
            let expected = runner.infer(0, &[signal(&long.layers[0].shape, 0)]).unwrap();
            let searched = (number % 4 == 0).then_some(RowsChoice::Default);
            for choice in [RowsChoice::None, RowsChoice::All].into_iter().chain(searched) {
                let made = stream(&hop, choice.clone());
                for ((expected, made), output) in expected.iter().zip(&made).zip(&hop.outputs) {
                    let expected = rows(expected);
                    let which = format!(
                        "network {number}, hops of {times} x {smallest}, {choice:?}, {}",
                        output.name
                    );
                    assert!(made.len() <= expected.len(), "{which}: {} of {}", made.len(), expected.len());
                    assert_eq!(made[..], expected[..made.len()], "{which}");
                }
            }
            let streams = Streams::new(&hop).unwrap();
            let mut count =
                |kind: &'static str, is_so: bool| *kinds.entry(kind).or_default() += u64::from(is_so);
            count("lag behind", streams.rows.iter().any(|rows| rows.delay > 0));
            count("keep rows", streams.rows.iter().any(|rows| rows.history > 0));
            count("keep a state", hop.layers.iter().any(|layer| layer.operator.has_state()));
            count("make several rows a hop", hop.layers.iter().any(|layer| layer.rows() > 1));
            count("end in a window", hop.stream.unwrap().window.is_some());
        }
    });
}

/// An application of two or three drawn CNNs that take turns. The first is a stream, and others may be. `None` if one
/// cannot be.
pub fn in_turn(random: &mut ChaCha8Rng, rows: RowsChoice) -> Option<Application> {
    let mut cnns = Vec::new();
    for name in ["a", "b", "c"].into_iter().take(random.random_range(2..=3)) {
        let mut network = network(random);
        if cnns.is_empty() || random.random() {
            network = of_hops(network, None, Some(32)).ok()?;
        }
        let layers = network.ids().collect();
        let whole = Partition { name: name.into(), layers, processor: "cpu".into(), schedule: None };
        cnns.push(generate::of_network(name, network, vec![whole]));
    }
    let alone = cnns.iter().map(|cnn| vec![cnn.name.clone()]).collect();
    Some(generate::of_cnns(cnns, alone, StorageModel::Tensors, rows))
}

/// Bytes of a plan's rings that stay from hop to hop.
fn kept(plan: &Plan) -> u64 {
    let persisting = plan.tensors.iter().filter(|tensor| tensor.history() > 0);
    persisting.filter_map(|tensor| tensor.ring).map(|ring| ring.bytes).sum()
}

#[test]
fn what_takes_turns_with_a_stream_is_as_if_alone() {
    let kinds = [("keep rows", 0), ("several streams", 0), ("begin anew", 0), ("as small as can be", 0)];
    until_all_are_tested(NETWORKS, 20, kinds.into(), |number, kinds| {
        let mut random = random(number);
        let choice = [RowsChoice::None, RowsChoice::All, RowsChoice::Default][number as usize % 3].clone();
        let Some(application) = in_turn(&mut random, choice.clone()) else { return };
        let together = plan(&application);
        let networks: Vec<&Network> = application.cnns.iter().map(|cnn| &cnn.network).collect();
        let parameters = |c: usize, layer: usize, parameter: usize| networks[c].parameter(layer, parameter);
        let mut runner = Runner::poisoned(&together, &parameters).unwrap();
        let of_one = |network: &&Network| {
            plan(&generate::of_one((*network).clone(), StorageModel::Tensors, choice.clone()))
        };
        let plans: Vec<Plan> = networks.iter().map(of_one).collect();
        let mut alone = Vec::new();
        for (plan, network) in plans.iter().zip(&networks) {
            let own = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
            alone.push(Runner::poisoned(plan, &own).unwrap());
        }
        let mut anew = 0;
        for turn in 0..40 {
            let c = random.random_range(0..networks.len());
            if random.random_range(0..10) == 0 {
                runner.reset(c);
                alone[c].reset(0);
                anew += 1;
            }
            let input = [signal(&networks[c].layers[0].shape, turn)];
            let bits = |outputs: Vec<Value>| -> Vec<Vec<u32>> {
                outputs.iter().map(|value| floats(value).iter().map(|x| x.to_bits()).collect()).collect()
            };
            let made = bits(runner.infer(c, &input).unwrap());
            assert_eq!(
                made,
                bits(alone[c].infer(0, &input).unwrap()),
                "network {number}, turn {turn} of {c}"
            );
        }
        // All but the rows that stay is shared.
        let state = kept(&together);
        let sum: u64 = plans.iter().map(|plan| plan.memory.arena).sum();
        let rest = plans.iter().map(|plan| plan.memory.arena - kept(plan)).max().unwrap_or(0);
        let arena = together.memory.arena;
        assert!(arena <= sum.max(together.memory.bound), "network {number}: {arena} of {sum}");
        let mut count = |kind: &'static str, is_so: bool| *kinds.entry(kind).or_default() += u64::from(is_so);
        count("keep rows", state > 0);
        count("several streams", networks.iter().filter(|network| network.stream.is_some()).count() > 1);
        count("begin anew", anew > 0);
        count("as small as can be", state > 0 && arena == state + rest);
    });
}

/// MLPerf Tiny's wake word: a hop multiplies 17 times less than a window, and its result is that of the window that ends
/// there.
#[test]
fn a_hop_of_the_wake_word_is_the_window_that_ends_there() {
    let window = pass::normalise(builtin::network("wake_word").unwrap(), Fusion::Full);
    let hop = of_hops(window.clone(), None, None).unwrap();
    assert_eq!((hop.layers[0].rows(), hop.macs(), window.macs()), (1, 46_040, 826_368));
    let application = generate::of_one(hop.clone(), StorageModel::Tensors, RowsChoice::Default);
    let hop_plan = plan(&application);
    // 2, 4, 9 and 14 rows of the windows stay from hop to hop, each in a ring with room for the next.
    let kept: Vec<u64> =
        hop_plan.tensors.iter().map(|tensor| tensor.history()).filter(|rows| *rows > 0).collect();
    assert_eq!(kept, [2, 4, 9, 14]);
    let parameters = |_: usize, layer: usize, parameter: usize| hop.parameter(layer, parameter);
    let mut runner = Runner::poisoned(&hop_plan, &parameters).unwrap();
    let application = generate::of_one(window.clone(), StorageModel::Tensors, RowsChoice::None);
    let window_plan = plan(&application);
    let parameters = |_: usize, layer: usize, parameter: usize| window.parameter(layer, parameter);
    let mut whole = Runner::poisoned(&window_plan, &parameters).unwrap();
    for row in 0..ROWS {
        let made = runner.infer(0, &[signal(&hop.layers[0].shape, row)]).unwrap();
        match row.checked_sub(29) {
            // The first window is not yet full.
            None => assert!(made[0].data.is_empty(), "row {row}"),
            Some(first) => {
                let expected = whole.infer(0, &[signal(&window.layers[0].shape, first)]).unwrap();
                let bits = |value: &Value| floats(value).iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
                assert_eq!(bits(&made[0]), bits(&expected[0]), "row {row}");
            }
        }
    }
}

#[test]
fn what_no_stream_can_be_is_named_with_what_would_work() {
    let network = |name: &str| pass::normalise(builtin::network(name).unwrap(), Fusion::Full);
    let said = |error: StreamError| (error.to_string(), error.help().unwrap_or_default());
    let check = |name: &str, hop: Option<usize>, window: Option<usize>, message: &str, help: &str| {
        let (found, helped) = said(of_hops(network(name), hop, window).unwrap_err());
        assert_eq!((found.as_str(), helped.as_str()), (message, help), "{name}");
    };
    check(
        "resnet8",
        None,
        None,
        "layer `avg_pool` (reduce) needs all 8 rows of `stack3_relu`, and a stream never ends",
        "say over how many rows of the input it looks: a window of 32, say, the model's own frame",
    );
    check(
        "resnet8",
        Some(6),
        Some(32),
        "a hop of 6 rows does not fit: layer `stack3_conv1` would make no whole number of rows",
        "take a hop of 4 or 8 rows: a multiple of 4",
    );
    check(
        "wake_word",
        Some(2),
        None,
        "a hop of 2 rows does not fit: layer `dense` takes one row of a hop",
        "take a hop of 1",
    );
    check(
        "vgg16",
        None,
        None,
        "layer `classifier.0` (gemm) needs all 7 rows of `features.30`, and cannot look at a window of them",
        "",
    );
}

/// A temporal convolutional network: ten dilated causal convolutions. A hop of one row multiplies as often as a frame does
/// for each of its rows, so nothing is multiplied twice.
#[test]
fn dilated_convolutions_multiply_nothing_twice() {
    let mut network = Network::default();
    let mut x = generate::input(&mut network, Shape::image(4, ROWS, 1));
    for dilation in [1, 2, 4, 8, 16, 1, 2, 4, 8, 16] {
        let before = x.clone();
        x = generate::push(&mut network, conv(4, [3, 1], 1, dilation, [2 * dilation, 0, 0, 0], 1), vec![x])
            .unwrap();
        let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
        x = generate::push(&mut network, Operator::Binary(add), vec![x, before]).unwrap();
    }
    network.outputs.push(NetworkOutput::new("out", x));
    let hop = of_hops(network.clone(), None, None).unwrap();
    assert_eq!((hop.layers[0].rows(), hop.macs() * ROWS as u64), (1, network.macs()));
    // Twice the dilation of rows before each: nothing waits, and nothing else is kept.
    let streams = Streams::new(&hop).unwrap();
    assert!(streams.rows.iter().all(|rows| rows.delay == 0));
    let kept: Vec<u64> = streams.rows.iter().map(|rows| rows.history).filter(|rows| *rows > 0).collect();
    assert_eq!(kept, [2, 4, 8, 16, 32, 2, 4, 8, 16, 32]);
    let whole = generate::of_one(network.clone(), StorageModel::Tensors, RowsChoice::None);
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let plan = plan(&whole);
    let mut runner = Runner::poisoned(&plan, &parameters).unwrap();
    let expected = runner.infer(0, &[signal(&network.layers[0].shape, 0)]).unwrap();
    assert_eq!(stream(&hop, RowsChoice::Default)[0], rows(&expected[0]));
}
