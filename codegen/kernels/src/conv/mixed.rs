//! Convolutions and products of mixed precision: tensors and biases are halves, weights integers of 8 bits with a scale
//! for each output channel (Minakova and Stefanov 2022, Table 3).
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::mixed::MixedConv;
//! use csdfc_kernels::half::F16;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 2, kernel: [1, 1], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let mut packed = vec![0.0; conv.packed_len()];
//! conv.pack(&[127.0, -254.0], &[], &[], [&[], &[]], &mut packed); // scales of 1 and 2
//! let kernel = MixedConv { conv };
//! let mut bytes = vec![0; kernel.packed_len()];
//! kernel.quantize(&packed, &mut bytes);
//! let halves: Vec<F16> =
//!     bytes.chunks_exact(2).map(|pair| F16::from_bits(u16::from_le_bytes([pair[0], pair[1]]))).collect();
//! let x = [F16::from_f32(2.0)];
//! let input = Rows { data: Span::new(&x), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! let mut made = [F16::default(); 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! kernel.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&halves)], &mut output);
//! assert_eq!(made.map(F16::to_f32), [254.0, -508.0]);
//! ```
#![allow(unsafe_code, reason = "bytes that lie among halves; each block says why it is sound")]

use core::ops::Range;

use super::super::arch::PANEL;
use super::super::elements::{Elements, ElementsMut};
use super::super::gemm::Gemm;
use super::super::half::F16;
use super::super::kernel::{Context, ElementKernel, RowKernel, Sharing};
use super::super::panel::Panels;
use super::super::rows::{RowShape, Rows, RowsMut};
use super::{Conv, Packed};

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
        self.conv.panels().mixed().len() + self.conv.constants() * size_of::<F16>()
    }

    /// Bytes of an output channel among the packed bytes: scale, bias, weights and slope.
    pub const fn packed_each(&self) -> usize {
        self.conv.panels().mixed().channel_len()
    }

    /// Packs parameters that [`Conv::pack`] has packed into `out`, which holds [`MixedConv::packed_len`] bytes. The
    /// scale of an output channel is the absolute value of its largest weight divided by 127. Its integers are the
    /// nearest ones.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn quantize(&self, packed: &[f32], out: &mut [u8]) {
        let panels = self.conv.panels();
        let (weights, constants) = packed.split_at(panels.len());
        let (integers, halves) = out.split_at_mut(panels.mixed().len());
        panels.quantize(weights, integers);
        assert_eq!(halves.len(), size_of::<F16>() * constants.len(), "constants of the input");
        for (x, half) in constants.iter().zip(halves.chunks_exact_mut(size_of::<F16>())) {
            half.copy_from_slice(&F16::from_f32(*x).to_bits().to_ne_bytes());
        }
    }
}

/// The operands of [`Conv`]; the constant is packed by [`MixedConv::quantize`], and its bytes are given as halves. Sums are
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
    // SAFETY: halves have no padding, every pattern of bits is an `i8`, and bytes need no alignment. There are as many
    // as `size_of_val` says.
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
        let (scales, rest) = packed[first * panels.channel_len()..].split_at(size_of::<f32>() * width);
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
