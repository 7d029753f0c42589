//! Valid files with a few bytes changed, cut or repeated: every reader returns, and soon.

use std::collections::BTreeMap;

use csdfc_input::export::export;
use csdfc_plan::plan::StorageModel;
use csdfc_planner::saved::front::SavedFront;
use csdfc_tests::{application, generate, hostile, outcome, random, root};
use rand::RngExt;

/// Changes of one file, if `PROPTEST_CASES` states no other number.
const CHANGES: u64 = 300;

const APP: &str = r#"(
  name: "app",
  cnns: [(name: "a", model: "builtin:lenet5", partitions: [(name: "p", upto: "S2", processor: "cpu"), (name: "q")])],
  parallel: [["p", "q"]],
  constraints: (memory: "8MB", fps: {"a": 71}),
  rows: {"a/C1": 4},
  search: (seed: 1),
)
"#;

/// Hands a file in, whole and changed in random places.
fn check(reader: impl Fn(&[u8]), file: &[u8]) {
    reader(file);
    let stated = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    for stream in 0..stated.unwrap_or(CHANGES) {
        let mut random = random(stream);
        let mut changed = file.to_vec();
        for _ in 0..random.random_range(1..4) {
            let at = random.random_range(0..changed.len());
            let end = (at + random.random_range(0..12)).min(changed.len());
            match random.random_range(0..5) {
                0 => changed[at] = random.random(),
                1 => changed[at] = changed[at].wrapping_add(1),
                2 => drop(changed.drain(at..end)),
                3 => {
                    let repeated = changed[at..end].to_vec();
                    changed.splice(at..at, repeated);
                }
                _ => changed.truncate(at),
            }
            // Something is left to be changed.
            changed.push(random.random());
        }
        reader(&changed);
    }
}

#[test]
fn graphs() {
    let application = application(APP);
    let network = &application.cnns[0].network;
    let rates = csdfc_planner::frame::lower::RateTable::new(network);
    let rows = csdfc_planner::frame::choice::Choice::all(network).rows;
    let layers: Vec<_> = network.ids().collect();
    let lowering = csdfc_planner::frame::lower::lower(&rates, &layers, &rows, StorageModel::Tensors);
    let graph = lowering.map(|lowering| csdf::sdf3::write(&lowering.graph, "lenet5"));
    check(hostile::sdf3, graph.unwrap_or_default().as_bytes());
}

#[test]
fn applications() {
    check(hostile::app, APP.as_bytes());
}

#[test]
fn plans() {
    let plan = outcome(&application(APP)).plan;
    check(hostile::plan, plan.to_json().as_bytes());
    check(hostile::plan, plan.to_ron().as_bytes());
}

#[test]
fn fronts() {
    let plan =
        outcome(&application("(name: \"app\", cnns: [(name: \"a\", model: \"builtin:lenet5\")])")).plan;
    let mut front = SavedFront::new(&plan);
    check(hostile::front, &serde_json::to_vec(&front).unwrap_or_default());
    // Changes of nothing but a code.
    let layers = front.cnns[0].layers;
    front.pareto.truncate(1);
    let read = |code: &[u8]| {
        let code = String::from_utf8_lossy(code).into_owned();
        let mut front = front.clone();
        front.pareto[0].choices = BTreeMap::from([("a".into(), code)]);
        hostile::front(&serde_json::to_vec(&front).unwrap_or_default());
    };
    for code in [format!("1,2*2,{}*1", layers - 3), format!("{layers}*1; barriers 1,3-5,7")] {
        check(read, code.as_bytes());
    }
}

#[test]
fn instances() {
    let instance = std::fs::read(root().join("apps/select/inception.json")).unwrap_or_default();
    assert!(!instance.is_empty());
    check(hostile::instance, &instance);
}

#[test]
fn models() {
    // The smallest model there is to start from: an empty graph of opset 13.
    check(hostile::onnx, &[0x08, 0x08, 0x3a, 0x02, 0x0a, 0x00, 0x42, 0x02, 0x10, 0x0d]);
    // Drawn networks, as csdfc writes them.
    for stream in 0..4 {
        let mut random = random(stream);
        let bytes: Vec<u8> = (0..200).map(|_| random.random()).collect();
        let application = generate::application(&bytes, StorageModel::Tensors);
        let file = export(&application.cnns[0].network).unwrap_or_default();
        assert!(!file.is_empty());
        check(hostile::onnx, &file);
    }
}

#[test]
fn tflite_models() {
    let model = std::fs::read(root().join("tests/tflite/small.tflite")).unwrap_or_default();
    assert!(!model.is_empty());
    check(hostile::tflite, &model);
}
