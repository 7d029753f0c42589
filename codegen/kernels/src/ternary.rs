//! Functions of three tensors element by element, with broadcasting.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::ternary::Where;
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let [condition, x, y] = [[1.0, 0.0], [2.0, 3.0], [4.0, 5.0]];
//! let operands = [&condition, &x, &y].map(|data| Elements::dense(data, &[2]));
//! let mut made = [0.0; 2];
//! let mut output = ElementsMut::dense(&mut made, &[2]);
//! Where { constants: [false; 3] }.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &operands, &[], &mut output);
//! assert_eq!(made, [2.0, 5.0]);
//! ```

use core::ops::Range;

use super::element::Element;
use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::lines::{Lines, for_each_line};
use super::pixels::{pixel, pixels_mut};
use super::rows::{Rows, RowsMut};

/// Elements of one tensor where a condition is not 0, and elements of another where it is.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Where {
    /// Whether the condition, what is taken where it holds, and what is taken elsewhere are constants. Those that are not are
    /// the operands.
    pub constants: [bool; 3],
}

impl Where {
    /// The condition, what is taken where it holds, and what is taken elsewhere.
    #[inline]
    fn sides<X: Copy>(&self, operands: &[X], constants: &[X]) -> [X; 3] {
        let (mut operand, mut constant) = (0, 0);
        self.constants.map(|is_constant| {
            let (from, next) =
                if is_constant { (constants, &mut constant) } else { (operands, &mut operand) };
            *next += 1;
            from[*next - 1]
        })
    }
}

/// Images: each has as many rows, columns and channels as the output, or one, which repeats.
impl<E: Element> RowKernel<E, E> for Where {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        constants: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let (sides, out) = (self.sides(operands, constants), output.shape);
        for y in y {
            let rows = sides.map(|side| (side.row(if side.shape.height == 1 { 0 } else { y }), side.shape));
            for (x, result) in pixels_mut(output.row(y), &out).enumerate() {
                let [c, a, b] =
                    rows.map(|(row, shape)| pixel(row, &shape, if shape.width == 1 { 0 } else { x }));
                let at = |pixel: &[E], channel: usize| pixel[if pixel.len() == 1 { 0 } else { channel }];
                for (channel, r) in result.iter_mut().enumerate() {
                    *r = if at(c, channel).widen() == 0.0 { at(b, channel) } else { at(a, channel) };
                }
            }
        }
    }
}

/// Tensors of any rank that broadcast to the output.
impl<E: Element> ElementKernel<E, E> for Where {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        constants: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let (sides, rank) = (self.sides(operands, constants), output.shape.dims.rank);
        let lines = sides.each_ref().map(|side| Lines::new(side));
        for_each_line(output, y, |index, axis, mut line| {
            let [c, a, b] = lines.map(|side| side.broadcast(rank, index, axis));
            for (i, element) in line.iter_mut().enumerate() {
                *element = if c.get(i).widen() == 0.0 { b.get(i) } else { a.get(i) };
            }
        });
    }
}
