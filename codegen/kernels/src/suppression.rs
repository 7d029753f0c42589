//! Boxes with high scores that overlap no box with a higher score.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::suppression::NonMaxSuppression;
//! use csdfc_kernels::{Context, ElementKernel, Elements, ElementsMut, Isa};
//!
//! let boxes = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 0.9, 5.0, 5.0, 6.0, 6.0];
//! let (boxes, scores) = (Elements::dense(&boxes, &[1, 3, 4]), Elements::dense(&[0.9, 0.8, 0.7], &[1, 1, 3]));
//! let mut made = [0i64; 9];
//! let mut output = ElementsMut::dense(&mut made, &[3, 3]);
//! let suppression = NonMaxSuppression { most: 3, overlap: 0.5, score: None, centred: false };
//! let context = &mut Context { isa: Isa::PORTABLE, workers: None, workspace: &mut [0.0; 3] };
//! suppression.elements(context, 0..1, &[boxes, scores], &[], &mut output);
//! // Of batch 0 and class 0, boxes 0 and 2.
//! assert_eq!(made, [0, 0, 0, 0, 0, 2, -1, -1, -1]);
//! ```

use core::cmp::Ordering;
use core::ops::Range;

use super::arg_max::FromIndex;
use super::elements::{Elements, ElementsMut, MAX_RANK};
use super::kernel::{Context, ElementKernel};

/// Greedy suppression: for each batch and class, it takes boxes in the order of their scores and drops each box that
/// overlaps a box that is kept.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct NonMaxSuppression {
    /// Maximum number of boxes that are kept of a class. They fit the output.
    pub most: usize,
    /// Two boxes overlap if their intersection is more than this share of their union.
    pub overlap: f32,
    /// Only boxes with higher scores are looked at; none for all boxes.
    pub score: Option<f32>,
    /// Whether a box is `[x, y, width, height]` with x and y in its middle, instead of two opposite corners.
    pub centred: bool,
}

/// Two operands: boxes `[N, B, 4]`, B at most 2^24, and scores `[N, C, B]`. The output is `[R, 3]`: n, c and b of each
/// box that is kept, and then rows of −1. The workspace has `most` elements.
///
/// Cost: for each candidate, it looks at all boxes of its class once, and at each box that is kept.
impl<I: FromIndex> ElementKernel<I> for NonMaxSuppression {
    #[inline]
    fn elements(
        &self,
        context: &mut Context<'_>,
        y: Range<usize>,
        operands: &[Elements<'_>],
        _: &[Elements<'_>],
        output: &mut ElementsMut<'_, I>,
    ) {
        let (boxes, scores) = (&operands[0], &operands[1]);
        let count = output.shape.dims.sizes[0];
        let rows = if output.shape.row_axis.is_some() { y } else { 0..count };
        let mut write = |row: usize, values: [I; 3]| {
            for (i, value) in values.into_iter().enumerate().filter(|_| rows.contains(&row)) {
                *output.at(&[row, i, 0, 0, 0, 0]) = value;
            }
        };
        let kept = &mut context.workspace[..self.most];
        let mut row = 0;
        for n in 0..scores.seen.sizes[0] {
            for c in 0..scores.seen.sizes[1] {
                let score = |b| scores.at(&[n, c, b, 0, 0, 0]);
                let sides = |b| self.sides(boxes, n, b);
                let mut found = 0;
                let mut last = None;
                while found < self.most {
                    last = self.next(last, scores.seen.sizes[2], score);
                    let Some((_, b)) = last else { break };
                    let candidate = sides(b);
                    if !kept[..found].iter().any(|other| self.overlaps(&sides(*other as usize), &candidate)) {
                        // No more than 2^24, so exact.
                        kept[found] = b as f32;
                        found += 1;
                        write(row, [n, c, b].map(I::from_index));
                        row += 1;
                    }
                }
            }
        }
        for row in row..count {
            write(row, [I::NONE; 3]);
        }
    }
}

/// The score of a box and its index.
type Found = (f32, usize);

/// Least and greatest coordinate of a box, in two directions.
type Sides = [[f32; 2]; 2];

impl NonMaxSuppression {
    /// The candidate that comes next after this one; the first of all, if there is none.
    #[inline]
    fn next(&self, after: Option<Found>, boxes: usize, score: impl Fn(usize) -> f32) -> Option<Found> {
        let is_candidate = |found: &Found| {
            self.score.is_none_or(|least| found.0 > least)
                && after.is_none_or(|after| order(after, *found).is_lt())
        };
        (0..boxes).map(|b| (score(b), b)).filter(is_candidate).min_by(|a, b| order(*a, *b))
    }

    #[inline]
    fn sides(&self, boxes: &Elements<'_>, n: usize, b: usize) -> Sides {
        [0, 1].map(|side| {
            let get = |i| {
                let mut at = [0; MAX_RANK];
                (at[0], at[1], at[2]) = (n, b, i);
                boxes.at(&at)
            };
            let (first, second) = (get(side), get(side + 2));
            match self.centred {
                true => [first - second / 2.0, first + second / 2.0],
                false => [first.min(second), first.max(second)],
            }
        })
    }

    #[inline]
    fn overlaps(&self, a: &Sides, b: &Sides) -> bool {
        let common = [0, 1].map(|side| [a[side][0].max(b[side][0]), a[side][1].min(b[side][1])]);
        if common.iter().any(|[least, greatest]| greatest <= least) {
            return false;
        }
        let areas = [a, b].map(area);
        let both = area(&common);
        let either = areas[0] + areas[1] - both;
        let is_some = areas.iter().chain([&both, &either]).all(|area| *area > 0.0);
        is_some && both / either > self.overlap
    }
}

/// Higher scores come first; of equal scores, the first box. A sum with 0 makes both zeros equal.
#[inline]
fn order(a: Found, b: Found) -> Ordering {
    (b.0 + 0.0).total_cmp(&(a.0 + 0.0)).then(a.1.cmp(&b.1))
}

#[inline]
fn area(sides: &Sides) -> f32 {
    let [x, y] = sides.map(|[least, greatest]| greatest - least);
    x * y
}
