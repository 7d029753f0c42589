//! Passes on small networks: the same function, in the layers expected.

use csdfc_plan::operator::{
    BatchNorm, Binary, BinaryFunction, Concat, ConstantOperand, Conv, ConvTranspose, ElementWise, Function,
    Gemm, Input, InputElement, Operator, Pad, PadMode, Pool, PoolKind, TopK,
};
use csdfc_plan::shape::Shape;
use proptest::prelude::*;

use BinaryFunction::{Add, Div, Mul, Sub};

use super::{Fusion, Precision, in_precisions, normalise};
use crate::operators::{output_shape, parameter_dims};
use crate::weights::{WeightSource, Weights};
use crate::{Layer, LayerId, Network, NetworkOutput, Operand};

mod channels_last;
mod interpret;
mod movements;
mod operands;
mod pools;
mod spellings;
mod transposes;

/// A network under construction; layers are called `0`, `1`, … and their tensors `t0`, `t1`, ….
#[derive(Default)]
struct Builder(Network);

impl Builder {
    fn input(&mut self, dims: &[usize]) -> LayerId {
        let operator = Operator::Input(Input { element: InputElement::F32, camera: None });
        self.push(operator, Vec::new(), Vec::new(), Shape::new(dims))
    }

    fn add(&mut self, operator: Operator, inputs: &[LayerId]) -> LayerId {
        let seed = self.0.layers.len() as u64;
        let shapes = self.shapes(inputs);
        let seeded = |(i, dims)| {
            let source = WeightSource::Seeded { seed: seed * 8 + i as u64, bound: 0.5, centre: 0.6 };
            Weights { dims, source, scale: None }
        };
        let parameters = parameter_dims(&operator, &shapes).into_iter().enumerate().map(seeded).collect();
        let shape = output_shape(&operator, &shapes).unwrap();
        self.push(operator, inputs.to_vec(), parameters, shape)
    }

    fn function(&mut self, function: Function, x: LayerId) -> LayerId {
        self.add(Operator::ElementWise(ElementWise { function }), &[x])
    }

    fn binary(&mut self, function: BinaryFunction, a: LayerId, b: LayerId) -> LayerId {
        self.add(Operator::Binary(Binary { function, constant: None, activation: None }), &[a, b])
    }

    /// With a constant of these dimensions.
    fn constant(&mut self, function: BinaryFunction, x: LayerId, dims: &[usize], left: bool) -> LayerId {
        let constant = Some(ConstantOperand { dims: dims.to_vec(), left, quantization: None });
        self.add(Operator::Binary(Binary { function, constant, activation: None }), &[x])
    }

    fn scalar(&mut self, function: BinaryFunction, x: LayerId, value: f32) -> LayerId {
        let id = self.constant(function, x, &[], false);
        self.0.layers[id.0].parameters = vec![Weights::new([], vec![value])];
        id
    }

    fn norm(&mut self, x: LayerId) -> LayerId {
        let channels = self.0.layer(x).shape.channels();
        self.add(Operator::BatchNorm(BatchNorm { channels, activation: None }), &[x])
    }

    fn output(&mut self, id: LayerId) {
        let layer = self.0.layer(id);
        let operand = Operand { layer: id, shape: layer.shape.clone() };
        self.0.outputs.push(NetworkOutput::new(layer.output.clone(), operand));
    }

    fn push(
        &mut self,
        operator: Operator,
        inputs: Vec<LayerId>,
        parameters: Vec<Weights>,
        shape: Shape,
    ) -> LayerId {
        let shapes = self.shapes(&inputs);
        let inputs = inputs.into_iter().zip(shapes).map(|(layer, shape)| Operand { layer, shape }).collect();
        let name = self.0.layers.len().to_string();
        let (onnx_nodes, output) = (vec![name.clone()], format!("t{name}"));
        self.0.add(Layer {
            name,
            onnx_nodes,
            operator,
            inputs,
            parameters,
            output,
            shape,
            primitive: None,
            quantization: None,
        })
    }

    fn shapes(&self, inputs: &[LayerId]) -> Vec<Shape> {
        inputs.iter().map(|id| self.0.layer(*id).shape.clone()).collect()
    }
}

/// One layer a line: name, kind and activation, ONNX nodes, operands, tensor, number of parameter tensors.
fn text(network: &Network) -> String {
    let lines = network.layers.iter().map(|layer| {
        let mut what = layer.operator.kind().to_string();
        if let Operator::ElementWise(ElementWise { function }) = &layer.operator {
            what = format!("{function:?}");
        }
        if let Operator::Conv(Conv { pre: Some(pre), .. }) = &layer.operator {
            what = format!("{}{:?}+{what}", if pre.affine { "affine+" } else { "" }, pre.activation);
        }
        if matches!(&layer.operator, Operator::Conv(conv) if conv.residual) {
            what += "+residual";
        }
        if let Some(activation) = layer.operator.activation() {
            what += &format!("+{activation:?}");
        }
        let operands: Vec<&str> =
            layer.inputs.iter().map(|operand| network.layer(operand.layer).output.as_str()).collect();
        format!(
            "{} {what} [{}] ({}) -> {} {}",
            layer.name,
            layer.onnx_nodes.join(" "),
            operands.join(" "),
            layer.output,
            layer.parameters.len()
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Checks that the network computes the same before and after the passes, and is well-formed. Returns the result of the
/// passes.
fn same(network: &Network, fusion: Fusion) -> Network {
    let after = normalise(network.clone(), fusion);
    let again = normalise(after.clone(), fusion);
    assert_eq!(text(&again), text(&after), "what is normal stays");
    let mut names: Vec<&str> = after.layers.iter().map(|layer| layer.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    for (id, layer) in after.layers.iter().enumerate() {
        assert!(layer.inputs.iter().all(|operand| operand.layer.0 < id));
        if !layer.is_input() {
            let shapes = layer.input_shapes();
            assert_eq!(output_shape(&layer.operator, &shapes).as_ref(), Ok(&layer.shape), "{}", layer.name);
            let dims: Vec<_> = layer.parameters.iter().map(|weights| weights.dims.clone()).collect();
            assert_eq!(parameter_dims(&layer.operator, &shapes), dims, "{}", layer.name);
        }
    }
    let names =
        |network: &Network| network.outputs.iter().map(|output| output.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(network), names(&after));
    for (a, b) in network.outputs.iter().zip(&after.outputs) {
        assert_eq!(network.layer(a.operand.layer).output, after.layer(b.operand.layer).output);
    }
    let inputs: Vec<Vec<f64>> = network
        .layers
        .iter()
        .filter(|layer| layer.is_input())
        .map(|layer| (0..layer.shape.elements()).map(|i| ((i * 37 + 11) % 101) as f64 / 12.0 - 4.2).collect())
        .collect();
    let (expected, found) = (interpret::run(network, &inputs), interpret::run(&after, &inputs));
    for (expected, found) in expected.iter().flatten().zip(found.iter().flatten()) {
        let error = (expected - found).abs() / expected.abs().max(1.0);
        assert!(error < 1e-5, "{expected} became {found} in\n{}", text(&after));
    }
    after
}

fn check(network: &Network, expected: &str) {
    becomes(network, Fusion::Paper, expected);
}

fn becomes(network: &Network, fusion: Fusion, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(text(&same(network, fusion)), expected.join("\n"));
}

fn conv(filters: usize, groups: usize, bias: bool) -> Operator {
    let (kernel, stride, dilation, pads) = ([3, 2], [1, 1], [1, 1], [1, 0, 1, 1]);
    Operator::Conv(Conv {
        filters,
        kernel,
        stride,
        dilation,
        pads,
        groups,
        bias,
        pre: None,
        residual: false,
        activation: None,
    })
}

fn conv_transpose(filters: usize, groups: usize, bias: bool) -> Operator {
    Operator::ConvTranspose(ConvTranspose {
        filters,
        kernel: [3, 2],
        stride: [2, 1],
        dilation: [1, 1],
        pads: [1, 0, 0, 0],
        output_padding: [1, 0],
        groups,
        bias,
        activation: None,
    })
}

fn gemm(inner: usize, units: usize, transposed: bool, bias: bool) -> Operator {
    Operator::Gemm(Gemm { inner, units, transposed, bias, activation: None })
}

fn pad(before: [i64; 4], after: [i64; 4], value: f32) -> Operator {
    let mode = PadMode::Constant { value: Some(value) };
    Operator::Pad(Pad { mode, before: before.to_vec(), after: after.to_vec() })
}

#[test]
fn a_residual_block() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let first = b.add(conv(4, 1, false), &[x]);
    let norm = b.norm(first);
    let relu = b.function(Function::Relu, norm);
    let second = b.add(conv(4, 2, true), &[relu]);
    let norm = b.norm(second);
    let sum = b.binary(Add, norm, x);
    let relu = b.function(Function::Relu, sum);
    b.output(relu);
    let expected = "
        0 input [0] () -> t0 0
        1 conv+Relu [1 2 3] (t0) -> t3 2
        4 conv [4 5] (t3) -> t5 2
        6 binary+Relu [6 7] (t5 t0) -> t7 0";
    check(&b.0, expected);
    assert_eq!(text(&normalise(b.0.clone(), Fusion::None)), text(&b.0));
}

#[test]
fn a_dense_layer() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let pool = Pool {
        kind: PoolKind::Max,
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [0; 4],
        ceil: false,
    };
    let x = b.add(Operator::Pool(pool), &[x]);
    let norm = b.norm(x);
    let relu = b.function(Function::Relu, norm);
    let y = b.add(conv(4, 1, false), &[relu]);
    let norm = b.norm(y);
    let relu = b.function(Function::Relu, norm);
    let y = b.add(conv(4, 4, true), &[relu]);
    let sum = b.binary(Add, x, y);
    b.output(sum);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        1 pool [1] (t0) -> t1 0
        4 affine+Some(Relu)+conv+Relu [2 3 4 5 6] (t1) -> t6 4
        7 conv [7] (t6) -> t7 2
        8 binary [8] (t1 t7) -> t8 0",
    );
}

/// A tensor that others read too, then the links, then what reads the last; whether that is an output too.
fn before(links: &[fn(&mut Builder, LayerId) -> LayerId], readers: &[Operator], is_output: bool) -> Network {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 6, 6]);
    let sum = b.binary(Add, x, x);
    let linked = links.iter().fold(sum, |y, link| link(&mut b, y));
    for reader in readers {
        let y = b.add(reader.clone(), &[linked]);
        b.output(y);
    }
    b.output(sum);
    if is_output {
        b.output(linked);
    }
    same(&b.0, Fusion::Paper)
}

#[test]
fn several_convolutions_take_what_is_before_them() {
    let (dense, depthwise) = (conv(6, 1, true), conv(4, 4, false));
    let relu: fn(&mut Builder, LayerId) -> LayerId = |b, x| b.function(Function::Relu, x);
    let swish: fn(&mut Builder, LayerId) -> LayerId = |b, x| b.function(Function::HardSwish, x);
    let tanh: fn(&mut Builder, LayerId) -> LayerId = |b, x| b.function(Function::Tanh, x);
    let p_relu: fn(&mut Builder, LayerId) -> LayerId =
        |b, x| b.function(Function::PRelu { slope: vec![4, 1, 1] }, x);
    let norm: fn(&mut Builder, LayerId) -> LayerId = |b, x| b.norm(x);
    let scale: fn(&mut Builder, LayerId) -> LayerId = |b, x| b.constant(Mul, x, &[4, 1, 1], false);
    let from: fn(&mut Builder, LayerId) -> LayerId = |b, x| b.constant(Sub, x, &[1], true);
    let by_column: fn(&mut Builder, LayerId) -> LayerId = |b, x| b.constant(Add, x, &[6], true);
    let (both, one) = ([dense.clone(), depthwise.clone()], [dense.clone()]);
    let left = |links: &[_], readers: &[Operator], is_output| before(links, readers, is_output).layers.len();
    for links in [&[norm][..], &[relu], &[norm, relu], &[scale, relu], &[scale, norm, from, relu]] {
        assert_eq!(left(links, &both, false), 4);
    }
    assert_eq!(left(&[norm, relu], &both, true), 5);
    // Of two functions one remains a layer, and what is before it.
    assert_eq!(left(&[relu, norm, relu], &one, false), 4);
    assert_eq!(left(&[swish], &one, false), 3);
    for (links, readers) in [
        (&[swish][..], &both[..]),
        (&[tanh], &one),
        (&[p_relu], &one),
        (&[by_column], &one),
        (&[norm], &[dense, conv_transpose(4, 1, true)]),
    ] {
        assert_eq!(left(links, readers, false), 3 + readers.len());
    }
    let pointwise = Conv {
        filters: 3,
        kernel: [1, 1],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [1; 4],
        groups: 1,
        bias: true,
        pre: None,
        residual: false,
        activation: None,
    };
    assert_eq!(left(&[norm, tanh], &[Operator::Conv(pointwise)], false), 3);
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 6, 6]);
    let y = b.norm(x);
    // Zeros before the norm are no zeros after it.
    let y = b.add(pad([0, 0, 1, 1], [0, 0, 1, 1], 0.0), &[y]);
    let y = b.norm(y);
    let y = b.add(depthwise, &[y]);
    b.output(y);
    assert_eq!(same(&b.0, Fusion::Paper).layers.len(), 4);
}

#[test]
fn what_others_read_stays() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 5, 6]);
    let dead = b.input(&[1, 4]);
    b.function(Function::Relu, dead);
    let y = b.add(conv(4, 1, true), &[x]);
    let relu = b.function(Function::Relu, y);
    b.output(y);
    b.output(relu);
    let z = b.add(conv(4, 1, true), &[relu]);
    let tanh = b.function(Function::Tanh, z);
    let clip = b.function(Function::Clip { min: None, max: Some(0.5) }, tanh);
    let twice = b.binary(Mul, clip, clip);
    b.output(twice);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        3 conv [3] (t0) -> t3 2
        4 Relu [4] (t3) -> t4 0
        5 conv+Tanh [5 6] (t4) -> t6 2
        7 Clip { min: None, max: Some(0.5) } [7] (t6) -> t7 0
        8 binary [8] (t7 t7) -> t8 0",
    );
}

#[test]
fn no_fusion_through_a_view() {
    let mut b = Builder::default();
    let x = b.input(&[1, 4]);
    let y = b.add(gemm(4, 6, true, true), &[x]);
    let relu = b.function(Function::Relu, y);
    b.output(relu);
    for layer in &mut b.0.layers[2..] {
        layer.inputs[0].shape = Shape::new([1, 6, 1, 1]);
        layer.shape = Shape::new([1, 6, 1, 1]);
    }
    b.0.outputs[0].operand.shape = Shape::new([1, 6, 1, 1]);
    check(&b.0, "0 input [0] () -> t0 0\n1 gemm [1] (t0) -> t1 2\n2 Relu [2] (t1) -> t2 0");
}

#[test]
fn padding() {
    let folds = |before, after, value, reader: Operator| {
        let mut b = Builder::default();
        let x = b.input(&[1, 4, 6, 6]);
        let padded = b.add(pad(before, after, value), &[x]);
        let y = b.add(reader, &[padded]);
        b.output(y);
        same(&b.0, Fusion::Paper).layers.len() == 2
    };
    assert!(folds([0, 0, 1, 2], [0, 0, 3, 0], 0.0, conv(2, 1, true)));
    assert!(!folds([0, 0, 1, 2], [0, 0, 3, 0], 0.5, conv(2, 1, true)));
    assert!(!folds([0, 0, 1, -2], [0, 0, 3, 0], 0.0, conv(2, 1, true)));
    assert!(!folds([0, 1, 1, 1], [0, 3, 1, 1], 0.0, conv(2, 1, true)));
    let pool = |kind, pads, ceil| {
        let (kernel, stride, dilation) = ([3, 3], [2, 2], [1, 1]);
        Operator::Pool(Pool { kind, kernel, stride, dilation, pads, ceil })
    };
    let mean = |count_include_pad| PoolKind::Average { count_include_pad };
    let around = ([0, 0, 1, 1], [0, 0, 1, 1]);
    assert!(folds(around.0, around.1, 0.0, pool(mean(true), [1; 4], false)));
    assert!(folds(around.0, around.1, 0.0, pool(mean(false), [0; 4], false)));
    assert!(!folds(around.0, around.1, 0.0, pool(mean(false), [0, 0, 1, 1], false)));
    assert!(!folds(around.0, around.1, 0.0, pool(PoolKind::Max, [0; 4], false)));
    let mut b = Builder::default();
    let x = b.input(&[1, 4, 6, 6]);
    let y = b.add(pad([0, 0, 1, 0], [0; 4], 0.0), &[x]);
    let y = b.add(pad([0, 0, 0, 2], [0; 4], 0.0), &[y]);
    let y = b.add(conv(2, 1, true), &[y]);
    b.output(y);
    check(&b.0, "0 input [0] () -> t0 0\n3 conv [1 2 3] (t0) -> t3 2");
    // A window as narrow as the padding has no place for it.
    assert!(!folds([0, 0, 3, 3], [0, 0, 3, 3], 0.0, pool(mean(true), [0; 4], false)));
}

#[test]
fn constants_along_other_dimensions_stay() {
    for dims in [&[6][..], &[6, 1], &[6, 6, 6], &[1, 1, 6, 1]] {
        let mut b = Builder::default();
        let x = b.input(&[1, 2, 6, 6]);
        let y = b.add(conv(6, 1, true), &[x]);
        let y = b.constant(Add, y, dims, false);
        b.output(y);
        check(&b.0, "0 input [0] () -> t0 0\n1 conv [1] (t0) -> t1 2\n2 binary [2] (t1) -> t2 1");
    }
}

#[test]
fn a_slope_comes_last() {
    let mut b = Builder::default();
    let x = b.input(&[1, 2, 5, 6]);
    let y = b.add(conv(2, 1, false), &[x]);
    let y = b.norm(y);
    let y = b.function(Function::PRelu { slope: vec![2, 1, 1] }, y);
    b.output(y);
    check(
        &b.0,
        "0 input [0] () -> t0 0
        1 conv+PRelu { slope: [2, 1, 1] } [1 2 3] (t0) -> t3 3",
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Chains of per-channel and scalar constants, batch norms and activations after any layer that has filters:
    /// all before the first activation is folded, and one activation fused.
    #[test]
    fn affine_chains(
        head in 0usize..8,
        links in prop::collection::vec((0usize..5, 0usize..4, any::<bool>()), 0..5),
        relu in any::<bool>(),
    ) {
        let mut b = Builder::default();
        let mut y = match head {
            0..3 => {
                let x = b.input(&[1, 4, 4, 5]);
                b.add(conv(6, [1, 2, 1][head], head == 0), &[x])
            }
            3..6 => {
                let x = b.input(&[1, 4, 4, 5]);
                b.add(conv_transpose(6, [1, 2, 2][head - 3], head == 5), &[x])
            }
            _ => {
                let x = b.input(&[3, 4]);
                b.add(gemm(4, 6, head == 6, head == 6), &[x])
            }
        };
        for (kind, dims, left) in links {
            let shape = b.0.layer(y).shape.dims.clone();
            let mut dims = match dims {
                0 => vec![],
                1 => vec![1; shape.len()],
                _ if shape.len() == 2 => vec![6],
                2 => vec![6, 1, 1],
                _ => vec![1, 6, 1, 1],
            };
            if kind == 3 && left {
                dims = vec![1];
            }
            y = match kind {
                0 => b.norm(y),
                1 => b.constant(Add, y, &dims, left),
                2 => b.constant(Sub, y, &dims, left),
                3 => b.constant(Mul, y, &dims, left),
                _ => b.constant(Div, y, &dims, false),
            };
        }
        if relu {
            y = b.function(Function::Relu, y);
        }
        b.output(y);
        let after = same(&b.0, Fusion::Paper);
        prop_assert_eq!(after.layers.len(), 2, "{}", text(&after));
        prop_assert_eq!(after.layers[1].onnx_nodes.len(), b.0.layers.len() - 1);
        prop_assert_eq!(after.layers[1].operator.activation().is_some(), relu);
    }

    /// Any small network of element-wise layers, whatever reads what, computes the same.
    #[test]
    fn random_networks(
        layers in prop::collection::vec((0usize..12, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..16),
        outputs in prop::collection::vec(any::<prop::sample::Index>(), 1..3),
    ) {
        let mut b = Builder::default();
        b.input(&[1, 2, 3, 4]);
        for (kind, x, y) in layers {
            let count = b.0.layers.len();
            // Mostly chains: the latest tensor, or any.
            let x = LayerId((count - 1).saturating_sub(x.index(count) / 2));
            let y = LayerId(y.index(count));
            match kind {
                0 => { let (kernel, stride, dilation, pads) = ([3, 3], [1, 1], [1, 1], [1; 4]);
                    b.add(Operator::Conv(Conv { filters: 2, kernel, stride, dilation, pads, groups: 1 + y.0 % 2, bias: false, pre: None, residual: false, activation: None }), &[x]) }
                1 => b.norm(x),
                2 => b.function(Function::Sigmoid, x),
                3 => b.function(Function::Tanh, x),
                4 => b.binary(Mul, x, y),
                5 => b.binary(Add, x, y),
                6 => spellings::relu6(&mut b, x),
                7 => b.scalar(Div, x, 6.0),
                8 => b.constant(Add, x, &[2, 1, 1], false),
                9 => b.constant(Mul, x, &[2, 3, 4], true),
                10 => b.function(Function::PRelu { slope: vec![2, 1, 1] }, x),
                _ => { let s = b.function(Function::Sigmoid, x); b.binary(Mul, s, x) }
            };
        }
        for output in outputs {
            let id = LayerId(output.index(b.0.layers.len()));
            b.output(id);
        }
        for fusion in Fusion::ALL {
            same(&b.0, fusion);
        }
    }
}

/// Indices up to 3000 are no 16-bit floats.
#[test]
fn what_reads_indices_keeps_32_bits() {
    let mut builder = Builder::default();
    let x = builder.input(&[1, 3000]);
    let numbers = builder.function(Function::Abs, x);
    let top = TopK { axis: 1, count: 5, largest: true, indices: true, floats: true };
    let indices = builder.add(Operator::TopK(top), &[x]);
    let moved = builder.add(Operator::Concat(Concat { axis: 1 }), &[indices, indices]);
    let next = builder.scalar(Add, moved, 1.0);
    builder.output(numbers);
    builder.output(next);
    let count = builder.0.layers.len();
    let halved = in_precisions(builder.0, &vec![Precision::Half; count]);
    let primitive = |name: &str| {
        halved.layers.iter().find(|layer| layer.name == name).map(|layer| layer.primitive().name())
    };
    assert_eq!(primitive("1"), Some("own-kernel-half-hwc-hwc"));
    for name in ["2", "3", "4"] {
        assert_eq!(primitive(name), Some("own-kernel-hwc-hwc"));
    }
}
