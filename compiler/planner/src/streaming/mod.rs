//! When and where streamed weights are read: what a frame reads (`reads`), larger blocks where there is room ([`blocks`]),
//! and loads that overlap computing ([`loads`]).

pub mod blocks;
pub mod loads;
mod reads;

pub use reads::{bytes_read, read_ns};
