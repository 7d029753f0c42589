//! TFLite models become networks.
//!
//! 1. The flatbuffer is read, table by table (`flat`, `schema`, `codes`, `sparse`).
//! 2. The operators that the outputs depend on are imported in the file's order, which is one in which they can be computed
//!    (`graph`).
//! 3. Each operator becomes nodes of ONNX's operators (`ops`, by way of `op`), which are imported as those of an ONNX model.
//!    So the two formats share all that makes layers.
//!
//! Floats stay in the file until somebody reads them. Nothing here knows of layers.

mod codes;
mod flat;
mod graph;
mod op;
mod ops;
mod schema;
mod sparse;

pub use ops::SUPPORTED;

pub(super) use graph::build;
pub(super) use schema::is_tflite;

#[cfg(test)]
mod tests;
