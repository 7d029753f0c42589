//! A model as a pipeline: each partition is a stage with a structure of its own, run in turns or on threads.
//!
//! Each stage has a table of the rings that it may reach. The arena is split among the stages once their tables have
//! been checked to be disjoint (`template/arena.rs`). Only a ring between two stages is in the tables of both. Two
//! counts that run on over frames say who may touch which of its rows: rows written, and rows released
//! (`template/ring.rs`). A slice of the whole ring would cover rows of the other stage. So kernels get storage as a
//! `Span`, a start and a length, and make slices of single rows.

use std::collections::BTreeMap;

use csdfc_plan::check::RowOrder;

use super::interleaving::{loops, turns};
use super::model::Model;
use super::pipeline::Stage;
use super::source::Source;
use super::{frame, layer, loads, schedule};

/// The call of a layer's method on the stage in this variable.
fn call(model: &Model<'_>, stage: &str, l: usize) -> String {
    let arguments = arguments(model.takes_inputs(l), model.is_output(l) && !model.is_idle(l));
    let end = if layer::can_fail(model, l) { "?" } else { "" };
    format!("{stage}.{}({arguments}){end}", model.methods[l])
}

fn arguments(inputs: bool, outputs: bool) -> &'static str {
    match (inputs, outputs) {
        (false, false) => "",
        (true, false) => "inputs",
        (false, true) => "outputs",
        (true, true) => "inputs, outputs",
    }
}

/// Writes the traits with which a pipeline goes from frame to frame.
pub(super) fn write_frames(source: &mut Source) {
    source.line("/// Hands over inputs frame by frame, to a pipeline.");
    source.line("#[cfg(feature = \"std\")]");
    source.open("pub trait InputFrames: InputRows {");
    source.line("/// Goes on to the next frame; `false` if there is none.");
    source.line("fn next_frame(&mut self) -> bool;");
    source.close("}");
    source.gap();
    source.line("/// Takes outputs frame by frame, from a pipeline.");
    source.line("#[cfg(feature = \"std\")]");
    source.open("pub trait OutputFrames: OutputRows {");
    source.line(
        "/// A frame has ended: all its rows were handed over. Frames end in the order in which they began.",
    );
    source.line("fn end_frame(&mut self);");
    source.close("}");
    source.gap();
}

/// Writes `infer_rows` and `pipeline`.
pub(super) fn write_infer(source: &mut Source, model: &Model<'_>) {
    source.comment(
        "///",
        "Runs one frame whose rows are handed over and taken one by one. The stages take turns; `pipeline` runs \
         them at the same time.",
    );
    frame::open_fallible(
        source,
        model,
        "pub fn infer_rows(",
        &["&mut self", "mut inputs: impl InputRows", "mut outputs: impl OutputRows"],
    );
    source.line("let mut parts = self.memory.divide::<ring::Stages>();");
    write_workers(source, model);
    write_stores(source, model);
    for (place, stage) in model.stages.iter().enumerate() {
        write_new(source, model, place, "let mut", &|_| "None".into(), &stage.name);
    }
    source.line("// Whoever is alone waits for nobody.");
    let stages: Vec<String> = model.stages.iter().map(|stage| format!("&mut {}", stage.name)).collect();
    let stages = [stages, vec!["&mut inputs".into(), "&mut outputs".into()]].concat();
    source.list("let _ = turns(", &stages, ";");
    if let [first, others @ ..] = model.streamed_stages().as_slice() {
        let others: String =
            others.iter().map(|stage| format!(".or({}.loads.failed())", stage.name)).collect();
        source.line(format!("{}.loads.failed(){others}.map_or(Ok(()), Err)", first.name));
    }
    source.close("}");
    source.gap();
    write_pipeline(source, model);
}

/// The workers of a stage.
fn workers(stage: &Stage) -> String {
    format!("{}_workers", stage.name)
}

/// Divides the model's workers among its stages.
fn write_workers(source: &mut Source, model: &Model<'_>) {
    if model.threads() == 1 {
        return;
    }
    let is_needed = |place: usize| needs(model, place).any(|(name, _)| name == "workers");
    let names = model.stages.iter().enumerate().map(|(place, stage)| match is_needed(place) {
        true => workers(stage),
        false => "_".into(),
    });
    source.list("let [", &names.collect::<Vec<String>>(), " = &mut self.workers;");
}

/// Deals the model's stores out to its stages, where several read.
fn write_stores(source: &mut Source, model: &Model<'_>) {
    let stages = model.streamed_stages();
    if stages.len() > 1 {
        for field in ["store", "read"] {
            let names = stages.iter().map(|stage| format!("{}_{field}", stage.name));
            let all = format!(" = &mut self.{field};");
            source.list("let [", &names.collect::<Vec<String>>(), &all);
        }
    }
}

/// Writes code that makes a stage. `end` gives its ends of links.
fn write_new(
    source: &mut Source,
    model: &Model<'_>,
    place: usize,
    binding: &str,
    link: &dyn Fn(usize) -> String,
    variable: &str,
) {
    let stage = &model.stages[place];
    let mut fields = vec!["memory: parts.take()".to_owned()];
    fields.extend(needs(model, place).map(|(name, _)| match name {
        "workers" => format!("{name}: {}", workers(stage)),
        "loads" if model.streamed_stages().len() > 1 => {
            format!("loads: Loads::new({0}_store, {0}_read, self.isa)", stage.name)
        }
        "loads" => "loads: Loads::new(&mut self.store, &mut self.read, self.isa)".into(),
        name => format!("{name}: self.{name}"),
    }));
    if model.period() > 1 {
        fields.push("frame: 0".into());
    }
    for (number, ends) in model.links.iter().enumerate() {
        let allocation = &model.allocations()[ends.allocation];
        let rows = model.cnn().layers[allocation.tensor].rows();
        if ends.from == place {
            let capacity = if allocation.kind == RowOrder::Halves { rows } else { allocation.ring_rows };
            fields.push(format!("{}: Writer::new({}, {rows}, {capacity})", ends.writer, link(number)));
        }
        if ends.to == place {
            fields.push(format!("{}: Reader::new({}, {rows})", ends.reader, link(number)));
        }
    }
    fields.extend(counted(model, place).map(|layer| format!("{}: 0", model.methods[layer])));
    source.list(&format!("{binding} {variable} = {} {{", stage.kind), &fields, ";");
}

fn write_pipeline(source: &mut Source, model: &Model<'_>) {
    let stages = &model.stages;
    let (takers, makers) = (
        stages.iter().filter(|stage| stage.takes_inputs).count(),
        stages.iter().filter(|stage| stage.makes_outputs).count(),
    );
    let name = |stage: &Stage, what: &str, several: bool| {
        if several { format!("{}_{what}", stage.name) } else { what.to_owned() }
    };
    source.comment(
        "///",
        "Runs frames until there are no more, each stage on a thread of its own, the first on this one. Frames stay in \
         order, and none is left in the rings at the end. Returns the number of frames. Nothing is allocated once \
         the stages run.",
    );
    if takers > 1 || makers > 1 {
        source.line("///");
        source.comment(
            "///",
            "If several stages take inputs, each gets inputs of its own, and likewise outputs: a stage uses only \
             its own fields. The pipeline ends when one of the inputs has no more frames.",
        );
    }
    let other: Vec<String> = stages
        .iter()
        .filter_map(|stage| {
            let processor = &model.resolved.index.partitions[stage.partition].partition.processor;
            (processor != "cpu").then(|| format!("`{}` for the {processor}", stage.label))
        })
        .collect();
    if !other.is_empty() {
        source.line("///");
        source.comment(
            "///",
            &format!("The plan has stage {}: here it is one more thread of the CPU.", other.join(", ")),
        );
    }
    source.line("///");
    source.line("/// # Errors");
    source.line("/// When a stage panics, which ends the others, or gets no thread.");
    source.line("#[cfg(feature = \"std\")]");
    let mut parameters = vec!["&mut self".to_owned()];
    for stage in stages {
        if stage.takes_inputs {
            parameters.push(format!("mut {}: impl InputFrames + Send", name(stage, "inputs", takers > 1)));
        }
        if stage.makes_outputs {
            parameters.push(format!("mut {}: impl OutputFrames + Send", name(stage, "outputs", makers > 1)));
        }
    }
    source.head("pub fn pipeline(", &parameters, " -> Result<usize, PipelineError> {");
    source.line(format!(
        "let links: [Link; {}] = core::array::from_fn(|_| Link::default());",
        model.links.len()
    ));
    source.line("let mut parts = self.memory.divide::<ring::Stages>();");
    write_workers(source, model);
    write_stores(source, model);
    for (place, stage) in stages.iter().enumerate() {
        write_new(source, model, place, "let mut", &|number| format!("Some(&links[{number}])"), &stage.name);
    }
    source.open("std::thread::scope(|scope| {");
    // The first stage runs on this thread, so the others must be started before.
    for (place, stage) in stages.iter().enumerate().skip(1).chain(stages.iter().enumerate().take(1)) {
        let (variable, label) = (&stage.name, format!("{:?}", stage.label));
        source.open(match place {
            0 => format!("let {variable} = guarded({label}, move || {{"),
            _ => format!("let {variable} = spawn(scope, {label}, move || {{"),
        });
        let mut run = Vec::new();
        let inputs = name(stage, "inputs", takers > 1);
        let outputs = name(stage, "outputs", makers > 1);
        run.extend(stage.takes_inputs.then(|| format!("&mut {inputs}")));
        run.extend(stage.makes_outputs.then(|| format!("&mut {outputs}")));
        let next = if stage.takes_inputs { format!("{inputs}.next_frame() && ") } else { String::new() };
        source.line("let mut frames = 0;");
        source.open(format!("while {next}{variable}.run({}).is_ok() {{", run.join(", ")));
        if stage.makes_outputs {
            source.line(format!("{outputs}.end_frame();"));
        }
        source.line("frames += 1;");
        source.close("}");
        source.line(match model.is_streamed_stage(stage) {
            true => format!("{variable}.loads.failed().map_or(Ok(frames), |error| Err(error.into()))"),
            false => "Ok(frames)".into(),
        });
        source.close("});");
    }
    let ended = stages.iter().enumerate().map(|(place, stage)| match place {
        0 => stage.name.clone(),
        _ => format!("join({})", stage.name),
    });
    source.list("let ended = [", &ended.collect::<Vec<String>>(), ";");
    source.line("ended.into_iter().try_fold(usize::MAX, |least, frames| Ok(least.min(frames?)))");
    source.close("})");
    source.close("}");
}

/// Writes the stages, and how they take turns.
pub(super) fn write(source: &mut Source, model: &Model<'_>) {
    for place in 0..model.stages.len() {
        write_stage(source, model, place);
        source.gap();
    }
    let parameters: Vec<String> = model
        .stages
        .iter()
        .map(|stage| {
            let store = if model.is_streamed_stage(stage) { ", S" } else { "" };
            format!("{}: &mut {}<'_{store}>", stage.name, stage.kind)
        })
        .chain(["inputs: &mut impl InputRows".to_owned(), "outputs: &mut impl OutputRows".to_owned()])
        .collect();
    source.line("/// One frame, the stages in turn.");
    let bound = if model.is_streamed() { "<S: Store>" } else { "" };
    source.head(&format!("fn turns{bound}("), &parameters, " -> Result<(), Closed> {");
    let group: Vec<usize> = model.stages.iter().map(|stage| stage.partition).collect();
    let order = turns(model.resolved, model.c, &group);
    let in_a_row: Vec<u32> = group.iter().flat_map(|&p| model.resolved.schedules[p].clone()).collect();
    if order == in_a_row {
        for stage in &model.stages {
            let arguments = arguments(stage.takes_inputs, stage.makes_outputs);
            source.line(format!("{}.run({arguments})?;", stage.name));
        }
    } else {
        let layers = &model.cnn().layers;
        let variable = |l: usize| {
            let of = |stage: &&Stage| stage.partition == layers[l].partition;
            model.stages.iter().find(of).map(|stage| stage.name.as_str()).unwrap_or_default()
        };
        let calls: BTreeMap<&str, String> =
            (0..layers.len()).map(|l| (layers[l].layer.name.as_str(), call(model, variable(l), l))).collect();
        let steps = loops(&order, &|layer| layers[layer as usize].layer.name.clone());
        for stage in model.streamed_stages() {
            source.line(format!("{}.start_loads();", stage.name));
        }
        schedule::write(source, &steps, &calls);
    }
    source.line("Ok(())");
    source.close("}");
}

fn write_stage(source: &mut Source, model: &Model<'_>, place: usize) {
    let stage = &model.stages[place];
    let partition = model.resolved.index.partitions[stage.partition].partition;
    source.comment("///", &format!("Stage `{}`.", stage.label));
    source.line("#[allow(dead_code, reason = \"not every stage has layers that need all of it\")]");
    let streamed = model.is_streamed_stage(stage);
    let [bound, store] = if streamed { [", S: Store", ", S"] } else { ["", ""] };
    source.open(format!("struct {}<'m{bound}> {{", stage.kind));
    source.line(format!("memory: Memory<'m, ring::{}::Stage>,", stage.name));
    for (name, kind) in needs(model, place) {
        source.line(format!("{name}: {kind},"));
    }
    if model.period() > 1 {
        source.comment(
            "//",
            &format!("Frames so far, modulo the {} after which rings start over.", model.period()),
        );
        source.line("frame: usize,");
    }
    source.line("// Ends of the rings to other stages.");
    for link in &model.links {
        if link.from == place {
            source.line(format!("{}: Writer<'m>,", link.writer));
        }
        if link.to == place {
            source.line(format!("{}: Reader<'m, {}>,", link.reader, link.readers.len()));
        }
    }
    let counted: Vec<usize> = counted(model, place).collect();
    if !counted.is_empty() {
        source.line("// Rows made so far of each layer that fires several times.");
    }
    for &layer in &counted {
        source.line(format!("{}: usize,", model.methods[layer]));
    }
    source.close("}");
    source.gap();
    source.open(match streamed {
        true => format!("impl<S: Store> {}<'_{store}> {{", stage.kind),
        false => format!("impl {}<'_> {{", stage.kind),
    });
    if streamed {
        source.line("/// Starts the loads that need not wait for a firing.");
        source.open("fn start_loads(&mut self) {");
        loads::write_at_start(source, model, &[stage.partition]);
        source.close("}");
        source.gap();
    }
    source.line("/// One frame.");
    let parameters = layer::parameters(stage.takes_inputs, stage.makes_outputs);
    source.open(format!("fn run({parameters}) -> Result<(), Closed> {{"));
    for &layer in &counted {
        source.line(format!("self.{} = 0;", model.methods[layer]));
    }
    if streamed {
        source.line("self.start_loads();");
    }
    let calls: BTreeMap<&str, String> = (0..model.methods.len())
        .map(|l| (model.cnn().layers[l].layer.name.as_str(), call(model, "self", l)))
        .collect();
    schedule::write(source, &partition.schedule, &calls);
    for link in &model.links {
        if link.from == place {
            source.line(format!("self.{}.end_frame();", link.writer));
        }
        if link.to == place {
            source.line(format!("self.{}.end_frame();", link.reader));
        }
    }
    if streamed {
        source.line("self.loads.end_frame();");
    }
    if model.period() > 1 {
        source.line(format!("self.frame = (self.frame + 1) % {};", model.period()));
    }
    source.line("Ok(())");
    source.close("}");
    for layer in 0..model.methods.len() {
        if model.cnn().layers[layer].partition == stage.partition {
            source.gap();
            layer::write(source, model, layer);
        }
    }
    source.close("}");
}

/// Whether the layers of some stage need this field of the model.
pub(super) fn some_needs(model: &Model<'_>, field: &str) -> bool {
    (0..model.stages.len()).any(|place| needs(model, place).any(|(name, _)| name == field))
}

/// The fields of a model that the layers of a stage need too: names and types.
fn needs(model: &Model<'_>, place: usize) -> impl Iterator<Item = (&'static str, &'static str)> {
    let mut text = Source::default();
    let partition = model.stages[place].partition;
    let layers = (0..model.methods.len()).filter(|&l| model.cnn().layers[l].partition == partition);
    layers.for_each(|l| layer::write(&mut text, model, l));
    let text = text.finish();
    let fields =
        [("weights", "&'m [u8]"), ("isa", "Isa"), ("workers", "&'m mut Workers"), ("loads", "Loads<'m, S>")];
    fields.into_iter().filter(move |(name, _)| text.contains(&format!("self.{name}")))
}

/// Layers of a stage that fire several times a frame, and so count their rows.
fn counted<'m>(model: &'m Model<'_>, place: usize) -> impl Iterator<Item = usize> + 'm {
    let partition = model.stages[place].partition;
    let layers = &model.cnn().layers;
    (0..layers.len()).filter(move |&l| layers[l].partition == partition && layers[l].layer.firings > 1)
}
