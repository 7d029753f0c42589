//! The plan, the contract between the planner and the code that runs it.
//!
//! [`plan::Plan`] is plain data that holds all an outsider needs; [`check::check`] replays it by a path that shares no
//! code with the planner. This crate knows nothing of how plans are found. [`run`] runs a plan in
//! this process and [`emit`] writes it as a crate, both by the kernels that [`bind`] chooses.

pub mod bind;
mod bytes;
pub mod check;
pub mod emit;
pub mod file;
pub mod file_name;
pub mod format;
pub mod operator;
mod paged;
pub mod plan;
pub mod run;
pub mod shape;
pub mod timeline;
pub mod weights;

pub use check::check;
