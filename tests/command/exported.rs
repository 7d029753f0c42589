//! Networks as PyTorch exports them, with seeded weights: all plans give what ONNX Runtime gives.
//!
//! `tests/exported` has them, each beside its outputs. `tests/conformance/zoo.py --pin` made them.

use std::path::{Path, PathBuf};

use csdfc_command::npy;
use csdfc_plan::plan::Plan;
use csdfc_runtime::run::{Data, Value};

use super::{folder, run};

/// As `numbered` in `tests/conformance/zoo.py`.
fn numbered(dims: &[usize]) -> Value {
    let number = |i: u64| ((i * 7919 % 2003) as f64 / 1001.0 - 1.0) as f32;
    let elements: usize = dims.iter().product();
    Value { dims: dims.to_vec(), data: Data::F32((0..elements as u64).map(number).collect()) }
}

fn check(name: &str) {
    let exported = Path::new(env!("CARGO_MANIFEST_DIR")).join("exported");
    let model = exported.join(format!("{name}.onnx"));
    let folder = folder();
    let folder = folder.path();
    for options in [&["--rows", "none"][..], &["--rows", "all"], &["--mem", "min"]] {
        let call = [&["plan", model.to_str().unwrap(), "-o", "plan.json"], options].concat();
        let ended = run(folder, &call);
        assert_eq!(ended.code, 0, "{name} {options:?}: {}", ended.stderr);
        let plan = Plan::from_json(&std::fs::read_to_string(folder.join("plan.json")).unwrap()).unwrap();
        let cnn = &plan.cnns[0];
        let mut call: Vec<String> = ["run", "plan.json"].map(String::from).to_vec();
        for (number, input) in cnn.inputs.iter().enumerate() {
            let layer = cnn.layers.iter().find(|layer| layer.name == *input).unwrap();
            let file = format!("{number}.npy");
            npy::write(&folder.join(&file), &numbered(&layer.output_shape.dims)).unwrap();
            call.extend(["--input".into(), format!("{input}={file}")]);
        }
        let expected = |number: usize| -> PathBuf { exported.join(format!("{name}.{number}.npy")) };
        assert!(expected(0).exists() && !expected(cnn.outputs.len()).exists(), "{name}");
        for (number, output) in cnn.outputs.iter().enumerate() {
            call.extend(["--compare".into(), format!("{}={}", output.name, expected(number).display())]);
        }
        let call: Vec<&str> = call.iter().map(String::as_str).collect();
        let ended = run(folder, &call);
        assert_eq!(ended.code, 0, "{name} {options:?}: {}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn detr() {
    check("detr");
}

#[test]
fn ds_cnn() {
    check("ds_cnn");
}

#[test]
fn espcn() {
    check("espcn");
}

#[test]
fn movenet() {
    check("movenet");
}

#[test]
fn nanodet() {
    check("nanodet");
}

#[test]
fn picodet() {
    check("picodet");
}

#[test]
fn retinaface() {
    check("retinaface");
}

#[test]
fn segformer() {
    check("segformer");
}

#[test]
fn tcn() {
    check("tcn");
}
