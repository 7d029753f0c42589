//! Where a layout puts the elements of an image.

use csdfc_kernels::layout::{ImageLine, Layout, copy, fill};
use csdfc_kernels::rows::{RowShape, Rows, RowsMut};
use csdfc_kernels::span::{Span, SpanMut};

/// Height, width and channels.
const SIZES: [usize; 3] = [5, 4, 3];

/// Rings that hold the image, and for each of its rows, how many rows from there on form one line.
fn shapes() -> Vec<(Layout, RowShape, [usize; 5])> {
    let [h, w, c] = SIZES;
    let turned = RowShape { first: 3, ..RowShape::dense(h, w, c, h) };
    vec![
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
            let ImageLine { data, channel, column } = layout.line_mut(&mut image, width, y);
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
