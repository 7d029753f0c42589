//! Lines of tensors.

use csdfc_kernels::elements::ElementShape;
use csdfc_kernels::lines::{Lines, for_each_line};
use csdfc_kernels::rows::RowShape;
use csdfc_kernels::{Elements, ElementsMut, Rows, Span, SpanMut};

/// Tensors in each way in which they lie in memory, seen in their own dimensions and in others.
fn all(data: &[usize]) -> Vec<Elements<'_, usize>> {
    let rows = RowShape::dense(3, 4, 2, 3); // [3, 4, 2]
    let span = Span::new(data);
    let by_rows = |ring| Elements {
        data: span,
        shape: ElementShape::by_rows(&[1, 6, 4], 1, ring),
        seen: ElementShape::dense(&[1, 6, 4]).dims,
    };
    let wrapped = Elements { shape: by_rows(6).shape.stored(&(2..6)), ..by_rows(6) };
    vec![
        Elements::dense(data, &[2, 3, 4]),
        Elements::dense(data, &[2, 3, 4]).seen_as(&[4, 6]),
        Elements::channels_first(Rows { data: span, shape: rows }),
        Elements::channels_first(Rows { data: span, shape: rows }).seen_as(&[2, 12]),
        Elements::channels_first(Rows { data: span, shape: rows }).seen_as(&[2, 3, 2, 2]),
        Elements::channels_first(Rows { data: span, shape: rows }).seen_as(&[1, 24]),
        Elements::channels_last(Rows { data: span, shape: rows }),
        Elements::channels_last(Rows { data: span, shape: rows }).seen_as(&[2, 12]),
        by_rows(6),
        by_rows(6).seen_as(&[4, 3, 2]),
        wrapped,
    ]
}

#[test]
fn lines_have_the_elements_at_their_indices() {
    let data: Vec<usize> = (0..24).collect();
    for tensor in all(&data) {
        let row = tensor.shape.row_axis;
        tensor.seen.for_each(|index| {
            for axis in 0..tensor.seen.rank {
                // Only these rows of the last tensor are stored.
                if tensor.shape.first != 0 && (index[1] < 2 || row == Some(axis)) {
                    continue;
                }
                let ahead = tensor.seen.sizes[axis] - index[axis];
                let [forwards, backwards] = [1, -1].map(|step| Lines::new(&tensor).line(index, axis, step));
                let at = |i: usize| {
                    let mut at = *index;
                    at[axis] = i;
                    tensor.at(&at)
                };
                forwards.for_each(ahead, |i, x| assert_eq!(x, at(index[axis] + i)));
                backwards.for_each(index[axis] + 1, |i, x| assert_eq!(x, at(index[axis] - i)));
                if let Some(slice) = forwards.slice(ahead) {
                    assert!((0..ahead).all(|i| slice[i] == at(index[axis] + i)));
                }
            }
        });
    }
}

#[test]
fn lines_cover_the_rows() {
    let rows = RowShape::dense(3, 4, 2, 3);
    let dense = ElementShape::dense(&[2, 3, 4]);
    let column = ElementShape::by_rows(&[6, 1], 0, 6);
    let (first, last) = (ElementShape::channels_first(rows), ElementShape::channels_last(rows));
    for shape in [dense, ElementShape::by_rows(&[1, 6, 4], 1, 6), column, first, last] {
        for y in [0..shape.row_axis.map_or(1, |axis| shape.dims.sizes[axis]), 1..2] {
            let mut made = [0; 24];
            let mut output = ElementsMut { data: SpanMut::new(&mut made), shape };
            for_each_line(&mut output, y.clone(), |_, _, mut line| line.iter_mut().for_each(|x| *x += 1));
            let mut expected = [0; 24];
            let mut output = ElementsMut { data: SpanMut::new(&mut expected), shape };
            output.fill(y, |_| 1);
            assert_eq!(made, expected, "{shape:?}");
        }
    }
}
