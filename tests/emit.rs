//! Emitted crates: they build with nothing but the compiler and make the bytes that `run` makes.

#![allow(clippy::expect_used, clippy::panic, reason = "a panic is how a test fails")]

use std::path::Path;
use std::process::Command;

use csdfc::app::resolve::Application;
use csdfc::{commands, npy};
use csdfc_codegen::emit::{self, Options};
use csdfc_codegen::operator::{InputElement, Operator};
use csdfc_codegen::plan::Plan;
use csdfc_codegen::run::{Data, Runner, Value, input_dims};
use csdfc_tests::{app, application, plan};

/// The files of the crate of a plan.
fn emitted(application: &Application, plan: &Plan) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let values = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.layers[layer].parameters[parameter].values().map_err(|e| e.to_string())
    };
    emit::emit(plan, &values, &Options { crate_name: Some("emitted".into()) }).expect("a crate")
}

/// Inputs of a CNN that differ from frame to frame and from element to element.
fn inputs(plan: &Plan, cnn: usize) -> Vec<Value> {
    let cnn = &plan.cnns[cnn];
    let input = |name: &String| {
        let layer = cnn.layers.iter().find(|layer| layer.name == *name).expect("an input");
        let Operator::Input(input) = &layer.operator else { panic!("{name} is no input") };
        let dims = input_dims(input, &layer.output_shape);
        let elements = dims.iter().product();
        let data = match input.element {
            InputElement::F32 => {
                Data::F32((0..elements).map(|i| (i * 7919 % 1013) as f32 / 507.0 - 1.0).collect())
            }
            InputElement::U8 => Data::U8((0..elements).map(|i| (i * 7919 % 251) as u8).collect()),
        };
        Value { dims, data }
    };
    cnn.inputs.iter().map(input).collect()
}

fn cargo(folder: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(folder)
        // The kernels' bytes do not depend on it, and it builds faster.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "false")
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !text.contains("warning"), "{arguments:?}:\n{text}");
}

/// Emits, builds and runs an application; three frames of each CNN must end in the bytes of the runner.
fn check(application: &Application) {
    let plan = plan(application);
    let files = emitted(application, &plan);
    assert_eq!(files, emitted(application, &plan), "emitted twice");
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    commands::emit::write(folder, &files).expect("files");
    cargo(folder, &["build", "--offline"]);
    let values = |cnn: usize, layer: usize, parameter: usize| {
        application.cnns[cnn].network.layers[layer].parameters[parameter].values().map_err(|e| e.to_string())
    };
    let mut runner = Runner::new(&plan, &values).expect("a runner");
    for (c, cnn) in plan.cnns.iter().enumerate() {
        let inputs = inputs(&plan, c);
        let mut expected = Vec::new();
        for _ in 0..3 {
            expected = runner.infer(c, &inputs).expect("a frame");
        }
        let mut program = Command::new(folder.join("target/debug/emitted"));
        if plan.cnns.len() > 1 {
            program.arg(&cnn.name);
        }
        for (i, input) in inputs.iter().enumerate() {
            let file = folder.join(format!("{c}-{i}.npy"));
            npy::write(&file, input).expect("an input");
            program.arg(file);
        }
        let outputs = folder.join(format!("outputs-{c}"));
        let ran = program.args(["--frames", "3", "--output"]).arg(&outputs).output().expect("the program");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        for (output, expected) in cnn.outputs.iter().zip(&expected) {
            let made = npy::read(&outputs.join(format!("{}.npy", output.name))).expect("an output");
            assert_eq!(made.dims, expected.dims, "{}", output.name);
            let same = match (&made.data, &expected.data) {
                (Data::F32(made), Data::F32(expected)) => {
                    made.iter().map(|x| x.to_bits()).eq(expected.iter().map(|x| x.to_bits()))
                }
                (made, expected) => made == expected,
            };
            assert!(same, "{} of {}", output.name, cnn.name);
        }
    }
}

fn model(name: &str, rows: &str) -> Application {
    application(&format!("(cnns: [(model: \"builtin:{name}\")], rows: {rows})"))
}

#[test]
fn one_model() {
    check(&model("lenet5", "none"));
}

#[test]
fn by_rows() {
    check(&model("resnet8", "all"));
}

#[test]
fn the_papers_application() {
    check(&app("adaptive_classifier.ron").resolve().expect("an application"));
}

#[test]
fn camera_bytes() {
    for (rows, layout) in [("all", "HWC"), ("none", "CHW")] {
        let camera =
            format!("(type: u8, layout: {layout}, order: BGR, mean: [1, 2, 3.5], scale: [0.1, 0.2, 0.3])");
        let inputs = format!("inputs: {{\"l1\": {camera}}}");
        check(&application(&format!("(cnns: [(model: \"builtin:paper_pair\", {inputs})], rows: {rows})")));
    }
}

#[test]
fn files_are_formatted() {
    for application in
        [model("resnet8", "all"), app("adaptive_classifier.ron").resolve().expect("an application")]
    {
        let folder = tempfile::tempdir().expect("a folder");
        commands::emit::write(folder.path(), &emitted(&application, &plan(&application))).expect("files");
        let rustfmt = Command::new("rustfmt")
            .args(["--check", "--edition", "2024", "src/lib.rs", "src/main.rs"])
            .current_dir(folder.path())
            .output();
        // Where there is no rustfmt there is nothing to compare with.
        if let Ok(output) = rustfmt {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
    }
}
