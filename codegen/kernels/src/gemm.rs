//! Fully connected layers.

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
            let mut parts = weights[unit * panels.each()..].chunks_exact(count);
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

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::super::arch::Isa;
    use super::super::kernel::RowKernel;
    use super::super::rows::{RowShape, Rows, RowsMut};
    use super::super::span::SpanMut;
    use super::super::testing::{Random, close};
    use super::*;

    #[test]
    fn rows_and_permuted_inputs() {
        let mut random = Random(3);
        for case in 0..60 {
            let (rows, inner, units) = (random.within(1, 9), random.within(1, 70), random.within(1, 50));
            let p = Gemm { inner, units, activation: Activation::None };
            let (input, weights) = (random.floats(rows * inner), random.floats(inner * units));
            let bias = random.floats(units);
            // The element at place k in memory is the logical element `order(k)`.
            let order = |k: usize| (inner - 1) - k;
            let mut packed = vec![f32::NAN; p.packed_len()];
            p.pack(|unit, k| weights[order(k) * units + unit], &bias, &[], &mut packed);
            let mut want = Vec::new();
            for row in input.chunks(inner) {
                want.extend((0..units).map(|unit| {
                    let sum =
                        |(k, x): (usize, &f32)| f64::from(*x) * f64::from(weights[order(k) * units + unit]);
                    (row.iter().enumerate().map(sum).sum::<f64>() + f64::from(bias[unit])) as f32
                }));
            }
            for isa in Isa::all() {
                let context = &mut Context::alone(isa);
                let mut got = vec![f32::NAN; rows * units];
                let x = Rows { data: input.as_slice().into(), shape: RowShape::dense(1, rows, inner, 1) };
                let shape = RowShape::dense(1, rows, units, 1);
                let output = &mut RowsMut { data: SpanMut::new(&mut got), shape };
                p.as_conv().rows(context, 0..1, &[x], &[Rows::line(&packed)], output);
                close(&got, &want, || std::format!("case {case} {}", isa.name()));

                let mut by_elements = vec![f32::NAN; rows * units];
                let output = &mut ElementsMut::dense(&mut by_elements, &[rows, units]);
                let x = Elements::dense(&input, &[rows, inner]);
                p.elements(context, 0..1, &[x], &[Elements::dense(&packed, &[packed.len()])], output);
                close(&by_elements, &want, || std::format!("case {case} {}, elements", isa.name()));
            }
        }
    }
}
