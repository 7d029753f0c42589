//! An example in C: `c/main.c` runs a frame of each model.

use std::fmt::Write;

use super::{Field, blocks, inputs, library, outputs, prefix, regions};
use crate::model::Model;
use crate::regions::NamedRegion;

/// The text of `c/main.c`.
pub fn program(name: &str, models: &[Model<'_>]) -> String {
    let (library, streamed) = (library(name), models.iter().any(Model::is_streamed));
    let upper = library.to_uppercase();
    let mut text = format!(
        "/* Runs a frame of each model on made-up inputs, and prints what comes out. Written by csdfc: a start for a program\n   \
         of your own. The README says how it is built, on a PC and for a board without an operating system. */\n\
         #include \"{library}.h\"\n\n#include <stdio.h>\n{}\n\
         {}\
         static {library}_place place;\n\n\
         /* Whether a call failed. */\n\
         static int failed(const char *call, int status) {{\n  \
         if (status != {upper}_OK) fprintf(stderr, \"%s: %s\\n\", call, {library}_status_text(status));\n  \
         return status != {upper}_OK;\n}}\n",
        if streamed { "#include <string.h>\n" } else { "" },
        arena(&upper, models)
    );
    if streamed {
        text += &store(&library, &upper);
    }
    let given: String = blocks(models).iter().map(|name| format!(", {name}, sizeof {name}")).collect();
    for model in models {
        text += &run(&library, &prefix(name, models, model), model, &given);
    }
    let calls: Vec<String> =
        models.iter().map(|model| format!("run_{}()", prefix(name, models, model))).collect();
    let open = match streamed {
        true => "  if (open_store()) return 1;\n",
        false => "",
    };
    let _ = write!(text, "\nint main(void) {{\n{open}  return {};\n}}\n", calls.join(" || "));
    text
}

/// The arena. Sections of regions are a board's own: on a PC, there is one memory.
fn arena(upper: &str, models: &[Model<'_>]) -> String {
    if regions(models).is_empty() {
        return format!(
            "static _Alignas(64) uint8_t arena[{upper}_ARENA_BYTES > 0 ? {upper}_ARENA_BYTES : 1];\n"
        );
    }
    let mut text = "/* A board without an operating system has a section for each memory region, which its linker script places. */\n\
                    #if defined(__ELF__) && !defined(__unix__)\n\
                    #define IN(name) __attribute__((section(name)))\n\
                    #else\n#define IN(name)\n#endif\n\n"
        .to_owned();
    for NamedRegion { name, .. } in regions(models) {
        let bytes = format!("{upper}_{}_BYTES", name.to_uppercase());
        let _ = writeln!(text, "static _Alignas(8) uint8_t {name}[{bytes}] IN(\".{name}\");");
    }
    text
}

/// A store that reads a file, or memory such as flash.
fn store(library: &str, upper: &str) -> String {
    format!(
        "\n#ifdef STORE_IN_FLASH\n\
         /* The content of store.bin, which the linker puts there, by `.incbin` for instance. */\n\
         extern const uint8_t store_bin[{upper}_STORE_BYTES];\n\n\
         static void start(void *context, uint64_t at, uint8_t *block, size_t bytes) {{\n  \
         (void)context;\n  memcpy(block, store_bin + (size_t)at, bytes);\n}}\n\n\
         static int32_t wait_for(void *context) {{\n  (void)context;\n  return 0;\n}}\n\n\
         static int open_store(void) {{ return 0; }}\n\
         #else\n\
         static FILE *file;\n\
         static int32_t unread;\n\n\
         /* This store reads at once. One with DMA would begin here, and end in `wait_for`. */\n\
         static void start(void *context, uint64_t at, uint8_t *block, size_t bytes) {{\n  \
         (void)context;\n  \
         if (fseek(file, (long)at, SEEK_SET) || fread(block, 1, bytes, file) != bytes) unread = 1;\n}}\n\n\
         static int32_t wait_for(void *context) {{\n  \
         int32_t result = unread;\n  (void)context;\n  unread = 0;\n  return result;\n}}\n\n\
         static int open_store(void) {{\n  \
         file = fopen(\"store.bin\", \"rb\");\n  if (!file) perror(\"store.bin\");\n  return !file;\n}}\n\
         #endif\n\n\
         static const {library}_store store = {{NULL, start, wait_for}};\n"
    )
}

/// The function that runs a frame of a model, in the arena that is given to it.
fn run(library: &str, prefix: &str, model: &Model<'_>, given: &str) -> String {
    let upper = prefix.to_uppercase();
    let mut text = format!("\nstatic int run_{prefix}(void) {{\n");
    let (inputs, outputs) = (inputs(model), outputs(model));
    let elements = |kind: &str, field: &Field<'_>| {
        format!("{upper}_{}_{}_ELEMENTS", kind.to_uppercase(), field.name.to_uppercase())
    };
    for (kind, fields) in [("input", &inputs), ("output", &outputs)] {
        for field in fields {
            let (c_type, name) = (field.element[1], field.name);
            let _ = writeln!(text, "  static {c_type} {kind}_{name}[{}];", elements(kind, field));
        }
    }
    for (kind, fields) in [("input", &inputs), ("output", &outputs)] {
        let values: Vec<String> =
            fields.iter().map(|field| format!("{kind}_{}, {}", field.name, elements(kind, field))).collect();
        let _ = writeln!(text, "  const {prefix}_{kind}s {kind}s = {{{}}};", values.join(", "));
    }
    for field in &inputs {
        let value = match field.element[1] {
            "float" => "(float)(i % 17) / 8.0f - 1.0f".to_owned(),
            integer => format!("({integer})(i % 101)"),
        };
        let (elements, name) = (elements("input", field), field.name);
        let _ = writeln!(text, "  for (size_t i = 0; i < {elements}; i++) input_{name}[i] = {value};");
    }
    let stores = match model.streamed_stages().len() {
        _ if !model.is_streamed() => String::new(),
        0 | 1 => ", &store".to_owned(),
        several => {
            let _ = writeln!(
                text,
                "  const {library}_store stores[{several}] = {{{}}};",
                vec!["store"; several].join(", ")
            );
            ", stores".to_owned()
        }
    };
    let mut call = |name: &str, arguments: &str| {
        let _ = writeln!(
            text,
            "  if (failed(\"{prefix}_{name}\", {prefix}_{name}(&place{arguments}))) return 1;"
        );
    };
    call("create", &format!("{given}{stores}"));
    if model.keeps_state() {
        call("reset", "");
    }
    call("infer", ", &inputs, &outputs");
    for field in &outputs {
        let (format, cast) = match field.element[1] {
            "float" => ("%.9g", "(double)"),
            _ => ("%lld", "(long long)"),
        };
        let (elements, name) = (elements("output", field), field.name);
        let _ = writeln!(
            text,
            "  for (size_t i = 0; i < {elements} && i < 10; i++) printf(\"{name} {format}\\n\", {cast}output_{name}[i]);"
        );
    }
    let _ = writeln!(text, "  return failed(\"{prefix}_destroy\", {prefix}_destroy(&place));\n}}");
    text
}
