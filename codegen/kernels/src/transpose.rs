//! Permutation of dimensions.

use core::ops::Range;

use super::elements::{Elements, ElementsMut};

/// Output rows `y` of a transpose: dimension i of the output is dimension `perm[i]` of the input.
#[inline]
pub fn transpose_elements<T: Copy>(
    perm: &[usize],
    y: Range<usize>,
    input: &Elements<'_, T>,
    output: &mut ElementsMut<'_, T>,
) {
    output.fill(y, |index| {
        let mut at = *index;
        for (&axis, &i) in perm.iter().zip(index) {
            at[axis] = i;
        }
        input.at(&at)
    });
}
