//! Random views: the elements of a tensor, in their order, in other dimensions.

use csdfc_plan::shape::Shape;

use super::Choices;

/// Other dimensions of as many elements, mostly those of an image.
pub(super) fn view(shape: &Shape, random: &mut Choices<'_>) -> Shape {
    let all = shape.elements();
    match (random.pick(0, 5), shape.dims.as_slice()) {
        // Rows and columns change places.
        (0, &[1, channels, height, width]) => Shape::image(channels, width, height),
        // The height stays, and channels and columns are dealt anew.
        (1 | 2, &[1, channels, height, width]) => {
            let new = divisor(channels * width, random);
            Shape::image(new, height, channels * width / new)
        }
        // The rows that they are, in another rank.
        (0, &[1, rows, columns]) => Shape::new([rows, columns]),
        (0, &[rows, columns]) => Shape::new([1, rows, columns]),
        (1, &[1, rows, columns] | &[rows, columns]) => Shape::image(1, rows, columns),
        // One row.
        (3, _) => {
            let channels = divisor(all, random);
            Shape::image(channels, 1, all / channels)
        }
        (4, _) => {
            let (height, channels) = (divisor(all, random), divisor(all, random));
            match all.is_multiple_of(height * channels) {
                true => Shape::image(channels, height, all / height / channels),
                false => Shape::image(all / height, height, 1),
            }
        }
        _ if random.flag() => Shape::new([1, all]),
        _ => {
            let first = divisor(all, random);
            if random.flag() { Shape::new([1, first, all / first]) } else { Shape::new([first, all / first]) }
        }
    }
}

/// A number that divides `n`.
fn divisor(n: usize, random: &mut Choices<'_>) -> usize {
    let all: Vec<usize> = (1..=n).filter(|d| n.is_multiple_of(*d)).collect();
    all[random.pick(0, all.len() - 1)]
}
