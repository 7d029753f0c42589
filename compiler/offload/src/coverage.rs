//! How many pixels groups of patches cover.
//!
//! ```
//! use csdfc_offload::coverage::Coverage;
//! use csdfc_offload::{Convolution, Spec};
//!
//! let layer = Convolution::new(Spec::new([5, 5], 1, [3, 3], 1))?;
//! let mut coverage = Coverage::new(&layer);
//! // Two neighbouring patches of nine pixels have six in common.
//! assert_eq!(coverage.size(&[0, 1]), 12);
//! // After them, the third patch of the row needs one more column.
//! let mut loaded = Vec::new();
//! coverage.fresh(&[0, 1], &[2], |pixel| loaded.push(pixel));
//! assert_eq!(loaded, [4, 9, 14]);
//! # Ok::<(), csdfc_offload::OffloadError>(())
//! ```

use super::convolution::Convolution;

/// Counts covered pixels. It takes time in proportion to the pixels counted, and one mark for each pixel of the layer.
#[derive(Debug, Clone)]
pub struct Coverage<'a> {
    convolution: &'a Convolution,
    marks: Vec<u32>,
    mark: u32,
}

impl<'a> Coverage<'a> {
    /// A counter for this layer.
    pub fn new(convolution: &'a Convolution) -> Self {
        Coverage { convolution, marks: vec![0; convolution.pixels()], mark: 0 }
    }

    /// |P(group)|: pixels that the group's patches cover.
    pub fn size(&mut self, group: &[u32]) -> usize {
        self.fresh(&[], group, |_| ())
    }

    /// |P(group) \ P(before)|: pixels that are to be loaded after a step with `before`, each handed to `visit`.
    pub fn fresh(&mut self, before: &[u32], group: &[u32], mut visit: impl FnMut(u32)) -> usize {
        self.next();
        for pixel in before.iter().flat_map(|patch| self.convolution.pixels_of(*patch)) {
            self.marks[pixel as usize] = self.mark;
        }
        let mut count = 0;
        for pixel in group.iter().flat_map(|patch| self.convolution.pixels_of(*patch)) {
            if self.marks[pixel as usize] != self.mark {
                self.marks[pixel as usize] = self.mark;
                count += 1;
                visit(pixel);
            }
        }
        count
    }

    /// |P(one) ∩ P(two)|: pixels that both groups cover, each handed to `visit`.
    pub fn shared(&mut self, one: &[u32], two: &[u32], mut visit: impl FnMut(u32)) -> usize {
        self.next();
        let first = self.mark;
        for pixel in one.iter().flat_map(|patch| self.convolution.pixels_of(*patch)) {
            self.marks[pixel as usize] = first;
        }
        let mut count = 0;
        for pixel in two.iter().flat_map(|patch| self.convolution.pixels_of(*patch)) {
            if self.marks[pixel as usize] == first {
                // Counted once only.
                self.marks[pixel as usize] = 0;
                count += 1;
                visit(pixel);
            }
        }
        count
    }

    fn next(&mut self) {
        self.mark = self.mark.wrapping_add(1);
        if self.mark == 0 {
            self.marks.fill(0);
            self.mark = 1;
        }
    }
}
