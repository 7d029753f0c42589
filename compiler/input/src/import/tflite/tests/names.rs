//! Tensors of a TFLite model need not have different names.

use super::{Model, Tensor};
use crate::import::{ImportOptions, Imported, import_bytes};
use csdfc_plan::operator::Operator;

fn import(model: &Model, shapes: &[(&str, &[usize])]) -> Imported {
    let shapes = shapes.iter().map(|(name, dims)| ((*name).to_string(), dims.to_vec())).collect();
    import_bytes(&model.bytes(), None, &ImportOptions { shapes, ..ImportOptions::default() }).unwrap()
}

/// The names of its inputs, of its outputs, and of all its layers.
fn names(imported: &Imported) -> [Vec<&str>; 3] {
    let network = &imported.network;
    let inputs = network.layers.iter().filter(|layer| matches!(layer.operator, Operator::Input(_)));
    [
        inputs.map(|layer| layer.name.as_str()).collect(),
        network.outputs.iter().map(|output| output.name.as_str()).collect(),
        network.layers.iter().map(|layer| layer.name.as_str()).collect(),
    ]
}

/// Two inputs, two outputs and a tensor between them are named `x`, and one has the name that the second could get.
#[test]
fn tensors_of_one_name_get_a_number() {
    let mut model = Model::default();
    let named = |name| Tensor { name: Some(name), shape: vec![1, 4], ..Tensor::default() };
    let between = model.tensor(named("x"));
    let taken = model.tensor(named("x_2"));
    let [a, b, y, z] = [0; 4].map(|_| model.tensor(named("x")));
    model.inputs = vec![a, b];
    model.operator("ADD", &[a, b], &[between], &[]);
    model.operator("RELU", &[between], &[taken], &[]);
    model.operator("TANH", &[taken], &[y], &[]);
    model.operator("LOGISTIC", &[taken], &[z], &[]);
    model.outputs = vec![y, z];
    let imported = import(&model, &[]);
    let [inputs, outputs, layers] = names(&imported);
    assert_eq!(inputs, ["x", "x_3"]);
    assert_eq!(outputs, ["x_4", "x_5"]);
    assert_eq!(layers, ["x", "x_3", "x_6", "x_2", "x_4", "x_5"]);
    // A plan's inputs are those of its model when it is loaded again.
    let again = import(&model, &[("x", &[1, 4]), ("x_3", &[1, 4])]);
    assert_eq!(names(&again), names(&imported));
}

#[test]
fn a_tensor_may_be_several_outputs() {
    let mut model = super::small();
    model.outputs = vec![7, 7];
    assert_eq!(names(&import(&model, &[]))[1], ["t7", "t7_2"]);
}

/// Of an input that nothing reads not even the shape matters.
#[test]
fn inputs_that_nothing_reads_are_told() {
    let mut model = super::small();
    let x = model.input(&[-1, -1, -1]);
    let y = model.made(&[1, 2]);
    model.operator("RELU", &[x], &[y], &[]);
    let imported = import(&model, &[]);
    assert_eq!(names(&imported)[0], ["t0"]);
    assert_eq!(imported.unused_inputs, ["t8"]);
}
