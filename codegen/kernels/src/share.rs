//! A firing that several workers share.
//!
//! A row does not depend on how many rows a call makes. So this module deals out rows, whatever the kernel is. There is
//! one exception: if a firing makes fewer rows than there are workers, or reads more weights than pixels, a convolution
//! deals out its output channels itself. The bytes are the same for any number of workers.
//!
//! ```text
//! 28 rows of 28 pixels, 2 workers    | 0 1 2 | 3 4 5 6 | 7 8 9 | ...    8 pieces of 3 or 4 rows
//!  7 rows of  7 pixels, 2 workers    | 0 1 2 | 3 4 5 6 |                2 pieces: enough pixels to keep registers full
//! ```
//!
//! # Example
//!
//! ```
//! use csdfc_kernels::element_wise::ElementWise;
//! use csdfc_kernels::share::share_rows;
//! use csdfc_kernels::workers::Workers;
//! use csdfc_kernels::Activation;
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, Rows, RowsMut};
//!
//! let shape = RowShape::dense(64, 256, 1, 64); // [64, 256, 1]
//! let (data, mut made) = (vec![-1.0; 64 * 256], vec![0.0; 64 * 256]);
//! let mut workers = Workers::new(2);
//! let context = &mut Context { isa: Isa::detect(), workers: Some(&mut workers), workspace: &mut [] };
//! let input = Rows { data: Span::new(&data), shape };
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape };
//! share_rows(&ElementWise { function: Activation::Abs }, context, 0..64, &[input], &[], &mut output);
//! assert_eq!(made, vec![1.0; 64 * 256]);
//! ```
#![allow(unsafe_code, reason = "several workers write one tensor; each block says why it is sound")]

use core::ops::Range;

use super::kernel::{Context, RowKernel, Sharing};
use super::rows::{RowShape, Rows, RowsMut};
use super::shared::SharedRows;

/// Pixels that a piece should have. A kernel keeps twelve at a time in registers.
const PIXELS: usize = 64;
/// The most pieces per worker. With more pieces, a late worker delays the others less.
const PIECES: usize = 4;

/// Does what [`RowKernel::rows`] does, by all workers of the context. Each has an equal part of the workspace.
///
/// # Panics
/// As the kernel, or if the output has no room for all rows at once.
pub fn share_rows<O: Send, I: Sync>(
    kernel: &(impl RowKernel<O, I> + Sync + ?Sized),
    context: &mut Context<'_>,
    rows: Range<usize>,
    operands: &[Rows<'_, I>],
    constants: &[Rows<'_, I>],
    output: &mut RowsMut<'_, O>,
) {
    let isa = context.isa;
    let Some(workers) = context.workers.as_deref_mut().filter(|workers| workers.count() > 1) else {
        return kernel.rows(context, rows, operands, constants, output);
    };
    let count = workers.count();
    let multiple = match kernel.sharing(rows.len(), count, &output.shape) {
        Sharing::Kernel => return kernel.rows(context, rows, operands, constants, output),
        Sharing::Rows(multiple) if rows.len() > multiple => multiple,
        _ => {
            let context = &mut Context { isa, workers: None, workspace: context.workspace };
            return kernel.rows(context, rows, operands, constants, output);
        }
    };
    assert!(rows.len() <= output.shape.ring_rows, "rows that lie in one slot");
    let (first, end) = (rows.start / multiple, rows.end.div_ceil(multiple));
    let pixels = rows.len() * output.shape.width;
    let pieces = (count * (pixels / (PIXELS * count)).clamp(1, PIECES)).min(end - first);
    let begin =
        |piece: usize| ((first + (end - first) * piece / pieces) * multiple).clamp(rows.start, rows.end);
    let room = RowShape::dense(count, 1, context.workspace.len() / count, count);
    let mut workspace = RowsMut { data: (&mut *context.workspace).into(), shape: room };
    let (workspace, output) = (SharedRows::new(&mut workspace), SharedRows::new(output));
    workers.deal(pieces, &|worker, piece| {
        // SAFETY: a worker has one piece at a time, and takes the part of its own number, so nobody else uses these
        // elements while it does.
        let workspace = unsafe { workspace.elements(room.start(worker), room.row_stride()) };
        let context = &mut Context { isa, workers: None, workspace };
        // SAFETY: a piece asks only for its own rows, each row is of one piece, and no two share a slot: there are no
        // more rows than slots, as asserted above.
        let mut output = unsafe { output.rows() };
        kernel.rows(context, begin(piece)..begin(piece + 1), operands, constants, &mut output);
    });
}
