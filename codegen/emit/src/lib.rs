//! Emits a plan as a Rust crate that needs nothing but the compiler.
//!
//! It prints the very calls of kernels that `csdfc-runtime` makes when it runs the plan. A crate is made in memory, as
//! paths and bytes: [`emit`] does no I/O. Each model becomes a file with the loops of its schedule, in which each firing
//! is a call of a kernel with constants. The crate also has the sources of the kernels, a file of packed weights and, if
//! weights are streamed, a file for the store. Only the arena, the weights, the store, the kernels and the C interface have
//! `unsafe` code inside.

mod access;
mod borrow;
mod boundary;
mod call;
mod capi;
mod crate_options;
mod error;
mod example;
mod features;
mod files;
pub mod footprint;
mod form;
mod frame;
#[path = "template/hash.rs"]
mod hash;
mod in_place;
mod interleaving;
mod kernels;
mod layer;
mod loads;
mod model;
mod module;
mod names;
mod pipeline;
mod places;
mod program;
mod readme;
mod regions;
#[cfg(test)]
#[path = "template/ring.rs"]
#[allow(unexpected_cfgs, reason = "the features are those of emitted crates")]
mod ring;
mod schedule;
mod source;
mod stage;
mod state;
mod stream;
mod streamed_layer;
#[cfg(test)]
mod tests;
mod trials;
mod update;

use std::path::PathBuf;

use csdfc_plan::check;
use csdfc_plan::plan::Plan;
use csdfc_runtime::run::Parameters;
use files::Crate;
use model::{Model, Packed};
use names::Names;

pub use crate_options::Options;
pub use error::EmitError;
pub use files::{MANIFEST, listed};
pub use form::{ModuleOptions, module_name};
pub use hash::hash;
pub use trials::emit_trials;

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
    let name = options.name_for(plan)?;
    with_crate(plan, Some(parameters), name, true, |mut krate| {
        krate.image_files = options.image_files;
        if options.image_files && !krate.models.iter().any(Model::takes_images) {
            return Err(EmitError::NoPixels);
        }
        let mut files = krate.files();
        files.sort();
        Ok(files)
    })?
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
    let name = Options::default().name_for(plan)?;
    with_crate(plan, Some(parameters), name, false, |krate| krate.module(options))
}

/// New weights for the crate that [`emit`] made of the same plan with other weights: an update, which the crate reads from a
/// file or from flash. The higher the number, the newer.
///
/// # Errors
/// As [`emit`], and when no weights are in memory.
pub fn emit_update(plan: &Plan, parameters: &Parameters<'_>, number: u64) -> Result<Vec<u8>, EmitError> {
    let name = Options::default().name_for(plan)?;
    with_crate(plan, Some(parameters), name, true, |krate| match krate.has_updates() {
        true => Ok(update::bytes(krate.plan_hash, number, &krate.packed.weights)),
        false => Err(EmitError::NoWeights),
    })?
}

/// Binds the layers of a plan to kernels, and hands on the crate that calls them. Without `parameters`, its weights have only
/// places. `is_traceable`: it may have the feature
/// `trace`.
fn with_crate<T>(
    plan: &Plan,
    parameters: Option<&Parameters<'_>>,
    name: String,
    is_traceable: bool,
    write: impl FnOnce(Crate<'_>) -> T,
) -> Result<T, EmitError> {
    let resolved = check::resolve(plan).map_err(|violations| EmitError::Refused { violations })?;
    let mut packed = Packed::default();
    let taken =
        ["arena", "capi", "kernels", "ring", "store", "trace", "update", "weights", "hash", "core", "std"];
    let mut modules = Names::except(&taken);
    let mut models = Vec::new();
    for (c, cnn) in resolved.index.cnns.iter().enumerate() {
        let module = match resolved.index.cnns.len() {
            1 => "model".into(),
            _ => modules.give(&cnn.cnn.name),
        };
        models.push(Model::bind(&resolved, c, module, parameters, &mut packed)?);
    }
    let plan_hash = update::plan_hash(&models);
    models.iter_mut().for_each(|model| model.is_traceable = is_traceable);
    Ok(write(Crate { name, plan, models: &models, plan_hash, packed, image_files: false }))
}
