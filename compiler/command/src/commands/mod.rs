//! The work of the commands. They print results on standard output. If constraints could not be met, they say so on
//! standard error.
//!
//! `invoke` is one call of `csdfc`, from its arguments to its exit code. Each command has a file of its own, with one
//! function that takes the arguments of the command line.

mod analyze;
mod boxes;
pub(crate) mod check;
mod device;
pub(crate) mod emit;
mod frames;
mod hops;
mod images;
mod inspect;
pub(crate) mod invoke;
pub(crate) mod logging;
mod offload;
pub(crate) mod output;
mod outputs;
mod pack;
mod pages;
pub(crate) mod plan;
pub(crate) mod profile;
pub(crate) mod quantize;
pub(crate) mod read;
mod recorder;
pub(crate) mod report;
mod rows;
mod run;
mod select;
mod status;
mod watcher;
