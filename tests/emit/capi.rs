//! The C interface of emitted crates, called from a C program.

use std::path::Path;
use std::process::Command;

use csdfc_input::app::resolve::Application;
use csdfc_plan::plan::Plan;
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Value};
use csdfc_tests::{application, skipped};

use super::{Emitted, FRAMES, cargo, inputs, values_of};

/// A store that reads a file, a limited number of times.
const STORE: &str = "static struct { FILE *file; int left, failed; } reader = {NULL, 1000000, 0};\n\n\
    static void begin(void *context, uint64_t at, uint8_t *block, size_t bytes) {\n  \
    if (context != &reader) exit(1);\n  \
    if (reader.left-- <= 0) { reader.failed = 7; return; }\n  \
    if (fseek(reader.file, (long)at, SEEK_SET) || fread(block, 1, bytes, reader.file) != bytes) reader.failed = 8;\n}\n\n\
    static int32_t finish(void *context) {\n  int failed = reader.failed;\n  \
    if (context != &reader) exit(1);\n  reader.failed = 0;\n  return failed;\n}\n\n";

/// Slots for updates: none, one and two of them hold one.
const SLOTS: &str = "  emitted_slot slots[2] = {{NULL, 0}, {update, 63}};\n  \
    EXPECT(emitted_newest(NULL), -1);\n  EXPECT(emitted_oldest(NULL), -1);\n  \
    EXPECT(emitted_newest(slots), -1);\n  EXPECT(emitted_oldest(slots), 0);\n  \
    slots[1].bytes = bytes;\n  EXPECT(emitted_newest(slots), 1);\n  EXPECT(emitted_oldest(slots), 0);\n  \
    slots[0] = slots[1];\n  EXPECT(emitted_newest(slots), 0);\n  EXPECT(emitted_oldest(slots), 1);\n";

/// A program that calls each model as often as the Rust program does, and writes its outputs. It also passes all
/// arguments that must be refused.
fn program(emitted: &Emitted<'_>, expected: &[Vec<Value>]) -> String {
    let mut text = "#include \"emitted.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n\
        static void *load(const char *name, size_t bytes) {\n  \
        FILE *file = fopen(name, \"rb\");\n  void *data = malloc(bytes + 1);\n  \
        if (!file || fread(data, 1, bytes + 1, file) != bytes) { perror(name); exit(1); }\n  \
        fclose(file);\n  return data;\n}\n\n\
        static void save(const char *name, const void *data, size_t bytes) {\n  \
        FILE *file = fopen(name, \"wb\");\n  \
        if (!file || fwrite(data, 1, bytes, file) != bytes) { perror(name); exit(1); }\n  fclose(file);\n}\n\n\
        #define EXPECT(call, expected) do { int status = (call); if (status != (expected)) { \\\n  \
        fprintf(stderr, \"%d: %s: %d\\n\", __LINE__, #call, status); exit(1); } } while (0)\n\n\
        "
    .to_owned();
    let blocks = blocks(&emitted.plan);
    for block in &blocks {
        let bytes = format!("EMITTED_{}_BYTES", block.to_uppercase());
        text += &format!("static _Alignas(64) unsigned char {block}[{bytes} + 64];\n");
    }
    // The arena as arguments, with the first or the last block as it is stated here.
    let arena = |first: &str, last: &str| {
        let of = |(i, block): (usize, &String)| match i {
            0 if !first.is_empty() => first.replace("arena", block),
            _ if i + 1 == blocks.len() && !last.is_empty() => {
                last.replace("arena", block).replace("ARENA", &block.to_uppercase())
            }
            _ => format!("{block}, sizeof {block}"),
        };
        blocks.iter().enumerate().map(of).collect::<Vec<String>>().join(", ")
    };
    let [whole, exact] = ["", "arena, EMITTED_ARENA_BYTES"].map(|last| arena("", last));
    let none = arena("NULL, sizeof arena", "");
    let unaligned = arena("", "arena + 1, sizeof arena - 1");
    let short = arena("", "arena, EMITTED_ARENA_BYTES - 1");
    if emitted.plan.store.is_some() {
        text += STORE;
    }
    let rows: Vec<CRows> = (0..emitted.plan.cnns.len()).map(|c| CRows::new(emitted, c)).collect();
    text.extend(rows.iter().map(|rows| rows.functions.as_str()));
    text += "int main(void) {\n  uint8_t *weights = load(\"weights.bin\", EMITTED_WEIGHT_BYTES);\n  \
             size_t bytes = EMITTED_WEIGHT_BYTES + 64;\n  uint8_t *update = load(\"update\", bytes);\n";
    text += SLOTS;
    if emitted.plan.store.is_some() {
        text += "  reader.file = fopen(\"store.bin\", \"rb\");\n  emitted_store of_one = {&reader, begin, finish};\n  \
                 emitted_store store[2] = {of_one, of_one};\n";
    }
    for (c, cnn) in emitted.plan.cnns.iter().enumerate() {
        let prefix = prefix(emitted, c);
        let (mut fill, mut save) = (String::new(), String::new());
        for (i, (name, value)) in cnn.inputs.iter().zip(&inputs(&emitted.plan, c)).enumerate() {
            let bytes = in_rows(value).len();
            let elements: usize = value.dims.iter().product();
            fill += &format!(
                "  inputs.{name} = load(\"input-{c}-{i}\", {bytes});\n  inputs.{name}_elements = {elements};\n"
            );
        }
        for (o, output) in cnn.outputs.iter().enumerate() {
            let name = &output.name;
            let elements = format!("outputs.{name}_elements");
            let count: usize = expected[c][o].dims.iter().product();
            fill += &format!(
                "  {elements} = {count};\n  outputs.{name} = malloc({count} * sizeof *outputs.{name});\n"
            );
            save += &format!(
                "  save(\"output-{c}-{o}\", outputs.{name}, {elements} * sizeof *outputs.{name});\n"
            );
        }
        let (input, output) = (&cnn.inputs[0], &cnn.outputs[0].name);
        // A model that reads weights gets a store, or one for each stage that reads. It fails when the test asks for it.
        let is_streamed = cnn.layers.iter().any(|layer| layer.streamed.is_some());
        let (store, failing) = match is_streamed {
            false => ("", String::new()),
            true => (
                ", store",
                format!(
                    "EXPECT({prefix}_create(&place, {whole}, NULL), EMITTED_NULL);\n  \
                     store[0].wait = NULL;\n  \
                     EXPECT({prefix}_create(&place, {whole}, store), EMITTED_NULL);\n  \
                     store[0].wait = finish;\n  \
                     EXPECT({prefix}_create(&place, {exact}, store), EMITTED_OK);\n  \
                     for (reader.left = 0; reader.left < 2; reader.left++) {{\n    int left = reader.left;\n    \
                     EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_STORE);\n    reader.left = left;\n  }}\n  \
                     reader.left = 1000000;\n  \
                     EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_OK);\n  \
                     EXPECT({prefix}_destroy(&place), EMITTED_OK);\n  "
                ),
            ),
        };
        let by_rows = &rows[c].call;
        let update = |bytes: &str, status: &str| {
            format!(
                "EXPECT({prefix}_create_with_update(&place, {whole}, update, {bytes}{store}), EMITTED_{status});\n  "
            )
        };
        // Once more from the first frame, with the weights of an update.
        let updated = [
            update("bytes - 1", "LENGTH"),
            "update[40] ^= 1;\n  ".into(),
            update("bytes", "WEIGHTS"),
            "update[40] ^= 1;\n  ".into(),
            update("bytes", "OK"),
            format!("for (int frame = 0; frame < {FRAMES}; frame++) "),
            format!("EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_OK);\n"),
            save.replace("output-", "updated-"),
            format!("  EXPECT({prefix}_destroy(&place), EMITTED_OK);\n"),
        ]
        .concat();
        // The first frame is that after which a model is saved, and goes on.
        let keeps = cnn.stream.is_some() || !cnn.states.is_empty();
        let (first, reset) = match keeps {
            false => (0, String::new()),
            true => (
                1,
                format!(
                    "EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_OK);\n  \
                     EXPECT({prefix}_reset(&place), EMITTED_OK);\n  \
                     EXPECT({prefix}_reset(NULL), EMITTED_NULL);\n  \
                     static uint8_t state[{}_STATE_BYTES];\n  \
                     EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_OK);\n  \
                     EXPECT({prefix}_save(&place, NULL, sizeof state), EMITTED_NULL);\n  \
                     EXPECT({prefix}_save(&place, state, sizeof state - 1), EMITTED_LENGTH);\n  \
                     EXPECT({prefix}_save(&place, state, sizeof state), EMITTED_OK);\n  \
                     EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_OK);\n  \
                     EXPECT({prefix}_restore(&place, state, sizeof state + 1), EMITTED_LENGTH);\n  \
                     EXPECT({prefix}_restore(&place, state, sizeof state), EMITTED_OK);\n  ",
                    prefix.to_uppercase()
                ),
            ),
        };
        text += &format!(
            "{{\n  emitted_place place = {{{{0}}}};\n  \
             {prefix}_inputs inputs;\n  {prefix}_outputs outputs;\n{fill}  \
             EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_NOT_CREATED);\n  \
             EXPECT({prefix}_destroy(&place), EMITTED_NOT_CREATED);\n  \
             EXPECT({prefix}_create(NULL, {whole}{store}), EMITTED_NULL);\n  \
             EXPECT({prefix}_create(&place, {none}{store}), EMITTED_NULL);\n  \
             EXPECT({prefix}_create(&place, {unaligned}{store}), EMITTED_ALIGNMENT);\n  \
             EXPECT({prefix}_create(&place, {short}{store}), EMITTED_LENGTH);\n  \
             EXPECT({prefix}_create_with_weights(&place, {whole}, NULL, 0{store}), EMITTED_NULL);\n  \
             EXPECT({prefix}_create_with_weights(&place, {whole}, weights, EMITTED_WEIGHT_BYTES - 4{store}), \
             EMITTED_LENGTH);\n  \
             weights[0] ^= 1;\n  \
             EXPECT({prefix}_create_with_weights(&place, {whole}, weights, EMITTED_WEIGHT_BYTES{store}), \
             EMITTED_WEIGHTS);\n  \
             weights[0] ^= 1;\n  \
             EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_NOT_CREATED);\n  \
             EXPECT({prefix}_create_with_weights(&place, {whole}, weights, EMITTED_WEIGHT_BYTES{store}), \
             EMITTED_OK);\n  \
             EXPECT({prefix}_destroy(&place), EMITTED_OK);\n  {failing}\
             EXPECT({prefix}_create(&place, {exact}{store}), EMITTED_OK);\n  \
             EXPECT({prefix}_infer(&place, NULL, &outputs), EMITTED_NULL);\n  \
             EXPECT({prefix}_infer(&place, &inputs, NULL), EMITTED_NULL);\n  \
             inputs.{input}_elements -= 1;\n  \
             EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_LENGTH);\n  \
             inputs.{input}_elements += 1;\n  \
             outputs.{output}_elements += 1;\n  \
             EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_LENGTH);\n  \
             outputs.{output}_elements -= 1;\n  {reset}\
             for (int frame = {first}; frame < {FRAMES}; frame++) \
             EXPECT({prefix}_infer(&place, &inputs, &outputs), EMITTED_OK);\n{save}{by_rows}  \
             EXPECT({prefix}_destroy(&place), EMITTED_OK);\n  {updated}}}\n"
        );
    }
    text + "  return 0;\n}\n"
}

/// The names of the blocks that an arena consists of.
fn blocks(plan: &Plan) -> Vec<String> {
    let regions = plan.regions.iter().filter(|region| region.bytes > 0);
    let names: Vec<String> = regions.map(|region| region.name.clone()).collect();
    if names.is_empty() { vec!["arena".into()] } else { names }
}

/// The beginning of the names of a CNN.
fn prefix(emitted: &Emitted<'_>, c: usize) -> String {
    match emitted.plan.cnns.len() {
        1 => "emitted".to_owned(),
        _ => format!("emitted_{}", emitted.plan.cnns[c].name),
    }
}

/// Functions of C that hand over and take the rows of a CNN, and code that runs a frame with them, which must make the
/// outputs of the frame before.
struct CRows {
    functions: String,
    call: String,
}

impl CRows {
    fn new(emitted: &Emitted<'_>, c: usize) -> Self {
        let (cnn, prefix) = (&emitted.plan.cnns[c], prefix(emitted, c));
        let header = std::fs::read_to_string(emitted.folder().join("include/emitted.h")).expect("a header");
        let structure = |kind: &str| {
            let (fields, _) = header.split_once(&format!("}} {prefix}_{kind}_rows;")).expect("a structure");
            fields.rsplit_once("typedef struct {").expect("its beginning").1.to_owned()
        };
        let row_of = |name: &String| {
            let layer = cnn.layers.iter().find(|layer| layer.name == *name || layer.output == *name);
            layer.expect("a layer").output_shape.clone()
        };
        let mut functions =
            format!("static {prefix}_inputs given_{c};\nstatic {prefix}_outputs taken_{c};\n\n");
        let (mut call, mut has_bytes) = (String::new(), false);
        for (kind, tensors) in [
            ("input", cnn.inputs.iter().map(|name| (name, name)).collect::<Vec<_>>()),
            ("output", cnn.outputs.iter().map(|output| (&output.name, &output.tensor)).collect()),
        ] {
            let fields = structure(kind);
            for (name, tensor) in tensors {
                let shape = row_of(tensor);
                let row = shape.row_elements();
                let field = fields.lines().find(|line| line.contains(&format!("*{name})(")));
                let Some(field) = field else {
                    call += &format!(
                        "  {kind}_rows.{name} = inputs.{name};\n  {kind}_rows.{name}_elements = inputs.{name}_elements;\n"
                    );
                    continue;
                };
                let (plane, width) = (shape.rows(), row / shape.channels().max(1));
                let body = if field.contains("float *row)") && kind == "input" {
                    format!("memcpy(row, given_{c}.{name} + y * {row}, {row} * sizeof *row);")
                } else if field.contains("size_t channel") {
                    format!("return lacks_{c} ? NULL : given_{c}.{name} + (channel * {plane} + y) * {width};")
                } else if kind == "input" {
                    format!("return lacks_{c} ? NULL : given_{c}.{name} + y * {row};")
                } else if field.contains("size_t rows)") {
                    format!("if (y + rows > {plane}) exit(1);\n  return taken_{c}.{name} + y * {row};")
                } else {
                    format!("memcpy(taken_{c}.{name} + y * {row}, row, {row} * sizeof *row);")
                };
                has_bytes |= kind == "input" && !field.contains("float *row)");
                let head = field.trim().replace(&format!("(*{name})"), &format!("{kind}_{c}_{name}"));
                functions += &format!(
                    "static {} {{\n  if (context != &given_{c}) exit(1);\n  {body}\n}}\n\n",
                    head.trim_end_matches(';')
                );
                call += &format!("  {kind}_rows.{name} = {kind}_{c}_{name};\n");
            }
        }
        let infer = |inputs: &str, outputs: &str, status: &str| {
            format!(
                "  EXPECT({prefix}_infer_rows(&place, {inputs}, {outputs}, &given_{c}), EMITTED_{status});\n"
            )
        };
        let mut compare = String::new();
        for output in &cnn.outputs {
            let bytes = format!("outputs.{0}_elements * sizeof *outputs.{0}", output.name);
            call += &format!(
                "  taken_{c}.{0} = malloc({bytes});\n  memset(taken_{c}.{0}, 1, {bytes});\n",
                output.name
            );
            compare += &format!("  if (memcmp(taken_{c}.{0}, outputs.{0}, {bytes})) exit(1);\n", output.name);
        }
        let mut refused = infer("NULL", "&output_rows", "NULL") + &infer("&input_rows", "NULL", "NULL");
        let output = &cnn.outputs[0].name;
        refused += &format!("  output_rows.{output} = NULL;\n");
        refused += &infer("&input_rows", "&output_rows", "NULL");
        refused += &format!("  output_rows.{output} = output_{c}_{output};\n");
        if has_bytes {
            functions = format!("static int lacks_{c} = 0;\n{functions}");
            refused += &format!("  lacks_{c} = 1;\n");
            refused += &infer("&input_rows", "&output_rows", "NULL");
            refused += &format!("  lacks_{c} = 0;\n");
        }
        let frames: String = (0..2).map(|_| infer("&input_rows", "&output_rows", "OK")).collect();
        call = format!(
            "  given_{c} = inputs;\n  {prefix}_input_rows input_rows;\n  {prefix}_output_rows output_rows;\n{call}\
             {refused}{frames}{compare}"
        );
        CRows { functions, call }
    }
}

/// The bytes of a value as C hands it over: images as rows of pixels of channels, camera bytes as they come.
pub(super) fn in_rows(value: &Value) -> Vec<u8> {
    let order = |i: usize| match Shape::new(value.dims.clone()).row_axis() {
        Some(_) => {
            let [_, channels, height, width] = value.dims[..] else { return i };
            let (pixel, channel) = (i / channels, i % channels);
            channel * height * width + pixel
        }
        None => i,
    };
    match &value.data {
        Data::F32(values) => (0..values.len()).flat_map(|i| values[order(i)].to_le_bytes()).collect(),
        Data::I64(values) => (0..values.len()).flat_map(|i| values[order(i)].to_le_bytes()).collect(),
        Data::U8(values) => (0..values.len()).map(|i| values[order(i)]).collect(),
        Data::I8(values) => (0..values.len()).map(|i| values[order(i)].cast_unsigned()).collect(),
    }
}

fn run(program: &mut Command) {
    let output = program.output().expect("a program");
    assert!(output.status.success(), "{program:?}: {}", String::from_utf8_lossy(&output.stderr));
}

pub(super) fn check(application: &Application) {
    check_crate(&Emitted::new(application));
}

pub(super) fn check_crate(emitted: &Emitted<'_>) {
    if !Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skipped("crates called from C: there is no compiler cc");
        return;
    }
    let folder: &Path = emitted.folder();
    let expected = emitted.expected();
    std::fs::write(folder.join("program.c"), program(emitted, &expected)).expect("a program");
    let update = csdfc_emit::emit_update(&emitted.plan, &values_of(emitted.application), 1);
    std::fs::write(folder.join("update"), update.expect("an update")).expect("a file");
    for (c, _) in emitted.plan.cnns.iter().enumerate() {
        for (i, value) in inputs(&emitted.plan, c).iter().enumerate() {
            std::fs::write(folder.join(format!("input-{c}-{i}")), in_rows(value)).expect("an input");
        }
    }
    for (kind, library) in
        [("staticlib", "target/debug/libemitted.a"), ("cdylib", "target/debug/libemitted.so")]
    {
        cargo(folder, &["rustc", "--offline", "--lib", "--features", "capi", "--crate-type", kind]);
        let strict =
            ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Iinclude", "program.c", "-o", kind];
        let libraries = [library, "-lpthread", "-ldl", "-lm"];
        run(Command::new("cc").current_dir(folder).args(strict).args(libraries));
        // The crate's own example.
        let example = strict.map(|argument| match argument {
            "program.c" => "c/main.c",
            argument if argument == kind => "example",
            argument => argument,
        });
        run(Command::new("cc").current_dir(folder).args(example).args(libraries));
        run(Command::new(folder.join("example"))
            .current_dir(folder)
            .env("LD_LIBRARY_PATH", folder.join("target/debug")));
        run(Command::new(folder.join(kind))
            .current_dir(folder)
            .env("LD_LIBRARY_PATH", folder.join("target/debug")));
        for (c, outputs) in expected.iter().enumerate() {
            for (o, expected) in outputs.iter().enumerate() {
                let made = std::fs::read(folder.join(format!("output-{c}-{o}"))).expect("an output");
                assert!(made == in_rows(expected), "{kind}: output {o} of CNN {c}");
                let made = std::fs::read(folder.join(format!("updated-{c}-{o}"))).expect("an output");
                assert!(made == in_rows(expected), "{kind}: output {o} of CNN {c}, updated");
            }
        }
    }
}

#[test]
fn one_model() {
    check(&super::model("lenet5", "none"));
}

/// Hops of a stream, after another stream has ended.
#[test]
fn a_stream() {
    check(&application("(cnns: [(model: \"builtin:paper_pair\", stream: (hop: 3))])"));
}

/// Frames of a network with states, likewise.
#[test]
fn states() {
    check(&super::state::application(5));
}

/// One model that reads its weights, and one whose weights are in memory.
#[test]
fn a_store() {
    check(&application(
        "(cnns: [(model: \"builtin:resnet8\"), (model: \"builtin:lenet5\")], rows: none, weights: streamed, \
         resident: [\"C1\", \"C3\", \"C5\", \"F6\", \"output\"])",
    ));
}

/// A pipeline of two stages, each of which reads its weights from a store of its own.
#[test]
fn stores_of_stages() {
    check(&application(
        "(cnns: [(model: \"builtin:resnet8\", partitions: [(name: \"a\", upto: \"stack2_conv1\"), (name: \"b\")])], \
         parallel: [[\"a\", \"b\"]], weights: streamed, resident: [\"conv\"])",
    ));
}

/// Models that take turns in one arena, some of camera bytes.
#[test]
fn models_in_one_arena() {
    let pair = |name: &str, layout: &str| {
        let camera =
            format!("(type: u8, layout: {layout}, order: BGR, mean: [1, 2, 3.5], scale: [0.1, 0.2, 0.3])");
        format!("(name: \"{name}\", model: \"builtin:paper_pair\", inputs: {{\"l1\": {camera}}})")
    };
    check(&application(&format!(
        "(cnns: [(name: \"net\", model: \"builtin:lenet5\"), {}, {}], rows: all)",
        pair("pair", "HWC"),
        pair("planes", "CHW")
    )));
}
