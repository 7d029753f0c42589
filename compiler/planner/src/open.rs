//! Opens what the command line names: an application file, standard input, or a bare model.
//!
//! ```
//! use csdfc_planner::open::open;
//!
//! let opened = open("builtin:lenet5")?;
//! let application = opened.resolve()?;
//! assert_eq!(application.name, "lenet5");
//! // Activations are fused into the layers before them.
//! let stated = opened.network_as_stated()?;
//! assert!(application.cnns[0].network.layers.len() < stated.layers.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use csdfc_input::app::Origin;
use csdfc_input::app::load::{self, ModelRequest, is_model_file};
use csdfc_input::app::name;
use csdfc_input::app::resolve::{Application, resolve};
use csdfc_input::app::spec::{self, AppSpec};
use csdfc_input::builtin;
use csdfc_network::Network;
use csdfc_network::pass::Fusion;

use crate::error::Error;

/// Largest application file, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// An application as its file, or a bare model, states it.
#[derive(Debug, Clone)]
pub struct Opened {
    /// What it states.
    pub spec: AppSpec,
    /// Where it comes from.
    pub origin: Origin,
    /// The folder that its relative paths start from.
    pub folder: PathBuf,
}

/// What a name on the command line stands for.
#[derive(Debug)]
pub enum AppSource {
    /// `FILE.onnx`, `FILE.tflite` or `builtin:NAME`.
    Model,
    /// A file, or standard input.
    Text {
        /// `standard input`, or the file.
        name: String,
        /// The folder.
        folder: PathBuf,
        /// The text.
        bytes: Vec<u8>,
    },
}

/// Reads what the command line names. `-` is standard input. It reads at most `largest` bytes and one more, so that the
/// caller can see whether there are too many.
///
/// # Errors
/// When it cannot be read.
pub fn read(source: &str, largest: u64) -> Result<AppSource, Error> {
    if is_model(source) {
        return Ok(AppSource::Model);
    }
    let all = |from: &mut dyn Read| -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        from.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let (name, folder, bytes) = match source {
        "-" => ("standard input", PathBuf::new(), all(&mut std::io::stdin().lock())),
        path => {
            let folder = Path::new(path).parent().map(Path::to_path_buf).unwrap_or_default();
            (path, folder, std::fs::File::open(path).and_then(|mut file| all(&mut file)))
        }
    };
    let bytes = bytes.map_err(|error| match builtin::network(source) {
        Ok(_) if error.kind() == std::io::ErrorKind::NotFound => Error::Input {
            message: format!("there is no file {source}"),
            help: Some(format!("the built-in network of this name is builtin:{source}")),
        },
        _ => Error::read(name, error),
    })?;
    Ok(AppSource::Text { name: name.into(), folder, bytes })
}

/// Whether a name stands for a bare model.
pub fn is_model(source: &str) -> bool {
    is_model_file(source) || source.starts_with("builtin:")
}

/// Opens an application file, `-` for one on standard input, `FILE.onnx`, `FILE.tflite` or `builtin:NAME`.
///
/// # Errors
/// When the file cannot be read, is no text, or is no application.
pub fn open(source: &str) -> Result<Opened, Error> {
    application(source, read(source, MAX_BYTES)?)
}

/// Opens an application as [`open`] does, or several models as the CNNs of one application.
///
/// # Errors
/// As [`open`]; when there is no source, or one of several is no model.
pub fn open_all(sources: &[String]) -> Result<Opened, Error> {
    let wrong = |message: String| Error::Input {
        message,
        help: Some("name models, FILE.onnx, FILE.tflite or builtin:NAME, or one application file".into()),
    };
    let [first, others @ ..] = sources else { return Err(wrong("no application is named".into())) };
    if let (false, Some(other)) = (others.is_empty(), sources.iter().find(|source| !is_model(source))) {
        return Err(wrong(format!("{other} is no model, and only models are named together")));
    }
    let mut opened = open(first)?;
    opened.spec.cnns.extend(others.iter().flat_map(|source| AppSpec::of_model(source).cnns));
    opened.origin.name = sources.join(" ");
    Ok(opened)
}

/// The application in what was read from `source`.
///
/// # Errors
/// When it is too large, no text, or no application.
pub fn application(source: &str, read: AppSource) -> Result<Opened, Error> {
    let AppSource::Text { name, folder, bytes } = read else {
        let origin = Origin { name: source.into(), ..Origin::default() };
        return Ok(Opened { spec: AppSpec::of_model(source), origin, folder: PathBuf::new() });
    };
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::Input {
            message: format!("{name} is too large for an application file: more than {MAX_BYTES} bytes"),
            help: Some("a model's file ends in .onnx or .tflite".into()),
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| Error::Input {
        message: format!("{name} is no application file: it is not UTF-8 text"),
        help: Some("a model's file ends in .onnx or .tflite".into()),
    })?;
    let origin = Origin { name, text: Some(text), replaced: Vec::new() };
    let mut spec = spec::parse(&origin)?;
    if spec.name.is_none() && source != "-" {
        spec.name = Some(name::default_name(source));
    }
    Ok(Opened { spec, origin, folder })
}

impl Opened {
    /// Loads the models and binds every name.
    ///
    /// # Errors
    /// The first fault found.
    pub fn resolve(&self) -> Result<Application, Error> {
        Ok(resolve(&self.spec, &self.origin, &self.folder, &mut load::load)?)
    }

    /// The network of the only CNN, with the layers of the model.
    ///
    /// # Errors
    /// When there are several CNNs, or the model cannot be loaded.
    pub fn network_as_stated(&self) -> Result<Network, Error> {
        let [cnn] = self.spec.cnns.as_slice() else {
            return Err(Error::Input {
                message: format!("{} has {} CNNs, not one", self.origin.name, self.spec.cnns.len()),
                help: Some("name one model: FILE.onnx, FILE.tflite or builtin:NAME".into()),
            });
        };
        let request = ModelRequest {
            model: &cnn.model,
            folder: &self.folder,
            shapes: &cnn.shapes,
            values: &cnn.values,
            batch: cnn.batch.map(NonZeroUsize::get),
            part: &cnn.part,
            fusion: Fusion::None,
        };
        let loaded = load::load_as_stated(&request).map_err(|source| Error::Model {
            cnn: cnn.name(),
            model: cnn.model.clone(),
            source: Box::new(source),
        })?;
        Ok(loaded.network)
    }
}
