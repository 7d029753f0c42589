//! The example with which a crate's pages begin: a program that runs a frame.

use super::boundary::{describe, describe_input};
use super::model::Model;
use super::names::Names;
use super::source::Source;

/// Most bytes of an output that the example has on the stack.
const ON_STACK: u64 = 1 << 16;

/// The lines of a program that runs a frame of a crate's first model.
pub(super) fn example(library: &str, models: &[Model<'_>]) -> String {
    let Some(model) = models.first() else { return String::new() };
    let mut source = Source::default();
    write_imports(&mut source, library, model, models.len() > 1);
    // Inputs and outputs are variables, unless names of the example are in their way.
    let mut names = Names::except(&["arena", "model", "store", "inputs", "outputs"]);
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for field in &model.inputs {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        let local = names.give(&field.name);
        source.comment("//", &format!("{}.", describe_input(field, shape)));
        source.line(format!("let {local} = &[{}; {}];", zero(field.element()), shape.elements()));
        inputs.push(if local == field.name { local } else { format!("{}: {local}", field.name) });
    }
    for field in &model.outputs {
        let tensor = &model.cnn().layers[field.layer].tensor;
        let (local, elements) = (names.give(&field.name), tensor.shape.elements());
        let array = format!("[{}; {elements}]", zero(&tensor.format.element.to_string()));
        let (kept, taken) = match tensor.format.element.bytes() * elements as u64 > ON_STACK {
            true => ("vec!", format!("{local}.as_mut_slice().try_into().expect(\"{elements} elements\")")),
            false => ("", format!("&mut {local}")),
        };
        source.comment("//", &format!("{}.", describe(field.label, field.seen, &tensor.shape)));
        source.line(format!("let mut {local} = {kept}{array};"));
        outputs.push(format!("{}: {taken}", field.name));
    }
    source.gap();
    source.line("let arena = Arena::take().expect(\"nothing else has taken the arena\");");
    let open = "Loader::open(\"store.bin\".as_ref()).expect(\"the file of weights\")";
    let (store, end) = match (model.is_streamed(), model.streamed_stages().len()) {
        (false, _) => (String::new(), ""),
        (true, 0 | 1) => (format!(", {open}"), ".expect(\"weights\")"),
        (true, stages) => (format!(", [(); {stages}].map(|()| {open})"), ".expect(\"weights\")"),
    };
    source.line(format!("let mut model = Model::new(arena{store});"));
    if model.resumes_states() {
        source.line("model.reset();");
    }
    source.list("let inputs = Inputs {", &inputs, ";");
    source.list("let outputs = Outputs {", &outputs, ";");
    source.line(format!("model.infer(inputs, outputs){end};"));
    source.finish()
}

fn write_imports(source: &mut Source, library: &str, model: &Model<'_>, several: bool) {
    let mut of_crate = vec!["Arena"];
    of_crate.extend(model.is_streamed().then_some("Loader"));
    let of_model = ["Inputs", "Model", "Outputs"];
    match several {
        true => source.line(format!("use {library}::{}::{{{}}};", model.module, of_model.join(", "))),
        false => of_crate.extend(of_model),
    }
    of_crate.sort_unstable();
    source.line(match of_crate[..] {
        [name] => format!("use {library}::{name};"),
        _ => format!("use {library}::{{{}}};", of_crate.join(", ")),
    });
    source.gap();
}

/// A zero of this type.
fn zero(element: &str) -> String {
    format!("{}_{element}", if element.starts_with('f') { "0.0" } else { "0" })
}
