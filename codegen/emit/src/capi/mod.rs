//! The C interface of a crate.
//!
//! 1. `functions` writes `src/capi.rs`, behind the feature `capi`.
//! 2. `header` declares them.
//! 3. `program` is an example that calls them.

mod functions;
mod header;
mod program;

use csdfc_plan::format::Element;
use csdfc_plan::operator::InputElement;
use csdfc_runtime::run::input_dims;

use super::boundary;
use super::model::{InputField, Model, OutputField};
use super::names::{C_WORDS, one_line};
use super::regions::NamedRegion;

pub(super) use functions::write;
pub(super) use header::header;
pub(super) use program::program;

/// A frame as a field of a C structure.
struct Field<'a> {
    name: &'a str,
    /// The element's types in Rust and in C.
    element: [&'static str; 2],
    elements: usize,
    /// The dimensions that it has in the model.
    dims: Vec<usize>,
    /// What integers stand for: q for `scale` · (q − zero point).
    quantization: Option<(f32, i16)>,
    described: String,
}

impl Field<'_> {
    /// Its name in C.
    fn c_name(&self) -> String {
        if C_WORDS.contains(&self.name) { format!("{}_", self.name) } else { self.name.to_owned() }
    }
}

/// The beginning of every name of a model: the crate's name and, if there are several models, the model's.
fn prefix(name: &str, models: &[Model<'_>], model: &Model<'_>) -> String {
    let library = library(name);
    if models.len() == 1 { library } else { format!("{library}_{}", model.module) }
}

fn library(name: &str) -> String {
    name.replace('-', "_").to_lowercase()
}

/// The memory regions that share the arena.
fn regions<'m>(models: &'m [Model<'_>]) -> &'m [NamedRegion<'m>] {
    models.first().map_or(&[], |model| &model.regions)
}

/// The arguments by which callers hand over an arena: one for each region, or one for all of it.
fn blocks<'m>(models: &'m [Model<'_>]) -> Vec<&'m str> {
    match regions(models) {
        [] => vec!["arena"],
        regions => regions.iter().map(|named| named.name.as_str()).collect(),
    }
}

/// The path of the header.
pub(super) fn header_path(name: &str) -> String {
    format!("include/{}.h", library(name))
}

fn inputs<'a>(model: &'a Model<'_>) -> Vec<Field<'a>> {
    let field = |field: &'a InputField<'_>| {
        let tensor = model.cnn().layers[field.layer].tensor;
        let (shape, quantization) = (&tensor.shape, tensor.quantization);
        // The tensor has signed integers with 128 added.
        let added = if field.input.element == InputElement::I8 { 128 } else { 0 };
        Field {
            name: &field.name,
            element: match field.input.element {
                InputElement::F32 => ["f32", "float"],
                InputElement::U8 => ["u8", "uint8_t"],
                InputElement::I8 => ["i8", "int8_t"],
            },
            elements: shape.elements(),
            dims: input_dims(field.input, shape),
            quantization: quantization.map(|of| (of.scale, i16::from(of.zero_point) - added)),
            described: boundary::describe_input(field, shape),
        }
    };
    model.inputs.iter().map(field).collect()
}

fn outputs<'a>(model: &'a Model<'_>) -> Vec<Field<'a>> {
    let field = |field: &'a OutputField<'_>| {
        let tensor = model.cnn().layers[field.layer].tensor;
        Field {
            name: &field.name,
            element: match tensor.format.element {
                Element::I64 => ["i64", "int64_t"],
                Element::U8 => ["u8", "uint8_t"],
                // No caller holds 16-bit floats, as the checker has verified.
                Element::F32 | Element::F16 => ["f32", "float"],
            },
            elements: tensor.shape.elements(),
            dims: field.seen.dims.clone(),
            quantization: tensor.quantization.map(|of| (of.scale, i16::from(of.zero_point))),
            described: boundary::describe(field.label, field.seen, &tensor.shape),
        }
    };
    model.outputs.iter().map(field).collect()
}

/// A name that ends no comment.
fn comment(name: &str) -> String {
    one_line(name).replace("*/", "* /").replace("/*", "/ *")
}

/// Words of a place besides a start for each region, as `template/capi.rs` has them.
const PLACE_WORDS: usize = 31;

/// The name of each status in C and what it says, in the order of their numbers, which are those of `Status` in
/// `template/capi.rs`.
const STATUSES: [(&str, &str); 7] = [
    ("OK", "nothing is wrong"),
    ("NULL", "a pointer is null"),
    ("LENGTH", "an arena is too short, or a frame or weights are of another length"),
    ("ALIGNMENT", "a pointer is not at a multiple of its elements' size"),
    ("WEIGHTS", "the weights are not the content of weights.bin, or no update of this plan that is whole"),
    ("NOT_CREATED", "the place holds no model, or another one"),
    ("STORE", "the store could not be read, or has other bytes: no outputs, but the model can go on"),
];
