//! Convolutions and products with 8-bit weights.

use csdfc_kernels::activation::Activation;
use csdfc_kernels::arch::Isa;
use csdfc_kernels::conv::mixed::*;
use csdfc_kernels::conv::scaled::ScaledConv;
use csdfc_kernels::conv::{Conv, Pre};
use csdfc_kernels::elements::{Elements, ElementsMut};
use csdfc_kernels::gemm::Gemm;
use csdfc_kernels::half::F16;
use csdfc_kernels::kernel::{Context, ElementKernel, RowKernel};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::share::share_rows;
use csdfc_kernels::span::SpanMut;
use csdfc_kernels::workers::Workers;

use super::{random_conv, textbook};
use crate::testing::Random;

/// As many bytes, from the start of a half.
fn packed_halves(p: MixedConv, wide: &[f32]) -> Vec<F16> {
    let mut bytes = vec![0xa5; p.packed_len()];
    p.quantize(wide, &mut bytes);
    bytes.chunks(2).map(|half| F16::from_bits(u16::from_ne_bytes([half[0], half[1]]))).collect()
}

fn halves(values: &[f32]) -> Vec<F16> {
    values.iter().map(|x| F16::from_f32(*x)).collect()
}

fn floats(values: &[F16]) -> Vec<f32> {
    values.iter().map(|x| x.to_f32()).collect()
}

/// The weights of each filter as the integers by 127ths of the largest that are nearest.
fn quantized(weights: &[f32], filters: usize) -> Vec<f32> {
    let of_filter = |weights: &[f32]| {
        let scale = weights.iter().fold(0.0f32, |most, w| most.max(w.abs())) / 127.0;
        let integer = |w: f32| if scale == 0.0 { 0.0 } else { (w / scale).round_ties_even() };
        weights.iter().map(|&w| integer(w) * scale).collect::<Vec<_>>()
    };
    weights.chunks(weights.len() / filters).flat_map(of_filter).collect()
}

/// A convolution with everything that is fused into it, its operands, and its constants as floats.
struct Case {
    p: Conv,
    size: [usize; 2],
    input: Vec<f32>,
    residual: Vec<f32>,
    weights: Vec<f32>,
    /// Bias, slopes, scale and shift of the input.
    beside: [Vec<f32>; 4],
}

impl Case {
    fn random(random: &mut Random, case: usize) -> Case {
        let mut p = random_conv(random);
        if !p.is_depthwise() && p.groups == 1 && case % 6 == 1 {
            // Several tables and runs of panels.
            (p.channels, p.filters) = (random.within(300, 1100), random.within(1, 200));
        }
        p.residual = !p.is_depthwise() && case % 4 == 1;
        if case.is_multiple_of(5) {
            let activation = *random.pick(&[Activation::None, Activation::Relu]);
            p.pre = Some(Pre { affine: case.is_multiple_of(10), activation });
        }
        let reach = |axis: usize| (p.kernel[axis] - 1) * p.dilation[axis] + 1;
        let size = [0, 1].map(|axis| reach(axis) + random.within(0, 11));
        let out = [0, 1].map(|i| (size[i] + p.pads[i] + p.pads[i + 2] - reach(i)) / p.stride[i] + 1);
        let mut rounded = |count: usize| floats(&halves(&random.floats(count)));
        let input = rounded(size[0] * size[1] * p.channels);
        let residual = rounded(if p.residual { out[0] * out[1] * p.filters } else { 0 });
        let slopes = if p.activation == Activation::PRelu { p.filters } else { 0 };
        let affine = p.pre.filter(|pre| pre.affine).map_or(0, |_| p.channels);
        let beside = [p.filters, slopes, affine, affine].map(&mut rounded);
        let mut weights = random.floats(p.filters * p.channels / p.groups * p.kernel[0] * p.kernel[1]);
        if case.is_multiple_of(3) {
            // A filter of zeros.
            let each = weights.len() / p.filters;
            weights[..each].fill(0.0);
        }
        Case { p, size, input, residual, weights, beside }
    }

    /// By the definition, in doubles except for the activations, with weights of 8 bits.
    fn want(&self) -> (Vec<f32>, [usize; 2]) {
        self.of(&quantized(&self.weights, self.p.filters))
    }

    /// The same with these weights.
    fn of(&self, weights: &[f32]) -> (Vec<f32>, [usize; 2]) {
        let Case { p, size, input, residual, beside: [bias, slopes, scale, shift], .. } = self;
        let mut input = input.clone();
        if let Some(pre) = p.pre {
            for (i, x) in input.iter_mut().enumerate() {
                if pre.affine {
                    *x = *x * scale[i % p.channels] + shift[i % p.channels];
                }
                *x = pre.activation.apply(*x, 0.0);
            }
        }
        let bare = Conv { activation: Activation::None, ..*p };
        let (mut made, out) = textbook(&bare, *size, &input, weights, bias, &[]);
        for (i, x) in made.iter_mut().enumerate() {
            *x += residual.get(i).copied().unwrap_or(0.0);
            *x = p.activation.apply(*x, slopes.get(i % p.filters).copied().unwrap_or(0.0));
        }
        (made, out)
    }
}

#[test]
fn sums_are_those_of_the_integers() {
    let mut random = Random(77);
    for number in 0..60 {
        let case = Case::random(&mut random, number);
        let (p, [bias, slopes, scale, shift]) = (case.p, &case.beside);
        let (want, out) = case.want();
        let mut wide = vec![f32::NAN; p.packed_len()];
        p.pack(&case.weights, bias, slopes, [scale, shift], &mut wide);
        let kernel = MixedConv { conv: p };
        let packed = packed_halves(kernel, &wide);
        let (input, residual) = (halves(&case.input), halves(&case.residual));
        let dense = |[height, width]: [usize; 2], channels| RowShape::dense(height, width, channels, height);
        let mut operands = vec![Rows { data: input.as_slice().into(), shape: dense(case.size, p.channels) }];
        if p.residual {
            operands.push(Rows { data: residual.as_slice().into(), shape: dense(out, p.filters) });
        }
        let most = want.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        for isa in Isa::all() {
            let mut first: Vec<u16> = Vec::new();
            for (rows, workers) in [(out[0], 1), (1, 1), (2, 2), (out[0], 3)] {
                let mut made = vec![F16::from_f32(f32::NAN); want.len()];
                let mut output = RowsMut { data: SpanMut::new(&mut made), shape: dense(out, p.filters) };
                let mut workers = Workers::new(workers);
                for y in (0..out[0]).step_by(rows) {
                    let mut context = Context { isa, workers: Some(&mut workers), workspace: &mut [] };
                    let y = y..out[0].min(y + rows);
                    share_rows(&kernel, &mut context, y, &operands, &[Rows::line(&packed)], &mut output);
                }
                for (got, want) in floats(&made).iter().zip(&want) {
                    let most = want.abs() / 2000.0 + most * 2e-5 + 1e-6;
                    let is_near = (got - want).abs() <= most;
                    assert!(is_near, "case {number} {}: {got}, not {want}, of {p:?}", isa.name());
                }
                let bits: Vec<u16> = made.iter().map(|x| x.to_bits()).collect();
                first = if first.is_empty() { bits.clone() } else { first };
                assert!(first == bits, "case {number} {}: {rows} rows", isa.name());
            }
        }
    }
}

/// Weights that are halves or integers times scales, for tensors of floats: the sums are those of these weights as
/// floats.
#[test]
fn scaled_weights_are_numbers_times_scales() {
    let mut random = Random(78);
    for number in 0..60 {
        let mut case = Case::random(&mut random, number);
        let (p, halves) = (case.p, number % 2 == 0);
        let scales: Vec<f32> = random.floats(p.filters).iter().map(|x| x * 3.0).collect();
        let each = case.weights.len() / p.filters;
        for (filter, weights) in case.weights.chunks_mut(each).enumerate() {
            for w in weights {
                let number = if halves { F16::from_f32(*w).to_f32() } else { (*w * 127.0).round() };
                *w = number * scales[filter];
            }
        }
        let [bias, slopes, scale, shift] = &case.beside;
        let (want, out) = case.of(&case.weights);
        let mut wide = vec![f32::NAN; p.packed_len()];
        p.pack(&case.weights, bias, slopes, [scale, shift], &mut wide);
        let kernel = ScaledConv { conv: p, halves };
        let mut bytes = vec![0xa5; kernel.packed_len()];
        assert!(kernel.pack(&wide, &scales, &mut bytes), "{p:?}");
        let packed: Vec<f32> = bytes.as_chunks().0.iter().map(|x| f32::from_ne_bytes(*x)).collect();
        let dense = |[height, width]: [usize; 2], channels| RowShape::dense(height, width, channels, height);
        let mut operands =
            vec![Rows { data: case.input.as_slice().into(), shape: dense(case.size, p.channels) }];
        if p.residual {
            operands.push(Rows { data: case.residual.as_slice().into(), shape: dense(out, p.filters) });
        }
        let most = want.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        for isa in Isa::all() {
            for (rows, workers) in [(out[0], 1), (1, 2)] {
                let mut made = vec![f32::NAN; want.len()];
                let mut output = RowsMut { data: SpanMut::new(&mut made), shape: dense(out, p.filters) };
                let mut workers = Workers::new(workers);
                for y in (0..out[0]).step_by(rows) {
                    let mut context = Context { isa, workers: Some(&mut workers), workspace: &mut [] };
                    let y = y..out[0].min(y + rows);
                    share_rows(&kernel, &mut context, y, &operands, &[Rows::line(&packed)], &mut output);
                }
                for (got, want) in made.iter().zip(&want) {
                    let is_near = (got - want).abs() <= most * 2e-5 + 1e-6;
                    assert!(is_near, "case {number} {}: {got}, not {want}, of {p:?}", isa.name());
                }
            }
        }
        // Other scales have no such numbers.
        let other: Vec<f32> = scales.iter().map(|scale| scale * 1.001).collect();
        let is_zero = case.weights.iter().all(|w| *w == 0.0);
        assert!(is_zero || !kernel.pack(&wide, &other, &mut bytes), "{p:?}");
    }
}

#[test]
fn products_by_elements_are_those_by_rows() {
    let mut random = Random(78);
    for _ in 0..60 {
        let (rows, inner, units) = (random.within(1, 5), random.within(1, 90), random.within(1, 50));
        let activation = *random.pick(&[Activation::None, Activation::PRelu, Activation::Relu]);
        let gemm = Gemm { inner, units, activation };
        let weights = random.floats(inner * units);
        let slopes = random.floats(if activation == Activation::PRelu { units } else { 0 });
        let mut wide = vec![0.0; gemm.packed_len()];
        gemm.pack(|unit, k| weights[unit * inner + k], &random.floats(units), &slopes, &mut wide);
        let conv = gemm.as_conv();
        let packed = packed_halves(MixedConv { conv }, &wide);
        let input = halves(&random.floats(rows * inner));
        for isa in Isa::all() {
            let context = &mut Context::alone(isa);
            let [mut by_rows, mut by_elements] = [0; 2].map(|_| vec![F16::default(); rows * units]);
            let x = Rows { data: input.as_slice().into(), shape: RowShape::dense(1, rows, inner, 1) };
            let shape = RowShape::dense(1, rows, units, 1);
            let output = &mut RowsMut { data: SpanMut::new(&mut by_rows), shape };
            MixedConv { conv }.rows(context, 0..1, &[x], &[Rows::line(&packed)], output);
            let output = &mut ElementsMut::dense(&mut by_elements, &[rows, units]);
            let constants = [Elements::dense(&packed, &[packed.len()])];
            let x = [Elements::dense(&input, &[rows, inner])];
            MixedGemm { gemm }.elements(context, 0..1, &x, &constants, output);
            for (a, b) in floats(&by_rows).iter().zip(floats(&by_elements)) {
                assert!((a - b).abs() <= a.abs() / 1000.0 + 1e-3, "{}: {a} and {b}", isa.name());
            }
        }
    }
}

/// Three channels of two steps: floats, halves and integers, in this order, and zeros.
#[test]
fn a_panel_is_scales_biases_integers_and_slopes() {
    let gemm = Gemm { inner: 2, units: 3, activation: Activation::PRelu };
    let weights = [[12.7, 1.0], [-6.35, 0.125], [0.0, 0.0]];
    let mut wide = vec![0.0; gemm.packed_len()];
    gemm.pack(|unit, k| weights[unit][k], &[1.0, 2.0, 3.0], &[0.5, 0.25, 4.0], &mut wide);
    let p = MixedConv { conv: gemm.as_conv() };
    let mut packed = vec![1; p.packed_len()];
    p.quantize(&wide, &mut packed);
    let mut expected: Vec<u8> = Vec::new();
    for most in [12.7f32, 6.35, 0.0] {
        expected.extend((most / 127.0).to_ne_bytes());
    }
    expected.extend(halves(&[1.0, 2.0, 3.0]).iter().flat_map(|x| x.to_bits().to_ne_bytes()));
    // 0.125 by 0.05 is 2.5, or nearly so: the even one of 2 and 3.
    expected.extend([127i8, -127, 0, 10, 2, 0].map(|q| q as u8));
    expected.extend(halves(&[0.5, 0.25, 4.0]).iter().flat_map(|x| x.to_bits().to_ne_bytes()));
    expected.extend([0; 13]);
    expected.extend([0; 1]);
    assert_eq!(packed, expected);
}
