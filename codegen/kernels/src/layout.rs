//! Images in any layout, row by row.

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
pub(crate) struct Line<T> {
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
    pub(crate) fn lines<'a>(
        self,
        image: &Rows<'a>,
        width: usize,
        y: &Range<usize>,
    ) -> (Line<&'a [f32]>, usize) {
        let ([start, len], rows) = self.piece(&image.shape, width, y);
        let [channel, column] = self.strides(&image.shape);
        (Line { data: image.data.slice(start, len), channel, column }, rows)
    }

    /// Row `y` of an image of this width.
    #[inline]
    pub(crate) fn line<'a>(self, image: &Rows<'a>, width: usize, y: usize) -> Line<&'a [f32]> {
        self.lines(image, width, &(y..y + 1)).0
    }

    /// [`Layout::lines`], to be written.
    #[inline]
    pub(crate) fn lines_mut<'a>(
        self,
        image: &'a mut RowsMut<'_>,
        width: usize,
        y: &Range<usize>,
    ) -> (Line<&'a mut [f32]>, usize) {
        let ([start, len], rows) = self.piece(&image.shape, width, y);
        let [channel, column] = self.strides(&image.shape);
        (Line { data: image.data.slice(start, len), channel, column }, rows)
    }

    /// Row `y` of an image of this width, to be written.
    #[inline]
    pub(crate) fn line_mut<'a>(
        self,
        image: &'a mut RowsMut<'_>,
        width: usize,
        y: usize,
    ) -> Line<&'a mut [f32]> {
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
pub(crate) fn copy(
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
pub(crate) fn fill(to: &mut [f32], strides: [usize; 2], sizes: [usize; 2], value: f32) {
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

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    use super::super::span::{Span, SpanMut};
    use super::*;

    /// Height, width and channels.
    const SIZES: [usize; 3] = [5, 4, 3];

    /// Rings that hold the image, and for each of its rows, how many rows from there on form one line.
    fn shapes() -> Vec<(Layout, RowShape, [usize; 5])> {
        let [h, w, c] = SIZES;
        let turned = RowShape { first: 3, ..RowShape::dense(h, w, c, h) };
        std::vec![
            (Layout::Chw, RowShape::dense(1, c, h * w, 1), [5, 4, 3, 2, 1]),
            (Layout::Hcw, RowShape::dense(h, c, w, h + 2), [1; 5]),
            (Layout::Hwc, RowShape::dense(h, w, c, h), [5, 4, 3, 2, 1]),
            (Layout::Hwc, turned, [2, 1, 3, 2, 1]),
        ]
    }

    #[test]
    fn every_element_is_where_the_layout_says() {
        let [height, width, channels] = SIZES;
        for (layout, shape, rows) in shapes() {
            let mut data = vec![-1.0; shape.ring_rows * shape.row_stride()];
            let mut image = RowsMut { data: SpanMut::new(&mut data), shape };
            for y in 0..height {
                let Line { data, channel, column } = layout.line_mut(&mut image, width, y);
                for (c, x) in (0..channels).flat_map(|c| (0..width).map(move |x| (c, x))) {
                    data[c * channel + x * column] = (100 * c + 10 * y + x) as f32;
                }
            }
            let image = Rows { data: Span::new(&data), shape };
            for (y, rows) in rows.into_iter().enumerate() {
                let (line, count) = layout.lines(&image, width, &(y..height));
                assert_eq!(count, rows, "{layout:?} {y}");
                for (c, x) in (0..channels).flat_map(|c| (0..count * width).map(move |x| (c, x))) {
                    let element = line.data[c * line.channel + x * line.column];
                    let want = 100 * c + 10 * (y + x / width) + x % width;
                    assert_eq!(element, want as f32, "{layout:?}");
                }
            }
            assert!(data.iter().filter(|x| **x >= 0.0).count() == height * width * channels);
        }
    }

    #[test]
    fn matrices_are_copied_between_any_strides() {
        let from: Vec<f32> = (0..60).map(|i| i as f32).collect();
        for (from_strides, to_strides) in
            [([7, 1], [9, 1]), ([1, 7], [1, 9]), ([7, 1], [1, 4]), ([1, 7], [9, 2]), ([14, 2], [1, 4])]
        {
            let sizes = [3, 4];
            let (mut to, mut full) = (vec![-1.0; 60], vec![-1.0; 60]);
            copy(&from, from_strides, &mut to, to_strides, sizes);
            fill(&mut full, to_strides, sizes, 2.5);
            let mut want = [vec![-1.0; 60], vec![-1.0; 60]];
            for (i, j) in (0..3).flat_map(|i| (0..4).map(move |j| (i, j))) {
                let at = |strides: [usize; 2]| i * strides[0] + j * strides[1];
                (want[0][at(to_strides)], want[1][at(to_strides)]) = (from[at(from_strides)], 2.5);
            }
            assert_eq!([to, full], want, "{from_strides:?} {to_strides:?}");
        }
    }
}
