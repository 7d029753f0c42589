//! ONNX models become networks. Shapes are inferred, constants are folded, views are seen through. Nothing is fused.
//!
//! 1. The bytes are proved well-formed and decoded (`wire`).
//! 2. The nodes that the outputs depend on are put in order (`graph`).
//! 3. Each node is turned into layers, a view or a constant by its row of a table (`ops`). `builder` keeps the network.
//!
//! Floats stay where they are in the file until somebody reads them (`constant`).
//!
//! Only this module knows of ONNX. To add an operator, write a function under `ops` and a row of its table.

mod builder;
mod constant;
mod error;
mod fold;
mod graph;
mod inputs;
mod node;
mod ops;
mod wire;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::path::Path;

use sha2::{Digest, Sha256};

pub use error::{ImportError, UnsupportedNode};
pub use ops::SUPPORTED;

use crate::network::Network;

/// What a model leaves open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// Dimensions of network inputs, by name; they override the model's own.
    pub shapes: BTreeMap<String, Vec<usize>>,
}

/// A model, imported.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The network, unfused.
    pub network: Network,
    /// Size of the model's file, without external data.
    pub bytes: u64,
    /// SHA-256 of the model's file in lower-case hexadecimal.
    pub sha256: String,
}

/// Imports an ONNX file of opset 7 or later.
///
/// # Errors
/// When the file cannot be read or its model cannot be planned; see [`ImportError`].
pub fn import(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let model = path.display().to_string();
    let file = File::open(path).map_err(|source| ImportError::Read { model: model.clone(), source })?;
    import_named(&model, BufReader::new(file), path.parent(), options)
}

/// Imports a model that is in memory. `folder` is where its external data files are, if it may have any.
///
/// # Errors
/// As [`import`].
pub fn import_bytes(
    bytes: &[u8],
    folder: Option<&Path>,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    import_named("model", Cursor::new(bytes), folder, options)
}

fn import_named(
    model: &str,
    mut source: impl BufRead + Seek,
    folder: Option<&Path>,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let _span = tracing::info_span!("import", model).entered();
    // The file goes by three times rather than lying in memory beside its weights.
    let mut hash = Sha256::new();
    let bytes = std::io::copy(&mut source, &mut hash)
        .map_err(|source| ImportError::Read { model: model.to_string(), source })?;
    let sha256 = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let proto =
        wire::decode(source).map_err(|reason| ImportError::NotOnnx { model: model.to_string(), reason })?;
    let network = graph::build(model, &proto, folder, options)?;
    tracing::debug!(layers = network.layers.len(), "imported");
    Ok(Imported { network, bytes, sha256 })
}

#[cfg(test)]
mod tests;
