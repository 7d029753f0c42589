//! The csdfc compiler: all that knows CNNs *and* dataflow.

pub mod app;
pub mod builtin;
pub mod cli;
pub mod commands;
pub mod cost;
pub mod error;
pub mod execution;
pub mod logging;
pub mod lower;
pub mod network;
pub mod operators;
pub mod output;
pub mod search;
pub mod storage;
pub mod suggest;
pub mod units;
pub mod weights;
