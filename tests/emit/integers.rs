//! Crates whose callers hand over the integers of a quantized network.

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand, pass};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{
    Binary, BinaryFunction, Camera, CameraLayout, ColorOrder, ElementWise, Function, Input, InputElement,
    Operator,
};
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::Shape;
use csdfc_runtime::bind::Primitive;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::{generate, plan};

use super::{Emitted, check_crate, inputs};

/// What the signed integers of one input stand for, the unsigned ones of the other, and those of the sum.
const SIGNED: Quantization = Quantization { scale: 0.5, zero_point: 138 };
const UNSIGNED: Quantization = Quantization { scale: 0.25, zero_point: 7 };
const SUM: Quantization = Quantization { scale: 0.75, zero_point: 100 };

/// A layer of images of three channels. Its name says what it makes.
fn layer(
    network: &mut Network,
    name: &str,
    operator: Operator,
    inputs: &[LayerId],
    primitive: &str,
    quantization: Option<Quantization>,
) -> LayerId {
    let shape = Shape::image(3, 4, 5);
    network.add(Layer {
        name: name.into(),
        onnx_nodes: Vec::new(),
        operator,
        inputs: inputs.iter().map(|&layer| Operand { layer, shape: shape.clone() }).collect(),
        parameters: Vec::new(),
        output: name.into(),
        shape: shape.clone(),
        primitive: Primitive::find(primitive),
        quantization,
    })
}

/// What is positive of the sum of an input of signed integers and one of unsigned integers, as floats.
fn network() -> Network {
    let mut network = Network::default();
    let taken = |element| Operator::Input(Input { element, camera: None });
    let own = "own-kernel-int8-hwc-hwc";
    let a = layer(&mut network, "of_i8", taken(InputElement::I8), &[], own, Some(SIGNED));
    let b = layer(&mut network, "of_u8", taken(InputElement::U8), &[], own, Some(UNSIGNED));
    let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
    let sum = layer(&mut network, "sum", Operator::Binary(add), &[a, b], own, Some(SUM));
    let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
    let relu = layer(&mut network, "relu", relu, &[sum], own, Some(SUM));
    let y = layer(&mut network, "y", Operator::Convert, &[relu], "convert-dequantize-hwc-hwc", None);
    let operand = Operand { layer: y, shape: network.layer(y).shape.clone() };
    network.outputs.push(NetworkOutput::new("y", operand));
    network
}

pub fn application(rows: RowsChoice) -> Application {
    generate::of_one(network(), StorageModel::Tensors, rows)
}

/// The output of a frame.
fn run(network: Network, inputs: &[Value]) -> Vec<f32> {
    let application = generate::of_one(network, StorageModel::Tensors, RowsChoice::All);
    let (network, plan) = (&application.cnns[0].network, plan(&application));
    let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let mut runner = Runner::poisoned(&plan, &parameters).expect("a runner");
    match runner.infer(0, inputs).expect("a frame").remove(0).data {
        Data::F32(values) => values,
        other => panic!("{other:?}"),
    }
}

#[test]
fn crates_take_integers() {
    for rows in [RowsChoice::All, RowsChoice::None] {
        let application = application(rows);
        let emitted = Emitted::new(&application);
        check_crate(&emitted);
        let given = inputs(&emitted.plan, 0);
        let ([Data::I8(a), Data::U8(b)], Data::F32(y)) =
            ([&given[0].data, &given[1].data], &emitted.expected()[0][0].data)
        else {
            panic!("{given:?}");
        };
        for ((a, b), y) in a.iter().zip(b).zip(y) {
            let real = 0.5 * (f32::from(*a) - 10.0) + 0.25 * (f32::from(*b) - 7.0);
            let nearest = (real / SUM.scale).round_ties_even() + f32::from(SUM.zero_point);
            let integer = nearest.clamp(f32::from(SUM.zero_point), 255.0);
            assert_eq!(*y, SUM.scale * (integer - f32::from(SUM.zero_point)), "{a} {b}");
        }
    }
}

#[test]
fn from_c() {
    super::capi::check(&application(RowsChoice::All));
    super::capi::check(&of_bytes(RowsChoice::All));
}

/// The same, with the integers of its sum as an output, and floats that are handed over as bytes.
fn of_bytes(rows: RowsChoice) -> Application {
    let mut network = network();
    let outputs = [("relu", "relu", SUM), ("y", "bytes", Quantization::IDENTITY)];
    for (made, name, integers) in outputs {
        let layer = network.find(made).expect("a layer");
        let operand = Operand { layer, shape: network.layer(layer).shape.clone() };
        network.outputs.push(NetworkOutput { name: name.into(), operand, integers: Some(integers) });
    }
    generate::of_one(pass::legalise(network), StorageModel::Tensors, rows)
}

#[test]
fn crates_hand_over_integers() {
    for rows in [RowsChoice::All, RowsChoice::None] {
        let application = of_bytes(rows);
        let emitted = Emitted::new(&application);
        check_crate(&emitted);
        let expected = &emitted.expected()[0];
        let [Data::F32(y), Data::U8(integers), Data::U8(bytes)] =
            [&expected[0].data, &expected[1].data, &expected[2].data]
        else {
            panic!("{expected:?}");
        };
        assert!(y.iter().any(|y| *y > 1.0) && y.len() == 60);
        for ((y, integer), byte) in y.iter().zip(integers).zip(bytes) {
            assert_eq!(*y, SUM.number(*integer));
            assert_eq!(f32::from(*byte), y.round_ties_even());
        }
    }
}

/// The bytes of a camera stand for the integers that a caller would hand over.
#[test]
fn cameras_hand_over_integers() {
    let bytes: Vec<u8> = (0..60).map(|i| (i * 37 % 251) as u8).collect();
    let dims = || vec![1, 3, 4, 5];
    let planes = |data| Value { dims: vec![3, 4, 5], data };
    let unsigned = Value { dims: dims(), data: Data::U8(bytes.iter().rev().copied().collect()) };
    let signed: Vec<i8> = bytes.iter().map(|byte| (i16::from(*byte) - 128) as i8).collect();
    let expected = run(network(), &[Value { dims: dims(), data: Data::I8(signed) }, unsigned.clone()]);
    let camera = |mean, scale| Camera {
        layout: CameraLayout::Chw,
        order: ColorOrder::Rgb,
        mean: vec![mean; 3],
        scale: vec![scale; 3],
    };
    let seen = pass::camera(network(), LayerId(0), camera(128.0, 1.0));
    // Nothing is between the bytes and the integers.
    assert_eq!(seen.layers.len(), network().layers.len());
    assert_eq!(run(seen, &[planes(Data::U8(bytes.clone())), unsigned.clone()]), expected);
    // The same as pixels of channels.
    let pixels = (0..60).map(|i| bytes[i % 3 * 20 + i / 3]).collect();
    let interleaved = Camera { layout: CameraLayout::Hwc, ..camera(128.0, 1.0) };
    let seen = pass::camera(network(), LayerId(0), interleaved);
    assert_eq!(
        run(seen, &[Value { dims: vec![4, 5, 3], data: Data::U8(pixels) }, unsigned.clone()]),
        expected
    );
    // With a scale, each integer is the nearest.
    let nearest = |byte: &u8| ((f32::from(*byte) - 64.0) * 0.5).round_ties_even() as i8;
    let signed = Value { dims: dims(), data: Data::I8(bytes.iter().map(nearest).collect()) };
    let expected = run(network(), &[signed, unsigned.clone()]);
    let seen = pass::camera(network(), LayerId(0), camera(64.0, 0.5));
    assert_eq!(run(seen, &[planes(Data::U8(bytes.clone())), unsigned.clone()]), expected);
    // Both inputs, the second with 3 less than what its bytes are.
    let less = bytes.iter().rev().map(|byte| byte.saturating_sub(3)).collect();
    let signed = bytes.iter().map(|byte| (i16::from(*byte) - 128) as i8).collect();
    let all = [Data::I8(signed), Data::U8(less)].map(|data| Value { dims: dims(), data });
    let expected = run(network(), &all);
    let seen = pass::camera(network(), LayerId(0), camera(128.0, 1.0));
    let second = seen.find("of_u8").expect("an input");
    let seen = pass::camera(seen, second, camera(3.0, 1.0));
    assert_eq!(run(seen, &[planes(Data::U8(bytes)), Value { dims: vec![3, 4, 5], ..unsigned }]), expected);
}

#[test]
fn crates_make_integers_of_the_bytes_of_a_camera() {
    use CameraLayout::{Chw, Hwc};
    use ColorOrder::{Bgr, Rgb};
    for (layout, order, mean, scale) in
        [(Hwc, Rgb, 128.0, 1.0), (Hwc, Bgr, 100.5, 0.5), (Chw, Bgr, 128.0, 1.0), (Chw, Rgb, 60.0, 3.0)]
    {
        let camera = Camera { layout, order, mean: vec![mean; 3], scale: vec![scale; 3] };
        let network = pass::legalise(pass::camera(network(), LayerId(0), camera));
        check_crate(&Emitted::new(&generate::of_one(network, StorageModel::Tensors, RowsChoice::All)));
    }
}
