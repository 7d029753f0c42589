//! Whole applications as emitted crates: their outputs are the runner's bytes, and their memory is that of the plan.
//!
//! They are only built with optimisation, so that the tests measure what users get. The models are not in the
//! repository.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]
#![allow(clippy::print_stdout, reason = "what is skipped or measured is printed")]

use std::process::Command;

use csdfc_command::npy;
use csdfc_input::app::resolve::{Application, RowsChoice};
use csdfc_plan::operator::Operator;
use csdfc_plan::plan::{Cnn, Plan};
use csdfc_runtime::file_name::file_name;
use csdfc_runtime::run::{Data, Runner, Value, input_dims};
use csdfc_tests::crates::{emitted, run};
use csdfc_tests::{app, application, models, plan, skipped};

/// Bytes of a process in addition to the plan's total and the caller's frames: the program itself, its stacks and the
/// system's libraries.
const PROCESS: u64 = 4_000_000;

/// Frames of each CNN.
const FRAMES: usize = 4;

fn inputs(cnn: &Cnn) -> Vec<Value> {
    let input = |name: &String| {
        let layer = cnn.layers.iter().find(|layer| layer.name == *name).expect("an input");
        let Operator::Input(input) = &layer.operator else { panic!("{name} is no input") };
        let dims = input_dims(input, &layer.output_shape);
        let elements = dims.iter().product();
        Value {
            dims,
            data: Data::F32((0..elements).map(|i| (i * 7919 % 1013) as f32 / 507.0 - 1.0).collect()),
        }
    };
    cnn.inputs.iter().map(input).collect()
}

fn bits(value: &Value) -> Vec<u32> {
    match &value.data {
        Data::F32(values) => values.iter().map(|x| x.to_bits()).collect(),
        other => panic!("outputs of {}", other.element()),
    }
}

/// The peak memory in bytes that the program printed last.
fn peak(told: &str) -> u64 {
    let line =
        told.lines().filter_map(|line| line.strip_prefix("peak memory: ")).next_back().expect("a peak");
    line.strip_suffix(" kB").expect("kB").trim().parse::<u64>().expect("a number") * 1024
}

fn check(application: &Application) {
    let plan = plan(application);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    csdfc_command::write_crate(folder, &emitted(application, &plan)).expect("files");
    run(folder, env!("CARGO"), &["build", "--release", "--offline"], &[]);
    let values = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.parameter(layer, parameter)
    };
    let mut runner = Runner::poisoned(&plan, &values).expect("a runner");
    for (c, cnn) in plan.cnns.iter().enumerate() {
        check_cnn(&plan, &mut runner, c, cnn, folder);
    }
    if plan.cnns.len() > 1 {
        check_turns(&plan, &mut runner, folder);
    }
}

/// Checks that CNNs which take turns in the arena make the same bytes as alone, in no more memory than one of them.
/// Their inputs are already files in the folder.
fn check_turns(plan: &Plan, runner: &mut Runner<'_>, folder: &std::path::Path) {
    let names: Vec<&str> = plan.cnns.iter().map(|cnn| cnn.name.as_str()).collect();
    let turns = [&names[1..], &names[..], &names[1..]].concat().join(",");
    let mut program = Command::new(folder.join("target/release/emitted"));
    let mut held = 0;
    for (c, cnn) in plan.cnns.iter().enumerate() {
        for (i, input) in inputs(cnn).iter().enumerate() {
            program.arg(folder.join(format!("{c}-{i}.npy")));
            held += 4 * input.dims.iter().product::<usize>() as u64;
        }
    }
    let all = folder.join("turns");
    program.args(["--turns", &turns, "--output"]).arg(&all);
    // The store of streamed weights is there.
    let ran = program.current_dir(folder).output().expect("the program");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    for (c, cnn) in plan.cnns.iter().enumerate() {
        for (output, expected) in cnn.outputs.iter().zip(runner.infer(c, &inputs(cnn)).expect("a frame")) {
            let file = all.join(file_name(&cnn.name)).join(file_name(&output.name) + ".npy");
            held += 4 * expected.dims.iter().product::<usize>() as u64;
            assert!(bits(&npy::read(&file).expect("an output")) == bits(&expected), "{turns}: {}", cnn.name);
        }
    }
    let peak = peak(&String::from_utf8_lossy(&ran.stdout));
    println!("{turns}: total {}, peak {peak}", plan.memory.total);
    assert!(peak <= plan.memory.total + held + PROCESS, "{turns}");
}

fn check_cnn(plan: &Plan, runner: &mut Runner<'_>, c: usize, cnn: &Cnn, folder: &std::path::Path) {
    let inputs = inputs(cnn);
    let expected = (0..FRAMES).map(|_| runner.infer(c, &inputs).expect("a frame")).last().expect("frames");
    let mut program = Command::new(folder.join("target/release/emitted"));
    if plan.cnns.len() > 1 {
        program.arg(&cnn.name);
    }
    for (i, input) in inputs.iter().enumerate() {
        let file = folder.join(format!("{c}-{i}.npy"));
        npy::write(&file, input).expect("an input");
        program.arg(file);
    }
    let all = folder.join("outputs");
    program.args(["--frames", &FRAMES.to_string(), "--output"]).arg(&all);
    let ran = program.current_dir(folder).output();
    let outputs = if plan.cnns.len() > 1 { all.join(file_name(&cnn.name)) } else { all };
    let ran = ran.expect("the program");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    for (output, expected) in cnn.outputs.iter().zip(&expected) {
        let made = npy::read(&outputs.join(file_name(&output.name) + ".npy")).expect("an output");
        assert_eq!(made.dims, expected.dims, "{}", output.name);
        assert!(bits(&made) == bits(expected), "{} of {}", output.name, cnn.name);
    }
    let held: u64 =
        inputs.iter().chain(&expected).map(|value| 4 * value.dims.iter().product::<usize>() as u64).sum();
    let peak = peak(&String::from_utf8_lossy(&ran.stdout));
    let beyond = peak as i64 - (plan.memory.total + held) as i64;
    println!("{}: total {}, frames {held}, peak {peak}, {beyond} beyond", cnn.name, plan.memory.total);
    assert!(beyond <= PROCESS as i64, "{}", cnn.name);
}

/// The application of these files of `../shared/models`, if they are there and this is built with optimisation.
fn of_models(name: &str, files: &[&str], more: &str) -> Option<Application> {
    let models = models();
    let find = |file: &&str| models.iter().find(|path| path.file_stem().is_some_and(|stem| stem == *file));
    let paths: Option<Vec<_>> = files.iter().map(find).collect();
    match paths {
        None => skipped(&format!("the application {name}: its models are not in ../shared/models")),
        Some(_) if cfg!(debug_assertions) => println!("{name} is built in release only"),
        Some(paths) => {
            let cnns =
                paths.iter().zip(files).map(|(path, file)| format!("(name: {file:?}, model: {path:?})"));
            let cnns = cnns.collect::<Vec<String>>().join(", ");
            return Some(application(&format!("(name: {name:?}, cnns: [{cnns}], {more})")));
        }
    }
    None
}

#[test]
#[ignore = "takes minutes: run it by hand, in release"]
fn optical_character_recognition() {
    if let Some(application) = of_models("ocr", &["ocr_det", "ocr_cls", "ocr_rec"], "") {
        check(&application);
    }
}

/// Two networks that share the arena read their weights from one store.
#[test]
fn optical_character_recognition_with_streamed_weights() {
    let more = "weights: streamed, constraints: (memory: min)";
    if let Some(application) = of_models("ocr", &["ocr_cls", "ocr_rec"], more) {
        check(&application);
    }
}

#[test]
fn faces() {
    if let Some(application) = of_models("face", &["mtcnn_p", "mtcnn_r", "mtcnn_o"], "rows: all, threads: 2")
    {
        check(&application);
    }
}

#[test]
#[ignore = "takes minutes: run it by hand, in release"]
fn a_pipeline() {
    let cut = r#"partitions: [(name: "front", upto: "block_6_project"), (name: "back")]"#;
    for rows in ["all", "none"] {
        check(&application(&format!(
            r#"(cnns: [(model: "builtin:mobilenet_v2", {cut})], parallel: [["front", "back"]], rows: {rows})"#
        )));
    }
}

/// A branch of each inception module on another processor.
#[test]
#[ignore = "takes minutes: run it by hand, in release"]
fn branches() {
    check(&app("pipelines/googlenet.ron").resolve().expect("an application"));
}

#[test]
fn super_resolution() {
    check_rows("super_resolution");
}

#[test]
fn segmentation() {
    check_rows("segmentation");
}

/// Frames of an application by rows, from standard input to standard output: no frame is held, and the bytes are those of
/// whole frames, in the crate and under a plan in which every layer makes all its rows at once.
fn check_rows(name: &str) {
    if cfg!(debug_assertions) {
        println!("the application {name} is built in release only");
        return;
    }
    let application = app(&format!("{name}/app.ron")).resolve().expect("an application");
    let plan = plan(&application);
    let network = &application.cnns[0].network;
    let shape_of = |layer: usize| network.layers[layer].shape.dims.clone();
    let [_, channels, height, width] = shape_of(0)[..] else { panic!("an image") };
    let [_, made, rows, columns] = shape_of(network.outputs[0].operand.layer.0)[..] else {
        panic!("an image")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    csdfc_command::write_crate(folder, &emitted(&application, &plan)).expect("files");
    run(folder, env!("CARGO"), &["build", "--release", "--offline"], &[]);
    let frame: Vec<u8> = (0..height * width * channels).map(|i| (i * 7919 % 251) as u8).collect();
    std::fs::write(folder.join("frames"), frame.repeat(2)).expect("frames");
    let frame = Value { dims: vec![height, width, channels], data: Data::U8(frame) };
    npy::write(&folder.join("x.npy"), &frame).expect("a frame");
    let program = |arguments: &[&str]| {
        let mut program = Command::new(folder.join("target/release/emitted"));
        program.args(arguments).current_dir(folder);
        program.stdin(std::fs::File::open(folder.join("frames")).expect("frames"));
        let ran = program.output().expect("the program");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        ran
    };
    program(&["x.npy", "--output", "output=y.npy"]);
    let Data::F32(whole) = npy::read(&folder.join("y.npy")).expect("an output").data else {
        panic!("an output of floats")
    };
    let mut at_once = Application { rows: RowsChoice::None, ..application.clone() };
    at_once.constraints.memory = None;
    let at_once = csdfc_tests::plan(&at_once);
    let values = |_: usize, layer: usize, parameter: usize| network.parameter(layer, parameter);
    let outputs = Runner::poisoned(&at_once, &values).expect("a runner").infer(0, &[frame]).expect("a frame");
    assert!(bits(&outputs[0]).into_iter().eq(whole.iter().map(|x| x.to_bits())));
    let pixels = rows * columns;
    let rows = (0..made * pixels).map(|i| whole[i % made * pixels + i / made]);
    let ran = program(&["--input", "-", "--output", "-"]);
    let floats = ran.stdout.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    assert!(floats.map(f32::to_bits).eq(rows.clone().chain(rows.clone()).map(f32::to_bits)));
    let ran = program(&["--input", "-", "--output", "-", "--bytes"]);
    let bytes = rows.clone().map(|x| (x * 255.0).round() as u8);
    assert!(ran.stdout.iter().copied().eq(bytes.clone().chain(bytes)));
    let peak = peak(&String::from_utf8_lossy(&ran.stderr));
    println!("{name}: total {}, peak {peak}", plan.memory.total);
    assert!(peak <= plan.memory.total + 6_000_000, "{peak}");
}

#[test]
#[ignore = "takes minutes: run it by hand, in release"]
fn benchmarks() {
    for name in ["mobilenet_v2", "efficientnet_b0"] {
        check(&application(&format!(r#"(cnns: [(model: "builtin:{name}")])"#)));
    }
}
