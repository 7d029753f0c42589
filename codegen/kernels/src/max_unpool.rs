//! Where the largest elements of windows lie, and elements put back there.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::max_unpool::MaxUnpool;
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let x = Elements::dense(&[5.0, 7.0], &[1, 1, 1, 2]);
//! let places = Elements::dense(&[3.0, 0.0], &[1, 1, 1, 2]);
//! let mut made = [9.0; 4];
//! let mut output = ElementsMut::dense(&mut made, &[1, 1, 2, 2]);
//! MaxUnpool.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[x, places], &[], &mut output);
//! assert_eq!(made, [7.0, 0.0, 0.0, 5.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel};
use super::pool::{Pool, Taps};

/// The place of the first largest element of each window, in the row-major order of the whole operand. If a window has no
/// elements, or NaN alone, it is that of its first element.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MaxIndex {
    /// The window; its kind does not matter.
    pub window: Pool,
}

/// One operand, `[N, C, H, W]`.
impl ElementKernel for MaxIndex {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let input = &operands[0];
        output.fill(y, |index| {
            let rows = Taps::of(&self.window, 0, index[2], input.seen.sizes[2]);
            let columns = Taps::of(&self.window, 1, index[3], input.seen.sizes[3]);
            let mut at = *index;
            let mut best = (f32::NEG_INFINITY, None);
            for ky in rows.inside.clone() {
                at[2] = rows.at(ky);
                for kx in columns.inside.clone() {
                    at[3] = columns.at(kx);
                    let x = input.at(&at);
                    if x > best.0 || best.1.is_none() {
                        best = (if x.is_nan() { best.0 } else { x }, Some(input.seen.linear(&at)));
                    }
                }
            }
            best.1.unwrap_or_default() as f32
        });
    }
}

/// Zeros, but for the elements of an image at places in the row-major order of the whole output. Places outside are left out.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct MaxUnpool;

/// Two operands of the same dimensions: the elements, and their places.
impl ElementKernel for MaxUnpool {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (values, places, shape) = (&operands[0], &operands[1], output.shape);
        output.fill(y.clone(), |_| 0.0);
        values.seen.for_each(|index| {
            let place = places.at(index);
            if !(0.0..shape.dims.elements() as f32).contains(&place) {
                return;
            }
            let to = shape.dims.index(place as usize);
            if shape.row_axis.is_none_or(|row| y.contains(&to[row])) {
                *output.at(&to) = values.at(index);
            }
        });
    }
}
