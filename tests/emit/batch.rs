//! Crates of a batch: a call's frames have the bytes of frames by themselves.

use csdfc_runtime::run::{Data, Runner, Value};
use csdfc_tests::application;
use std::process::Command;

use super::{Emitted, cargo, inputs, npy, values_of};

/// Frames of a call.
const BATCH: usize = 3;

/// Frames that differ from each other.
fn frames(emitted: &Emitted<'_>) -> Vec<Value> {
    let first = inputs(&emitted.plan, 0).remove(0);
    let Data::F32(values) = &first.data else { panic!("other elements") };
    let frame = |number: usize| {
        let data = Data::F32(values.iter().map(|x| x * (number + 1) as f32 - 0.1).collect());
        Value { data, ..first.clone() }
    };
    (0..BATCH).map(frame).collect()
}

/// A program that runs frames one by one, and all in one call, and compares.
const EXAMPLE: &str = "use emitted::{Arena, BATCH, BatchInputs, BatchOutputs, Inputs, Model, Outputs};

fn main() {
    let mut x = [[0.0; 1024]; BATCH];
    for (i, x) in x.as_flattened_mut().iter_mut().enumerate() {
        *x = (i * 7919 % 1013) as f32 / 507.0 - 1.0;
    }
    let (mut all, mut each) = ([[0.0; 10]; BATCH], [[0.0; 10]; BATCH]);
    let mut model = Model::new(Arena::take().unwrap());
    model.infer_batch(BatchInputs { input: &x }, BatchOutputs { output: &mut all });
    for (x, y) in x.iter().zip(&mut each) {
        model.infer(Inputs { input: x }, Outputs { output: y });
    }
    assert_eq!(all, each);
    assert_ne!(all[0], all[1]);
}
";

#[test]
fn a_call_runs_frames_one_after_another() {
    let text = format!("(cnns: [(model: \"builtin:lenet5\", batch: {BATCH})], rows: all)");
    let application = application(&text);
    let emitted = Emitted::new(&application);
    assert_eq!(emitted.plan.cnns[0].batch, BATCH as u64);
    let values = values_of(&application);
    let mut runner = Runner::poisoned(&emitted.plan, &values).expect("a runner");
    let frames = frames(&emitted);
    let each: Vec<Value> = frames
        .iter()
        .map(|frame| runner.infer(0, std::slice::from_ref(frame)).expect("a frame").remove(0))
        .collect();
    let (call, expected) =
        (Value::of_frames(&frames).expect("frames"), Value::of_frames(&each).expect("frames"));
    assert_eq!((&call.dims[..], &expected.dims[..]), (&[BATCH, 1, 32, 32][..], &[BATCH, 10][..]));
    assert_eq!(
        runner.infer_batch(0, std::slice::from_ref(&call)).expect("a call"),
        std::slice::from_ref(&expected)
    );
    assert!(runner.infer_batch(0, &frames[..1]).is_err());

    std::fs::create_dir_all(emitted.folder().join("examples")).expect("a folder");
    std::fs::write(emitted.folder().join("examples/batch.rs"), EXAMPLE).expect("the example");
    cargo(emitted.folder(), &["build", "--offline", "--bins", "--examples"]);
    let mut example = Command::new(emitted.folder().join("target/debug/examples/batch"));
    assert!(example.status().expect("the example").success());
    npy::write(&emitted.folder().join("x.npy"), &call).expect("an input");
    npy::write(&emitted.folder().join("one.npy"), &frames[0]).expect("an input");
    let run = |arguments: &[&str]| {
        let mut program = Command::new(emitted.folder().join("target/debug/emitted"));
        program
            .args(arguments)
            .args(["--output", "."])
            .current_dir(emitted.folder())
            .output()
            .expect("the program")
    };
    let output = emitted.folder().join("output.npy");
    // Without a number of frames, those of a call; then two calls, and one that ends early.
    for frames in [None, Some("6"), Some("2")] {
        let more: Vec<&str> = frames.iter().flat_map(|frames| ["--frames", frames]).collect();
        let ran = run(&[&["x.npy"], &more[..]].concat());
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let expected = if frames == Some("2") {
            Value::of_frames(&each[..2]).expect("frames")
        } else {
            expected.clone()
        };
        assert_eq!(npy::read(&output).expect("an output"), expected, "{frames:?}");
    }
    let ran = run(&["one.npy"]);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(said.contains("its dimensions are [1, 1, 32, 32], not [3, 1, 32, 32]"), "{said}");
}
