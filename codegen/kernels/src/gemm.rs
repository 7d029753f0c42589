//! Fully connected layers.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::gemm::Gemm;
//! use csdfc_kernels::{Activation, Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let gemm = Gemm { inner: 2, units: 1, activation: Activation::None };
//! let weights = [3.0, 4.0];
//! let mut packed = vec![0.0; gemm.packed_len()];
//! gemm.pack(|_, k| weights[k], &[0.5], &[], &mut packed);
//! let x = Elements::dense(&[1.0, 2.0, 10.0, 20.0], &[2, 2]);
//! let mut made = [0.0; 2];
//! let mut output = ElementsMut::dense(&mut made, &[2, 1]);
//! let constant = Elements::dense(&packed, &[packed.len()]);
//! gemm.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[x], &[constant], &mut output);
//! assert_eq!(made, [11.5, 110.5]);
//! ```

use core::ops::Range;

use super::activation::Activation;
use super::arch::PANEL;
use super::conv::Conv;
use super::element::Element;
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel};
use super::panel::Panels;

/// A fully connected layer: rows of `inner` elements → rows of `units` elements.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Gemm {
    /// Elements of an input row.
    pub inner: usize,
    /// Elements of an output row.
    pub units: usize,
    /// Applied to every output element.
    pub activation: Activation,
}

impl Gemm {
    /// The same as a convolution of one pixel's window; for tensors whose last dimension is their channels.
    pub const fn as_conv(&self) -> Conv {
        Conv {
            channels: self.inner,
            filters: self.units,
            kernel: [1, 1],
            stride: [1, 1],
            dilation: [1, 1],
            pads: [0; 4],
            groups: 1,
            pre: None,
            residual: false,
            activation: self.activation,
        }
    }

    const fn panels(&self) -> Panels {
        Panels::new(1, self.units, self.inner, self.activation)
    }

    /// Elements of the packed weights, biases and slopes.
    pub const fn packed_len(&self) -> usize {
        self.panels().len()
    }

    /// Packs the weights into `out`, which holds [`Gemm::packed_len`] elements. `weight(unit, k)` is the weight between
    /// a unit and the input element at place `k` in memory; a caller undoes a permutation of the input there. `bias` is
    /// `[units]` or empty. `slopes` are those of a PRelu (`[units]` or `[1]`), or empty.
    ///
    /// # Panics
    /// If a slice has another length than stated here.
    pub fn pack(&self, weight: impl Fn(usize, usize) -> f32, bias: &[f32], slopes: &[f32], out: &mut [f32]) {
        self.panels().pack(weight, bias, slopes, out);
    }
}

/// One operand. This kernel is for operands or outputs that do not lie in the order in which they are seen; otherwise
/// [`Gemm::as_conv`] makes the product. The constant is packed by [`Gemm::pack`].
impl<E: Element> ElementKernel<E, E> for Gemm {
    fn elements(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        constants: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let (input, weights) = (&operands[0], constants[0].values());
        let (panels, shape) = (self.panels(), output.shape);
        let last = shape.dims.rank - 1;
        shape.for_each(y, |index| {
            let unit = index[last];
            if !unit.is_multiple_of(PANEL) {
                return;
            }
            let count = PANEL.min(self.units - unit);
            let mut parts = weights[unit * panels.channel_len()..].chunks_exact(count);
            let mut all = [0.0; PANEL];
            let sums = &mut all[..count];
            let biases = parts.next().unwrap_or_default();
            sums.iter_mut().zip(biases).for_each(|(sum, bias)| *sum = bias.widen());
            let mut at = *index;
            for (k, weights) in parts.by_ref().take(self.inner).enumerate() {
                at[last] = k;
                let x = input.at(&at).widen();
                sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight.widen());
            }
            let mut slopes = [0.0; PANEL];
            let last_part = parts.next().filter(|_| panels.slopes).unwrap_or_default();
            slopes.iter_mut().zip(last_part).for_each(|(slope, x)| *slope = x.widen());
            self.activation.apply_all(context.isa, sums, &slopes[..count]);
            for (lane, sum) in sums.iter().enumerate() {
                at[last] = unit + lane;
                *output.at(&at) = E::narrow(*sum);
            }
        });
    }
}
