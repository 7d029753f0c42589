//! What users hand to csdfc.
//!
//! [`app`] reads application files and binds their names to networks. [`import`] makes a network from an ONNX or TFLite
//! file, [`builtin`] from the name of an architecture, and [`export`] writes one as an ONNX file. [`device`] reads what a
//! device can do. Nothing here knows how plans are made.

pub mod app;
pub mod builtin;
pub mod device;
pub mod export;
pub mod import;
pub mod units;
