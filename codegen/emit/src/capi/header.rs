//! The header that declares the functions for C.

use std::fmt::Write;

use csdfc_plan::plan::Plan;

use super::{PLACE_WORDS, STATUSES, blocks, comment, inputs, library, outputs, prefix, regions};
use crate::model::{Model, Packed};
use crate::regions::NamedRegion;
use crate::{boundary, hash, state};

/// Numbers of inputs and outputs.
fn macros(prefix: &str, model: &Model<'_>) -> String {
    let upper = prefix.to_uppercase();
    let mut text = "\n/* Elements, and the model's dimensions, which are no order in memory. A quantized input has a scale and a zero \
                    point:\n   its integer q stands for scale * (q - zero point). */\n"
        .to_owned();
    for (kind, fields) in [("INPUT", inputs(model)), ("OUTPUT", outputs(model))] {
        for field in fields {
            let name = format!("{upper}_{kind}_{}", field.name.to_uppercase());
            let dims: Vec<String> = field.dims.iter().map(usize::to_string).collect();
            let _ = writeln!(text, "#define {name}_ELEMENTS {}", field.elements);
            let _ = writeln!(text, "#define {name}_SHAPE {{{}}}", dims.join(", "));
            if let Some((scale, zero_point)) = field.quantization {
                let _ = writeln!(text, "#define {name}_SCALE {scale:?}f");
                let _ = writeln!(text, "#define {name}_ZERO_POINT ({zero_point})");
            }
        }
    }
    text
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

/// The macros with the bytes of the arena.
fn arena_bytes(upper: &str, plan: &Plan, models: &[Model<'_>]) -> String {
    if regions(models).is_empty() {
        let arena = plan.memory.arena;
        return format!(
            "/* Bytes of the arena. It must begin at a multiple of 4, and is best at one of 64. */\n\
             #define {upper}_ARENA_BYTES {arena}\n"
        );
    }
    let mut text =
        "/* Bytes of the arena in each memory region of the board. They must begin at a multiple of 4. */\n"
            .to_owned();
    for NamedRegion { name, region } in regions(models) {
        let _ = writeln!(text, "#define {upper}_{}_BYTES {}", name.to_uppercase(), region.bytes);
    }
    text
}

/// The text of the header.
pub fn header(name: &str, plan: &Plan, models: &[Model<'_>], packed: &Packed) -> String {
    let weights = packed.weights.len();
    let streamed = models.iter().any(Model::is_streamed);
    let library = library(name);
    let upper = library.to_uppercase();
    let (application, file) = (comment(&plan.application), format!("{library}.h"));
    let blocks = blocks(models);
    let place_words = PLACE_WORDS + blocks.len();
    let arena = arena_bytes(&upper, plan, models);
    // Only a store can fail to be read.
    let last = if streamed { STATUSES.len() } else { STATUSES.len() - 1 };
    let status = |(number, (name, text)): (usize, &(&str, &str))| {
        format!("    /* {text} */\n    {upper}_{name} = {number}")
    };
    let statuses: Vec<String> = STATUSES[..last].iter().enumerate().map(status).collect();
    let statuses = statuses.join(",\n");
    let (version, hash) = (&plan.csdfc, hash::hash(&packed.weights));
    let mut text = format!(
        "/* {file}: the models of `{application}`, for C. Written by csdfc; emitting again replaces it.\n\
         \n   \
         Every function returns {upper}_OK, or a status that says what is wrong with its arguments; then it has\n   \
         computed nothing. Functions refuse null pointers. Any other pointer must lead to as many elements as are\n   \
         stated, and these must not overlap with another argument. A model is used by one thread at a time. No\n   \
         frame allocates, and nothing unwinds into C: a mistake of the library's own would end the process. */\n\
         #ifndef {upper}_H\n#define {upper}_H\n\n\
         #include <stddef.h>\n#include <stdint.h>\n\n\
         /* The csdfc that wrote this, and the hash of weights.bin. */\n\
         #define {upper}_CSDFC \"{version}\"\n\
         #define {upper}_WEIGHT_HASH UINT64_C(0x{hash:016x})\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n\
         {arena}\n\
         /* Bytes of weights.bin. */\n\
         #define {upper}_WEIGHT_BYTES {weights}\n\n\
         typedef enum {{\n{statuses}\n\
         }} {library}_status;\n\n\
         /* What a status says. */\n\
         const char *{library}_status_text(int status);\n\n\
         /* The place of a model, filled with zeros until one is created in it; it must not be moved or copied. */\n\
         typedef struct {{\n    uint64_t words[{place_words}];\n}} {library}_place;\n\n\
         /* A place for an update, new weights of the same plan: src/update.rs says how to write one. What follows the\n   \
         update does not matter, and a null pointer is an empty slot. */\n\
         typedef struct {{\n    const uint8_t *content;\n    size_t bytes;\n}} {library}_slot;\n\n\
         /* The number of the slot with the newest update, or -1 if neither holds one. */\n\
         int {library}_newest(const {library}_slot slots[2]);\n\n\
         /* The number of the slot to write a new update into, which is never that of the newest. */\n\
         int {library}_oldest(const {library}_slot slots[2]);\n"
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
    let given: Vec<String> = blocks.iter().map(|name| format!("void *{name}, size_t {name}_bytes")).collect();
    let given = given.join(",\n    ");
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
        text += &macros(&prefix, model);
        text += &header_rows(&prefix, model);
        let [owned, shared] = match model.takes_turns() {
            false => ["is its own until the model is destroyed", ""],
            true => [
                "other models of this file may share. They take turns, on\n   one thread. The arena is cleared, so \
                 create all models on it before the first hop of a stream, and reset those that keep a state",
                " if no other model is on it",
            ],
        };
        let of_batch = match model.batch() {
            1 => String::new(),
            batch => format!(
                " A call of the model takes {batch} frames: call it for each of them, one after another."
            ),
        };
        text += &format!(
            "\n/* Creates the model in a place, on an arena that {owned}. Without the feature\n   \
             `weights` the first function is not there. Weights and updates must stay as long as the model. */\n\
             {library}_status {prefix}_create({library}_place *place, {given}{store});\n\
             {library}_status {prefix}_create_with_weights({library}_place *place, {given},\n    \
             const uint8_t *weights, size_t weight_bytes{store});\n\
             {library}_status {prefix}_create_with_update({library}_place *place, {given},\n    \
             const uint8_t *update, size_t update_bytes{store});\n\n\
             /* Runs one frame.{of_batch} */\n\
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
