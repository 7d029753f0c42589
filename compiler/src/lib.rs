//! The csdfc compiler: all that knows CNNs *and* dataflow.

pub mod network;
pub mod operators;
pub mod pass;
pub mod weights;
