//! Messages for models with errors.

use super::{F32, I8, I32, I64, Model, Operator, Tensor, U8, small};
use crate::import::{ImportOptions, import, import_bytes};

fn refused(model: &Model, words: &str) {
    let error = model.import().unwrap_err().to_string();
    assert!(error.contains(words), "{error}\nwithout: {words}");
}

#[test]
fn operators_that_are_not_supported_are_all_named() {
    let mut model = small();
    let (a, b, c) = (model.made(&[1, 4]), model.made(&[1, 4]), model.made(&[1, 4]));
    model.operator("EMBEDDING_LOOKUP", &[model.outputs[0]], &[a], &[]);
    let custom = Some(("Foo".into(), Vec::new()));
    model.operators.push(Operator {
        code: 32,
        custom,
        inputs: vec![a],
        outputs: vec![b],
        ..Operator::default()
    });
    model.operators.push(Operator { code: 4711, inputs: vec![b], outputs: vec![c], ..Operator::default() });
    model.outputs = vec![c];
    let words = ["t8 (EMBEDDING_LOOKUP)", "t9 (custom Foo)", "t10 (operator 4711)"];
    words.iter().for_each(|words| refused(&model, words));
    // Tensors on which no output depends may be anything.
    model.outputs = vec![7];
    model.import().unwrap();
}

#[test]
fn a_custom_operator_is_none_of_tflites_own() {
    let mut model = small();
    let custom = Some(("CONV_2D".into(), Vec::new()));
    let operator = Operator { code: 32, custom, ..model.operators[0].clone() };
    model.operators[0] = operator;
    refused(&model, "t3 (custom CONV_2D)");
}

#[test]
fn dynamic_shapes_ask_for_one() {
    let mut model = small();
    model.tensors[0].signature = vec![1, -1, -1, 2];
    refused(&model, "its shape [1, ?, ?, 2] is dynamic");
    let shapes = [("t0".to_string(), vec![1, 5, 6, 2])].into();
    import_bytes(&model.bytes(), None, &ImportOptions { shapes, ..ImportOptions::default() }).unwrap();
    // A batch is 1.
    model.tensors[0].signature = vec![-1, 5, 6, 2];
    model.import().unwrap();
}

#[test]
fn inputs_are_numbers() {
    for (element, words) in [
        (5, "input t0: its elements are string"),
        (I32, "node t3 (CONV_2D): it computes on integers, but csdfc can only move these integers"),
        (U8, "node t3 (CONV_2D): it computes on integers, but csdfc can only move these integers"),
    ] {
        let mut model = small();
        model.tensors[0].element = element;
        refused(&model, words);
    }
    // Integers may become floats.
    for element in [I32, I64, I8, U8] {
        let mut model = small();
        let floats = model.made(&[1, 5, 6, 2]);
        let cast = Operator {
            code: super::super::codes::tests::code("CAST"),
            inputs: vec![0],
            outputs: vec![floats],
            ..Operator::default()
        };
        model.tensors[0].element = element;
        model.operators[0].inputs[0] = floats;
        model.operators.insert(0, cast);
        assert_eq!(model.import().unwrap().layers.len(), small().import().unwrap().layers.len());
    }
}

#[test]
fn tensors_without_data_are_named() {
    let mut model = small();
    model.tensors[1].data = None;
    refused(&model, "no operator before t3 computes tensor t1, and it has no data");
}

#[test]
fn constants_have_the_bytes_of_their_shape() {
    let mut model = small();
    model.tensors[1].shape[0] = 4;
    refused(&model, "tensor t1: 96 bytes are stored where its dimensions need 128");
    model.tensors[1] = Tensor { element: 5, ..model.tensors[1].clone() };
    refused(&model, "tensor t1: its elements are string");
}

#[test]
fn sparse_integers_are_refused() {
    let mut model = small();
    let weights = Tensor {
        element: I8,
        data: Some(vec![1]),
        sparsity: Some(Default::default()),
        ..model.tensors[6].clone()
    };
    model.tensors[6] = weights;
    refused(&model, "it is sparse, and has integers");
    model.tensors[6].element = F32;
    refused(&model, "the order of its elements is not lawful");
}

#[test]
fn an_operator_names_itself_and_its_operand() {
    let mut model = small();
    model.operators[0].inputs.truncate(1);
    refused(&model, "node t3 (CONV_2D): operand 1 is missing");
    model.operators[0].inputs.push(0);
    refused(&model, "node t3 (CONV_2D): operand 1, its weights (t0), is computed by the network");
    model.operators[0].inputs[1] = 99;
    refused(&model, "not a TFLite model: it refers to tensor 99, but there are 8");
}

#[test]
fn a_tensor_is_computed_once() {
    let mut model = small();
    let again = model.operators[0].clone();
    model.operators.insert(0, again);
    refused(&model, "tensor t3 is computed twice, or is an input");
}

#[test]
fn outputs_are_computed() {
    let mut model = small();
    model.outputs = vec![1];
    refused(&model, "output t1: no operator computes it");
    model.outputs = vec![0];
    refused(&model, "output t0: it is an input of the network");
    model.outputs.clear();
    refused(&model, "the model has no outputs");
}

#[test]
fn what_is_no_model_is_said_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes, words) in [
        ("a.tflite", &b"hello there"[..], "not a TFLite model: it does not begin as one"),
        ("b.tflite", b"", "not a TFLite model"),
        ("c.onnx", b"hello there", "not an ONNX model"),
        ("d.onnx", b"\x08\0\0\0TFL3", "not a TFLite model"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let error = import(&file, &ImportOptions::default()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}\nwithout: {words}");
    }
    // The bytes say what a file is, not its name.
    let file = folder.path().join("e.onnx");
    std::fs::write(&file, small().bytes()).unwrap();
    import(&file, &ImportOptions::default()).unwrap();
}

#[test]
fn weights_stay_in_the_file_until_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.tflite");
    std::fs::write(&file, small().bytes()).unwrap();
    let network = import(&file, &ImportOptions::default()).unwrap().network;
    // Filters [1..24] of [outputs, rows, columns, inputs]: of the first, the inputs come before rows and columns.
    let values = network.parameter(1, 0).unwrap();
    assert_eq!(values[..8], [1.0, 3.0, 5.0, 7.0, 2.0, 4.0, 6.0, 8.0]);
    std::fs::remove_file(&file).unwrap();
    assert!(network.parameter(1, 0).unwrap_err().to_string().contains("cannot be read"));
}
