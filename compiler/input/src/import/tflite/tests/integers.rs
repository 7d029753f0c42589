//! Quantized models: tensors of integers in the file are tensors of integers in the network.

use super::{Field, I8, I32, Model, Tensor, U8};
use crate::export::export;
use crate::import::{ImportOptions, import_bytes};
use csdfc_network::LayerId;
use csdfc_network::pass::{self, Fusion};
use csdfc_plan::format::Quantization;
use csdfc_plan::operator::{Input, InputElement, Operator};

/// A convolution of integers, of these types of elements and zero points.
fn quantized(element: i8, points: [i64; 3]) -> Model {
    let mut model = Model::default();
    let of = |shape: &[i32], scale: f32, point| Tensor {
        shape: shape.to_vec(),
        element,
        scales: vec![scale],
        points: vec![point],
        ..Tensor::default()
    };
    let x = model.tensor(of(&[1, 4, 4, 2], 0.5, points[0]));
    model.inputs = vec![x];
    let filters = Tensor { data: Some((0..24).collect()), ..of(&[3, 2, 2, 2], 0.25, points[1]) };
    let filters = model.tensor(filters);
    let bias = Tensor { data: Some(vec![1; 12]), element: I32, points: vec![0], ..of(&[3], 0.125, 0) };
    let (bias, y) = (model.tensor(bias), model.tensor(of(&[1, 4, 4, 3], 2.0, points[2])));
    let strides = [(1, Field::Int(1)), (2, Field::Int(1)), (3, Field::Byte(3))];
    model.operator("CONV_2D", &[x, filters, bias], &[y], &strides);
    let seen = model.tensor(of(&[1, 48], 2.0, points[2]));
    model.operator("RESHAPE", &[y], &[seen], &[(0, Field::Ints(vec![1, 48]))]);
    model.outputs = vec![seen];
    model
}

fn primitives(model: &Model) -> Vec<String> {
    let network = pass::normalise(model.import().unwrap(), Fusion::Full);
    let named = |layer: &csdfc_network::Layer| layer.primitive.map(|primitive| primitive.name().to_string());
    network.layers.iter().filter_map(named).collect()
}

#[test]
fn convolutions_compute_on_integers() {
    for model in [quantized(I8, [-3, 0, 5]), quantized(U8, [3, 128, 5])] {
        let primitives = primitives(&model);
        assert!(primitives.iter().any(|name| name == "indirect-gemm-int8-hwc-hwc"), "{primitives:?}");
    }
}

/// The caller hands over the integers that the file states, and what is written as ONNX takes them, too.
#[test]
fn inputs_are_integers() {
    for (element, point, stated) in [(I8, -3, InputElement::I8), (U8, 3, InputElement::U8)] {
        let imported = quantized(element, [point, 0, 5]).import().unwrap();
        let network = pass::normalise(imported.clone(), Fusion::Full);
        let input = &network.layers[0];
        assert_eq!(input.operator, Operator::Input(Input { element: stated, camera: None }));
        let zero_point = if element == I8 { 125 } else { 3 };
        assert_eq!(input.quantization, Some(Quantization { scale: 0.5, zero_point }));
        // No layer of floats is between the input and the convolution.
        assert_eq!(network.layers[1].operator.kind(), "conv");
        assert_eq!(network.layers[1].inputs[0].layer, LayerId(0));
        let written =
            import_bytes(&export(&imported).unwrap(), None, &ImportOptions::default()).unwrap().network;
        let written = pass::normalise(written, Fusion::Full);
        let conv = written.layers.iter().find(|layer| layer.operator.kind() == "conv").unwrap();
        assert_eq!(written.layer(conv.inputs[0].layer).quantization, input.quantization);
    }
    // A zero point that no such integer is, is refused by the layer that reads it, as anywhere.
    let mut model = quantized(I8, [0, 0, 0]);
    model.tensors[0].points = vec![200];
    let error = model.import().unwrap_err().to_string();
    assert!(error.contains("a zero point is 200, out of the range of int8"), "{error}");
}

#[test]
fn scales_are_dealt_out_along_the_dimension_of_the_outputs() {
    let mut model = quantized(I8, [0, 0, 0]);
    (model.tensors[1].scales, model.tensors[1].points) = (vec![0.25, 0.5, 1.0], vec![0; 3]);
    let network = model.import().unwrap();
    let layer_of = |network: &csdfc_network::Network| {
        network.layers.iter().position(|layer| layer.operator.kind() == "conv").unwrap()
    };
    let layer = &network.layers[layer_of(&network)];
    assert_eq!(layer.parameters[0].scales(0).unwrap(), (vec![0.25, 0.5, 1.0], false));
    // Of the second filter, the first input at each place: 8, 10, 12 and 14, halved.
    assert_eq!(layer.parameters[0].values().unwrap()[8..12], [4.0, 5.0, 6.0, 7.0]);
    // A bias has one dimension: TFLite does not look which one the file states.
    let bias = &mut model.tensors[2];
    (bias.scales, bias.points, bias.axis) = (vec![0.125, 0.25, 0.5], vec![0; 3], 3);
    let stated = model.import().unwrap();
    model.tensors[2].axis = 0;
    let values =
        |network: &csdfc_network::Network| network.parameter(layer_of(network), 1).unwrap().into_owned();
    assert_eq!(values(&stated), values(&model.import().unwrap()));
    model.tensors[1].axis = 7;
    let error = model.import().unwrap_err().to_string();
    assert!(error.contains("tensor t1 has rank 4, but scales along dimension 7"), "{error}");
    model.tensors[1].axis = 3;
    let error = model.import().unwrap_err().to_string();
    assert!(error.contains("node t3 (CONV_2D): it has 3 scales for 2 indices of dimension 1"), "{error}");
}
