//! How a kernel sees a tensor among the rings of a plan.

use csdfc_kernels::elements::{Dims, ElementShape, MAX_RANK};
use csdfc_kernels::rows::RowShape;

use crate::shape::{Order, Shape};

use super::kernel::Operand;

/// How a kernel sees a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// By rows.
    Rows(RowShape),
    /// Element by element: where they are, and the dimensions seen.
    Elements(ElementShape, Dims),
}

/// How a kernel sees an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Input {
    /// By rows or elements.
    pub access: Access,
    /// Rows of the tensor that are one row of the access: the slot of the first is to be divided by it.
    pub fold: usize,
}

impl Input {
    pub(super) fn of(access: Access) -> Self {
        Input { access, fold: 1 }
    }
}

/// The rows of an image.
pub(super) fn image_rows(shape: &Shape, ring_rows: usize) -> Option<RowShape> {
    let column = shape.column_axis()?;
    Some(RowShape::dense(shape.rows(), shape.dims[column], shape.channels(), ring_rows))
}

impl Operand<'_> {
    /// The rows of an operand that is seen as the image that it is, perhaps in the other order, or as an image whose
    /// rows its elements happen to lie as.
    pub(super) fn image(&self) -> Option<RowShape> {
        let same = |of: fn(&Shape) -> usize| of(self.own) == of(self.seen);
        let rows = image_rows(self.seen, self.seen.rows())?;
        if self.own.row_axis().is_some()
            && same(Shape::rows)
            && same(Shape::channels)
            && same(Shape::row_elements)
        {
            return Some(RowShape { ring_rows: self.ring_rows, ..rows });
        }
        // One row of each, so that slots are the same, and the choice of a kernel never hangs on the ring.
        let one_row = self.own.rows() == 1 && self.seen.rows() == 1;
        let lies_so = is_row_major(self.own, self.order()) && is_row_major(self.seen, self.seen.order);
        (one_row && lies_so).then_some(RowShape { ring_rows: self.ring_rows, ..rows })
    }

    /// An operand whose elements lie in the row-major order in which they are seen, as one row of `pixels` pixels.
    pub(super) fn flat(&self, pixels: usize) -> Option<Input> {
        is_row_major(self.own, self.order()).then(|| self.block(pixels))?
    }

    /// An operand of which all elements lie in one piece, in whatever order, as one row of `pixels` pixels.
    pub(super) fn block(&self, pixels: usize) -> Option<Input> {
        let rows = self.own.rows();
        let channels = self.own.elements() / pixels.max(1);
        let shape = RowShape::dense(1, pixels, channels, self.ring_rows / rows);
        // A ring of whole frames.
        let is_whole = self.ring_rows.is_multiple_of(rows);
        is_whole.then_some(Input { access: Access::Rows(shape), fold: rows })
    }

    /// The operand element by element.
    pub(super) fn elements(&self) -> Result<Input, String> {
        let access = elements(self.own, self.order(), self.seen, self.ring_rows)?;
        Ok(Input::of(access))
    }

    /// The order of dimensions in which its elements are dealt out.
    fn order(&self) -> Order {
        let is_reordered = self.own.rank() == 4 && self.seen.rank() == 4 && self.own.order != self.seen.order;
        if is_reordered { self.seen.order } else { self.own.order }
    }
}

/// The elements of a tensor, its own dimensions in this order, seen in these dimensions.
pub(super) fn elements(own: &Shape, order: Order, seen: &Shape, ring_rows: usize) -> Result<Access, String> {
    if seen.rank() > MAX_RANK {
        return Err(format!(
            "a tensor of {} dimensions has more than the {MAX_RANK} of kernels",
            seen.rank()
        ));
    }
    let dims = Dims::new(&seen.dims);
    let shape = match (image_rows(own, ring_rows), order) {
        (Some(rows), Order::ChannelsFirst) => ElementShape::channels_first(rows),
        (Some(rows), Order::ChannelsLast) => ElementShape::channels_last(rows),
        (None, _) => ElementShape::dense(&seen.dims),
    };
    Ok(Access::Elements(shape, dims))
}

/// Whether the elements of a whole tensor lie in the row-major order of its dimensions in this order.
pub(super) fn is_row_major(own: &Shape, order: Order) -> bool {
    match own.row_axis() {
        None => true,
        Some(_) => order == Order::ChannelsLast || own.channels() == 1 || own.elements() == own.channels(),
    }
}
