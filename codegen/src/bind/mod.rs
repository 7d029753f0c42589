//! From a layer of a plan to a kernel: which one computes it, with what constants, on what rows.
//!
//! A kernel is a structure of parameters with one method. [`RowKernel::rows`](csdfc_kernels::kernel::RowKernel::rows)
//! sees tensors by rows, [`ElementKernel::elements`](csdfc_kernels::kernel::ElementKernel::elements) sees them
//! element by element. [`bind`] chooses a kernel and says how it sees the operands, the constants and the output: all
//! by rows, or all by elements ([`Form`]). So no kernel can be bound to a form that it does not know. `run` calls the
//! method. `emit` prints the structure and the same call; `literal` writes the structure down by `serde`. What fits a
//! kernel is therefore said once.
//!
//! An operand whose elements lie as the rows of an image is given by rows, whatever part of it is there. An operand
//! whose elements lie in the row-major order of the dimensions seen is given as pixels, dealt out among the rows of
//! the output. All others go element by element.
mod access;
#[cfg(test)]
mod both_tables;
mod choice;
mod constants;
mod fire;
mod integer_constants;
mod integers;
mod kernel;
mod layer;
mod layouts;
mod literal;
mod mixed;
mod own_kernels;
mod primitive;
mod products;
mod scenarios;
mod seen;
mod slices;
#[cfg(test)]
mod tests;
mod translate;
mod typed;

pub use constants::{Packing, Part};
pub use fire::{Slots, Source, Target};
pub use integer_constants::{Integers, Unary};
pub use kernel::{Call, Constant, ElementCall, Form, Kernel, Operand, Parameters, RowCall, Site};
pub use layer::bind;
pub(crate) use layer::{bind_layer, read_from, workspace_of, written_by};
pub use literal::Literal;
pub(crate) use mixed::pack as pack_mixed;
pub use primitive::Primitive;
pub use seen::{Input, View};
pub use slices::Slicing;
pub(crate) use slices::packed;
pub use typed::{ByElements, ByRows, Lying, OnBytes, Stored};
