use miette::Diagnostic;

use super::*;

/// The error as a user reads it, code and help included.
fn error(model: &Model) -> String {
    error_with(model, &[])
}

fn error_with(model: &Model, shapes: &[(&str, &[usize])]) -> String {
    let shapes = shapes.iter().map(|(name, dims)| ((*name).to_string(), dims.to_vec())).collect();
    let error = model.import_with(&ImportOptions { shapes, ..ImportOptions::default() }).unwrap_err();
    let code = error.code().map(|code| code.to_string()).unwrap_or_default();
    let help = error.help().map(|help| help.to_string()).unwrap_or_default();
    format!("[{code}] {error}\nhelp: {help}")
}

fn relu(input: &[i64]) -> Model {
    Model::new(13, input, &["y"]).node("Relu", &["x"], &["y"], vec![])
}

#[test]
fn inputs() {
    let mut complex = relu(&[1, 3]);
    complex.graph().input = vec![value("x", DataType(14), &[1, 3])];
    let batched = Model::new(13, &[4, 3, 2, 2], &["y"]).ints("seen", &[4, 12]).floats("w", &[3, 3, 1, 1]);
    let batched = batched.node("Conv", &["x", "w"], &["a"], vec![]);
    let batched = batched.node("Reshape", &["a", "seen"], &["y"], vec![]);
    let mixed = Model::new(13, &[4, 3], &["y"]).node("Softmax", &["x"], &["y"], vec![int("axis", 0)]);
    let mut two = Model::new(13, &[-1, 3], &["y"]).node("Add", &["x", "z"], &["y"], vec![]);
    two.graph().input.push(value("z", DataType::FLOAT, &[-1, 3]));
    let cases = [
        ("dynamic height", error(&relu(&[0, 3, -1, -1]))),
        ("no height", error(&relu(&[1, 3, -2, 5]))),
        ("far miss", error_with(&relu(&[1, 3]), &[("image", &[1, 3])])),
        ("rank", error_with(&relu(&[1, 3]), &[("x", &[1, 3, 8])])),
        ("batch by option", error_with(&relu(&[1, 3]), &[("x", &[2, 3])])),
        ("near miss", error_with(&relu(&[1, 3]), &[("xx", &[1, 3])])),
        ("zero", error_with(&relu(&[1, 3]), &[("x", &[1, 0])])),
        ("too large", error_with(&relu(&[1, 3]), &[("x", &[1, usize::MAX])])),
        ("too high", error_with(&relu(&[1, 3, 8, 8]), &[("x", &[1, 1, 300_000, 1])])),
        ("complex numbers", error(&complex)),
        (
            "strings",
            error(&Model::of(13, DataType::STRING, &[1, 3], &["y"]).node("Relu", &["x"], &["y"], vec![])),
        ),
        (
            "integers",
            error(&Model::of(13, DataType::INT64, &[1, 3], &["y"]).node("Relu", &["x"], &["y"], vec![])),
        ),
        ("frames that mix", error(&mixed)),
        ("1 instead of it", error_with(&batched, &[("x", &[1, 3, 2, 2])])),
        ("no name", error_with(&two, &[("", &[1, 3])])),
    ];
    insta::assert_snapshot!(listed(&cases));
}

#[test]
fn graphs() {
    let two = relu(&[1, 3]).node("Relu", &["x"], &["y"], vec![]);
    let cycle = Model::new(13, &[1, 3], &["y"])
        .node("Add", &["x", "b"], &["a"], vec![])
        .node("Relu", &["a"], &["b"], vec![])
        .node("Relu", &["b"], &["y"], vec![]);
    let mut no_outputs = relu(&[1, 3]);
    no_outputs.graph().output.clear();
    let mut old = relu(&[1, 3]);
    old.proto.opset_import[0].version = Some(6);
    let mut new = relu(&[1, 3]);
    new.proto.opset_import[0].version = Some(1000);
    let unsupported = Model::new(13, &[1, 3], &["y"]).node("StringSplit", &["x"], &["a"], vec![]).node(
        "Unique",
        &["a"],
        &["y"],
        vec![],
    );
    let cases = [
        ("duplicate name", error(&two)),
        ("cycle", error(&cycle)),
        (
            "missing tensor",
            error(&Model::new(13, &[1, 3], &["y"]).node("Add", &["x", "gone"], &["y"], vec![])),
        ),
        ("no outputs", error(&no_outputs)),
        ("no nodes", error(&Model::new(13, &[1, 3], &["x"]))),
        ("input as output", error(&Model::new(13, &[1, 3], &["x"]).node("Identity", &["x"], &["y"], vec![]))),
        ("constant output", error(&Model::new(13, &[1, 3], &["y"]).node("Shape", &["x"], &["y"], vec![]))),
        ("old opset", error(&old)),
        ("new opset", error(&new)),
    ];
    insta::assert_snapshot!(listed(&cases));
    let ImportError::Unsupported { nodes, help, .. } = unsupported.import().unwrap_err() else { panic!() };
    let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    assert_eq!(nodes, ["node_a (StringSplit)", "node_y (Unique)"]);
    assert!(help.contains(&format!("{} operators", crate::import::SUPPORTED.len())), "{help}");
}

#[test]
fn nothing_reads_what_a_suppression_keeps() {
    let model = Model::new(13, &[1, 4, 4], &["y"])
        .ints("most", &[2])
        .ints("first", &[0])
        .node("Relu", &["x"], &["boxes"], vec![])
        .node("NonMaxSuppression", &["boxes", "x", "most"], &["kept"], vec![])
        .node("Gather", &["kept", "first"], &["y"], vec![]);
    let ImportError::Node { reason, help, .. } = model.import().unwrap_err() else { panic!() };
    assert!(reason.contains("it reads the indices of node_kept"), "{reason}");
    assert!(help.is_some_and(|help| help.contains("end the model with node_kept or before it")));
}

#[test]
fn nodes_and_tensors() {
    let image = || Model::new(13, &[1, 3, 8, 8], &["y"]);
    let mut short = image().floats("w", &[4, 3, 3, 3]).node("Conv", &["x", "w"], &["y"], vec![]);
    short.graph().initializer[0].dims = vec![4, 3, 3, 4];
    let mut complex = image().floats("w", &[4, 3, 3, 3]).node("Conv", &["x", "w"], &["y"], vec![]);
    complex.graph().initializer[0].data_type = Some(DataType(14));
    let cases = [
        ("short weights", error(&short)),
        ("complex weights", error(&complex)),
        (
            "filters of other channels",
            error(&image().floats("w", &[4, 5, 3, 3]).node("Conv", &["x", "w"], &["y"], vec![])),
        ),
        (
            "computed filters",
            error(&image().node("Relu", &["x"], &["w"], vec![]).node(
                "ConvTranspose",
                &["x", "w"],
                &["y"],
                vec![],
            )),
        ),
        (
            "4-D convolution",
            error(&Model::new(13, &[1, 3, 8, 8, 8, 8], &["y"]).floats("w", &[4, 3, 3, 3, 3, 3]).node(
                "Conv",
                &["x", "w"],
                &["y"],
                vec![],
            )),
        ),
        ("broadcast", error(&image().floats("c", &[5]).node("Add", &["x", "c"], &["y"], vec![]))),
        ("reshape", error(&image().ints("s", &[1, 7]).node("Reshape", &["x", "s"], &["y"], vec![]))),
        ("indices", {
            let arg_max = image().node("ArgMax", &["x"], &["i"], vec![]);
            error(&arg_max.node("Relu", &["i"], &["y"], vec![]))
        }),
        (
            "mode",
            error(&image().node(
                "SpaceToDepth",
                &["x"],
                &["y"],
                vec![int("blocksize", 2), text("mode", "RCD")],
            )),
        ),
        ("attribute", error(&image().node("LeakyRelu", &["x"], &["y"], vec![text("alpha", "steep")]))),
        ("unknown mode", {
            let sizes = image().ints("s", &[1, 3, 9, 9]);
            error(&sizes.node("Resize", &["x", "", "", "s"], &["y"], vec![text("mode", "lanczos")]))
        }),
    ];
    insta::assert_snapshot!(listed(&cases));
}

#[test]
fn files() {
    let options = ImportOptions::default();
    let check = |bytes: &[u8]| import_bytes(bytes, None, &options).unwrap_err().to_string();
    let bytes = relu(&[1, 3]).bytes();
    let cases = [
        ("empty", check(&[])),
        ("text", check(b"hello, world")),
        ("cut", check(&bytes[..bytes.len() - 3])),
        ("no graph", check(&[8, 8])),
        (
            "missing",
            crate::import::import(std::path::Path::new("no/such.onnx"), &options).unwrap_err().to_string(),
        ),
    ];
    insta::assert_snapshot!(listed(&cases));
}

#[test]
fn external_data_stays_beside_the_model() {
    use rten_onnx::onnx::{DataLocation, StringStringEntryProto};
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("models");
    std::fs::create_dir(&inside).unwrap();
    let values: Vec<u8> = [0.0f32, 5.0, 6.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(inside.join("w.bin"), &values).unwrap();
    std::fs::write(folder.path().join("secret.bin"), &values).unwrap();
    let import = |location: &str, offset: &str| {
        let entry = |key: &str, value: &str| StringStringEntryProto {
            key: Some(key.into()),
            value: Some(value.into()),
        };
        let model = Model::new(13, &[1, 2], &["y"]).tensor(TensorProto {
            name: Some("w".into()),
            dims: vec![2],
            data_type: Some(DataType::FLOAT),
            data_location: Some(DataLocation::EXTERNAL),
            external_data: vec![entry("location", location), entry("offset", offset)],
            ..Default::default()
        });
        let bytes = model.node("Add", &["x", "w"], &["y"], vec![]).bytes();
        import_bytes(&bytes, Some(&inside), &ImportOptions::default())
    };
    let network = import("w.bin", "4").unwrap().network;
    assert_eq!(network.layers[1].parameters[0].values().unwrap(), [5.0, 6.0]);
    for (location, offset, wanted) in [
        ("w.bin", "8", "beyond the end"),
        ("w.bin", "18446744073709551615", "beyond the end"),
        ("w.bin", "four", "no number"),
        ("../secret.bin", "0", "outside the model's folder"),
        ("gone.bin", "0", "cannot be read"),
    ] {
        let error = import(location, offset).unwrap_err().to_string();
        assert!(error.contains("tensor w") && error.contains(wanted), "{error}");
    }
}

fn listed(cases: &[(&str, String)]) -> String {
    cases.iter().map(|(what, error)| format!("{what}: {error}\n")).collect()
}

#[test]
fn attributes_that_onnx_does_not_have() {
    let check = |operator: &str, name: &str, is_known: bool| {
        let model = Model::new(13, &[1, 3, 4, 4], &["y"]).node(operator, &["x"], &["y"], vec![int(name, 0)]);
        let refused = model.import().is_err_and(|error| error.to_string().contains("ONNX has no attribute"));
        assert_eq!(refused, !is_known, "{operator} {name}");
    };
    check("Relu", "alpha", false);
    check("Elu", "beta", false);
    check("Softmax", "axis", true);
    check("ReduceMean", "keepdims", true);
    check("MaxPool", "storage_order", true);
    check("MaxPool", "group", false);
    check("Relu", "keepdims", false);
}
