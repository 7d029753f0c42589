//! Several plans of one model each, as a library that a program measures: it runs the plans one after another and asks when
//! firings ended.
//!
//! The plans share the kernels, one arena, and weights. The weights are made up when the program starts, since the time
//! of a layer does not depend on them. So there is nothing to pack, and no file of weights.

use std::collections::BTreeSet;
use std::path::PathBuf;

use csdfc_plan::check::{self, Resolved};
use csdfc_plan::plan::Plan;

use super::crate_options::Options;
use super::error::EmitError;
use super::features::Features;
use super::model::{Model, Packed};
use super::names::one_line;
use super::source::Source;
use super::{kernels, module, regions};

/// The files of the library of some plans, each of one CNN. The program, `src/main.rs`, is
/// the caller's: it finds the plans in `TRIALS` of the library, in this order.
///
/// # Errors
/// When there is no plan, the checker refuses one, a layer cannot be computed, or the name is not that of a crate.
pub fn emit_trials(plans: &[&Plan], options: &Options) -> Result<Vec<(PathBuf, Vec<u8>)>, EmitError> {
    let first = plans.first().ok_or(EmitError::NoPlan)?;
    let name = options.name_for(first)?;
    let head = format!(
        "// Written by csdfc {} to measure the layers of `{}`. This code is yours, to use and to change as you like; the\n\
         // kernels and what surrounds them are also under the licences beside it. Emitting again replaces it.\n\n",
        first.csdfc,
        one_line(&first.application)
    );
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let mut modules = BTreeSet::from(["arch", "kernel", "rows", "span"]);
    let mut features = Features::default();
    let (mut arena, mut weights) = (0, 0);
    for (number, plan) in plans.iter().enumerate() {
        let resolved = check::resolve(plan).map_err(|violations| EmitError::Refused { violations })?;
        let mut packed = Packed::default();
        let model = Model::bind(&resolved, 0, trial(number), None, &mut packed)?;
        // All plans have one arena, whose bytes they count from its start.
        let model = Model { is_traceable: true, regions: Vec::new(), ..model };
        modules.extend(model.kernel_modules());
        features = features.or(model.features());
        arena = arena.max(plan.memory.arena);
        weights = weights.max(packed.len);
        let text = head.clone() + &module::write(&model) + &run(&model, &resolved);
        files.push((format!("src/trials/{}.rs", model.module).into(), text.into_bytes()));
    }
    let mut add = |path: &str, text: String| files.push((path.into(), text.into_bytes()));
    add("Cargo.toml", manifest(&name));
    add("LICENSE-APACHE", include_str!("../LICENSE-APACHE").into());
    add("LICENSE-MIT", include_str!("../LICENSE-MIT").into());
    add("rustfmt.toml", include_str!("../rustfmt.toml").into());
    add(".gitignore", "/target\n".into());
    add(".cargo/config.toml", include_str!("template/config.toml").into());
    add("src/lib.rs", head.clone() + &library(plans.len(), arena, weights));
    add("src/arena.rs", head.clone() + &regions::arena(&[]));
    add("src/made_up.rs", head.clone() + include_str!("template/made_up.rs"));
    add("src/weights.rs", head.clone() + include_str!("template/any_weights.rs"));
    add("src/trace.rs", head.clone() + include_str!("template/ends_of_firings.rs"));
    let mut list = Source::default();
    list.line("//! The plans, a module each.");
    list.gap();
    (0..plans.len()).for_each(|number| list.line(format!("pub mod {};", trial(number))));
    add("src/trials/mod.rs", head + &list.finish());
    files.extend(kernels::files(&modules, features));
    Ok(files)
}

/// The name of a plan's module.
fn trial(number: usize) -> String {
    format!("t{number:04}")
}

fn manifest(name: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.89\"\n\
         publish = false\n\n\
         [features]\ndefault = [\"std\", \"trace\"]\n\
         # The instruction set is chosen at start.\nstd = []\n\
         # Firings are timed.\ntrace = []\n\
         # There are no weights to embed.\nweights = []\n\n\
         # The crate is a workspace of its own, wherever it lies.\n[workspace]\n"
    )
}

fn library(trials: usize, arena: u64, weights: usize) -> String {
    let mut source = Source::default();
    source.line("//! Plans that are run to see what their layers take.");
    source.line("#![deny(unsafe_code)]");
    source.line("#![warn(missing_docs)]");
    source.gap();
    source.line("mod arena;");
    source.line("#[doc(hidden)]");
    source.line("pub mod kernels;");
    for module in ["made_up", "trace", "trials"] {
        source.line(format!("pub mod {module};"));
    }
    source.line("mod weights;");
    source.gap();
    source.line("pub use arena::Arena;");
    source.line("pub use weights::WeightsError;");
    source.gap();
    source.line("/// Bytes of the arena: what the largest plan needs.");
    source.line(format!("pub const ARENA_BYTES: usize = {arena};"));
    source.gap();
    source.line("/// Bytes of the weights: what the largest plan needs.");
    source.line(format!("pub const WEIGHT_BYTES: usize = {weights};"));
    source.gap();
    source.line(
        "/// Readies a plan, in this arena and with these weights, and hands on what runs a frame of it.",
    );
    source.line(
        "pub type Trial = fn(&mut Arena, &[u8], &mut dyn FnMut(&mut dyn FnMut())) -> Result<(), WeightsError>;",
    );
    source.gap();
    source.line("/// The plans.");
    let names: Vec<String> = (0..trials).map(|number| format!("trials::{}::run", trial(number))).collect();
    source.list(&format!("pub const TRIALS: [Trial; {trials}] = ["), &names, ";");
    source.gap();
    source.line("/// The best instruction set of the processor.");
    source.open("fn isa() -> kernels::arch::Isa {");
    source.line("kernels::arch::Isa::detect()");
    source.close("}");
    source.finish()
}

/// The function of a module that prepares its model and hands on the closure that runs a frame.
fn run(model: &Model<'_>, resolved: &Resolved<'_>) -> String {
    let layers = &resolved.index.cnns[model.c].layers;
    let mut source = Source::default();
    source.gap();
    source.line("/// Readies the model, and hands on what runs a frame.");
    source.line("///");
    source.line("/// # Errors");
    source.line("/// When there are too few weights.");
    let parameters = ["arena: &mut Arena", "weights: &[u8]", "frames: &mut dyn FnMut(&mut dyn FnMut())"];
    source.head("pub fn run(", &parameters.map(str::to_owned), " -> Result<(), WeightsError> {");
    source.line("let mut model = Model::with_weights(arena, weights)?;");
    for field in &model.inputs {
        let elements = layers[field.layer].tensor.shape.elements();
        let make = match field.element() {
            "u8" => "bytes",
            "i8" => "integers",
            _ => "floats",
        };
        source.line(format!("let {} = crate::made_up::{make}::<{elements}>();", field.name));
    }
    for field in &model.outputs {
        let tensor = layers[field.layer].tensor;
        let (element, elements) = (tensor.format.element, tensor.shape.elements());
        source.line(format!("let mut {}_out = crate::made_up::room::<{element}, {elements}>();", field.name));
    }
    let inputs: Vec<String> = model.inputs.iter().map(|field| format!("{0}: &{0}", field.name)).collect();
    let outputs: Vec<String> =
        model.outputs.iter().map(|field| format!("{0}: &mut {0}_out", field.name)).collect();
    source.open("frames(&mut || {");
    source.list("let inputs = Inputs {", &inputs, ";");
    source.list("let outputs = Outputs {", &outputs, ";");
    source.line("model.infer(inputs, outputs);");
    source.close("});");
    source.line("Ok(())");
    source.close("}");
    source.finish()
}
