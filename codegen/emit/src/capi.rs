//! The C interface of a crate: `src/capi.rs`, behind the feature `capi`, and the header that declares it.

use csdfc_plan::format::Element;
use csdfc_plan::plan::Plan;

use super::boundary;
use super::model::{InputField, Model, OutputField, Packed};
use super::names::{camel, one_line};
use super::source::Source;

/// Words of C and C++ that an identifier of Rust may be.
const TAKEN: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "case",
    "catch",
    "char",
    "class",
    "constexpr",
    "default",
    "delete",
    "double",
    "explicit",
    "export",
    "float",
    "friend",
    "goto",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "short",
    "signed",
    "sizeof",
    "switch",
    "template",
    "this",
    "throw",
    "typedef",
    "typename",
    "union",
    "unsigned",
    "using",
    "void",
    "volatile",
    "xor",
];

/// A frame as a field of a C structure.
struct Field<'a> {
    name: &'a str,
    /// The element's types in Rust and in C.
    element: [&'static str; 2],
    elements: usize,
    described: String,
}

impl Field<'_> {
    /// Its name in C.
    fn c_name(&self) -> String {
        if TAKEN.contains(&self.name) { format!("{}_", self.name) } else { self.name.to_owned() }
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

/// The path of the header.
pub(super) fn header_path(name: &str) -> String {
    format!("include/{}.h", library(name))
}

fn inputs<'a>(model: &'a Model<'_>) -> Vec<Field<'a>> {
    let field = |field: &'a InputField<'_>| {
        let shape = &model.cnn().layers[field.layer].tensor.shape;
        Field {
            name: &field.name,
            element: if field.element() == "u8" { ["u8", "uint8_t"] } else { ["f32", "float"] },
            elements: shape.elements(),
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
                // No caller holds 16-bit floats or 8-bit integers, as the checker has verified.
                Element::F32 | Element::F16 | Element::U8 => ["f32", "float"],
            },
            elements: tensor.shape.elements(),
            described: boundary::describe(field.label, field.seen, &tensor.shape),
        }
    };
    model.outputs.iter().map(field).collect()
}

/// The text of `src/capi.rs`.
pub(super) fn write(name: &str, models: &[Model<'_>]) -> String {
    let mut source = Source::default();
    for (number, model) in models.iter().enumerate() {
        write_model(&mut source, &prefix(name, models, model), model, number);
    }
    let store = match models.iter().any(Model::is_streamed) {
        true => include_str!("template/capi_store.rs"),
        false => "",
    };
    include_str!("template/capi.rs").to_owned() + store + &source.finish()
}

fn write_model(source: &mut Source, prefix: &str, model: &Model<'_>, number: usize) {
    let module = &model.module;
    let streamed = model.is_streamed();
    let model_type = format!("crate::{module}::Model<'static{}>", if streamed { ", CStore" } else { "" });
    for (kind, pointer, fields) in [("Inputs", "*const", inputs(model)), ("Outputs", "*mut", outputs(model))]
    {
        source.gap();
        source.line("#[repr(C)]");
        source.open(format!("pub struct {}{kind} {{", camel(prefix)));
        for field in fields {
            source.line(format!("pub {}: {pointer} {},", field.name, field.element[0]));
            source.line(format!("pub {}_elements: usize,", field.name));
        }
        source.close("}");
    }
    let function = |source: &mut Source, feature: &str, name: &str, arguments: &[&str]| {
        source.gap();
        if !feature.is_empty() {
            source.line(format!("#[cfg(feature = {feature:?})]"));
        }
        source.line("#[unsafe(no_mangle)]");
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        source.head(&format!("pub unsafe extern \"C\" fn {prefix}_{name}("), &arguments, " -> Status {");
    };
    let place = ["place: *mut Place", "arena: *mut c_void", "arena_bytes: usize"];
    let weights = ["weights: *const u8", "weight_bytes: usize"];
    let store: &[&str] = if streamed { &["store: *const CStore"] } else { &[] };
    let stored = if streamed { ", store" } else { "" };
    let pattern = if model.streamed_stages().len() > 1 { "store" } else { "[store]" };
    let take = |source: &mut Source, name: &str, made: &str| {
        source.line("// SAFETY: the header asks that pointers lead to as many elements as are stated.");
        source.open(format!("let {name} = match unsafe {{ {made} }} {{"));
        source.line(format!("Ok({name}) => {name},"));
        source.line("Err(status) => return status,");
        source.close("};");
    };
    let make = |source: &mut Source, made: &str| {
        source.line(format!("let make = |arena| {made};"));
        source.line("// SAFETY: the header asks for a place of zeros and an arena of the model's own.");
        source.line(format!("unsafe {{ create({number}, place, arena, arena_bytes, make) }}"));
        source.close("}");
    };
    function(source, "weights", "create", &[&place[..], store].concat());
    if streamed {
        take(source, pattern, "stores_of(store)");
    }
    make(source, &format!("Ok(crate::{module}::Model::new(arena{stored}))"));
    function(source, "", "create_with_weights", &[&place[..], &weights[..], store].concat());
    take(source, "weights", "bytes(weights, weight_bytes)");
    if streamed {
        take(source, pattern, "stores_of(store)");
    }
    make(source, &format!("crate::{module}::Model::with_weights(arena, weights{stored}).map_err(refused)"));

    let camel = camel(prefix);
    let (inputs_type, outputs_type) =
        (format!("inputs: *const {camel}Inputs"), format!("outputs: *const {camel}Outputs"));
    function(source, "", "infer", &["place: *mut Place", &inputs_type, &outputs_type]);
    source.open("let infer = || {");
    source.line("// SAFETY: the header asks for a place of zeros or a model, and stated lengths.");
    source.open("unsafe {");
    source.line(format!("let model: &mut {model_type} = created({number}, place)?;"));
    source.line("let (inputs, outputs) = (read(inputs)?, read(outputs)?);");
    for (kind, from, fields) in [("Inputs", "frame", inputs(model)), ("Outputs", "room", outputs(model))] {
        let owner = kind.to_lowercase();
        let fields: Vec<String> = fields
            .iter()
            .map(|Field { name, .. }| format!("{name}: {from}({owner}.{name}, {owner}.{name}_elements)?"))
            .collect();
        source.list(&format!("let {owner} = crate::{module}::{kind} {{"), &fields, ";");
    }
    if streamed {
        source.line("model.infer(inputs, outputs).map_err(|_| Status::Store)");
        source.close("}");
    } else {
        source.line("model.infer(inputs, outputs);");
        source.close("}");
        source.line("Ok(())");
    }
    source.close("};");
    source.line("status(infer())");
    source.close("}");

    function(source, "", "destroy", &["place: *mut Place"]);
    source.line("// SAFETY: the header asks for a place of zeros or a model that nobody else uses.");
    source.line(format!("unsafe {{ destroy::<{model_type}>({number}, place) }}"));
    source.close("}");
}

/// The text of the header.
pub(super) fn header(name: &str, plan: &Plan, models: &[Model<'_>], packed: &Packed) -> String {
    let weights = packed.weights.len();
    let streamed = models.iter().any(Model::is_streamed);
    let library = library(name);
    let upper = library.to_uppercase();
    let (application, file) = (comment(&plan.application), format!("{library}.h"));
    let arena = plan.memory.arena;
    let failed = match streamed {
        true => format!(
            ",\n    /* The store could not be read, or has other bytes. The outputs are of no use; the model can go on. */\n    \
             {upper}_STORE = 6"
        ),
        false => String::new(),
    };
    let mut text = format!(
        "/* {file}: the models of `{application}`, for C. Written by csdfc; emitting again replaces it.\n\
         \n   \
         Every function returns {upper}_OK, or a status that says what is wrong with its arguments; then it has\n   \
         computed nothing. Functions refuse null pointers. Any other pointer must lead to as many elements as are\n   \
         stated, and these must not overlap with another argument. A model is used by one thread at a time. No\n   \
         frame allocates, and nothing unwinds into C: a mistake of the library's own would end the process. */\n\
         #ifndef {upper}_H\n#define {upper}_H\n\n\
         #include <stddef.h>\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         /* Bytes of the arena. It must begin at a multiple of 4, and is best at one of 64. */\n\
         #define {upper}_ARENA_BYTES {arena}\n\n\
         /* Bytes of weights.bin. */\n\
         #define {upper}_WEIGHT_BYTES {weights}\n\n\
         typedef enum {{\n    \
         {upper}_OK = 0,\n    \
         /* A pointer is null. */\n    {upper}_NULL = 1,\n    \
         /* An arena is too short, or a frame or weights are of another length. */\n    {upper}_LENGTH = 2,\n    \
         /* A pointer is not at a multiple of its elements' size. */\n    {upper}_ALIGNMENT = 3,\n    \
         /* The weights are not the content of weights.bin. */\n    {upper}_WEIGHTS = 4,\n    \
         /* The place holds no model, or another one. */\n    {upper}_NOT_CREATED = 5{failed}\n\
         }} {library}_status;\n\n\
         /* The place of a model, filled with zeros until one is created in it; it must not be moved or copied. */\n\
         typedef struct {{\n    uint64_t words[{PLACE_WORDS}];\n}} {library}_place;\n"
    );
    if streamed {
        let bytes = packed.store.len();
        text += &format!(
            "\n/* Bytes of store.bin, from which frames read weights. */\n\
             #define {upper}_STORE_BYTES UINT64_C({bytes})\n\n\
             /* A store reads them. `start` begins a load: it reads `bytes` bytes from `at` of store.bin on into\n   \
             `block`, and may return before they are there. Until `wait` has returned for the load, the block\n   \
             belongs to the store. `wait` waits for the oldest load that nobody has waited for yet. It returns 0,\n   \
             or another number if not all bytes could be read. After that, the store no longer writes into the\n   \
             block. A model calls both functions only in `infer`, on the thread of the caller. */\n\
             typedef struct {{\n    void *context;\n    \
             void (*start)(void *context, uint64_t at, uint8_t *block, size_t bytes);\n    \
             int32_t (*wait)(void *context);\n}} {library}_store;\n"
        );
    }
    for model in models {
        let prefix = prefix(name, models, model);
        let stages = model.streamed_stages();
        let store = match stages.len() {
            _ if !model.is_streamed() => String::new(),
            0 | 1 => format!(",\n    const {library}_store *store"),
            several => format!(",\n    const {library}_store stores[{several}]"),
        };
        text += &format!("\n/* The model `{}`. */\n", comment(&model.cnn().cnn.name));
        if stages.len() > 1 {
            let names: Vec<String> =
                stages.iter().map(|stage| format!("`{}`", comment(&stage.label))).collect();
            text += &format!("\n/* Stages that read weights have a store each: {}. */\n", names.join(", "));
        }
        for (kind, access, fields) in [("inputs", "const ", inputs(model)), ("outputs", "", outputs(model))] {
            text += "\ntypedef struct {\n";
            for field in &fields {
                text += &format!(
                    "    /* {}: {} elements. */\n    {access}{} *{};\n    size_t {}_elements;\n",
                    comment(&field.described),
                    field.elements,
                    field.element[1],
                    field.c_name(),
                    field.name
                );
            }
            text += &format!("}} {prefix}_{kind};\n");
        }
        text += &format!(
            "\n/* Creates the model in a place, on an arena that is its own until the model is destroyed. Without the feature\n   \
             `weights` only the second function is there; its weights must stay as long as the model. */\n\
             {library}_status {prefix}_create({library}_place *place, void *arena, size_t arena_bytes{store});\n\
             {library}_status {prefix}_create_with_weights({library}_place *place, void *arena, size_t arena_bytes,\n    \
             const uint8_t *weights, size_t weight_bytes{store});\n\n\
             /* Runs one frame. */\n\
             {library}_status {prefix}_infer({library}_place *place, const {prefix}_inputs *inputs,\n    \
             const {prefix}_outputs *outputs);\n\n\
             /* Ends the model: its place and arena are free. */\n\
             {library}_status {prefix}_destroy({library}_place *place);\n"
        );
    }
    text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n"
}

/// A name that ends no comment.
fn comment(name: &str) -> String {
    one_line(name).replace("*/", "* /").replace("/*", "/ *")
}

/// Words of a place, as `template/capi.rs` has them.
const PLACE_WORDS: usize = 32;
