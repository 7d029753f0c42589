//! Emits a plan as a Rust crate that needs nothing but the compiler.
//!
//! It prints the very calls of kernels that `csdfc-runtime` makes when it runs the plan. A crate is made in memory, as
//! paths and bytes: [`emit`] does no I/O. Each model becomes a file with the loops of its schedule, in which each firing
//! is a call of a kernel with constants. The crate also has the sources of the kernels, a file of packed weights and, if
//! weights are paged, a file for the store. Only the arena, the weights, the store, the kernels and the C interface have
//! `unsafe` code inside.

mod borrow;
mod boundary;
mod call;
mod capi;
mod files;
mod follow;
mod form;
mod frame;
#[path = "template/hash.rs"]
mod hash;
mod kernels;
mod layer;
mod loads;
mod model;
mod module;
mod names;
mod paged_layer;
mod pipeline;
mod places;
mod program;
mod reach;
mod readme;
#[cfg(test)]
#[path = "template/ring.rs"]
#[allow(unexpected_cfgs, reason = "the features are those of emitted crates")]
mod ring;
mod schedule;
mod source;
mod stage;
#[cfg(test)]
mod tests;
mod trials;
mod turns;
mod uses;

use std::path::PathBuf;

use csdfc_plan::check::{self, CnnIndex, Violation};
use csdfc_plan::plan::Plan;
use csdfc_runtime::LayerError;
use csdfc_runtime::run::Parameters;
use files::Crate;
use model::{Model, Packed};
use names::Names;

pub use files::{MANIFEST, listed};
pub use form::{ModuleOptions, module_name};
pub use hash::hash;
pub use trials::emit_trials;

/// Options of a crate.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the crate; that of the application if absent.
    pub crate_name: Option<String>,
}

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
    /// A layer whose weights come in slices makes several network outputs.
    #[error(
        "layer {layer} of CNN {cnn}: it makes several outputs, and its weights come in slices: list it in `resident`"
    )]
    SlicedOutputs {
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
    #[error("`{name}` is no name for a crate: give letters, digits, `-` and `_`, with a letter first")]
    CrateName {
        /// The name.
        name: String,
    },
}

impl EmitError {
    fn layer(cnn: &CnnIndex<'_>, l: usize, why: LayerError) -> Self {
        let [cnn, layer] = names_of(cnn, l);
        EmitError::Layer { cnn, layer, why: Box::new(why) }
    }
}

/// The files of a crate, by their paths in its folder, in the order of the paths. The same plan and weights give the
/// same bytes.
///
/// # Errors
/// When the checker refuses the plan, a layer cannot be computed, parameters cannot be read, or the name is not valid.
pub fn emit(
    plan: &Plan,
    parameters: &Parameters<'_>,
    options: &Options,
) -> Result<Vec<(PathBuf, Vec<u8>)>, EmitError> {
    let name = crate_name(plan, options)?;
    with_crate(plan, parameters, name, true, |krate| {
        let mut files = krate.files();
        files.sort();
        files
    })
}

/// The files of a plan as a module of another crate, like those that [`emit`] makes for a crate of its own.
///
/// # Errors
/// As [`emit`], and when the path is not that of a module.
pub fn emit_module(
    plan: &Plan,
    parameters: &Parameters<'_>,
    options: &ModuleOptions<'_>,
) -> Result<Vec<(PathBuf, Vec<u8>)>, EmitError> {
    options.verify()?;
    let name = crate_name(plan, &Options::default())?;
    with_crate(plan, parameters, name, false, |krate| krate.module(options))
}

/// Binds the layers of a plan to kernels, and hands on the crate that calls them. `is_traceable`: it may have the feature
/// `trace`.
fn with_crate<T>(
    plan: &Plan,
    parameters: &Parameters<'_>,
    name: String,
    is_traceable: bool,
    write: impl FnOnce(Crate<'_>) -> T,
) -> Result<T, EmitError> {
    let resolved = check::resolve(plan).map_err(refused)?;
    let mut packed = Packed::default();
    let taken = ["arena", "capi", "kernels", "ring", "store", "trace", "weights", "hash", "core", "std"];
    let mut modules = Names::except(&taken);
    let mut models = Vec::new();
    for (c, cnn) in resolved.index.cnns.iter().enumerate() {
        let module = match resolved.index.cnns.len() {
            1 => "model".into(),
            _ => modules.give(&cnn.cnn.name),
        };
        let model = Model::bind(&resolved, c, module, Some(parameters), &mut packed)?;
        models.push(Model { is_traceable, ..model });
    }
    Ok(write(Crate { name, plan, models: &models, packed }))
}

fn refused(violations: Vec<Violation>) -> EmitError {
    EmitError::Refused { violations }
}

/// The names of a CNN and of a layer of it.
fn names_of(cnn: &CnnIndex<'_>, l: usize) -> [String; 2] {
    [&cnn.cnn.name, &cnn.layers[l].layer.name].map(String::clone)
}

fn crate_name(plan: &Plan, options: &Options) -> Result<String, EmitError> {
    let is_name = |name: &str| {
        name.len() <= 64
            && name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    match &options.crate_name {
        Some(name) if is_name(name) && !names::is_word(name) && name != "test" => Ok(name.clone()),
        Some(name) => Err(EmitError::CrateName { name: name.clone() }),
        None => {
            Ok(Names::except(&["test", "core", "std", "alloc"]).give(&plan.application).replace('_', "-"))
        }
    }
}
