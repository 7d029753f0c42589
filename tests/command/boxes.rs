//! `csdfc run --boxes`, on small networks that hand on their inputs.

use std::cell::RefCell;
use std::path::Path;

use csdfc_command::npy;
use csdfc_runtime::run::{Data, Value};
use rten_onnx::onnx::{DataType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto};
use serde_json::json;

use super::onnx::value;
use super::{fails, folder, run};

/// Writes and plans a model of these inputs, nodes and outputs, with the constants of a suppression.
fn planned(folder: &Path, inputs: &[(&str, &[i64])], nodes: &[(&str, &[&str], &str)], outputs: &[&str]) {
    let node = |(operator, inputs, output): &(&str, &[&str], &str)| NodeProto {
        op_type: Some((*operator).into()),
        name: Some((*output).into()),
        input: inputs.iter().map(|name| (*name).to_string()).collect(),
        output: vec![(*output).to_string()],
        ..Default::default()
    };
    let constant = |name: &str, data_type, bytes: Vec<u8>| TensorProto {
        name: Some(name.into()),
        dims: vec![1],
        data_type: Some(data_type),
        raw_data: Some(RefCell::new(bytes)),
        ..Default::default()
    };
    let graph = GraphProto {
        input: inputs.iter().map(|(name, dims)| value(name, dims)).collect(),
        output: outputs.iter().map(|name| value(name, &[])).collect(),
        initializer: vec![
            constant("most", DataType::INT64, 3i64.to_le_bytes().into()),
            constant("half", DataType::FLOAT, 0.5f32.to_le_bytes().into()),
        ],
        node: nodes.iter().map(node).collect(),
        ..Default::default()
    };
    let proto = ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(13) }],
        graph: Some(graph),
        ..Default::default()
    };
    std::fs::write(folder.join("model.onnx"), proto.write_buf().unwrap()).unwrap();
    let ended = run(folder, &["plan", "model.onnx", "-o", "plan.json"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

fn write(folder: &Path, name: &str, dims: &[usize], floats: Vec<f32>) {
    npy::write(&folder.join(name), &Value { dims: dims.to_vec(), data: Data::F32(floats) }).unwrap();
}

/// The boxes in what the command prints.
fn boxes(folder: &Path, args: &[&str]) -> serde_json::Value {
    let ended = run(folder, &[&["run", "plan.json", "--boxes", "--format", "json"], args].concat());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    serde_json::from_str::<serde_json::Value>(&ended.stdout).unwrap()["cnns"][0]["boxes"].clone()
}

/// Eight boxes of two classes, of x, y, width, height and two scores each.
const DETECTED: [[f32; 6]; 8] = [
    [30.0, 8.0, 2.0, 6.0, 0.0, 0.3125],
    [10.5, 10.0, 4.0, 4.0, 0.75, 0.5],
    [10.0, 10.0, 4.0, 4.0, 0.875, 0.0],
    [10.5, 10.0, 4.0, 4.0, 0.125, 0.625],
    [60.0, 60.0, 4.0, 4.0, 0.1875, 0.125],
    [0.0; 6],
    [0.0; 6],
    [0.0; 6],
];

#[test]
fn boxes_of_a_detector() {
    let folder = folder();
    let folder = folder.path();
    planned(folder, &[("x", &[1, 6, 8])], &[("Relu", &["x"], "y")], &["y"]);
    let columns = |boxes: &[[f32; 6]; 8]| (0..6).flat_map(|i| boxes.map(|one| one[i])).collect::<Vec<f32>>();
    write(folder, "x.npy", &[1, 6, 8], columns(&DETECTED));
    std::fs::write(folder.join("labels.txt"), "cat\ndog\n").unwrap();
    // The second is left out for the third, the fourth is of another class, and the fifth has no score.
    let expected = json!([
        {"class": 0, "name": "cat", "score": 0.875, "corners": [8.0, 8.0, 12.0, 12.0]},
        {"class": 1, "name": "dog", "score": 0.625, "corners": [8.5, 8.0, 12.5, 12.0]},
        {"class": 1, "name": "dog", "score": 0.3125, "corners": [29.0, 5.0, 31.0, 11.0]},
    ]);
    assert_eq!(boxes(folder, &["--input", "x.npy", "--labels", "labels.txt"]), expected);
    let call = ["run", "plan.json", "--input", "x.npy", "--boxes"];
    let said = run(folder, &call).stdout;
    let lines = "  boxes: 3 (of 1×(4+2)×N: middles, sizes, scores of 2 classes)\n    1. class 0: 0.875000 from 8.000, 8.000 to \
         12.000, 12.000\n    2. class 1: 0.625000 ";
    assert!(said.contains(lines), "{said}");
    let said = run(folder, &[&call[..], &["--labels", "labels.txt"]].concat()).stdout;
    assert!(said.contains("    1. cat: 0.875000 from 8.000, 8.000 to 12.000, 12.000\n"), "{said}");
    // Without the option, nothing is said of boxes.
    let said = run(folder, &["run", "plan.json", "--input", "x.npy", "--format", "json"]).stdout;
    assert!(!said.contains("boxes"), "{said}");

    let refused = |args: &[&str]| fails(folder, &[&call[..], args].concat()).replace("\n  │ ", " ");
    std::fs::write(folder.join("other.txt"), "one\ntwo\nthree\n").unwrap();
    let said = refused(&["--labels", "other.txt"]);
    assert!(said.contains("other.txt names 3 classes, and the boxes have 2"), "{said}");
    let said = refused(&["--output", "y=raw"]);
    assert!(said.contains("output y goes to a raw file"), "{said}");
    let mut logits = DETECTED;
    logits[1][5] = 3.5;
    write(folder, "x.npy", &[1, 6, 8], columns(&logits));
    let said = refused(&[]);
    assert!(
        said.contains("has the score 3.5, and scores are from 0 to 1") && said.contains("sigmoid"),
        "{said}"
    );
}

/// The network itself leaves out boxes that overlap others, and all that remain are printed.
#[test]
fn boxes_that_a_network_has_suppressed() {
    let folder = folder();
    let folder = folder.path();
    let nodes: &[(&str, &[&str], &str)] = &[
        ("Relu", &["boxes"], "b"),
        ("Relu", &["scores"], "s"),
        ("NonMaxSuppression", &["b", "s", "most", "half"], "kept"),
    ];
    planned(folder, &[("boxes", &[1, 3, 4]), ("scores", &[1, 2, 3])], nodes, &["kept", "b", "s"]);
    // y1, x1, y2, x2, and of the last box the other two corners.
    let corners = vec![0.0, 0.0, 8.0, 4.0, 0.0, 0.0, 8.0, 5.0, 40.0, 20.0, 30.0, 10.0];
    write(folder, "boxes.npy", &[1, 3, 4], corners);
    write(folder, "scores.npy", &[1, 2, 3], vec![0.5, 0.75, 0.125, 0.875, 0.25, 0.625]);
    let expected = json!([
        {"class": 1, "score": 0.875, "corners": [0.0, 0.0, 4.0, 8.0]},
        {"class": 0, "score": 0.75, "corners": [0.0, 0.0, 5.0, 8.0]},
        {"class": 1, "score": 0.625, "corners": [10.0, 30.0, 20.0, 40.0]},
        {"class": 0, "score": 0.125, "corners": [10.0, 30.0, 20.0, 40.0]},
    ]);
    assert_eq!(boxes(folder, &["--input", "boxes=boxes.npy", "--input", "scores=scores.npy"]), expected);
}

/// Corners and scores of an SSD, the scores first; offsets in place of corners.
#[test]
fn boxes_of_two_outputs() {
    let folder = folder();
    let folder = folder.path();
    let nodes: &[(&str, &[&str], &str)] = &[("Relu", &["scores"], "s"), ("Relu", &["boxes"], "b")];
    planned(folder, &[("scores", &[1, 5, 3]), ("boxes", &[1, 5, 4])], nodes, &["s", "b"]);
    let scores =
        [[0.875, 0.125, 0.0], [0.25, 0.125, 0.625], [0.125, 0.125, 0.75], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]];
    write(folder, "s.npy", &[1, 5, 3], scores.concat());
    let mut corners = [[0.0; 4], [0.25, 0.25, 0.5, 0.5], [0.25, 0.25, 0.5, 0.75], [0.0; 4], [0.0; 4]];
    write(folder, "b.npy", &[1, 5, 4], corners.concat());
    let inputs = ["--input", "scores=s.npy", "--input", "boxes=b.npy"];
    let expected = json!([{"class": 2, "score": 0.75, "corners": [0.25, 0.25, 0.5, 0.75]}]);
    assert_eq!(boxes(folder, &inputs), expected);
    corners[2][2] = 0.125;
    write(folder, "b.npy", &[1, 5, 4], corners.concat());
    let said =
        fails(folder, &[&["run", "plan.json", "--boxes"], &inputs[..]].concat()).replace("\n  │ ", " ");
    assert!(
        said.contains("a box with the corners [0.25, 0.25, 0.125, 0.75]") && said.contains("anchors"),
        "{said}"
    );
}

#[test]
fn outputs_that_are_no_boxes_are_refused() {
    let folder = folder();
    let folder = folder.path();
    assert_eq!(run(folder, &["plan", "builtin:lenet5", "-o", "plan.json"]).code, 0);
    let said = fails(folder, &["run", "plan.json", "--random", "1", "--boxes"]).replace("\n  │ ", " ");
    assert!(said.contains("the outputs are not known to be boxes: output is 1×10"), "{said}");
    assert!(said.contains("1×(4+C)×N"), "{said}");
}
