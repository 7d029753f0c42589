//! From a layer of a plan to a kernel: which one computes it, with what constants, on what rows.
//!
//! What lies as the rows of an image is given to kernels by rows, whatever part of it is there. A tensor whose elements
//! lie in the row-major order of the dimensions seen is given as pixels, dealt out among the rows that the output has. All
//! else goes element by element.

mod access;
mod choice;
mod choose;
mod fire;
mod kernel;
mod layer;
mod literal;
mod packing;
mod products;
mod seen;
mod translate;

pub use fire::{Slots, Source, Target, TargetData};
pub use kernel::{Bound, Call, Constant, ElementCall, Form, Kernel, Operand, Parameters, RowCall, Site};
pub use layer::bind;
pub(crate) use layer::{bind_layer, read_from, written_by};
pub use literal::Literal;
pub(crate) use packing::LINE;
pub use packing::{Packing, Part, stored_bytes};
pub use seen::{Input, View};
