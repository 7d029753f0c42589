//! Permutation of dimensions.

use core::ops::Range;

use super::elements::{Elements, ElementsMut, Index};
use super::kernel::{Context, ElementKernel};

/// A transpose: dimension i of the output is dimension `perm[i]` of the input.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Transpose {
    /// The permutation; 0 beyond the rank.
    pub perm: Index,
}

/// One operand.
impl<T: Copy> ElementKernel<T, T> for Transpose {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_, T>],
        _: &[Elements<'_, T>],
        output: &mut ElementsMut<'_, T>,
    ) {
        let input = &operands[0];
        output.fill(y, |index| {
            let mut at = *index;
            for (&axis, &i) in self.perm.iter().zip(index).take(input.seen.rank) {
                at[axis] = i;
            }
            input.at(&at)
        });
    }
}
