//! The program of a crate: it runs `.npy` files through its models and times frames.

use crate::plan::Plan;
use crate::shape::{Order, Shape};

use super::model::Model;
use super::source::Source;

/// The text of `src/main.rs`.
pub(super) fn write(name: &str, plan: &Plan, models: &[Model<'_>]) -> String {
    let mut source = Source::default();
    let library = name.replace('-', "_");
    let several = models.len() > 1;
    let model = if several { "CNN " } else { "" };
    let usage = format!("{name} {model}INPUT.npy… [--frames N] [--output DIR]");
    source.comment(
        "//!",
        &format!("Runs the models of `{}` on `.npy` files and times them:", plan.application),
    );
    source.line("//!");
    source.line(format!("//!     {usage}"));
    source.gap();
    source.line("mod support;");
    source.gap();
    source.line("use std::process::ExitCode;");
    source.gap();
    source.line(match models {
        [_] => format!("use {library}::{{Arena, Inputs, Model, Outputs}};"),
        _ => format!("use {library}::Arena;"),
    });
    source.gap();
    source.line("use support::{Arguments, Layout};");
    source.gap();
    source.line(format!("const USAGE: &str = {:?};", format!("usage: {usage}")));
    source.gap();
    source.open("fn main() -> ExitCode {");
    source.open("match Arguments::read(std::env::args()).and_then(|arguments| run(&arguments)) {");
    source.line("Ok(()) => ExitCode::SUCCESS,");
    source.open("Err(error) => {");
    source.line("eprintln!(\"{error}\\n{USAGE}\");");
    source.line("ExitCode::FAILURE");
    source.close("}");
    source.close("}");
    source.close("}");
    source.gap();
    source.open("fn run(arguments: &Arguments) -> Result<(), String> {");
    if several {
        source.line("let (cnn, files) = arguments.names.split_first().ok_or(\"no CNN is named\")?;");
        source.open("match cnn.as_str() {");
        for model in models {
            source.line(format!("{:?} => run_{}(arguments, files),", model.cnn().cnn.name, model.module));
        }
        source.line("_ => Err(format!(\"there is no CNN `{cnn}`\")),");
        source.close("}");
    } else {
        source.line("run_model(arguments, &arguments.names)");
    }
    source.close("}");
    for model in models {
        source.gap();
        let path = if several { format!("{library}::{}::", model.module) } else { String::new() };
        write_run(&mut source, model, &path);
    }
    source.finish()
}

fn write_run(source: &mut Source, model: &Model<'_>, path: &str) {
    source.open(format!(
        "fn run_{}(arguments: &Arguments, files: &[String]) -> Result<(), String> {{",
        model.module
    ));
    let files: Vec<String> = model.inputs.iter().map(|field| field.name.clone()).collect();
    source.open(format!("let [{}] = files else {{", files.join(", ")));
    source.line(format!(
        "return Err(\"there must be {} input(s): {}\".into());",
        files.len(),
        files.join(", ")
    ));
    source.close("};");
    for field in &model.inputs {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        let layout = if field.element() == "u8" { "Layout::Plain".into() } else { layout(shape, shape) };
        let name = &field.name;
        source.line(format!("let layout = {layout};"));
        source.line(format!(
            "let {name} = support::read::<{}, {}>({name}, layout)?;",
            field.element(),
            shape.elements()
        ));
    }
    for field in &model.outputs {
        let entry = &model.cnn().layers[field.layer];
        let element = if entry.tensor.element_bytes == 8 { "i64" } else { "f32" };
        source.line(format!(
            "let mut {}_out = support::room::<{element}, {}>()?;",
            field.name,
            entry.tensor.shape.elements()
        ));
    }
    source.line("let arena = Arena::take().ok_or(\"the arena is taken\")?;");
    source.line(format!("let mut model = {path}Model::new(arena);"));
    let inputs: Vec<String> = model.inputs.iter().map(|field| format!("{0}: &{0}", field.name)).collect();
    let outputs: Vec<String> =
        model.outputs.iter().map(|field| format!("{0}: &mut {0}_out", field.name)).collect();
    source.open("support::time(arguments.frames, || {");
    source.list(&format!("let inputs = {path}Inputs {{"), &inputs, ";");
    source.list(&format!("let outputs = {path}Outputs {{"), &outputs, ";");
    source.line("model.infer(inputs, outputs);");
    source.close("});");
    source.open("if let Some(folder) = &arguments.output {");
    source.line(
        "std::fs::create_dir_all(folder).map_err(|error| format!(\"{}: {error}\", folder.display()))?;",
    );
    for field in &model.outputs {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        let name = &field.name;
        source.line(format!("let (dims, layout) = ({:?}, {});", field.seen.dims, layout(shape, field.seen)));
        source.line(format!(
            "support::write(&folder.join(\"{name}.npy\"), &dims, layout, {name}_out.as_slice())?;"
        ));
    }
    source.close("}");
    source.line("Ok(())");
    source.close("}");
}

/// How a tensor that is seen in a shape lies in memory.
fn layout(own: &Shape, seen: &Shape) -> String {
    let swapped = own.rank() == 4 && seen.rank() == 4 && own.order != seen.order;
    let order = if swapped { seen.order } else { own.order };
    match own.column_axis() {
        Some(columns) if order == Order::ChannelsFirst => format!(
            "Layout::Rows {{ height: {}, width: {}, channels: {} }}",
            own.rows(),
            own.dims[columns],
            own.channels()
        ),
        _ => "Layout::Plain".into(),
    }
}
