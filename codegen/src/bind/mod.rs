//! From a layer of a plan to a kernel: which one computes it, with what constants, on what rows.
//!
//! What lies as the rows of an image is given to kernels by rows, whatever part of it is there. A tensor whose elements
//! lie in the row-major order of the dimensions seen is given as pixels, dealt out among the rows that the output has. All
//! else goes element by element.

mod access;
mod choose;
mod fire;
mod kernel;
mod layer;
mod literal;
mod products;
mod translate;

pub use access::{Input, View};
pub use fire::{Slots, Source, Target, TargetData};
pub use kernel::{Bound, Call, Constant, ElementCall, Form, Kernel, Operand, Parameters, RowCall, Site};
pub(crate) use layer::{bind_layer, read_from, written_by};
pub use literal::Literal;
pub(crate) use translate::{activation, pre};

use crate::weights::Part;

/// Binds a layer to the kernel that computes it.
///
/// # Errors
/// When no kernel does.
pub fn bind(site: &Site<'_>) -> Result<Call, String> {
    let choose::Choice { form, parts, slopes } = choose::choose(site)?;
    let mut start = 0;
    let constants = parts.into_iter().map(|Part { packing, parameters }| {
        let range = start..start + packing.len();
        start = range.end;
        Constant { packing, parameters, range }
    });
    Ok(Call { form, constants: constants.collect(), slopes })
}
