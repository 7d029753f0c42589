//! The csdfc compiler: all that knows CNNs *and* dataflow.

pub mod import;
pub mod network;
pub mod operators;
pub mod weights;
