//! The largest or the least elements along a dimension, in order.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::top_k::TopK;
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let x = Elements::dense(&[1.0, 9.0, 5.0], &[3]);
//! let mut made = [0.0; 2];
//! let mut output = ElementsMut::dense(&mut made, &[2]);
//! let top = TopK { axis: 0, largest: true, indices: false };
//! top.elements(&mut Context::alone(Isa::PORTABLE), 0..1, &[x], &[], &mut output);
//! assert_eq!(made, [9.0, 5.0]);
//! ```

use core::cmp::Ordering;
use core::ops::Range;

use super::elements::{Elements, ElementsMut, Index};
use super::kernel::{Context, ElementKernel};
use super::span::Plain;

/// The largest or the least elements along a dimension of a tensor of any rank, or their indices.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TopK {
    /// The dimension. The output has at most as many elements along it.
    pub axis: usize,
    /// Whether the largest come first, instead of the least.
    pub largest: bool,
    /// Whether the output is their indices.
    pub indices: bool,
}

/// One operand.
impl ElementKernel for TopK {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_>,
    ) {
        self.fill(y, &operands[0], output, |found| if self.indices { found.1 as f32 } else { found.0 });
    }
}

/// One operand. The output is the indices.
impl ElementKernel<i64> for TopK {
    #[inline]
    fn elements(
        &self,
        _: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_, i64>,
    ) {
        self.fill(y, &operands[0], output, |found| found.1 as i64);
    }
}

/// An element and its index.
type Found = (f32, usize);

impl TopK {
    #[inline]
    fn fill<T: Plain>(
        &self,
        y: Range<usize>,
        input: &Elements<'_>,
        output: &mut ElementsMut<'_, T>,
        make: impl Fn(Found) -> T,
    ) {
        let (axis, size) = (self.axis, input.seen.sizes[self.axis]);
        let mut last: Option<(Index, Found)> = None;
        output.fill(y, |index| {
            let mut at = *index;
            let mut get = |i| {
                at[axis] = i;
                input.at(&at)
            };
            // Along the last dimension, the one before was found just now.
            let is_before = |place: &Index| {
                let mut next = *place;
                next[axis] += 1;
                next == *index
            };
            let found = match last {
                Some((place, found)) if is_before(&place) => self.next(Some(found), size, &mut get),
                _ => (0..index[axis])
                    .fold(self.next(None, size, &mut get), |found, _| self.next(Some(found), size, &mut get)),
            };
            last = Some((*index, found));
            make(found)
        });
    }

    /// The element that comes next after this one; the first of all, if no element is given.
    #[inline]
    fn next(&self, after: Option<Found>, size: usize, get: &mut impl FnMut(usize) -> f32) -> Found {
        let mut best: Option<Found> = None;
        for i in 0..size {
            let found = (get(i), i);
            let is_later = after.is_none_or(|after| self.compare(after, found).is_lt());
            if is_later && best.is_none_or(|best| self.compare(found, best).is_lt()) {
                best = Some(found);
            }
        }
        best.unwrap_or_default()
    }

    /// The order of two elements. A sum with 0 makes both zeros equal.
    #[inline]
    fn compare(&self, a: Found, b: Found) -> Ordering {
        let order = (a.0 + 0.0).total_cmp(&(b.0 + 0.0));
        let order = if self.largest { order.reverse() } else { order };
        order.then(a.1.cmp(&b.1))
    }
}
