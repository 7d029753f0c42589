use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use super::*;
use csdfc_network::pass::{Fusion, normalise};

const CASES: usize = 12_000;

/// A model with a bit of everything: typed and raw constants, attributes of each kind, folding, views, branches.
fn sample() -> Vec<u8> {
    Model::new(13, &[0, 2, 6, 6], &["y", "z"])
        .floats("w", &[3, 2, 3, 3])
        .floats("v", &[3])
        .floats("f", &[27, 4])
        .ints("zero", &[0])
        .ints("one", &[1])
        .ints("rest", &[-1])
        .node(
            "Conv",
            &["x", "w", "v"],
            &["a"],
            vec![text("auto_pad", "SAME_UPPER"), ints("strides", &[2, 2])],
        )
        .node("BatchNormalization", &["a", "v", "v", "v", "v"], &["b"], vec![float("epsilon", 0.1)])
        .node("LeakyRelu", &["b"], &["c"], vec![float("alpha", 0.1)])
        .node("Add", &["a", "c"], &["d"], vec![])
        .node("Shape", &["d"], &["s"], vec![])
        .node("Slice", &["s", "zero", "one"], &["n"], vec![])
        .node("Concat", &["n", "rest"], &["flat"], vec![int("axis", 0)])
        .node("Reshape", &["d", "flat"], &["e"], vec![])
        .node("Gemm", &["e", "f"], &["y"], vec![])
        .node("Transpose", &["d"], &["t"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("Softmax", &["t"], &["z"], vec![int("axis", -1)])
        .bytes()
}

#[test]
fn damaged_bytes_are_errors_or_other_models() {
    let sample = &sample();
    let options = ImportOptions::default();
    assert!(import_bytes(sample, None, &options).is_ok());
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut refused, mut accepted) = (0, 0);
    for case in 0..CASES {
        let bytes = changed(sample, case, &mut random);
        match import_bytes(&bytes, None, &options) {
            Ok(imported) => {
                accepted += 1;
                assert!(imported.network.layers.iter().all(|layer| layer.shape.elements() > 0));
                normalise(imported.network, Fusion::Full);
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    println!("{CASES} damaged models: {refused} refused, {accepted} still models");
    assert!(refused > CASES / 2 && accepted > CASES / 100);
}

/// A file with some of its bytes gone, changed or added. Four cases in a row are four ways to do that.
pub(super) fn changed(file: &[u8], case: usize, random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = file.to_vec();
    match case % 4 {
        0 => bytes.truncate(random.random_range(0..bytes.len())),
        1 => {
            for _ in 0..random.random_range(1..8) {
                let at = random.random_range(0..bytes.len());
                bytes[at] ^= 1 << random.random_range(0..8);
            }
        }
        2 => {
            for _ in 0..random.random_range(1..4) {
                bytes.insert(random.random_range(0..bytes.len()), random.random());
            }
        }
        _ => {
            // Continuation bits make numbers and lengths huge.
            let at = random.random_range(0..bytes.len());
            let end = bytes.len().min(at + random.random_range(1..10));
            bytes[at..end].fill(0xff);
        }
    }
    bytes
}

#[test]
fn lengths_are_not_believed() {
    // A graph that claims to be 2^63 bytes long, and a skipped field that claims to be −1.
    let huge = [0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
    let negative = [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    // Graphs within attributes within nodes.
    let mut deep = vec![];
    for _ in 0..1000 {
        for tag in [0x32, 0x2a, 0x0a] {
            let mut outer = vec![tag];
            let mut length = deep.len();
            while length > 127 {
                outer.push(length as u8 | 0x80);
                length >>= 7;
            }
            outer.push(length as u8);
            outer.extend(deep);
            deep = outer;
        }
    }
    let mut graph = vec![0x3a];
    let mut length = deep.len();
    while length > 127 {
        graph.push(length as u8 | 0x80);
        length >>= 7;
    }
    graph.push(length as u8);
    graph.extend(deep);
    for (bytes, wanted) in
        [(&huge[..], "beyond the end"), (&negative[..], "beyond the end"), (&graph[..], "nest deeper")]
    {
        let error = import_bytes(bytes, None, &ImportOptions::default()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn a_long_chain_of_nodes_is_no_trouble() {
    let mut model = Model::new(13, &[1, 4], &["t5000"]);
    for i in 0..=5000 {
        let (from, to) = (if i == 0 { "x".to_string() } else { format!("t{}", i - 1) }, format!("t{i}"));
        model = model.node("Relu", &[&from], &[&to], vec![]);
        let last = model.graph().node.len() - 1;
        model.graph().node[last].name = Some("same".into());
    }
    assert_eq!(model.import().unwrap().layers.len(), 5002);
    let mut views = Model::new(13, &[1, 4], &["y"]);
    for i in 0..5000 {
        let (from, to) = (if i == 0 { "x".to_string() } else { format!("t{}", i - 1) }, format!("t{i}"));
        views = views.node("Identity", &[&from], &[&to], vec![]);
    }
    let error = views.node("Relu", &["t4999"], &["y"], vec![]).import().unwrap_err().to_string();
    assert!(error.contains("views in a row"), "{error}");
}

#[test]
fn constants_are_not_computed_without_end() {
    let mut model = Model::new(13, &[1], &["y"]).ints("big", &[60_000, 30_000]).ints("one", &[1]);
    model = model.node("Expand", &["one", "big"], &["c"], vec![]).node(
        "Cast",
        &["c"],
        &["f"],
        vec![int("to", 1)],
    );
    let error = model.node("Add", &["x", "f"], &["y"], vec![]).import().unwrap_err().to_string();
    assert!(error.contains("computed at import"), "{error}");
}

#[test]
fn empty_constants_hide_no_overflow() {
    let big = i64::MAX / 4;
    for operator in ["Slice", "Transpose", "ReduceSum", "Concat"] {
        let empty = |dims: Vec<i64>| TensorProto {
            name: Some("c".into()),
            dims,
            data_type: Some(DataType::INT64),
            ..Default::default()
        };
        for dims in [vec![0, big, big], vec![0, 1 << 30], vec![1 << 30, 0]] {
            let model = Model::new(13, &[1], &["y"])
                .tensor(empty(dims))
                .ints("zero", &[0])
                .ints("back", &[-1])
                .node(
                    operator,
                    match operator {
                        "Slice" => &["c", "back", "zero", "zero", "back"],
                        "ReduceSum" => &["c", "zero"],
                        "Concat" => &["c", "c"],
                        _ => &["c"],
                    },
                    &["f"],
                    if operator == "Concat" { vec![int("axis", 0)] } else { vec![] },
                )
                .node("Add", &["x", "f"], &["y"], vec![]);
            assert!(model.import().is_err(), "{operator}");
        }
    }
}
