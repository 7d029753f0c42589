//! Why a plan cannot be emitted.

use csdfc_plan::check::{CnnIndex, Violation};
use csdfc_runtime::LayerError;

/// Why a plan cannot be emitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The checker refuses the plan.
    #[error("the plan is not safe to run: {}", violations.first().map(ToString::to_string).unwrap_or_default())]
    Refused {
        /// What is wrong with it.
        violations: Vec<Violation>,
    },
    /// There is no plan whose layers are to be measured.
    #[error("the plan is not safe to run: there is none")]
    NoPlan,
    /// A layer cannot be computed.
    #[error("layer {layer} of CNN {cnn}: {why}")]
    Layer {
        /// The CNN.
        cnn: String,
        /// The layer.
        layer: String,
        /// What is in the way.
        why: Box<LayerError>,
    },
    /// A layer whose weights come in tiles makes several network outputs.
    #[error(
        "layer {layer} of CNN {cnn}: it makes several outputs, and its weights come in tiles: list it in `resident`"
    )]
    TiledOutputs {
        /// The CNN.
        cnn: String,
        /// The layer.
        layer: String,
    },
    /// An input of bytes has no ring to which its floats could go.
    #[error(
        "layer {layer} of CNN {cnn}: its bytes are converted into a ring of the arena, but the plan has no ring for this input"
    )]
    InputWithoutRing {
        /// The CNN.
        cnn: String,
        /// The input.
        layer: String,
    },
    /// The given path cannot be that of a module.
    #[error(
        "`{path}` is no path of a module: give names in snake_case with `::` between them, from the root of the crate"
    )]
    ModulePath {
        /// The path.
        path: String,
    },
    /// The given name cannot be that of a crate.
    #[error(
        "`{name}` is no name for a crate: give letters, digits, `-` and `_`, with a letter first, and no word or crate of Rust's own"
    )]
    CrateName {
        /// The name.
        name: String,
    },
    /// An update would have no weights.
    #[error(
        "all weights are read from a store, so an update would have none: emit the crate anew, and give the board its `store.bin`"
    )]
    NoWeights,
    /// The program is to take files of images, and has nowhere to take them.
    #[error(
        "no input takes the pixels of an image file: plan with `--input u8`, for an input of 1 or 3 channels, or emit without `--image-files`"
    )]
    NoPixels,
}

impl EmitError {
    pub(super) fn layer(cnn: &CnnIndex<'_>, l: usize, why: LayerError) -> Self {
        let [cnn, layer] = names_of(cnn, l);
        EmitError::Layer { cnn, layer, why: Box::new(why) }
    }
}

/// The names of a CNN and of a layer of it.
pub(super) fn names_of(cnn: &CnnIndex<'_>, l: usize) -> [String; 2] {
    [&cnn.cnn.name, &cnn.layers[l].layer.name].map(String::clone)
}
