//! The program of a crate: it runs `.npy` files through its models and times frames.

use csdfc_plan::plan::Plan;
use csdfc_plan::shape::{Order, Shape};
use csdfc_runtime::file_name::file_name;
use csdfc_runtime::run::input_dims;

use super::model::{Model, together};
use super::names::{camel, one_line};
use super::source::Source;

/// The text of `src/main.rs`.
pub(super) fn write(name: &str, plan: &Plan, models: &[Model<'_>]) -> String {
    let mut source = Source::default();
    let library = name.replace('-', "_");
    let several = models.len() > 1;
    let model = if several { "[CNN] " } else { "" };
    let store = if models.iter().any(Model::is_streamed) { " [--store FILE]" } else { "" };
    let turns_option = if several { " [--turns CNN,CNN…]" } else { "" };
    let usage =
        format!("{name} {model}INPUT.npy… [--frames N]{turns_option} [--output DIR]{store} [--trace FILE]");
    source.comment(
        "//!",
        &format!("Runs the models of `{}` on `.npy` files and times them:", plan.application),
    );
    source.line("//!");
    source.line(format!("//!     {usage}"));
    if several {
        source.line("//!");
        let text = "`--turns` runs the named CNNs in this order, each for `--frames` frames, in one arena.";
        source.comment("//!", &format!("Without the name of a CNN all run: {}. {text}", turns(models)));
    }
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
    source.line(match models {
        [model] => {
            let loader = if model.is_streamed() { "Loader, " } else { "" };
            let names = match is_piped(model) {
                false => format!("Inputs, {loader}Model, Outputs"),
                true => {
                    format!(
                        "InputFrames, InputRows, Inputs, {loader}Model, OutputFrames, OutputRows, Outputs"
                    )
                }
            };
            format!("use {library}::{{Arena, {names}}};")
        }
        some if some.iter().any(Model::is_streamed) => format!("use {library}::{{Arena, Loader}};"),
        _ => format!("use {library}::Arena;"),
    });
    source.gap();
    source.line("use support::{Arguments, Layout};");
    source.gap();
    let text = format!("{:?};", format!("usage: {usage}"));
    let line = format!("const USAGE: &str = {text}");
    if source.fits(&line) {
        source.line(line);
    } else {
        source.open("const USAGE: &str =");
        source.line(text);
        source.dedent();
    }
    source.gap();
    if several {
        let names: Vec<String> = models.iter().map(|model| format!("{:?}", model.cnn().cnn.name)).collect();
        source.list("const CNNS: &[&str] = &[", &names, ";");
        source.gap();
    }
    source.open("fn main() -> ExitCode {");
    let cnns = if several { "CNNS" } else { "&[]" };
    source.line(format!("let arguments = Arguments::read(std::env::args(), {cnns});"));
    source.open("let ran = arguments.and_then(|arguments| {");
    source.line("run(&arguments)?;");
    source.line("#[cfg(feature = \"trace\")]");
    source.line(format!("arguments.write_trace({library}::trace::take)?;"));
    source.line("Ok(())");
    source.close("});");
    source.open("match ran {");
    source.line("Ok(()) => ExitCode::SUCCESS,");
    source.open("Err(error) => {");
    source.line("eprintln!(\"{error}\\n{USAGE}\");");
    source.line("ExitCode::FAILURE");
    source.close("}");
    source.close("}");
    source.close("}");
    source.gap();
    source.open("fn run(arguments: &Arguments) -> Result<(), String> {");
    source.line("let arena = Arena::take().ok_or(\"the arena is taken\")?;");
    if several {
        write_all(&mut source, models);
    } else {
        source.line("run_model(arguments, &arguments.names, arena)");
    }
    source.close("}");
    for model in models {
        source.gap();
        let path = if several { format!("{library}::{}::", model.module) } else { String::new() };
        write_run(&mut source, model, &path, several);
        if is_piped(model) {
            source.gap();
            write_frames(&mut source, model, &path);
        }
    }
    source.finish()
}

/// The order in which all CNNs run, in words.
pub(super) fn turns(models: &[Model<'_>]) -> String {
    let name = |c: &usize| one_line(&models[*c].cnn().cnn.name);
    let group = |cnns: &Vec<usize>| match &cnns[..] {
        [one] => name(one),
        some => format!("{} at the same time", some.iter().map(name).collect::<Vec<_>>().join(" and ")),
    };
    groups(models).iter().map(group).collect::<Vec<_>>().join(", then ")
}

/// All CNNs in the order in which the program runs them. CNNs that run at the same time in the plan are together.
fn groups(models: &[Model<'_>]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut left: Vec<usize> = (0..models.len()).collect();
    let sets = models.first().map(|model| together(model.resolved)).unwrap_or_default();
    while let Some(&first) = left.first() {
        let all_left = |set: &&Vec<usize>| set.contains(&first) && set.iter().all(|c| left.contains(c));
        let group = sets.iter().filter(all_left).max_by_key(|set| set.len()).cloned();
        let group = group.unwrap_or_else(|| vec![first]);
        left.retain(|c| !group.contains(c));
        groups.push(group);
    }
    groups
}

/// Writes code that runs the named CNN or, if none is named, all of them.
fn write_all(source: &mut Source, models: &[Model<'_>]) {
    source.line("let files = &arguments.names[..];");
    source.line("if arguments.turns.is_empty()");
    source.line("    && let [cnn, files @ ..] = files");
    source.open("{");
    source.open("match cnn.as_str() {");
    for model in models {
        let (name, module, arena) = (&model.cnn().cnn.name, &model.module, own_arena(model));
        source.line(format!("{name:?} => return run_{module}(arguments, files, {arena}),"));
    }
    source.line("_ => {}");
    source.close("}");
    source.close("}");
    let needs = |model: &Model<'_>| {
        let inputs: Vec<&str> = model.inputs.iter().map(|field| field.name.as_str()).collect();
        format!("{} ({})", one_line(&model.cnn().cnn.name), inputs.join(", "))
    };
    let needs: Vec<String> = models.iter().map(needs).collect();
    let all: usize = models.iter().map(|model| model.inputs.len()).sum();
    source.open(format!("if files.len() != {all} {{"));
    source.line(format!("const NEEDED: &str = {:?};", needs.join(", ")));
    source.line("return Err(format!(\"name a CNN and give its inputs, or give those of all: {NEEDED}\"));");
    source.close("}");
    let mut start = 0;
    let mut files = Vec::new();
    for model in models {
        let end = start + model.inputs.len();
        files.push(format!("&files[{start}..{end}]"));
        start = end;
    }
    source.open("for cnn in &arguments.turns {");
    source.open("match cnn.as_str() {");
    for (model, files) in models.iter().zip(&files) {
        let (name, module, arena) = (&model.cnn().cnn.name, &model.module, own_arena(model));
        source.line(format!("{name:?} => run_{module}(arguments, {files}, {arena})?,"));
    }
    source.line("_ => {}");
    source.close("}");
    source.close("}");
    source.open("if !arguments.turns.is_empty() {");
    source.line("return Ok(());");
    source.close("}");
    for group in groups(models) {
        if let [one] = group[..] {
            let model = &models[one];
            let (module, files, arena) = (&model.module, &files[one], own_arena(model));
            source.line(format!("run_{module}(arguments, {files}, {arena})?;"));
            continue;
        }
        let modules: Vec<&str> = group.iter().map(|&c| models[c].module.as_str()).collect();
        let shares: Vec<String> = modules.iter().map(|module| format!("share_of_{module}")).collect();
        source.line(format!("let ({}) = arena.{}();", shares.join(", "), modules.join("_and_")));
        source.open("std::thread::scope(|scope| {");
        source.open("let running = [");
        for (&c, module) in group.iter().zip(&modules) {
            let files = &files[c];
            source.line(format!("scope.spawn(|| run_{module}(arguments, {files}, share_of_{module})),"));
        }
        source.close("];");
        source.line("let ended = running.map(|one| one.join().map_err(|_| \"a CNN panicked\")?);");
        source.line("ended.into_iter().collect::<Result<(), String>>()");
        source.close("})?;");
    }
    source.line("Ok(())");
}

/// The whole arena, as the model's `run` takes it.
fn own_arena(model: &Model<'_>) -> &'static str {
    if model.is_shared { "(&mut *arena).into()" } else { "arena" }
}

fn write_run(source: &mut Source, model: &Model<'_>, path: &str, several: bool) {
    let arena = if model.is_shared { format!("{path}Share<'_>") } else { "&mut Arena".into() };
    source.head(
        &format!("fn run_{}(", model.module),
        &["arguments: &Arguments".into(), "files: &[String]".into(), format!("arena: {arena}")],
        " -> Result<(), String> {",
    );
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
        let dims = input_dims(field.input, shape);
        let mut taken = vec![format!("&{dims:?}")];
        if field.input.camera.is_some() {
            taken.push(format!("&{:?}", [&[1], &dims[..]].concat()));
        }
        source.line(format!("let layout = {layout};"));
        source.list("let shapes: &[&[usize]] = &[", &taken, ";");
        source.line(format!(
            "let {name} = support::read::<{}, {}>({name}, shapes, layout)?;",
            field.element(),
            shape.elements()
        ));
    }
    for field in &model.outputs {
        let entry = &model.cnn().layers[field.layer];
        let element = entry.tensor.format.element;
        source.line(format!(
            "let mut {}_out = support::room::<{element}, {}>()?;",
            field.name,
            entry.tensor.shape.elements()
        ));
    }
    if model.is_streamed() {
        let stores = model.streamed_stages().len().max(1);
        source.line("let open = || Loader::open(&arguments.store);");
        source.line("let wrong = |error| format!(\"{}: {error}\", arguments.store.display());");
        let open = vec!["open().map_err(wrong)?".to_owned(); stores];
        match stores {
            1 => source.line(format!("let store = {};", open[0])),
            _ => source.list("let store = [", &open, ";"),
        }
        source.line(format!("let mut model = {path}Model::new(arena, store);"));
    } else {
        source.line(format!("let mut model = {path}Model::new(arena);"));
    }
    let inputs: Vec<String> = model.inputs.iter().map(|field| format!("{0}: &{0}", field.name)).collect();
    let outputs: Vec<String> =
        model.outputs.iter().map(|field| format!("{0}: &mut {0}_out", field.name)).collect();
    if !is_piped(model) {
        source.open(format!("support::time({}, arguments.frames, || {{", called(model, several)));
        source.list(&format!("let inputs = {path}Inputs {{"), &inputs, ";");
        source.list(&format!("let outputs = {path}Outputs {{"), &outputs, ";");
        if model.is_streamed() {
            source.line("model.infer(inputs, outputs).map_err(|error| error.to_string())");
        } else {
            source.line("model.infer(inputs, outputs);");
            source.line("Ok(())");
        }
        source.close("})?;");
    } else {
        write_pipeline(source, model, path, [&inputs, &outputs], called(model, several));
    }
    if model.is_streamed() {
        source.line("support::tell(&format!(\"read: {} bytes\\n\", model.bytes_read()));");
    }
    source.open("if let Some(folder) = &arguments.output {");
    if several {
        source.line(format!("let folder = &folder.join({:?});", file_name(&model.cnn().cnn.name)));
    }
    source.line(
        "std::fs::create_dir_all(folder).map_err(|error| format!(\"{}: {error}\", folder.display()))?;",
    );
    for field in &model.outputs {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        let name = &field.name;
        source.line(format!("let (dims, layout) = ({:?}, {});", field.seen.dims, layout(shape, field.seen)));
        source.line(format!(
            "support::write(&folder.join({:?}), &dims, layout, {name}_out.as_slice())?;",
            file_name(field.label) + ".npy"
        ));
    }
    source.close("}");
    source.line("Ok(())");
    source.close("}");
}

/// How the program refers to a model in its output: by its name, if there are several.
fn called(model: &Model<'_>, several: bool) -> String {
    format!("{:?}", if several { one_line(&model.cnn().cnn.name) } else { String::new() })
}

/// Whether the program runs a model as a pipeline. Outputs that leave it at different stages need separate buffers.
pub(super) fn is_piped(model: &Model<'_>) -> bool {
    model.stages.iter().filter(|stage| stage.makes_outputs).count() == 1
}

/// Runs frames through a pipeline.
fn write_pipeline(
    source: &mut Source,
    model: &Model<'_>,
    path: &str,
    [inputs, outputs]: [&[String]; 2],
    called: String,
) {
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
    source.line(format!("ended.report({called});"));
}

/// The frames that a pipeline takes, and the buffers that it fills.
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
    camel(&model.module) + what
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
