//! Turns a plan into calls of kernels, and makes these calls in this process.
//!
//! [`bind`] turns each layer of a [`Plan`](csdfc_plan::plan::Plan) into a call of a kernel, and [`weights`] packs its
//! parameters. [`run`] makes the calls; the crate `csdfc-emit` prints them. This crate knows nothing of how plans are
//! found.
//!
//! ```
//! use csdfc_plan::plan::Plan;
//! use csdfc_runtime::run::Runner;
//!
//! // A convolution of 8 filters of 3·5·5 weights.
//! let text = std::fs::read_to_string("../../tests/plan_format/version_1/pair_5x5.json")?;
//! let plan = Plan::parse(&text)?;
//! let runner = Runner::new(&plan, &|_cnn, _layer, parameter| Ok(vec![0.5; [600, 8][parameter]].into()))?;
//! assert_eq!(runner.weight_bytes(), plan.memory.parameters_stored);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bind;
pub mod bytes;
mod error;
pub mod file_name;
pub mod run;
pub mod stream;
pub mod streamed;
pub mod weights;

pub use error::{InputError, LayerError, ParameterError};
