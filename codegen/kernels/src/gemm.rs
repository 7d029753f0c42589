//! Fully connected layers.

use core::ops::Range;

use super::activation::Activation;
use super::arch::{Isa, PANEL};
use super::conv::{Conv, conv, conv_shared};
use super::elements::{Elements, ElementsMut};
use super::panel::Panels;
use super::rows::{RowShape, Rows, RowsMut};
use super::shared::SharedRows;
use super::span::{Span, SpanMut};

/// A fully connected layer: rows of `inner` elements → rows of `units` elements.
#[derive(Debug, Clone, Copy, PartialEq)]
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

    /// Packs the weights into `out`, which holds [`Gemm::packed_len`] elements. `weight(unit, k)` is the weight between a
    /// unit and the input element at place `k` in memory, which is where a permutation of the input is undone; `bias`
    /// is `[units]` or empty, `slopes` those of a PRelu (`[units]` or `[1]`), else empty.
    ///
    /// # Panics
    /// If a slice has another length than is said here.
    pub fn pack(&self, weight: impl Fn(usize, usize) -> f32, bias: &[f32], slopes: &[f32], out: &mut [f32]) {
        self.panels().pack(weight, bias, slopes, out);
    }

    /// Parts into which the units may be divided among workers.
    pub const fn tiles(&self) -> usize {
        self.panels().count()
    }

    /// Rows of a dense tensor of `elements` elements, `size` a row.
    fn dense(elements: usize, size: usize) -> RowShape {
        RowShape::dense(1, elements / size.max(1), size, 1)
    }
}

/// Makes every row of `output` from that of `input`; both are dense. `weights` are packed by [`Gemm::pack`].
///
/// # Panics
/// If a slice is shorter than the others say.
#[inline]
pub fn gemm(isa: Isa, p: &Gemm, input: &[f32], weights: &[f32], output: &mut [f32]) {
    let input = Rows { data: Span::new(input), shape: Gemm::dense(input.len(), p.inner) };
    let shape = Gemm::dense(output.len(), p.units);
    conv(isa, &p.as_conv(), 0..1, &[input], weights, &mut RowsMut { data: SpanMut::new(output), shape });
}

/// Makes rows `y` of the product where operand or output do not lie in the order in which they are seen.
///
/// # Panics
/// If a slice is shorter than the shapes say.
pub fn gemm_elements(
    isa: Isa,
    p: &Gemm,
    y: Range<usize>,
    input: &Elements<'_>,
    weights: &[f32],
    output: &mut ElementsMut<'_>,
) {
    let (panels, shape) = (p.panels(), output.shape);
    let last = shape.dims.rank - 1;
    shape.for_each(y, |index| {
        let unit = index[last];
        if !unit.is_multiple_of(PANEL) {
            return;
        }
        let count = PANEL.min(p.units - unit);
        let mut parts = weights[unit * panels.each()..].chunks_exact(count);
        let mut all = [0.0; PANEL];
        let sums = &mut all[..count];
        sums.copy_from_slice(parts.next().unwrap_or_default());
        let mut at = *index;
        for (k, weights) in parts.by_ref().take(p.inner).enumerate() {
            at[last] = k;
            let x = input.at(&at);
            sums.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
        }
        let slopes = parts.next().filter(|_| panels.slopes).unwrap_or_default();
        p.activation.apply_all(isa, sums, slopes);
        for (lane, sum) in sums.iter().enumerate() {
            at[last] = unit + lane;
            *output.at(&at) = *sum;
        }
    });
}

/// Makes those units of [`gemm`] that belong to `tiles`, of [`Gemm::tiles`]; `output` is of one row of as many pixels as
/// `input` has rows. The bytes are those of [`gemm`] however tiles are divided.
///
/// # Safety
/// No one else reads or writes these elements of `output` at the same time.
///
/// # Panics
/// As [`gemm`].
#[inline]
#[allow(unsafe_code, reason = "several workers write one tensor")]
pub unsafe fn gemm_shared(
    isa: Isa,
    p: &Gemm,
    tiles: Range<usize>,
    input: &[f32],
    weights: &[f32],
    output: SharedRows<'_>,
) {
    let input = Rows { data: Span::new(input), shape: Gemm::dense(input.len(), p.inner) };
    // SAFETY: the caller's.
    unsafe { conv_shared(isa, &p.as_conv(), 0..1, tiles, &[input], weights, output) }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

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
                let mut got = vec![f32::NAN; rows * units];
                gemm(isa, &p, &input, &packed, &mut got);
                close(&got, &want, || std::format!("case {case} {}", isa.name()));

                let mut halves = vec![f32::NAN; rows * units];
                let cut = random.within(0, p.tiles());
                let mut output =
                    RowsMut { data: SpanMut::new(&mut halves), shape: RowShape::dense(1, rows, units, 1) };
                let shared = SharedRows::new(&mut output);
                for tiles in [0..cut, cut..p.tiles()] {
                    #[allow(unsafe_code)]
                    // SAFETY: one after the other.
                    unsafe {
                        gemm_shared(isa, &p, tiles, &input, &packed, shared);
                    }
                }
                assert_eq!(got, halves, "case {case} {} cut at {cut}", isa.name());
            }
        }
    }
}
