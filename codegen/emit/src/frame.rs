//! A model whose partitions run one after another: one structure is a frame in the making.

use std::collections::BTreeMap;

use csdfc_runtime::stream::Hops;

use super::interleaving::{loops, turns};
use super::model::Model;
use super::source::Source;
use super::{layer, loads, schedule};

/// Writes `infer_rows`.
pub(super) fn write_infer(source: &mut Source, model: &Model<'_>) {
    let frame = if model.is_stream() { "hop" } else { "frame" };
    source.line(format!("/// Runs one {frame} whose rows are handed over and taken one by one."));
    open_fallible(
        source,
        model,
        "pub fn infer_rows(",
        &["&mut self", "inputs: impl InputRows", "outputs: impl OutputRows"],
    );
    let mut fields: Vec<String> =
        ["memory: self.memory.reborrow()", "weights: self.weights", "isa: self.isa"]
            .map(str::to_owned)
            .into();
    fields.extend((model.threads() > 1).then(|| "workers: &mut self.workers".to_owned()));
    fields.extend(model.is_stream().then(|| "hop: self.hop".to_owned()));
    let loads = "loads: Loads::new(&mut self.store, &mut self.read, self.isa)";
    fields.extend(model.is_streamed().then(|| loads.to_owned()));
    fields.extend(["inputs", "outputs"].map(str::to_owned));
    fields.extend(counted(model).map(|layer| format!("{}: 0", model.methods[layer])));
    source.list("let mut frame = Frame {", &fields, ";");
    for group in &model.cnn().groups {
        source.line(format!(
            "frame.{}(){};",
            group_method(model, group),
            if model.is_streamed() { "?" } else { "" }
        ));
    }
    if !model.states().is_empty() {
        source.line("// What the states are in the next frame.");
    }
    for (state, _) in model.states() {
        let [from, to] = state.map(|ring| &model.rings[ring]);
        source.line(format!("self.memory.copy(ring::{from}, ring::{to});"));
    }
    if model.is_stream() {
        let Hops { first_full, period } = model.hops;
        source.line("// Hops are alike again when all rings are at their first slots.");
        source.line(format!(
            "self.hop = if self.hop == {} {{ {first_full} }} else {{ self.hop + 1 }};",
            first_full + period - 1
        ));
    }
    if model.is_streamed() {
        source.line("Ok(())");
    }
    source.close("}");
}

/// Opens a method that runs a frame and fails if its weights cannot be read. The method is documented already.
pub(super) fn open_fallible(source: &mut Source, model: &Model<'_>, head: &str, parameters: &[&str]) {
    if model.is_streamed() {
        source.line("///");
        source.line("/// # Errors");
        source.line("/// When weights cannot be read from the store. The outputs are of no use then.");
    }
    let parameters: Vec<String> = parameters.iter().map(|parameter| (*parameter).to_owned()).collect();
    source.head(head, &parameters, &format!(" {}{{", result(model)));
}

/// The result type of a frame, before a brace.
fn result(model: &Model<'_>) -> &'static str {
    if model.is_streamed() { "-> Result<(), StoreError> " } else { "" }
}

/// Writes the frame in the making: its schedule and its layers.
pub(super) fn write(source: &mut Source, model: &Model<'_>) {
    source.line("/// A frame in the making.");
    source.line("#[allow(dead_code, reason = \"not every model has layers that need all of it\")]");
    let [store, bound] = if model.is_streamed() { ["S, ", "S: Store, "] } else { ["", ""] };
    source.open(format!("struct Frame<'m, {bound}I, O> {{"));
    source.line("memory: Memory<'m, ring::Whole>,");
    source.line("weights: &'m [u8],");
    source.line("isa: Isa,");
    if model.threads() > 1 {
        source.line("workers: &'m mut Workers,");
    }
    if model.is_stream() {
        source.line("hop: usize,");
    }
    if model.is_streamed() {
        source.line("loads: Loads<'m, S>,");
    }
    source.line("inputs: I,");
    source.line("outputs: O,");
    let counted: Vec<usize> = counted(model).collect();
    if !counted.is_empty() {
        source.line("// Rows made so far of each layer that fires several times.");
    }
    for layer in counted {
        source.line(format!("{}: usize,", model.methods[layer]));
    }
    source.close("}");
    source.gap();
    source.open(format!("impl<{bound}I: InputRows, O: OutputRows> Frame<'_, {store}I, O> {{"));
    let calls: BTreeMap<&str, String> = model
        .cnn()
        .layers
        .iter()
        .zip(&model.methods)
        .enumerate()
        .map(|(l, (entry, method))| {
            let end = if layer::can_fail(model, l) { "?" } else { "" };
            (entry.layer.name.as_str(), format!("self.{method}(){end}"))
        })
        .collect();
    for (i, group) in model.cnn().groups.iter().enumerate() {
        if i > 0 {
            source.gap();
        }
        let partition = |p: usize| model.resolved.index.partitions[p].partition;
        let names: Vec<String> = group.iter().map(|&p| format!("`{}`", partition(p).name)).collect();
        let several = if group.len() > 1 { "partitions" } else { "partition" };
        source.comment("///", &format!("One frame of {several} {}.", names.join(", ")));
        source.open(format!("fn {}(&mut self) {}{{", group_method(model, group), result(model)));
        loads::write_at_start(source, model, group);
        match group.as_slice() {
            [p] => schedule::write(source, &partition(*p).schedule, &calls),
            group => {
                let name = |layer: u32| model.cnn().layers[layer as usize].layer.name.clone();
                let steps = loops(&turns(model.resolved, model.c, group), &name);
                schedule::write(source, &steps, &calls);
            }
        }
        if model.is_streamed() {
            source.line("Ok(())");
        }
        source.close("}");
    }
    for layer in 0..model.methods.len() {
        source.gap();
        layer::write(source, model, layer);
    }
    source.close("}");
}

/// Layers that fire several times a frame, and so count their rows.
fn counted<'m>(model: &'m Model<'_>) -> impl Iterator<Item = usize> + 'm {
    (0..model.methods.len()).filter(|&layer| model.cnn().layers[layer].layer.firings > 1)
}

/// The name of the method that runs partitions. A partition that is alone may be called after the model's file, whose name
/// must not change the hash of the plan.
fn group_method(model: &Model<'_>, group: &[usize]) -> String {
    if let [_] = model.cnn().partitions[..] {
        return "run".into();
    }
    let name = |p: &usize| super::names::snake(&model.resolved.index.partitions[*p].partition.name);
    format!("run_{}", group.iter().map(name).collect::<Vec<String>>().join("_"))
}
