//! Why a plan cannot be run, and where its parameters come from.

use std::borrow::Cow;

use csdfc_plan::check::{Resolved, Violation};

use crate::error::{InputError, LayerError, ParameterError};

/// Why a plan cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The checker refuses the plan.
    #[error("the plan is not safe to run: {}", violations.first().map(ToString::to_string).unwrap_or_default())]
    Refused {
        /// What is wrong with it.
        violations: Vec<Violation>,
    },
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
    /// The plan cannot take an input.
    #[error("input {input} of CNN {cnn}: {why}")]
    Input {
        /// The CNN.
        cnn: String,
        /// The input.
        input: String,
        /// What is wrong with it.
        why: Box<InputError>,
    },
    /// A row of an input cannot be had, or one of an output can go nowhere.
    #[error("row {y} of {tensor} of CNN {cnn}: {why}")]
    Row {
        /// The CNN.
        cnn: String,
        /// The input or output.
        tensor: String,
        /// The row, from 0.
        y: usize,
        /// What the caller says.
        why: std::io::Error,
    },
    /// There is less memory than the plan needs.
    #[error("there is no memory of {bytes} bytes for the plan")]
    Memory {
        /// Bytes of the arena, of the weights or of an output.
        bytes: u64,
    },
    /// Streamed weights cannot be written to the store, or read from it.
    #[error("layer {layer} of CNN {cnn}: the store of its weights fails: {why}")]
    Store {
        /// The CNN.
        cnn: String,
        /// The layer.
        layer: String,
        /// What the store says.
        why: std::io::Error,
    },
    /// What was saved is of another plan.
    #[error("what a CNN keeps between frames are {expected} bytes, and {bytes} are given")]
    Saved {
        /// Bytes given.
        bytes: usize,
        /// Bytes that the plan keeps.
        expected: usize,
    },
    /// A kernel wrote beyond the arena.
    #[error("a layer of CNN {cnn} wrote beyond the arena: a mistake in csdfc")]
    Guard {
        /// The CNN.
        cnn: String,
    },
}

/// Values of one parameter tensor, asked for by CNN, layer, and its place among the layer's parameters.
pub type Parameters<'a> = dyn Fn(usize, usize, usize) -> Result<Cow<'a, [f32]>, ParameterError> + 'a;

pub(super) fn store_error(resolved: &Resolved<'_>, c: usize, l: usize, why: std::io::Error) -> RunError {
    let cnn = &resolved.index.cnns[c];
    let layer = cnn.layers[l].layer.name.clone();
    RunError::Store { cnn: cnn.cnn.name.clone(), layer, why }
}

pub(super) fn layer_error(resolved: &Resolved<'_>, c: usize, l: usize, why: LayerError) -> RunError {
    let cnn = &resolved.index.cnns[c];
    let layer = cnn.layers[l].layer.name.clone();
    RunError::Layer { cnn: cnn.cnn.name.clone(), layer, why: Box::new(why) }
}
