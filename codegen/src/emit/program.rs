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
    if models.iter().any(is_piped) {
        source.line("mod ends;");
    }
    source.line("mod support;");
    source.gap();
    let by_range =
        |model: &Model<'_>| model.outputs.iter().any(|field| model.written(field.layer).is_empty());
    if models.iter().any(|model| is_piped(model) && by_range(model)) {
        source.line("use std::ops::Range;");
    }
    source.line("use std::process::ExitCode;");
    source.gap();
    let module = |model: &Model<'_>| model.module.clone();
    source.line(match models {
        [model] if !is_piped(model) => format!("use {library}::{{Arena, Inputs, Model, Outputs}};"),
        [_] => {
            let names = "InputFrames, InputRows, Inputs, Model, OutputFrames, OutputRows, Outputs";
            format!("use {library}::{{Arena, {names}}};")
        }
        _ => {
            let modules: Vec<String> = models.iter().map(module).collect();
            format!("use {library}::{{Arena, {}}};", modules.join(", "))
        }
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
        let path = if several { format!("{}::", model.module) } else { String::new() };
        write_run(&mut source, model, &path);
        if is_piped(model) {
            source.gap();
            write_frames(&mut source, model, &path);
        }
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
    if !is_piped(model) {
        source.open("support::time(arguments.frames, || {");
        source.list(&format!("let inputs = {path}Inputs {{"), &inputs, ";");
        source.list(&format!("let outputs = {path}Outputs {{"), &outputs, ";");
        source.line("model.infer(inputs, outputs);");
        source.close("});");
    } else {
        write_pipeline(source, model, path, &inputs, &outputs);
    }
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

/// Whether the program runs a model as a pipeline: outputs that leave it at several stages need rooms of their own.
pub(super) fn is_piped(model: &Model<'_>) -> bool {
    model.stages.iter().filter(|stage| stage.makes_outputs).count() == 1
}

/// Runs frames through a pipeline.
fn write_pipeline(source: &mut Source, model: &Model<'_>, path: &str, inputs: &[String], outputs: &[String]) {
    let (repeated, timed) = (frames_name(model, "Repeated"), frames_name(model, "Timed"));
    source.list(&format!("let inputs = {path}Inputs {{"), inputs, ";");
    let mut calls = Vec::new();
    for stage in &model.stages {
        if stage.takes_inputs {
            calls.push(format!("{repeated} {{ inputs, left: arguments.frames }}"));
        }
        if stage.makes_outputs {
            calls.push("outputs".into());
        }
    }
    source.list(&format!("let outputs = {path}Outputs {{"), outputs, ";");
    source.line("let mut ended = ends::Ends::new(arguments.frames);");
    source.line(format!("let outputs = {timed} {{ outputs, ended: &mut ended }};"));
    source.list("let ran = model.pipeline(", &calls, ";");
    source.line("ran.map_err(|error| error.to_string())?;");
    source.line("ended.report();");
}

/// The frames that a pipeline is handed, and the room that it fills.
fn write_frames(source: &mut Source, model: &Model<'_>, path: &str) {
    let (repeated, timed) = (frames_name(model, "Repeated"), frames_name(model, "Timed"));
    source.line("/// The same frame again and again.");
    source.open(format!("struct {repeated}<'f> {{"));
    source.line(format!("inputs: {path}Inputs<'f>,"));
    source.line("left: usize,");
    source.close("}");
    source.gap();
    source.open(format!("impl {path}InputRows for {repeated}<'_> {{"));
    for (i, field) in model.inputs.iter().enumerate() {
        if i > 0 {
            source.gap();
        }
        source.open(format!("{} {{", field.signature(&model.cnn().layers[field.layer].tensor.shape)));
        let arguments = match (field.by_rows, field.element(), field.planar()) {
            (false, ..) => "",
            (true, "f32", _) => "y, row",
            (true, _, false) => "y",
            (true, _, true) => "y, channel",
        };
        let end = if field.by_rows && field.element() == "f32" { ";" } else { "" };
        source.line(format!("self.inputs.{}({arguments}){end}", field.name));
        source.close("}");
    }
    source.close("}");
    source.gap();
    source.open(format!("impl {path}InputFrames for {repeated}<'_> {{"));
    source.open("fn next_frame(&mut self) -> bool {");
    source.line("let next = self.left > 0;");
    source.line("self.left = self.left.saturating_sub(1);");
    source.line("next");
    source.close("}");
    source.close("}");
    source.gap();
    source.line("/// Room for one frame, and the time at which each is there.");
    source.open(format!("struct {timed}<'f> {{"));
    source.line(format!("outputs: {path}Outputs<'f>,"));
    source.line("ended: &'f mut ends::Ends,");
    source.close("}");
    source.gap();
    source.open(format!("impl {path}OutputRows for {timed}<'_> {{"));
    for (i, field) in model.outputs.iter().enumerate() {
        if i > 0 {
            source.gap();
        }
        source.open(format!("{} {{", model.output_signature(field)));
        source.line(match model.written(field.layer).is_empty() {
            true => format!("self.outputs.{}(y)", field.name),
            false => format!("self.outputs.{}(y, row);", field.name),
        });
        source.close("}");
    }
    source.close("}");
    source.gap();
    source.open(format!("impl {path}OutputFrames for {timed}<'_> {{"));
    source.open("fn end_frame(&mut self) {");
    source.line("self.ended.now();");
    source.close("}");
    source.close("}");
}

/// The name of a structure of a model.
fn frames_name(model: &Model<'_>, what: &str) -> String {
    super::stage::camel(&model.module) + what
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
