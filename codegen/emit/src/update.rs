//! Updates: new weights for a crate that has been emitted, as `template/update.rs` reads them.

use super::model::Model;
use super::source::Source;
use super::{hash, module};

/// The bytes of an update, all little endian.
pub(super) fn bytes(plan_hash: u64, number: u64, weights: &[u8]) -> Vec<u8> {
    let mut update = b"csdfc up".to_vec();
    for word in [plan_hash, number, weights.len() as u64, hash::hash(weights), 0, 0] {
        update.extend(word.to_le_bytes());
    }
    update.extend(hash::hash(&update).to_le_bytes());
    update.extend(weights);
    update
}

/// The same for plans whose weights are interchangeable, and for no others: the hash of all code that reads weights, and of
/// what the integers of inputs stand for, which callers know. Comments do not count, since they name files and devices, nor
/// do the names that a trace has.
pub(super) fn plan_hash(models: &[Model<'_>]) -> u64 {
    debug_assert!(models.iter().all(|model| !model.is_traceable), "names of a trace are code");
    let modules = models.iter().map(|model| module::write(model).into_bytes());
    let kernels = module::kernels_of(models).into_iter().map(|(_, text)| text);
    let mut code = Vec::new();
    for text in modules.chain(kernels) {
        for line in text.split(|byte| *byte == b'\n') {
            if !line.trim_ascii_start().starts_with(b"//") {
                code.extend_from_slice(line);
                code.push(b'\n');
            }
        }
    }
    for model in models {
        let tensors = model.inputs.iter().map(|field| model.cnn().layers[field.layer].tensor);
        for quantization in tensors.filter_map(|tensor| tensor.quantization) {
            code.extend(quantization.scale.to_le_bytes());
            code.push(quantization.zero_point);
        }
    }
    hash::hash(&code)
}

/// The function that makes a model with the weights of an update.
pub(super) fn constructor(model: &Model<'_>) -> String {
    let (arena, memory) = module::arena(model);
    let mut source = Source::default();
    let (bound, parameter, stored) = match model.is_streamed() {
        true => (", S: Store", ", S", ", store"),
        false => ("", "", ""),
    };
    source.gap();
    source.open(format!("impl<'a{bound}> Model<'a{parameter}> {{"));
    source.line("/// The model with the weights of an update.");
    if model.is_streamed() {
        source.line("///");
        source.line("/// The store is no part of the update: it has the bytes of this crate's `store.bin`.");
    }
    let mut parameters = vec![format!("arena: {arena}"), "update: crate::update::Update<'a>".into()];
    parameters.extend(model.is_streamed().then(|| format!("store: {}", model.stores_of("S"))));
    source.head("pub fn with_update(", &parameters, " -> Self {");
    source.line(format!("Model::on({memory}, update.weights(){stored})"));
    source.close("}");
    source.close("}");
    source.finish()
}
