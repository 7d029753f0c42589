//! Loads the network of a CNN: an ONNX or TFLite file, or a built-in architecture.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use csdfc_input::app::load::{ModelRequest, load, load_as_stated};
//! use csdfc_network::pass::Fusion;
//! use csdfc_plan::part::ModelPart;
//!
//! let (model, folder) = ("builtin:resnet8", Path::new(""));
//! let (shapes, values) = (&BTreeMap::new(), &BTreeMap::new());
//! let part = &ModelPart::default();
//! let request = ModelRequest { model, folder, shapes, values, batch: None, part, fusion: Fusion::Full };
//! let [stated, fused] = [load_as_stated(&request)?, load(&request)?];
//! // Batch norms and activations became part of the convolutions before them.
//! assert!(fused.network.layers.len() < stated.network.layers.len());
//! assert_eq!(fused.source, stated.source);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use miette::Diagnostic;

use crate::builtin;
use crate::import::{self, ImportOptions, Imported};
use csdfc_network::Network;
use csdfc_network::pass::{self, Fusion};
use csdfc_plan::part::ModelPart;

/// What to load.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    /// The model as the application names it: `FILE.onnx`, `FILE.tflite` or `builtin:NAME`.
    pub model: &'a str,
    /// The folder that relative paths start from.
    pub folder: &'a Path,
    /// Shapes of its inputs, by name.
    pub shapes: &'a BTreeMap<String, Vec<usize>>,
    /// The numbers that inputs are in every frame, by name.
    pub values: &'a BTreeMap<String, f64>,
    /// Frames that a call takes; by default the batch of the model, or 1 if that is open.
    pub batch: Option<usize>,
    /// The part of it to load.
    pub part: &'a ModelPart,
    /// How much to fuse.
    pub fusion: Fusion,
}

/// A loaded model.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its network.
    pub network: Network,
    /// Where it comes from.
    pub source: ModelSource,
}

/// Where a network comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSource {
    /// As the application names it.
    pub name: String,
    /// The file; none for a built-in.
    pub file: Option<PathBuf>,
    /// Size of the file; 0 for a built-in.
    pub bytes: u64,
    /// SHA-256 of the file, or of a built-in's layers, in hexadecimal.
    pub sha256: String,
    /// The numbers that inputs are in every frame, by name.
    pub values: BTreeMap<String, f64>,
    /// Frames that a call takes, one after another.
    pub batch: usize,
    /// The part of it that the network is.
    pub part: ModelPart,
    /// Inputs of the file on which none of its outputs depends. The network does not have them.
    pub unused_inputs: Vec<String>,
}

impl Default for ModelSource {
    /// Of no name, whose call takes one frame.
    fn default() -> Self {
        ModelSource {
            name: String::new(),
            file: None,
            bytes: 0,
            sha256: String::new(),
            values: BTreeMap::new(),
            batch: 1,
            part: ModelPart::default(),
            unused_inputs: Vec::new(),
        }
    }
}

/// Why a model cannot be loaded.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[non_exhaustive]
pub enum LoadError {
    /// No kind of model has such a name.
    #[error("a model is a file that ends in .onnx or .tflite, or `builtin:NAME`")]
    #[diagnostic(help("the built-in networks are {}", builtin::NAMES.join(", ")))]
    Kind,
    /// Shapes, values or a part were given for a built-in.
    #[error(
        "the inputs of a built-in network have fixed shapes, and no fixed values, and it is planned as a whole"
    )]
    BuiltinShape,
    /// The importer or the built-in networks refuse it.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Refused(Box<dyn Diagnostic + Send + Sync>),
}

/// Loads a model and normalises its network.
///
/// # Errors
/// As [`load_as_stated`].
pub fn load(request: &ModelRequest) -> Result<Loaded, LoadError> {
    let Loaded { network, source } = load_as_stated(request)?;
    let network = tracing::info_span!("normalise").in_scope(|| pass::normalise(network, request.fusion));
    Ok(Loaded { network, source })
}

/// Loads a model. Its network has the layers of its source: nothing is fused.
///
/// # Errors
/// When there is no such model, or it cannot be read or is not supported.
pub fn load_as_stated(request: &ModelRequest) -> Result<Loaded, LoadError> {
    let name = request.model.to_string();
    let (network, source) = match request.model.strip_prefix("builtin:") {
        Some(_) if !(request.shapes.is_empty() && request.values.is_empty() && request.part.is_whole()) => {
            return Err(LoadError::BuiltinShape);
        }
        Some(builtin) => {
            let network = builtin::network(builtin).map_err(|error| LoadError::Refused(Box::new(error)))?;
            let sha256 = builtin::fingerprint(&network);
            (
                network,
                ModelSource { name, sha256, batch: request.batch.unwrap_or(1), ..ModelSource::default() },
            )
        }
        None if is_model_file(request.model) => {
            let file = request.folder.join(request.model);
            let options = ImportOptions {
                shapes: request.shapes.clone(),
                values: request.values.clone(),
                part: request.part.clone(),
                batch: request.batch,
            };
            let Imported { network, batch, bytes, sha256, unused_inputs } =
                import::import(&file, &options).map_err(|error| LoadError::Refused(Box::new(error)))?;
            let (values, part) = (request.values.clone(), request.part.clone());
            (
                network,
                ModelSource { name, file: Some(file), bytes, sha256, values, batch, part, unused_inputs },
            )
        }
        None => return Err(LoadError::Kind),
    };
    Ok(Loaded { network, source })
}

/// Whether a path names a model's file by its ending.
pub fn is_model_file(path: &str) -> bool {
    let extension = Path::new(path).extension();
    extension.is_some_and(|own| ["onnx", "tflite"].iter().any(|known| own.eq_ignore_ascii_case(known)))
}
