//! Networks whose layers have so many weights that they are read in tiles.

use csdfc_input::app::resolve::{Application, Streamed};
use csdfc_network::operators::output_shape;
use csdfc_network::pass::integers;
use csdfc_network::{Network, NetworkOutput, Operand};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Conv, Function, Gemm, Operator};
use csdfc_plan::shape::Shape;
use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use crate::generate;
use crate::quantized::{quantization, quantized};

/// The application with its weights streamed, but those named `resident`, and read again at each firing of a layer by parts.
pub fn read_again(application: &Application) -> Application {
    let cnns = application.cnns.iter().enumerate();
    let layers =
        cnns.flat_map(|(c, cnn)| cnn.network.layers.iter().map(move |layer| (c, layer.name.clone())));
    let streamed = Streamed { again: layers.collect(), ..application.streamed.clone().unwrap_or_default() };
    Application { streamed: Some(streamed), may_be_streamed: None, ..application.clone() }
}

/// A random chain of convolutions, and of a matrix product: of most of them, the last tile has fewer channels than the
/// others.
pub fn network(random: &mut ChaCha8Rng) -> Network {
    let mut network = convolutions(random);
    let Some(NetworkOutput { operand: x, .. }) = network.outputs.pop() else { return network };
    let inner = x.shape.elements();
    let gemm = Gemm {
        inner,
        units: 20_000 / inner + random.random_range(20..60),
        transposed: random.random(),
        bias: random.random(),
        activation: None,
    };
    let flat = Operand { shape: Shape::new([1, inner]), ..x };
    let operand = push(&mut network, Operator::Gemm(gemm), flat);
    network.outputs.push(NetworkOutput::new("y", operand));
    network
}

/// A random chain of convolutions, the last of which is the output.
pub fn convolutions(random: &mut ChaCha8Rng) -> Network {
    let mut network = Network::default();
    let (channels, height, width) =
        (random.random_range(30..70), random.random_range(4..8), random.random_range(4..8));
    let mut x = generate::input(&mut network, Shape::image(channels, height, width));
    for _ in 0..random.random_range(1..4) {
        let taps = random.random_range(1..4);
        let conv = Conv {
            // Weights of more than 16 KB, of one byte each.
            filters: 20_000 / (taps * x.shape.channels()) + random.random_range(1..60),
            kernel: [taps, 1],
            stride: [random.random_range(1..3), 1],
            dilation: [1; 2],
            pads: [taps / 2, 0, taps / 2, 0],
            groups: 1,
            bias: random.random(),
            pre: None,
            residual: false,
            activation: random.random::<bool>().then_some(Function::Relu),
        };
        x = push(&mut network, Operator::Conv(conv), x);
    }
    network.outputs.push(NetworkOutput::new("y", x));
    network
}

fn push(network: &mut Network, operator: Operator, x: Operand) -> Operand {
    let shape = output_shape(&operator, std::slice::from_ref(&x.shape)).expect("a shape");
    generate::add(network, operator, vec![x], shape)
}

/// The same for 8-bit integers, whose range is about that of the numbers.
pub fn of_integers(network: &Network) -> Network {
    // Mean and deviation of each tensor. Inputs and weights are sixteenths from −1 to 15/16, evenly spread.
    let drawn = [-1.0 / 32.0, 1.0 / 3.0_f64.sqrt()];
    let mut all: Vec<[f64; 2]> = Vec::new();
    for layer in &network.layers {
        let Some(x) = layer.inputs.first() else {
            all.push(drawn);
            continue;
        };
        let terms = (layer.parameters[0].elements() / layer.shape.channels()) as f64;
        let ([mean, deviation], [of_weights, spread]) = (all[x.layer.0], drawn);
        let [mean, deviation] = [terms * mean * of_weights, spread * terms.sqrt() * mean.hypot(deviation)];
        all.push(match layer.operator.activation() {
            // About what is left of a normal distribution, where it is positive.
            Some(_) => [mean.max(0.0) + 0.4 * deviation, 0.6 * deviation],
            None => [mean, deviation],
        });
    }
    let to = |[mean, deviation]: &[f64; 2]| {
        let ends = [mean - 2.0 * deviation, mean + 2.0 * deviation];
        Some::<Quantization>(quantization(ends))
    };
    integers(quantized(network, &all.iter().map(to).collect::<Vec<_>>()))
}
