//! Random applications of many kinds.

use csdfc_input::app::resolve::{Application, RowsChoice, Streamed};
use csdfc_input::units::MemoryGoal;
use csdfc_network::pass::{Fusion, Precision, in_precisions, integers};
use csdfc_network::{Network, NetworkOutput, Operand};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Concat, Conv, ElementWise, Function, Operator, Softmax};
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use csdfc_tests::generate;
use csdfc_tests::quantized::quantized;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// Applications that this seed draws, each with its kind.
pub fn applications(seed: u64) -> Vec<(&'static str, Application)> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let bytes: Vec<u8> = (0..random.random_range(20..200)).map(|_| random.random()).collect();
    let tensors = StorageModel::Tensors;
    let any = generate::application(&bytes, tensors);
    let mut all = vec![("dealt", generate::dealt(&bytes, tensors))];
    let kind = match (any.cnns.len(), any.parallel.iter().any(|element| element.len() > 1)) {
        (_, true) => "at the same time",
        (2, _) => "two",
        _ => "one",
    };
    let network = any.cnns[0].network.clone();
    all.push((kind, any));
    let layers = network.layers.len();
    all.push(("half", alone(in_precisions(network.clone(), &vec![Precision::Half; layers]), &mut random)));
    all.push(("mixed", alone(in_precisions(network.clone(), &vec![Precision::Mixed; layers]), &mut random)));
    let to = Quantization { scale: 0.03, zero_point: 100 };
    let to: Vec<Option<Quantization>> =
        network.layers.iter().map(|layer| Some(to).filter(|_| !layer.operator.makes_indices())).collect();
    all.push(("integers", alone(integers(quantized(&network, &to)), &mut random)));
    let stacked = stacked(&mut random);
    all.push(("stacked", alone(stacked.clone(), &mut random)));
    let layers = stacked.layers.len();
    all.push(("stacked half", alone(in_precisions(stacked, &vec![Precision::Half; layers]), &mut random)));
    let streamed = alone(csdfc_tests::tiled::network(&mut random), &mut random);
    all.push(("streamed", Application { streamed: Some(Streamed::default()), ..streamed }));
    all
}

/// Over channels.
fn softmax() -> Operator {
    Operator::Softmax(Softmax { axes: vec![1], log: false })
}

fn relu() -> Operator {
    Operator::ElementWise(ElementWise { function: Function::Relu })
}

/// The application of a network alone, its rows and what it wants drawn.
fn alone(network: Network, random: &mut ChaCha8Rng) -> Application {
    let rows = [RowsChoice::Default, RowsChoice::None, RowsChoice::All][random.random_range(0..3)].clone();
    let mut application = generate::of_one(network, StorageModel::Tensors, rows);
    application.constraints.memory = [None, Some(MemoryGoal::Min)][random.random_range(0..2)];
    application
}

/// An image joined along its rows with what a layer makes of it.
pub fn joined() -> Network {
    let mut network = Network::default();
    let x = generate::input(&mut network, Shape::image(4, 4, 2));
    let [relu, softmax] = [relu(), softmax()];
    let x = generate::push(&mut network, relu, vec![x]).unwrap();
    let y = generate::push(&mut network, softmax.clone(), vec![x.clone()]).unwrap();
    let joined = generate::push(&mut network, Operator::Concat(Concat { axis: 2 }), vec![x, y]).unwrap();
    let operand = generate::push(&mut network, softmax, vec![joined]).unwrap();
    network.outputs.push(NetworkOutput::new("y", operand));
    network
}

/// A chain of layers whose rows have three elements.
pub fn narrow() -> Network {
    let mut network = Network::default();
    let mut x = generate::input(&mut network, Shape::image(3, 6, 1));
    for operator in [relu(), softmax()] {
        x = generate::push(&mut network, operator, vec![x]).unwrap();
    }
    network.outputs.push(NetworkOutput::new("y", x));
    network
}

/// Images joined along their rows, with layers that go by rows between.
fn stacked(random: &mut ChaCha8Rng) -> Network {
    let mut network = Network::default();
    let (channels, columns) = (random.random_range(1..5), random.random_range(1..5));
    let image = Shape::image(channels, random.random_range(1..9), columns);
    let mut open = vec![generate::input(&mut network, image)];
    for _ in 0..random.random_range(3..9) {
        let x = open[random.random_range(0..open.len())].clone();
        let (operator, inputs) = match random.random_range(0..4) {
            0 => {
                let mut read = vec![x];
                for _ in 0..random.random_range(1..3) {
                    read.push(open[random.random_range(0..open.len())].clone());
                }
                (Operator::Concat(Concat { axis: 2 }), read)
            }
            1 => (softmax(), vec![x]),
            2 => (relu(), vec![x]),
            _ => {
                let side = random.random_range(0..2);
                let conv = Conv {
                    filters: channels,
                    kernel: [2 * side + 1; 2],
                    stride: [1; 2],
                    dilation: [1; 2],
                    pads: [side; 4],
                    groups: 1,
                    bias: true,
                    pre: None,
                    residual: false,
                    activation: None,
                };
                (Operator::Conv(conv), vec![x])
            }
        };
        open.extend(generate::push(&mut network, operator, inputs));
    }
    let readers = network.readers();
    for operand in open.into_iter().filter(|x: &Operand| readers[x.layer.0].is_empty()) {
        if !network.layer(operand.layer).is_input() {
            network.outputs.push(NetworkOutput::new(format!("out{}", operand.layer.0), operand));
        }
    }
    csdfc_network::pass::normalise(network, Fusion::ALL[0])
}
