//! The C interface of a crate: `src/capi.rs`, behind the feature `capi`, and the header that declares it.

use csdfc_plan::format::Element;
use csdfc_plan::operator::InputElement;
use csdfc_plan::plan::Plan;

use super::boundary;
use super::model::{InputField, Model, OutputField, Packed};
use super::names::{camel, one_line};
use super::source::Source;
use super::state;

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
            element: match field.input.element {
                InputElement::F32 => ["f32", "float"],
                InputElement::U8 => ["u8", "uint8_t"],
                InputElement::I8 => ["i8", "int8_t"],
            },
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
    let template = include_str!("template/capi.rs");
    let template = match models.iter().any(Model::takes_turns) {
        true => template.replace("arena::Arena;", "arena::{Arena, Memory};"),
        false => template.to_owned(),
    };
    template + store + &source.finish()
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
    let takes_turns = model.takes_turns();
    let make = |source: &mut Source, made: &str| {
        source.open("let make = |arena: *mut Arena| {");
        match takes_turns {
            false => {
                source.line("// SAFETY: `create` makes an arena, which the header leaves to the model.");
                source.line("let arena: &'static mut Arena = unsafe { &mut *arena };");
            }
            true => {
                source.line(
                    "// SAFETY: `create` makes an arena. The header asks that the models on it take turns.",
                );
                source.line("let memory = unsafe { Memory::shared(arena) };");
            }
        }
        source.line(made);
        source.close("};");
        source.line(
            "// SAFETY: the header asks for a place of zeros, and for an arena that nobody uses meanwhile.",
        );
        source.line(format!("unsafe {{ create({number}, place, arena, arena_bytes, make) }}"));
        source.close("}");
    };
    function(source, "weights", "create", &[&place[..], store].concat());
    if streamed {
        take(source, pattern, "stores_of(store)");
    }
    make(
        source,
        &match takes_turns {
            false => format!("Ok(crate::{module}::Model::new(arena{stored}))"),
            true => format!("Ok(crate::{module}::Model::on(memory, crate::weights::embedded()))"),
        },
    );
    function(source, "", "create_with_weights", &[&place[..], &weights[..], store].concat());
    take(source, "weights", "bytes(weights, weight_bytes)");
    if streamed {
        take(source, pattern, "stores_of(store)");
    }
    make(
        source,
        &match takes_turns {
            false => format!("crate::{module}::Model::with_weights(arena, weights{stored}).map_err(refused)"),
            true => format!(
                "Ok(crate::{module}::Model::on(memory, crate::weights::verify(weights).map_err(refused)?))"
            ),
        },
    );

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

    write_rows(source, prefix, model);
    let (inputs_type, outputs_type) =
        (format!("inputs: *const {camel}InputRows"), format!("outputs: *const {camel}OutputRows"));
    let arguments = ["place: *mut Place", &inputs_type, &outputs_type, "context: *mut c_void"];
    function(source, "", "infer_rows", &arguments);
    source.line("let lacks = Cell::new(false);");
    source.open("let infer = || {");
    source.line("// SAFETY: the header asks for a place of zeros or a model, and stated lengths.");
    source.open("unsafe {");
    source.line(format!("let model: &mut {model_type} = created({number}, place)?;"));
    source.line("let (inputs, outputs) = (read(inputs)?, read(outputs)?);");
    for field in model.inputs.iter().filter(|field| !field.by_rows) {
        let (name, element) = (&field.name, field.element());
        let elements = model.cnn().layers[field.layer].tensor.shape.elements();
        source.line(format!("frame::<{element}, {elements}>(inputs.{name}, inputs.{name}_elements)?;"));
    }
    let by_rows = model.inputs.iter().filter(|field| field.by_rows);
    let functions = by_rows.map(|field| format!("inputs.{}.is_none()", field.name));
    let functions =
        functions.chain(model.outputs.iter().map(|field| format!("outputs.{}.is_none()", field.name)));
    for is_none in functions {
        source.open(format!("if {is_none} {{"));
        source.line("return Err(Status::Null);");
        source.close("}");
    }
    source.line("let inputs = Rows { functions: inputs, context, lacks: &lacks };");
    source.line("let outputs = Rows { functions: outputs, context, lacks: &lacks };");
    source.line(match streamed {
        true => "model.infer_rows(inputs, outputs).map_err(|_| Status::Store)?;",
        false => "model.infer_rows(inputs, outputs);",
    });
    source.close("}");
    source.line("if lacks.get() { Err(Status::Null) } else { Ok(()) }");
    source.close("};");
    source.line("status(infer())");
    source.close("}");

    if model.keeps_state() {
        function(source, "", "reset", &["place: *mut Place"]);
        source.line("// SAFETY: the header asks for a place of zeros or a model that nobody else uses.");
        source.line(format!("let model = unsafe {{ created::<{model_type}>({number}, place) }};"));
        source.line("status(model.map(|model| model.reset()))");
        source.close("}");
        for (name, pointer, from) in [("save", "*mut u8", "room"), ("restore", "*const u8", "frame")] {
            let state = format!("state: {pointer}");
            function(source, "", name, &["place: *mut Place", &state, "state_bytes: usize"]);
            source.open(format!("let {name} = || {{"));
            source.line("// SAFETY: the header asks for a place of zeros or a model, and stated lengths.");
            source.open("unsafe {");
            source.line(format!("let model: &mut {model_type} = created({number}, place)?;"));
            source.line(format!("model.{name}({from}(state, state_bytes)?);"));
            source.close("}");
            source.line("Ok(())");
            source.close("};");
            source.line(format!("status({name}())"));
            source.close("}");
        }
    }

    function(source, "", "destroy", &["place: *mut Place"]);
    source.line("// SAFETY: the header asks for a place of zeros or a model that nobody else uses.");
    source.line(format!("unsafe {{ destroy::<{model_type}>({number}, place) }}"));
    source.close("}");
}

/// Writes the functions by which a model takes and returns rows.
fn write_rows(source: &mut Source, prefix: &str, model: &Model<'_>) {
    let (camel, module) = (camel(prefix), &model.module);
    source.gap();
    source.line("#[repr(C)]");
    source.open(format!("pub struct {camel}InputRows {{"));
    for field in &model.inputs {
        let name = &field.name;
        let function = match (field.by_rows, field.element(), field.planar()) {
            (false, element, _) => {
                source.line(format!("pub {name}: *const {element},"));
                source.line(format!("pub {name}_elements: usize,"));
                continue;
            }
            (true, "f32", _) => "fn(*mut c_void, usize, *mut f32)",
            (true, element, false) => &format!("fn(*mut c_void, usize) -> *const {element}"),
            (true, element, true) => &format!("fn(*mut c_void, usize, usize) -> *const {element}"),
        };
        source.line(format!("pub {name}: Option<unsafe extern \"C\" {function}>,"));
    }
    source.close("}");
    source.gap();
    source.open(format!("impl crate::{module}::InputRows for Rows<'_, {camel}InputRows> {{"));
    for (i, field) in model.inputs.iter().enumerate() {
        if i > 0 {
            source.gap();
        }
        let (name, shape) = (&field.name, &model.cnn().layers[field.layer].tensor.shape);
        source.open(format!("{} {{", field.signature(shape)));
        if field.by_rows {
            let arguments = match (field.element(), field.planar()) {
                ("f32", _) => "y, row.as_mut_ptr()",
                (_, false) => "y",
                (_, true) => "y, channel",
            };
            source.line(
                "// SAFETY: the function is called with its own context and for rows as the header says.",
            );
            let call = |function: &str| format!("unsafe {{ {function}(self.context, {arguments}) }}");
            if field.element() == "f32" {
                source.open(format!("if let Some(fill) = self.functions.{name} {{"));
                source.line(format!("{};", call("fill")));
                source.close("}");
            } else {
                source.line(format!(
                    "let row = self.functions.{name}.map_or(ptr::null(), |row| {});",
                    call("row")
                ));
                source.line("// SAFETY: the header asks for null or a whole row.");
                let elements =
                    shape.row_elements() / if field.planar() { shape.channels().max(1) } else { 1 };
                source.line(format!("unsafe {{ self.bytes(row, &[0; {elements}]) }}"));
            }
        } else {
            source.line("// SAFETY: the frame was checked before it was handed on.");
            source.line(format!("unsafe {{ &*self.functions.{name}.cast() }}"));
        }
        source.close("}");
    }
    source.close("}");
    source.gap();
    source.line("#[repr(C)]");
    source.open(format!("pub struct {camel}OutputRows {{"));
    for (field, Field { name, element: [element, _], .. }) in model.outputs.iter().zip(outputs(model)) {
        let function = match model.written(field.layer).is_empty() {
            true => format!("fn(*mut c_void, usize, usize) -> *mut {element}"),
            false => format!("fn(*mut c_void, usize, *const {element})"),
        };
        source.line(format!("pub {name}: Option<unsafe extern \"C\" {function}>,"));
    }
    source.close("}");
    source.gap();
    source.open(format!("impl crate::{module}::OutputRows for Rows<'_, {camel}OutputRows> {{"));
    for (o, field) in model.outputs.iter().enumerate() {
        if o > 0 {
            source.gap();
        }
        let (name, row) = (&field.name, model.cnn().layers[field.layer].tensor.shape.row_elements());
        source.open(format!("{} {{", model.output_signature(field)));
        let called =
            "// SAFETY: the function is called with its own context and for rows as the header says.";
        if model.written(field.layer).is_empty() {
            source.line(format!("let room = self.functions.{name}.map_or(ptr::null_mut(), |room| {{"));
            source.line(format!("    {called}"));
            source.line("    unsafe { room(self.context, y.start, y.len()) }");
            source.line("});");
            source.line("// SAFETY: the header asks for room for these rows.");
            source.line(format!("unsafe {{ self.room(room, y, {row}) }}"));
        } else {
            source.open(format!("if let Some(take) = self.functions.{name} {{"));
            source.line(called);
            source.line("unsafe { take(self.context, y, row.as_ptr()) };");
            source.close("}");
        }
        source.close("}");
    }
    source.close("}");
}

/// The structures of functions for rows, in the header.
fn header_rows(prefix: &str, model: &Model<'_>) -> String {
    let mut text = format!(
        "\n/* What hands over the rows of the inputs. They are asked for from the top, each once a frame; each function is\n   \
         called with the context that {prefix}_infer_rows got. */\ntypedef struct {{\n"
    );
    let fields = inputs(model);
    for (field, c) in model.inputs.iter().zip(&fields) {
        let (name, shape) = (c.c_name(), &model.cnn().layers[field.layer].tensor.shape);
        let described = comment(&boundary::describe_rows(field, shape));
        text += &match (field.by_rows, field.element(), field.planar()) {
            (false, ..) => format!(
                "    /* {described}: {} elements. */\n    const {} *{name};\n    size_t {}_elements;\n",
                c.elements, c.element[1], c.name
            ),
            (true, "f32", _) => {
                format!("    /* {described}. */\n    void (*{name})(void *context, size_t y, float *row);\n")
            }
            (true, _, is_planar) => {
                let channel = if is_planar { ", size_t channel" } else { "" };
                format!(
                    "    /* {described}. They stay until the next row is asked for. */\n    \
                     const {} *(*{name})(void *context, size_t y{channel});\n",
                    c.element[1]
                )
            }
        };
    }
    text += &format!(
        "}} {prefix}_input_rows;\n\n/* What takes the rows of the outputs, called with the same context. */\ntypedef struct {{\n"
    );
    for (field, c) in model.outputs.iter().zip(outputs(model)) {
        let row = model.cnn().layers[field.layer].tensor.shape.row_elements();
        let (name, label, element) = (c.c_name(), comment(field.label), c.element[1]);
        text += &match model.written(field.layer).is_empty() {
            true => format!(
                "    /* Room for `rows` rows of `{label}` from row `y` on, {row} elements each. They are complete when the\n       \
                 next rows are asked for, or the frame ends. A null or unaligned pointer would end the process. */\n    \
                 {element} *(*{name})(void *context, size_t y, size_t rows);\n"
            ),
            false => format!(
                "    /* Takes row `y` of `{label}`: {row} elements. */\n    \
                 void (*{name})(void *context, size_t y, const {element} *row);\n"
            ),
        };
    }
    text + &format!("}} {prefix}_output_rows;\n")
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
        text += &header_rows(&prefix, model);
        let [owned, shared] = match model.takes_turns() {
            false => ["is its own until the model is destroyed", ""],
            true => [
                "other models of this file may share. They take turns, on\n   one thread. The arena is cleared, so \
                 create all models on it before the first hop of a stream, and reset those that keep a state",
                " if no other model is on it",
            ],
        };
        text += &format!(
            "\n/* Creates the model in a place, on an arena that {owned}. Without the feature\n   \
             `weights` only the second function is there; its weights must stay as long as the model. */\n\
             {library}_status {prefix}_create({library}_place *place, void *arena, size_t arena_bytes{store});\n\
             {library}_status {prefix}_create_with_weights({library}_place *place, void *arena, size_t arena_bytes,\n    \
             const uint8_t *weights, size_t weight_bytes{store});\n\n\
             /* Runs one frame. */\n\
             {library}_status {prefix}_infer({library}_place *place, const {prefix}_inputs *inputs,\n    \
             const {prefix}_outputs *outputs);\n\n\
             /* Runs one frame whose rows are handed over and taken one by one. If a function returns null for a row, the\n   \
             outputs are of no use, and the status is {upper}_NULL. The functions must not use the model. */\n\
             {library}_status {prefix}_infer_rows({library}_place *place, const {prefix}_input_rows *inputs,\n    \
             const {prefix}_output_rows *outputs, void *context);\n\n"
        );
        if model.keeps_state() {
            let begins = match model.is_stream() {
                true => "Begins a new stream: the rows so far are forgotten.",
                false => "Begins anew: what was kept of the frames so far is forgotten.",
            };
            let bytes = state::saved_bytes(model);
            text += &format!(
                "/* {begins} */\n\
                 {library}_status {prefix}_reset({library}_place *place);\n\n\
                 /* Bytes of what the model keeps from frame to frame. */\n\
                 #define {}_STATE_BYTES {bytes}\n\n\
                 /* Writes down what the model keeps, and goes on from what was written down. */\n\
                 {library}_status {prefix}_save({library}_place *place, uint8_t *state, size_t state_bytes);\n\
                 {library}_status {prefix}_restore({library}_place *place, const uint8_t *state, size_t state_bytes);\n\n",
                prefix.to_uppercase()
            );
        }
        text += &format!(
            "/* Ends the model: its place is free, and so is its arena{shared}. */\n\
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
