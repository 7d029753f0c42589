//! Parts of models.

use csdfc_network::Network;
use csdfc_plan::part::ModelPart;

use super::Model;
use crate::import::error::ImportError;
use crate::import::{ImportOptions, import_bytes};

/// `t0` → `t1` → `t2` and `t3`, the halves of it, → `t4`, their sum.
fn model() -> Model {
    let mut model = Model::default();
    let x = model.input(&[1, 4]);
    let [a] = [model.made(&[1, 4])];
    let [b, c, y] = [0; 3].map(|_| model.made(&[1, 2]));
    let axis = model.ints(&[], &[1]);
    model.operator("RELU", &[x], &[a], &[]);
    model.operator("SPLIT", &[axis, a], &[b, c], &[(0, super::Field::Int(2))]);
    model.operator("ADD", &[b, c], &[y], &[]);
    model.outputs = vec![y];
    model
}

fn import(inputs: &[&str], outputs: &[&str]) -> Result<Network, ImportError> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_string()).collect();
    let options = ImportOptions {
        part: ModelPart { inputs: names(inputs), outputs: names(outputs) },
        ..ImportOptions::default()
    };
    import_bytes(&model().bytes(), None, &options).map(|imported| imported.network)
}

/// The names of a network's inputs and outputs, and the number of its other layers.
fn ends(network: &Network) -> (Vec<&str>, Vec<&str>, usize) {
    let inputs = network.layers.iter().filter(|layer| layer.is_input()).map(|layer| layer.name.as_str());
    let inputs: Vec<&str> = inputs.collect();
    let outputs = network.outputs.iter().map(|output| output.name.as_str()).collect();
    let others = network.layers.len() - inputs.len();
    (inputs, outputs, others)
}

#[test]
fn other_tensors_are_inputs_and_outputs() {
    assert_eq!(ends(&import(&[], &[]).unwrap()).0, ["t0"]);
    let whole = ends(&import(&[], &[]).unwrap()).2;
    let first = import(&[], &["t1"]).unwrap();
    assert_eq!(ends(&first), (vec!["t0"], vec!["t1"], 1));
    let rest = import(&["t1"], &[]).unwrap();
    assert_eq!(ends(&rest), (vec!["t1"], vec!["t4"], whole - 1));
    // The operator that computes `t2` is still needed for `t3`.
    let of_half = import(&["t2"], &[]).unwrap();
    assert_eq!((ends(&of_half).0, ends(&of_half).1), (vec!["t0", "t2"], vec!["t4"]));
}

/// The outputs that do not depend on it are among them.
#[test]
fn a_model_ends_before_what_cannot_be_imported() {
    let mut model = Model::default();
    let x = model.input(&[1, 4]);
    let named = super::Tensor { name: Some("a;relu"), shape: vec![1, 4], ..super::Tensor::default() };
    let a = model.tensor(named);
    let [b, c, y] = [0; 3].map(|_| model.made(&[1, 4]));
    model.operator("RELU", &[x], &[a], &[]);
    model.operator("LOGISTIC", &[a], &[b], &[]);
    model.operator("UNIQUE", &[a], &[c], &[]);
    model.operator("ADD", &[c, b], &[y], &[]);
    model.outputs = vec![y, b];
    let error = model.import().unwrap_err();
    let help = miette::Diagnostic::help(&error).unwrap().to_string();
    assert!(help.ends_with("; --outputs 'a;relu,t2' takes the part of the model before that"), "{help}");
}

#[test]
fn a_model_whose_first_operator_cannot_be_imported_begins_after_it() {
    let mut model = Model::default();
    let x = model.input(&[1, 4]);
    let [a, y] = [0; 2].map(|_| model.made(&[1, 4]));
    model.operator("UNIQUE", &[x], &[a], &[]);
    model.operator("RELU", &[a], &[y], &[]);
    model.outputs = vec![y];
    let error = model.import().unwrap_err();
    let help = miette::Diagnostic::help(&error).unwrap().to_string();
    assert!(help.ends_with("; --inputs t1 takes the part of the model after that"), "{help}");
}

#[test]
fn what_no_operator_computes_is_refused() {
    for (name, reason) in [("t9", "tensor t9: no node computes"), ("t5", "tensor t5: no node computes")] {
        for error in [import(&[name], &[]), import(&[], &[name])] {
            let error = error.unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
