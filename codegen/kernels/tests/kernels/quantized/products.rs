//! Sums of products.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::conv::Conv;
use csdfc_kernels::elements::{Elements, ElementsMut};
use csdfc_kernels::gemm::Gemm;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::quantized::Requantize;
use csdfc_kernels::quantized::cast::{Dequantize, Quantize};
use csdfc_kernels::quantized::conv::QConv;
use csdfc_kernels::quantized::gemm::QGemm;
use csdfc_kernels::quantized::pre::QPre;
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};

use super::{Case, Image, bytes, element, how, requantized};
use crate::testing::{Random, rounds};

fn weights(random: &mut Random, count: usize) -> Vec<i8> {
    bytes(random, count).into_iter().map(|b| b.wrapping_add(128) as i8).collect()
}

/// An offset of weights, if they have one.
fn offset(random: &mut Random, has_offset: bool) -> i32 {
    if has_offset { *random.pick(&[-127, -7, 1, 7, 128]) } else { 0 }
}

/// The filters' multipliers, so that most elements are within bounds if the sums are of so many products.
fn multipliers(random: &mut Random, count: usize, steps: usize) -> Vec<f32> {
    let one = 1.0 / (16.0 * 40.0 * (steps as f32).sqrt());
    (0..count)
        .map(|_| if random.within(0, 3) == 0 { 1.0 / 512.0 } else { one * (1.1 + random.floats(1)[0]) })
        .collect()
}

fn biases(random: &mut Random, count: usize) -> Vec<i32> {
    let most = *random.pick(&[0, 100, 10_000, i32::MAX as usize]);
    (0..count).map(|_| (random.within(0, 2 * most) as i64 - most as i64) as i32).collect()
}

/// The result of a batch norm and an activation, one after the other, on an image between two conversions.
fn before(q: &QConv, input: Image, [scales, shifts]: [&[f32]; 2]) -> Image {
    let Some(QPre { read, affine, activation, made }) = q.pre else { return input };
    Image::of(input.size, |y, x, c| {
        let mut value = read.scale * (f32::from(input.at(y, x, c)) - f32::from(read.zero_point));
        if affine {
            value = value * scales[c] + shifts[c];
        }
        match activation {
            Activation::Relu => value = value.max(0.0),
            Activation::Clip { min, max } => value = value.max(min).min(max),
            _ => {}
        }
        element(f64::from(value / made.scale), Requantize { zero_point: made.zero_point, low: 0, high: 255 })
    })
}

/// The definition; weights in ONNX order.
fn textbook(
    q: &QConv,
    input: &Image,
    (weights, offset): (&[i8], i32),
    biases: &[i32],
    multipliers: &[f32],
) -> Image {
    let p = &q.conv;
    let out = [0, 1].map(|i| {
        (input.size[i] + p.pads[i] + p.pads[i + 2] - (p.kernel[i] - 1) * p.dilation[i] - 1) / p.stride[i] + 1
    });
    let (inner, outer) = (p.channels / p.groups, p.filters / p.groups);
    Image::of([out[0], out[1], p.filters], |y, x, o| {
        let mut sum = biases.get(o).copied().map_or(0, i64::from);
        for c in 0..inner {
            for ky in 0..p.kernel[0] {
                for kx in 0..p.kernel[1] {
                    let iy = (y * p.stride[0] + ky * p.dilation[0]).checked_sub(p.pads[0]);
                    let ix = (x * p.stride[1] + kx * p.dilation[1]).checked_sub(p.pads[1]);
                    if let (Some(iy), Some(ix)) = (iy, ix)
                        && iy < input.size[0]
                        && ix < input.size[1]
                    {
                        let x = input.at(iy, ix, o / outer * inner + c);
                        let w = weights[((o * inner + c) * p.kernel[0] + ky) * p.kernel[1] + kx];
                        sum += (i64::from(x) - i64::from(q.zero_point)) * (i64::from(w) + i64::from(offset));
                    }
                }
            }
        }
        requantized(sum, multipliers[o], q.requantize)
    })
}

/// Compares with the definition, for an image in parts of these channels.
fn check(random: &mut Random, q: &QConv, size: [usize; 2], parts: &[usize]) {
    let p = &q.conv;
    let input = Image::random(random, [size[0], size[1], p.channels]);
    let mut first = 0;
    let parts: Vec<Image> = parts
        .iter()
        .map(|&channels| {
            first += channels;
            Image::of([size[0], size[1], channels], |y, x, c| input.at(y, x, first - channels + c))
        })
        .collect();
    assert_eq!(first, p.channels);
    let steps = p.channels / p.groups * p.kernel[0] * p.kernel[1];
    let weights = weights(random, p.filters * steps);
    let weights = (weights.as_slice(), offset(random, q.has_offset));
    let biases = if random.within(0, 4) == 0 { vec![] } else { biases(random, p.filters) };
    let multipliers = multipliers(random, p.filters, steps);
    let affine = q.pre.is_some_and(|pre| pre.affine);
    let constants =
        if affine { [random.floats(p.channels), random.floats(p.channels)] } else { [vec![], vec![]] };
    let constants = [&constants[0][..], &constants[1]];
    let mut packed = vec![0xa5; q.packed_len()];
    q.pack(weights, &biases, &multipliers, constants, &mut packed);
    let stored = p.filters * (steps + 8) + if affine { 8 * p.channels } else { 0 };
    let stored = stored + if q.has_offset { 4 } else { 0 };
    assert!(packed.len() <= stored + p.filters + 28, "{} for {stored}", packed.len());
    let want = textbook(q, &before(q, input, constants), weights, &biases, &multipliers);
    let inputs: Vec<_> = parts.iter().map(|part| (&part.data[..], part.size)).collect();
    let case = Case {
        what: &|| format!("{q:?} of {size:?} in {} parts", parts.len()),
        inputs: &inputs,
        constants: &[(&packed, [1, 1, packed.len()])],
        output: want.size,
        want: &want.data,
    };
    case.by_rows(random, q, |_, y| {
        let start = (y * p.stride[0]).saturating_sub(p.pads[0]).min(size[0]);
        start
            ..(y * p.stride[0] + (p.kernel[0] - 1) * p.dilation[0] + 1).saturating_sub(p.pads[0]).min(size[0])
    });
}

fn conv(channels: usize, filters: usize, groups: usize, kernel: [usize; 2]) -> Conv {
    Conv {
        channels,
        filters,
        kernel,
        stride: [1, 1],
        dilation: [1, 1],
        pads: [0; 4],
        groups,
        pre: None,
        residual: false,
        activation: Activation::None,
    }
}

fn quantized(random: &mut Random, conv: Conv) -> QConv {
    let zero_point = *random.pick(&[0, 1, 128, 255, 77]);
    let has_offset = random.within(0, 3) == 0;
    QConv { conv, pre: None, zero_point, has_offset, requantize: how(random) }
}

/// The same convolution with a prologue, whose results are within the bounds of bytes or exceed them.
fn after(random: &mut Random, q: QConv) -> QConv {
    let read = Dequantize { scale: *random.pick(&[0.01, 0.3]), zero_point: *random.pick(&[0, 100, 255]) };
    let activations = [Activation::None, Activation::Relu, Activation::Clip { min: -0.5, max: 1.5 }];
    let made = Quantize { scale: *random.pick(&[0.004, 0.02, 0.1]), zero_point: q.zero_point };
    let pre = QPre { read, affine: random.within(0, 3) > 0, activation: *random.pick(&activations), made };
    QConv { pre: Some(pre), ..q }
}

#[test]
fn convolutions_are_exact() {
    let mut random = Random(73);
    for case in rounds(200) {
        let mut groups = *random.pick(&[1, 1, 1, 2, 3]);
        // As many panels as go together, fewer and more.
        let most = *random.pick(&[16, 40, 150]);
        let (mut channels, mut filters) = (groups * random.within(1, 18), groups * random.within(1, most));
        if case % 2 == 0 {
            channels = *random.pick(&[1, 3, 8, 16, 20, 24, 37, 40, 48, 64, 70, 96, 130, 144]);
            (filters, groups) = (channels, channels);
        }
        let kernel = *random.pick(&[[1, 1], [1, 1], [3, 3], [3, 3], [3, 3], [5, 5], [2, 4], [1, 3], [4, 1]]);
        let mut p = conv(channels, filters, groups, kernel);
        let is_plain = random.within(0, 1) == 0;
        if !is_plain {
            p.dilation = [random.within(1, 2), random.within(1, 3)];
        }
        p.stride = *random.pick(&[[1, 1], [2, 2], [1, 2], [3, 1]]);
        p.pads = core::array::from_fn(|i| random.within(0, (kernel[i % 2] - 1) * p.dilation[i % 2]));
        let reach = |axis: usize| (kernel[axis] - 1) * p.dilation[axis] + 1;
        let least = |axis: usize| reach(axis).saturating_sub(p.pads[axis] + p.pads[axis + 2]).max(1);
        let size = [random.within(least(0), least(0) + 4), random.within(least(1), least(1) + 19)];
        let q = quantized(&mut random, p);
        check(&mut random, &q, size, &[channels]);
    }
}

#[test]
fn what_is_before_a_convolution_and_concats_are_exact() {
    let mut random = Random(76);
    for case in rounds(150) {
        let parts: Vec<usize> =
            (0..random.within(1, 4)).map(|_| *random.pick(&[1, 2, 3, 7, 32, 65, 100])).collect();
        let kernel = *random.pick(&[[1, 1], [1, 1], [3, 3], [1, 3], [2, 1]]);
        // A convolution of one channel by one filter is a depthwise one.
        let mut p = conv(parts.iter().sum(), random.within(2, 40), 1, kernel);
        p.stride = *random.pick(&[[1, 1], [1, 1], [2, 1], [1, 2]]);
        p.dilation = *random.pick(&[[1, 1], [1, 2]]);
        p.pads = core::array::from_fn(|i| random.within(0, (kernel[i % 2] - 1) * p.dilation[i % 2]));
        let least = |axis: usize| {
            let reach = (kernel[axis] - 1) * p.dilation[axis] + 1;
            reach.saturating_sub(p.pads[axis] + p.pads[axis + 2]).max(1)
        };
        let size = [random.within(least(0), least(0) + 3), random.within(least(1), least(1) + 15)];
        let mut q = quantized(&mut random, p);
        if case % 3 > 0 {
            q = after(&mut random, q);
        }
        check(&mut random, &q, size, &parts);
    }
}

/// An output with channels before and after those of the convolution, as the tiles of a layer write it: these stay.
#[test]
fn depthwise_convolutions_leave_other_channels() {
    let mut random = Random(77);
    let (before, after, height, width) = (3, 2, 3, 11);
    for case in rounds(60) {
        let filters = *random.pick(&[1, 7, 16, 17, 40, 64, 70]);
        let mut p = conv(filters, filters, filters, *random.pick(&[[3, 3], [5, 5], [1, 1], [2, 3], [9, 1]]));
        p.stride = [1, *random.pick(&[1, 2])];
        let size = [height + p.kernel[0] - 1, (width - 1) * p.stride[1] + p.kernel[1]];
        let q = quantized(&mut random, p);
        let input = Image::random(&mut random, [size[0], size[1], filters]);
        let steps = p.kernel[0] * p.kernel[1];
        let weights = weights(&mut random, filters * steps);
        let weights = (&weights[..], offset(&mut random, q.has_offset));
        let (biases, multipliers) = (biases(&mut random, filters), multipliers(&mut random, filters, steps));
        let mut packed = vec![0xa5; q.packed_len()];
        q.pack(weights, &biases, &multipliers, [&[]; 2], &mut packed);
        let own = textbook(&q, &input, weights, &biases, &multipliers);
        let channels = before + filters + after;
        let kept = Image::random(&mut random, [height, width, channels]);
        let want = Image::of([height, width, channels], |y, x, c| match c.checked_sub(before) {
            Some(c) if c < filters => own.at(y, x, c),
            _ => kept.at(y, x, c),
        });
        let operand = Rows {
            data: (&input.data[..]).into(),
            shape: RowShape::dense(size[0], size[1], filters, size[0]),
        };
        for isa in Isa::all() {
            let mut made = kept.data.clone();
            let shape = RowShape::dense(height, width, channels, height);
            let mut output = RowsMut { data: (&mut made[before..]).into(), shape };
            let context = &mut Context::alone(isa);
            q.rows(context, 0..height, &[operand], &[Rows::line(&packed)], &mut output);
            assert!(made == want.data, "case {case}, {q:?}, {}", isa.name());
        }
    }
}

/// Windows larger than the room in which they are widened, and sums of many panels that wait for the rest of them.
#[test]
fn parts_of_windows_add_up() {
    let mut random = Random(74);
    for (channels, filters, groups, kernel, size) in [
        (1500, 20, 1, [1, 1], [2, 4]),
        (1367, 7, 1, [1, 1], [1, 7]),
        (4100, 33, 1, [1, 1], [1, 2]),
        (701, 20, 1, [1, 2], [2, 4]),
        (300, 150, 1, [3, 3], [3, 3]),
        (160, 118, 1, [3, 3], [3, 15]),
        (2 * 301, 2 * 9, 2, [3, 2], [4, 3]),
        (9000, 3, 1, [1, 1], [1, 1]),
    ] {
        let mut p = conv(channels, filters, groups, kernel);
        p.pads = [kernel[0] / 2, 0, 0, kernel[1] / 2];
        let q = quantized(&mut random, p);
        check(&mut random, &q, size, &[channels]);
        if groups == 1 {
            let q = after(&mut random, q);
            check(&mut random, &q, size, &[channels - 129, 129]);
        }
    }
}

/// Windows that share the elements of lines of the image: blocks of several rows, of one, and of a piece of a row, since rows
/// have more pixels than a block or there is too little room; and windows for which there is none.
#[test]
fn windows_share_lines() {
    let mut random = Random(78);
    let all = [
        (16, 17, [3, 3], [1, 1], [11, 8]),
        (8, 5, [3, 3], [1, 1], [4, 210]),
        (64, 33, [3, 3], [2, 2], [9, 33]),
        (256, 3, [3, 3], [1, 1], [4, 41]),
        (512, 3, [3, 3], [1, 2], [4, 23]),
        (2, 40, [5, 4], [2, 1], [12, 7]),
        (1, 20, [10, 4], [2, 2], [25, 10]),
        (8, 9, [2, 3], [1, 3], [5, 40]),
        (24, 3, [1, 3], [1, 1], [3, 30]),
        (40, 6, [4, 1], [3, 1], [9, 5]),
        (16, 2, [3, 3], [1, 1], [1, 1]),
        (1000, 2, [3, 3], [1, 1], [3, 20]),
        (2000, 2, [3, 3], [1, 1], [3, 4]),
    ];
    for case in rounds(3 * all.len()) {
        let (channels, filters, kernel, stride, size) = all[case % all.len()];
        let mut p = conv(channels, filters, 1, kernel);
        p.stride = stride;
        p.pads = core::array::from_fn(|i| random.within(0, kernel[i % 2] - 1));
        let least = |axis: usize| kernel[axis].saturating_sub(p.pads[axis] + p.pads[axis + 2]);
        let size = [size[0].max(least(0)), size[1].max(least(1))];
        let q = quantized(&mut random, p);
        check(&mut random, &q, size, &[channels]);
    }
}

/// Sums that would saturate, or exceed 16 bits, if two products were added in 16 bits.
#[test]
fn nothing_saturates_on_the_way() {
    for is_depthwise in [false, true] {
        for (x, zero_point, w) in [(255, 0, 127_i8), (255, 0, -128), (0, 255, -128), (0, 255, 127)] {
            let channels = 32;
            let p = match is_depthwise {
                true => conv(channels, channels, channels, [3, 3]),
                false => conv(channels, 19, 1, [3, 3]),
            };
            let requantize = Requantize { zero_point: 128, low: 0, high: 255 };
            let q = QConv { conv: p, pre: None, has_offset: false, zero_point, requantize };
            let steps = p.channels / p.groups * 9;
            let weights = vec![w; p.filters * steps];
            // A hundred steps of the output from 0, and the sum's last bit is half a step's.
            let sum = steps as i64 * (i64::from(x) - i64::from(zero_point)) * i64::from(w);
            let multipliers = vec![100.0 / sum.unsigned_abs() as f32; p.filters];
            let mut packed = vec![0; q.packed_len()];
            q.pack((&weights, 0), &[], &multipliers, [&[]; 2], &mut packed);
            let input = Image { size: [5, 9, channels], data: vec![x; 45 * channels] };
            let want = if sum > 0 { 228 } else { 28 };
            let want = vec![want; 3 * 7 * p.filters];
            let case = Case {
                what: &|| format!("{q:?} of {x} by {w}"),
                inputs: &[(&input.data, input.size)],
                constants: &[(&packed, [1, 1, packed.len()])],
                output: [3, 7, p.filters],
                want: &want,
            };
            case.by_rows(&mut Random(1), &q, |_, y| y..y + 3);
        }
    }
}

#[test]
fn fully_connected_layers_are_exact() {
    let mut random = Random(75);
    for case in rounds(60) {
        let (rows, inner, units) = (random.within(1, 9), random.within(1, 70), random.within(1, 50));
        let gemm = Gemm { inner, units, activation: Activation::None };
        let q = QGemm {
            gemm,
            zero_point: *random.pick(&[0, 128, 255]),
            has_offset: random.within(0, 1) == 0,
            requantize: how(&mut random),
        };
        let (input, weights) = (bytes(&mut random, rows * inner), weights(&mut random, inner * units));
        let (biases, multipliers) = (biases(&mut random, units), multipliers(&mut random, units, inner));
        // The element at place k in memory is the logical element `order(k)`.
        let order = |k: usize| (inner - 1) - k;
        let mut packed = vec![0xa5; q.packed_len()];
        let offset = offset(&mut random, q.has_offset);
        q.pack((|unit, k| weights[order(k) * units + unit], offset), &biases, &multipliers, &mut packed);
        let mut want = vec![];
        for row in input.chunks(inner) {
            want.extend((0..units).map(|unit| {
                let product = |(k, x): (usize, &u8)| {
                    let weight = i64::from(weights[order(k) * units + unit]) + i64::from(offset);
                    (i64::from(*x) - i64::from(q.zero_point)) * weight
                };
                let sum = row.iter().enumerate().map(product).sum::<i64>() + i64::from(biases[unit]);
                requantized(sum, multipliers[unit], q.requantize)
            }));
        }
        let what = || format!("case {case} {q:?}");
        let case = Case {
            what: &what,
            inputs: &[(&input, [1, rows, inner])],
            constants: &[(&packed, [1, 1, packed.len()])],
            output: [1, rows, units],
            want: &want,
        };
        case.by_rows(&mut random, &q, |_, y| y..y + 1);
        for isa in Isa::all() {
            let mut made = vec![0; rows * units];
            let output = &mut ElementsMut::dense(&mut made, &[rows, units]);
            let (x, packed) =
                (Elements::dense(&input, &[rows, inner]), Elements::dense(&packed, &[packed.len()]));
            q.elements(&mut Context::alone(isa), 0..1, &[x], &[packed], output);
            assert_eq!(made, want, "{}, elements", what());
        }
    }
}
