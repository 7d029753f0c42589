//! Fully connected layers of bytes.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::gemm::Gemm;
//! use csdfc_kernels::quantized::Requantize;
//! use csdfc_kernels::quantized::gemm::QGemm;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Activation, Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let gemm = Gemm { inner: 2, units: 1, activation: Activation::None };
//! let requantize = Requantize { zero_point: 0, low: 0, high: 255 };
//! let gemm = QGemm { gemm, zero_point: 0, has_offset: false, requantize };
//! let mut packed = vec![0; gemm.packed_len()];
//! gemm.pack((|_, k| [3, -1][k], 0), &[5], &[1.0], &mut packed);
//! let input = Rows { data: Span::new(&[10, 20]), shape: RowShape::dense(1, 1, 2, 1) }; // [1, 1, 2]
//! let mut made = [0_u8; 1];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 1, 1, 1) }; // [1, 1, 1]
//! gemm.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[Rows::line(&packed)], &mut output);
//! assert_eq!(made, [15]); // 5 + 3 · 10 − 20
//! ```

use core::ops::Range;

use super::super::arch::PANEL;
use super::super::elements::{Elements, ElementsMut};
use super::super::gemm::Gemm;
use super::super::kernel::{Context, ElementKernel, RowKernel, Sharing};
use super::super::rows::{RowShape, Rows, RowsMut};
use super::Requantize;
use super::conv::QConv;
use super::panels::{Panel, Panels};

/// A fully connected layer of bytes: rows of `inner` elements → rows of `units` elements.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct QGemm {
    /// The layer, without [`Gemm::activation`].
    pub gemm: Gemm,
    /// The input's element that stands for 0.
    pub zero_point: u8,
    /// As [`QConv::has_offset`].
    pub has_offset: bool,
    /// How sums become elements.
    pub requantize: Requantize,
}

impl QGemm {
    /// The same as a convolution of one pixel's window, with the same constant; for tensors whose last dimension is their
    /// channels.
    pub const fn as_conv(&self) -> QConv {
        QConv {
            conv: self.gemm.as_conv(),
            pre: None,
            zero_point: self.zero_point,
            has_offset: self.has_offset,
            requantize: self.requantize,
        }
    }

    const fn panels(&self) -> Panels {
        Panels { groups: 1, filters: self.gemm.units, steps: self.gemm.inner, in_fours: self.in_fours() }
    }

    /// As in [`QGemm::as_conv`]: a convolution of one channel by one filter is depthwise.
    const fn in_fours(&self) -> bool {
        !self.gemm.as_conv().is_depthwise()
    }

    /// Bytes of the packed weights, biases and multipliers, and of an offset.
    pub const fn packed_len(&self) -> usize {
        self.as_conv().packed_len()
    }

    /// Packs the weights into `out`, which holds [`QGemm::packed_len`] bytes. `weight(unit, k)` is the weight between a
    /// unit and the input element at place `k` in memory; a caller undoes a permutation of the input there. The offset
    /// of the weights, `biases` (`[units]`, or empty) and `multipliers` (`[units]`) are as in [`QConv::pack`].
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(
        &self,
        (weight, offset): (impl Fn(usize, usize) -> i8, i32),
        biases: &[i32],
        multipliers: &[f32],
        out: &mut [u8],
    ) {
        let (panels, last) = out.split_at_mut(self.panels().len());
        self.panels().pack(self.zero_point, (weight, offset), biases, multipliers, panels);
        last.copy_from_slice(&offset.to_le_bytes()[..last.len()]);
    }
}

/// One operand; the constant is packed by [`QGemm::pack`].
impl RowKernel<u8, u8> for QGemm {
    #[inline]
    fn rows(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, u8>],
        constants: &[Rows<'_, u8>],
        output: &mut RowsMut<'_, u8>,
    ) {
        self.as_conv().rows(context, y, operands, constants, output);
    }

    #[inline]
    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        self.as_conv().sharing(rows, workers, output)
    }
}

/// One operand. This kernel is for operands or outputs that do not lie in the order in which they are seen. The
/// constant is packed by [`QGemm::pack`].
impl ElementKernel<u8, u8> for QGemm {
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, u8>],
        constants: &[Elements<'_, u8>],
        output: &mut ElementsMut<'_, u8>,
    ) {
        let (input, packed) = (&operands[0], constants[0].values());
        let (panels, shape) = (self.panels(), output.shape);
        let last = shape.dims.rank - 1;
        let offset = self.as_conv().offset(packed);
        shape.for_each(y, |index| {
            let unit = index[last];
            if !unit.is_multiple_of(PANEL) {
                return;
            }
            let panel = Panel::new(&panels, packed, unit);
            let mut sums = panel.biases();
            let mut at = *index;
            for k in 0..self.gemm.inner {
                at[last] = k;
                let x = i32::from(input.at(&at));
                for (lane, sum) in sums[..panel.width].iter_mut().enumerate() {
                    let weight = panel.weights()[panels.place(panel.width, lane, k)].cast_signed();
                    *sum = sum.wrapping_add(x * (i32::from(weight) + offset));
                }
            }
            for (lane, &sum) in sums[..panel.width].iter().enumerate() {
                at[last] = unit + lane;
                *output.at(&at) = self.requantize.apply(sum, panel.multiplier(lane));
            }
        });
    }
}
