//! Calls of kernels as Rust: the very calls that [`Call::fire`] makes.

use std::ops::Range;

use csdfc_kernels::elements::{Dims, ElementShape};
use csdfc_kernels::rows::RowShape;
use csdfc_runtime::bind::{Call, Constant, Form, Input, Literal, View};

use super::kernels;
use super::source::Source;

/// Rows as a kernel's argument: their storage, and their places in it.
pub(super) struct Operand {
    pub data: String,
    pub slots: Slots,
}

/// Where rows of a frame are in some storage.
pub(super) enum Slots {
    /// In the ring with which the layer is bound. The text is the slot of row 0.
    Ring(String),
    /// The rows of this variable alone, the first at the start.
    Only(String),
}

/// The kernel that applies slopes to the output of another kernel.
const SLOPES: &str = "PReluInPlace";

/// The modules of the kernels that a call needs.
pub(super) fn modules(call: &Call) -> impl Iterator<Item = &'static str> {
    let slopes = call.slopes.then_some(SLOPES);
    [Some(call.literal().type_name()), slopes].into_iter().flatten().map(kernels::module_of)
}

/// The arguments of a firing other than its tensors.
#[derive(Clone, Copy)]
pub(super) struct CallContext {
    /// The bytes among which its parameters are, and where they begin there.
    pub weights: (&'static str, usize),
    /// How many workers share it.
    pub threads: usize,
    /// Elements of its workspace, which is the variable `workspace`, if it has one.
    pub workspace: Option<u64>,
    /// The variable with the rows that it makes.
    pub rows: &'static str,
}

/// Writes the call that makes rows of a layer into `output`.
pub(super) fn write(
    source: &mut Source,
    call: &Call,
    operands: &[Operand],
    output: &Operand,
    context: CallContext,
) {
    let CallContext { weights, rows, .. } = context;
    let trait_name = match &call.form {
        Form::Rows(form) => {
            for (i, (operand, input)) in operands.iter().zip(&form.inputs).enumerate() {
                let shape = row_shape(&input.shape, &operand.slots.viewed_as(input));
                write_rows(source, &format!("x{}", i + 1), &operand.data, shape);
            }
            for (i, constant) in call.constants.iter().enumerate() {
                let shape = row_shape(&constant.packing.rows(), &Slots::Ring("0".into()));
                write_rows(source, &format!("c{}", i + 1), &constant_data(constant, weights), shape);
            }
            let fields = [
                format!("data: {}", output.data),
                format!("shape: {}", row_shape(&form.output, &output.slots)),
            ];
            source.list("let mut output = RowsMut {", &fields, ";");
            if context.threads > 1 { "share_rows" } else { "RowKernel::rows" }
        }
        Form::Elements(form) => {
            for (i, (operand, input)) in operands.iter().zip(&form.inputs).enumerate() {
                let name = format!("x{}", i + 1);
                write_elements(source, &name, &operand.data, &input.shape, &operand.slots.viewed_as(input));
            }
            for (i, constant) in call.constants.iter().enumerate() {
                let (name, data) = (format!("c{}", i + 1), constant_data(constant, weights));
                write_elements(source, &name, &data, &constant.packing.elements(), &Slots::Ring("0".into()));
            }
            let (data, shape) = element_shape(&form.output, &output.data, &output.slots);
            let fields = [format!("data: {data}"), format!("shape: {shape}")];
            source.list("let mut output = ElementsMut {", &fields, ";");
            "ElementKernel::elements"
        }
    };
    let kernel = call.literal();
    let path = kernels::path_of(kernel.type_name());
    write_literal(source, &format!("const P: {path} = "), kernel, ";");
    let context = match context {
        CallContext { threads: ..=1, workspace: None, .. } => "&mut Context::alone(self.isa)".to_owned(),
        CallContext { threads, workspace, .. } => {
            let workers = if threads > 1 { "Some(&mut *self.workers)" } else { "None" };
            let room =
                workspace.map_or("&mut []".into(), |elements| format!("workspace.slice(0, {elements})"));
            let fields =
                ["isa: self.isa".into(), format!("workers: {workers}"), format!("workspace: {room}")];
            source.list("let mut context = Context {", &fields, ";");
            "&mut context".into()
        }
    };
    let inputs = match operands.len() {
        0..MANY => list("x", 1..operands.len() + 1),
        count => {
            let names: Vec<String> = (1..=count).map(|i| format!("x{i}")).collect();
            source.list("let operands = [", &names, ";");
            "&operands".into()
        }
    };
    let constants = call.constants.len() - usize::from(call.slopes);
    let mut write = |kernel: String, inputs: String, constants: Range<usize>| {
        let constants = list("c", constants);
        let arguments =
            [kernel, context.clone(), format!("{rows}.clone()"), inputs, constants, "&mut output".into()];
        source.list(&format!("{trait_name}("), &arguments, ";");
    };
    write("&P".into(), inputs, 1..constants + 1);
    if call.slopes {
        let last = call.constants.len();
        write(format!("&{}", kernels::path_of(SLOPES)), "&[]".into(), last..last + 1);
    }
}

/// From this number of operands on, they are a list of their own.
const MANY: usize = 4;

/// A slice of variables.
fn list(name: &str, numbers: Range<usize>) -> String {
    let names: Vec<String> = numbers.map(|i| format!("{name}{i}")).collect();
    format!("&[{}]", names.join(", "))
}

impl Slots {
    /// The slots of an operand's rows as a kernel sees them.
    fn viewed_as<S>(&self, input: &Input<S>) -> Slots {
        match (self, input.fold, input.into) {
            (Slots::Only(rows), ..) => Slots::Only(rows.clone()),
            (Slots::Ring(first), 1, 1) => Slots::Ring(first.clone()),
            (Slots::Ring(first), ..) if first == "0" => Slots::Ring(first.clone()),
            (Slots::Ring(first), fold, 1) => Slots::Ring(format!("{first} / {fold}")),
            (Slots::Ring(first), fold, into) => Slots::Ring(format!("{first} / {fold} * {into}")),
        }
    }
}

fn constant_data(constant: &Constant, (weights, first): (&str, usize)) -> String {
    let Range { start, end } = constant.range;
    format!("Span::of_bytes(&{weights}[{}..{}])", first + start, first + end)
}

fn write_rows(source: &mut Source, name: &str, data: &str, shape: String) {
    source.list(&format!("let {name} = Rows {{"), &[format!("data: {data}"), format!("shape: {shape}")], ";");
}

fn write_elements(source: &mut Source, name: &str, data: &str, view: &View, slots: &Slots) {
    let (data, shape) = element_shape(&view.shape, data, slots);
    let fields = [format!("data: {data}"), format!("shape: {shape}"), format!("seen: {}", dims(&view.seen))];
    source.list(&format!("let {name} = Elements {{"), &fields, ";");
}

/// Writes a value between two texts, on one line if it fits and otherwise with one field per line, as rustfmt does.
fn write_literal(source: &mut Source, before: &str, literal: &Literal, after: &str) {
    let one = format!("{before}{}{after}", text(literal));
    match literal {
        Literal::Type { name, variant, fields, .. } if !fields.is_empty() && !source.fits(&one) => {
            if before.ends_with("= ") && source.fits(&format!("    {}{after}", text(literal))) {
                source.open(before.trim_end());
                source.line(format!("{}{after}", text(literal)));
                source.dedent();
                return;
            }
            source.open(format!("{before}{} {{", type_path(name, *variant)));
            for (field, value) in fields {
                write_literal(source, &format!("{field}: "), value, ",");
            }
            source.close(format!("}}{after}"));
        }
        Literal::Option(Some(value)) if !source.fits(&one) => {
            write_literal(source, &format!("{before}Some("), value, &format!("){after}"));
        }
        Literal::Array(items) => {
            let items: Vec<String> = items.iter().map(text).collect();
            source.list(&format!("{before}["), &items, after);
        }
        _ => source.line(one),
    }
}

/// A value on one line.
fn text(literal: &Literal) -> String {
    match literal {
        Literal::Scalar(text) => text.clone(),
        Literal::Array(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        Literal::Option(None) => "None".into(),
        Literal::Option(Some(value)) => format!("Some({})", text(value)),
        Literal::Type { name, variant, inner: Some(value), .. } => {
            format!("{}({})", type_path(name, *variant), text(value))
        }
        Literal::Type { name, variant, fields, .. } if fields.is_empty() => type_path(name, *variant),
        Literal::Type { name, variant, fields, .. } => {
            let fields: Vec<String> =
                fields.iter().map(|(field, value)| format!("{field}: {}", text(value))).collect();
            format!("{} {{ {} }}", type_path(name, *variant), fields.join(", "))
        }
    }
}

fn type_path(name: &str, variant: Option<&str>) -> String {
    let path = kernels::path_of(name);
    variant.map_or(path.clone(), |variant| format!("{path}::{variant}"))
}

fn row_shape(shape: &RowShape, slots: &Slots) -> String {
    let RowShape { height, width, channels, ring_rows, .. } = shape;
    let dense = format!("RowShape::dense({height}, {width}, {channels}, {ring_rows})");
    match slots {
        Slots::Ring(first) if first == "0" => dense,
        Slots::Ring(first) => format!("RowShape {{ first: {first}, ..{dense} }}"),
        Slots::Only(rows) => format!("{dense}.stored(&{rows})"),
    }
}

/// The storage and shape of a tensor that is seen element by element.
fn element_shape(shape: &ElementShape, data: &str, slots: &Slots) -> (String, String) {
    let sizes = &shape.dims.sizes;
    let image = |height: usize, width: usize, channels: usize| {
        row_shape(&RowShape::dense(height, width, channels, shape.ring_rows), slots)
    };
    let text = match (shape.row_axis, shape.dims.rank) {
        (None, rank) => format!("ElementShape::dense(&{:?})", &sizes[..rank]),
        (Some(2), 4) => format!("ElementShape::channels_first({})", image(sizes[2], sizes[3], sizes[1])),
        (Some(_), 4) => format!("ElementShape::channels_last({})", image(sizes[1], sizes[2], sizes[3])),
        (Some(axis), rank) => {
            let rows = format!("ElementShape::by_rows(&{:?}, {axis}, {})", &sizes[..rank], shape.ring_rows);
            match slots {
                Slots::Ring(first) if first == "0" => rows,
                Slots::Ring(first) => format!("ElementShape {{ first: {first}, ..{rows} }}"),
                Slots::Only(only) => format!("{rows}.stored(&{only})"),
            }
        }
    };
    match slots {
        // One of several frames' worth.
        Slots::Ring(first) if first != "0" && shape.row_axis.is_none() => {
            let elements = shape.dims.elements();
            (format!("{data}.part({first} * {elements}, {elements})"), text)
        }
        _ => (data.to_owned(), text),
    }
}

fn dims(dims: &Dims) -> String {
    format!("Dims::new(&{:?})", &dims.sizes[..dims.rank])
}
