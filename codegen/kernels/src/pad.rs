//! Padding and cropping.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::pad::{Pad, PadMode};
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! let input = Rows { data: Span::new(&[1.0, 2.0]), shape: RowShape::dense(1, 2, 1, 1) }; // [1, 2, 1]
//! let mut made = [0.0; 4];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(1, 4, 1, 1) }; // [1, 4, 1]
//! Pad { mode: PadMode::Edge, before: [0, 1, 0], after: [0, 1, 0] }.rows(&mut Context::alone(Isa::PORTABLE), 0..1, &[input], &[], &mut output);
//! assert_eq!(made, [1.0, 1.0, 2.0, 2.0]);
//! ```

use core::ops::Range;

use super::element::Element;
use super::elements::{Elements, ElementsMut, MAX_RANK};
use super::kernel::{Context, ElementKernel, RowKernel};
use super::pixels::{pixel, pixel_mut};
use super::rows::{Rows, RowsMut};

/// The values of padded elements.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum PadMode {
    /// A constant.
    Constant(f32),
    /// The mirror image without the edge.
    Reflect,
    /// The nearest element.
    Edge,
}

/// Elements that can be a constant.
pub trait Constant: Copy {
    /// The element that is this constant.
    fn constant(value: f32) -> Self;
}

impl<E: Element> Constant for E {
    #[inline]
    fn constant(value: f32) -> Self {
        E::narrow(value)
    }
}

/// The constant is the byte itself, not what it stands for.
impl Constant for u8 {
    #[inline]
    fn constant(value: f32) -> Self {
        value as u8
    }
}

/// Padding of an image, for `[row, column, channel]`.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Pad {
    /// The values of padded elements.
    pub mode: PadMode,
    /// Elements added before; negative crops.
    pub before: [i64; 3],
    /// Elements added after; negative crops.
    pub after: [i64; 3],
}

/// One operand.
impl<E: Constant> RowKernel<E, E> for Pad {
    #[inline]
    fn rows(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Rows<'_, E>],
        _: &[Rows<'_, E>],
        output: &mut RowsMut<'_, E>,
    ) {
        let input = operands[0];
        let (shape, out) = (input.shape, output.shape);
        let value = E::constant(if let PadMode::Constant(value) = self.mode { value } else { 0.0 });
        let from = |axis: usize, size, i| source(self.mode, self.before[axis], self.after[axis], size, i);
        for y in y {
            let row = from(0, shape.height, y).map(|y| input.row(y));
            let result = output.row(y);
            for x in 0..out.width {
                let result = pixel_mut(result, &out, x);
                let (Some(row), Some(x)) = (row, from(1, shape.width, x)) else {
                    result.fill(value);
                    continue;
                };
                let pixel = pixel(row, &shape, x);
                if self.before[2] == 0 && self.after[2] == 0 {
                    result.copy_from_slice(pixel);
                    continue;
                }
                for (channel, r) in result.iter_mut().enumerate() {
                    *r = from(2, shape.channels, channel).map_or(value, |channel| pixel[channel]);
                }
            }
        }
    }
}

/// Padding of a tensor of any rank, for each dimension; 0 beyond the rank.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PadElements {
    /// The values of padded elements.
    pub mode: PadMode,
    /// Elements added before; negative crops.
    pub before: [i64; MAX_RANK],
    /// Elements added after; negative crops.
    pub after: [i64; MAX_RANK],
}

/// One operand.
impl<E: Constant> ElementKernel<E, E> for PadElements {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, E>],
        _: &[Elements<'_, E>],
        output: &mut ElementsMut<'_, E>,
    ) {
        let input = &operands[0];
        let value = E::constant(if let PadMode::Constant(value) = self.mode { value } else { 0.0 });
        output.fill(y, |index| {
            let mut at = *index;
            for (axis, (&before, &after)) in
                self.before.iter().zip(&self.after).enumerate().take(input.seen.rank)
            {
                match source(self.mode, before, after, input.seen.sizes[axis], index[axis]) {
                    Some(i) => at[axis] = i,
                    None => return value,
                }
            }
            input.at(&at)
        });
    }
}

/// The input index that output index `i` shows; none for a constant. Cropping comes before the mode looks for the edge.
#[inline]
fn source(mode: PadMode, before: i64, after: i64, size: usize, i: usize) -> Option<usize> {
    let (low, high) = ((-before).max(0), size as i64 - 1 - (-after).max(0));
    let at = i as i64 - before;
    let at = match mode {
        _ if low <= at && at <= high => at,
        PadMode::Constant(_) => return None,
        PadMode::Edge => at.clamp(low, high),
        PadMode::Reflect if at < low => 2 * low - at,
        PadMode::Reflect => 2 * high - at,
    };
    Some(at as usize)
}
