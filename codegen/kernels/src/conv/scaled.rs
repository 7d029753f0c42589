//! Convolutions of 32-bit floats by narrower weights, as a model's file has them: integers of 8 bits or halves, with a
//! scale for each output channel. Everything else is 32-bit floats.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::conv::Conv;
//! use csdfc_kernels::conv::scaled::ScaledConv;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let conv = Conv {
//!     channels: 1, filters: 1, kernel: [1, 1], stride: [1, 1], dilation: [1, 1], pads: [0; 4],
//!     groups: 1, pre: None, residual: false, activation: Activation::None,
//! };
//! let mut packed = vec![0.0; conv.packed_len()];
//! conv.pack(&[1.5], &[], &[], [&[], &[]], &mut packed);
//! let kernel = ScaledConv { conv, halves: false };
//! let mut bytes = vec![0; kernel.packed_len()];
//! assert!(kernel.pack(&packed, &[0.5], &mut bytes)); // the integer 3 times 0.5
//! let floats: Vec<f32> =
//!     bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
//! let input = Rows { data: Span::new(&[4.0]), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! let mut made = [0.0; 1];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! kernel.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&floats)], &mut output);
//! assert_eq!(made, [6.0]);
//! ```
#![allow(unsafe_code, reason = "narrow numbers that lie among floats; each block says why it is sound")]

use core::ops::Range;

use super::super::half::F16;
use super::super::kernel::{Context, RowKernel, Sharing};
use super::super::panel::{Kind, Panels};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::super::weight::Scaled;
use super::{Conv, Packed};

/// A convolution of floats by narrower weights. A matrix product counts as one.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ScaledConv {
    /// The convolution.
    pub conv: Conv,
    /// Whether weights are halves; if not, they are integers of 8 bits.
    pub halves: bool,
}

impl ScaledConv {
    const fn kind(&self) -> Kind {
        if self.halves { Kind::Halves } else { Kind::Bytes }
    }

    const fn panels(&self) -> Panels {
        self.conv.panels().with_kind(self.kind())
    }

    /// Bytes of a weight.
    const fn size(&self) -> usize {
        if self.halves { size_of::<F16>() } else { size_of::<i8>() }
    }

    /// Bytes of the packed weights, scales and biases, and of the constants of [`Conv::pre`] after them; a multiple of
    /// four.
    pub const fn packed_len(&self) -> usize {
        self.panels().len() * self.size() + self.conv.constants() * size_of::<f32>()
    }

    /// Bytes of an output channel among the packed bytes: scale, bias and weights.
    pub const fn packed_each(&self) -> usize {
        self.panels().channel_len() * self.size()
    }

    /// Packs parameters that [`Conv::pack`] has packed into `out`, which holds [`ScaledConv::packed_len`] bytes, with a
    /// scale for each output channel. It says whether the weights are integers or halves times these scales.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(&self, packed: &[f32], scales: &[f32], out: &mut [u8]) -> bool {
        let (weights, constants) = packed.split_at(self.conv.panels().len());
        let (narrow, floats) = out.split_at_mut(self.panels().len() * self.size());
        assert_eq!(floats.len(), size_of_val(constants), "constants of the input");
        for (x, to) in constants.iter().zip(floats.chunks_exact_mut(size_of::<f32>())) {
            to.copy_from_slice(&x.to_ne_bytes());
        }
        self.conv.panels().scale(self.kind(), weights, scales, narrow)
    }
}

/// The operands of [`Conv`]; the constant is packed by [`ScaledConv::pack`], and its bytes are given as floats.
impl RowKernel for ScaledConv {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let panels = self.panels();
        let packed = &constants[0].row(0)[..self.packed_len() / size_of::<f32>()];
        let (weights, beside) = packed.split_at(panels.len() * self.size() / size_of::<f32>());
        if self.halves {
            let packed = Packed { panels, weights: narrow::<F16>(weights), beside };
            self.conv.make(packed, context, y, operands, output);
        } else {
            let packed = Packed { panels, weights: narrow::<i8>(weights), beside };
            self.conv.make(packed, context, y, operands, output);
        }
    }

    #[inline]
    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        self.conv.shared(rows, workers, output)
    }
}

/// The numbers that were given as floats.
#[inline]
fn narrow<T>(floats: &[f32]) -> &[Scaled<T>] {
    let count = size_of_val(floats) / size_of::<T>();
    // SAFETY: `T` is `i8` or `F16`, for which every pattern of bits is a value, and floats are aligned better. So many
    // are no longer than the floats.
    unsafe { core::slice::from_raw_parts(floats.as_ptr().cast(), count) }
}
