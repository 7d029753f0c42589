//! Conversions to integers and back, and operators of integers.

use std::cell::RefCell;

use csdfc_plan::format::Quantization;
use rten_onnx::onnx::{AttributeProto, DataType, TensorProto};

use super::{Model, int, ints, refused};
use csdfc_network::Network;
use csdfc_network::pass::{Fusion, normalise};

/// A tensor of this type whose bytes these are.
pub(super) fn stored(name: &str, data_type: DataType, dims: &[i64], bytes: &[u8]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(data_type),
        raw_data: Some(RefCell::new(bytes.to_vec())),
        ..Default::default()
    }
}

pub(super) fn scale(name: &str, values: &[f32]) -> TensorProto {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let dims: Vec<i64> = if values.len() == 1 { vec![] } else { vec![values.len() as i64] };
    stored(name, DataType::FLOAT, &dims, &bytes)
}

pub(super) fn zero(name: &str, data_type: DataType, value: u8) -> TensorProto {
    stored(name, data_type, &[], &[value])
}

/// A model of one image and one output `y`, with a scale `s` of ½, zero points `u` of 3 and `i` of −3.
fn model() -> Model {
    Model::new(13, &[1, 2, 4, 4], &["y"])
        .tensor(scale("s", &[0.5]))
        .tensor(zero("u", DataType::UINT8, 3))
        .tensor(zero("i", DataType::INT8, 253))
}

/// Quantized and dequantized by these.
fn there_and_back(model: Model, scale: &str, zero: &str) -> Model {
    model.node("QuantizeLinear", &["x", scale, zero], &["q"], vec![]).node(
        "DequantizeLinear",
        &["q", scale, zero],
        &["y"],
        vec![],
    )
}

/// The primitives of a network's layers after the passes, and what their integers stand for.
fn layers(network: Network) -> Vec<(String, Option<(f32, u8)>)> {
    let network = normalise(network, Fusion::Full);
    let of = |q: Quantization| (q.scale, q.zero_point);
    let layers = network.layers.iter().filter(|layer| !layer.is_input());
    layers.map(|layer| (layer.primitive().name().to_owned(), layer.quantization.map(of))).collect()
}

#[test]
fn signed_integers_are_moved() {
    for (zero, moved) in [("u", 3), ("i", 125)] {
        let all = layers(there_and_back(model(), "s", zero).import().unwrap());
        let quantize = ("convert-quantize-hwc-hwc".to_owned(), Some((0.5, moved)));
        assert_eq!(all, [quantize, ("convert-dequantize-hwc-hwc".to_owned(), None)]);
    }
    // Without a zero point it is 0, of uint8.
    let model = model().node("QuantizeLinear", &["x", "s"], &["q"], vec![]).node(
        "DequantizeLinear",
        &["q", "s"],
        &["y"],
        vec![],
    );
    assert_eq!(layers(model.import().unwrap())[0].1, Some((0.5, 0)));
}

/// A convolution 1×1 from 2 to 2 channels by the weights −1, 2, 3, −4, of scales ½ and ¼, between integers.
fn conv(model: Model, form: &str) -> Model {
    let model = model
        .tensor(stored("w", DataType::INT8, &[2, 2, 1, 1], &[255, 2, 3, 252]))
        .tensor(scale("sw", &[0.5, 0.25]))
        .tensor(stored("zw", DataType::INT8, &[2], &[0, 0]))
        .tensor(stored("b", DataType::INT32, &[2], &[1, 0, 0, 0, 255, 255, 255, 255]))
        .tensor(scale("sb", &[0.25, 0.125]));
    match form {
        "qdq" => model
            .node("QuantizeLinear", &["x", "s", "u"], &["q"], vec![])
            .node("DequantizeLinear", &["q", "s", "u"], &["d"], vec![])
            .node("DequantizeLinear", &["w", "sw", "zw"], &["dw"], vec![int("axis", 0)])
            .node("DequantizeLinear", &["b", "sb"], &["db"], vec![int("axis", 0)])
            .node("Conv", &["d", "dw", "db"], &["c"], vec![])
            .node("Relu", &["c"], &["r"], vec![])
            .node("QuantizeLinear", &["r", "s", "i"], &["p"], vec![])
            .node("DequantizeLinear", &["p", "s", "i"], &["y"], vec![]),
        _ => model
            .node("QuantizeLinear", &["x", "s", "u"], &["q"], vec![])
            .node("QLinearConv", &["q", "s", "u", "w", "sw", "zw", "s", "i", "b"], &["p"], vec![])
            .node("DequantizeLinear", &["p", "s", "i"], &["y"], vec![]),
    }
}

#[test]
fn a_convolution_between_integers_computes_on_them() {
    for form in ["qdq", "operator"] {
        let network = conv(model(), form).import().unwrap();
        let floats = normalise(network.clone(), Fusion::None);
        let by = floats.layers.iter().find(|layer| layer.operator.kind() == "conv").unwrap();
        let values: Vec<Vec<f32>> = by.parameters.iter().map(|weights| weights.values().unwrap()).collect();
        assert_eq!(values[0], [-0.5, 1.0, 0.75, -1.0], "{form}");
        assert_eq!(values[1], [0.25, -0.125], "{form}");
        let all = layers(network);
        let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
        let expected =
            ["convert-quantize-hwc-hwc", "indirect-gemm-int8-hwc-hwc", "convert-dequantize-hwc-hwc"];
        assert_eq!(names, expected, "{form}");
        assert_eq!(all[1].1, Some((0.5, 125)), "{form}");
    }
}

#[test]
fn what_no_primitive_computes_stays_with_floats() {
    let attributes = vec![ints("kernel_shape", &[2, 2])];
    let mut model = there_and_back(model(), "s", "u").node("Softmax", &["y"], &["z"], vec![]).node(
        "MaxPool",
        &["y"],
        &["m"],
        attributes,
    );
    model.graph().output = ["z", "m"].map(|name| super::value(name, DataType::FLOAT, &[])).into();
    let all = layers(model.import().unwrap());
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    // The pool moves integers, and its output becomes numbers again.
    assert!(names.contains(&"own-kernel-hwc-hwc") && names.contains(&"own-kernel-int8-hwc-hwc"), "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "convert-dequantize-hwc-hwc").count(), 2, "{names:?}");
}

#[test]
fn impossible_scales_and_zero_points_are_refused() {
    for (value, words) in [(0.0, "scale is 0"), (-1.0, "scale is -1"), (f32::NAN, "scale is NaN")] {
        let model = model().tensor(scale("t", &[value]));
        refused(&there_and_back(model, "t", "u"), words);
    }
    refused(
        &there_and_back(model().tensor(scale("t", &[0.5, 0.25])), "t", "u"),
        "1 zero points, but 2 scales",
    );
    let wide = TensorProto {
        name: Some("z".into()),
        data_type: Some(DataType::UINT8),
        int32_data: vec![256],
        ..Default::default()
    };
    refused(
        &there_and_back(model().tensor(wide), "s", "z"),
        "a zero point is 256, out of the range of uint8",
    );
    let wide = stored("z", DataType::INT32, &[], &[0; 4]);
    refused(&there_and_back(model().tensor(wide), "s", "z"), "int32; int8 and uint8 are supported");
    // Scales that are not as many as the channels, and zero points of another type than the weights.
    let weights = |scales: &[f32], zero: TensorProto, attributes: Vec<AttributeProto>| {
        let mut model = model().tensor(stored("w", DataType::INT8, &[2, 2, 1, 1], &[1, 2, 3, 4]));
        model = model.tensor(scale("sw", scales)).tensor(zero);
        model.node("DequantizeLinear", &["w", "sw", "zw"], &["dw"], attributes).node(
            "Conv",
            &["x", "dw"],
            &["y"],
            vec![],
        )
    };
    let zeros = |count: i64| stored("zw", DataType::INT8, &[count], &vec![0; count as usize]);
    let axis = || vec![int("axis", 0)];
    refused(&weights(&[0.5, 0.0], zeros(2), axis()), "a scale is 0");
    assert!(weights(&[0.5, 3e-39], zeros(2), axis()).import().is_ok());
    refused(&weights(&[0.5, 0.25, 1.0], zeros(3), axis()), "3 scales for 2 indices of dimension 0");
    refused(&weights(&[0.5, 0.25], zeros(3), axis()), "3 zero points, but 2 scales");
    refused(
        &weights(&[0.5], zero("zw", DataType::UINT8, 0), axis()),
        "zero point is uint8, but its integers are int8",
    );
    refused(&weights(&[0.5, 0.25], zeros(2), vec![int("axis", 7)]), "axis 7 is out of range");
    refused(&weights(&[0.5, 0.25], zeros(2), vec![int("block_size", 2)]), "do not fit");
    let other = model().node("QuantizeLinear", &["x", "s", "u"], &["q"], vec![]).node(
        "DequantizeLinear",
        &["q", "s", "i"],
        &["y"],
        vec![],
    );
    refused(&other, "are not those of its operand 0");
    refused(
        &model().node("DequantizeLinear", &["x", "s", "u"], &["y"], vec![]),
        "not made by a QuantizeLinear",
    );
    let relu =
        model().node("QuantizeLinear", &["x", "s", "u"], &["q"], vec![]).node("Relu", &["q"], &["y"], vec![]);
    refused(&relu, "it computes on 8-bit integers");
}
