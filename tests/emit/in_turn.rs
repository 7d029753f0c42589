//! Crates of streams beside other CNNs: models take turns in one arena, in Rust and in C, and make the bytes that each
//! makes alone. No turn allocates.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_network::Network;
use csdfc_plan::plan::{Plan, StorageModel};
use csdfc_plan::shape::Shape;
use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::crates::{COUNTING, run, write_with_harness};
use csdfc_tests::{application, generate, plan, skipped};

use super::capi::in_rows;

/// A wake word, the lines of a scanner, a network that sees frames, and one that keeps a state.
const APPLICATION: &str = "(cnns: [
    (name: \"wake\", model: \"builtin:wake_word\", stream: ()),
    (name: \"lines\", model: \"builtin:paper_pair\", stream: (hop: 3)),
    (name: \"frames\", model: \"builtin:lenet5\"),
    (name: \"voice\", model: \"builtin:voice_activity\", states: {\"next_state\": \"state\"}),
])";

/// Turns: the number of a model, or `ANEW` where the wake word begins anew.
const TURNS: usize = 90;
const ANEW: usize = 4;

/// The turns, the same in each program.
fn turns() -> Vec<usize> {
    let drawn = (0..TURNS).map(|turn| [0, 1, 3, 2, 0, 3, 1][(turn * turn + turn / 4) % 7]);
    drawn.enumerate().map(|(turn, model)| if turn == 70 { ANEW } else { model }).collect()
}

/// Number `at` of a model's signal, of which each hop or frame takes the next. It is computed alike in each program.
fn signal(at: usize) -> f32 {
    (at * 7919 % 1013) as f32 / 507.0 - 1.0
}

/// An input of these numbers, which come as rows of pixels of channels.
fn image(shape: &Shape, from: usize) -> Value {
    let [_, channels, height, width] = shape.dims[..] else {
        let data = Data::F32((from..from + shape.elements()).map(signal).collect());
        return Value { dims: shape.dims.clone(), data };
    };
    let of_channel = |c: usize| (0..height * width).map(move |pixel| signal(from + pixel * channels + c));
    Value { dims: shape.dims.clone(), data: Data::F32((0..channels).flat_map(of_channel).collect()) }
}

/// What each model prints in its turn, computed alone: the bits of what it makes, as its crate hands it out. Rows that do
/// not exist yet are `missing`.
fn expected(application: &Application, missing: &str) -> String {
    let networks: Vec<&Network> = application.cnns.iter().map(|cnn| &cnn.network).collect();
    let alone = |network: &&Network| {
        plan(&generate::of_one((*network).clone(), StorageModel::Tensors, RowsChoice::None))
    };
    let plans: Vec<Plan> = networks.iter().map(alone).collect();
    let mut runners = Vec::new();
    for (plan, network) in plans.iter().zip(&networks) {
        let parameters = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
        runners.push(Runner::poisoned(plan, &parameters).expect("a runner"));
    }
    let (mut text, mut taken) = (String::new(), [0; 4]);
    for turn in turns() {
        if turn == ANEW {
            runners[0].reset(0);
            continue;
        }
        let shape = &networks[turn].layers[0].shape;
        let made = in_rows(&runners[turn].infer(0, &[image(shape, taken[turn])]).expect("a turn")[0]);
        taken[turn] += shape.elements();
        let output = &networks[turn].outputs[0].operand.shape;
        text += &missing.repeat(output.elements() - made.len() / 4);
        let bits = made.as_chunks::<4>().0.iter().map(|x| u32::from_le_bytes(*x).to_string());
        writeln!(text, "{}", bits.collect::<Vec<String>>().join(" ")).expect("a line");
    }
    text
}

/// Of each CNN: its name, its input and its output, and the elements of both.
fn models(plan: &Plan) -> Vec<[String; 5]> {
    let of = |cnn: &csdfc_plan::plan::Cnn| {
        let elements = |tensor: &str| {
            let layers = cnn.layers.iter().find(|layer| layer.name == tensor || layer.output == tensor);
            layers.expect("a layer").output_shape.elements().to_string()
        };
        let (input, output) = (&cnn.inputs[0], &cnn.outputs[0]);
        let [taken, made] = [elements(input), elements(&output.tensor)];
        [cnn.name.clone(), input.clone(), output.name.clone(), taken, made]
    };
    plan.cnns.iter().map(of).collect()
}

/// Each turn makes a model in the arena, which goes on where its stream was.
fn rust(plan: &Plan) -> String {
    let mut text = String::from(
        "use emitted::Arena;

fn signal<const N: usize>(taken: &mut usize) -> [f32; N] {
    let from = std::mem::replace(taken, *taken + N);
    std::array::from_fn(|i| ((from + i) * 7919 % 1013) as f32 / 507.0 - 1.0)
}

fn print(output: &[f32]) {
    let bits: Vec<String> = output.iter().filter(|x| !x.is_nan()).map(|x| x.to_bits().to_string()).collect();
    println!(\"{}\", bits.join(\" \"));
}

fn main() {
    let mut arena = Box::new(Arena::new());
    let mut taken = [0; 4];
    let mut wake = emitted::wake::Position::default();
    let mut lines = emitted::lines::Position::default();
    emitted::voice::Model::new(&mut arena).reset();
",
    );
    writeln!(text, "    for turn in {:?} {{\n        match turn {{", turns()).expect("text");
    for (number, [name, input, output, taken, made]) in models(plan).iter().enumerate() {
        let [resume, position] = match plan.cnns[number].stream {
            Some(_) => {
                [format!("model.resume({name});"), format!("{name} = model.position();")].map(|line| line)
            }
            None => [String::new(), String::new()],
        };
        writeln!(
            text,
            "            {number} => {{
                let input: [f32; {taken}] = signal(&mut taken[{number}]);
                let mut output = [f32::NAN; {made}];
                let before = counting::allocations();
                let mut model = emitted::{name}::Model::new(&mut arena);
                {resume}
                model.infer(
                    emitted::{name}::Inputs {{ {input}: &input }},
                    emitted::{name}::Outputs {{ {output}: &mut output }},
                );
                {position}
                assert_eq!(counting::allocations(), before);
                print(&output);
            }}"
        )
        .expect("text");
    }
    text + "            _ => wake = emitted::wake::Position::default(),\n        }\n    }\n}\n" + COUNTING
}

/// All models are made in one arena, and then take turns.
fn c(plan: &Plan) -> String {
    let mut text = String::from(
        "#include \"emitted.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n\
         static _Alignas(64) unsigned char arena[EMITTED_ARENA_BYTES];\n\
         static emitted_place places[4];\nstatic size_t taken[4];\n\n\
         #define OK(call) do { if (call) { fprintf(stderr, \"%s\\n\", #call); exit(1); } } while (0)\n\n\
         static void signal_of(int model, float *to, size_t n) {\n  \
         for (size_t i = 0; i < n; i++) to[i] = (float)((taken[model] + i) * 7919 % 1013) / 507.0f - 1.0f;\n  \
         taken[model] += n;\n}\n\n\
         static void print(const float *made, size_t n) {\n  \
         for (size_t i = 0; i < n; i++) {\n    uint32_t bits;\n    memcpy(&bits, made + i, 4);\n    \
         printf(\"%s%u\", i ? \" \" : \"\", (unsigned)bits);\n  }\n  printf(\"\\n\");\n}\n\n",
    );
    let models = models(plan);
    text += "int main(void) {\n";
    for (number, [name, ..]) in models.iter().enumerate() {
        writeln!(text, "  OK(emitted_{name}_create(&places[{number}], arena, sizeof arena));").expect("text");
    }
    text += "  OK(emitted_voice_reset(&places[3]));\n";
    let list: Vec<String> = turns().iter().map(usize::to_string).collect();
    writeln!(text, "  static const int turns[] = {{{}}};", list.join(", ")).expect("text");
    text += "  for (size_t t = 0; t < sizeof turns / sizeof *turns; t++) switch (turns[t]) {\n";
    for (number, [name, .., taken, made]) in models.iter().enumerate() {
        writeln!(
            text,
            "  case {number}: {{
    float x[{taken}], y[{made}];
    emitted_{name}_inputs in = {{x, {taken}}};
    emitted_{name}_outputs out = {{y, {made}}};
    signal_of({number}, x, {taken});
    OK(emitted_{name}_infer(&places[{number}], &in, &out));
    print(y, {made});
    break;
  }}"
        )
        .expect("text");
    }
    writeln!(text, "  default:\n    OK(emitted_wake_reset(&places[0]));").expect("text");
    text + "  }\n  return 0;\n}\n"
}

#[test]
fn models_make_the_bytes_that_they_make_alone() {
    let mut application = application(APPLICATION);
    // A state that does not begin with what a new arena holds.
    application.cnns[3].network.states[0].initial = 0.25;
    let plan = plan(&application);
    assert!(plan.tensors.iter().filter(|tensor| tensor.history() > 0).count() > 4);
    let folder = tempfile::tempdir().expect("a folder");
    write_with_harness(folder.path(), &application, &plan, &rust(&plan));
    let made = run(&folder.path().join("harness"), env!("CARGO"), &["run", "--quiet", "--offline"], &[]);
    assert_eq!(made, expected(&application, ""));
    if Command::new("cc").arg("--version").output().is_ok_and(|output| output.status.success()) {
        let made = run_c(&folder.path().join("emitted"), folder.path(), &plan);
        assert_eq!(made, expected(&application, "0 ").replace(" \n", "\n"));
    } else {
        skipped("crates called from C: there is no compiler cc");
    }
}

/// What the program in C prints.
fn run_c(emitted: &Path, target: &Path, plan: &Plan) -> String {
    std::fs::write(emitted.join("program.c"), c(plan)).expect("a program");
    let library =
        ["rustc", "--offline", "--quiet", "--lib", "--features", "capi", "--crate-type", "staticlib"];
    run(emitted, env!("CARGO"), &library, &[("CARGO_TARGET_DIR", &target.join("target").to_string_lossy())]);
    let strict =
        ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Iinclude", "program.c", "-o", "program"];
    let library = target.join("target/debug/libemitted.a");
    let libraries = [&*library.to_string_lossy(), "-lpthread", "-ldl", "-lm"];
    run(emitted, "cc", &[&strict[..], &libraries].concat(), &[]);
    run(emitted, &emitted.join("program").to_string_lossy(), &[], &[])
}
