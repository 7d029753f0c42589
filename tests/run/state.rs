//! States: a network that keeps pairs of an output and an input makes, frame by frame, the bytes that it makes if the
//! caller hands each output back.

use csdfc_input::app::resolve::RowsChoice;
use csdfc_network::state;
use csdfc_network::{LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::operator::{
    Binary, BinaryFunction, Concat, Conv, ElementWise, Function, Gemm, Operator, Slice,
};
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{generate, outcome, random, until_all_are_tested};
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::floats;

/// Networks drawn.
const NETWORKS: u64 = 120;

/// Frames of each.
const FRAMES: u64 = 7;

fn function(network: &mut Network, function: Function, x: Operand) -> Option<Operand> {
    generate::push(network, Operator::ElementWise(ElementWise { function }), vec![x])
}

fn binary(network: &mut Network, function: BinaryFunction, operands: [Operand; 2]) -> Option<Operand> {
    let binary = Binary { function, constant: None, activation: None };
    generate::push(network, Operator::Binary(binary), operands.into())
}

fn product(network: &mut Network, x: Operand, units: usize) -> Option<Operand> {
    let inner = *x.shape.dims.last()?;
    let gemm = Gemm { inner, units, transposed: true, bias: true, activation: None };
    generate::push(network, Operator::Gemm(gemm), vec![x])
}

/// A recurrent cell: h' = tanh(W x + R h), and y = h'. The state may be stated with more dimensions.
fn cell(network: &mut Network, random: &mut ChaCha8Rng, pairs: &mut Vec<(String, String)>) -> Option<()> {
    let (inner, units) = (random.random_range(1..=9), random.random_range(1..=9));
    let x = generate::input(network, Shape::new([1, inner]));
    let dims = [vec![1, units], vec![1, 1, units], vec![1, units, 1, 1]][random.random_range(0..3)].clone();
    let h = generate::input(network, Shape::new(dims.clone()));
    let seen = Operand { layer: h.layer, shape: Shape::new([1, units]) };
    let [of_x, of_h] = [product(network, x, units)?, product(network, seen, units)?];
    let sum = binary(network, BinaryFunction::Add, [of_x, of_h])?;
    let next = function(network, Function::Tanh, sum)?;
    let output = Operand { shape: Shape::new(dims), ..next.clone() };
    keep(network, output, &h, pairs);
    deliver(network, next);
    Some(())
}

/// A convolution that goes on: the rows that it still needs of the frames before are the state.
fn conv_with_cache(
    network: &mut Network,
    random: &mut ChaCha8Rng,
    pairs: &mut Vec<(String, String)>,
) -> Option<()> {
    let (channels, rows, columns) =
        (random.random_range(1..=3), random.random_range(2..=9), random.random_range(1..=5));
    let kernel = random.random_range(2..=rows.min(4));
    let x = generate::input(network, Shape::image(channels, rows, columns));
    let cache = generate::input(network, Shape::image(channels, kernel - 1, columns));
    let all = generate::push(network, Operator::Concat(Concat { axis: 2 }), vec![cache.clone(), x.clone()])?;
    let conv = Operator::Conv(Conv {
        filters: random.random_range(1..=4),
        kernel: [kernel, 1],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [0; 4],
        groups: 1,
        bias: true,
        pre: None,
        residual: false,
        activation: None,
    });
    let made = generate::push(network, conv, vec![all.clone()])?;
    // The last rows are those of x, or those of both.
    let of = if random.random() { x } else { all };
    let starts = vec![0, 0, of.shape.dims[2] - (kernel - 1), 0];
    let lengths = vec![1, channels, kernel - 1, columns];
    let slice = Operator::Slice(Slice { starts, steps: vec![1; 4], lengths });
    let last = generate::push(network, slice, vec![of])?;
    keep(network, last, &cache, pairs);
    deliver(network, made);
    Some(())
}

/// A state that is the input before, and a running sum of images.
fn delay(network: &mut Network, random: &mut ChaCha8Rng, pairs: &mut Vec<(String, String)>) -> Option<()> {
    let shape =
        Shape::image(random.random_range(1..=3), random.random_range(1..=6), random.random_range(1..=4));
    let [x, before, sum] = std::array::from_fn(|_| generate::input(network, shape.clone()));
    let change = binary(network, BinaryFunction::Sub, [x.clone(), before.clone()])?;
    let half = function(network, Function::Clip { min: Some(-1.0), max: Some(1.0) }, change)?;
    let next = binary(network, BinaryFunction::Add, [half, sum.clone()])?;
    keep(network, x, &before, pairs);
    keep(network, next.clone(), &sum, pairs);
    deliver(network, next);
    Some(())
}

fn keep(network: &mut Network, output: Operand, input: &Operand, pairs: &mut Vec<(String, String)>) {
    let name = format!("state{}", network.outputs.len());
    network.outputs.push(NetworkOutput::new(name.clone(), output));
    pairs.push((name, network.layer(input.layer).name.clone()));
}

fn deliver(network: &mut Network, operand: Operand) {
    let name = format!("out{}", network.outputs.len());
    network.outputs.push(NetworkOutput::new(name, operand));
}

/// A random network, and the pairs that it can keep.
pub fn network(random: &mut ChaCha8Rng) -> (Network, Vec<(String, String)>) {
    let (mut network, mut pairs) = (Network::default(), Vec::new());
    for _ in 0..random.random_range(1..=3) {
        let made = match random.random_range(0..3) {
            0 => cell(&mut network, random, &mut pairs),
            1 => conv_with_cache(&mut network, random, &mut pairs),
            _ => delay(&mut network, random, &mut pairs),
        };
        made.unwrap();
    }
    // Inputs come first, as the models of files have them.
    let mut order: Vec<LayerId> = network.ids().collect();
    order.sort_by_key(|id| !network.layer(*id).is_input());
    (network.reordered(&order), pairs)
}

/// The plan of a network that keeps the pairs.
pub fn kept(network: &Network, pairs: &[(String, String)], rows: RowsChoice) -> (Network, Plan) {
    let network = state::bind(network.clone(), pairs).unwrap();
    let plan = outcome(&generate::of_one(network.clone(), StorageModel::Tensors, rows)).plan;
    (network, plan)
}

fn signal(network: &Network, layer: LayerId, frame: u64) -> Value {
    let shape = &network.layer(layer).shape;
    let values = generate::sixteenths(31 * frame + layer.0 as u64).take(shape.elements()).collect();
    Value { dims: shape.dims.clone(), data: Data::F32(values) }
}

fn bits(values: &[Value]) -> Vec<Vec<u32>> {
    values.iter().map(|value| floats(value).iter().map(|x| x.to_bits()).collect()).collect()
}

/// The outputs that the caller gets, frame by frame, if the caller hands back the others.
fn by_hand(network: &Network, pairs: &[(String, String)], rows: RowsChoice) -> Vec<Vec<Vec<u32>>> {
    let plan = outcome(&generate::of_one(network.clone(), StorageModel::Tensors, rows)).plan;
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let mut runner = Runner::poisoned(&plan, &parameters).unwrap();
    let inputs: Vec<LayerId> = network.ids().filter(|id| network.layer(*id).is_input()).collect();
    let kept = |id: LayerId| pairs.iter().find(|(_, input)| *input == network.layer(id).name);
    let mut last: Option<Vec<Value>> = None;
    let frame = |frame| {
        let value = |&id: &LayerId| {
            let mut value = signal(network, id, frame);
            if let Some((output, _)) = kept(id) {
                let place = network.outputs.iter().position(|other| other.name == *output).unwrap();
                let zeros = vec![0.0; network.layer(id).shape.elements()];
                let before = last.as_ref().map_or(zeros, |last| floats(&last[place]).to_vec());
                value.data = Data::F32(before);
            }
            value
        };
        let outputs = runner.infer(0, &inputs.iter().map(value).collect::<Vec<_>>()).unwrap();
        let is_callers = |(place, _): &(usize, &Value)| {
            pairs.iter().all(|(output, _)| *output != network.outputs[*place].name)
        };
        let callers: Vec<Value> =
            outputs.iter().enumerate().filter(is_callers).map(|(_, value)| value.clone()).collect();
        last = Some(outputs);
        bits(&callers)
    };
    (0..FRAMES).map(frame).collect()
}

/// Frames of a runner of a network with states.
pub fn frames(
    runner: &mut Runner<'_>,
    network: &Network,
    frames: std::ops::Range<u64>,
) -> Vec<Vec<Vec<u32>>> {
    let inputs: Vec<LayerId> = network
        .ids()
        .filter(|id| {
            network.layer(*id).is_input() && network.state_of_input(&network.layer(*id).name).is_none()
        })
        .collect();
    let frame = |frame| {
        let values: Vec<Value> = inputs.iter().map(|id| signal(network, *id, frame)).collect();
        bits(&runner.infer(0, &values).unwrap())
    };
    frames.map(frame).collect()
}

#[test]
fn frames_make_what_outputs_handed_back_would() {
    let kinds = [("copy an output", 0), ("state of several rows", 0), ("several states", 0)];
    until_all_are_tested(NETWORKS, 20, kinds.into(), |number, kinds| {
        let (network, pairs) = network(&mut random(number));
        let choice = [RowsChoice::None, RowsChoice::All, RowsChoice::Default][number as usize % 3].clone();
        let (kept, plan) = kept(&network, &pairs, choice.clone());
        let parameters = |_: usize, layer: usize, parameter: usize| kept.parameter(layer, parameter);
        let mut runner = Runner::poisoned(&plan, &parameters).unwrap();
        let expected = by_hand(&network, &pairs, choice);
        assert_eq!(frames(&mut runner, &kept, 0..3), expected[..3], "network {number}");
        // Another runner goes on from what this one saves, and this one begins anew.
        let saved = runner.save(0);
        let mut other = Runner::poisoned(&plan, &parameters).unwrap();
        other.restore(0, &saved).unwrap();
        assert_eq!(frames(&mut other, &kept, 3..FRAMES), expected[3..], "network {number}, saved");
        assert!(other.restore(0, &saved[1..]).is_err());
        runner.reset(0);
        assert_eq!(frames(&mut runner, &kept, 0..2), expected[..2], "network {number}, anew");
        let is_added = kept.layers.len() > network.layers.len();
        let lines = plan.cnns[0]
            .states
            .iter()
            .any(|state| plan.tensors.iter().any(|tensor| tensor.name == state.tensor && tensor.rows() > 1));
        let mut count = |kind: &'static str, is_so: bool| *kinds.entry(kind).or_default() += u64::from(is_so);
        count("copy an output", is_added);
        count("state of several rows", lines);
        count("several states", pairs.len() > 1);
    });
}
