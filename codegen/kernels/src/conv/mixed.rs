//! Convolutions and products of mixed precision: tensors and biases are halves, weights integers of 8 bits with a scale
//! for each output channel (Minakova and Stefanov 2022, Table 3).
#![allow(unsafe_code, reason = "bytes that lie among halves; each block says why it is sound")]

use core::ops::Range;

use super::super::arch::PANEL;
use super::super::element::F16;
use super::super::elements::{Elements, ElementsMut};
use super::super::gemm::Gemm;
use super::super::kernel::{Context, ElementKernel, RowKernel};
use super::super::panel::Panels;
use super::super::rows::{RowShape, Rows, RowsMut};
use super::super::share::Sharing;
use super::{Conv, Packed, Pre};

/// A convolution of halves by integers of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MixedConv {
    /// The convolution.
    pub conv: Conv,
}

impl MixedConv {
    /// Bytes of the packed weights, scales, biases and slopes, and of the constants of [`Conv::pre`] after them; an even
    /// number.
    pub const fn packed_len(&self) -> usize {
        let constants = match self.conv.pre {
            Some(Pre { affine: true, .. }) => 2 * self.conv.channels,
            _ => 0,
        };
        self.conv.panels().mixed().len() + constants * size_of::<F16>()
    }

    /// Bytes of an output channel among the packed bytes: scale, bias, weights and slope.
    pub const fn packed_each(&self) -> usize {
        self.conv.panels().mixed().each()
    }

    /// Packs parameters that [`Conv::pack`] has packed into `out`, which holds [`MixedConv::packed_len`] bytes. The
    /// scale of an output channel is the absolute value of its largest weight divided by 127. Its integers are the
    /// nearest ones.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn quantise(&self, packed: &[f32], out: &mut [u8]) {
        let panels = self.conv.panels();
        let (weights, constants) = packed.split_at(panels.len());
        let (integers, halves) = out.split_at_mut(panels.mixed().len());
        panels.quantise(weights, integers);
        assert_eq!(halves.len(), size_of::<F16>() * constants.len(), "constants of the input");
        for (x, half) in constants.iter().zip(halves.chunks_exact_mut(size_of::<F16>())) {
            half.copy_from_slice(&F16::from_f32(*x).to_bits().to_ne_bytes());
        }
    }
}

/// The operands of [`Conv`]; the constant is packed by [`MixedConv::quantise`], and its bytes are given as halves. Sums are
/// floats until each is rounded, once, after the activation.
impl RowKernel<F16, F16> for MixedConv {
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, F16>],
        constants: &[Rows<'_, F16>],
        output: &mut RowsMut<'_, F16>,
    ) {
        let panels = self.conv.panels().mixed();
        let packed = &constants[0].row(0)[..self.packed_len() / size_of::<F16>()];
        let (weights, beside) = packed.split_at(panels.len() / size_of::<F16>());
        let packed = Packed { panels, weights: bytes(weights), beside };
        self.conv.make(packed, context, y, operands, output);
    }

    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        self.conv.shared(rows, workers, output)
    }
}

/// The bytes that were given as halves.
fn bytes(halves: &[F16]) -> &[i8] {
    // SAFETY: of halves, every byte is a value of a byte.
    unsafe { core::slice::from_raw_parts(halves.as_ptr().cast(), size_of_val(halves)) }
}

/// A fully connected layer of halves by integers of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MixedGemm {
    /// The layer.
    pub gemm: Gemm,
}

/// One operand. This kernel is for operands or outputs that do not lie in the order in which they are seen; otherwise a
/// [`MixedConv`] of [`Gemm::as_conv`] makes the product. The constant is packed as for that convolution.
impl ElementKernel<F16, F16> for MixedGemm {
    fn elements(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, F16>],
        constants: &[Elements<'_, F16>],
        output: &mut ElementsMut<'_, F16>,
    ) {
        let MixedGemm { gemm } = *self;
        let (input, packed) = (&operands[0], bytes(constants[0].values()));
        let (panels, shape) = (gemm.as_conv().panels().mixed(), output.shape);
        let last = shape.dims.rank - 1;
        shape.for_each(y, |index| {
            let unit = index[last];
            if !unit.is_multiple_of(PANEL) {
                return;
            }
            let panel = Panel::new(&panels, packed, unit);
            let mut all = [[0.0; PANEL]; 2];
            let [sums, slopes] = all.each_mut().map(|all| &mut all[..panel.width]);
            let mut at = *index;
            for (k, weights) in panel.weights.chunks_exact(panel.width).enumerate() {
                at[last] = k;
                let x = input.at(&at).to_f32();
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * f32::from(*weight));
            }
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = *sum * panel.scale(lane) + half(panel.biases, lane);
            }
            if panels.slopes {
                slopes.iter_mut().enumerate().for_each(|(lane, slope)| *slope = half(panel.slopes, lane));
            }
            gemm.activation.apply_all(context.isa, sums, slopes);
            for (lane, sum) in sums.iter().enumerate() {
                at[last] = unit + lane;
                *output.at(&at) = F16::from_f32(*sum);
            }
        });
    }
}

/// A panel of one group, in parts.
struct Panel<'a> {
    width: usize,
    scales: &'a [i8],
    biases: &'a [i8],
    weights: &'a [i8],
    slopes: &'a [i8],
}

impl<'a> Panel<'a> {
    /// The panel that begins with this output channel.
    fn new(panels: &Panels, packed: &'a [i8], first: usize) -> Self {
        let width = PANEL.min(panels.filters - first);
        let (scales, rest) = packed[first * panels.each()..].split_at(size_of::<f32>() * width);
        let (biases, rest) = rest.split_at(size_of::<F16>() * width);
        let (weights, slopes) = rest.split_at(panels.steps * width);
        Panel { width, scales, biases, weights, slopes }
    }

    fn scale(&self, lane: usize) -> f32 {
        f32::from_ne_bytes(core::array::from_fn(|i| self.scales[size_of::<f32>() * lane + i] as u8))
    }
}

/// Half number `lane` of these bytes.
fn half(bytes: &[i8], lane: usize) -> f32 {
    let bits = core::array::from_fn(|i| bytes[size_of::<F16>() * lane + i] as u8);
    F16::from_bits(u16::from_ne_bytes(bits)).to_f32()
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::super::super::activation::Activation;
    use super::super::super::arch::Isa;
    use super::super::super::share::share_rows;
    use super::super::super::span::SpanMut;
    use super::super::super::testing::Random;
    use super::super::super::workers::Workers;
    use super::super::tests::{random_conv, textbook};
    use super::*;

    /// As many bytes, from the start of a half.
    fn packed_halves(p: MixedConv, wide: &[f32]) -> Vec<F16> {
        let mut bytes = vec![0xa5; p.packed_len()];
        p.quantise(wide, &mut bytes);
        bytes.chunks(2).map(|half| F16::from_bits(u16::from_ne_bytes([half[0], half[1]]))).collect()
    }

    fn halves(values: &[f32]) -> Vec<F16> {
        values.iter().map(|x| F16::from_f32(*x)).collect()
    }

    fn floats(values: &[F16]) -> Vec<f32> {
        values.iter().map(|x| x.to_f32()).collect()
    }

    /// The weights of each filter as the integers by 127ths of the largest that are nearest.
    fn quantised(weights: &[f32], filters: usize) -> Vec<f32> {
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

        /// By the definition, in doubles except for the activations.
        fn want(&self) -> (Vec<f32>, [usize; 2]) {
            let Case { p, size, input, residual, weights, beside: [bias, slopes, scale, shift] } = self;
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
            let (mut made, out) = textbook(&bare, *size, &input, &quantised(weights, p.filters), bias, &[]);
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
            let dense =
                |[height, width]: [usize; 2], channels| RowShape::dense(height, width, channels, height);
            let mut operands =
                vec![Rows { data: input.as_slice().into(), shape: dense(case.size, p.channels) }];
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
        p.quantise(&wide, &mut packed);
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
}
