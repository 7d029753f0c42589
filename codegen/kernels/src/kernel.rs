//! What a kernel is: parameters, and a method that makes rows.
//!
//! The caller that runs a layer builds the structure of its kernel once, and calls the method firing by firing. An
//! emitted crate calls the same method of the same structure. A kernel that sees its tensors by rows is a
//! [`RowKernel`]. A kernel that sees them element by element is an [`ElementKernel`]. Some kernels are both. A call
//! with tensors in a form that the kernel does not know does not compile.
//!
//! # Example
//!
//! ```
//! use core::ops::Range;
//!
//! use csdfc_kernels::rows::RowShape;
//! use csdfc_kernels::span::{Span, SpanMut};
//! use csdfc_kernels::{Context, Isa, RowKernel, Rows, RowsMut};
//!
//! struct Double;
//!
//! impl RowKernel for Double {
//!     fn rows(
//!         &self,
//!         _: &mut Context<'_>,
//!         rows: Range<usize>,
//!         operands: &[Rows<'_>],
//!         _: &[Rows<'_>],
//!         output: &mut RowsMut<'_>,
//!     ) {
//!         for y in rows {
//!             let from = operands[0].row(y);
//!             output.row(y).iter_mut().zip(from).for_each(|(to, x)| *to = 2.0 * x);
//!         }
//!     }
//! }
//!
//! let input = Rows { data: Span::new(&[1.0, 2.0]), shape: RowShape::dense(2, 1, 1, 2) }; // [2, 1, 1]
//! let mut made = [0.0; 2];
//! let mut output = RowsMut { data: SpanMut::new(&mut made), shape: RowShape::dense(2, 1, 1, 2) }; // [2, 1, 1]
//! Double.rows(&mut Context::alone(Isa::PORTABLE), 1..2, &[input], &[], &mut output); // row 1 alone
//! assert_eq!(made, [0.0, 4.0]);
//! ```

use core::ops::Range;

use super::arch::Isa;
use super::elements::{Elements, ElementsMut};
use super::rows::{RowShape, Rows, RowsMut};
use super::workers::Workers;

/// The arguments of a firing other than its tensors.
#[derive(Debug)]
pub struct Context<'a> {
    /// The instruction set of vector code.
    pub isa: Isa,
    /// The workers that share the work of a call. Without them, the caller works alone.
    pub workers: Option<&'a mut Workers>,
    /// The kernel's own memory while it fires, with as many elements as its documentation says. Its content before and
    /// after the firing does not matter, unless the kernel's documentation says so.
    pub workspace: &'a mut [f32],
}

impl Context<'_> {
    /// A firing that the caller makes alone, without a workspace.
    pub const fn alone(isa: Isa) -> Self {
        Context { isa, workers: None, workspace: &mut [] }
    }
}

/// A kernel that sees tensors by rows and makes elements `O` of elements `I`.
pub trait RowKernel<O = f32, I = f32> {
    /// Makes rows `rows` of the output. The constants are packed as the kernel's documentation says.
    ///
    /// # Panics
    /// If there are fewer operands, constants or elements of workspace than the kernel's documentation says, or if they
    /// are smaller than their shapes.
    fn rows(
        &self,
        context: &mut Context<'_>,
        rows: Range<usize>,
        operands: &[Rows<'_, I>],
        constants: &[Rows<'_, I>],
        output: &mut RowsMut<'_, O>,
    );

    /// How `workers` workers best share a firing that makes `rows` rows of an output of this shape.
    fn sharing(&self, rows: usize, workers: usize, output: &RowShape) -> Sharing {
        let _ = workers;
        Sharing::by_elements(rows, output)
    }
}

/// A kernel that sees tensors element by element and makes elements `O` of elements `I`.
pub trait ElementKernel<O = f32, I = f32> {
    /// Makes rows `rows` of the output; all of it if the output is one row.
    ///
    /// # Panics
    /// As [`RowKernel::rows`].
    fn elements(
        &self,
        context: &mut Context<'_>,
        rows: Range<usize>,
        operands: &[Elements<'_, I>],
        constants: &[Elements<'_, I>],
        output: &mut ElementsMut<'_, O>,
    );
}

/// How a firing is shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One worker makes all of it.
    Alone,
    /// Rows are dealt out. A piece begins at a multiple of this number of rows, or where the firing begins.
    Rows(usize),
    /// The kernel deals out parts of rows itself.
    Kernel,
}

/// A firing with fewer output elements is not shared: waking the other workers would take longer. This is for kernels
/// of whose work nothing more is known.
const MIN_ELEMENTS: usize = 1 << 14;
impl Sharing {
    /// For a kernel that does about the same work for every element.
    pub const fn by_elements(rows: usize, output: &RowShape) -> Self {
        if rows * output.row_stride() < MIN_ELEMENTS { Sharing::Alone } else { Sharing::Rows(1) }
    }
}
