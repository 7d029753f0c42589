//! The csdfc compiler: all that knows CNNs *and* dataflow.
//!
//! [`driver::plan`] is the main job; ARCHITECTURE.md is the map. A network can be read ([`app::load`]), named
//! ([`builtin::network`]) or written in Rust ([`builtin::Builder`]).

pub mod app;
mod assemble;
pub mod builtin;
pub mod cli;
pub mod commands;
pub mod cost;
mod couple;
pub mod driver;
pub mod error;
pub mod execution;
pub mod front;
pub mod identity;
pub mod import;
pub mod invoke;
pub mod logging;
pub mod lower;
pub mod network;
pub mod npy;
pub mod occupancy;
pub mod offload;
pub mod operators;
pub mod order;
pub mod output;
pub mod packing;
pub mod pass;
pub mod picture;
pub mod reload;
pub mod report;
pub mod reproduce;
pub mod search;
pub mod storage;
pub mod suggest;
pub mod tighten;
pub mod timing;
pub mod units;
pub mod weights;
