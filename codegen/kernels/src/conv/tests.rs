//! Convolutions against the textbook.

extern crate std;
use std::vec;
use std::vec::Vec;

use super::super::rows::RowShape;
use super::super::testing::{Random, close, ring};
use super::*;

/// The definition, in double precision: input `[height, width, channels]`, weights in ONNX order.
fn textbook(
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

fn random_conv(random: &mut Random) -> Conv {
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
    for case in 0..600 {
        let p = random_conv(&mut random);
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
        p.pack(&weights, &bias, &slopes, &mut packed);

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
                    let mut made = vec![f32::NAN; (to - from) * out[1] * (p.filters + 2)];
                    let mut result = RowShape::dense(out[0], out[1], p.filters, to - from);
                    (result.pixel_stride, result.channel_offset) = (p.filters + 2, 1);
                    let mut output = RowsMut { data: &mut made, shape: result };
                    let input = Rows { data: &data, shape };
                    let cut = random.within(0, p.tiles());
                    #[allow(unsafe_code)]
                    // SAFETY: one after the other.
                    unsafe {
                        let output = SharedRows::new(&mut output);
                        conv_shared(isa, &p, from..to, cut..p.tiles(), input, &packed, output);
                        conv_shared(isa, &p, from..to, 0..cut, input, &packed, output);
                    }
                    for y in from..to {
                        for pixel in output.row(y).chunks(p.filters + 2) {
                            assert!(pixel[0].is_nan() && pixel[p.filters + 1].is_nan());
                            got.extend_from_slice(&pixel[1..=p.filters]);
                        }
                    }
                }
                close(&got, &want, || std::format!("case {case} {} rows {rows} {p:?} {size:?}", isa.name()));
                let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let whole = whole.get_or_insert_with(|| got.clone());
                assert_eq!(bits(&got), bits(whole), "case {case} {} rows {rows} {p:?}", isa.name());
            }
        }
    }
}
