//! The program of a crate: it runs files through its models, by rows, and times frames.

use csdfc_plan::operator::ColorOrder;
use csdfc_plan::plan::Plan;
use csdfc_plan::shape::{Order, Shape};
use csdfc_runtime::file_name::file_name;
use csdfc_runtime::run::input_dims;

use super::model::{InputField, Model, OutputField, together};
use super::names::{camel, one_line};
use super::pipeline::Stage;
use super::source::Source;

/// The text of `src/main.rs`.
pub(super) fn write(name: &str, plan: &Plan, models: &[Model<'_>], image_files: bool) -> String {
    let mut source = Source::default();
    let library = name.replace('-', "_");
    let several = models.len() > 1;
    let usage = usage(name, models);
    source.comment(
        "//!",
        &format!("Runs the models of `{}` on files and times them:", one_line(&plan.application)),
    );
    source.line("//!");
    source.line(format!("//!     {usage}"));
    if several {
        source.line("//!");
        source.comment("//!", &on_turns(models));
    }
    source.gap();
    source.line("mod files;");
    if image_files {
        source.line("mod pixels;");
    }
    source.line("mod support;");
    source.gap();
    let by_range =
        |model: &Model<'_>| model.outputs.iter().any(|field| model.written(field.layer).is_empty());
    if models.iter().any(by_range) {
        source.line("use std::ops::Range;");
    }
    source.line("use std::process::ExitCode;");
    source.gap();
    let mut names = vec!["Arena"];
    if let [model] = models {
        names.extend(["InputRows", "Model", "OutputRows"]);
        names.extend(is_piped(model).then_some(["InputFrames", "OutputFrames"]).into_iter().flatten());
    }
    names.extend(models.iter().any(Model::is_streamed).then_some("Loader"));
    names.sort_unstable();
    source.line(match &names[..] {
        [name] => format!("use {library}::{name};"),
        names => format!("use {library}::{{{}}};", names.join(", ")),
    });
    source.gap();
    source.line("use files::{Input, Layout, Output};");
    if image_files {
        source.line("use pixels::Image;");
    }
    source.line("use support::{Arguments, Cnn, Ends, Frames};");
    source.gap();
    source.comment("///", "What the program says about itself.");
    source.line("const HELP: &str = \"\\");
    help(&usage, plan, models, image_files).lines().for_each(|line| {
        source.line(line.replace('\\', "\\\\").replace('"', "\\\""));
    });
    source.line("\";");
    source.gap();
    write_cnns(&mut source, models);
    source.open("fn main() -> ExitCode {");
    source.open("if std::env::args().skip(1).any(|argument| argument == \"--help\" || argument == \"-h\") {");
    source.line("print!(\"{HELP}\");");
    source.line("return ExitCode::SUCCESS;");
    source.close("}");
    source.line("let arguments = Arguments::read(std::env::args(), CNNS);");
    source.open("let ran = arguments.and_then(|arguments| {");
    source.line("run(&arguments)?;");
    source.line("#[cfg(feature = \"trace\")]");
    source.line(format!("arguments.write_trace({library}::trace::take)?;"));
    source.line("Ok(())");
    source.close("});");
    source.open("match ran {");
    source.line("Ok(()) => ExitCode::SUCCESS,");
    source.open("Err(error) => {");
    source.line("eprintln!(\"{error}\\n`--help` says how to call the program\");");
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
        source.line("run_model(arguments, arena)");
    }
    source.close("}");
    for (number, model) in models.iter().enumerate() {
        let path = if several { format!("{library}::{}::", model.module) } else { String::new() };
        source.gap();
        write_run(&mut source, model, &path, several.then_some(number), image_files);
        source.gap();
        write_inputs(&mut source, model, &path);
        source.gap();
        write_outputs(&mut source, model, &path);
    }
    source.finish()
}

/// Writes the names of CNNs, inputs and outputs that the command line knows.
fn write_cnns(source: &mut Source, models: &[Model<'_>]) {
    let mut cnns = Vec::new();
    for model in models {
        let prefix = if models.len() > 1 { model.module.to_uppercase() + "_" } else { String::new() };
        let quoted = |names: Vec<&str>| names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>();
        let inputs = quoted(model.inputs.iter().map(|field| input_name(model, field)).collect());
        let outputs = quoted(model.outputs.iter().map(|field| field.label).collect());
        source.list(&format!("const {prefix}INPUTS: &[&str] = &["), &inputs, ";");
        source.list(&format!("const {prefix}OUTPUTS: &[&str] = &["), &outputs, ";");
        let fields = [
            format!("name: {:?}", model.cnn().cnn.name),
            format!("inputs: {prefix}INPUTS"),
            format!("outputs: {prefix}OUTPUTS"),
        ];
        cnns.push(format!("{prefix}CNN"));
        source.list(&format!("const {prefix}CNN: Cnn = Cnn {{"), &fields, ";");
    }
    source.list("const CNNS: &[Cnn] = &[", &cnns, ";");
    source.gap();
}

/// How the program is called.
fn usage(name: &str, models: &[Model<'_>]) -> String {
    let several = models.len() > 1;
    let cnn = if several { "[CNN] " } else { "" };
    let turns = if several { " [--turns CNN,CNN…]" } else { "" };
    let store = if models.iter().any(Model::is_streamed) { " [--store FILE]" } else { "" };
    format!(
        "{name} {cnn}INPUT… [--output DIR] [--output NAME=FILE]… [--bytes] [--frames N]{turns}{store} \
         [--trace FILE]"
    )
}

/// In which order several CNNs run.
fn on_turns(models: &[Model<'_>]) -> String {
    let text = "`--turns` runs the named CNNs in this order, each for `--frames` frames, in one arena.";
    let anew = if models.iter().any(Model::is_stream) { " A stream begins anew with each turn." } else { "" };
    format!("Without the name of a CNN all run: {}. {text}{anew}", turns(models))
}

/// What the program says about itself.
fn help(usage: &str, plan: &Plan, models: &[Model<'_>], image_files: bool) -> String {
    let several = models.len() > 1;
    let all = |of: &dyn Fn(&Model<'_>) -> Vec<String>| {
        let names = models.iter().flat_map(|model| {
            let cnn = if several { format!("{}/", model.cnn().cnn.name) } else { String::new() };
            of(model).into_iter().map(move |name| one_line(&format!("{cnn}{name}")))
        });
        names.collect::<Vec<String>>().join(", ")
    };
    let inputs = all(&|model| model.inputs.iter().map(|field| input_name(model, field).to_owned()).collect());
    let outputs = all(&|model| model.outputs.iter().map(|field| field.label.to_owned()).collect());
    let (prefix, several) = match several {
        true => ("[CNN/]", on_turns(models) + "\n\n"),
        false => ("", String::new()),
    };
    let store = match models.iter().any(Model::is_streamed) {
        true => "  --store FILE          The weights that frames read; by default store.bin\n",
        false => "",
    };
    let images = match image_files {
        true => {
            "\nAn input that takes bytes of pixels also takes a PNG or JPEG file, of exactly its width and height, as one frame.\n"
        }
        false => "",
    };
    format!(
        "Runs the models of {} on files.\n\n\
         Usage: {usage}\n\n{several}\
         Inputs, in this order: {inputs}\n\
         Outputs: {outputs}\n\n  \
         INPUT                 The file of an input: a .npy file, which is one frame, or a raw file\n  \
         --input {prefix}NAME=FILE\n                        \
         The same by name. If there is only one input, it needs no name\n  \
         --output DIR          Write outputs of the last frame to .npy files in this folder\n  \
         --output {prefix}NAME=FILE\n                        \
         Write an output of each frame to this raw file, or one of the last frame to a .npy file\n  \
         --output -            Write the only output to standard output, raw\n  \
         --bytes               Make elements of raw outputs bytes: floats times 255, rounded to the nearest;\n                        \
         what is below 0 or above 255 becomes 0 or 255\n  \
         --frames N            Run at most this many frames: by default one, or as many as raw inputs have\n\
         {store}  \
         --trace FILE          Write when each layer fired (feature `trace`)\n\n\
         A raw file is one whose name does not end in .npy; `-` is standard input or output. It holds frame after\n\
         frame, without a header: rows from the top, images as pixels of channels, floats of 32 bits in little-endian\n\
         order, or the bytes that an input takes. It is read and written by rows, so no frame is held, unless the plan\n\
         reads an input as a whole, or a camera has planes.\n{images}",
        one_line(&plan.application),
    )
}

/// The name of an input in the model.
fn input_name<'m>(model: &'m Model<'_>, field: &InputField<'_>) -> &'m str {
    &model.cnn().layers[field.layer].layer.name
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
    let calls: Vec<String> =
        models.iter().map(|model| format!("run_{}(arguments, {})", model.module, own_arena(model))).collect();
    source.open("match arguments.only {");
    for (number, call) in calls.iter().enumerate() {
        source.line(format!("Some({number}) => return {call},"));
    }
    source.line("_ => {}");
    source.close("}");
    source.open("for cnn in &arguments.turns {");
    source.open("match cnn {");
    for (number, call) in calls.iter().enumerate() {
        source.line(format!("{number} => {call}?,"));
    }
    source.line("_ => {}");
    source.close("}");
    source.close("}");
    source.open("if !arguments.turns.is_empty() {");
    source.line("return Ok(());");
    source.close("}");
    for group in groups(models) {
        if let [one] = group[..] {
            source.line(format!("{}?;", calls[one]));
            continue;
        }
        let modules: Vec<&str> = group.iter().map(|&c| models[c].module.as_str()).collect();
        let shares: Vec<String> = modules.iter().map(|module| format!("share_of_{module}")).collect();
        source.line(format!("let ({}) = arena.{}();", shares.join(", "), modules.join("_and_")));
        source.open("std::thread::scope(|scope| {");
        source.open("let running = [");
        for module in &modules {
            source.line(format!("scope.spawn(|| run_{module}(arguments, share_of_{module})),"));
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

/// Writes the function that runs the frames of a model. If there are several models, it has a number.
fn write_run(source: &mut Source, model: &Model<'_>, path: &str, number: Option<usize>, image_files: bool) {
    let arena = if model.is_shared { format!("{path}Share<'_>") } else { "&mut Arena".into() };
    source.head(
        &format!("fn run_{}(", model.module),
        &["arguments: &Arguments".into(), format!("arena: {arena}")],
        " -> Result<(), String> {",
    );
    let c = number.unwrap_or(0);
    let batch = model.batch();
    source.line(format!("let frames = Frames::new(arguments.frames({c}, {batch}));"));
    for (i, field) in model.inputs.iter().enumerate() {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        let layout = if field.input.camera.is_some() { "Layout::Plain".into() } else { layout(shape, shape) };
        let dims = input_dims(field.input, shape);
        let mut taken = vec![format!("&{:?}", model.call_dims(&dims))];
        if field.input.camera.is_some() && batch == 1 {
            taken.push(format!("&{:?}", [&[1], &dims[..]].concat()));
        }
        source.line(format!("let layout = {layout};"));
        source.list("let shapes: &[&[usize]] = &[", &taken, ";");
        let part = part_of_input(field, shape);
        let is_whole = !field.by_rows || field.planar();
        let file = format!("arguments.input({c}, {i})");
        let takes_images = image_files && field.takes_images(shape);
        let image = if takes_images { "image" } else { "None" };
        if takes_images {
            write_image(source, field, shape, &file);
        }
        let arguments = [
            file,
            image.into(),
            "shapes".into(),
            "layout".into(),
            format!("[{}, {part}]", shape.elements() / part),
            is_whole.to_string(),
        ];
        source.list(&format!("let input_{i} = Input::open("), &arguments, "?;");
    }
    let fields = |kind: &str, count: usize, more: &[&str]| {
        let names = (0..count).map(|i| format!("{kind}_{i}"));
        names.chain(more.iter().map(|field| (*field).to_owned())).collect::<Vec<String>>()
    };
    let (inputs, outputs) = (camel(&model.module) + "Inputs", camel(&model.module) + "Outputs");
    let all = fields("input", model.inputs.len(), &["frames: &frames"]);
    source.list(&format!("let mut inputs = {inputs} {{"), &all, ";");
    for (o, field) in model.outputs.iter().enumerate() {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        let mut file = file_name(field.label) + ".npy";
        if number.is_some() {
            file = format!("{}/{file}", file_name(&model.cnn().cnn.name));
        }
        let row = shape.row_elements();
        let arguments = [
            format!("arguments.target({c}, {o}, {file:?})?"),
            format!("[{batch}, {}, {row}]", shape.elements() / row),
        ];
        source.list(&format!("let output_{o} = Output::open("), &arguments, "?;");
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
    if model.resumes_states() {
        source.line("model.reset();");
    }
    let all = fields("output", model.outputs.len(), &["frames: &frames", "ended: Ends::new()"]);
    source.list(&format!("let mut outputs = {outputs} {{"), &all, ";");
    let fails = "map_err(|error| error.to_string())?;";
    if is_piped(model) {
        source.line("let ran = model.pipeline(&mut inputs, &mut outputs);");
        source.line(format!("ran.{fails}"));
    } else {
        source.open("while inputs.next_frame() {");
        match model.is_streamed() {
            true => {
                source.line("let ran = model.infer_rows(&mut inputs, &mut outputs);");
                source.line(format!("ran.{fails}"));
            }
            false => source.line("model.infer_rows(&mut inputs, &mut outputs);"),
        }
        source.line("outputs.end_frame();");
        source.close("}");
    }
    for i in 0..model.inputs.len() {
        source.line(format!("inputs.input_{i}.finish()?;"));
    }
    // Several models are called by their names.
    let called = format!("{:?}", number.map(|_| one_line(&model.cnn().cnn.name)).unwrap_or_default());
    source.line(format!("arguments.tell(&outputs.ended.report({called}));"));
    if model.is_streamed() {
        source.line("arguments.tell(&format!(\"read: {} bytes\\n\", model.bytes_read()));");
    }
    for (o, field) in model.outputs.iter().enumerate() {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        let dims = model.call_dims(&field.seen.dims);
        source.line(format!("let (dims, layout) = ({dims:?}, {});", layout(shape, field.seen)));
        source.line(format!("outputs.output_{o}.finish(&dims, layout)?;"));
    }
    source.line("Ok(())");
    source.close("}");
}

/// Writes code that reads the image of an input of this shape, if its file is one.
fn write_image(source: &mut Source, field: &InputField<'_>, shape: &Shape, file: &str) {
    let dims = [shape.column_axis(), shape.row_axis()].map(|axis| axis.map_or(1, |axis| shape.dims[axis]));
    let is_bgr = field.input.camera.as_ref().is_some_and(|camera| camera.order == ColorOrder::Bgr);
    let fields = [
        format!("width: {}", dims[0]),
        format!("height: {}", dims[1]),
        format!("channels: {}", shape.channels()),
        format!("is_bgr: {is_bgr}"),
        format!("is_planar: {}", field.planar()),
    ];
    source.list("let image = Image {", &fields, ";");
    source.line(format!("let image = image.read({file})?;"));
}

/// Whether the program runs a model as a pipeline. Files that are read or written at several stages would have to be
/// divided among threads.
pub(super) fn is_piped(model: &Model<'_>) -> bool {
    let count = |has: fn(&Stage) -> bool| model.stages.iter().filter(|stage| has(stage)).count();
    count(|stage| stage.takes_inputs) == 1 && count(|stage| stage.makes_outputs) == 1
}

/// Elements of an input that are asked for at once, from a frame in the order of its file.
fn part_of_input(field: &InputField<'_>, shape: &Shape) -> usize {
    let channels = if field.planar() { shape.channels().max(1) } else { 1 };
    shape.row_elements() / channels
}

/// The inputs of a model, as files.
fn write_inputs(source: &mut Source, model: &Model<'_>, path: &str) {
    let name = camel(&model.module) + "Inputs";
    let types = model.inputs.iter().map(|field| format!("Input<{}>", field.element()));
    write_files(source, &name, "input", &types.collect::<Vec<String>>(), &[]);
    source.open(format!("impl {name}<'_> {{"));
    source.line("/// Goes on to the next frame; `false` if there is none.");
    source.open("fn next_frame(&mut self) -> bool {");
    let next: Vec<String> =
        (0..model.inputs.len()).map(|i| format!("&& self.input_{i}.next_frame()")).collect();
    let line = format!("self.frames.begin() {}", next.join(" "));
    if source.fits(&line) {
        source.line(line);
    } else {
        source.open("self.frames.begin()");
        next.iter().for_each(|part| source.line(part));
        source.dedent();
    }
    source.close("}");
    source.close("}");
    source.gap();
    source.open(format!("impl {path}InputRows for &mut {name}<'_> {{"));
    for (i, field) in model.inputs.iter().enumerate() {
        if i > 0 {
            source.gap();
        }
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        source.open(format!("{} {{", field.signature(shape)));
        source.line(match (field.by_rows, field.element(), field.planar()) {
            (false, ..) => format!("self.input_{i}.frame()"),
            (true, "f32", _) => {
                format!("row.copy_from_slice(self.input_{i}.part::<{}>(y));", shape.row_elements())
            }
            (true, _, false) => format!("self.input_{i}.part(y)"),
            (true, _, true) => format!("self.input_{i}.part(channel * {} + y)", shape.rows()),
        });
        source.close("}");
    }
    source.close("}");
    if is_piped(model) {
        source.gap();
        source.open(format!("impl {path}InputFrames for &mut {name}<'_> {{"));
        source.open("fn next_frame(&mut self) -> bool {");
        source.line(format!("{name}::next_frame(self)"));
        source.close("}");
        source.close("}");
    }
}

/// The outputs of a model, as files.
fn write_outputs(source: &mut Source, model: &Model<'_>, path: &str) {
    let name = camel(&model.module) + "Outputs";
    let element = |field: &OutputField<'_>| model.cnn().layers[field.layer].tensor.format.element;
    let types = model.outputs.iter().map(|field| format!("Output<{}>", element(field)));
    write_files(source, &name, "output", &types.collect::<Vec<String>>(), &["ended: Ends,"]);
    source.open(format!("impl {name}<'_> {{"));
    source.line("/// A frame has ended.");
    source.open("fn end_frame(&mut self) {");
    source.line("self.ended.now();");
    for o in 0..model.outputs.len() {
        source.open(format!("if !self.output_{o}.end_frame() {{"));
        source.line("self.frames.stop();");
        source.close("}");
    }
    source.close("}");
    source.close("}");
    source.gap();
    source.open(format!("impl {path}OutputRows for &mut {name}<'_> {{"));
    for (o, field) in model.outputs.iter().enumerate() {
        if o > 0 {
            source.gap();
        }
        source.open(format!("{} {{", model.output_signature(field)));
        source.line(match model.written(field.layer).is_empty() {
            true => format!("self.output_{o}.room(y)"),
            false => format!("self.output_{o}.take(y, row);"),
        });
        source.close("}");
    }
    source.close("}");
    if is_piped(model) {
        source.gap();
        source.open(format!("impl {path}OutputFrames for &mut {name}<'_> {{"));
        source.open("fn end_frame(&mut self) {");
        source.line(format!("{name}::end_frame(self);"));
        source.close("}");
        source.close("}");
    }
}

/// A structure of files of a model.
fn write_files(source: &mut Source, name: &str, field: &str, types: &[String], more: &[&str]) {
    source.line(format!("/// The {field}s as files."));
    source.open(format!("struct {name}<'f> {{"));
    for (i, kind) in types.iter().enumerate() {
        source.line(format!("{field}_{i}: {kind},"));
    }
    source.line("frames: &'f Frames,");
    more.iter().for_each(|field| source.line(field));
    source.close("}");
    source.gap();
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
