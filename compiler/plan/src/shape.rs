//! Shapes of tensors, and which of their dimensions are rows.
//!
//! # Rows
//! A token of the dataflow graph is a row of a tensor. The height of an image (rank 4, batch 1) counts its rows.
//! Tensors `[1, T, C]` and `[T, C]` have T rows, because their elements lie row by row anyway. Each row is a step of
//! a plan, so a tensor of more than [`MAX_LINES`] such rows counts as a single row. Every other tensor is a single
//! row, too.
//!
//! # Views
//! A view owns no storage. It is the shape in which a layer sees its operand. Reshape and flatten are views. A
//! `Transpose` between channels-first and channels-last is also a view, because a row lies as `[W, C]` in memory in
//! both orders.
//!
//! A layer reads a view by rows only if the view has the same rows as its tensor ([`Shape::keeps_rows`]). There are two
//! such cases:
//!
//! - Both are images with the same numbers of rows, columns and channels. The order of dimensions does not matter.
//! - At least one of them is not an image, the elements of both lie in the order of their dimensions, and they have
//!   equally many rows of equal length.
//!
//! A layer needs any other view whole. This holds even if tensor and view have one row each, or equally many rows of
//! equal length. The reason is that a reshape takes the elements of an image channel by channel, but they lie pixel by
//! pixel. So a row of the view has other elements than the same row of the image.
//!
//! The checker has this rule in code of its own (`check/rows.rs`). A kernel may see a whole tensor with its elements
//! divided into other rows (`bind::Input`). Some views no kernel can read as their elements lie: for example, a
//! convolution cannot read an image that was cut into other rows. For such a view, the compiler inserts a layer that
//! moves the elements (`pass/copies.rs`).
//!
//! # Example
//!
//! ```
//! use csdfc_plan::shape::{Order, Shape};
//!
//! let image = Shape::image(3, 120, 160);
//! assert_eq!((image.rows(), image.row_elements()), (120, 3 * 160));
//! // A row is the same in both orders of dimensions. A vector is one row, with the elements in another order.
//! let last = Shape { dims: vec![1, 120, 160, 3], order: Order::ChannelsLast };
//! assert!(image.keeps_rows(&last));
//! assert!(!image.keeps_rows(&Shape::new([1, 57_600])));
//! ```

use serde::{Deserialize, Serialize};

/// Which dimension of a rank-4 tensor counts the rows and which the channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// `[1, C, H, W]`, the way of ONNX.
    #[default]
    ChannelsFirst,
    /// `[1, H, W, C]`, as after a `Transpose` to or from TensorFlow's order.
    ChannelsLast,
}

/// Maximum number of rows of a tensor that is not an image. A longer list, of boxes or points for example, counts as
/// one row, because each row would be a step of a plan.
pub const MAX_LINES: usize = 4096;

/// The shape of a tensor as ONNX sees it (the batch, 1, included) and its order of dimensions.
///
/// An image has rank 4 and batch 1. Its height counts its *rows*: a row has the `C · W` elements of one height. The
/// tensor's format says how they lie in memory, whatever the order of dimensions. So a `Transpose` between the two
/// orders moves nothing. A tensor of rank 3 with batch 1, `[1, T, C]`, or of rank 2, `[T, C]`, is T rows of C elements,
/// if T is from 2 to [`MAX_LINES`]. Any other tensor is a single row. The elements of a tensor that is not an image lie
/// in the order of its dimensions.
///
/// In a file a channels-first shape is the list of its dimensions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "ShapeFields", into = "ShapeFields")]
pub struct Shape {
    /// Dimensions, outermost first. Empty for a scalar.
    pub dims: Vec<usize>,
    /// Meaning of the dimensions of a rank-4 tensor; without effect for other ranks.
    pub order: Order,
}

/// A [`Shape`] as it stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a list of dimensions, or `dims` and their `order`")]
enum ShapeFields {
    Dims(Vec<usize>),
    Ordered { dims: Vec<usize>, order: Order },
}

impl From<ShapeFields> for Shape {
    fn from(fields: ShapeFields) -> Self {
        match fields {
            ShapeFields::Dims(dims) => Shape { dims, order: Order::ChannelsFirst },
            ShapeFields::Ordered { dims, order } => Shape { dims, order },
        }
    }
}

impl From<Shape> for ShapeFields {
    fn from(Shape { dims, order }: Shape) -> Self {
        match order {
            Order::ChannelsFirst => ShapeFields::Dims(dims),
            Order::ChannelsLast => ShapeFields::Ordered { dims, order },
        }
    }
}

impl Shape {
    /// A channels-first shape of these dimensions.
    pub fn new(dims: impl Into<Vec<usize>>) -> Self {
        Shape { dims: dims.into(), order: Order::ChannelsFirst }
    }

    /// The shape of an image or feature map, `[1, c, h, w]`.
    pub fn image(c: usize, h: usize, w: usize) -> Self {
        Shape::new([1, c, h, w])
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Number of elements. Shapes are bounded at import so that this cannot overflow.
    pub fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// Whether this is an image: rank 4 and batch 1.
    pub fn is_image(&self) -> bool {
        matches!(self.dims.as_slice(), [1, _, _, _])
    }

    /// The dimension that counts rows, if this tensor is made of rows. It is the height of an image. For tensors of
    /// rank 3 with batch 1 and of rank 2, it is the dimension before the last, if its size is from 2 to [`MAX_LINES`].
    pub fn row_axis(&self) -> Option<usize> {
        let are_lines = |rows: usize| (2..=MAX_LINES).contains(&rows);
        match (self.dims.as_slice(), self.order) {
            ([1, _, _, _], Order::ChannelsFirst) => Some(2),
            ([1, _, _, _], Order::ChannelsLast) => Some(1),
            ([1, rows, _], _) if are_lines(*rows) => Some(1),
            ([rows, _], _) if are_lines(*rows) => Some(0),
            _ => None,
        }
    }

    /// The dimension that counts channels of a rank-4 tensor; dimension 1 for every other tensor of rank 2 and up.
    pub fn channel_axis(&self) -> Option<usize> {
        match self.rank() {
            0 | 1 => None,
            4 if self.order == Order::ChannelsLast => Some(3),
            _ => Some(1),
        }
    }

    /// The dimension that counts columns, if this is an image.
    pub fn column_axis(&self) -> Option<usize> {
        self.row_axis().filter(|_| self.is_image()).map(|row| row + 1)
    }

    /// Number of rows (height); 1 for a tensor that is not made of rows.
    pub fn rows(&self) -> usize {
        self.row_axis().map_or(1, |axis| self.dims[axis])
    }

    /// Elements of one row.
    pub fn row_elements(&self) -> usize {
        match self.row_axis() {
            Some(axis) => self.dims.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| d).product(),
            None => self.elements(),
        }
    }

    /// Whether the rows of this tensor, seen in another shape, are still rows, element for element. This holds if both
    /// are images with equally many columns and channels, perhaps in another order of dimensions. If either is no
    /// image, it holds if the elements of both lie in the same order. Any other view needs the tensor whole, even if it
    /// has one row, because a reshape takes the elements of an image channel by channel.
    pub fn keeps_rows(&self, seen: &Shape) -> bool {
        let are_alike = match (self.is_image(), seen.is_image()) {
            (true, true) => self.channels() == seen.channels(),
            _ => self.lies_in_order() && seen.lies_in_order(),
        };
        let are_rows = self.row_axis().is_some() && seen.row_axis().is_some();
        are_rows && are_alike && (self.rows(), self.row_elements()) == (seen.rows(), seen.row_elements())
    }

    /// Whether a whole tensor of this shape has each element where a tensor of the other shape has it: both are images of
    /// equally many rows, columns and channels, or the elements of both lie in the order of their dimensions.
    pub fn lies_as(&self, other: &Shape) -> bool {
        let are_alike = match (self.is_image(), other.is_image()) {
            (true, true) => (self.channels(), self.rows()) == (other.channels(), other.rows()),
            _ => self.lies_in_order() && other.lies_in_order(),
        };
        are_alike && self.elements() == other.elements()
    }

    /// Whether elements lie in the order of the dimensions. Those of an image of several channels do if the channels
    /// are the last dimension.
    fn lies_in_order(&self) -> bool {
        !self.is_image() || self.order == Order::ChannelsLast || self.channels() == 1
    }

    /// Number of channels: the size of [`Shape::channel_axis`], or 1.
    pub fn channels(&self) -> usize {
        self.channel_axis().map_or(1, |axis| self.dims[axis])
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, dim) in self.dims.iter().enumerate() {
            if i > 0 {
                f.write_str("×")?;
            }
            write!(f, "{dim}")?;
        }
        if self.dims.is_empty() {
            f.write_str("scalar")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_order_of_dimensions() {
        let first = Shape::image(3, 120, 160);
        let last = Shape { dims: vec![1, 120, 160, 3], order: Order::ChannelsLast };
        for shape in [&first, &last] {
            assert_eq!((shape.rows(), shape.row_elements(), shape.channels()), (120, 480, 3));
        }
        let batched = Shape::new([2, 3, 4, 5]);
        assert_eq!((batched.rows(), batched.row_elements()), (1, 120));
        let vector = Shape::new([1, 10]);
        assert_eq!((vector.rows(), vector.row_elements(), vector.channels()), (1, 10, 10));
        for (dims, rows) in [
            (&[1, 40, 10][..], 40),
            (&[40, 10], 40),
            (&[1, 1, 10], 1),
            (&[2, 40, 10], 1),
            (&[1, 4096, 4], 4096),
            (&[1, 4097, 4], 1),
            (&[4096, 4], 4096),
            (&[100_000, 4], 1),
        ] {
            let shape = Shape::new(dims);
            assert_eq!((shape.rows(), shape.rows() * shape.row_elements()), (rows, shape.elements()));
            assert_eq!(shape.column_axis(), None);
        }
    }
}
