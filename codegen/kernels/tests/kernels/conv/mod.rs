//! Convolutions against the textbook.

mod mec;
mod mec_batch;
mod mixed;
mod transform;
mod winograd;

use core::ops::Range;

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::{Isa, PANEL};
use csdfc_kernels::binary::{Binary, BinaryFunction};
use csdfc_kernels::conv::im2row::Im2row;
use csdfc_kernels::conv::transpose::ConvTranspose;
use csdfc_kernels::conv::*;
use csdfc_kernels::element_wise::{BatchNorm, PReluInPlace};
use csdfc_kernels::kernel::{Context, RowKernel};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::share::share_rows;
use csdfc_kernels::span::{Span, SpanMut};
use csdfc_kernels::workers::Workers;

use crate::testing::{Random, close, ring, rounds};

/// From one worker to four, who share output channels.
fn crews() -> [Workers; 4] {
    [1, 2, 3, 4].map(Workers::new)
}

/// The definition, in double precision: input `[height, width, channels]`, weights in ONNX order.
pub(super) fn textbook(
    p: &Conv,
    [height, width]: [usize; 2],
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
    slopes: &[f32],
) -> (Vec<f32>, [usize; 2]) {
    let extent = |size: usize, axis: usize| {
        (size + p.pads[axis] + p.pads[axis + 2] - (p.kernel[axis] - 1) * p.dilation[axis] - 1)
            / p.stride[axis]
            + 1
    };
    let out = [extent(height, 0), extent(width, 1)];
    let (inner, outer) = (p.channels / p.groups, p.filters / p.groups);
    let mut result = Vec::new();
    for y in 0..out[0] {
        for x in 0..out[1] {
            for o in 0..p.filters {
                let mut sum = bias.get(o).copied().map_or(0.0, f64::from);
                for c in 0..inner {
                    for ky in 0..p.kernel[0] {
                        for kx in 0..p.kernel[1] {
                            let iy = (y * p.stride[0] + ky * p.dilation[0]).checked_sub(p.pads[0]);
                            let ix = (x * p.stride[1] + kx * p.dilation[1]).checked_sub(p.pads[1]);
                            if let (Some(iy), Some(ix)) = (iy, ix)
                                && iy < height
                                && ix < width
                            {
                                let v = input[(iy * width + ix) * p.channels + o / outer * inner + c];
                                let w = weights[((o * inner + c) * p.kernel[0] + ky) * p.kernel[1] + kx];
                                sum += f64::from(v) * f64::from(w);
                            }
                        }
                    }
                }
                let slope = slopes.get(o).or(slopes.first()).copied().unwrap_or(0.0);
                result.push(p.activation.apply(sum as f32, slope));
            }
        }
    }
    (result, out)
}

pub(super) fn random_conv(random: &mut Random) -> Conv {
    let groups = *random.pick(&[1, 1, 1, 2, 3]);
    let (mut channels, mut filters) = (groups * random.within(1, 9), groups * random.within(1, 40));
    let mut groups = groups;
    if random.within(0, 2) == 0 {
        channels = random.within(1, 40);
        (filters, groups) = (channels, channels);
    }
    let kernel = [random.within(1, 4), random.within(1, 4)];
    let dilation = [random.within(1, 2), random.within(1, 3)];
    Conv {
        channels,
        filters,
        kernel,
        stride: [random.within(1, 4), random.within(1, 4)],
        dilation,
        pads: core::array::from_fn(|i| random.within(0, (kernel[i % 2] - 1) * dilation[i % 2])),
        groups,
        pre: None,
        residual: false,
        activation: *random.pick(&[
            Activation::None,
            Activation::Relu,
            Activation::Clip { min: -1.0, max: 0.5 },
            Activation::PRelu,
            Activation::Swish,
        ]),
    }
}

#[test]
fn rows_and_channels_in_any_division_are_the_textbook_ones() {
    let mut random = Random(7);
    let mut crews = crews();
    for case in rounds(900) {
        let mut p = random_conv(&mut random);
        if case % 3 == 0 {
            // Depthwise filters of these widths have code of their own for each way to lack columns at the borders.
            (p.filters, p.groups) = (p.channels, p.channels);
            p.kernel = [random.within(1, 6), *random.pick(&[3, 5])];
            p.dilation[1] = 1;
            p.stride[1] = random.within(1, 2);
            p.pads = core::array::from_fn(|i| random.within(0, (p.kernel[i % 2] - 1) * p.dilation[i % 2]));
        }
        let reach = |axis: usize| (p.kernel[axis] - 1) * p.dilation[axis] + 1;
        let least = |axis: usize| reach(axis).saturating_sub(p.pads[axis] + p.pads[axis + 2]).max(1);
        let size = [random.within(least(0), least(0) + 8), random.within(least(1), least(1) + 20)];
        let input = random.floats(size[0] * size[1] * p.channels);
        let weights = random.floats(p.filters * p.channels / p.groups * p.kernel[0] * p.kernel[1]);
        let bias = if random.within(0, 1) == 0 { vec![] } else { random.floats(p.filters) };
        let slopes = match p.activation {
            Activation::PRelu if case % 2 == 0 => random.floats(1),
            Activation::PRelu => random.floats(p.filters),
            _ => vec![],
        };
        let (want, out) = textbook(&p, size, &input, &weights, &bias, &slopes);
        let mut packed = vec![f32::NAN; p.packed_len()];
        p.pack(&weights, &bias, &slopes, [&[]; 2], &mut packed);

        for isa in Isa::all() {
            let mut whole: Option<Vec<f32>> = None;
            for rows in [1, 2, 3, out[0]] {
                let span = (rows - 1) * p.stride[0] + reach(0);
                let mut got = Vec::new();
                for from in (0..out[0]).step_by(rows) {
                    let to = (from + rows).min(out[0]);
                    // The input in a ring that holds the windows of these rows and nothing else.
                    let first = (from * p.stride[0]).saturating_sub(p.pads[0]).min(size[0]);
                    let (data, shape) =
                        ring(&mut random, &input, [size[0], size[1], p.channels], first, span);
                    // With room after it that nothing may write.
                    let len = (to - from) * out[1] * p.filters;
                    let mut made = vec![f32::NAN; len + PANEL];
                    let result = RowShape::dense(out[0], out[1], p.filters, to - from);
                    let mut output = RowsMut { data: SpanMut::new(&mut made), shape: result };
                    let input = Rows { data: Span::new(&data), shape };
                    let context = &mut Context {
                        isa,
                        workers: Some(&mut crews[random.within(0, 3)]),
                        workspace: &mut [],
                    };
                    p.rows(context, from..to, &[input], &[Rows::line(&packed)], &mut output);
                    (from..to).for_each(|y| got.extend_from_slice(output.row(y)));
                    assert!(made[len..].iter().all(|x| x.is_nan()), "case {case}: it wrote beyond its rows");
                }
                close(&got, &want, || format!("case {case} {} rows {rows} {p:?} {size:?}", isa.name()));
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let whole = whole.get_or_insert_with(|| got.clone());
                assert_eq!(bits(&got), bits(whole), "case {case} {} rows {rows} {p:?}", isa.name());
            }
        }
    }
}

/// The definition, in double precision, by scattering.
fn textbook_transpose(
    p: &ConvTranspose,
    [height, width]: [usize; 2],
    out: [usize; 2],
    input: &[f32],
    weights: &[f32],
    bias: &[f32],
) -> Vec<f32> {
    let (inner, outer) = (p.channels / p.groups, p.filters / p.groups);
    let mut sums = vec![0.0_f64; out[0] * out[1] * p.filters];
    for (i, sum) in sums.iter_mut().enumerate() {
        *sum = f64::from(bias[i % p.filters]);
    }
    for iy in 0..height {
        for ix in 0..width {
            for c in 0..p.channels {
                for o in 0..outer {
                    for ky in 0..p.kernel[0] {
                        for kx in 0..p.kernel[1] {
                            let y = (iy * p.stride[0] + ky * p.dilation[0]).wrapping_sub(p.pads[0]);
                            let x = (ix * p.stride[1] + kx * p.dilation[1]).wrapping_sub(p.pads[1]);
                            if y < out[0] && x < out[1] {
                                let w = weights[((c * outer + o) * p.kernel[0] + ky) * p.kernel[1] + kx];
                                let v = input[(iy * width + ix) * p.channels + c];
                                let filter = c / inner * outer + o;
                                sums[(y * out[1] + x) * p.filters + filter] += f64::from(v) * f64::from(w);
                            }
                        }
                    }
                }
            }
        }
    }
    sums.into_iter().map(|sum| p.activation.apply(sum as f32, 0.0)).collect()
}

#[test]
fn transposed_rows_and_channels_in_any_division_are_the_textbook_ones() {
    let mut random = Random(8);
    for case in rounds(300) {
        let groups = *random.pick(&[1, 1, 2, 3]);
        let kernel = [random.within(1, 4), random.within(1, 4)];
        let dilation = [random.within(1, 2), random.within(1, 2)];
        let p = ConvTranspose {
            channels: groups * random.within(1, 9),
            filters: groups * random.within(1, 40),
            kernel,
            stride: [random.within(1, 4), random.within(1, 4)],
            dilation,
            pads: core::array::from_fn(|i| random.within(0, (kernel[i % 2] - 1) * dilation[i % 2])),
            groups,
            activation: *random.pick(&[Activation::None, Activation::Relu, Activation::Tanh]),
        };
        let size = [random.within(1, 7), random.within(1, 20)];
        let extent = |axis: usize| {
            let full = (size[axis] - 1) * p.stride[axis] + (p.kernel[axis] - 1) * p.dilation[axis] + 1;
            (full + p.stride[axis] - 1).saturating_sub(p.pads[axis] + p.pads[axis + 2]).max(1)
        };
        let out = [extent(0), extent(1)];
        let input = random.floats(size[0] * size[1] * p.channels);
        let weights = random.floats(p.channels * p.filters / p.groups * kernel[0] * kernel[1]);
        let bias = random.floats(p.filters);
        let want = textbook_transpose(&p, size, out, &input, &weights, &bias);
        let mut packed = vec![f32::NAN; p.packed_len()];
        p.pack(&weights, &bias, &[], &mut packed);

        for isa in Isa::all() {
            let mut whole: Option<Vec<f32>> = None;
            for rows in [1, 2, 3, out[0]] {
                let mut got = Vec::new();
                for from in (0..out[0]).step_by(rows) {
                    let to = (from + rows).min(out[0]);
                    // The input rows that reach these output rows, and no others.
                    let reached = |iy: &usize| {
                        (0..kernel[0]).any(|ky| {
                            let y = (iy * p.stride[0] + ky * dilation[0]).wrapping_sub(p.pads[0]);
                            (from..to).contains(&y)
                        })
                    };
                    let first = (0..size[0]).find(reached).unwrap_or(0);
                    let last = (0..size[0]).rev().find(reached).unwrap_or(0);
                    let dims = [size[0], size[1], p.channels];
                    let (data, shape) = ring(&mut random, &input, dims, first, last + 1 - first);
                    let mut made = vec![f32::NAN; (to - from) * out[1] * p.filters];
                    let result = RowShape::dense(out[0], out[1], p.filters, to - from);
                    let mut output = RowsMut { data: SpanMut::new(&mut made), shape: result };
                    let input = Rows { data: Span::new(&data), shape };
                    p.rows(&mut Context::alone(isa), from..to, &[input], &[Rows::line(&packed)], &mut output);
                    for y in from..to {
                        got.extend_from_slice(output.row(y));
                    }
                }
                close(&got, &want, || format!("case {case} {} rows {rows} {p:?} {size:?}", isa.name()));
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let whole = whole.get_or_insert_with(|| got.clone());
                assert_eq!(bits(&got), bits(whole), "case {case} {} rows {rows} {p:?}", isa.name());
            }
        }
    }
}

/// A batch norm and an activation on loading, compared with both as layers before the convolution: the same bits, for
/// any rows and channels at a time.
#[test]
fn what_comes_before_is_as_in_layers_of_its_own() {
    let mut random = Random(9);
    let mut crews = crews();
    for case in rounds(300) {
        let mut p = random_conv(&mut random);
        if !p.is_depthwise() && case % 8 == 0 {
            // Several spans a pixel, and several tables a tile.
            (p.channels, p.filters) = (p.groups * random.within(500, 700), p.groups * random.within(1, 20));
        }
        p.activation = Activation::None;
        let cheap = [Activation::None, Activation::Relu, Activation::Clip { min: -0.25, max: 0.5 }];
        let any = [Activation::Relu, Activation::Swish, Activation::LeakyRelu { alpha: 0.1 }];
        let activation = *random.pick(if p.is_depthwise() { &cheap } else { &any });
        let affine = random.within(0, 3) > 0;
        let reach = |axis: usize| (p.kernel[axis] - 1) * p.dilation[axis] + 1;
        let least = |axis: usize| reach(axis).saturating_sub(p.pads[axis] + p.pads[axis + 2]).max(1);
        let size = [random.within(least(0), least(0) + 5), random.within(least(1), least(1) + 20)];
        let input = random.floats(size[0] * size[1] * p.channels);
        let weights = random.floats(p.filters * p.channels / p.groups * p.kernel[0] * p.kernel[1]);
        let bias = random.floats(p.filters);
        let (scale, shift) = match affine {
            true => (random.floats(p.channels), random.floats(p.channels)),
            false => (vec![1.0; p.channels], vec![-0.0; p.channels]),
        };
        let with = Conv { pre: Some(Pre { affine, activation }), ..p };
        let constants = if affine { [&scale[..], &shift[..]] } else { [&[][..]; 2] };
        let [packed, packed_with] = [(&p, [&[][..]; 2]), (&with, constants)].map(|(p, constants)| {
            let mut packed = vec![f32::NAN; p.packed_len()];
            p.pack(&weights, &bias, &[], constants, &mut packed);
            packed
        });
        let out = textbook(&p, size, &input, &weights, &bias, &[]).1;
        let whole = RowShape::dense(out[0], out[1], p.filters, out[0]);
        let dims = [size[0], size[1], p.channels];
        let dense = RowShape::dense(size[0], size[1], p.channels, size[0]);
        for isa in Isa::all() {
            let mut before = vec![f32::NAN; input.len()];
            let mut rows = RowsMut { data: SpanMut::new(&mut before), shape: dense };
            let x = Rows { data: Span::new(&input), shape: dense };
            let constants = [&scale, &shift].map(|c| Rows::line(c));
            BatchNorm { activation }.rows(&mut Context::alone(isa), 0..size[0], &[x], &constants, &mut rows);
            let mut want = vec![f32::NAN; out[0] * out[1] * p.filters];
            let mut output = RowsMut { data: SpanMut::new(&mut want), shape: whole };
            let x = Rows { data: Span::new(&before), shape: dense };
            p.rows(&mut Context::alone(isa), 0..out[0], &[x], &[Rows::line(&packed)], &mut output);

            let mut got = vec![f32::NAN; want.len()];
            let mut output = RowsMut { data: SpanMut::new(&mut got), shape: whole };
            let (data, shape) = ring(&mut random, &input, dims, 0, size[0]);
            let x = Rows { data: Span::new(&data), shape };
            let rows = random.within(1, out[0]);
            for from in (0..out[0]).step_by(rows) {
                let y = from..(from + rows).min(out[0]);
                let context =
                    &mut Context { isa, workers: Some(&mut crews[random.within(0, 3)]), workspace: &mut [] };
                with.rows(context, y, &[x], &[Rows::line(&packed_with)], &mut output);
            }
            let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&got), bits(&want), "case {case} {} rows {rows} {with:?} {size:?}", isa.name());
        }
    }
}

/// Channels `from .. to` of an image of so many.
fn channels_of(image: &[f32], channels: usize, part: Range<usize>) -> Vec<f32> {
    image.chunks_exact(channels).flat_map(|pixel| &pixel[part.clone()]).copied().collect()
}

/// Parts of an image and a residual, compared with the convolution of the whole image and a separate addition: the same
/// bits, for any parts, rings, rows and channels at a time.
#[test]
fn operands_are_read_where_they_lie() {
    let mut random = Random(10);
    let mut crews = crews();
    for case in rounds(400) {
        let mut p = random_conv(&mut random);
        if p.is_depthwise() {
            (p.channels, p.filters, p.groups) = (random.within(2, 9), random.within(1, 40), 1);
        }
        let has_parts = p.groups == 1 && case % 4 > 0;
        if case % 16 == 1 {
            // Several spans a part, and several tables a tile.
            (p.channels, p.filters, p.groups) = (random.within(600, 1300), random.within(1, 20), 1);
        }
        p.residual = !has_parts || random.within(0, 2) > 0;
        if random.within(0, 1) == 0 {
            let activation = *random.pick(&[Activation::None, Activation::Relu, Activation::Tanh]);
            p.pre = Some(Pre { affine: random.within(0, 1) == 0, activation });
        }
        let mut cuts = vec![0, p.channels];
        if has_parts {
            cuts.extend((0..random.within(1, 5)).map(|_| random.within(0, p.channels)));
            cuts.sort_unstable();
            cuts.dedup();
        }
        let reach = |axis: usize| (p.kernel[axis] - 1) * p.dilation[axis] + 1;
        let least = |axis: usize| reach(axis).saturating_sub(p.pads[axis] + p.pads[axis + 2]).max(1);
        let size = [random.within(least(0), least(0) + 5), random.within(least(1), least(1) + 20)];
        let image = random.floats(size[0] * size[1] * p.channels);
        let weights = random.floats(p.filters * p.channels / p.groups * p.kernel[0] * p.kernel[1]);
        let bias = random.floats(p.filters);
        let slopes = if p.activation == Activation::PRelu { random.floats(p.filters) } else { vec![] };
        let constants = match p.pre {
            Some(Pre { affine: true, .. }) => [random.floats(p.channels), random.floats(p.channels)],
            _ => [vec![], vec![]],
        };
        let packed = |p: &Conv, slopes: &[f32]| {
            let mut packed = vec![f32::NAN; p.packed_len()];
            p.pack(&weights, &bias, slopes, [&constants[0], &constants[1]], &mut packed);
            packed
        };
        let extent =
            |axis: usize| (size[axis] + p.pads[axis] + p.pads[axis + 2] - reach(axis)) / p.stride[axis] + 1;
        let out = [extent(0), extent(1)];
        let dense = |[height, width]: [usize; 2], channels| RowShape::dense(height, width, channels, height);
        let residual = random.floats(out[0] * out[1] * p.filters);
        let whole = dense(out, p.filters);
        let plain = Conv { residual: false, activation: Activation::None, ..p };
        for isa in Isa::all() {
            // The layers by themselves.
            let mut want = vec![f32::NAN; residual.len()];
            let mut output = RowsMut { data: SpanMut::new(&mut want), shape: whole };
            let x = Rows { data: Span::new(&image), shape: dense(size, p.channels) };
            let weights = packed(&plain, &[]);
            plain.rows(&mut Context::alone(isa), 0..out[0], &[x], &[Rows::line(&weights)], &mut output);
            let sums = want.clone();
            let zeros = vec![-0.0; residual.len()];
            let added = if p.residual { &residual } else { &zeros };
            let [x, r] = [&sums, added].map(|data| Rows { data: Span::new(data), shape: whole });
            let is_p_relu = p.activation == Activation::PRelu;
            let activation = if is_p_relu { Activation::None } else { p.activation };
            let mut output = RowsMut { data: SpanMut::new(&mut want), shape: whole };
            let add = Binary { function: BinaryFunction::Add, constant_first: false, activation };
            add.rows(&mut Context::alone(isa), 0..out[0], &[x, r], &[], &mut output);
            if is_p_relu {
                let shape = RowShape::dense(1, 1, p.filters, 1);
                let slopes = Rows { data: Span::new(&slopes), shape };
                PReluInPlace.rows(&mut Context::alone(isa), 0..out[0], &[], &[slopes], &mut output);
            }

            let mut got = vec![f32::NAN; want.len()];
            let packed = packed(&p, &slopes);
            let rows = random.within(1, out[0]);
            for from in (0..out[0]).step_by(rows) {
                let y = from..(from + rows).min(out[0]);
                // Rings that hold what these rows read and nothing else.
                let first = (from * p.stride[0]).saturating_sub(p.pads[0]).min(size[0]);
                let span = (rows - 1) * p.stride[0] + reach(0);
                let mut rings: Vec<(Vec<f32>, RowShape)> = Vec::new();
                for cut in cuts.windows(2) {
                    let part = channels_of(&image, p.channels, cut[0]..cut[1]);
                    rings.push(ring(&mut random, &part, [size[0], size[1], cut[1] - cut[0]], first, span));
                }
                if p.residual {
                    rings.push(ring(&mut random, &residual, [out[0], out[1], p.filters], from, rows));
                }
                let inputs: Vec<Rows<'_>> =
                    rings.iter().map(|(data, shape)| Rows { data: Span::new(data), shape: *shape }).collect();
                let mut output = RowsMut { data: SpanMut::new(&mut got), shape: whole };
                let context =
                    &mut Context { isa, workers: Some(&mut crews[random.within(0, 3)]), workspace: &mut [] };
                p.rows(context, y, &inputs, &[Rows::line(&packed)], &mut output);
            }
            let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&got), bits(&want), "case {case} {} rows {rows} {p:?} {cuts:?}", isa.name());
        }
    }
}

#[test]
fn the_bytes_are_those_of_one_worker() {
    let mut random = Random(41);
    let mut crews = crews();
    for case in rounds(60) {
        let (height, width) = (random.within(1, 9), random.within(1, 9));
        let (groups, per_group) = (random.within(1, 3), random.within(1, 20));
        let depthwise = random.within(0, 2) == 0;
        let (channels, groups) = if depthwise { (per_group, per_group) } else { (groups * 2, groups) };
        let filters = if depthwise { channels } else { groups * per_group };
        let p = Conv {
            channels,
            filters,
            kernel: [3, 3],
            stride: [1, 1],
            dilation: [1, 1],
            pads: [1; 4],
            groups,
            pre: None,
            residual: false,
            activation: Activation::None,
        };
        let input = random.floats(height * width * channels);
        let weights = random.floats(filters * channels / groups * 9);
        let mut packed = vec![f32::NAN; p.packed_len()];
        p.pack(&weights, &[], &[], [&[]; 2], &mut packed);
        let input = Rows { data: Span::new(&input), shape: RowShape::dense(height, width, channels, height) };
        let shape = RowShape::dense(height, width, filters, height);
        let y = random.within(0, height - 1)..height;
        let make = |workers: &mut Workers| {
            let mut made = vec![f32::NAN; height * width * filters];
            let mut output = RowsMut { data: SpanMut::new(&mut made), shape };
            let mut context = Context { isa: Isa::detect(), workers: Some(workers), workspace: &mut [] };
            share_rows(&p, &mut context, y.clone(), &[input], &[Rows::line(&packed)], &mut output);
            made.iter().map(|x| x.to_bits()).collect::<Vec<u32>>()
        };
        let alone = make(&mut crews[0]);
        for workers in &mut crews[1..] {
            assert_eq!(make(workers), alone, "case {case}, {} workers", workers.count());
        }
    }
}

/// By windows that are copied first: the same bytes.
#[test]
fn im2row_is_the_convolution() {
    let mut random = Random(23);
    let mut cases = 0;
    while cases < 200 {
        let conv = random_conv(&mut random);
        if conv.groups != 1 || conv.is_depthwise() {
            continue;
        }
        cases += 1;
        let reach = |axis: usize| (conv.kernel[axis] - 1) * conv.dilation[axis] + 1;
        let least = |axis: usize| reach(axis).saturating_sub(conv.pads[axis] + conv.pads[axis + 2]).max(1);
        let [height, width] = [0, 1].map(|axis| random.within(least(axis), least(axis) + 9));
        let input = random.floats(height * width * conv.channels);
        let weights = random.floats(conv.filters * conv.channels * conv.kernel[0] * conv.kernel[1]);
        let bias = random.floats(conv.filters);
        let slopes = if conv.activation == Activation::PRelu { random.floats(conv.filters) } else { vec![] };
        let (want, [rows, columns]) = textbook(&conv, [height, width], &input, &weights, &bias, &slopes);
        let mut packed = vec![f32::NAN; conv.packed_len()];
        conv.pack(&weights, &bias, &slopes, [&[]; 2], &mut packed);
        let operand =
            Rows { data: Span::new(&input), shape: RowShape::dense(height, width, conv.channels, height) };
        for isa in Isa::all() {
            let made = |kernel: &dyn RowKernel, workspace: &mut [f32]| {
                let mut data = vec![f32::NAN; rows * columns * conv.filters];
                let shape = RowShape::dense(rows, columns, conv.filters, rows);
                let mut output = RowsMut { data: SpanMut::new(&mut data), shape };
                let mut context = Context { isa, workers: None, workspace };
                kernel.rows(&mut context, 0..rows, &[operand], &[Rows::line(&packed)], &mut output);
                data
            };
            let kernel = Im2row { conv };
            let mut workspace = vec![f32::NAN; columns * conv.kernel[0] * conv.kernel[1] * conv.channels];
            let got = made(&kernel, &mut workspace);
            let same = got.iter().zip(&made(&conv, &mut [])).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{conv:?} by {}", isa.name());
            close(&got, &want, || format!("{conv:?} by {}", isa.name()));
        }
    }
}
