//! The file of one model: its inputs and outputs, its rings, its schedule, and a method for each layer.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::bind::{self, Call};
use crate::check::{CnnIndex, Kind, Resolved, Store};
use crate::operator::{Input, InputElement, Operator};
use crate::plan::Layer;
use crate::run::Parameters;
use crate::shape::Shape;
use crate::weights;

use super::names::Names;
use super::source::Source;
use super::stage::{self, Link, Stage};
use super::{EmitError, frame, places};

/// A model as it is emitted.
pub(super) struct Model<'r> {
    pub resolved: &'r Resolved<'r>,
    /// Index of its CNN.
    pub c: usize,
    /// Name of its module.
    pub module: String,
    /// Of each layer, the name of its method.
    pub methods: Vec<String>,
    /// Of each store, the name of its ring's constant.
    pub rings: Vec<String>,
    /// Of each layer, what computes it; `None` for network inputs, and for layers that nothing reads.
    pub calls: Vec<Option<Call>>,
    /// Of each layer, its parameters among the weights, in elements.
    pub weights: Vec<Range<usize>>,
    /// Network inputs.
    pub inputs: Vec<InputField<'r>>,
    /// Network outputs.
    pub outputs: Vec<OutputField<'r>>,
    /// The stages of a pipeline; none where partitions run one after another.
    pub stages: Vec<Stage>,
    /// The rings between them.
    pub links: Vec<Link>,
    /// Whether it may run at the same time as other models.
    pub is_shared: bool,
}

/// A network input.
pub(super) struct InputField<'r> {
    pub name: String,
    /// Its layer.
    pub layer: usize,
    pub input: &'r Input,
    /// Whether it is handed over row by row; else the caller holds the frame, which layers read in place.
    pub by_rows: bool,
}

/// A network output.
pub(super) struct OutputField<'r> {
    pub name: String,
    /// Its name in the model.
    pub label: &'r str,
    /// The layer that makes it.
    pub layer: usize,
    /// The shape in which the model states it.
    pub seen: &'r Shape,
}

impl<'r> Model<'r> {
    /// The CNN.
    pub fn cnn(&self) -> &'r CnnIndex<'r> {
        &self.resolved.index.cnns[self.c]
    }

    /// Workers that share a firing.
    pub fn threads(&self) -> usize {
        self.resolved.index.plan.threads
    }

    /// Where its rows lie.
    pub fn stores(&self) -> &'r [Store] {
        &self.resolved.stores[self.c]
    }

    /// Number of the stores that a layer writes, the first by its kernel.
    pub fn written(&self, layer: usize) -> Vec<usize> {
        bind::written_by(self.stores(), layer)
    }

    /// The store from which a layer reads a tensor; none for the caller's copy.
    pub fn read(&self, layer: usize, tensor: usize) -> Option<usize> {
        bind::read_from(self.stores(), layer, tensor)
    }

    /// Frames after which rings that run on over frames begin as they did at first.
    pub fn period(&self) -> u64 {
        let period = |store: &Store| match store.kind {
            Kind::Restarts => 1,
            Kind::Halves => 2,
            Kind::RunsOn => {
                let rows = self.cnn().layers[store.tensor].rows();
                store.ring_rows / gcd(store.ring_rows, rows)
            }
        };
        self.stores().iter().map(period).fold(1, |all, one| all / gcd(all, one) * one)
    }

    /// Names a CNN's parts, binds its layers to kernels and packs their weights.
    ///
    /// # Errors
    /// When a layer cannot be computed or parameters cannot be had.
    pub fn bind(
        resolved: &'r Resolved<'r>,
        c: usize,
        module: String,
        parameters: &Parameters<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Self, EmitError> {
        let mut model = Model::named(resolved, c, module)?;
        for l in 0..model.methods.len() {
            let fail = |why: String| EmitError::layer(resolved, c, l, why);
            // The caller's room is for the rows of one firing at a time.
            let room = model.cnn().layers[l].layer.rows_per_firing;
            let call = bind::bind_layer(model.cnn(), model.stores(), l, room).map_err(fail)?;
            let values = |parameter: usize| parameters(c, l, parameter);
            let packed = call.as_ref().map_or(Ok(0..0), |call| append(call, &values, bytes));
            model.weights.push(packed.map_err(fail)?);
            model.calls.push(call);
        }
        let words = ["memory", "weights", "isa", "workers", "frame", "run"];
        let fields = words.into_iter().chain(model.methods.iter().map(String::as_str));
        let fields = Names::except(&fields.collect::<Vec<&str>>());
        (model.stages, model.links) = stage::find(&model, fields);
        Ok(model)
    }

    /// Whether there is nothing to do for a layer: an input that is read in place, or a tensor that nothing reads.
    pub fn is_idle(&self, layer: usize) -> bool {
        self.calls[layer].is_none() && self.written(layer).is_empty() && !self.is_output(layer)
    }

    /// Whether a layer makes a network output.
    pub fn is_output(&self, layer: usize) -> bool {
        self.outputs.iter().any(|output| output.layer == layer)
    }

    /// The modules of the kernels that it calls.
    pub fn kernel_modules(&self) -> impl Iterator<Item = &'static str> {
        self.calls.iter().flatten().flat_map(super::call::modules)
    }

    fn named(resolved: &'r Resolved<'r>, c: usize, module: String) -> Result<Self, EmitError> {
        let cnn = &resolved.index.cnns[c];
        let stores = &resolved.stores[c];
        let mut names =
            Names::except(&["memory", "weights", "isa", "workers", "frame", "inputs", "outputs", "run"]);
        let methods: Vec<String> = cnn.layers.iter().map(|entry| names.give(&entry.layer.name)).collect();
        let mut names = Names::default();
        let rings = stores.iter().map(|store| {
            let tensor = &methods[store.tensor];
            let of_edge = stores.iter().filter(|other| other.tensor == store.tensor).count() > 1;
            let name = match store.readers.first() {
                Some(&reader) if of_edge => format!("{tensor}_to_{}", methods[reader]),
                _ => tensor.clone(),
            };
            names.give(&name).to_uppercase()
        });
        let rings = rings.collect();
        let find = |name: &String| cnn.layers.iter().position(|entry| entry.layer.name == *name);
        let mut names = Names::except(&["next_frame", "end_frame"]);
        let inputs = cnn.cnn.inputs.iter().filter_map(find).filter_map(|layer| {
            match &cnn.layers[layer].layer.operator {
                Operator::Input(input) => Some(InputField {
                    name: names.give(&cnn.layers[layer].layer.name),
                    layer,
                    input,
                    by_rows: stores.iter().any(|store| store.tensor == layer),
                }),
                _ => None,
            }
        });
        let inputs: Vec<InputField<'_>> = inputs.collect();
        for field in &inputs {
            if field.input.element == InputElement::U8 && !field.by_rows {
                let why = "bytes of an input can only be converted into a ring of the arena, and this plan has none";
                return Err(EmitError::layer(resolved, c, field.layer, why));
            }
        }
        let outputs = cnn.cnn.outputs.iter().filter_map(|output| {
            let layer = cnn.layers.iter().position(|entry| entry.tensor.name == output.tensor)?;
            let seen = output.view.as_ref().unwrap_or(&cnn.layers[layer].tensor.shape);
            Some(OutputField { name: names.give(&output.name), label: &output.name, layer, seen })
        });
        let outputs = outputs.collect();
        let (calls, weights) = (Vec::new(), Vec::new());
        let is_shared = together(resolved).iter().any(|cnns| cnns.contains(&c));
        let (stages, links) = (Vec::new(), Vec::new());
        Ok(Model {
            resolved,
            c,
            module,
            methods,
            rings,
            calls,
            weights,
            inputs,
            outputs,
            stages,
            links,
            is_shared,
        })
    }

    /// The text of its file.
    pub fn write(&self) -> String {
        let mut body = Source::default();
        self.frames(&mut body);
        self.rows(&mut body);
        if !self.stages.is_empty() {
            stage::write_frames(&mut body);
        }
        self.model(&mut body);
        places::write(&mut body, self);
        match self.stages.is_empty() {
            true => frame::write(&mut body, self),
            false => stage::write(&mut body, self),
        }
        let body = body.finish();
        let mut head = Source::default();
        self.head(&mut head, &body);
        head.finish() + &body
    }

    fn head(&self, source: &mut Source, body: &str) {
        let cnn = self.cnn().cnn;
        let plan = self.resolved.index.plan;
        source.comment("//!", &format!("The model `{}`, made from `{}`.", cnn.name, cnn.model.path));
        source.line("//!");
        for &p in &self.cnn().partitions {
            let partition = self.resolved.index.partitions[p].partition;
            let firings = self.resolved.schedules[p].len();
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
        if self.outputs.iter().any(|field| self.written(field.layer).is_empty()) {
            source.line("use core::ops::Range;");
            source.gap();
        }
        source.line("use crate::arena::{Arena, Memory};");
        source.line("use crate::kernels::arch::Isa;");
        for (module, names) in [
            ("elements", &["Dims", "ElementShape", "Elements", "ElementsMut"][..]),
            ("kernel", &["Context", "ElementKernel", "RowKernel"]),
            ("rows", &["RowShape", "Rows", "RowsMut"]),
            ("span", &["Span", "SpanMut"]),
        ] {
            let used = |name: &&&str| super::names::is_named(body, name);
            let names: Vec<&str> = names.iter().filter(used).copied().collect();
            match names.as_slice() {
                [] => {}
                [name] => source.line(format!("use crate::kernels::{module}::{name};")),
                names => source.line(format!("use crate::kernels::{module}::{{{}}};", names.join(", "))),
            }
        }
        if self.threads() > 1 {
            source.line("use crate::kernels::workers::Workers;");
        }
        if !self.stages.is_empty() {
            source.line("use crate::ring::{Closed, Reader, Writer};");
            source.line("#[cfg(feature = \"std\")]");
            source.line("use crate::ring::{Link, PipelineError, guarded, join, spawn};");
        }
        source.line("use crate::weights::{self, WeightsError};");
        source.line(if body.contains(" kernels::") {
            "use crate::{isa, kernels};"
        } else {
            "use crate::isa;"
        });
        source.gap();
    }

    fn model(&self, source: &mut Source) {
        let (arena, memory) = match self.is_shared {
            false => ("&'a mut Arena", "arena.memory()"),
            true => ("impl Into<Share<'a>>", "arena.into().0"),
        };
        if self.is_shared {
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
        source.line("/// The model, in an arena that is its own for as long as it lives.");
        source.open("pub struct Model<'a> {");
        source.line("memory: Memory<'a, ring::Whole>,");
        source.line("weights: &'a [f32],");
        source.line("isa: Isa,");
        let (workers, threads) = (self.stages.len(), self.threads());
        match workers {
            _ if threads == 1 => {}
            0 => source.line("workers: Workers,"),
            stages => source.line(format!("workers: [Workers; {stages}],")),
        }
        source.close("}");
        source.gap();
        source.open("impl<'a> Model<'a> {");
        source.line("/// The model with the weights that are embedded in the crate.");
        source.line("#[cfg(feature = \"weights\")]");
        source.open(format!("pub fn new(arena: {arena}) -> Self {{"));
        source.line(format!("Model::on({memory}, weights::embedded())"));
        source.close("}");
        source.gap();
        source.line("/// The model with weights that lie somewhere else, in flash or a mapped file, say.");
        source.line("///");
        source.line("/// # Errors");
        source.line("/// When they are not the content of `weights.bin`.");
        source.open(format!(
            "pub fn with_weights(arena: {arena}, weights: &'a [u8]) -> Result<Self, WeightsError> {{"
        ));
        source.line(format!("Ok(Model::on({memory}, weights::verify(weights)?))"));
        source.close("}");
        source.gap();
        source.open("fn on(memory: Memory<'a, ring::Whole>, weights: &'a [f32]) -> Self {");
        if threads > 1 && workers > 0 {
            source.line(format!("let workers = core::array::from_fn(|_| Workers::new({threads}));"));
        }
        source.line(match workers {
            _ if threads == 1 => "Model { memory, weights, isa: isa() }".to_owned(),
            0 => format!("Model {{ memory, weights, isa: isa(), workers: Workers::new({threads}) }}"),
            _ => "Model { memory, weights, isa: isa(), workers }".into(),
        });
        source.close("}");
        source.gap();
        source.line("/// Runs one frame.");
        source.open("pub fn infer(&mut self, inputs: Inputs<'_>, outputs: Outputs<'_>) {");
        source.line("self.infer_rows(inputs, outputs);");
        source.close("}");
        source.gap();
        match self.stages.is_empty() {
            true => frame::write_infer(source, self),
            false => stage::write_infer(source, self),
        }
        source.close("}");
        source.gap();
    }
}

/// CNNs that may run at the same time as a whole: all their partitions are in one element of J.
pub(super) fn together(resolved: &Resolved<'_>) -> BTreeSet<Vec<usize>> {
    let index = &resolved.index;
    let whole = |element: &Vec<String>, cnn: &CnnIndex<'_>| {
        cnn.partitions.iter().all(|&p| element.contains(&index.partitions[p].partition.name))
    };
    let elements = index.plan.parallel.iter().map(|element| {
        (0..index.cnns.len()).filter(|&c| whole(element, &index.cnns[c])).collect::<Vec<usize>>()
    });
    elements.filter(|cnns| cnns.len() > 1).collect()
}

/// What a layer computes, and how often.
pub(super) fn summary(cnn: &CnnIndex<'_>, layer: usize) -> String {
    let entry = &cnn.layers[layer];
    let Layer { name, operator, rows_per_firing, firings, parameters, .. } = entry.layer;
    let from: Vec<String> = cnn.seen_all(layer).iter().map(|shape| shape.to_string()).collect();
    let arrow = if from.is_empty() { String::new() } else { format!("{} → ", from.join(", ")) };
    let mut text = format!("`{name}`: {} {arrow}{}", operator.kind().replace('_', " "), entry.tensor.shape);
    if *firings > 1 {
        let rows = if *rows_per_firing == 1 { "1 row".into() } else { format!("{rows_per_firing} rows") };
        text += &format!("; {firings} firings of {rows}");
    }
    if *parameters > 0 {
        text += &format!("; {parameters} bytes of parameters");
    }
    text + "."
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Appends the packed parameters of a layer to the bytes of those before it, and tells where they are, in elements: no
/// more than one layer's are there twice.
fn append(
    call: &Call,
    values: &dyn Fn(usize) -> Result<Vec<f32>, String>,
    bytes: &mut Vec<u8>,
) -> Result<Range<usize>, String> {
    let start = bytes.len() / size_of::<f32>();
    let mut packed = vec![0.0; weights::stored_len(call)];
    weights::pack(call, values, &mut packed)?;
    bytes.reserve_exact(size_of_val(packed.as_slice()));
    bytes.extend(packed.iter().flat_map(|value| value.to_le_bytes()));
    Ok(start..start + weights::packed_len(call))
}
