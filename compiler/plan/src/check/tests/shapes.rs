//! Output shapes, by ONNX's definitions, and attributes that make none.

use crate::check::MAX_ELEMENTS;
use crate::check::shapes::output_shape;
use crate::operator::*;
use crate::shape::{Order, Shape};

/// The dimensions of what an operator makes of tensors of these dimensions, if it makes anything.
fn made(operator: &Operator, inputs: &[&[usize]]) -> Option<Vec<usize>> {
    let inputs: Vec<Shape> = inputs.iter().map(|dims| Shape::new(dims.to_vec())).collect();
    let inputs: Vec<&Shape> = inputs.iter().collect();
    output_shape(operator, &inputs, &Shape::new([1])).ok().map(|shape| shape.dims)
}

/// The output shape of an operator on one tensor.
fn of(operator: Operator, input: &[usize]) -> Option<Vec<usize>> {
    made(&operator, &[input])
}

fn conv() -> Conv {
    Conv {
        filters: 6,
        kernel: [3, 2],
        stride: [1, 1],
        dilation: [1, 1],
        pads: [0; 4],
        groups: 1,
        bias: true,
        pre: None,
        residual: false,
        activation: None,
    }
}

fn transposed() -> ConvTranspose {
    ConvTranspose {
        filters: 6,
        kernel: [3, 2],
        stride: [2, 3],
        dilation: [1, 1],
        pads: [0; 4],
        output_padding: [0; 2],
        groups: 1,
        bias: true,
        activation: None,
    }
}

#[test]
fn convolutions() {
    let c = |change: fn(&mut Conv)| {
        let mut conv = conv();
        change(&mut conv);
        of(Operator::Conv(conv), &[1, 4, 9, 8])
    };
    let some = |height, width| Some(vec![1, 6, height, width]);
    assert_eq!(c(|_| ()), some(7, 7));
    assert_eq!(c(|c| c.stride = [2, 3]), some(4, 3));
    assert_eq!(c(|c| c.dilation = [4, 7]), some(1, 1));
    assert_eq!(c(|c| c.dilation = [4, 8]), None);
    assert_eq!(c(|c| (c.dilation, c.pads) = ([4, 8], [0, 0, 0, 1])), some(1, 1));
    assert_eq!(c(|c| c.pads = [1, 2, 3, 4]), some(11, 13));
    assert_eq!(c(|c| c.groups = 2), some(7, 7));
    assert_eq!(c(|c| c.groups = 3), None);
    assert_eq!(c(|c| c.groups = 4), None);
    assert_eq!(c(|c| (c.groups, c.filters) = (4, 8)), Some(vec![1, 8, 7, 7]));
    for wrong in [
        (|c| c.filters = 0) as fn(&mut Conv),
        |c| c.groups = 0,
        |c| c.kernel = [0, 2],
        |c| c.stride = [0, 1],
        |c| c.dilation = [1, 0],
        |c| c.kernel = [3, 9],
        |c| c.pads = [(1 << 31) + 1, 0, 0, 0],
        |c| {
            c.pre = Some(Pre {
                affine: true,
                activation: Some(Function::PRelu { slope: vec![4, 1, 1] }),
                quantization: None,
            })
        },
        |c| c.activation = Some(Function::PRelu { slope: vec![4, 1, 1] }),
    ] {
        assert_eq!(c(wrong), None);
    }
    assert_eq!(c(|c| c.activation = Some(Function::PRelu { slope: vec![6, 1, 1] })), some(7, 7));
    // An attribute may be as large as is taken.
    assert_eq!(c(|c| c.stride = [1 << 31; 2]), some(1, 1));
    assert_eq!(c(|c| c.stride = [(1 << 31) + 1; 2]), None);
    assert_eq!(of(Operator::Conv(conv()), &[4, 9, 8]), None);
}

#[test]
fn convolutions_of_parts_and_sums() {
    let c = |change: fn(&mut Conv), inputs: &[&[usize]]| {
        let mut conv = conv();
        change(&mut conv);
        made(&Operator::Conv(conv), inputs)
    };
    let some = Some(vec![1, 6, 7, 7]);
    assert_eq!(c(|_| (), &[&[1, 4, 9, 8], &[1, 3, 9, 8]]), some);
    for wrong in [[2, 3, 9, 8], [1, 3, 8, 8], [1, 3, 9, 7]] {
        assert_eq!(c(|_| (), &[&[1, 4, 9, 8], &wrong]), None, "{wrong:?}");
    }
    assert_eq!(c(|c| c.groups = 2, &[&[1, 4, 9, 8], &[1, 2, 9, 8]]), None);
    assert_eq!(c(|c| c.residual = true, &[&[1, 4, 9, 8], &[1, 6, 7, 7]]), some);
    assert_eq!(c(|c| c.residual = true, &[&[1, 4, 9, 8], &[1, 2, 9, 8], &[1, 6, 7, 7]]), some);
    assert_eq!(c(|c| c.residual = true, &[&[1, 4, 9, 8], &[1, 6, 7, 8]]), None);
    assert_eq!(c(|c| c.residual = true, &[&[1, 4, 9, 8]]), None);
    let one = |c: &mut Conv| (c.residual, c.filters) = (true, 1);
    assert_eq!(c(one, &[&[1, 4, 9, 8], &[1, 3, 9, 8], &[1, 1, 7, 7]]), Some(vec![1, 1, 7, 7]));
    // Nothing is added to a depthwise convolution, but it is to one of groups.
    let grouped = |c: &mut Conv| (c.residual, c.groups) = (true, 6);
    assert_eq!(c(grouped, &[&[1, 6, 9, 8], &[1, 6, 7, 7]]), None);
    assert_eq!(c(grouped, &[&[1, 12, 9, 8], &[1, 6, 7, 7]]), some);
    let two = |c: &mut Conv| (c.residual, c.groups, c.filters) = (true, 3, 6);
    assert_eq!(c(two, &[&[1, 3, 9, 8], &[1, 6, 7, 7]]), some);
    // The parts of an image, and what is added, lie in the same order.
    let (first, last) = (Shape::image(4, 9, 8), Shape { dims: vec![1, 9, 8, 4], order: Order::ChannelsLast });
    let seen = Shape { dims: vec![1, 4, 9, 8], order: Order::ChannelsLast };
    assert!(output_shape(&Operator::Conv(conv()), &[&first, &first], &first).is_ok());
    assert!(output_shape(&Operator::Conv(conv()), &[&first, &seen], &first).is_err());
    assert!(output_shape(&Operator::Conv(conv()), &[&first, &last], &first).is_err());
}

#[test]
fn transposed_convolutions() {
    let c = |change: fn(&mut ConvTranspose)| {
        let mut conv = transposed();
        change(&mut conv);
        of(Operator::ConvTranspose(conv), &[1, 4, 5, 3])
    };
    let some = |height, width| Some(vec![1, 6, height, width]);
    assert_eq!(c(|_| ()), some(4 * 2 + 3, 2 * 3 + 2));
    assert_eq!(c(|c| c.dilation = [3, 5]), some(4 * 2 + 2 * 3 + 1, 2 * 3 + 5 + 1));
    assert_eq!(c(|c| c.pads = [1, 2, 3, 1]), some(11 - 4, 8 - 3));
    assert_eq!(c(|c| c.output_padding = [1, 2]), some(12, 10));
    assert_eq!(c(|c| c.pads = [5, 0, 5, 0]), some(1, 8));
    assert_eq!(c(|c| c.pads = [5, 0, 6, 0]), None);
    assert_eq!(c(|c| c.groups = 2), some(11, 8));
    assert_eq!(c(|c| c.groups = 3), None);
    assert_eq!(c(|c| c.groups = 4), None);
}

#[test]
fn pools() {
    let pool = |ceil, kernel, stride, dilation, pads| {
        let kind = PoolKind::Max;
        let pool =
            Pool { kind, kernel: [kernel; 2], stride: [stride; 2], dilation: [dilation; 2], pads, ceil };
        of(Operator::Pool(pool), &[1, 4, 7, 10]).map(|dims| [dims[2], dims[3]])
    };
    assert_eq!(pool(false, 3, 2, 1, [0; 4]), Some([3, 4]));
    assert_eq!(pool(true, 3, 2, 1, [0; 4]), Some([3, 5]));
    assert_eq!(pool(true, 2, 3, 1, [0; 4]), Some([3, 4]));
    // A last window would start beyond the image and its padding before.
    assert_eq!(pool(true, 1, 3, 1, [0, 0, 2, 2]), Some([3, 4]));
    assert_eq!(pool(true, 4, 4, 1, [1, 1, 2, 2]), Some([2, 3]));
    assert_eq!(pool(true, 4, 4, 1, [2, 2, 1, 1]), Some([3, 3]));
    assert_eq!(pool(true, 2, 4, 1, [1, 1, 2, 2]), Some([3, 3]));
    assert_eq!(pool(false, 3, 1, 3, [0; 4]), Some([1, 4]));
    assert_eq!(pool(false, 3, 1, 4, [0; 4]), None);
}

#[test]
fn products() {
    let gemm =
        |inner| Operator::Gemm(Gemm { inner, units: 5, transposed: false, bias: false, activation: None });
    assert_eq!(of(gemm(8), &[2, 3, 8]), Some(vec![2, 3, 5]));
    assert_eq!(of(gemm(3), &[2, 3, 8]), None);
    let product = |a: &[usize], b: &[usize]| made(&Operator::MatMul, &[a, b]);
    assert_eq!(product(&[2, 3], &[3, 4]), Some(vec![2, 4]));
    assert_eq!(product(&[2, 3], &[4, 3]), None);
    assert_eq!(product(&[5, 1, 2, 3], &[7, 3, 4]), Some(vec![5, 7, 2, 4]));
    assert_eq!(product(&[5, 2, 3], &[7, 3, 4]), None);
    assert_eq!(product(&[3], &[3, 4]), Some(vec![4]));
    assert_eq!(product(&[2, 3], &[3]), Some(vec![2]));
    assert_eq!(product(&[], &[3]), None);
    assert_eq!(product(&[3], &[]), None);
}

#[test]
fn element_by_element() {
    let constant =
        |dims: &[usize]| Some(ConstantOperand { dims: dims.to_vec(), left: false, quantization: None });
    let add =
        |constant| Operator::Binary(Binary { function: BinaryFunction::Add, constant, activation: None });
    assert_eq!(made(&add(None), &[&[2, 1, 4], &[3, 1]]), Some(vec![2, 3, 4]));
    assert_eq!(made(&add(None), &[&[2, 3], &[2]]), None);
    assert_eq!(of(add(constant(&[3, 1])), &[4]), Some(vec![3, 4]));
    assert_eq!(of(add(constant(&[3])), &[4]), None);
    assert_eq!(of(add(None), &[4]), None);
    assert_eq!(made(&add(constant(&[4])), &[&[4], &[4]]), None);
    let norm = |channels| Operator::BatchNorm(BatchNorm { channels, activation: None });
    assert_eq!(of(norm(4), &[1, 4, 3, 3]), Some(vec![1, 4, 3, 3]));
    assert_eq!(of(norm(3), &[1, 4, 3, 3]), None);
    let norm = |channels| Operator::InstanceNorm(InstanceNorm { channels, epsilon: 1e-5 });
    assert_eq!(of(norm(4), &[1, 4, 3]), Some(vec![1, 4, 3]));
    assert_eq!(of(norm(4), &[1, 4]), None);
    let relu = |slope: &[usize]| {
        Operator::ElementWise(ElementWise { function: Function::PRelu { slope: slope.to_vec() } })
    };
    assert_eq!(of(relu(&[4, 1, 1]), &[1, 4, 3, 3]), Some(vec![1, 4, 3, 3]));
    assert_eq!(of(relu(&[2, 1, 1]), &[1, 4, 3, 3]), None);
    assert_eq!(of(relu(&[2, 4, 3, 3]), &[1, 4, 3, 3]), None);
}

/// The output lies in the same order as the operands, if all of them have that order and as many dimensions.
#[test]
fn order_is_kept() {
    let last = Shape { dims: vec![1, 3, 4, 2], order: Order::ChannelsLast };
    let first = Shape::new([1, 3, 4, 2]);
    let add = |constant: Option<&[usize]>, inputs: &[&Shape]| {
        let constant =
            constant.map(|dims| ConstantOperand { dims: dims.to_vec(), left: false, quantization: None });
        let add = Operator::Binary(Binary { function: BinaryFunction::Add, constant, activation: None });
        output_shape(&add, inputs, &last).unwrap().order
    };
    assert_eq!(add(Some(&[2]), &[&last]), Order::ChannelsLast);
    assert_eq!(add(Some(&[5, 1, 3, 4, 2]), &[&last]), Order::ChannelsFirst);
    assert_eq!(add(None, &[&last, &last]), Order::ChannelsLast);
    assert_eq!(add(None, &[&last, &first]), Order::ChannelsFirst);
    assert_eq!(add(None, &[&first, &last]), Order::ChannelsFirst);
    let concat =
        |inputs: &[&Shape]| output_shape(&Operator::Concat(Concat { axis: 3 }), inputs, &last).unwrap().order;
    assert_eq!(concat(&[&last, &last]), Order::ChannelsLast);
    assert_eq!(concat(&[&first, &last]), Order::ChannelsFirst);
    assert_eq!(
        add(None, &[&last, &Shape { dims: vec![4, 2], order: Order::ChannelsLast }]),
        Order::ChannelsFirst
    );
}

#[test]
fn axes() {
    let softmax = |axes: &[usize]| Operator::Softmax(Softmax { axes: axes.to_vec(), log: false });
    assert_eq!(of(softmax(&[0, 2]), &[2, 3, 4]), Some(vec![2, 3, 4]));
    for wrong in [&[3][..], &[1, 1], &[2, 0]] {
        assert_eq!(of(softmax(wrong), &[2, 3, 4]), None, "{wrong:?}");
    }
    let sum = |axes: &[usize], keep_dims| {
        Operator::Reduce(Reduce { function: ReduceFunction::Sum, axes: axes.to_vec(), keep_dims })
    };
    assert_eq!(of(sum(&[1], true), &[2, 3, 4]), Some(vec![2, 1, 4]));
    assert_eq!(of(sum(&[0, 1], false), &[2, 3, 4]), Some(vec![4]));
    assert_eq!(of(sum(&[3], true), &[2, 3, 4]), None);
    let concat = |axis, inputs: &[&[usize]]| made(&Operator::Concat(Concat { axis }), inputs);
    assert_eq!(concat(1, &[&[2, 3], &[2, 4], &[2, 1]]), Some(vec![2, 8]));
    assert_eq!(concat(0, &[&[2, 3], &[2, 4]]), None);
    assert_eq!(concat(2, &[&[2, 3], &[2, 3]]), None);
    assert_eq!(concat(1, &[&[2, 3], &[2, 3, 1]]), None);
    let transpose = |perm: &[usize]| of(Operator::Transpose(Transpose::new(perm)), &[2, 3, 4]);
    assert_eq!(transpose(&[2, 0, 1]), Some(vec![4, 2, 3]));
    assert_eq!(transpose(&[2, 0]), None);
    assert_eq!(transpose(&[2, 0, 0]), None);
    let last = |perm: &[usize], dims: &[usize]| {
        of(Operator::Transpose(Transpose { order: Order::ChannelsLast, ..Transpose::new(perm) }), dims)
    };
    assert_eq!(last(&[0, 2, 1, 3], &[1, 2, 3, 4]), Some(vec![1, 3, 2, 4]));
    // No images.
    assert_eq!(last(&[1, 2, 0, 3], &[1, 2, 3, 4]), None);
    assert_eq!(last(&[0, 2, 1], &[1, 2, 3]), None);
}

#[test]
fn cut_and_padded() {
    let slice = |start, step, length| {
        let (starts, steps, lengths) = (vec![0, start], vec![1, step], vec![2, length]);
        of(Operator::Slice(Slice { starts, steps, lengths }), &[2, 7])
    };
    assert_eq!(slice(1, 2, 3), Some(vec![2, 3]));
    assert_eq!(slice(0, 2, 4), Some(vec![2, 4]));
    assert_eq!(slice(1, 2, 4), None);
    assert_eq!(slice(6, -3, 3), Some(vec![2, 3]));
    assert_eq!(slice(5, -3, 3), None);
    assert_eq!(slice(7, 1, 1), None);
    assert_eq!(slice(0, 0, 2), None);
    assert_eq!(slice(0, 1, 0), None);
    let short = Slice { starts: vec![0], steps: vec![1], lengths: vec![2] };
    assert_eq!(of(Operator::Slice(short.clone()), &[2]), Some(vec![2]));
    for wrong in [
        Slice { starts: vec![0, 0], ..short.clone() },
        Slice { steps: vec![1, 1], ..short.clone() },
        Slice { lengths: vec![2, 2], ..short.clone() },
    ] {
        assert_eq!(of(Operator::Slice(wrong), &[2]), None);
    }
    let constant = || PadMode::Constant { value: Some(0.0) };
    let pad =
        |mode, before, after| of(Operator::Pad(Pad { mode, before: vec![before], after: vec![after] }), &[5]);
    assert_eq!(pad(constant(), 2, 9), Some(vec![16]));
    assert_eq!(pad(constant(), -2, -2), Some(vec![1]));
    assert_eq!(pad(constant(), -2, -3), None);
    assert_eq!(pad(constant(), 9, -5), None);
    assert_eq!(pad(PadMode::Edge, 9, 9), Some(vec![23]));
    assert_eq!(pad(PadMode::Reflect, 4, 4), Some(vec![13]));
    assert_eq!(pad(PadMode::Reflect, 5, 0), None);
    assert_eq!(pad(PadMode::Reflect, 0, 5), None);
    assert_eq!(pad(PadMode::Reflect, 3, -1), Some(vec![7]));
    assert_eq!(pad(PadMode::Reflect, -1, 4), None);
    assert_eq!(pad(PadMode::Reflect, 0, -4), Some(vec![1]));
    let other_rank = |before: usize, after: usize| Pad {
        mode: PadMode::Edge,
        before: vec![1; before],
        after: vec![1; after],
    };
    assert_eq!(of(Operator::Pad(other_rank(2, 1)), &[5]), None);
    assert_eq!(of(Operator::Pad(other_rank(1, 2)), &[5]), None);
}

#[test]
fn blocks_and_sizes() {
    let to_space = |block, channels| {
        of(Operator::DepthToSpace(DepthToSpace { block, depth_first: true }), &[1, channels, 2, 3])
    };
    assert_eq!(to_space(3, 18), Some(vec![1, 2, 6, 9]));
    assert_eq!(to_space(3, 15), None);
    assert_eq!(to_space(3, 12), None);
    assert_eq!(to_space(0, 15), None);
    let to_depth =
        |block, height, width| of(Operator::SpaceToDepth(SpaceToDepth { block }), &[1, 2, height, width]);
    assert_eq!(to_depth(3, 6, 9), Some(vec![1, 18, 2, 3]));
    assert_eq!(to_depth(3, 7, 9), None);
    assert_eq!(to_depth(3, 6, 8), None);
    // A tensor may have as many elements as can be counted.
    let most = MAX_ELEMENTS as usize;
    let gemm =
        |units| Operator::Gemm(Gemm { inner: 1, units, transposed: false, bias: false, activation: None });
    assert_eq!(of(gemm(1 << 24), &[most >> 24, 1]), Some(vec![most >> 24, 1 << 24]));
    assert_eq!(of(gemm(1 << 24), &[(most >> 24) + 1, 1]), None);
    assert_eq!(of(gemm(usize::MAX), &[1, 1]), None);
}
