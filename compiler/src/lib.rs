//! The csdfc compiler: all that knows CNNs *and* dataflow.

pub mod builtin;
pub mod cost;
pub mod execution;
pub mod lower;
pub mod network;
pub mod operators;
pub mod search;
pub mod storage;
pub mod weights;
