//! What the commands do: results on standard output, what could not be reached on standard error.
//!
//! [`invoke`](invoke::invoke) is one call of `csdfc`, from its arguments to its exit code. Each command has a file of its
//! own, and one function in it that the command line's arguments are handed to.

mod analyze;
mod check;
mod device;
pub mod emit;
mod inspect;
pub mod invoke;
pub mod logging;
pub mod npy;
mod offload;
pub mod output;
mod pack;
mod plan;
mod read;
mod reproduce;
mod run;
mod watcher;
