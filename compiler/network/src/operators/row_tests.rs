//! Row dependence and multiplications of operators.

use csdfc_plan::operator::{
    Binary, BinaryFunction, Concat, Conv, ConvTranspose, Coordinates, Crop, ElementWise, Filter, Function,
    Gemm, InstanceNorm, Lrn, Operator, Pad, PadMode, Pool, PoolKind, Ratio, Reduce, ReduceFunction, Resize,
    ResizeMode, Rounding, Scale, Slice, Softmax, SpaceToDepth, Transpose,
};
use csdfc_plan::shape::{Order, Shape};
use proptest::prelude::*;

use super::facts::RowAccess;
use super::rows::acquire_release;
use super::{macs, output_shape, parameter_dims, row_access};

/// Rows read for each output row, `-` for none; or the window.
fn access(operator: &Operator, inputs: &[Shape], index: usize) -> String {
    let output = output_shape(operator, inputs).unwrap();
    match row_access(operator, &inputs[index], inputs, &output, index) {
        RowAccess::Window { kernel, stride, dilation, top } => format!("{kernel}/{stride}/{dilation}/{top}"),
        RowAccess::Rows(table) => {
            let rows = table.iter().map(|rows| match rows.len() {
                0 => "-".into(),
                1 => rows.start.to_string(),
                _ => format!("{}..{}", rows.start, rows.end),
            });
            rows.collect::<Vec<_>>().join(" ")
        }
        RowAccess::Whole => "whole".into(),
    }
}

fn check(operator: &Operator, inputs: &[Shape], expected: &[&str]) {
    let found: Vec<String> = (0..inputs.len()).map(|index| access(operator, inputs, index)).collect();
    assert_eq!(found, expected);
}

fn conv(filters: usize, kernel: usize, stride: usize, groups: usize) -> Operator {
    let pads = [kernel / 2; 4];
    let (kernel, stride, dilation) = ([kernel; 2], [stride; 2], [1; 2]);
    Operator::Conv(Conv {
        filters,
        kernel,
        stride,
        dilation,
        pads,
        groups,
        bias: true,
        pre: None,
        residual: false,
        activation: None,
    })
}

fn pad(mode: PadMode, before: i64, after: i64) -> Operator {
    Operator::Pad(Pad { mode, before: vec![0, 0, before, 0], after: vec![0, 0, after, 0] })
}

fn resize(mode: ResizeMode, coordinates: Coordinates, scale: f32, height: usize) -> Operator {
    Operator::Resize(Resize { mode, coordinates, scales: [scale, 1.0].map(Scale::Float), size: [height, 5] })
}

#[test]
fn windows() {
    let x = Shape::image(4, 8, 5);
    check(&conv(4, 3, 2, 1), std::slice::from_ref(&x), &["3/2/1/1"]);
    let (kernel, stride, pads) = ([8, 5], [1, 1], [0; 4]);
    let pool = Pool { kind: PoolKind::Lp { p: 2 }, kernel, stride, dilation: [1; 2], pads, ceil: false };
    check(&Operator::Pool(pool), std::slice::from_ref(&x), &["8/1/1/0"]);
    check(&Operator::SpaceToDepth(SpaceToDepth { block: 1 }), std::slice::from_ref(&x), &["1/1/1/0"]);
    check(&pad(PadMode::Constant { value: None }, 2, 1), std::slice::from_ref(&x), &["1/1/1/2"]);
    let slice = |start, step, length| {
        Operator::Slice(Slice {
            starts: vec![0, 0, start, 0],
            steps: vec![1, 1, step, 1],
            lengths: vec![1, 4, length, 5],
        })
    };
    check(&slice(2, 3, 2), std::slice::from_ref(&x), &["1/3/1/-2"]);
    check(&slice(5, -2, 2), std::slice::from_ref(&x), &["3..6 3..6"]);
}

#[test]
fn row_local_or_whole() {
    let x = Shape::image(4, 8, 5);
    let add = Operator::Binary(Binary { function: BinaryFunction::Mul, constant: None, activation: None });
    check(&add, &[x.clone(), Shape::image(4, 1, 1)], &["1/1/1/0", "whole"]);
    check(&add, &[Shape::new([4, 8, 5]), x.clone()], &["whole", "1/1/1/0"]);
    check(&add, &[Shape::image(4, 1, 1), Shape::image(4, 1, 5)], &["1/1/1/0", "1/1/1/0"]);
    let softmax = |axes: &[usize]| Operator::Softmax(Softmax { axes: axes.to_vec(), log: false });
    let last = Shape { dims: vec![1, 8, 5, 4], order: Order::ChannelsLast };
    check(&softmax(&[3]), std::slice::from_ref(&last), &["1/1/1/0"]);
    check(&softmax(&[1]), std::slice::from_ref(&last), &["whole"]);
    check(&softmax(&[1]), std::slice::from_ref(&x), &["1/1/1/0"]);
    let mean = |axes: &[usize], keep_dims| {
        Operator::Reduce(Reduce { function: ReduceFunction::Mean, axes: axes.to_vec(), keep_dims })
    };
    check(&mean(&[1], true), std::slice::from_ref(&x), &["1/1/1/0"]);
    check(&mean(&[1], false), std::slice::from_ref(&x), &["whole"]);
    check(&mean(&[2, 3], true), std::slice::from_ref(&x), &["whole"]);
    check(&Operator::MatMul, &[x.clone(), Shape::image(4, 5, 7)], &["1/1/1/0", "whole"]);
    let gemm = Gemm { inner: 5, units: 3, transposed: false, bias: false, activation: None };
    check(&Operator::Gemm(gemm), std::slice::from_ref(&x), &["1/1/1/0"]);
}

/// A Transpose keeps the rows of an image, if they stay rows.
#[test]
fn transposes() {
    let (first, last) = (Shape::image(4, 8, 5), Shape { dims: vec![1, 4, 8, 5], order: Order::ChannelsLast });
    let read = |x: &Shape, perm: [usize; 4], order| {
        let transpose = Transpose { order, ..Transpose::new(perm) };
        access(&Operator::Transpose(transpose), std::slice::from_ref(x), 0)
    };
    let rows = "1/1/1/0";
    for (perm, from_first, from_last) in [
        ([0, 3, 2, 1], [rows, "whole"], ["whole", "whole"]),
        ([0, 2, 1, 3], ["whole", rows], [rows, "whole"]),
        ([0, 1, 3, 2], ["whole", "whole"], ["whole", rows]),
        ([0, 1, 2, 3], [rows, "whole"], ["whole", rows]),
    ] {
        for (x, expected) in [(&first, from_first), (&last, from_last)] {
            let found = [Order::ChannelsFirst, Order::ChannelsLast].map(|order| read(x, perm, order));
            assert_eq!(found, expected, "{perm:?} of {x:?}");
        }
    }
}

/// Only a view of the same rows, columns and channels has its tensor's rows.
#[test]
fn views() {
    let relu = Operator::ElementWise(ElementWise { function: Function::Relu });
    let check = |own: Shape, seen: Shape, by_rows: bool| {
        let found = row_access(&relu, &own, std::slice::from_ref(&seen), &seen, 0);
        assert_eq!(found != RowAccess::Whole, by_rows, "{own} seen as {seen}");
    };
    let last = |dims: [usize; 4]| Shape { dims: dims.to_vec(), order: Order::ChannelsLast };
    check(Shape::image(16, 8, 6), Shape::image(16, 8, 6), true);
    check(Shape::image(16, 8, 6), last([1, 8, 6, 16]), true);
    check(last([1, 8, 6, 16]), Shape::image(16, 8, 6), true);
    // The height stays, but not what a row is.
    check(Shape::image(16, 8, 6), Shape::image(32, 8, 3), false);
    check(Shape::image(16, 8, 6), Shape::image(6, 8, 16), false);
    check(Shape::image(16, 8, 6), last([1, 8, 16, 6]), false);
    check(Shape::image(4, 8, 6), Shape::image(4, 6, 8), false);
    // One row of each.
    check(Shape::new([1, 12]), Shape::image(12, 1, 1), false);
    check(Shape::image(12, 1, 1), Shape::new([1, 12]), false);
    check(Shape::image(4, 1, 3), Shape::image(12, 1, 1), false);
    check(Shape::image(12, 1, 1), Shape::image(12, 1, 1), true);
}

#[test]
fn tables() {
    let x = Shape::image(4, 4, 5);
    let concat = Operator::Concat(Concat { axis: 2 });
    check(&concat, &[x.clone(), Shape::image(4, 2, 5)], &["0 1 2 3 - -", "- - - - 0 1"]);
    check(&Operator::Concat(Concat { axis: 1 }), &[x.clone(), x.clone()], &["1/1/1/0", "1/1/1/0"]);
    let x = [x];
    check(&pad(PadMode::Edge, 2, 1), &x, &["0 0 0 1 2 3 3"]);
    check(&pad(PadMode::Edge, -1, 1), &x, &["1 2 3 3"]);
    // Sources 2 1 0 1 2 3 2: the hull never goes back.
    check(&pad(PadMode::Reflect, 2, 1), &x, &["0..3 0..3 0..3 1..3 2 2..4 2..4"]);
    let floor = || ResizeMode::Nearest { rounding: Rounding::Floor };
    check(&resize(floor(), Coordinates::Asymmetric, 2.0, 8), &x, &["0 0 1 1 2 2 3 3"]);
    let prefer_floor = || ResizeMode::Nearest { rounding: Rounding::RoundPreferFloor };
    check(&resize(prefer_floor(), Coordinates::HalfPixel, 2.0, 8), &x, &["0 0 1 1 2 2 3 3"]);
    check(&resize(prefer_floor(), Coordinates::Asymmetric, 2.0, 8), &x, &["0 0 1 1 2 2 3 3"]);
    let prefer_ceil = ResizeMode::Nearest { rounding: Rounding::RoundPreferCeil };
    check(&resize(prefer_ceil, Coordinates::Asymmetric, 2.0, 8), &x, &["0 1 1 2 2 3 3 3"]);
    check(
        &resize(ResizeMode::Linear, Coordinates::HalfPixel, 2.0, 8),
        &x,
        &["0..2 0..2 0..2 1..3 1..3 2..4 2..4 3"],
    );
    check(
        &resize(ResizeMode::Linear, Coordinates::AlignCorners, 1.75, 7),
        &x,
        &["0..2 0..2 1..3 1..3 2..4 2..4 3"],
    );
    // ONNX test resize_downsample_scales_linear: the one output row mixes rows 0 and 1 of two.
    let two = [Shape::image(1, 2, 5)];
    check(&resize(ResizeMode::Linear, Coordinates::HalfPixel, 0.6, 1), &two, &["0..2"]);
    check(&resize(ResizeMode::Linear, Coordinates::PytorchHalfPixel, 0.5, 1), &two, &["0..2"]);
    check(&resize(floor(), Coordinates::TfHalfPixelForNn, 0.5, 2), &x, &["1 3"]);
    let filter = |cubic, antialias| ResizeMode::Filter(Filter { cubic, antialias, exclude_outside: true });
    let cubic = || filter(Some(-0.75), true);
    let eight = [Shape::image(1, 8, 5)];
    check(&resize(cubic(), Coordinates::HalfPixel, 2.0, 8), &x, &["0..2 0..3 0..3 0..4 0..4 1..4 1..4 2..4"]);
    check(&resize(cubic(), Coordinates::HalfPixel, 0.5, 4), &eight, &["0..5 0..7 1..8 3..8"]);
    check(&resize(filter(None, true), Coordinates::HalfPixel, 0.5, 4), &eight, &["0..3 1..5 3..7 5..8"]);
    check(
        &resize(filter(Some(-0.5), false), Coordinates::HalfPixel, 0.5, 4),
        &eight,
        &["0..3 1..5 3..7 5..8"],
    );
    let crop = Crop { from: [0.5, 0.0], to: [1.25, 1.0], outside: 7.0 };
    let crop = Coordinates::TfCropAndResize(crop);
    check(&resize(ResizeMode::Linear, crop, 1.0, 4), &x, &["1..3 2..4 3 3"]);
    let symmetric = Coordinates::HalfPixelSymmetric;
    check(&resize(ResizeMode::Linear, symmetric, 0.6, 1), &[Shape::image(1, 3, 5)], &["1..3"]);
}

#[test]
fn multiplications() {
    let check = |operator: Operator, inputs: &[Shape], expected: u64| {
        let output = output_shape(&operator, inputs).unwrap();
        assert_eq!(macs(&operator, inputs, &output), expected);
    };
    // The first layers of ResNet-50 and MobileNetV2, as published tools count them.
    check(conv(64, 7, 2, 1), &[Shape::image(3, 224, 224)], 118_013_952);
    check(conv(32, 3, 1, 32), &[Shape::image(32, 112, 112)], 3_612_672);
    let gemm = Gemm { inner: 1280, units: 1000, transposed: true, bias: true, activation: None };
    check(Operator::Gemm(gemm), &[Shape::new([1, 1280])], 1_280_000);
    check(Operator::MatMul, &[Shape::new([8, 40, 15]), Shape::new([8, 15, 7])], 8 * 40 * 15 * 7);
    // DenseNet-121's second dense layer, its image in two parts.
    let parts = [Shape::image(64, 56, 56), Shape::image(32, 56, 56)];
    check(conv(128, 1, 1, 1), &parts, 96 * 128 * 56 * 56);
    let Operator::Conv(plain) = conv(64, 3, 2, 1) else { unreachable!() };
    let adds = Operator::Conv(Conv { residual: true, ..plain });
    check(adds, &[Shape::image(3, 8, 8), Shape::image(64, 4, 4)], 3 * 64 * 9 * 16);
    check(pad(PadMode::Edge, 1, 1), &[Shape::image(1, 2, 3)], 0);
}

/// Of a 1×1 transposed convolution of stride 3 whose last row is cropped, the last row of the input is not read. It passes
/// through the last firing that reads any.
#[test]
fn rows_that_a_transposed_convolution_crops() {
    let conv = ConvTranspose {
        filters: 1,
        kernel: [1, 1],
        stride: [3, 1],
        dilation: [1, 1],
        pads: [0, 0, 1, 0],
        output_padding: [0, 0],
        groups: 1,
        bias: false,
        activation: None,
    };
    let operator = Operator::ConvTranspose(conv);
    let inputs = [Shape::image(1, 5, 1)];
    let output = output_shape(&operator, &inputs).unwrap();
    let access = row_access(&operator, &inputs[0], &inputs, &output, 0);
    let expected = vec![1, 0, 0, 1, 0, 0, 1, 0, 0, 2, 0, 0];
    assert_eq!(acquire_release(&access, 5, 12, 1), (expected.clone(), expected));
}

proptest! {
    /// Input row i of a transposed convolution adds to output row `i·stride − top + k·dilation`: the table covers
    /// all of these, and without dilation or gaps no row more.
    #[test]
    fn transposed_convolution_by_scattering(
        [kernel, stride, dilation] in [1usize..5, 1usize..5, 1usize..4],
        [top, bottom, added] in [0usize..3, 0usize..3, 0usize..2],
        height in 1usize..9,
    ) {
        let conv = ConvTranspose {
            filters: 1,
            kernel: [kernel, 1],
            stride: [stride, 1],
            dilation: [dilation, 1],
            pads: [top, 0, bottom, 0],
            output_padding: [added, 0],
            groups: 1,
            bias: false,
            activation: None,
        };
        let operator = Operator::ConvTranspose(conv);
        let inputs = [Shape::image(1, height, 1)];
        let Ok(output) = output_shape(&operator, &inputs) else { return Ok(()) };
        let mut read = vec![Vec::new(); output.rows()];
        for i in 0..height {
            for k in 0..kernel {
                let y = (i * stride + k * dilation) as i64 - top as i64;
                if let Some(rows) = usize::try_from(y).ok().and_then(|y| read.get_mut(y)) {
                    rows.push(i);
                }
            }
        }
        let table: Vec<_> = match row_access(&operator, &inputs[0], &inputs, &output, 0) {
            RowAccess::Rows(table) => table,
            RowAccess::Window { kernel, stride: 1, dilation, top } => (0..output.rows() as i64)
                .map(|y| {
                    let cut = |row: i64| row.clamp(0, height as i64) as usize;
                    cut(y - top)..cut(y - top + (kernel as i64 - 1) * dilation as i64 + 1)
                })
                .collect(),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(table.len(), read.len());
        prop_assert!(table.windows(2).all(|pair| pair[0].start <= pair[1].start && pair[0].end <= pair[1].end));
        for (rows, read) in table.iter().zip(&read) {
            prop_assert!(read.iter().all(|row| rows.contains(row)));
            if dilation == 1 {
                prop_assert_eq!(rows.len(), read.len());
            }
        }
    }
}

proptest! {
    /// Each part of an image is read where the window lies, and what is added where its row is made.
    #[test]
    fn operands_of_a_convolution(
        [kernel, stride, dilation] in [1usize..5, 1usize..4, 1usize..3],
        [top, bottom, height, parts] in [0usize..3, 0usize..3, 1usize..12, 1usize..4],
        residual in any::<bool>(),
    ) {
        let conv = Conv {
            filters: 2,
            kernel: [kernel, 1],
            stride: [stride, 1],
            dilation: [dilation, 1],
            pads: [top, 0, bottom, 0],
            groups: 1,
            bias: false,
            pre: None,
            residual: false,
            activation: None,
        };
        let mut inputs: Vec<Shape> = (1..=parts).map(|channels| Shape::image(channels, height, 3)).collect();
        let Ok(output) = output_shape(&Operator::Conv(conv.clone()), &inputs) else { return Ok(()) };
        if residual {
            inputs.push(output.clone());
        }
        let operator = Operator::Conv(Conv { residual, ..conv });
        prop_assert_eq!(output_shape(&operator, &inputs), Ok(output.clone()));
        for index in 0..inputs.len() {
            let access = row_access(&operator, &inputs[index], &inputs, &output, index);
            let rows_in = inputs[index].rows() as u64;
            let (acquire, release) = acquire_release(&access, rows_in, output.rows() as u64, 1);
            let (mut acquired, mut released) = (0, 0);
            for y in 0..output.rows() {
                let read: Vec<u64> = if index == parts {
                    vec![y as u64]
                } else {
                    let taps = (0..kernel).map(|k| (y * stride + k * dilation).checked_sub(top));
                    taps.flatten().filter(|row| *row < height).map(|row| row as u64).collect()
                };
                acquired += acquire[y];
                prop_assert!(read.iter().all(|row| (released..acquired).contains(row)));
                if let (Some(last), true) = (read.last(), stride <= kernel && dilation == 1) {
                    // No sooner than it must; the last firing takes what nobody reads.
                    prop_assert!(y + 1 == output.rows() || acquired == last + 1);
                }
                released += release[y];
            }
            prop_assert_eq!((acquired, released), (rows_in, rows_in));
        }
    }
}

/// Attributes that a hostile model may have, most of them small enough to be accepted.
fn size() -> impl Strategy<Value = usize> {
    prop_oneof![12 => 0usize..6, 1 => prop::sample::select(vec![1 << 20, i32::MAX as usize, 1 << 35, usize::MAX])]
}

fn offset() -> impl Strategy<Value = i64> {
    prop_oneof![12 => -3i64..4, 1 => prop::sample::select(vec![i64::MIN, i64::MAX, 1 << 40])]
}

fn operators() -> impl Strategy<Value = Operator> {
    let window = || ([size(), size()], [size(), size()], [size(), size()], [size(), size(), size(), size()]);
    let conv = (size(), window(), size(), any::<bool>(), any::<bool>()).prop_map(
        |(filters, (kernel, stride, dilation, pads), groups, bias, residual)| {
            let activation = None;
            Operator::Conv(Conv {
                filters,
                kernel,
                stride,
                dilation,
                pads,
                groups,
                bias,
                pre: None,
                residual,
                activation,
            })
        },
    );
    let conv_transpose = (size(), window(), size(), [size(), size()]).prop_map(
        |(filters, (kernel, stride, dilation, pads), groups, output_padding)| {
            let (bias, activation) = (false, None);
            let conv = ConvTranspose {
                filters,
                kernel,
                stride,
                dilation,
                pads,
                output_padding,
                groups,
                bias,
                activation,
            };
            Operator::ConvTranspose(conv)
        },
    );
    let pool = (window(), any::<bool>()).prop_map(|((kernel, stride, dilation, pads), ceil)| {
        Operator::Pool(Pool { kind: PoolKind::Max, kernel, stride, dilation, pads, ceil })
    });
    let pads = (prop::collection::vec(offset(), 3..5), prop::collection::vec(offset(), 3..5));
    let modes = vec![PadMode::Edge, PadMode::Reflect, PadMode::Constant { value: None }];
    let pad = (prop::sample::select(modes), pads)
        .prop_map(|(mode, (before, after))| Operator::Pad(Pad { mode, before, after }));
    let slice = prop::collection::vec((size(), offset(), size()), 3..5).prop_map(|axes| {
        Operator::Slice(Slice {
            starts: axes.iter().map(|axis| axis.0).collect(),
            steps: axes.iter().map(|axis| axis.1).collect(),
            lengths: axes.iter().map(|axis| axis.2).collect(),
        })
    });
    let modes = vec![
        ResizeMode::Linear,
        ResizeMode::Nearest { rounding: Rounding::RoundPreferFloor },
        ResizeMode::Nearest { rounding: Rounding::Ceil },
    ];
    let coordinates = vec![
        Coordinates::HalfPixel,
        Coordinates::PytorchHalfPixel,
        Coordinates::AlignCorners,
        Coordinates::Asymmetric,
        Coordinates::TfHalfPixelForNn,
    ];
    let scale = prop_oneof![
        any::<f32>().prop_map(Scale::Float),
        (0.1f32..9.0).prop_map(Scale::Float),
        (1u32..9, 1u32..7).prop_map(|(over, under)| Scale::Ratio(Ratio { over, under })),
    ];
    let scales = (scale.clone(), scale);
    let sizes = (prop_oneof![1usize..9, size()], prop_oneof![1usize..9, size()]);
    let resize = (prop::sample::select(modes), prop::sample::select(coordinates), scales, sizes).prop_map(
        |(mode, coordinates, scales, size)| {
            let (scales, size) = (scales.into(), size.into());
            Operator::Resize(Resize { mode, coordinates, scales, size })
        },
    );
    let block = size().prop_map(|block| Operator::SpaceToDepth(SpaceToDepth { block }));
    let concat = (0usize..5).prop_map(|axis| Operator::Concat(Concat { axis }));
    prop_oneof![conv, conv_transpose, pool, pad, slice, resize, block, concat]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Whatever the attributes: an error, or tables that lie within the operand and never go back.
    #[test]
    fn hostile_attributes(
        operator in operators(),
        x in prop::collection::vec(prop_oneof![20 => 1usize..7, 1 => size()], 3..5),
        others in prop::collection::vec((0usize..4, size()), 0..3),
    ) {
        let mut x = x;
        x[0] = 1;
        let mut inputs = vec![Shape::new(x.clone())];
        if matches!(operator, Operator::Conv(_)) {
            inputs.extend(others.into_iter().map(|(axis, dim)| {
                let mut other = x.clone();
                other.get_mut(axis).into_iter().for_each(|other| *other = dim);
                Shape::new(other)
            }));
        }
        let Ok(output) = output_shape(&operator, &inputs) else { return Ok(()) };
        parameter_dims(&operator, &inputs);
        macs(&operator, &inputs, &output);
        let last = inputs.len() - 1;
        let access = row_access(&operator, &inputs[last], &inputs, &output, last);
        let (rows_in, rows_out) = (inputs[last].rows(), output.rows());
        if let RowAccess::Rows(table) = &access {
            prop_assert_eq!(table.len(), rows_out);
            prop_assert!(table.iter().all(|rows| rows.start <= rows.end && rows.end <= rows_in));
            let rises = |pair: &[std::ops::Range<usize>]| {
                pair[0].start <= pair[1].start && pair[0].end <= pair[1].end
            };
            prop_assert!(table.windows(2).all(rises));
        }
        let (acquire, release) = acquire_release(&access, rows_in as u64, rows_out as u64, 1);
        prop_assert_eq!(acquire.iter().sum::<u64>(), rows_in as u64);
        prop_assert_eq!(release.iter().sum::<u64>(), rows_in as u64);
    }
}

#[test]
fn lines() {
    let softmax = |axis| Operator::Softmax(Softmax { axes: vec![axis], log: false });
    let of = |dims: &[usize]| Shape::new(dims);
    for lines in [of(&[1, 3, 8]), of(&[3, 8])] {
        let last = lines.rank() - 1;
        check(&softmax(last), std::slice::from_ref(&lines), &["1/1/1/0"]);
        check(&softmax(last - 1), std::slice::from_ref(&lines), &["whole"]);
        check(&Operator::MatMul, &[lines.clone(), of(&[8, 3])], &["1/1/1/0", "whole"]);
        let gemm = Gemm { inner: 8, units: 3, transposed: true, bias: true, activation: None };
        check(&Operator::Gemm(gemm), &[lines], &["1/1/1/0"]);
    }
    let x = of(&[1, 3, 8]);
    // What is next to a channel is in another row; a channel is a row.
    check(
        &Operator::Lrn(Lrn { size: 3, alpha: 1.0, beta: 1.0, bias: 1.0 }),
        std::slice::from_ref(&x),
        &["whole"],
    );
    let norm = Operator::InstanceNorm(InstanceNorm { channels: 3, epsilon: 1e-5 });
    check(&norm, std::slice::from_ref(&x), &["1/1/1/0"]);
    check(&norm, &[Shape::image(3, 4, 5)], &["whole"]);
    // Dimensions are broadcast from the last.
    let add = Binary { function: BinaryFunction::Add, constant: None, activation: None };
    check(&Operator::Binary(add.clone()), &[x.clone(), x.clone()], &["1/1/1/0", "1/1/1/0"]);
    check(&Operator::Binary(add.clone()), &[x.clone(), of(&[3, 8])], &["1/1/1/0", "whole"]);
    check(&Operator::MatMul, &[of(&[3, 8]), of(&[1, 8, 3])], &["whole", "whole"]);
    // Those of three are the columns of an image whose channels are last, which has as many rows.
    let image = Shape { dims: vec![1, 3, 3, 8], order: Order::ChannelsLast };
    let operands = [image.clone(), x];
    let access = |index| row_access(&Operator::MatMul, &operands[index], &operands, &image, index);
    assert_eq!(
        (access(0), access(1)),
        (RowAccess::Window { kernel: 1, stride: 1, dilation: 1, top: 0 }, RowAccess::Whole)
    );
    let swapped = [operands[1].clone(), image.clone()];
    for operator in [Operator::MatMul, Operator::Binary(add)] {
        assert_eq!(row_access(&operator, &swapped[0], &swapped, &image, 0), RowAccess::Whole);
    }
    // A longer list is one row.
    check(&softmax(1), &[of(&[100_000, 4])], &["whole"]);
}

/// Whether a softmax over the last dimension goes by the rows of a tensor that it sees otherwise.
#[test]
fn views_of_lines() {
    let last = |dims: [usize; 4]| Shape { dims: dims.to_vec(), order: Order::ChannelsLast };
    let (lines, matrix) = (Shape::new([1, 3, 8]), Shape::new([3, 8]));
    for (own, seen, by_rows) in [
        (&lines, &matrix, true),
        (&matrix, &lines, true),
        (&lines, &Shape::image(1, 3, 8), true),
        (&lines, &Shape::image(8, 3, 1), false),
        (&lines, &Shape::image(3, 8, 1), false),
        (&Shape::image(1, 3, 8), &lines, true),
        (&Shape::image(8, 3, 1), &lines, false),
        (&last([1, 3, 2, 4]), &lines, true),
        (&Shape::new([1, 6, 4]), &lines, false),
        (&Shape::new([1, 24]), &lines, false),
    ] {
        let softmax = Operator::Softmax(Softmax { axes: vec![seen.rank() - 1], log: false });
        let found = row_access(&softmax, own, std::slice::from_ref(seen), seen, 0) != RowAccess::Whole;
        assert_eq!(found, by_rows, "{own} seen as {seen}");
    }
}
