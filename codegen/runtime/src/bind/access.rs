//! How a kernel sees an operand among the rings of a plan.

use csdfc_kernels::elements::{Dims, ElementShape, MAX_RANK};
use csdfc_kernels::rows::RowShape;

use csdfc_plan::operator::Operator;
use csdfc_plan::shape::{Order, Shape};

use crate::error::LayerError;

use super::kernel::Operand;
use super::views::{Input, View};

/// The rows of an image.
pub(super) fn image_rows(shape: &Shape, ring_rows: usize) -> Option<RowShape> {
    let column = shape.column_axis()?;
    Some(RowShape::dense(shape.rows(), shape.dims[column], shape.channels(), ring_rows))
}

impl Operand<'_> {
    /// The rows of an operand that is seen as an image: either as the same image, perhaps with its dimensions in the
    /// other order, or as another image if its elements lie like the rows of that image.
    pub(super) fn image(&self) -> Option<Input<RowShape>> {
        let rows = image_rows(self.seen, self.seen.rows())?;
        let (own, ring_rows) = (self.own.rows(), self.ring_rows);
        if self.own.keeps_rows(self.seen) {
            return Some(Input::whole(RowShape { ring_rows, ..rows }));
        }
        // The operand must have one row, and its tensor must not be an image of several rows. So the choice of a kernel
        // never depends on the ring.
        let one_row = self.seen.rows() == 1 && (own == 1 || !self.own.is_image());
        let lies_so = is_row_major(self.own, self.order()) && is_row_major(self.seen, self.seen.order);
        let input = Input { shape: RowShape { ring_rows: ring_rows / own, ..rows }, fold: own, into: 1 };
        (one_row && lies_so && ring_rows.is_multiple_of(own)).then_some(input)
    }

    /// An operand whose elements lie in the row-major order in which they are seen, as `rows` rows. `pixels` is the
    /// number of pixels of all rows. A single pixel is one row.
    pub(super) fn flat(&self, rows: usize, pixels: usize) -> Option<Input<RowShape>> {
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
        (pixels.is_multiple_of(rows) && (own == rows || is_whole)).then_some(Input { shape, fold, into })
    }

    /// An operand of which all elements lie in one piece, in whatever order, as one row of `pixels` pixels.
    pub(super) fn block(&self, pixels: usize) -> Option<Input<RowShape>> {
        let rows = self.own.rows();
        let channels = self.own.elements() / pixels.max(1);
        let shape = RowShape::dense(1, pixels, channels, self.ring_rows / rows);
        // A ring of whole frames.
        let is_whole = self.ring_rows.is_multiple_of(rows);
        is_whole.then_some(Input { shape, fold: rows, into: 1 })
    }

    /// The operand element by element, of a layer with this operator and output.
    pub(super) fn elements(&self, operator: &Operator, output: &Shape) -> Result<Input<View>, LayerError> {
        let by_rows = self.own.keeps_rows(self.seen) && self.seen.row_axis() == operator.row_source(output);
        let rows = self.own.rows();
        if !self.own.is_image() && !by_rows && self.ring_rows.is_multiple_of(rows) {
            // No kernel needs only a part of it.
            let shape = elements(&Shape::new([self.own.elements()]), Order::ChannelsFirst, self.seen, 1)?;
            return Ok(Input { shape, fold: rows, into: 1 });
        }
        elements(self.own, self.order(), self.seen, self.ring_rows).map(Input::whole)
    }

    /// The order of dimensions in which its elements lie.
    fn order(&self) -> Order {
        let is_reordered = self.own.rank() == 4 && self.seen.rank() == 4 && self.own.order != self.seen.order;
        if is_reordered { self.seen.order } else { self.own.order }
    }
}

/// The elements of a tensor, its own dimensions in this order, seen in these dimensions.
pub(super) fn elements(
    own: &Shape,
    order: Order,
    seen: &Shape,
    ring_rows: usize,
) -> Result<View, LayerError> {
    if seen.rank() > MAX_RANK {
        return Err(LayerError::TensorRank { rank: seen.rank() });
    }
    let dims = Dims::new(&seen.dims);
    let shape = match (image_rows(own, ring_rows), order) {
        (Some(rows), Order::ChannelsFirst) => ElementShape::channels_first(rows),
        (Some(rows), Order::ChannelsLast) => ElementShape::channels_last(rows),
        // If possible, the dimensions as they are seen give the rows, so that an index is a place without arithmetic.
        // Otherwise the tensor's own dimensions do.
        (None, _) => match (own.row_axis(), seen.row_axis().filter(|_| own.keeps_rows(seen))) {
            (Some(_), Some(axis)) => ElementShape::by_rows(&seen.dims, axis, ring_rows),
            (Some(axis), None) => ElementShape::by_rows(&own.dims, axis, ring_rows),
            (None, _) => ElementShape::dense(&seen.dims),
        },
    };
    Ok(View { shape, seen: dims })
}

/// Whether the elements of a whole tensor lie in the row-major order of its dimensions in this order.
pub(super) fn is_row_major(own: &Shape, order: Order) -> bool {
    match own.column_axis() {
        None => true,
        Some(_) => order == Order::ChannelsLast || own.channels() == 1 || own.elements() == own.channels(),
    }
}
