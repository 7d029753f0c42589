//! Every kernel in every form that `bind` gives it, called from one emitted crate.

mod lines;

use std::collections::BTreeSet;

use csdfc_input::app::partition::Partition;
use csdfc_input::app::resolve::{Application, Cnn, RowsChoice};
use csdfc_kernels::sources::SOURCES;
use csdfc_network::pass::Precision;
use csdfc_network::{Layer, LayerId, Network, NetworkOutput, Operand};
use csdfc_plan::check::primitives;
use csdfc_plan::format::{Layout, Quantization};
use csdfc_plan::operator::{
    ArgMax, BatchNorm, Binary, BinaryFunction, Cell, Concat, ConstantOperand, Conv, ConvTranspose,
    Coordinates, Crop, DepthToSpace, ElementWise, Filter, Function, GatherElements, Gemm, GridSample,
    InstanceNorm, Lrn, MaxUnpool, NonMaxSuppression, Operator, Pad, PadMode, Pool, PoolKind, Pre, Ratio,
    Recurrent, Reduce, ReduceFunction, Resize, ResizeMode, Rounding, SampleMode, SamplePadding, Scale, Slice,
    Softmax, SpaceToDepth, TopK, Transpose, Where,
};
use csdfc_plan::plan::StorageModel;
use csdfc_plan::shape::{Order, Shape};
use csdfc_runtime::bind::{self, Call, Form, Literal, Primitive, Site};
use csdfc_tests::quantized::{dense_block, narrow, quantized};
use csdfc_tests::{generate, random, tiled};

/// The forms in which kernels see tensors.
const ROWS: &str = "rows";
const ELEMENTS: &str = "elements";

/// Every kernel with the forms that it has, from the kernels' sources: the test fails until a network calls a new one.
fn kernels() -> BTreeSet<(String, &'static str)> {
    let mut all = BTreeSet::new();
    for line in SOURCES.iter().flat_map(|(_, text)| text.lines()) {
        for (kind, form) in [("RowKernel", ROWS), ("ElementKernel", ELEMENTS)] {
            // `impl<E: Element> RowKernel<E, E> for Conv {`
            let Some((start, name)) = line.split_once(" for ") else { continue };
            let of_kind = start.starts_with("impl") && start.split([' ', '<']).any(|word| word == kind);
            all.extend(of_kind.then(|| (name.trim_end_matches(" {").to_owned(), form)));
        }
    }
    all
}

/// Layers that read the same inputs, each of which is an output of the network.
#[derive(Clone)]
pub struct Group {
    pub name: &'static str,
    /// Inputs as they are, and as the layers see them.
    pub inputs: Vec<[Shape; 2]>,
    pub operators: Vec<Operator>,
}

fn image() -> Shape {
    Shape::image(4, 6, 8)
}

/// An input that the layers see as it is.
fn plain(shape: Shape) -> [Shape; 2] {
    [shape.clone(), shape]
}

/// A vector that is seen in this shape: no kernel can read it by rows.
fn view(shape: Shape) -> [Shape; 2] {
    [Shape::new([1, shape.elements()]), shape]
}

/// One network of images by rows, and one of vectors seen as images.
fn both(names: [&'static str; 2], count: usize, operators: Vec<Operator>) -> Vec<Group> {
    let group = |(name, input): (&'static str, [Shape; 2])| Group {
        name,
        inputs: vec![input; count],
        operators: operators.clone(),
    };
    names.into_iter().zip([plain(image()), view(image())]).map(group).collect()
}

fn slopes(dims: &[usize]) -> Option<Function> {
    Some(Function::PRelu { slope: dims.to_vec() })
}

fn functions() -> Vec<Operator> {
    use Function::*;
    let all = [
        Relu,
        Clip { min: Some(-0.5), max: None },
        Clip { min: None, max: Some(0.25) },
        LeakyRelu { alpha: 0.1 },
        PRelu { slope: vec![4, 1, 1] },
        PRelu { slope: vec![1] },
        Elu { alpha: 0.5 },
        Selu { alpha: 1.5, gamma: 1.1 },
        Sigmoid,
        HardSigmoid { alpha: 0.2, beta: 0.5 },
        HardSwish,
        Swish,
        Tanh,
        Erf,
        Gelu { tanh: false },
        Gelu { tanh: true },
        Mish,
        Softplus,
        Softsign,
        Sqrt,
        Exp,
        Log,
        Abs,
        Neg,
        Sign,
        Sin,
        Cos,
        Reciprocal,
        Floor,
        Ceil,
        Round,
        ThresholdedRelu { alpha: 0.25 },
    ];
    all.map(|function| Operator::ElementWise(ElementWise { function })).into()
}

const BINARY: [BinaryFunction; 12] = [
    BinaryFunction::Add,
    BinaryFunction::Sub,
    BinaryFunction::Mul,
    BinaryFunction::Div,
    BinaryFunction::Max,
    BinaryFunction::Min,
    BinaryFunction::Pow,
    BinaryFunction::Mod,
    BinaryFunction::Fmod,
    BinaryFunction::Equal,
    BinaryFunction::Greater,
    BinaryFunction::GreaterOrEqual,
];

fn binary(function: BinaryFunction, activation: Option<Function>) -> Operator {
    Operator::Binary(Binary { function, constant: None, activation })
}

pub fn constant(
    function: BinaryFunction,
    dims: &[usize],
    left: bool,
    activation: Option<Function>,
) -> Operator {
    let constant = Some(ConstantOperand { dims: dims.to_vec(), left, quantization: None });
    Operator::Binary(Binary { function, constant, activation })
}

fn windows() -> Vec<Group> {
    let conv = |groups, kernel, activation| {
        let (stride, dilation) = ([2, 1], [1, 1]);
        let pads = [1, 1, 0, 2];
        Operator::Conv(Conv {
            filters: 8,
            kernel,
            stride,
            dilation,
            pads,
            groups,
            bias: true,
            pre: None,
            residual: false,
            activation,
        })
    };
    let before = |filters, groups, affine, activation| {
        let (kernel, stride, dilation, pads) = ([3, 2], [1, 2], [1, 1], [1; 4]);
        let (pre, after) = (Some(Pre { affine, activation, quantization: None }), slopes(&[filters, 1, 1]));
        let conv = Conv {
            filters,
            kernel,
            stride,
            dilation,
            pads,
            groups,
            bias: false,
            pre,
            residual: false,
            activation: after,
        };
        Operator::Conv(conv)
    };
    let of_operands = |filters, kernel, pre, residual, activation| {
        let (stride, dilation, pads) = ([1, 1], [1, 1], [0; 4]);
        let (groups, bias) = (1, true);
        let conv = Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation };
        Operator::Conv(conv)
    };
    let norm = Some(Pre { affine: true, activation: Some(Function::Relu), quantization: None });
    let convolutions = vec![
        conv(1, [3, 3], Some(Function::Relu)),
        conv(4, [3, 2], slopes(&[8, 1, 1])),
        conv(2, [1, 1], slopes(&[8, 4, 11])),
        conv(1, [1, 1], Some(Function::Clip { min: Some(0.0), max: Some(6.0) })),
        before(4, 1, true, Some(Function::Relu)),
        before(4, 2, true, None),
        before(4, 4, true, Some(Function::Clip { min: Some(-0.5), max: Some(0.5) })),
        before(6, 1, false, Some(Function::Swish)),
    ];
    let transposed = |groups, activation| {
        Operator::ConvTranspose(ConvTranspose {
            filters: 6,
            kernel: [3, 2],
            stride: [2, 3],
            dilation: [1, 1],
            pads: [1, 0, 0, 1],
            output_padding: [1, 0],
            groups,
            bias: true,
            activation,
        })
    };
    let pool = |kind, ceil| {
        Operator::Pool(Pool {
            kind,
            kernel: [3, 2],
            stride: [2, 2],
            dilation: [1, 1],
            pads: [1, 0, 1, 1],
            ceil,
        })
    };
    let pools = vec![
        pool(PoolKind::Max, false),
        pool(PoolKind::Average { count_include_pad: false }, true),
        pool(PoolKind::Average { count_include_pad: true }, false),
        pool(PoolKind::Lp { p: 3 }, false),
        pool(PoolKind::MaxIndex, false),
    ];
    let scales = [Scale::Ratio(Ratio { over: 3, under: 2 }), Scale::Float(0.5)];
    let resize = |mode, coordinates| Operator::Resize(Resize { mode, coordinates, scales, size: [9, 4] });
    let nearest = |rounding| ResizeMode::Nearest { rounding };
    let filter =
        |cubic, antialias| ResizeMode::Filter(Filter { cubic, antialias, exclude_outside: antialias });
    let crop = Coordinates::TfCropAndResize(Crop { from: [-0.5, 0.0], to: [1.0, 0.75], outside: 0.5 });
    let resizes = vec![
        resize(ResizeMode::Linear, Coordinates::HalfPixel),
        resize(ResizeMode::Linear, Coordinates::AlignCorners),
        resize(nearest(Rounding::Floor), Coordinates::Asymmetric),
        resize(nearest(Rounding::Ceil), Coordinates::PytorchHalfPixel),
        resize(nearest(Rounding::RoundPreferCeil), Coordinates::TfHalfPixelForNn),
        resize(nearest(Rounding::RoundPreferFloor), Coordinates::HalfPixel),
        resize(filter(Some(-0.75), false), Coordinates::HalfPixelSymmetric),
        resize(filter(None, true), Coordinates::HalfPixel),
        resize(nearest(Rounding::Ceil), crop),
    ];
    let images = vec![plain(image())];
    let mut groups = vec![
        Group { name: "conv", inputs: images.clone(), operators: convolutions },
        Group {
            name: "conv_parts",
            inputs: vec![plain(image()), plain(Shape::image(5, 6, 8)), plain(image())],
            operators: vec![
                of_operands(8, [3, 2], None, false, Some(Function::Relu)),
                of_operands(4, [1, 1], norm.clone(), true, Some(Function::Swish)),
                of_operands(4, [1, 1], None, true, slopes(&[4, 6, 8])),
            ],
        },
        Group {
            name: "conv_added",
            inputs: vec![plain(Shape::image(2, 6, 8)), plain(image())],
            operators: vec![
                of_operands(4, [1, 1], norm, true, Some(Function::Relu)),
                of_operands(4, [1, 1], None, true, slopes(&[4, 1, 1])),
            ],
        },
        Group {
            name: "conv_transpose",
            inputs: images,
            operators: vec![transposed(1, None), transposed(2, slopes(&[6, 1, 1]))],
        },
    ];
    groups.extend(both(["pool_rows", "pool"], 1, pools));
    groups.extend(both(["resize_rows", "resize"], 1, resizes));
    groups
}

fn products() -> Vec<Group> {
    let gemm = |inner, transposed, activation| {
        Operator::Gemm(Gemm { inner, units: 5, transposed, bias: true, activation })
    };
    let grid_sample =
        |mode, padding| Operator::GridSample(GridSample { mode, padding, align_corners: false });
    let group = |name, inputs, operator| Group { name, inputs, operators: vec![operator] };
    vec![
        group("gemm_vector", vec![plain(Shape::new([1, 12]))], gemm(12, true, Some(Function::Relu))),
        group("gemm_image", vec![[image(), Shape::new([1, 192])]], gemm(192, false, None)),
        Group {
            name: "gemm_columns",
            inputs: vec![plain(image())],
            operators: vec![
                gemm(8, false, Some(Function::Tanh)),
                gemm(8, true, slopes(&[5])),
                gemm(8, true, slopes(&[1, 4, 6, 5])),
            ],
        },
        group("mat_mul", vec![plain(Shape::new([2, 3, 4])), plain(Shape::new([4, 5]))], Operator::MatMul),
        Group {
            name: "grid_sample",
            inputs: vec![plain(image()), plain(Shape::new([1, 3, 5, 2]))],
            operators: vec![
                grid_sample(SampleMode::Nearest, SamplePadding::Zeros),
                grid_sample(SampleMode::Linear, SamplePadding::Border),
                grid_sample(SampleMode::Cubic, SamplePadding::Reflection),
            ],
        },
        group(
            "gather_elements",
            vec![plain(image()), plain(Shape::image(4, 3, 8))],
            Operator::GatherElements(GatherElements { axis: 2 }),
        ),
        group(
            "max_unpool",
            vec![plain(image()), plain(image())],
            Operator::MaxUnpool(MaxUnpool { size: [9, 16] }),
        ),
        group(
            "suppression",
            vec![plain(Shape::new([1, 6, 4])), plain(Shape::new([1, 2, 6]))],
            Operator::NonMaxSuppression(NonMaxSuppression {
                most: 3,
                overlap: 0.25,
                score: Some(-0.5),
                centred: false,
                floats: false,
            }),
        ),
        group(
            "suppression_as_floats",
            vec![plain(Shape::new([1, 6, 4])), plain(Shape::new([1, 2, 6]))],
            Operator::NonMaxSuppression(NonMaxSuppression {
                most: 3,
                overlap: 0.25,
                score: Some(-0.5),
                centred: true,
                floats: true,
            }),
        ),
        group("recurrent_rnn", vec![plain(image())], recurrent(Cell::Rnn, 4, false)),
        group(
            "recurrent_gru",
            vec![plain(Shape::image(6, 5, 2)), plain(Shape::image(2, 1, 2))],
            recurrent(Cell::Gru { linear_before_reset: true }, 2, true),
        ),
        group(
            "recurrent_lstm",
            vec![plain(Shape::image(12, 5, 1))],
            recurrent(Cell::Lstm { input_forget: false, peepholes: true, memory: true }, 3, false),
        ),
        group("mat_mul_vectors", vec![plain(Shape::new([7])), plain(Shape::new([7, 2]))], Operator::MatMul),
        group("mat_mul_rows", vec![plain(image()), plain(Shape::image(4, 8, 3))], Operator::MatMul),
        group("mat_mul_image", vec![plain(image()), plain(Shape::new([8, 3]))], Operator::MatMul),
    ]
}

fn recurrent(cell: Cell, size: usize, initial: bool) -> Operator {
    let activations = [Function::Sigmoid, Function::Tanh, Function::LeakyRelu { alpha: 0.25 }];
    let activations = activations[..cell.functions()].to_vec();
    Operator::Recurrent(Recurrent { cell, size, activations, clip: Some(1.5), initial })
}

fn arithmetic() -> Vec<Group> {
    let mut pairs: Vec<Operator> = BINARY.map(|function| binary(function, None)).into();
    pairs.push(binary(BinaryFunction::Add, Some(Function::HardSwish)));
    pairs.push(binary(BinaryFunction::Mul, slopes(&[4, 1, 1])));
    let constants = vec![
        constant(BinaryFunction::Sub, &[4, 1, 1], true, None),
        constant(BinaryFunction::Sub, &[4, 1, 1], false, None),
        constant(BinaryFunction::Add, &[], false, Some(Function::Relu)),
        constant(BinaryFunction::Mul, &[6, 8], true, slopes(&[4, 6, 8])),
    ];
    let norm = |activation| Operator::BatchNorm(BatchNorm { channels: 4, activation });
    let norms = vec![norm(None), norm(Some(Function::Sigmoid)), norm(slopes(&[4, 6, 8]))];
    let per_image = vec![Operator::InstanceNorm(InstanceNorm { channels: 4, epsilon: 1e-5 }), {
        Operator::Lrn(Lrn { size: 3, alpha: 1e-4, beta: 0.75, bias: 1.0 })
    }];
    let mut groups = both(["functions_rows", "functions"], 1, functions());
    groups.extend(both(["pairs_rows", "pairs"], 2, pairs));
    groups.extend(both(["constants_rows", "constants"], 1, constants));
    groups.extend(both(["norms_rows", "norms"], 1, norms));
    let choice = |condition: Option<&[usize]>, x: Option<&[usize]>, y: Option<&[usize]>| {
        let [condition, x, y] = [condition, x, y].map(|dims| dims.map(<[usize]>::to_vec));
        Operator::Where(Where { condition, x, y })
    };
    groups.extend(both(["where_rows", "where"], 3, vec![choice(None, None, None)]));
    let with_constants =
        vec![choice(None, Some(&[4, 1, 1]), Some(&[])), choice(Some(&[6, 8]), None, Some(&[1]))];
    groups.extend(both(["chosen_rows", "chosen"], 1, with_constants));
    groups.extend(both(["per_image_rows", "per_image"], 1, per_image));
    groups.push(Group {
        name: "vectors",
        inputs: vec![plain(Shape::new([3, 5])), plain(Shape::new([3, 1]))],
        operators: vec![binary(BinaryFunction::Add, None), binary(BinaryFunction::Div, None)],
    });
    groups
}

fn layout() -> Vec<Group> {
    let pad = |mode, before: [i64; 4], after: [i64; 4]| {
        Operator::Pad(Pad { mode, before: before.into(), after: after.into() })
    };
    let pads = vec![
        pad(PadMode::Constant { value: Some(0.5) }, [0, 1, 1, 0], [0, 0, 2, 3]),
        pad(PadMode::Constant { value: None }, [0, 0, -1, 1], [0, 0, 0, -2]),
        pad(PadMode::Reflect, [0, 0, 2, 1], [0, 0, 1, 2]),
        pad(PadMode::Edge, [0, 0, 2, 1], [0, 0, 1, 2]),
    ];
    let slice = |starts: [usize; 4], steps: [i64; 4], lengths: [usize; 4]| {
        Operator::Slice(Slice { starts: starts.into(), steps: steps.into(), lengths: lengths.into() })
    };
    let slices = vec![
        slice([0, 1, 1, 0], [1, 2, 2, 3], [1, 2, 3, 3]),
        slice([0, 3, 5, 7], [1, -1, -2, -1], [1, 4, 3, 8]),
    ];
    let concats = (1..4).map(|axis| Operator::Concat(Concat { axis })).collect();
    let blocks = vec![
        Operator::DepthToSpace(DepthToSpace { block: 2, depth_first: true }),
        Operator::DepthToSpace(DepthToSpace { block: 2, depth_first: false }),
        Operator::SpaceToDepth(SpaceToDepth { block: 2 }),
    ];
    let transposes = [[0, 1, 3, 2], [0, 3, 2, 1]].map(|perm| Operator::Transpose(Transpose::new(perm)));
    let mut groups = both(["pad_rows", "pad"], 1, pads);
    groups.extend(both(["slice_rows", "slice"], 1, slices));
    groups.extend(both(["concat_rows", "concat"], 3, concats));
    groups.extend(both(["blocks_rows", "blocks"], 1, blocks));
    groups.push(Group { name: "transpose", inputs: vec![plain(image())], operators: transposes.into() });
    groups
}

fn reductions() -> Vec<Group> {
    use ReduceFunction::*;
    let all = [Mean, Max, Min, Sum, Prod, L1, L2, SumSquare, LogSum, LogSumExp, Lp { p: 3 }];
    let reduce = |function: &ReduceFunction, axes: &[usize], keep_dims| {
        Operator::Reduce(Reduce { function: function.clone(), axes: axes.into(), keep_dims })
    };
    let mut reduces: Vec<Operator> = all.iter().map(|function| reduce(function, &[1], true)).collect();
    reduces.extend(all.iter().map(|function| reduce(function, &[2, 3], true)));
    reduces.extend([reduce(&Mean, &[1, 3], true), reduce(&Sum, &[1, 2], false), reduce(&Max, &[3], true)]);
    let softmax = |axes: &[usize], log| Operator::Softmax(Softmax { axes: axes.into(), log });
    let softmaxes =
        vec![softmax(&[1], false), softmax(&[3], true), softmax(&[1, 3], false), softmax(&[2], false)];
    let arg_max = |axis, keep_dims, select_last, floats| {
        Operator::ArgMax(ArgMax { axis, keep_dims, select_last, floats })
    };
    let top_k =
        |axis, largest, indices, floats| Operator::TopK(TopK { axis, count: 2, largest, indices, floats });
    let searches = vec![
        arg_max(1, true, false, false),
        arg_max(3, true, true, true),
        arg_max(2, false, false, false),
        top_k(1, true, false, false),
        top_k(3, false, true, false),
        top_k(2, true, true, true),
    ];
    let mut groups = both(["reduce_rows", "reduce"], 1, reduces);
    groups.extend(both(["softmax_rows", "softmax"], 1, softmaxes));
    groups.extend(both(["arg_max_rows", "arg_max"], 1, searches));
    groups
}

/// Layers with primitives that csdfc never chooses without a measurement. They call all kernels of these primitives
/// with most of their parameters, and the conversions that they need.
fn by_primitives() -> Network {
    let functions = [Function::Relu, Function::Tanh, Function::Abs]
        .map(|function| Operator::ElementWise(ElementWise { function }));
    let conv = |kernel, stride, dilation, pads, activation| {
        let (filters, groups, bias, pre, residual) = (5, 1, true, None, false);
        let conv = Conv { filters, kernel, stride, dilation, pads, groups, bias, pre, residual, activation };
        Operator::Conv(conv)
    };
    let strided = |activation| conv([3, 2], [2, 1], [1, 2], [1, 0, 2, 1], activation);
    let windows = || conv([3, 2], [1, 1], [1, 1], [1, 0, 2, 1], Some(Function::Relu));
    let mut layers: Vec<(Operator, &str)> = functions
        .into_iter()
        .zip(["element-wise-hcw-hcw", "element-wise-chw-chw", "element-wise-hcw-hcw"])
        .chain([None, slopes(&[5, 1, 1])].map(|activation| (strided(activation), "im2row-strip-hwc-hwc")))
        .collect();
    layers.extend(
        [
            "direct-sum2d-chw-chw",
            "direct-row-hcw-chw",
            "direct-filters-hwc-hcw",
            "direct-dot-hwc-chw",
            "im2col-strip-chw-chw",
            "im2col-panels-hcw-hwc",
            "im2row-steps-chw-hwc",
            "mec-a-hwc-chw",
        ]
        .map(|name| (strided(Some(Function::Swish)), name)),
    );
    layers.extend(
        [
            "fft1d-kept-hwc-chw",
            "fft1d-made-chw-hcw",
            "fft2d-kept-hwc-chw",
            "fft2d-made-chw-chw",
            "direct-shift-chw-chw",
            "direct-columns-chw-hcw",
            "direct-pixel-hcw-hwc",
            "kn2row-lines-hcw-hcw",
            "kn2row-separate-chw-hcw",
            "kn2col-panels-hwc-hwc",
            "mec-b-chw-hcw",
            "mec-strip-hwc-hwc",
        ]
        .map(|name| (windows(), name)),
    );
    layers.extend(
        ["pointwise-steps-chw-chw", "pointwise-panels-hcw-hwc"]
            .map(|name| (conv([1, 1], [1, 1], [1, 1], [0; 4], None), name)),
    );
    layers.extend(
        [("winograd-f4x4-3x3-chw-hwc", [3, 3]), ("winograd-f2-5-hcw-hcw", [3, 5])]
            .map(|(name, kernel)| (conv(kernel, [1, 1], [1, 1], [1, 1, 0, 2], Some(Function::Tanh)), name)),
    );
    let (operators, names): (Vec<Operator>, Vec<&str>) = layers.into_iter().unzip();
    let group = Group { name: "primitives", inputs: vec![plain(image())], operators };
    let mut network = network(&group, true);
    let first = network.layers.len() - names.len();
    for (layer, name) in network.layers[first..].iter_mut().zip(names) {
        layer.primitive = Some(Primitive::find(name).expect("a primitive"));
    }
    csdfc_network::pass::legalise(network)
}

/// The network of a group. If `through`, its inputs pass through another layer and so come from rings; otherwise they
/// come from the caller.
pub fn network(group: &Group, through: bool) -> Network {
    let mut network = Network::default();
    let seen: Vec<Operand> = group
        .inputs
        .iter()
        .map(|[own, seen]| {
            let mut operand = generate::input(&mut network, own.clone());
            if through {
                let halve = constant(BinaryFunction::Mul, &[], false, None);
                operand = generate::push(&mut network, halve, vec![operand]).expect("a product");
            }
            Operand { shape: seen.clone(), ..operand }
        })
        .collect();
    for operator in &group.operators {
        let kind = operator.kind();
        let made = generate::push(&mut network, operator.clone(), seen.clone());
        let operand = made.unwrap_or_else(|| panic!("{}: {kind} does not fit", group.name));
        network.outputs.push(NetworkOutput::new(format!("out{}", operand.layer.0), operand));
    }
    network
}

/// An image that is quantized as a vector, which becomes numbers as an image.
fn views_of_integers() -> Network {
    let mut network = Network::default();
    let mut operand = generate::input(&mut network, image());
    let to = Quantization { scale: 0.031, zero_point: 129 };
    let vector = Shape::new([1, image().elements()]);
    let steps = [("quantize", vector, Some(to)), ("dequantize", image(), None)];
    for (name, shape, quantization) in steps {
        let layer = network.add(Layer {
            name: name.into(),
            onnx_nodes: Vec::new(),
            operator: Operator::Convert,
            inputs: vec![Operand { shape: shape.clone(), ..operand }],
            parameters: Vec::new(),
            output: format!("{name}:0"),
            shape: shape.clone(),
            primitive: Primitive::find(&format!("convert-{name}-hwc-hwc")),
            quantization,
        });
        operand = Operand { layer, shape };
    }
    network.outputs.push(NetworkOutput::new("y", operand));
    network
}

/// All layers that the networks are made of.
pub fn groups() -> Vec<Group> {
    [windows(), products(), arithmetic(), layout(), reductions(), lines::lines()].concat()
}

/// The networks of all groups, run by turns in one arena, layers by 1, 2 or all rows.
pub fn application() -> Application {
    let groups = groups();
    let mut cnns: Vec<Cnn> = Vec::new();
    let mut rows = std::collections::BTreeMap::new();
    for (c, group) in groups.iter().enumerate() {
        let network = network(group, c % 2 == 1);
        let [halved, mixed] = [Precision::Half, Precision::Mixed].map(|precision| {
            csdfc_network::pass::in_precisions(network.clone(), &vec![precision; network.layers.len()])
        });
        // Numbers from −4 to 4, in steps that no tensor is made of.
        let to = Some(Quantization { scale: 0.031, zero_point: 129 });
        let quantizations: Vec<_> =
            network.layers.iter().map(|layer| to.filter(|_| !layer.operator.makes_indices())).collect();
        let integers = csdfc_network::pass::integers(quantized(&network, &quantizations));
        let all =
            [(String::new(), network), ("_16".into(), halved), ("_m".into(), mixed), ("_8".into(), integers)];
        for (name, network) in all.map(|(end, network)| (format!("{}{end}", group.name), network)) {
            for id in network.ids() {
                let all = network.layer(id).rows();
                rows.insert((cnns.len(), id), [1, 2, all][c % 3].min(all) as u64);
            }
            let layers = network.ids().collect();
            let whole = Partition { name: name.clone(), layers, processor: "cpu".into(), schedule: None };
            cnns.push(generate::of_network(&name, network, vec![whole]));
        }
    }
    let dense =
        csdfc_network::pass::fuse_integers(dense_block(&mut random(1)), csdfc_network::pass::Fusion::Full);
    let [bytes, halves] = [false, true].map(|are_halves| narrow(&tiled::network(&mut random(2)), are_halves));
    for (name, network) in [
        ("primitives", by_primitives()),
        ("views_8", views_of_integers()),
        ("dense_8", dense),
        ("bytes", bytes),
        ("halves", halves),
    ] {
        let layers = network.ids().collect();
        let whole = Partition { name: name.into(), layers, processor: "cpu".into(), schedule: None };
        cnns.push(generate::of_network(name, network, vec![whole]));
    }
    let parallel = cnns.iter().map(|cnn| vec![cnn.name.clone()]).collect();
    generate::of_cnns(cnns, parallel, StorageModel::Tensors, RowsChoice::Layers(rows))
}

/// The call that computes a layer.
fn call(network: &Network, id: LayerId) -> Option<Call> {
    let layer = network.layer(id);
    if layer.is_input() {
        return None;
    }
    let inputs = layer.inputs.iter().map(|operand| (&network.layer(operand.layer).shape, &operand.shape));
    let mut site = Site::whole(&layer.operator, inputs, &layer.shape);
    [_, site.layout] = layer.primitive().layouts();
    site.elements = layer.primitive().elements();
    (site.ring_rows, site.quantization) = (layer.rows(), layer.quantization);
    for (operand, read) in site.inputs.iter_mut().zip(&layer.inputs) {
        let read = network.layer(read.layer);
        (operand.layout, operand.ring_rows) = (read.format().layout, read.rows());
        operand.quantization = read.quantization;
    }
    Some(bind::bind(layer.primitive(), &site).expect("a kernel"))
}

/// The side of a binary function on which its constant is, if it has one.
fn constant_first(call: &Call) -> Option<bool> {
    let Literal::Type { name: "Binary", fields, .. } = call.literal() else { return None };
    let first = fields.iter().any(|field| *field == ("constant_first", Literal::Scalar("true".into())));
    (call.constants.len() > usize::from(call.slopes)).then_some(first)
}

#[test]
fn every_kernel_is_called_from_a_crate() {
    let application = application();
    let (mut called, mut constants) = (BTreeSet::new(), BTreeSet::new());
    for cnn in &application.cnns {
        for call in cnn.network.ids().filter_map(|id| call(&cnn.network, id)) {
            let form = if matches!(call.form, Form::Rows(_)) { ROWS } else { ELEMENTS };
            called.insert((call.literal().type_name().to_owned(), form));
            if call.slopes {
                called.insert(("PReluInPlace".to_owned(), form));
            }
            constants.extend(constant_first(&call).map(|first| (form, first)));
        }
    }
    let all = kernels();
    assert!(all.len() > 30, "{all:?}");
    assert_eq!(called, all);
    let sides = [ROWS, ELEMENTS].map(|form| [(form, false), (form, true)]);
    assert_eq!(constants, sides.into_iter().flatten().collect());
    super::check(&application);
}

/// Of every layer, the primitives that compute it and the formats that these read and make are the same in the table of
/// `bind` and in the checker's own.
#[test]
fn both_tables_compute_the_same() {
    let mut computed = BTreeSet::new();
    for cnn in application().cnns {
        for layer in &cnn.network.layers {
            let inputs: Vec<&Shape> = layer.inputs.iter().map(|operand| &operand.shape).collect();
            // The rules on structure let no other tensor be HCW or CHW.
            let are_images = inputs.iter().all(|shape| shape.is_image());
            for row in primitives::all().filter(|row| are_images || row.layouts == [Layout::Hwc; 2]) {
                let bound = Primitive::find(row.name).expect("a primitive");
                let computes = (row.computes)(&layer.operator, &inputs);
                let (name, kind) = (row.name, layer.operator.kind());
                assert_eq!(computes, bound.computes(&layer.operator, &inputs), "{name}, {kind}");
                assert_eq!((row.layouts, row.elements), (bound.layouts(), bound.elements()), "{name}");
                computed.extend(computes.then_some(name));
            }
        }
    }
    assert!(computed.len() > 150, "{}", computed.len());
}
