//! Networks become ONNX models, which csdfc and other runtimes read.
//!
//! Each layer becomes the ONNX node of its operator, with the layer's name. If a layer also computes an activation, a
//! sum or a concat, that becomes a node of its own. A view becomes a Reshape or a Transpose. 8-bit integers become
//! pairs of QuantizeLinear and DequantizeLinear, and weights that are integers stay so, behind a DequantizeLinear.
//!
//! 1. `layers` goes from layer to layer.
//! 2. `graph` gives names to tensors, and collects nodes and constants.
//! 3. `operators` has an arm for each operator. Families of them are files of their own.
//! 4. `constants` are values in the order of their dimensions.
//! 5. `file` encodes all of it.
//!
//! Weights are read, or drawn, for all layers: the model lies in memory twice.
//!
//! ```
//! use csdfc_input::export::export;
//! use csdfc_input::import::{ImportOptions, import_bytes};
//!
//! // What is written is read again as the same layers.
//! let network = csdfc_input::builtin::network("lenet5")?;
//! let bytes = export(&network)?;
//! let read = import_bytes(&bytes, None, &ImportOptions::default())?.network;
//! assert_eq!(read.parameters(), network.parameters());
//! assert!(read.layers.iter().zip(&network.layers).all(|(one, other)| one.operator == other.operator));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod constants;
mod file;
mod functions;
mod graph;
mod layers;
mod movement;
mod nodes;
mod operators;
mod windows;

use csdfc_network::Network;

/// The operator set of a written model: the first that has every operator that csdfc writes. ONNX Runtime reads it since
/// version 1.17.
pub const OPSET: i64 = 20;

/// Maximum number of bytes of a model in one file: protobuf counts them in 31 bits.
const MAX_BYTES: u64 = i32::MAX as u64;

/// Why a network cannot be written as an ONNX model.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum ExportError {
    /// A layer that ONNX cannot state.
    #[error("layer {layer} cannot be written as ONNX: {reason}")]
    #[diagnostic(code(csdfc::export::layer))]
    Layer {
        /// Its name.
        layer: String,
        /// Why.
        reason: String,
    },
    /// Weights that cannot be read.
    #[error("layer {layer}: its weights cannot be read")]
    #[diagnostic(code(csdfc::export::weights), help("a file of external data may be missing or cut short"))]
    Weights {
        /// The layer.
        layer: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// More bytes than one file can have.
    #[error("the model takes more than {MAX_BYTES} bytes, the most that an ONNX file can have")]
    #[diagnostic(code(csdfc::export::too_large), help("csdfc writes no files of external data"))]
    TooLarge,
    /// The encoder refuses the model.
    #[error("the model cannot be encoded: {0}")]
    #[diagnostic(code(csdfc::export::encoding))]
    Encoding(String),
}

/// The bytes of an ONNX model that computes what the network does.
///
/// # Errors
/// When a layer has no counterpart in ONNX, weights cannot be read, or the model is too large for one file.
pub fn export(network: &Network) -> Result<Vec<u8>, ExportError> {
    let _span = tracing::info_span!("export", layers = network.layers.len()).entered();
    file::bytes(layers::graph(network)?)
}

#[cfg(test)]
mod tests;
