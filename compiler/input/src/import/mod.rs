//! Turns ONNX and TFLite models into networks. Import infers shapes, folds constants, and turns views into the shapes
//! in which layers see tensors. It fuses nothing.
//!
//! 1. The bytes are proved well-formed and decoded (`wire`, `messages`).
//!    If a part of the model is asked for, other tensors become its inputs and outputs (`cut`).
//! 2. The nodes that the outputs depend on are put in order (`graph`).
//! 3. Each node in turn is imported (`importer`). Bodies and functions are imported in place of the nodes that run them
//!    (`control`). Each other node is turned into layers, a view or a constant by its row of a table (`ops`). `builder` keeps the network.
//!
//! Floats stay where they are in the file until somebody reads them (`constant`).
//!
//! The operators of a TFLite model become ONNX nodes (`tflite`), so both formats share the third step.
//!
//! Only this module knows of ONNX and TFLite. To add an operator, write a function under `ops` and a row of its table.
//!
//! ```
//! use csdfc_input::export::export;
//! use csdfc_input::import::{ImportOptions, import};
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("lenet5.onnx");
//! std::fs::write(&file, export(&csdfc_input::builtin::network("lenet5")?)?)?;
//! let model = import(&file, &ImportOptions::default())?;
//! assert_eq!(model.bytes, std::fs::metadata(&file)?.len());
//! // Its weights stay in the file until somebody reads them.
//! assert_eq!(model.network.layers[1].parameters[0].values()?.len(), 6 * 5 * 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod attribute;
mod batch;
mod builder;
mod constant;
mod control;
mod cut;
mod error;
mod fold;
mod graph;
mod importer;
mod inputs;
mod messages;
mod node;
mod ops;
mod tflite;
mod wire;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;

use sha2::{Digest, Sha256};

pub use error::{ImportError, OnnxError, UnsupportedNode};
pub use ops::SUPPORTED;
pub use tflite::SUPPORTED as SUPPORTED_BY_TFLITE;

use csdfc_network::Network;
use csdfc_plan::part::ModelPart;

/// Options for what a model leaves open.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportOptions {
    /// Dimensions of network inputs, by name; they override the model's own. An empty name stands for the only input. A
    /// single number may also be by the name of a dimension that the model leaves open.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Inputs all of whose elements are one number in every frame, by name. The network has it as a constant.
    pub values: BTreeMap<String, f64>,
    /// The part of the model that is imported.
    pub part: ModelPart,
    /// Frames that a call takes; by default the batch that the model states, or 1 if it states none.
    pub batch: Option<usize>,
}

/// A model, imported.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The network of one frame, unfused.
    pub network: Network,
    /// Frames that a call takes, one after another.
    pub batch: usize,
    /// Size of the model's file, without external data.
    pub bytes: u64,
    /// SHA-256 of the model's file in lower-case hexadecimal.
    pub sha256: String,
    /// Inputs of the model on which none of its outputs depends. The network does not have them.
    pub unused_inputs: Vec<String>,
}

/// Imports an ONNX file of opset 7 or later, or a TFLite file. Its bytes say which it is.
///
/// # Errors
/// When the file cannot be read or its model cannot be planned; see [`ImportError`].
pub fn import(path: &Path, options: &ImportOptions) -> Result<Imported, ImportError> {
    let model = path.display().to_string();
    let file = File::open(path).map_err(|source| ImportError::Read { model: model.clone(), source })?;
    let place = Place { file: Some(path), folder: path.parent() };
    import_named(&model, BufReader::new(file), place, options)
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
    import_named("model", Cursor::new(bytes), Place { file: None, folder }, options)
}

/// Where a model comes from, so that its weights can be read later.
#[derive(Clone, Copy)]
struct Place<'a> {
    file: Option<&'a Path>,
    folder: Option<&'a Path>,
}

/// The first line of a file that Git LFS leaves in place of another.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

fn import_named(
    model: &str,
    mut source: impl BufRead + Seek,
    place: Place,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let _span = tracing::info_span!("import", model).entered();
    let cannot = |source| ImportError::Read { model: model.to_string(), source };
    let mut start = Vec::new();
    source.by_ref().take(LFS_POINTER.len() as u64).read_to_end(&mut start).map_err(cannot)?;
    source.rewind().map_err(cannot)?;
    if start == LFS_POINTER {
        return Err(ImportError::LfsPointer { model: model.to_string() });
    }
    let (bytes, hash, ((network, unused_inputs), batch)) = if tflite::is_tflite(&start) {
        // Its tables refer to each other everywhere.
        let mut all = Vec::new();
        source.read_to_end(&mut all).map_err(cannot)?;
        let built =
            inputs::with_batch(options, |batch| tflite::build(model, &all, place.file, options, batch))?;
        (all.len() as u64, Sha256::digest(&all), built)
    } else {
        // The file is read three times, so that it need not be in memory together with its weights.
        let mut hash = Sha256::new();
        let bytes = std::io::copy(&mut source, &mut hash).map_err(cannot)?;
        let mut proto = wire::decode(source).map_err(|reason| not_a_model(model, reason))?;
        if let Some(graph) = &mut proto.proto.graph {
            cut::cut(model, graph, &options.part)?;
        }
        (
            bytes,
            hash.finalize(),
            inputs::with_batch(options, |batch| {
                importer::build(model, &proto, place.folder, options, batch)
            })?,
        )
    };
    let sha256 = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    tracing::debug!(layers = network.layers.len(), "imported");
    if let Some(name) = options.part.inputs.iter().find(|name| unused_inputs.contains(name)) {
        return Err(ImportError::Tensor {
            model: model.to_string(),
            tensor: name.clone(),
            reason: "no output of the part depends on it, so it cannot be an input".into(),
            help: Some("give outputs that come after it, or leave it out".into()),
        });
    }
    // Whoever takes a part of a model leaves inputs out on purpose.
    let unused_inputs = if options.part.is_whole() { unused_inputs } else { Vec::new() };
    Ok(Imported { network, batch, bytes, sha256, unused_inputs })
}

/// The error for bytes of neither format. The file's name says which of the two was meant.
fn not_a_model(model: &str, reason: OnnxError) -> ImportError {
    let model = model.to_string();
    let is_tflite = Path::new(&model).extension().is_some_and(|own| own.eq_ignore_ascii_case("tflite"));
    match is_tflite {
        true => ImportError::NotTflite { model, reason: "it does not begin as one".into() },
        false => ImportError::NotOnnx { model, reason },
    }
}

#[cfg(test)]
mod tests;
