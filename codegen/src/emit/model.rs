//! The file of one model: its inputs and outputs, its rings, its schedule, and a method for each layer.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::bind::{self, Call, Operand, Site};
use crate::check::{CnnIndex, Kind, Resolved, Store};
use crate::operator::{CameraLayout, Input, InputElement, Operator};
use crate::plan::Layer;
use crate::run::Parameters;
use crate::shape::Shape;
use crate::weights::Blob;

use super::names::Names;
use super::source::Source;
use super::{EmitError, layer, schedule};

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

    /// Where its rows lie.
    pub fn stores(&self) -> &'r [Store] {
        &self.resolved.stores[self.c]
    }

    /// Number of the stores that a layer writes, the first by its kernel.
    pub fn written(&self, layer: usize) -> Vec<usize> {
        (0..self.stores().len()).filter(|&s| self.stores()[s].tensor == layer).collect()
    }

    /// The store from which a layer reads a tensor; none for the caller's copy.
    pub fn read(&self, layer: usize, tensor: usize) -> Option<usize> {
        self.stores().iter().position(|store| store.tensor == tensor && store.readers.contains(&layer))
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
        blob: &mut Blob,
    ) -> Result<Self, EmitError> {
        let mut model = Model::named(resolved, c, module)?;
        for l in 0..model.methods.len() {
            let fail = |why: String| EmitError::layer(resolved, c, l, why);
            let call = model.call(l).map_err(fail)?;
            let values = |parameter: usize| parameters(c, l, parameter);
            let packed = call.as_ref().map_or(Ok(0..0), |call| blob.push(call, &values));
            model.weights.push(packed.map_err(fail)?);
            model.calls.push(call);
        }
        Ok(model)
    }

    /// What computes a layer, if anything does and its tensor is stored anywhere.
    fn call(&self, l: usize) -> Result<Option<Call>, String> {
        let entry = &self.cnn().layers[l];
        let written = self.written(l);
        if matches!(entry.layer.operator, Operator::Input(_)) || written.is_empty() && !entry.tensor.external
        {
            return Ok(None);
        }
        if entry.tensor.element_bytes != 4 && !(written.is_empty() && entry.readers.is_empty()) {
            return Err("it makes indices, which no layer can read".into());
        }
        let operand = |(operand, &tensor): (usize, &usize)| {
            let store = self.read(l, tensor);
            if store.is_none() && !self.inputs.iter().any(|field| field.layer == tensor) {
                return Err(format!(
                    "its operand `{}` is stored nowhere",
                    self.cnn().layers[tensor].tensor.name
                ));
            }
            let rows = store.map_or(self.cnn().layers[tensor].rows(), |store| self.stores()[store].ring_rows);
            let own = &self.cnn().layers[tensor].tensor.shape;
            Ok(Operand { own, seen: self.cnn().seen(l, operand), ring_rows: rows as usize })
        };
        let site = Site {
            operator: &entry.layer.operator,
            inputs: entry.inputs.iter().enumerate().map(operand).collect::<Result<_, String>>()?,
            output: &entry.tensor.shape,
            // The caller's room is for the rows of one firing at a time.
            ring_rows: match written.first() {
                Some(&store) => self.stores()[store].ring_rows as usize,
                None => entry.layer.rows_per_firing as usize,
            },
        };
        bind::bind(&site).map(Some)
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
        let mut names = Names::except(&["memory", "weights", "isa", "frame", "inputs", "outputs"]);
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
        let mut names = Names::default();
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
        Ok(Model { resolved, c, module, methods, rings, calls, weights, inputs, outputs })
    }

    /// The text of its file.
    pub fn write(&self) -> String {
        let mut body = Source::default();
        self.frames(&mut body);
        self.rows(&mut body);
        self.model(&mut body);
        self.places(&mut body);
        self.frame(&mut body);
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
            ("rows", &["RowShape", "Rows", "RowsMut"]),
        ] {
            let used = |name: &&&str| super::names::is_named(body, name);
            let names: Vec<&str> = names.iter().filter(used).copied().collect();
            match names.as_slice() {
                [] => {}
                [name] => source.line(format!("use crate::kernels::{module}::{name};")),
                names => source.line(format!("use crate::kernels::{module}::{{{}}};", names.join(", "))),
            }
        }
        source.line("use crate::weights::{self, WeightsError};");
        source.line(if body.contains(" kernels::") {
            "use crate::{isa, kernels};"
        } else {
            "use crate::isa;"
        });
        source.gap();
    }

    /// `Inputs` and `Outputs`, whole frames.
    fn frames(&self, source: &mut Source) {
        source.line("/// One frame of each input.");
        source.line("#[derive(Debug, Clone, Copy)]");
        source.open("pub struct Inputs<'a> {");
        for field in &self.inputs {
            let shape = &self.cnn().layers[field.layer].tensor.shape;
            source.comment("///", &format!("{}.", describe_input(field, shape)));
            let element = field.element();
            source.line(format!("pub {}: &'a [{element}; {}],", field.name, shape.elements()));
        }
        source.close("}");
        source.gap();
        source.line("/// Room for one frame of each output.");
        source.line("#[derive(Debug)]");
        source.open("pub struct Outputs<'a> {");
        for field in &self.outputs {
            let entry = &self.cnn().layers[field.layer];
            let shape = &entry.tensor.shape;
            let described = describe(field.label, field.seen, shape);
            source.comment("///", &format!("{described}."));
            let element = element(entry.tensor.element_bytes);
            source.line(format!("pub {}: &'a mut [{element}; {}],", field.name, shape.elements()));
        }
        source.close("}");
        source.gap();
    }

    /// `InputRows` and `OutputRows`, row by row.
    fn rows(&self, source: &mut Source) {
        source.line("/// Hands over inputs. Rows are asked for from the top, each once a frame.");
        source.open("pub trait InputRows {");
        for field in &self.inputs {
            let shape = &self.cnn().layers[field.layer].tensor.shape;
            source.comment("///", &format!("{}.", describe_rows(field, shape)));
            source.line(format!("{};", field.signature(shape)));
        }
        source.close("}");
        source.gap();
        source.line("/// Takes outputs.");
        source.open("pub trait OutputRows {");
        for field in &self.outputs {
            let entry = &self.cnn().layers[field.layer];
            let element = element(entry.tensor.element_bytes);
            let (label, row) = (field.label, entry.tensor.shape.row_elements());
            if self.written(field.layer).is_empty() {
                source.comment(
                    "///",
                    &format!(
                        "Room for rows `y` of `{label}`, {row} elements each. They are made when the next are \
                         asked for, or the frame ends."
                    ),
                );
                source.line(format!("fn {}(&mut self, y: Range<usize>) -> &mut [{element}];", field.name));
            } else {
                source.comment("///", &format!("Takes row `y` of `{label}`."));
                source.line(format!("fn {}(&mut self, y: usize, row: &[{element}; {row}]);", field.name));
            }
        }
        source.close("}");
        source.gap();
        self.frames_by_rows(source);
    }

    /// Whole frames, handed over and taken by rows.
    fn frames_by_rows(&self, source: &mut Source) {
        source.open("impl InputRows for Inputs<'_> {");
        for (i, field) in self.inputs.iter().enumerate() {
            if i > 0 {
                source.gap();
            }
            let name = &field.name;
            let shape = &self.cnn().layers[field.layer].tensor.shape;
            let (row, width) = (shape.row_elements(), shape.row_elements() / shape.channels().max(1));
            source.open(format!("{} {{", field.signature(shape)));
            match (field.by_rows, field.input.element, field.planar()) {
                (false, ..) => source.line(format!("self.{name}")),
                (true, InputElement::F32, _) => {
                    source
                        .line(format!("row.copy_from_slice(&self.{name}[{}..][..{row}]);", times("y", row)));
                }
                (true, InputElement::U8, false) => {
                    source.line(format!("&self.{name}.as_chunks::<{row}>().0[y]"));
                }
                (true, InputElement::U8, true) => {
                    let rows = shape.rows();
                    source.line(format!("&self.{name}.as_chunks::<{width}>().0[channel * {rows} + y]"));
                }
            }
            source.close("}");
        }
        source.close("}");
        source.gap();
        source.open("impl OutputRows for Outputs<'_> {");
        for (i, field) in self.outputs.iter().enumerate() {
            if i > 0 {
                source.gap();
            }
            let entry = &self.cnn().layers[field.layer];
            let element = element(entry.tensor.element_bytes);
            let (name, row) = (&field.name, entry.tensor.shape.row_elements());
            if self.written(field.layer).is_empty() {
                source.open(format!("fn {name}(&mut self, y: Range<usize>) -> &mut [{element}] {{"));
                let (start, end) = (times("y.start", row), times("y.end", row));
                source.line(match entry.rows() {
                    1 => format!("&mut self.{name}[{start}..]"),
                    _ => format!("&mut self.{name}[{start}..{end}]"),
                });
            } else {
                source.open(format!("fn {name}(&mut self, y: usize, row: &[{element}; {row}]) {{"));
                source.line(format!("self.{name}[{}..][..{row}].copy_from_slice(row);", times("y", row)));
            }
            source.close("}");
        }
        source.close("}");
        source.gap();
    }

    fn model(&self, source: &mut Source) {
        let period = self.period();
        source.line("/// The model, in an arena that is its own for as long as it lives.");
        source.open("pub struct Model<'a> {");
        source.line("memory: Memory<'a>,");
        source.line("weights: &'a [f32],");
        source.line("isa: Isa,");
        if period > 1 {
            source
                .comment("///", &format!("Frames so far, modulo the {period} after which rings start over."));
            source.line("frame: usize,");
        }
        source.close("}");
        source.gap();
        source.open("impl<'a> Model<'a> {");
        source.line("/// The model with the weights that are embedded in the crate.");
        source.line("#[cfg(feature = \"weights\")]");
        source.open("pub fn new(arena: &'a mut Arena) -> Self {");
        source.line("Model::on(arena, weights::embedded())");
        source.close("}");
        source.gap();
        source.line("/// The model with weights that lie somewhere else, in flash or a mapped file, say.");
        source.line("///");
        source.line("/// # Errors");
        source.line("/// When they are not the content of `weights.bin`.");
        source.open(
            "pub fn with_weights(arena: &'a mut Arena, weights: &'a [u8]) -> Result<Self, WeightsError> {",
        );
        source.line("Ok(Model::on(arena, weights::verify(weights)?))");
        source.close("}");
        source.gap();
        source.open("fn on(arena: &'a mut Arena, weights: &'a [f32]) -> Self {");
        let frame = if period > 1 { ", frame: 0" } else { "" };
        source.line(format!("Model {{ memory: arena.memory(), weights, isa: isa(){frame} }}"));
        source.close("}");
        source.gap();
        source.line("/// Runs one frame.");
        source.open("pub fn infer(&mut self, inputs: Inputs<'_>, outputs: Outputs<'_>) {");
        source.line("self.infer_rows(inputs, outputs);");
        source.close("}");
        source.gap();
        source.line("/// Runs one frame whose rows are handed over and taken one by one.");
        source.open("pub fn infer_rows(&mut self, inputs: impl InputRows, outputs: impl OutputRows) {");
        let mut fields = ["memory: self.memory.again()", "weights: self.weights", "isa: self.isa"].to_vec();
        if period > 1 {
            fields.push("frame: self.frame");
        }
        fields.extend(["inputs", "outputs"]);
        let mut fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
        fields.extend(self.counted().map(|layer| format!("{}: 0", self.methods[layer])));
        source.list("let mut frame = Frame {", &fields, ";");
        for &p in &self.cnn().partitions {
            source.line(format!("frame.{}();", self.partition_method(p)));
        }
        if period > 1 {
            source.line(format!("self.frame = (self.frame + 1) % {period};"));
        }
        source.close("}");
        source.close("}");
        source.gap();
    }

    /// Constants: where rings lie.
    fn places(&self, source: &mut Source) {
        if self.stores().is_empty() {
            return;
        }
        source.line("/// Where rows lie in the arena.");
        source.open("mod ring {");
        source.line("use crate::arena::Ring;");
        for (s, store) in self.stores().iter().enumerate() {
            source.gap();
            let entry = &self.cnn().layers[store.tensor];
            let (stored, rows) = (store.ring_rows, entry.rows());
            let halves = if store.kind == Kind::Halves { ", for even frames and for odd ones" } else { "" };
            let what = if rows == 1 { "whole".into() } else { format!("{stored} of {rows} rows stored") };
            source
                .comment("///", &format!("`{}`: {what}, {} bytes{halves}.", store.name, store.ring_bytes()));
            let rings = store.bases.iter().map(|base| {
                format!("Ring {{ offset: {base}, rows: {stored}, row_bytes: {} }}", store.row_bytes)
            });
            let rings: Vec<String> = rings.collect();
            let name = &self.rings[s];
            match rings.as_slice() {
                [ring] => source.line(format!("pub const {name}: Ring = {ring};")),
                _ => source.list(&format!("pub const {name}: [Ring; {}] = [", rings.len()), &rings, ";"),
            }
        }
        source.close("}");
        source.gap();
    }

    /// The frame in the making: its schedule and its layers.
    fn frame(&self, source: &mut Source) {
        source.line("/// A frame in the making.");
        source.line("#[allow(dead_code, reason = \"not every model has layers that need all of it\")]");
        source.open("struct Frame<'m, I, O> {");
        source.line("memory: Memory<'m>,");
        source.line("weights: &'m [f32],");
        source.line("isa: Isa,");
        if self.period() > 1 {
            source.line("frame: usize,");
        }
        source.line("inputs: I,");
        source.line("outputs: O,");
        let counted: Vec<usize> = self.counted().collect();
        if !counted.is_empty() {
            source.line("// Rows made so far of each layer that fires several times.");
        }
        for layer in counted {
            source.line(format!("{}: usize,", self.methods[layer]));
        }
        source.close("}");
        source.gap();
        source.open("impl<I: InputRows, O: OutputRows> Frame<'_, I, O> {");
        for (i, &p) in self.cnn().partitions.iter().enumerate() {
            if i > 0 {
                source.gap();
            }
            let partition = self.resolved.index.partitions[p].partition;
            let methods: BTreeMap<&str, String> = self
                .cnn()
                .layers
                .iter()
                .zip(&self.methods)
                .map(|(entry, method)| (entry.layer.name.as_str(), method.clone()))
                .collect();
            source.comment("///", &format!("One frame of partition `{}`.", partition.name));
            source.open(format!("fn {}(&mut self) {{", self.partition_method(p)));
            schedule::write(source, &partition.schedule, &methods);
            source.close("}");
        }
        for layer in 0..self.methods.len() {
            source.gap();
            layer::write(source, self, layer);
        }
        source.close("}");
    }

    /// Layers that fire several times a frame, and so count their rows.
    fn counted(&self) -> impl Iterator<Item = usize> {
        (0..self.methods.len()).filter(|&layer| self.cnn().layers[layer].layer.firings > 1)
    }

    fn partition_method(&self, p: usize) -> String {
        format!("run_{}", super::names::snake(&self.resolved.index.partitions[p].partition.name))
    }
}

impl InputField<'_> {
    /// Type of the elements that the caller hands over.
    pub fn element(&self) -> &'static str {
        match self.input.element {
            InputElement::F32 => "f32",
            InputElement::U8 => "u8",
        }
    }

    /// Whether bytes come by planes of channels.
    pub fn planar(&self) -> bool {
        self.input.camera.as_ref().is_some_and(|camera| camera.layout == CameraLayout::Chw)
    }

    fn signature(&self, shape: &Shape) -> String {
        let (name, element) = (&self.name, self.element());
        let row = shape.row_elements();
        match (self.by_rows, self.input.element, self.planar()) {
            (false, ..) => format!("fn {name}(&self) -> &[{element}; {}]", shape.elements()),
            (true, InputElement::F32, _) => format!("fn {name}(&mut self, y: usize, row: &mut [f32; {row}])"),
            (true, InputElement::U8, false) => format!("fn {name}(&mut self, y: usize) -> &[u8; {row}]"),
            (true, InputElement::U8, true) => {
                format!(
                    "fn {name}(&mut self, y: usize, channel: usize) -> &[u8; {}]",
                    row / shape.channels().max(1)
                )
            }
        }
    }
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

/// Rows of so many elements.
fn times(rows: &str, elements: usize) -> String {
    if elements == 1 { rows.into() } else { format!("{rows} * {elements}") }
}

fn element(bytes: u64) -> &'static str {
    if bytes == 8 { "i64" } else { "f32" }
}

fn describe(label: &str, seen: &Shape, own: &Shape) -> String {
    let order = match own.row_axis().and(own.column_axis()) {
        Some(columns) if own.rows() * own.dims[columns] > 1 && own.channels() > 1 => {
            format!(", as {} rows of {} pixels of {} channels", own.rows(), own.dims[columns], own.channels())
        }
        _ => String::new(),
    };
    format!("`{label}`, {seen}{order}")
}

fn describe_input(field: &InputField<'_>, shape: &Shape) -> String {
    let kind = match &field.input.camera {
        None => return describe(&field.name, shape, shape),
        Some(camera) => camera,
    };
    let planar =
        if kind.layout == CameraLayout::Chw { "planes of channels" } else { "rows of pixels of channels" };
    format!("`{}`, {shape}, as bytes: {planar}, in the order {:?}", field.name, kind.order)
}

fn describe_rows(field: &InputField<'_>, shape: &Shape) -> String {
    let width = shape.column_axis().map_or(1, |axis| shape.dims[axis]);
    let (name, channels) = (&field.name, shape.channels());
    match (field.by_rows, field.input.element, field.planar()) {
        (false, ..) => {
            format!("The frame of {}, which this plan reads in place", describe(name, shape, shape))
        }
        (true, InputElement::F32, _) => {
            format!("Fills in row `y` of `{name}`: {width} pixels of {channels} channels")
        }
        (true, InputElement::U8, false) => {
            format!("Row `y` of `{name}`: {width} pixels of {channels} channels, as bytes")
        }
        (true, InputElement::U8, true) => format!("Row `y` of a channel of `{name}`: {width} bytes"),
    }
}
