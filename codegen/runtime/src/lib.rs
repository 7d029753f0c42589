//! Turns a plan into calls of kernels, and makes these calls in this process.
//!
//! [`bind`] turns each layer of a [`Plan`](csdfc_plan::plan::Plan) into a call of a kernel, and [`weights`] packs its
//! parameters. [`run`] makes the calls; the crate `csdfc-emit` prints them. This crate knows nothing of how plans are
//! found.

pub mod bind;
pub mod bytes;
mod error;
pub mod file_name;
pub mod run;
pub mod streamed;
pub mod weights;

pub use error::{InputError, LayerError, ParameterError};
