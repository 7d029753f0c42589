//! The file of one model: its inputs and outputs, its rings, its schedule, and a method for each layer. Also the files of
//! the kernels that models call.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::features::Features;
use super::model::Model;
use super::source::Source;
use super::{frame, kernels, loads, names, places, stage, state};

/// The files of the kernels that these models call.
pub(super) fn kernels_of(models: &[Model<'_>]) -> Vec<(PathBuf, Vec<u8>)> {
    let mut modules = BTreeSet::from(["arch", "kernel", "rows", "span"]);
    modules.extend(models.iter().flat_map(Model::kernel_modules));
    let features = models.iter().map(Model::features).fold(Features::default(), Features::or);
    kernels::files(&modules, features)
}

/// The text of its file.
pub(super) fn write(model: &Model<'_>) -> String {
    let mut body = Source::default();
    model.frames(&mut body);
    if model.batch() > 1 {
        model.batches(&mut body);
    }
    model.rows(&mut body);
    if !model.stages.is_empty() {
        stage::write_frames(&mut body);
    }
    if model.keeps_state() {
        state::write_size(&mut body, model);
    }
    write_model(&mut body, model);
    places::write(&mut body, model);
    if model.is_streamed() {
        loads::write_table(&mut body, model);
    }
    match model.stages.is_empty() {
        true => frame::write(&mut body, model),
        false => stage::write(&mut body, model),
    }
    let body = body.finish();
    let mut head = Source::default();
    write_head(&mut head, model, &body);
    head.finish() + &body
}

fn write_head(source: &mut Source, model: &Model<'_>, body: &str) {
    let cnn = model.cnn().cnn;
    let plan = model.resolved.index.plan;
    source.comment("//!", &format!("The model `{}`, made from `{}`.", cnn.name, cnn.model.path));
    source.line("//!");
    for &p in &model.cnn().partitions {
        let partition = model.resolved.index.partitions[p].partition;
        let firings = model.resolved.schedules[p].len();
        source.comment(
            "//!",
            &format!(
                "Partition `{}` runs on the {} and fires {firings} times a frame.",
                partition.name, partition.processor
            ),
        );
    }
    source.comment(
        "//!",
        &format!(
            "The plan counts on {:.1} frames per second, {:.3} ms each, on device `{}` ({}).",
            cnn.fps,
            cnn.latency_ns as f64 / 1e6,
            plan.device.name,
            plan.device.basis
        ),
    );
    source.gap();
    if model.outputs.iter().any(|field| model.written(field.layer).is_empty()) {
        source.line("use core::ops::Range;");
        source.gap();
    }
    source.line(match body.contains("Ring::none()") {
        true => "use crate::arena::{Arena, Memory, Ring};",
        false => "use crate::arena::{Arena, Memory};",
    });
    source.line("use crate::kernels::arch::Isa;");
    for (module, names) in [
        ("elements", &["Dims", "ElementShape", "Elements", "ElementsMut"][..]),
        ("kernel", &["Context", "ElementKernel", "RowKernel"]),
        ("rows", &["RowShape", "Rows", "RowsMut"]),
        ("share", &["share_rows"]),
        ("span", &["Span", "SpanMut"]),
    ] {
        let used = |name: &&&str| names::is_named(body, name);
        let names: Vec<&str> = names.iter().filter(used).copied().collect();
        match names.as_slice() {
            [] => {}
            [name] => source.line(format!("use crate::kernels::{module}::{name};")),
            names => source.line(format!("use crate::kernels::{module}::{{{}}};", names.join(", "))),
        }
    }
    if model.threads() > 1 {
        source.line("use crate::kernels::workers::Workers;");
    }
    if !model.stages.is_empty() {
        source.line("use crate::ring::{Closed, Reader, Writer};");
        source.line("#[cfg(feature = \"std\")]");
        source.line("use crate::ring::{Link, PipelineError, guarded, join, spawn};");
    }
    if model.is_streamed() {
        source.line("use crate::store::{Loads, Store, StoreError};");
    }
    source.line("use crate::weights::{self, WeightsError};");
    source.line(if body.contains(" kernels::") { "use crate::{isa, kernels};" } else { "use crate::isa;" });
    source.gap();
}

/// The type of what a model takes as its arena, and the memory of it.
pub(super) fn arena(model: &Model<'_>) -> (&'static str, &'static str) {
    match model.is_shared {
        false => ("&'a mut Arena", "arena.memory()"),
        true => ("impl Into<Share<'a>>", "arena.into().0"),
    }
}

fn write_model(source: &mut Source, model: &Model<'_>) {
    let (arena, memory) = arena(model);
    if model.is_shared {
        source.line("/// The model's share of an arena: all of it, or what it has beside others.");
        source.line("pub struct Share<'a>(pub(crate) Memory<'a, ring::Whole>);");
        source.gap();
        source.open("impl<'a> From<&'a mut Arena> for Share<'a> {");
        source.open("fn from(arena: &'a mut Arena) -> Self {");
        source.line("Share(arena.memory())");
        source.close("}");
        source.close("}");
        source.gap();
    }
    if model.is_stream() && model.takes_turns() {
        source.line("/// Where a stream is between two hops. The rows that it keeps are in the arena.");
        source.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]");
        source.line("pub struct Position(usize);");
        source.gap();
    }
    let streamed = model.is_streamed();
    // The additional documentation of the store of a streamed model.
    let stores = model.stores_of("S");
    let of_store = format!(", store: {stores}");
    let [bound, parameter, store, stored] = match streamed {
        true => [", S: Store", ", S", of_store.as_str(), ", store"],
        false => [""; 4],
    };
    source.line("/// The model, in an arena that is its own for as long as it lives.");
    source.open(format!("pub struct Model<'a{bound}> {{"));
    source.line("memory: Memory<'a, ring::Whole>,");
    if !model.stages.is_empty() && !stage::some_needs(model, "weights") {
        source.line("#[expect(dead_code, reason = \"the stages have no weights that stay in memory\")]");
    }
    source.line("weights: &'a [u8],");
    source.line("isa: Isa,");
    let (workers, threads) = (model.stages.len(), model.threads());
    match workers {
        _ if threads == 1 => {}
        0 => source.line("workers: Workers,"),
        stages => source.line(format!("workers: [Workers; {stages}],")),
    }
    if model.is_stream() {
        source.line("// Hops so far, counted anew from time to time.");
        source.line("hop: usize,");
    }
    if streamed {
        let several = model.streamed_stages();
        if several.len() > 1 {
            let names: Vec<String> = several.iter().map(|stage| format!("`{}`", stage.label)).collect();
            source.comment("//", &format!("Of the stages {}: each reads for itself.", names.join(", ")));
        }
        source.line(format!("store: {stores},"));
        source.line("// Bytes read from it.");
        source.line(format!("read: {},", model.stores_of("u64")));
    }
    source.close("}");
    source.gap();
    source.open(format!("impl<'a{bound}> Model<'a{parameter}> {{"));
    source.line("/// The model with the weights that are embedded in the crate.");
    if model.resumes_states() {
        source.line("///");
        source.line(
            "/// Its state is what its last turn in this arena left: call [`Model::reset`] before the first.",
        );
    }
    source.line("#[cfg(feature = \"weights\")]");
    source.open(format!("pub fn new(arena: {arena}{store}) -> Self {{"));
    source.line(format!("Model::on({memory}, weights::embedded(){stored})"));
    source.close("}");
    source.gap();
    source.line("/// The model with weights that lie somewhere else, in flash or a mapped file, say.");
    source.line("///");
    source.line("/// # Errors");
    source.line("/// When they are not the content of `weights.bin`.");
    let mut parameters = vec![format!("arena: {arena}"), "weights: &'a [u8]".into()];
    parameters.extend(streamed.then(|| format!("store: {stores}")));
    source.head("pub fn with_weights(", &parameters, " -> Result<Self, WeightsError> {");
    source.line(format!("Ok(Model::on({memory}, weights::verify(weights)?{stored}))"));
    source.close("}");
    source.gap();
    source.open(format!(
        "pub(crate) fn on(memory: Memory<'a, ring::Whole>, weights: &'a [u8]{store}) -> Self {{"
    ));
    if threads > 1 && workers > 0 {
        source.line(format!("let workers = core::array::from_fn(|_| Workers::new({threads}));"));
    }
    let mut fields: Vec<String> = ["memory", "weights", "isa: isa()"].map(str::to_owned).into();
    fields.extend(match workers {
        _ if threads == 1 => None,
        0 => Some(format!("workers: Workers::new({threads})")),
        _ => Some("workers".into()),
    });
    fields.extend(model.is_stream().then(|| "hop: 0".to_owned()));
    if streamed {
        fields.extend(["store".into(), format!("read: {}", model.stores_of("0"))]);
    }
    match model.states().is_empty() || model.resumes_states() {
        true => source.list("Model {", &fields, ""),
        false => {
            source.list("let mut model = Model {", &fields, ";");
            source.line("model.reset();");
            source.line("model");
        }
    }
    source.close("}");
    source.gap();
    if model.keeps_state() {
        state::write_methods(source, model);
    }
    if model.is_stream() {
        if model.takes_turns() {
            source.line("/// Where the stream is. Then other models may take the arena.");
            source.open("pub fn position(&self) -> Position {");
            source.line("Position(self.hop)");
            source.close("}");
            source.gap();
            source.line("/// Goes on where the stream was. Meanwhile, only models of this crate may have used the arena.");
            source.open("pub fn resume(&mut self, position: Position) {");
            source.line("self.hop = position.0;");
            source.close("}");
            source.gap();
        }
        source.line("/// Runs one hop: takes the next rows of the inputs, and makes those of the outputs that follow from them.");
        for output in &model.outputs {
            let entry = &model.cnn().layers[output.layer];
            let delay = entry.tensor.stream.map_or(0, |stream| stream.delay);
            if delay > 0 {
                source.line("///");
                let text = format!(
                    "`{}` lags {delay} rows behind. So the first {delay} rows of the first hops do not exist, and are not \
                     written.",
                    output.label
                );
                source.comment("///", &text);
            }
        }
    } else {
        source.line("/// Runs one frame.");
    }
    let parameters = ["&mut self", "inputs: Inputs<'_>", "outputs: Outputs<'_>"];
    frame::open_fallible(source, model, "pub fn infer(", &parameters);
    source.line(if streamed {
        "self.infer_rows(inputs, outputs)"
    } else {
        "self.infer_rows(inputs, outputs);"
    });
    source.close("}");
    source.gap();
    if model.batch() > 1 {
        write_infer_batch(source, model);
    }
    if streamed {
        source.line("/// Bytes of weights that all frames so far have read from the store.");
        source.open("pub fn bytes_read(&self) -> u64 {");
        source.line(if model.streamed_stages().len() > 1 { "self.read.iter().sum()" } else { "self.read" });
        source.close("}");
        source.gap();
    }
    match model.stages.is_empty() {
        true => frame::write_infer(source, model),
        false => stage::write_infer(source, model),
    }
    source.close("}");
    source.gap();
}

/// Writes the method that runs the frames of a call.
fn write_infer_batch(source: &mut Source, model: &Model<'_>) {
    source.line("/// Runs the frames of a call, one after another.");
    let parameters = ["&mut self", "inputs: BatchInputs<'_>", "outputs: BatchOutputs<'_>"];
    frame::open_fallible(source, model, "pub fn infer_batch(", &parameters);
    source.open("for frame in 0..BATCH {");
    let inputs = model.inputs.iter().map(|field| format!("{0}: &inputs.{0}[frame]", field.name));
    let outputs = model.outputs.iter().map(|field| format!("{0}: &mut outputs.{0}[frame]", field.name));
    source.list("let inputs = Inputs {", &inputs.collect::<Vec<String>>(), ";");
    source.list("let outputs = Outputs {", &outputs.collect::<Vec<String>>(), ";");
    source.line(format!("self.infer(inputs, outputs){};", if model.is_streamed() { "?" } else { "" }));
    source.close("}");
    if model.is_streamed() {
        source.line("Ok(())");
    }
    source.close("}");
    source.gap();
}
