//! Images in any layout, row by row.
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::layout::Layout;
//! use csdfc_kernels::rows::{RowShape, Rows};
//! use csdfc_kernels::span::Span;
//!
//! // Two columns and three channels, HWC.
//! let image = Rows { data: Span::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), shape: RowShape::dense(1, 2, 3, 1) };
//! let line = Layout::Hwc.line(&image, 2, 0);
//! assert_eq!(line.data[2 * line.channel + line.column], 6.0); // channel 2, column 1
//! ```

use core::ops::Range;

use super::rows::{RowShape, Rows, RowsMut};

/// Order in memory of the elements of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub enum Layout {
    /// Planes of channels: one row, `[C, H·W]`.
    Chw,
    /// Rows `[C, W]`.
    Hcw,
    /// Rows `[W, C]`.
    Hwc,
}

/// Rows of an image that form a single line of `rows · width` columns: the element of channel c and column x is `data[c
/// · channel + x · column]`.
#[derive(Debug, Clone, Copy)]
pub struct ImageLine<T> {
    /// From the first element on.
    pub data: T,
    /// Elements from a channel to the next.
    pub channel: usize,
    /// Elements from a column to the next.
    pub column: usize,
}

impl Layout {
    /// Elements from a channel to the next, and from a column to the next.
    fn strides(self, shape: &RowShape) -> [usize; 2] {
        match self {
            Layout::Chw | Layout::Hcw => [shape.channels, 1],
            Layout::Hwc => [1, shape.channels],
        }
    }

    /// The longest piece of the rows `y` of the image, from the first on, that forms one line: its start, its elements,
    /// and its number of rows. `width` is the width of the image.
    fn piece(self, shape: &RowShape, width: usize, y: &Range<usize>) -> ([usize; 2], usize) {
        match self {
            Layout::Chw => {
                let (start, skipped) = (shape.start(0), y.start * width);
                ([start + skipped, shape.row_stride() - skipped], y.len())
            }
            Layout::Hcw => ([shape.start(y.start), shape.row_stride()], y.len().min(1)),
            Layout::Hwc => {
                let slot = (shape.first + y.start) % shape.ring_rows;
                let rows = y.len().min(shape.ring_rows - slot);
                ([shape.start(y.start), rows * shape.row_stride()], rows)
            }
        }
    }

    /// The first of the rows `y` of an image of this width, and all rows after it that form one line with it.
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    pub fn lines<'a>(
        self,
        image: &Rows<'a>,
        width: usize,
        y: &Range<usize>,
    ) -> (ImageLine<&'a [f32]>, usize) {
        let ([start, len], rows) = self.piece(&image.shape, width, y);
        let [channel, column] = self.strides(&image.shape);
        (ImageLine { data: image.data.slice(start, len), channel, column }, rows)
    }

    /// Row `y` of an image of this width.
    #[inline]
    pub fn line<'a>(self, image: &Rows<'a>, width: usize, y: usize) -> ImageLine<&'a [f32]> {
        self.lines(image, width, &(y..y + 1)).0
    }

    /// [`Layout::lines`], to be written.
    #[inline]
    pub fn lines_mut<'a>(
        self,
        image: &'a mut RowsMut<'_>,
        width: usize,
        y: &Range<usize>,
    ) -> (ImageLine<&'a mut [f32]>, usize) {
        let ([start, len], rows) = self.piece(&image.shape, width, y);
        let [channel, column] = self.strides(&image.shape);
        (ImageLine { data: image.data.slice(start, len), channel, column }, rows)
    }

    /// Row `y` of an image of this width, to be written.
    #[inline]
    pub fn line_mut<'a>(
        self,
        image: &'a mut RowsMut<'_>,
        width: usize,
        y: usize,
    ) -> ImageLine<&'a mut [f32]> {
        self.lines_mut(image, width, &(y..y + 1)).0
    }

    /// Rows of an image of this height that are made when the rows `y` of its tensor are made; in CHW, all of them.
    #[inline]
    pub(crate) fn image_rows(self, height: usize, y: Range<usize>) -> Range<usize> {
        match self {
            Layout::Chw if !y.is_empty() => 0..height,
            _ => y,
        }
    }
}

/// Copies a matrix of these sizes; strides are from line to line and from element to element.
#[inline]
pub fn copy(
    from: &[f32],
    from_strides: [usize; 2],
    to: &mut [f32],
    to_strides: [usize; 2],
    sizes: [usize; 2],
) {
    if from_strides[0] == 1 && to_strides[0] == 1 && [from_strides[1], to_strides[1]] != [1, 1] {
        let turned = |[a, b]: [usize; 2]| [b, a];
        return copy(from, turned(from_strides), to, turned(to_strides), turned(sizes));
    }
    let [lines, len] = sizes;
    for line in 0..lines {
        if len == 0 {
            return;
        }
        let (from, to) = (&from[line * from_strides[0]..], &mut to[line * to_strides[0]..]);
        if from_strides[1] == 1 && to_strides[1] == 1 {
            to[..len].copy_from_slice(&from[..len]);
            continue;
        }
        let elements = from.iter().step_by(from_strides[1]).zip(to.iter_mut().step_by(to_strides[1]));
        elements.take(len).for_each(|(from, to)| *to = *from);
    }
}

/// Writes a matrix of these sizes full of one value.
#[inline]
pub fn fill(to: &mut [f32], strides: [usize; 2], sizes: [usize; 2], value: f32) {
    let turned = |[a, b]: [usize; 2]| [b, a];
    let (strides, sizes) =
        if strides[0] == 1 && strides[1] != 1 { (turned(strides), turned(sizes)) } else { (strides, sizes) };
    let [lines, len] = sizes;
    for line in 0..lines {
        if len == 0 {
            return;
        }
        let to = &mut to[line * strides[0]..];
        match strides[1] {
            1 => to[..len].fill(value),
            stride => to.iter_mut().step_by(stride).take(len).for_each(|to| *to = value),
        }
    }
}
