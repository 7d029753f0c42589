//! Permutation of dimensions.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::transpose::Transpose;
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let x = Elements::dense(&[1, 2, 3, 4, 5, 6], &[2, 3]);
//! let mut made = [0; 6];
//! let mut output = ElementsMut::dense(&mut made, &[3, 2]);
//! let transpose = Transpose { perm: [1, 0, 0, 0, 0, 0] };
//! transpose.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[x], &[], &mut output);
//! assert_eq!(made, [1, 4, 2, 5, 3, 6]);
//! ```

use core::ops::Range;

use super::elements::{Elements, ElementsMut, Index};
use super::kernel::{Context, ElementKernel};
use super::lines::{Lines, for_each_line};

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
        let input = Lines::new(&operands[0]);
        for_each_line(output, y, |index, axis, mut line| {
            let mut at = *index;
            for (&axis, &i) in self.perm.iter().zip(index).take(operands[0].seen.rank) {
                at[axis] = i;
            }
            line.copy(&input.line(&at, self.perm[axis], 1));
        });
    }
}
