//! Elements at the indices that another tensor holds.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::gather::GatherElements;
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let x = Elements::dense(&[1.0, 2.0, 3.0], &[3]);
//! let indices = Elements::dense(&[2.0, -3.0], &[2]);
//! let mut made = [0.0; 2];
//! let mut output = ElementsMut::dense(&mut made, &[2]);
//! GatherElements { axis: 0 }.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[x, indices], &[], &mut output);
//! assert_eq!(made, [3.0, 1.0]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut};
use super::kernel::{Context, ElementKernel};

/// Elements of a tensor at indices along a dimension. Negative indices count from its end.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct GatherElements {
    /// The dimension.
    pub axis: usize,
}

/// Two operands: the tensor, and as many indices as the output has elements. An index outside gives the element that is
/// nearest to it.
impl ElementKernel for GatherElements {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        let (data, indices) = (&operands[0], &operands[1]);
        let size = data.seen.sizes[self.axis];
        output.fill(y, |index| {
            let place = indices.at(index) as i64;
            let place = if place < 0 { place.saturating_add(size as i64) } else { place };
            let mut at = *index;
            at[self.axis] = place.clamp(0, size as i64 - 1) as usize;
            data.at(&at)
        });
    }
}
