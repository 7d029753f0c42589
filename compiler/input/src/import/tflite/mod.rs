//! TFLite models become networks.
//!
//! 1. The flatbuffer is read, table by table (`flat`, `schema`, `codes`, `sparse`; `flexbuffer` for custom operators).
//!    If a part of the model is asked for, other tensors become its inputs and outputs (`cut`).
//! 2. The operators that the outputs depend on are imported in the file's order, in which each comes after its operands
//!    (`graph`).
//! 3. Chains that are one dilated convolution are found (`dilated`), since only whole they can be imported.
//! 4. Each operator becomes ONNX nodes (`ops`, by way of `op`), which are imported like those of an ONNX model. So both
//!    formats share all code that makes layers.
//!
//! Floats stay in the file until somebody reads them. Nothing here knows of layers.

mod codes;
mod cut;
mod dilated;
mod flat;
mod flexbuffer;
mod frames;
mod graph;
mod op;
mod ops;
mod schema;
mod sparse;
mod variables;

pub use ops::SUPPORTED;

pub(super) use graph::build;
pub(super) use schema::is_tflite;

#[cfg(test)]
mod tests;
