//! The csdfc compiler: all that knows CNNs *and* dataflow.

pub mod builtin;
pub mod network;
pub mod operators;
pub mod weights;
