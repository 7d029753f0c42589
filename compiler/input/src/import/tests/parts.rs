//! Parts of models.

use csdfc_plan::part::ModelPart;

use super::*;

/// `x` → `a` → `b` → `c`, an unknown operator, → `y`, which also adds `a`. A shape is read on the way.
fn model() -> Model {
    Model::new(13, &[1, 4, 2], &["y"])
        .node("Relu", &["x"], &["a"], vec![])
        .node("Sigmoid", &["a"], &["b"], vec![])
        .node("Shape", &["b"], &["dims"], vec![])
        .node("Detect", &["b", "dims"], &["c"], vec![])
        .node("Add", &["c", "a"], &["y"], vec![])
}

fn part(inputs: &[&str], outputs: &[&str]) -> ImportOptions {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    ImportOptions {
        part: ModelPart { inputs: names(inputs), outputs: names(outputs) },
        ..ImportOptions::default()
    }
}

/// The names of a network's layers, and of its outputs.
fn names(network: &Network) -> (Vec<&str>, Vec<&str>) {
    (
        network.layers.iter().map(|layer| layer.name.as_str()).collect(),
        network.outputs.iter().map(|output| output.name.as_str()).collect(),
    )
}

fn help(error: &ImportError) -> String {
    miette::Diagnostic::help(error).map(|help| help.to_string()).unwrap_or_default()
}

#[test]
fn a_model_ends_before_what_cannot_be_imported() {
    let error = model().import().unwrap_err();
    assert!(
        help(&error).ends_with("; --outputs b,a takes the part of the model before that"),
        "{}",
        help(&error)
    );
    let network = model().import_with(&part(&[], &["b", "a"])).unwrap();
    assert_eq!(names(&network), (vec!["x", "node_a", "node_b"], vec!["b", "a"]));
    // Such a node may be found only when it is imported.
    let later = Model::new(13, &[1, 4, 2], &["y"]).node("Relu", &["x"], &["a"], vec![]);
    let later = later.node("MaxPool", &["a"], &["y"], vec![]);
    let error = later.import().unwrap_err();
    assert_eq!(help(&error), "--outputs a takes the part of the model before that");
}

/// Of what is not known, the first reads the input, and so nothing is before it.
#[test]
fn a_model_whose_first_nodes_cannot_be_imported_begins_after_them() {
    let model = Model::new(13, &[1, 4, 2], &["y"])
        .node("Unpack", &["x"], &["a"], vec![])
        .node("Relu", &["a"], &["b"], vec![])
        .node("Window", &["b"], &["c"], vec![])
        .node("Sigmoid", &["c"], &["d"], vec![])
        .node("Add", &["d", "b"], &["y"], vec![]);
    let error = model.import().unwrap_err();
    let text = help(&error);
    assert!(text.ends_with("; --inputs c,b takes the part of the model after that"), "{text}");
    let mut options = part(&["c", "b"], &[]);
    for name in ["b", "c"] {
        options.shapes.insert(name.into(), vec![1, 4, 2]);
    }
    assert_eq!(names(&model.import_with(&options).unwrap()).1, ["y"]);
}

/// The inputs of the model that are still needed remain.
#[test]
fn a_model_begins_after_what_cannot_be_imported() {
    let mut options = part(&["c"], &[]);
    let error = model().import_with(&options).unwrap_err();
    assert!(error.to_string().contains("input c"), "{error}");
    assert!(help(&error).contains("--shape c="), "{}", help(&error));
    options.shapes.insert("c".into(), vec![1, 4, 2]);
    let network = model().import_with(&options).unwrap();
    assert_eq!(names(&network), (vec!["x", "c", "node_a", "node_y"], vec!["y"]));
    let imported = import_bytes(&model().bytes(), None, &options).unwrap();
    assert_eq!(imported.unused_inputs, [""; 0]);
    // With two tensors, `x` is not needed any more. The model may state their shapes.
    let mut stated = model();
    for name in ["a", "c"] {
        stated.graph().value_info.push(value(name, DataType::FLOAT, &[1, 4, 2]));
    }
    let imported = import_bytes(&stated.bytes(), None, &part(&["c", "a"], &[])).unwrap();
    assert_eq!(names(&imported.network).0, ["a", "c", "node_y"]);
    assert_eq!(imported.unused_inputs, [""; 0]);
}

#[test]
fn what_is_no_tensor_is_refused() {
    for (options, reason, mend) in [
        (part(&[], &["yy"]), "tensor yy: no node computes", "did you mean y?"),
        (part(&["tensor"], &[]), "tensor tensor: no node computes", "csdfc inspect"),
        (part(&[], &[""]), "no node computes", "csdfc inspect"),
        (part(&[], &["x"]), "output x: it is an input of the network", "remove it"),
        (part(&["b"], &["b"]), "output b: it is an input of the network", "remove it"),
        (part(&[], &["dims"]), "output dims: it is a constant", "remove it"),
        (part(&["b"], &["a"]), "tensor b: no output of the part depends on it", "come after it"),
    ] {
        let mut model = model();
        model.graph().value_info.push(value("b", DataType::FLOAT, &[1, 4, 2]));
        let error = model.import_with(&options).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(help(&error).contains(mend), "{}", help(&error));
    }
}
