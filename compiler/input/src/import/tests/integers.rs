//! Integers that floats hold.

use rten_onnx::onnx::{DataType, TensorProto};

use super::quantized::{scale, stored, zero};
use super::{Model, int};

/// A model of an image that is quantized as it runs: `q`, `s` and `z`, and filters `w` of 2 to 1 channel.
fn dynamic() -> Model {
    Model::new(13, &[1, 2, 4, 4], &["y"]).tensor(filters(DataType::UINT8, &[1, 250])).node(
        "DynamicQuantizeLinear",
        &["x"],
        &["q", "s", "z"],
        vec![],
    )
}

fn filters(element: DataType, bytes: &[u8]) -> TensorProto {
    stored("w", element, &[1, bytes.len() as i64, 1, 1], bytes)
}

fn kinds(model: &Model) -> Vec<&'static str> {
    model.import().unwrap().layers.iter().skip(1).map(|layer| layer.operator.kind()).collect()
}

fn error(model: &Model) -> String {
    model.import().unwrap_err().to_string()
}

#[test]
fn products_of_what_is_quantized_as_it_runs() {
    let model = dynamic()
        .tensor(zero("zw", DataType::UINT8, 120))
        .node("ConvInteger", &["q", "w", "z", "zw"], &["i"], vec![])
        .node("Cast", &["i"], &["f"], vec![int("to", 1)])
        .node("Mul", &["f", "s"], &["y"], vec![]);
    let network = model.import().unwrap();
    let conv = network.layers.iter().find(|layer| layer.operator.kind() == "conv").unwrap();
    assert_eq!(conv.parameters[0].values().unwrap(), [-119.0, 130.0]);
    let kinds = kinds(&model);
    assert_eq!(kinds[kinds.len() - 3..], ["binary", "conv", "binary"], "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "reduce").count(), 2);
}

#[test]
fn constants_are_quantized_at_import() {
    let model = Model::new(13, &[1, 3], &["y"])
        .floats("c", &[3])
        .node("DynamicQuantizeLinear", &["c"], &["q", "s", "z"], vec![])
        .node("DequantizeLinear", &["q", "s", "z"], &["d"], vec![])
        .node("Add", &["x", "d"], &["y"], vec![]);
    assert_eq!(kinds(&model), ["binary"]);
}

#[test]
fn integers_are_not_computed_with_as_floats() {
    let after = |operator| error(&dynamic().node(operator, &["q"], &["y"], vec![]));
    for operator in ["Relu", "Softmax", "ReduceMax"] {
        assert!(after(operator).contains("computes on integers"), "{}", after(operator));
    }
    let moved = dynamic()
        .node("SpaceToDepth", &["q"], &["t"], vec![int("blocksize", 2)])
        .node("Cast", &["t"], &["f"], vec![int("to", 1)])
        .node("Relu", &["f"], &["y"], vec![]);
    assert!(moved.import().is_ok());
}

#[test]
fn what_floats_do_not_hold_is_refused() {
    // 255 · 255 · 259 is more than 2²⁴.
    let of = |channels: usize| {
        let model = Model::new(13, &[1, channels as i64, 1, 1], &["y"]);
        model
            .tensor(filters(DataType::UINT8, &vec![255; channels]))
            .node("DynamicQuantizeLinear", &["x"], &["q", "s", "z"], vec![])
            .node("ConvInteger", &["q", "w", "z"], &["y"], vec![])
    };
    assert!(of(258).import().is_ok());
    assert!(error(&of(259)).contains("exact up to 16777216"), "{}", error(&of(259)));
    let floats = Model::new(13, &[1, 2, 4, 4], &["y"]).tensor(filters(DataType::UINT8, &[1, 2]));
    let floats = error(&floats.node("ConvInteger", &["x", "w"], &["y"], vec![]));
    assert!(floats.contains("neither an input of integers"), "{floats}");
    let wide = dynamic().tensor(zero("zw", DataType::INT32, 0)).tensor(stored(
        "v",
        DataType::INT32,
        &[1, 2, 1, 1],
        &[0, 1, 0, 0, 0, 0, 0, 0],
    ));
    let wide = error(&wide.node("ConvInteger", &["q", "v", "z"], &["y"], vec![]));
    assert!(wide.contains("not 8-bit integers"), "{wide}");
}

#[test]
fn inputs_of_integers_become_integers_again() {
    for (element, zero_point, moved) in [(DataType::UINT8, 3, 3), (DataType::INT8, 253, 125)] {
        let model = Model::of(13, element, &[1, 2, 4, 4], &["y"])
            .tensor(scale("s", &[0.5]))
            .tensor(zero("z", element, zero_point))
            .node("DequantizeLinear", &["x", "s", "z"], &["d"], vec![])
            .node("QuantizeLinear", &["d", "s", "z"], &["y"], vec![]);
        let network = model.import().unwrap();
        let made = network.layers.iter().find_map(|layer| layer.quantization).unwrap();
        assert_eq!((made.scale, made.zero_point), (0.5, moved));
    }
    for element in [DataType::UINT8, DataType::INT16] {
        let floats = Model::of(13, element, &[1, 4], &["y"]).node("Relu", &["x"], &["y"], vec![]);
        assert!(error(&floats).contains("computes on integers"));
    }
}
