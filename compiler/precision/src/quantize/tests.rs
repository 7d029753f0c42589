//! Ranges compared with their definitions, equalisation compared with the network that it came from, and small networks
//! as a whole.

use csdfc_input::builtin::{Builder, ConvOptions, Padding, PoolWindow, flatten};
use csdfc_input::export::export;
use csdfc_input::import::{ImportOptions, import_bytes};
use csdfc_network::pass::{self, Fusion};
use csdfc_network::weights::Weights;
use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::format::Element;
use csdfc_plan::operator::{
    Binary, BinaryFunction, ConstantOperand, ElementWise, Function, Operator, Reduce, ReduceFunction,
};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Value};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::ranges::{Histogram, quantization};
use super::simulate::Simulation;
use super::{Options, Quantized, Ranges, equalise, quantize};

/// Convolutions, one of them depthwise, with a batch norm, a sum, a concat, pools and a fully connected layer.
fn small() -> Network {
    let mut b = Builder::new(5);
    let same = |groups| ConvOptions { pads: Padding::Each(1), groups, bias: true, ..ConvOptions::default() };
    let x = b.input("x", [1, 3, 12, 12]).unwrap();
    let x = b.conv(&x, 8, [3, 3], ConvOptions { bias: false, ..same(1) }).unwrap();
    let x = b.batch_norm(&x).unwrap();
    let first = b.activation(&x, Function::Relu).unwrap();
    let x = b.conv(&first, 8, [3, 3], same(8)).unwrap();
    let x = b.activation(&x, Function::Relu).unwrap();
    let x = b.conv(&x, 8, [1, 1], ConvOptions { bias: true, ..ConvOptions::default() }).unwrap();
    let x = b.add(&first, &x).unwrap();
    let y = b.activation(&x, Function::HardSwish).unwrap();
    let x = b.concat(&[&x, &y]).unwrap();
    let x = b.max_pool(&x, PoolWindow::new(2, 2)).unwrap();
    let x = b.global_average_pool(&x).unwrap();
    let x = b.gemm(&flatten(&x), 5, true).unwrap();
    b.output("y", &x).unwrap();
    b.finish()
}

fn frames(network: &Network, count: usize) -> Vec<Vec<Value>> {
    let mut random = ChaCha8Rng::seed_from_u64(3);
    let input = network.layers.iter().find(|layer| layer.is_input()).unwrap();
    let mut frame = || {
        let values = (0..input.shape.elements()).map(|_| random.random_range(-1.0..1.0)).collect();
        vec![Value { dims: input.shape.dims.clone(), data: Data::F32(values) }]
    };
    (0..count).map(|_| frame()).collect()
}

fn floats(values: &[Value]) -> &[f32] {
    let Data::F32(values) = &values[0].data else { panic!() };
    values
}

fn quantized(options: Options) -> Quantized {
    quantize(small(), &frames(&small(), 8), options).unwrap()
}

#[test]
fn a_small_network_runs_on_integers_and_errs_little() {
    for ranges in [Ranges::MinMax, Ranges::Percentile, Ranges::Mse] {
        let made = quantized(Options { ranges, keep_above: None });
        // As another program would read the file.
        let bytes = export(&made.network).unwrap();
        let read = import_bytes(&bytes, None, &ImportOptions::default()).unwrap().network;
        let network = pass::normalise(read, Fusion::Full);
        for layer in &network.layers {
            let is_edge = layer.is_input()
                || network
                    .outputs
                    .iter()
                    .any(|output| network.layer(output.operand.layer).name == layer.name);
            assert_eq!(layer.format().element == Element::U8, !is_edge, "{}", layer.name);
        }
        // Tensors of 8 bits, each with an error of about half a step in 255.
        assert!(made.report.layers.iter().all(|layer| layer.own > 0.0 && layer.own < 0.02), "{ranges:?}");
        let output = &made.report.outputs[0];
        assert!(output.error < 0.03 && output.agreement.unwrap() >= 0.75, "{ranges:?}: {output:?}");
        let own: Vec<f64> = made.report.layers.iter().map(|layer| layer.own).collect();
        assert!(own.windows(2).all(|pair| pair[0] >= pair[1]), "the worst first");
    }
}

/// Operands of a concat have the concat's scale and zero point, and the batch norm after it goes into the convolution.
#[test]
fn a_dense_block_becomes_convolutions_alone() {
    let mut b = Builder::new(6);
    let mut whole = b.input("x", [1, 4, 6, 6]).unwrap();
    for _ in 0..3 {
        let x = b.batch_norm(&whole).unwrap();
        let x = b.activation(&x, Function::Relu).unwrap();
        let x = b.conv(&x, 6, [1, 1], ConvOptions::default()).unwrap();
        let x = b.activation(&x, Function::Relu).unwrap();
        let pads = Padding::Each(1);
        let x = b.conv(&x, 2, [3, 3], ConvOptions { pads, ..ConvOptions::default() }).unwrap();
        whole = b.concat(&[&whole, &x]).unwrap();
    }
    let x = b.conv(&whole, 3, [1, 1], ConvOptions::default()).unwrap();
    b.output("y", &x).unwrap();
    let network = b.finish();
    let made = quantize(network.clone(), &frames(&network, 4), Options::default()).unwrap();
    let read = import_bytes(&export(&made.network).unwrap(), None, &ImportOptions::default()).unwrap();
    let network = pass::normalise(read.network, Fusion::Full);
    let kinds: Vec<&str> = network.layers.iter().map(|layer| layer.operator.kind()).collect();
    assert_eq!(kinds, [&["input", "convert"][..], &["conv"; 7], &["convert"]].concat());
    assert!(made.report.outputs[0].error < 0.03, "{:?}", made.report.outputs[0]);
}

/// A layer of one operand, and of itself if it is a function of two.
fn push(network: &mut Network, operator: Operator, reads: &[LayerId], parameters: Vec<Weights>) -> LayerId {
    let inputs: Vec<Operand> =
        reads.iter().map(|&layer| Operand { layer, shape: network.layer(layer).shape.clone() }).collect();
    let shapes: Vec<Shape> = inputs.iter().map(|operand| operand.shape.clone()).collect();
    let name = format!("l{}", network.layers.len());
    network.add(Layer {
        output: format!("t_{name}"),
        name,
        onnx_nodes: Vec::new(),
        shape: csdfc_network::operators::output_shape(&operator, &shapes).unwrap(),
        operator,
        inputs,
        parameters,
        primitive: None,
        quantization: None,
    })
}

/// `(x − mean) / root(variance + ε)` of each row, with the variance as a mean of products or of powers, and the quotient
/// as such or as a product by a power.
fn norm(network: &mut Network, x: LayerId, by_power: bool) -> LayerId {
    let mean = Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: vec![1], keep_dims: true });
    let of_two = |function| Operator::Binary(Binary { function, constant: None, activation: None });
    let by = |function| {
        let constant = Some(ConstantOperand { dims: Vec::new(), left: false, quantization: None });
        Operator::Binary(Binary { function, constant, activation: None })
    };
    let one = |value: f32| vec![Weights::new(Vec::<usize>::new(), vec![value])];
    let middle = push(network, mean.clone(), &[x], vec![]);
    let centred = push(network, of_two(BinaryFunction::Sub), &[x, middle], vec![]);
    let square = match by_power {
        true => push(network, by(BinaryFunction::Pow), &[centred], one(2.0)),
        false => push(network, of_two(BinaryFunction::Mul), &[centred, centred], vec![]),
    };
    let variance = push(network, mean, &[square], vec![]);
    let variance = push(network, by(BinaryFunction::Add), &[variance], one(1e-5));
    if by_power {
        let root = push(network, by(BinaryFunction::Pow), &[variance], one(-0.5));
        return push(network, of_two(BinaryFunction::Mul), &[centred, root], vec![]);
    }
    let root = Operator::ElementWise(ElementWise { function: Function::Sqrt });
    let root = push(network, root, &[variance], vec![]);
    push(network, of_two(BinaryFunction::Div), &[centred, root], vec![])
}

/// Rows without variance have an epsilon as their variance, which 8 bits do not represent together with the variances
/// of others.
#[test]
fn the_insides_of_norms_stay_with_floats() {
    for by_power in [false, true] {
        let mut b = Builder::new(7);
        let x = b.input("x", [6, 8]).unwrap();
        let mut network = b.finish();
        let doubled =
            Operator::Binary(Binary { function: BinaryFunction::Add, constant: None, activation: None });
        let x = push(&mut network, doubled, &[x.layer, x.layer], vec![]);
        let y = norm(&mut network, x, by_power);
        let operand = Operand { layer: y, shape: network.layer(y).shape.clone() };
        network.outputs.push(NetworkOutput::new("y", operand));
        let mut frames = frames(&network, 3);
        for frame in &mut frames {
            if let Data::F32(values) = &mut frame[0].data {
                values[8..24].fill(0.5);
            }
        }
        let made = quantize(network, &frames, Options::default()).unwrap();
        let kept = |layer: &&Layer| layer.quantization.is_some();
        let integers: Vec<&str> =
            made.network.layers.iter().filter(kept).map(|layer| layer.name.as_str()).collect();
        assert_eq!(integers, ["x_QuantizeLinear", "l1_QuantizeLinear"]);
        assert!(made.report.outputs[0].error < 0.02, "{:?}", made.report.outputs);
    }
}

/// The quotient of two sums of tensors is no norm. In 8 bits, the smaller divisors are 0.
#[test]
fn no_infinite_number_leaves_without_an_error() {
    let mut b = Builder::new(8);
    let x = b.input("x", [1, 64]).unwrap();
    let large = b.input("large", [1, 64]).unwrap();
    let divisor = b.add(&x, &large).unwrap();
    let mut network = b.finish();
    let quotient =
        Operator::Binary(Binary { function: BinaryFunction::Div, constant: None, activation: None });
    let y = push(&mut network, quotient, &[x.layer, divisor.layer], vec![]);
    let operand = Operand { layer: y, shape: network.layer(y).shape.clone() };
    network.outputs.push(NetworkOutput::new("y", operand));
    let value = |data: Vec<f32>| Value { dims: vec![1, 64], data: Data::F32(data) };
    let large = (0..64).map(|i| if i == 0 { 1000.0 } else { 0.0 }).collect();
    let frame = vec![value(vec![1e-3; 64]), value(large)];
    let error = quantize(network, &[frame], Options::default()).unwrap_err().to_string();
    assert!(error.contains("of the quantized network makes an element that is"), "{error}");
}

#[test]
fn the_same_frames_give_the_same_model() {
    let bytes = || export(&quantized(Options::default()).network).unwrap();
    assert!(bytes() == bytes());
}

#[test]
fn layers_that_err_more_stay_with_floats() {
    let all = quantized(Options::default()).report;
    let most = all.layers[1].own;
    let some = quantized(Options { keep_above: Some(most), ..Options::default() }).report;
    let with_floats: Vec<&str> =
        some.layers.iter().filter(|layer| layer.error.is_none()).map(|layer| layer.layer.as_str()).collect();
    assert!(with_floats.contains(&all.layers[0].layer.as_str()), "{with_floats:?}");
    // It alone reads what is not rounded.
    assert!(with_floats.len() < all.layers.len() / 2, "{with_floats:?}");
    let none = quantized(Options { keep_above: Some(0.0), ..Options::default() });
    assert!(none.network.layers.iter().all(|layer| layer.quantization.is_none()));
    assert!(none.report.outputs[0].error == 0.0, "{:?}", none.report.outputs);
}

#[test]
fn equalised_channels_are_alike_and_the_function_is_the_same() {
    let network = pass::with_constants_folded(small());
    let equal = equalise::equalise(network.clone()).unwrap();
    let largest = |network: &Network, name: &str| -> Vec<f32> {
        let layer = network.layer(network.find(name).unwrap());
        let values = layer.parameters[0].values().unwrap();
        let filter = values.len() / 8;
        values
            .chunks(filter)
            .map(|filter| filter.iter().fold(0.0, |most: f32, w| most.max(w.abs())))
            .collect()
    };
    // The filters of the first convolution, whose reader has one for each channel too.
    for (at, (one, other)) in largest(&equal, "conv2").iter().zip(columns(&equal, "conv3")).enumerate() {
        assert!((one / other - 1.0).abs() < 1e-3, "channel {at}: {one} and {other}");
    }
    assert!(largest(&network, "conv2") != largest(&equal, "conv2"));
    // The first is read by a sum as well.
    assert!(largest(&network, "conv1") == largest(&equal, "conv1"));
    let outputs = |network: &Network| {
        let simulation = Simulation::new(network.clone()).unwrap();
        let mut runner = simulation.runner().unwrap();
        let outputs = simulation.frame(&mut runner, &frames(network, 1)[0], &mut |_, _| {}).unwrap();
        floats(&outputs).to_vec()
    };
    for (one, other) in outputs(&network).iter().zip(outputs(&equal)) {
        assert!((one - other).abs() < 1e-5 * one.abs().max(1.0), "{one} and {other}");
    }
}

/// The largest weight of each channel that a 1×1 convolution of 8 channels reads.
fn columns(network: &Network, name: &str) -> Vec<f32> {
    let values = network.layer(network.find(name).unwrap()).parameters[0].values().unwrap();
    (0..8).map(|c| values.iter().skip(c).step_by(8).fold(0.0, |most: f32, w| most.max(w.abs()))).collect()
}

#[test]
fn a_bound_between_convolutions_is_not_scaled() {
    let mut b = Builder::new(5);
    let x = b.input("x", [1, 3, 12, 12]).unwrap();
    let x = b.conv(&x, 8, [1, 1], ConvOptions::default()).unwrap();
    let x = b.activation(&x, Function::Clip { min: Some(0.0), max: Some(6.0) }).unwrap();
    let x = b.conv(&x, 8, [3, 3], ConvOptions { groups: 8, ..ConvOptions::default() }).unwrap();
    b.output("y", &x).unwrap();
    let network = b.finish();
    let equal = equalise::equalise(network.clone()).unwrap();
    for (one, other) in network.layers.iter().zip(&equal.layers) {
        for (a, b) in one.parameters.iter().zip(&other.parameters) {
            assert_eq!(a.values().unwrap(), b.values().unwrap());
        }
    }
}

#[test]
fn ranges_are_those_of_their_definitions() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    // A peak at 0 with long tails, as tensors have.
    let mut values: Vec<f32> = (0..2_000_000)
        .map(|_| {
            let x: f32 = random.random_range(-1.0..1.0);
            if x < 0.0 { x } else { x.powi(9) }
        })
        .collect();
    values[17] = 6.0;
    let ends = values.iter().fold([0.0_f32; 2], |[low, high], x| [low.min(*x), high.max(*x)]);
    let mut elements = Histogram { low: ends[0], high: ends[1], bins: vec![0; 2048] };
    elements.count(&values);
    assert_eq!(elements.range(Ranges::MinMax), ends);

    let width = (ends[1] - ends[0]) / 2048.0;
    let mut sorted = values.clone();
    sorted.sort_by(f32::total_cmp);
    let [low, high] = elements.range(Ranges::Percentile);
    let expected = [sorted[100], sorted[sorted.len() - 101]];
    assert!(
        (low - expected[0]).abs() <= width && (high - expected[1]).abs() <= width,
        "{low} {high} {expected:?}"
    );

    let error = |range: [f32; 2]| -> f64 {
        let by = quantization(range);
        values.iter().map(|x| f64::from(by.number(by.integer(*x)) - x).powi(2)).sum()
    };
    let best = elements.range(Ranges::Mse);
    assert!(error(best) < 0.5 * error(ends), "{best:?}");
    for high in (1..=24).map(|high| high as f32 / 4.0) {
        assert!(error(best) < 1.1 * error([ends[0], high]), "{best:?} is worse than {high}");
    }
}

#[test]
fn nothing_but_zeros_has_a_scale() {
    let all = quantization([0.0, 0.0]);
    assert_eq!((all.scale, all.integer(0.0), all.number(all.zero_point)), (1.0, 0, 0.0));
}

#[test]
fn what_cannot_be_quantized_is_refused() {
    let refused = |network: Network, frames: &[Vec<Value>], words: &str| {
        let error = quantize(network, frames, Options::default()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let good = frames(&small(), 1);
    refused(small(), &[], "no frame");
    refused(small(), &[Vec::new()], "frame 1 has 0 tensors");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut frames = good.clone();
        change(&mut frames[0][0]);
        frames
    };
    refused(small(), &with(&|value| value.dims = vec![1, 12, 12, 3]), "input x takes [1, 3, 12, 12]");
    refused(small(), &with(&|value| value.data = Data::U8(vec![0; 432])), "takes float32, not uint8");
    let odd = with(&|value| {
        if let Data::F32(values) = &mut value.data {
            values[7] = f32::NAN;
        }
    });
    refused(small(), &odd, "has an element that is NaN");
    refused(quantized(Options::default()).network, &good, "quantized already");
    let mut broken = small();
    let conv = broken.layers.iter_mut().find(|layer| matches!(layer.operator, Operator::Conv(_))).unwrap();
    let mut values = conv.parameters[0].values().unwrap();
    values[0] = f32::INFINITY;
    conv.parameters[0] = csdfc_network::weights::Weights::new(conv.parameters[0].dims.clone(), values);
    let error = quantize(broken, &good, Options::default()).unwrap_err().to_string();
    assert!(error.contains("inf") || error.contains("NaN"), "{error}");
}
