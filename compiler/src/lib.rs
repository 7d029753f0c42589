//! The csdfc compiler: all that knows CNNs *and* dataflow.

pub mod app;
pub mod cli;
pub mod commands;
pub mod error;
pub mod logging;
pub mod network;
pub mod operators;
pub mod output;
pub mod suggest;
pub mod units;
pub mod weights;
