//! Shapes against the ONNX specification's examples and published networks.

use csdfc_plan::operator::{
    Binary, BinaryFunction, Concat, ConstantOperand, Conv, ConvTranspose, Function, Gemm, Operator, Pad,
    PadMode, Pool, PoolKind, Pre, Reduce, ReduceFunction, Slice, Transpose,
};
use csdfc_plan::shape::{Order, Shape};

use super::facts::MAX_ELEMENTS;
use super::{output_shape, parameter_dims};

/// The output's dimensions, or the error's text.
fn shape(operator: Operator, inputs: &[&[usize]]) -> String {
    let inputs: Vec<Shape> = inputs.iter().map(|dims| Shape::new(*dims)).collect();
    match output_shape(&operator, &inputs) {
        Ok(shape) => shape.to_string(),
        Err(error) => error.to_string(),
    }
}

fn conv(filters: usize, kernel: usize, stride: usize, dilation: usize, pad: usize, groups: usize) -> Conv {
    Conv {
        filters,
        kernel: [kernel; 2],
        stride: [stride; 2],
        dilation: [dilation; 2],
        pads: [pad; 4],
        groups,
        bias: true,
        pre: None,
        residual: false,
        activation: None,
    }
}

fn pool(kernel: usize, stride: usize, pads: [usize; 4], ceil: bool) -> Operator {
    let dilation = [1, 1];
    Operator::Pool(Pool {
        kind: PoolKind::Max,
        kernel: [kernel; 2],
        stride: [stride; 2],
        dilation,
        pads,
        ceil,
    })
}

#[test]
fn convolution() {
    let check = |c: Conv, x: &[usize], expected: &str| assert_eq!(shape(Operator::Conv(c), &[x]), expected);
    check(conv(64, 7, 2, 1, 3, 1), &[1, 3, 224, 224], "1×64×112×112");
    check(conv(8, 3, 1, 2, 2, 4), &[1, 4, 10, 9], "1×8×10×9");
    check(conv(8, 3, 1, 2, 0, 1), &[1, 4, 4, 9], "kernel height 5 is larger than the padded input's 4");
    check(conv(8, 3, 1, 1, 0, 3), &[1, 4, 9, 9], "4 input channels cannot be divided into 3 groups");
    check(conv(7, 3, 1, 1, 0, 2), &[1, 4, 9, 9], "7 filters cannot be divided into 2 groups");
    check(conv(8, 3, 0, 1, 0, 1), &[1, 4, 9, 9], "stride height is 0");
    check(conv(8, 3, 1, 1, 0, 1), &[4, 9, 9], "conv needs a tensor of rank 4, got 4×9×9");
    check(conv(8, usize::MAX, 1, 1, 0, 1), &[1, 4, 9, 9], "kernel 18446744073709551615 is out of range");
    check(
        conv(8, 1, 1, 1, 1 << 30, 1),
        &[1, 4, 9, 9],
        "a tensor of shape 1×8×2147483657×2147483657 has more than 68719476736 elements",
    );
}

/// The image of a convolution may come in parts, and something may be added.
#[test]
fn convolution_of_several_operands() {
    let check = |c: Conv, inputs: &[&[usize]], expected: &str| {
        assert_eq!(shape(Operator::Conv(c), inputs), expected);
    };
    let plain = conv(8, 3, 2, 1, 1, 1);
    let adds = |groups| Conv { residual: true, ..conv(8, 3, 2, 1, 1, groups) };
    let (x, y, added): (&[usize], &[usize], &[usize]) = (&[1, 3, 9, 7], &[1, 5, 9, 7], &[1, 8, 5, 4]);
    check(plain.clone(), &[x, y, x], "1×8×5×4");
    check(plain.clone(), &[x, y, added], "1×3×9×7 and 1×8×5×4 are no parts of one image");
    check(plain, &[x, &[5, 9, 7]], "conv needs a tensor of rank 4, got 5×9×7");
    check(adds(1), &[x, y, added], "1×8×5×4");
    check(adds(1), &[x, y, x], "1×3×9×7 cannot be added to a conv of shape 1×8×5×4");
    check(adds(1), &[added], "conv takes 2 inputs, got 1");
    check(adds(2), &[&[1, 4, 9, 7], added], "1×8×5×4");
    check(adds(2), &[&[1, 4, 9, 7], &[1, 4, 9, 7], added], "conv takes 2 inputs, got 3");
    check(adds(8), &[&[1, 8, 9, 7], added], "nothing can be added to a depthwise conv");
    let half = [1, MAX_ELEMENTS / 2 + 1, 1, 1];
    let wide = format!("a tensor of shape 1×{}×1×1 has more than {MAX_ELEMENTS} elements", MAX_ELEMENTS + 2);
    check(conv(8, 1, 1, 1, 0, 1), &[&half, &half], &wide);
    let parts = [x, y, added].map(Shape::new);
    let expected = [vec![8, 8, 3, 3], vec![8], vec![8], vec![8], vec![8, 1, 1]];
    let adds = Conv {
        pre: Some(Pre { affine: true, ..Pre::default() }),
        activation: Some(Function::PRelu { slope: vec![8, 1, 1] }),
        ..adds(1)
    };
    assert_eq!(parameter_dims(&Operator::Conv(adds), &parts), expected);
}

#[test]
fn transposed_convolution() {
    let check = |stride, pads, added, expected: &str| {
        let conv = ConvTranspose {
            filters: 2,
            kernel: [3; 2],
            stride,
            dilation: [1; 2],
            pads,
            output_padding: added,
            groups: 1,
            bias: false,
            activation: None,
        };
        assert_eq!(shape(Operator::ConvTranspose(conv), &[&[1, 1, 3, 3]]), expected);
    };
    // The three examples of the ONNX specification of ConvTranspose.
    check([1, 1], [0; 4], [0, 0], "1×2×5×5");
    check([3, 2], [0; 4], [1, 1], "1×2×10×8");
    check([3, 2], [1, 2, 1, 2], [0, 0], "1×2×7×3");
    check([1, 1], [3; 4], [0, 0], "output height would be -1");
}

#[test]
fn pooling_rounds_as_onnx_runtime() {
    assert_eq!(shape(pool(3, 2, [0; 4], true), &[&[1, 1, 4, 4]]), "1×1×2×2");
    assert_eq!(shape(pool(3, 2, [0; 4], false), &[&[1, 1, 4, 4]]), "1×1×1×1");
    // ONNX test maxpool_2d_ceil_output_size_reduce_by_one: 2×2, kernel 1, stride 2.
    assert_eq!(shape(pool(1, 2, [0; 4], true), &[&[1, 1, 2, 2]]), "1×1×1×1");
    assert_eq!(shape(pool(3, 2, [1; 4], true), &[&[1, 1, 112, 112]]), "1×1×57×57");
    assert_eq!(shape(pool(2, 2, [0, 0, 1, 1], true), &[&[1, 1, 4, 4]]), "1×1×2×2");
    assert_eq!(
        shape(pool(2, 2, [2, 0, 0, 0], false), &[&[1, 1, 4, 4]]),
        "pool padding in height is not smaller than the window's 2"
    );
}

#[test]
fn dense() {
    let gemm = |inner| Gemm { inner, units: 10, transposed: true, bias: true, activation: None };
    assert_eq!(shape(Operator::Gemm(gemm(512)), &[&[1, 512]]), "1×10");
    assert_eq!(shape(Operator::Gemm(gemm(5)), &[&[1, 2, 4, 5]]), "1×2×4×10");
    assert_eq!(shape(Operator::Gemm(gemm(6)), &[&[1, 5]]), "gemm needs a last dimension of 6, got 1×5");
    assert_eq!(parameter_dims(&Operator::Gemm(gemm(5)), &[]), [vec![10, 5], vec![10]]);
    assert_eq!(shape(Operator::MatMul, &[&[2, 3], &[3, 4]]), "2×4");
    assert_eq!(shape(Operator::MatMul, &[&[5, 1, 2, 3], &[7, 3, 4]]), "5×7×2×4");
    assert_eq!(shape(Operator::MatMul, &[&[3], &[7, 3, 4]]), "7×4");
    assert_eq!(shape(Operator::MatMul, &[&[7, 2, 3], &[3]]), "7×2");
    assert_eq!(shape(Operator::MatMul, &[&[3], &[3]]), "scalar");
    assert_eq!(
        shape(Operator::MatMul, &[&[2, 3], &[2, 3]]),
        "mat_mul of 2×3 and 2×3: the inner dimensions 3 and 2 differ"
    );
}

#[test]
fn binary_broadcasts() {
    let add =
        |constant| Operator::Binary(Binary { function: BinaryFunction::Add, constant, activation: None });
    assert_eq!(shape(add(None), &[&[1, 3, 4, 5], &[3, 1, 1]]), "1×3×4×5");
    assert_eq!(shape(add(None), &[&[1, 3, 1, 1], &[1, 1, 4, 5]]), "1×3×4×5");
    assert_eq!(shape(add(None), &[&[2, 3], &[3, 2]]), "shapes 2×3 and 3×2 do not broadcast");
    let dims = Some(ConstantOperand { dims: vec![3, 1, 1], left: false, quantization: None });
    assert_eq!(shape(add(dims), &[&[1, 3, 4, 5]]), "1×3×4×5");
    let last = Shape { dims: vec![1, 4, 5, 3], order: Order::ChannelsLast };
    let sum = output_shape(&add(None), &[last.clone(), last.clone()]).unwrap();
    assert_eq!(sum, last);
    assert!(output_shape(&add(None), &[last, Shape::new([3])]).is_err());
}

#[test]
fn moving_elements() {
    let concat = |axis| Operator::Concat(Concat { axis });
    assert_eq!(shape(concat(1), &[&[1, 3, 4, 4], &[1, 5, 4, 4]]), "1×8×4×4");
    assert_eq!(
        shape(concat(1), &[&[1, 3, 4, 4], &[1, 5, 4, 3]]),
        "1×3×4×4 and 1×5×4×3 cannot be concatenated along dimension 1"
    );
    let slice = |start, step, length| {
        Operator::Slice(Slice { starts: vec![start], steps: vec![step], lengths: vec![length] })
    };
    assert_eq!(shape(slice(1, 3, 3), &[&[8]]), "3");
    assert_eq!(shape(slice(7, -7, 2), &[&[8]]), "2");
    assert_eq!(shape(slice(1, 3, 4), &[&[8]]), "slice ends at 10 of 8 in dimension 0");
    assert_eq!(
        shape(slice(1, i64::MIN, 2), &[&[8]]),
        "slice ends at -9223372036854775807 of 8 in dimension 0"
    );
    let pad = |mode, before, after| Operator::Pad(Pad { mode, before: vec![before], after: vec![after] });
    assert_eq!(shape(pad(PadMode::Edge, 10, -2), &[&[4]]), "12");
    assert_eq!(shape(pad(PadMode::Reflect, 4, 0), &[&[4]]), "reflecting pads of dimension 0 must be below 4");
    assert_eq!(shape(pad(PadMode::Edge, i64::MIN, i64::MIN), &[&[4]]), "pad crops all of dimension 0 of 4");
    let transpose = |perm: &[usize]| Operator::Transpose(Transpose::new(perm));
    assert_eq!(shape(transpose(&[0, 2, 1]), &[&[1, 2, 3]]), "1×3×2");
    let last = Transpose { order: Order::ChannelsLast, ..Transpose::new([0, 2, 1]) };
    assert_eq!(
        shape(Operator::Transpose(last), &[&[1, 2, 3]]),
        "1×3×2 is no image, so its channels cannot be last"
    );
    assert_eq!(
        shape(transpose(&[0, 2, 2]), &[&[1, 2, 3]]),
        "[0, 2, 2] does not permute the dimensions of 1×2×3"
    );
    let mean = |axes: &[usize], keep_dims| {
        Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: axes.to_vec(), keep_dims })
    };
    assert_eq!(shape(mean(&[2, 3], true), &[&[1, 8, 4, 4]]), "1×8×1×1");
    assert_eq!(shape(mean(&[2, 3], false), &[&[1, 8, 4, 4]]), "1×8");
    assert_eq!(shape(mean(&[4], false), &[&[1, 8, 4, 4]]), "a tensor of shape 1×8×4×4 has no dimension 4");
}
