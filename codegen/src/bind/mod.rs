//! From a layer of a plan to a kernel: which one computes it, with what constants, on what rows.
//!
//! What lies as the rows of an image is given to kernels by rows, whatever part of it is there. A tensor whose elements
//! lie in the row-major order of the dimensions seen is given as pixels, dealt out among the rows that the output has. All
//! else goes element by element.

mod access;
mod choose;
mod fire;
mod kernel;
mod products;
mod translate;

pub use access::{Access, Input};
pub use fire::{Slots, Source, Target};
pub use kernel::{Call, Constant, Kernel, Operand, Site};
pub(crate) use translate::{activation, pre};

use crate::weights::Part;

/// Binds a layer to the kernel that computes it.
///
/// # Errors
/// When no kernel does.
pub fn bind(site: &Site<'_>) -> Result<Call, String> {
    let choose::Choice { kernel, inputs, output, parts, p_relu } = choose::choose(site)?;
    let mut start = 0;
    let constants = parts.into_iter().map(|Part { packing, parameters }| {
        let range = start..start + packing.len();
        start = range.end;
        Constant { packing, parameters, range }
    });
    Ok(Call { kernel, inputs, output, constants: constants.collect(), p_relu })
}
