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
    /// Rows of the tensor that are [`Input::into`] rows of the access, where these are other ones: then all are there.
    /// Without rows an access counts as one.
    pub fold: usize,
    /// Rows of the access that they are: the slot of the first is to be divided by the one and multiplied by the other.
    pub into: usize,
}

impl Input {
    pub(super) fn of(access: Access) -> Self {
        Input { access, fold: 1, into: 1 }
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
    pub(super) fn image(&self) -> Option<(RowShape, Input)> {
        let rows = image_rows(self.seen, self.seen.rows())?;
        let (own, ring_rows) = (self.own.rows(), self.ring_rows);
        if self.own.keeps_rows(self.seen) {
            let rows = RowShape { ring_rows, ..rows };
            return Some((rows, Input::of(Access::Rows(rows))));
        }
        // One row of what is no image of several, so that the choice of a kernel never hangs on the ring.
        let one_row = self.seen.rows() == 1 && (own == 1 || !self.own.is_image());
        let lies_so = is_row_major(self.own, self.order()) && is_row_major(self.seen, self.seen.order);
        let rows = RowShape { ring_rows: ring_rows / own, ..rows };
        let input = Input { access: Access::Rows(rows), fold: own, into: 1 };
        (one_row && lies_so && ring_rows.is_multiple_of(own)).then_some((rows, input))
    }

    /// An operand whose elements lie in the row-major order in which they are seen, as `rows` rows of `pixels` pixels in
    /// all; a single pixel is one row.
    pub(super) fn flat(&self, rows: usize, pixels: usize) -> Option<Input> {
        if !is_row_major(self.own, self.order()) {
            return None;
        }
        let own = self.own.rows();
        if rows == 1 || pixels == 1 {
            return self.block(pixels);
        }
        let channels = self.own.elements() / pixels.max(1);
        let is_whole = self.ring_rows.is_multiple_of(own);
        let (ring_rows, fold, into) = match own == rows {
            true => (self.ring_rows, 1, 1),
            false => (self.ring_rows / own * rows, own, rows),
        };
        let shape = RowShape::dense(rows, pixels / rows, channels, ring_rows);
        (pixels.is_multiple_of(rows) && (own == rows || is_whole)).then_some(Input {
            access: Access::Rows(shape),
            fold,
            into,
        })
    }

    /// An operand of which all elements lie in one piece, in whatever order, as one row of `pixels` pixels.
    pub(super) fn block(&self, pixels: usize) -> Option<Input> {
        let rows = self.own.rows();
        let channels = self.own.elements() / pixels.max(1);
        let shape = RowShape::dense(1, pixels, channels, self.ring_rows / rows);
        // A ring of whole frames.
        let is_whole = self.ring_rows.is_multiple_of(rows);
        is_whole.then_some(Input { access: Access::Rows(shape), fold: rows, into: 1 })
    }

    /// The operand element by element, of a layer with this output.
    pub(super) fn elements(&self, output: &Shape) -> Result<Input, String> {
        let by_rows = self.own.keeps_rows(self.seen) && self.seen.row_axis() == output.row_axis();
        let rows = self.own.rows();
        if !self.own.is_image() && !by_rows && self.ring_rows.is_multiple_of(rows) {
            // Nothing makes less of it than the whole.
            let access = elements(&Shape::new([self.own.elements()]), Order::ChannelsFirst, self.seen, 1)?;
            return Ok(Input { access, fold: rows, into: 1 });
        }
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
        // Seen by rows as they are, so that an index is a place without arithmetic; else by its own.
        (None, _) => match (own.row_axis(), seen.row_axis().filter(|_| own.keeps_rows(seen))) {
            (Some(_), Some(axis)) => ElementShape::by_rows(&seen.dims, axis, ring_rows),
            (Some(axis), None) => ElementShape::by_rows(&own.dims, axis, ring_rows),
            (None, _) => ElementShape::dense(&seen.dims),
        },
    };
    Ok(Access::Elements(shape, dims))
}

/// Whether the elements of a whole tensor lie in the row-major order of its dimensions in this order.
pub(super) fn is_row_major(own: &Shape, order: Order) -> bool {
    match own.column_axis() {
        None => true,
        Some(_) => order == Order::ChannelsLast || own.channels() == 1 || own.elements() == own.channels(),
    }
}
