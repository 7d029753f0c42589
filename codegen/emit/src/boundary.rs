//! The types with which a model takes inputs and returns outputs: whole frames, or rows.

use csdfc_plan::operator::{CameraLayout, InputElement};
use csdfc_plan::shape::Shape;

use super::model::{InputField, Model, OutputField};
use super::source::Source;

impl Model<'_> {
    /// `Inputs` and `Outputs`, whole frames.
    pub(super) fn frames(&self, source: &mut Source) {
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
            let element = entry.tensor.format.element;
            source.line(format!("pub {}: &'a mut [{element}; {}],", field.name, shape.elements()));
        }
        source.close("}");
        source.gap();
    }

    /// The number of a call's frames, and `BatchInputs` and `BatchOutputs`, all of them.
    pub(super) fn batches(&self, source: &mut Source) {
        source.line("/// Frames that a call takes, one after another.");
        source.line(format!("pub const BATCH: usize = {};", self.batch()));
        source.gap();
        source.line("/// The frames of each input, one after another, each as in [`Inputs`].");
        source.line("#[derive(Debug, Clone, Copy)]");
        source.open("pub struct BatchInputs<'a> {");
        for field in &self.inputs {
            let elements = self.cnn().layers[field.layer].tensor.shape.elements();
            source.comment("///", &format!("Those of `{}`.", field.name));
            source.line(format!("pub {}: &'a [[{}; {elements}]; BATCH],", field.name, field.element()));
        }
        source.close("}");
        source.gap();
        source.line("/// Room for the frames of each output, one after another, each as in [`Outputs`].");
        source.line("#[derive(Debug)]");
        source.open("pub struct BatchOutputs<'a> {");
        for field in &self.outputs {
            let tensor = &self.cnn().layers[field.layer].tensor;
            let (element, elements) = (tensor.format.element, tensor.shape.elements());
            source.comment("///", &format!("Those of `{}`.", field.label));
            source.line(format!("pub {}: &'a mut [[{element}; {elements}]; BATCH],", field.name));
        }
        source.close("}");
        source.gap();
    }

    /// `InputRows` and `OutputRows`, row by row.
    pub(super) fn rows(&self, source: &mut Source) {
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
            let (label, row) = (field.label, entry.tensor.shape.row_elements());
            if self.written(field.layer).is_empty() {
                source.comment(
                    "///",
                    &format!(
                        "Room for rows `y` of `{label}`, {row} elements each. They are complete when the next rows \
                         are asked for, or the frame ends."
                    ),
                );
            } else {
                source.comment("///", &format!("Takes row `y` of `{label}`."));
            }
            source.line(format!("{};", self.output_signature(field)));
        }
        source.close("}");
        source.gap();
        self.frames_by_rows(source);
    }

    /// Whole frames: inputs are handed over, and outputs are taken, as rows.
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
                    let start = times("y", row);
                    source.line(format!("row.copy_from_slice(&self.{name}[{start}..][..{row}]);"));
                }
                (true, _, false) => {
                    source.line(format!("&self.{name}.as_chunks::<{row}>().0[y]"));
                }
                (true, _, true) => {
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
            let (name, row) = (&field.name, entry.tensor.shape.row_elements());
            source.open(format!("{} {{", self.output_signature(field)));
            if self.written(field.layer).is_empty() {
                let (start, end) = (times("y.start", row), times("y.end", row));
                source.line(match entry.rows() {
                    1 => format!("&mut self.{name}[{start}..]"),
                    _ => format!("&mut self.{name}[{start}..{end}]"),
                });
            } else {
                let start = times("y", row);
                source.line(format!("self.{name}[{start}..][..{row}].copy_from_slice(row);"));
            }
            source.close("}");
        }
        source.close("}");
        source.gap();
    }

    /// Head of the function that takes an output.
    pub(super) fn output_signature(&self, field: &OutputField<'_>) -> String {
        let entry = &self.cnn().layers[field.layer];
        let (name, element) = (&field.name, entry.tensor.format.element);
        let row = entry.tensor.shape.row_elements();
        match self.written(field.layer).is_empty() {
            true => format!("fn {name}(&mut self, y: Range<usize>) -> &mut [{element}]"),
            false => format!("fn {name}(&mut self, y: usize, row: &[{element}; {row}])"),
        }
    }
}

impl InputField<'_> {
    /// Type of the elements that the caller hands over for this input.
    pub fn element(&self) -> &'static str {
        match self.input.element {
            InputElement::F32 => "f32",
            InputElement::U8 => "u8",
            InputElement::I8 => "i8",
        }
    }

    /// Whether bytes come by planes of channels.
    pub fn planar(&self) -> bool {
        self.input.camera.as_ref().is_some_and(|camera| camera.layout == CameraLayout::Chw)
    }

    /// Whether the pixels of an image file do for an input of this shape: colors, or grey.
    pub fn takes_images(&self, shape: &Shape) -> bool {
        self.input.camera.is_some() && matches!(shape.channels(), 1 | 3)
    }

    /// Head of the function that hands it over.
    pub fn signature(&self, shape: &Shape) -> String {
        let (name, element) = (&self.name, self.element());
        let row = shape.row_elements();
        match (self.by_rows, self.input.element, self.planar()) {
            (false, ..) => format!("fn {name}(&self) -> &[{element}; {}]", shape.elements()),
            (true, InputElement::F32, _) => format!("fn {name}(&mut self, y: usize, row: &mut [f32; {row}])"),
            (true, _, false) => format!("fn {name}(&mut self, y: usize) -> &[{element}; {row}]"),
            (true, _, true) => {
                format!(
                    "fn {name}(&mut self, y: usize, channel: usize) -> &[u8; {}]",
                    row / shape.channels().max(1)
                )
            }
        }
    }
}

/// The elements of `rows` rows.
fn times(rows: &str, elements: usize) -> String {
    if elements == 1 { rows.into() } else { format!("{rows} * {elements}") }
}

/// The type of elements of this many bytes. An output, or input, by its name in the model, its shape there, and how its
/// elements lie.
pub(super) fn describe(label: &str, seen: &Shape, own: &Shape) -> String {
    let order = match own.column_axis() {
        Some(columns) if own.rows() * own.dims[columns] > 1 && own.channels() > 1 => {
            format!(", as {} rows of {} pixels of {} channels", own.rows(), own.dims[columns], own.channels())
        }
        _ => String::new(),
    };
    format!("`{label}`, {seen}{order}")
}

/// An input, and how its elements lie.
pub(super) fn describe_input(field: &InputField<'_>, shape: &Shape) -> String {
    let kind = match &field.input.camera {
        None => return describe(&field.name, shape, shape),
        Some(camera) => camera,
    };
    let planar =
        if kind.layout == CameraLayout::Chw { "planes of channels" } else { "rows of pixels of channels" };
    let order = format!("{:?}", kind.order).to_uppercase();
    format!(
        "`{}`, {shape}, as bytes of a camera, not preprocessed: {planar}, in the order {order}",
        field.name
    )
}

/// What the caller hands over when it is asked for a row of an input, or for its frame.
pub(super) fn describe_rows(field: &InputField<'_>, shape: &Shape) -> String {
    let width = shape.column_axis().map_or(1, |axis| shape.dims[axis]);
    let (name, channels) = (&field.name, shape.channels());
    let of = match shape.is_image() {
        true => format!("{width} pixels of {channels} channels"),
        false => format!("{} elements", shape.row_elements()),
    };
    match (field.by_rows, field.input.element, field.planar()) {
        (false, ..) => {
            format!("The frame of {}, which this plan reads in place", describe(name, shape, shape))
        }
        (true, InputElement::F32, _) => format!("Fills in row `y` of `{name}`: {of}"),
        (true, InputElement::I8, _) => format!("Row `y` of `{name}`: {of}, as signed bytes"),
        (true, InputElement::U8, false) => format!("Row `y` of `{name}`: {of}, as bytes"),
        (true, InputElement::U8, true) => format!("Row `y` of a channel of `{name}`: {width} bytes"),
    }
}
