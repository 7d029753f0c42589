//! The csdfc compiler: all that knows CNNs *and* dataflow.
//!
//! [`driver::plan`] is the main job; ARCHITECTURE.md is the map. A network can be read ([`app::load`]), named
//! ([`builtin::network`]) or written in Rust ([`builtin::Builder`]).
//!
//! From what is asked to a network: [`app`], [`import`], [`builtin`], [`network`], [`operators`], [`pass`]. From there to
//! a plan: [`frame`], [`storage`], [`packing`], [`cost`], [`search`], [`driver`]. What was made before: [`saved`]. The
//! command: [`cli`], [`commands`], [`report`], [`picture`], [`reproduce`]. Apart from all planning: [`offload`].

pub mod app;
pub mod builtin;
pub mod cli;
pub mod commands;
pub mod cost;
pub mod driver;
pub mod error;
pub mod frame;
pub mod import;
pub mod network;
pub mod offload;
pub mod operators;
pub mod packing;
pub mod pass;
pub mod picture;
pub mod report;
pub mod reproduce;
pub mod saved;
pub mod search;
pub mod storage;
pub mod suggest;
pub mod units;
