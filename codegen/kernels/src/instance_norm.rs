//! Instance normalisation: `y = scale · (x − mean) / √(variance + epsilon) + shift`, per channel of a frame.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::instance_norm::InstanceNorm;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[1.0, 3.0]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0.0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let norm = InstanceNorm { epsilon: 0.0 };
//! let (scale, shift) = (Rows::line(&[10.0]), Rows::line(&[1.0]));
//! norm.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[scale, shift], &mut output);
//! assert_eq!(made, [-9.0, 11.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel, Sharing};
use super::math;
use super::pixels::{pixel, pixels_mut};
use super::reduce::{LANES, Planes, ReduceFunction, fold};
use super::rows::{RowShape, Rows, RowsMut};

/// An instance normalisation. Each firing reads the whole input, twice for the statistics. So the fewer firings make
/// the output, the better. Its constants are a scale and a shift of each channel.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct InstanceNorm {
    /// Added to the variance.
    pub epsilon: f32,
}

/// One operand, an image.
impl RowKernel for InstanceNorm {
    /// If workers shared a firing, each would read the whole operand.
    fn sharing(&self, _: usize, _: usize, _: &RowShape) -> Sharing {
        Sharing::Alone
    }

    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_>],
        constants: &[Rows<'_>],
        output: &mut RowsMut<'_>,
    ) {
        let (epsilon, input) = (self.epsilon, operands[0]);
        let [scale, shift] = [0, 1].map(|i| constants[i].row(0));
        let (shape, out) = (input.shape, output.shape);
        let planes = Planes { rows: shape.height, row: |y| input.row(y), shape };
        let count = (shape.height * shape.width) as f32;
        for first in (0..shape.channels).step_by(LANES) {
            let lanes = LANES.min(shape.channels - first);
            let mean = planes.fold(first, lanes, ReduceFunction::Sum, |_, x| x).map(|sum| sum / count);
            let squares = |lane: usize, x: f32| (x - mean[lane]) * (x - mean[lane]);
            let variance = planes.fold(first, lanes, ReduceFunction::Sum, squares).map(|sum| sum / count);
            let mut factor = [0.0; LANES];
            for ((factor, variance), scale) in factor.iter_mut().zip(variance).zip(&scale[first..]) {
                *factor = scale / math::sqrt(variance + epsilon);
            }
            for y in y.clone() {
                let row = input.row(y);
                for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
                    let pixel = &pixel(row, &shape, x)[first..][..lanes];
                    let constants = mean.iter().zip(&factor).zip(&shift[first..]);
                    for ((r, &x), ((&mean, &factor), &shift)) in
                        result[first..].iter_mut().zip(pixel).zip(constants)
                    {
                        *r = (x - mean) * factor + shift;
                    }
                }
            }
        }
    }
}

/// One operand, `[N, C, …]`.
impl ElementKernel for InstanceNorm {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        constants: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (epsilon, input) = (self.epsilon, &operands[0]);
        let [scale, shift] = [0, 1].map(|i| constants[i].values());
        let (mut planes, mut plane) = (input.seen, input.seen);
        planes.sizes[2..].fill(1);
        plane.sizes[..2].fill(1);
        let row_axis = output.shape.row_axis;
        planes.for_each(|of| {
            // The rows may count channels.
            if row_axis == Some(1) && !y.contains(&of[1]) {
                return;
            }
            let index = |i: usize| {
                let mut at = plane.index(i);
                (at[0], at[1]) = (of[0], of[1]);
                at
            };
            let count = plane.elements();
            let mean = fold(ReduceFunction::Mean, count, |i| input.at(&index(i)));
            let variance = fold(ReduceFunction::Mean, count, |i| {
                let x = input.at(&index(i)) - mean;
                x * x
            });
            let factor = scale[of[1]] / math::sqrt(variance + epsilon);
            for at in (0..count).map(index) {
                if row_axis.is_none_or(|row| y.contains(&at[row])) {
                    *output.at(&at) = (input.at(&at) - mean) * factor + shift[of[1]];
                }
            }
        });
    }
}
