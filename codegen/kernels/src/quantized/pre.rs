//! A convolution's prologue, applied to its input as it is gathered: a batch norm, an activation, or both, between
//! integers.
//!
//! The arithmetic is that of the layers that the convolution replaces, to the bit: bytes become floats, these are
//! multiplied, shifted and bounded, and become bytes again. The padding is the integer that stands for 0 after that.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::quantized::Requantize;
//! use csdfc_kernels::quantized::conv::QConv;
//! use csdfc_kernels::quantized::cast::{Dequantize, Quantize};
//! use csdfc_kernels::quantized::pre::QPre;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 2, kernel: [1, 1], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let pre = QPre {
//!     read: Dequantize { scale: 1.0, zero_point: 128 },
//!     affine: false,
//!     activation: Activation::Relu,
//!     made: Quantize { scale: 1.0, zero_point: 0 },
//! };
//! let requantize = Requantize { zero_point: 0, low: 0, high: 255 };
//! let conv = QConv { conv, pre: Some(pre), zero_point: 0, has_offset: false, requantize };
//! let mut packed = vec![0; conv.packed_len()];
//! conv.pack((&[2, 1], 0), &[], &[1.0; 2], [&[], &[]], &mut packed);
//! let input = Rows { data: Span::new(&[100, 130]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0_u8; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 2, 1) }; // [1, 2, 2]
//! conv.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [0, 0, 4, 2]); // the Relu of −28 and of 2, times 2 and 1
//! ```

use super::super::activation::{Activation, clip};
use super::cast::{Dequantize, Function, Quantize};
use super::integers::NUMBER;

/// Bytes that are made at a time.
pub(super) const CHUNK: usize = 64;

/// A batch norm, an activation, or one after the other, of the elements that a convolution reads.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QPre {
    /// The numbers that the elements stand for.
    pub read: Dequantize,
    /// Whether each channel is multiplied by a scale, and a shift added.
    pub affine: bool,
    /// What follows: no activation, a Relu or a Clip.
    pub activation: Activation,
    /// How the results become integers again.
    pub made: Quantize,
}

impl QPre {
    /// Bytes of the scales and shifts of so many channels.
    pub(super) const fn len(&self, channels: usize) -> usize {
        if self.affine { 2 * NUMBER * channels } else { 0 }
    }

    /// Packs a scale and a shift of each channel into `out`, which holds [`QPre::len`] bytes: first all scales, then all
    /// shifts, the lowest byte of each first.
    pub(super) fn pack(&self, constants: [&[f32]; 2], out: &mut [u8]) {
        let numbers = constants.into_iter().flatten();
        out.chunks_exact_mut(NUMBER).zip(numbers).for_each(|(to, x)| to.copy_from_slice(&x.to_le_bytes()));
    }

    /// Makes elements from these, at most [`CHUNK`], which belong to the channels from `first` on. `constants` are as
    /// [`QPre::pack`] makes them.
    #[inline(always)]
    pub(super) fn apply(&self, elements: &[u8], first: usize, constants: &[u8], made: &mut [u8; CHUNK]) {
        // `bind` gives no other activation, which would have no bounds.
        let [low, high] = self.activation.bounds().unwrap_or([f32::NEG_INFINITY, f32::INFINITY]);
        let made = made.iter_mut().zip(elements);
        if self.affine {
            let (scales, shifts) = constants.split_at(constants.len() / 2);
            let [scales, shifts] = [scales, shifts].map(|numbers| {
                let numbers = &numbers[NUMBER * first..][..NUMBER * elements.len()];
                numbers.as_chunks::<NUMBER>().0
            });
            for (((to, &q), scale), shift) in made.zip(scales).zip(shifts) {
                let x = self.read.apply(q) * f32::from_le_bytes(*scale) + f32::from_le_bytes(*shift);
                *to = self.made.apply(clip(x, low, high));
            }
        } else {
            made.for_each(|(to, &q)| *to = self.made.apply(clip(self.read.apply(q), low, high)));
        }
    }
}
