//! Runs a plan in this process, and writes it as a crate. Both make the same calls of kernels.
//!
//! [`bind`] turns each layer of a [`Plan`](csdfc_plan::plan::Plan) into a call of a kernel. [`run`] makes the calls and
//! [`emit`] prints them. This crate knows nothing of how plans are found.

pub mod bind;
mod bytes;
pub mod emit;
pub mod file_name;
mod paged;
pub mod run;
pub mod weights;

pub use csdfc_kernels::element::F16;
