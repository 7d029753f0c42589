//! The layers that each operator becomes, as text.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Field::{Byte, Float, Int, Ints};
use super::{F16, Field, I8, Model, Operator, Sparsity, Tensor, text};
use crate::import::SUPPORTED_BY_TFLITE;

/// A model of one operator of inputs and then constants.
fn of(
    name: &str,
    inputs: &[&[i32]],
    constants: impl FnOnce(&mut Model) -> Vec<i32>,
    outputs: &[&[i32]],
    options: &[(usize, Field)],
) -> (String, Model) {
    let mut model = Model::default();
    let mut operands: Vec<i32> = inputs.iter().map(|shape| model.input(shape)).collect();
    operands.extend(constants(&mut model));
    let outputs: Vec<i32> = outputs.iter().map(|shape| model.made(shape)).collect();
    model.operator(name, &operands, &outputs, options);
    model.outputs = outputs;
    (name.into(), model)
}

/// One of whose constants comes first.
fn swapped((name, mut model): (String, Model), order: &[usize]) -> (String, Model) {
    let inputs = &mut model.operators[0].inputs;
    *inputs = order.iter().map(|at| inputs[*at]).collect();
    (name, model)
}

const IMAGE: &[i32] = &[1, 4, 6, 8];

/// A model of each operator.
fn models() -> Vec<(String, Model)> {
    let none = |_: &mut Model| Vec::new();
    let mut models = Vec::new();
    for name in [
        "ABS",
        "CEIL",
        "COS",
        "ELU",
        "EXP",
        "FLOOR",
        "HARD_SWISH",
        "L2_NORMALIZATION",
        "LOG",
        "LOGISTIC",
        "LOG_SOFTMAX",
        "NEG",
        "RELU",
        "RELU6",
        "RELU_0_TO_1",
        "RELU_N1_TO_1",
        "ROUND",
        "SIGN",
        "SIN",
        "RSQRT",
        "SQRT",
        "SQUARE",
        "TANH",
    ] {
        models.push(of(name, &[IMAGE], none, &[IMAGE], &[]));
    }
    models.push(of("GELU", &[IMAGE], none, &[IMAGE], &[(0, Byte(1))]));
    models.push(of("LEAKY_RELU", &[IMAGE], none, &[IMAGE], &[(0, Float(0.25))]));
    models.push(of("SOFTMAX", &[&[1, 5]], none, &[&[1, 5]], &[(0, Float(0.5))]));
    models.push(of("PRELU", &[IMAGE], |m| vec![m.floats(&[1, 1, 8])], &[IMAGE], &[]));
    for name in ["ADD", "DIV", "MUL", "SUB"] {
        models.push(of(name, &[IMAGE, IMAGE], none, &[IMAGE], &[(0, Byte(3))]));
    }
    for name in ["ADD_N", "FLOOR_MOD", "MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE"] {
        models.push(of(name, &[IMAGE, IMAGE], none, &[IMAGE], &[]));
    }
    models.push(of("ADD", &[IMAGE], |m| vec![m.floats(&[8])], &[IMAGE], &[(0, Byte(4))]));
    let window = [(0, Byte(0)), (1, Int(2)), (2, Int(1))];
    let conv = |m: &mut Model| vec![m.floats(&[3, 3, 2, 8]), m.floats(&[3])];
    models.push(of("CONV_2D", &[IMAGE], conv, &[&[1, 4, 3, 3]], &[&window[..], &[(3, Byte(2))]].concat()));
    let deep = |m: &mut Model| vec![m.floats(&[1, 3, 2, 16]), m.floats(&[16])];
    let dilated = [(0, Byte(1)), (1, Int(1)), (2, Int(1)), (5, Int(2)), (6, Int(1))];
    models.push(of("DEPTHWISE_CONV_2D", &[IMAGE], deep, &[&[1, 2, 4, 16]], &dilated));
    let up = |m: &mut Model| vec![m.list(&[1, 8, 11, 3]), m.floats(&[3, 3, 3, 8])];
    let up = of("TRANSPOSE_CONV", &[IMAGE], up, &[&[1, 8, 11, 3]], &[(0, Byte(0)), (1, Int(2)), (2, Int(2))]);
    models.push(swapped(up, &[1, 2, 0]));
    let (name, mut up) =
        of("CUSTOM", &[IMAGE], |m| vec![m.floats(&[3, 2, 2, 8]), m.floats(&[3])], &[&[1, 8, 12, 3]], &[]);
    let custom: Vec<u8> = [1i32, 2, 2].iter().flat_map(|value| value.to_le_bytes()).collect();
    up.operators[0] =
        Operator { custom: Some(("Convolution2DTransposeBias".into(), custom)), ..up.operators[0].clone() };
    models.push((name, up));
    models.extend([false, true].map(detector));
    for name in ["AVERAGE_POOL_2D", "L2_POOL_2D", "MAX_POOL_2D"] {
        models.push(of(
            name,
            &[IMAGE],
            none,
            &[&[1, 4, 3, 8]],
            &[&window[..], &[(3, Int(3)), (4, Int(2))]].concat(),
        ));
    }
    models.push(("SPACE_TO_BATCH_ND".into(), super::dilated::example()));
    let norm = [(0, Int(2)), (1, Float(1.0)), (2, Float(0.5)), (3, Float(0.75))];
    models.push(of("LOCAL_RESPONSE_NORMALIZATION", &[IMAGE], none, &[IMAGE], &norm));
    for (name, half) in [("RESIZE_BILINEAR", 3), ("RESIZE_NEAREST_NEIGHBOR", 1)] {
        models.push(of(name, &[IMAGE], |m| vec![m.list(&[8, 9])], &[&[1, 8, 9, 8]], &[(half, Byte(1))]));
    }
    let dense = |m: &mut Model| vec![m.floats(&[5, 192]), m.floats(&[5])];
    models.push(of("FULLY_CONNECTED", &[IMAGE], dense, &[&[1, 5]], &[(0, Byte(1))]));
    models.push(of("BATCH_MATMUL", &[&[1, 3, 4], &[1, 5, 4]], none, &[&[1, 3, 5]], &[(1, Byte(1))]));
    for name in ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"] {
        models.push(of(name, &[IMAGE], |m| vec![m.list(&[1, -2])], &[&[1, 8]], &[]));
    }
    for name in ["ARG_MAX", "ARG_MIN"] {
        models.push(of(name, &[IMAGE], |m| vec![m.ints(&[], &[-1])], &[&[1, 4, 6]], &[]));
    }
    models.push(of("TOPK_V2", &[&[1, 9]], |m| vec![m.ints(&[], &[2])], &[&[1, 2], &[1, 2]], &[]));
    models.push(of("CONCATENATION", &[IMAGE, IMAGE], none, &[&[1, 4, 6, 16]], &[(0, Int(-1))]));
    models.push(of("PACK", &[&[1, 4], &[1, 4]], none, &[&[1, 2, 4]], &[(0, Int(2)), (1, Int(1))]));
    models.push(of("UNPACK", &[&[1, 2, 4]], none, &[&[1, 4], &[1, 4]], &[(0, Int(2)), (1, Int(1))]));
    let split =
        of("SPLIT", &[IMAGE], |m| vec![m.ints(&[], &[3])], &[&[1, 4, 6, 4], &[1, 4, 6, 4]], &[(0, Int(2))]);
    models.push(swapped(split, &[1, 0]));
    let sizes = |m: &mut Model| vec![m.list(&[1, -1]), m.ints(&[], &[1])];
    models.push(of("SPLIT_V", &[IMAGE], sizes, &[&[1, 1, 6, 8], &[1, 3, 6, 8]], &[(0, Int(2))]));
    let part = |m: &mut Model| vec![m.list(&[0, 1, 0, 2]), m.list(&[1, 2, -1, 3])];
    models.push(of("SLICE", &[IMAGE], part, &[&[1, 2, 6, 3]], &[]));
    let part = |m: &mut Model| vec![m.list(&[0, 1, 9, 3]), m.list(&[0, 4, 0, 4]), m.list(&[1, 2, -1, 1])];
    models.push(of("STRIDED_SLICE", &[IMAGE], part, &[&[1, 2, 6]], &[(0, Int(5)), (1, Int(5)), (4, Int(8))]));
    // x[..., tf.newaxis, 1:3, 0]
    let part = |m: &mut Model| vec![m.list(&[0, 0, 1, 0]), m.list(&[0, 0, 3, 1]), m.list(&[1, 1, 1, 1])];
    let masks = [(2, Int(1)), (3, Int(2)), (4, Int(8))];
    models.push(of("STRIDED_SLICE", &[IMAGE], part, &[&[1, 4, 1, 2]], &masks));
    models.push(of("GATHER", &[IMAGE], |m| vec![m.list(&[5, 3, 1])], &[&[1, 4, 3, 8]], &[(0, Int(2))]));
    let places = |m: &mut Model| vec![m.ints(&[2, 3], &[0, 3, 5, 0, 0, 1])];
    models.push(of("GATHER_ND", &[IMAGE], places, &[&[2, 8]], &[]));
    models.push(of("REVERSE_V2", &[IMAGE], |m| vec![m.list(&[1, -1])], &[IMAGE], &[]));
    models.push(of("CUMSUM", &[IMAGE], |m| vec![m.ints(&[], &[-1])], &[IMAGE], &[(0, Byte(1))]));
    let pads = &[0, 0, 1, 0, 0, 2, 3, 0];
    let padded: &[i32] = &[1, 5, 8, 11];
    models.push(of("PAD", &[IMAGE], |m| vec![m.ints(&[4, 2], pads)], &[padded], &[]));
    models.push(of("PADV2", &[IMAGE], |m| vec![m.ints(&[4, 2], pads), m.floats(&[1])], &[padded], &[]));
    models.push(of("MIRROR_PAD", &[IMAGE], |m| vec![m.ints(&[4, 2], pads)], &[padded], &[]));
    let symmetric = [(0, Byte(1))];
    models.push(of("MIRROR_PAD", &[IMAGE], |m| vec![m.ints(&[4, 2], pads)], &[padded], &symmetric));
    models.push(of("TILE", &[IMAGE], |m| vec![m.list(&[1, 2, 1, 3])], &[&[1, 8, 6, 24]], &[]));
    models.push(of("DEPTH_TO_SPACE", &[IMAGE], none, &[&[1, 8, 12, 2]], &[(0, Int(2))]));
    models.push(of("SPACE_TO_DEPTH", &[IMAGE], none, &[&[1, 2, 3, 32]], &[(0, Int(2))]));
    models.push(of("TRANSPOSE", &[IMAGE], |m| vec![m.list(&[0, 3, 1, 2])], &[&[1, 8, 4, 6]], &[]));
    models.push(of("BROADCAST_TO", &[&[1, 4, 1, 8]], |m| vec![m.list(IMAGE)], &[IMAGE], &[]));
    models.push(truth_values());
    models.push(constants());
    models.push(views());
    models.extend(recurrent());
    models
}

/// The end of a detector. `has_classes_apart`: whether only boxes of the same class suppress each other.
fn detector(has_classes_apart: bool) -> (String, Model) {
    // By Google's writer: max_detections=5, max_classes_per_detection=1, detections_per_class=2, use_regular_nms=False,
    // nms_score_threshold=0.25, nms_iou_threshold=0.5, num_classes=3, y_scale=x_scale=10, h_scale=w_scale=5.
    let mut options = include_bytes!("detection_options.bin").to_vec();
    const USE_REGULAR_NMS: usize = 212;
    options[USE_REGULAR_NMS] = has_classes_apart.into();
    let made: [&[i32]; 4] = [&[1, 5, 4], &[1, 5], &[1, 5], &[1]];
    let inputs: [&[i32]; 2] = [&[1, 7, 4], &[1, 7, 4]];
    let (_, mut model) = of("CUSTOM", &inputs, |m| vec![m.floats(&[7, 4])], &made, &[]);
    let name = "TFLite_Detection_PostProcess".to_string();
    model.operators[0].custom = Some((name.clone(), options));
    (name, model)
}

/// Comparisons, functions of truth values, and choices by them.
fn truth_values() -> (String, Model) {
    let mut model = Model::default();
    let (x, few) = (model.input(IMAGE), model.floats(&[8]));
    let truth = |m: &mut Model| m.tensor(Tensor { shape: IMAGE.to_vec(), element: 6, ..Tensor::default() });
    let mut made = Vec::new();
    for name in ["EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"] {
        made.push(truth(&mut model));
        model.operator(name, &[x, few], &made[made.len() - 1..], &[]);
    }
    let [both, one, none] = [0; 3].map(|_: i32| truth(&mut model));
    model.operator("LOGICAL_AND", &[made[0], made[1]], &[both], &[]);
    model.operator("LOGICAL_OR", &[both, made[2]], &[one], &[]);
    model.operator("LOGICAL_NOT", &[one], &[none], &[]);
    let [y, z, number, out, last] = [0; 5].map(|_: i32| model.made(IMAGE));
    model.operator("SELECT", &[none, x, x], &[y], &[]);
    model.operator("SELECT_V2", &[made[3], y, few], &[z], &[]);
    model.operator("CAST", &[made[4]], &[number], &[]);
    model.operator("MUL", &[z, number], &[out], &[]);
    model.operator("CAST", &[made[5]], &[last], &[]);
    model.outputs = vec![out, last];
    ("truth values".into(), model)
}

/// Constants that operators compute before one reads them.
fn constants() -> (String, Model) {
    let mut model = Model::default();
    let x = model.input(&[1, 2]);
    let halves = [0x3c00u16, 0x4000, 0x4200].iter().flat_map(|half| half.to_le_bytes()).collect();
    // Of a matrix of 2 × 3, the second row, and the last of the first.
    let levels = vec![(2, None), (3, Some([vec![0, 1, 3], vec![2, 0, 1]]))];
    let sparsity = Some(Sparsity { order: vec![0, 1], cut: Vec::new(), levels });
    let sparse =
        Tensor { shape: vec![2, 3], element: F16, data: Some(halves), sparsity, ..Tensor::default() };
    let (sparse, dense, wide) = (model.tensor(sparse), model.made(&[2, 3]), model.made(&[2, 3]));
    model.tensors[dense as usize].element = F16;
    model.operator("DENSIFY", &[sparse], &[dense], &[]);
    model.operator("DEQUANTIZE", &[dense], &[wide], &[]);
    let (perm, turned, y) = (model.list(&[1, 0]), model.made(&[3, 2]), model.made(&[1, 3]));
    model.operator("TRANSPOSE", &[wide, perm], &[turned], &[]);
    model.operator("FULLY_CONNECTED", &[x, turned, -1], &[y], &[]);
    let (whole, cast, z) = (model.list(&[2, 0, 1]), model.made(&[3]), model.made(&[1, 3]));
    model.operator("CAST", &[whole], &[cast], &[]);
    model.operator("MUL", &[y, cast], &[z], &[]);
    model.outputs = vec![z];
    ("constants".into(), model)
}

/// Operators that keep tensors for the next frame.
fn recurrent() -> Vec<(String, Model)> {
    let kept = |model: &mut Model, size: i32| {
        model.tensor(Tensor { shape: vec![1, size], is_variable: true, ..Tensor::default() })
    };
    let svdf = |model: &mut Model| {
        let weights = [model.floats(&[4, 3]), model.floats(&[4, 5]), model.floats(&[2])];
        [&weights[..], &[kept(model, 20)]].concat()
    };
    let lstm = |model: &mut Model| {
        let mut operands: Vec<i32> =
            (0..8).map(|at| model.floats(&[2, if at < 4 { 3 } else { 2 }])).collect();
        operands.extend([-1; 3]);
        operands.extend((0..4).map(|_| model.floats(&[2])));
        operands.extend([-1; 2]);
        operands.extend([kept(model, 2), kept(model, 2)]);
        operands
    };
    vec![
        of("SVDF", &[&[1, 3]], svdf, &[&[1, 2]], &[(0, Int(2)), (1, Byte(1))]),
        of("UNIDIRECTIONAL_SEQUENCE_LSTM", &[&[1, 4, 3]], lstm, &[&[1, 4, 2]], &[(0, Byte(4))]),
    ]
}

/// Views, and shapes that operators compute.
fn views() -> (String, Model) {
    let mut model = Model::default();
    let x = model.input(&[1, 1, 3, 4]);
    let (shape, seen, out, made) =
        (model.made(&[4]), model.made(&[1, 1, 12]), model.made(&[12]), model.made(&[1, 12]));
    model.operator("SHAPE", &[x], &[shape], &[]);
    let (first, open) = (model.made(&[1]), model.list(&[-1]));
    let bounds = [model.list(&[0]), model.list(&[1]), model.list(&[1])];
    model.operator("STRIDED_SLICE", &[shape, bounds[0], bounds[1], bounds[2]], &[first], &[]);
    let all = model.made(&[3]);
    model.operator("CONCATENATION", &[first, first, open], &[all], &[]);
    model.operator("RESHAPE", &[x, all], &[seen], &[]);
    model.operator("SQUEEZE", &[seen], &[out], &[(0, Ints(vec![0, -2]))]);
    let axis = model.ints(&[], &[0]);
    model.operator("EXPAND_DIMS", &[out, axis], &[made], &[]);
    let integers = |shape: &[i32]| Tensor {
        shape: shape.to_vec(),
        element: I8,
        scales: vec![0.5],
        points: vec![0],
        ..Tensor::default()
    };
    let (q, back) = (model.tensor(integers(&[1, 12])), model.made(&[1, 12]));
    model.operator("QUANTIZE", &[made], &[q], &[]);
    model.operator("DEQUANTIZE", &[q], &[back], &[]);
    let y = model.made(&[1, 12]);
    model.operator("RELU", &[back], &[y], &[]);
    model.outputs = vec![y];
    ("views".into(), model)
}

#[test]
fn operators_become_layers() {
    let mut all = String::new();
    for (name, model) in models() {
        let network = model.import().unwrap_or_else(|error| panic!("{name}: {error}"));
        // The importer's shapes are those that the model states.
        for (output, index) in network.outputs.iter().zip(&model.outputs) {
            let stated: Vec<usize> =
                model.tensors[*index as usize].shape.iter().map(|dim| *dim as usize).collect();
            assert_eq!(output.operand.shape.dims, stated, "{name}");
        }
        write!(all, "{name}\n{}", text(&network)).unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn every_operator_is_imported_here() {
    let named = |operator: &Operator| match &operator.custom {
        Some((name, _)) => name.clone(),
        None => super::super::codes::tests::name(operator.code).to_string(),
    };
    let seen: BTreeSet<String> =
        models().iter().flat_map(|(_, model)| model.operators.iter().map(named)).collect();
    let missing: Vec<_> = SUPPORTED_BY_TFLITE.iter().filter(|name| !seen.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn sparse_constants_get_their_zeros() {
    let (_, model) = constants();
    let network = model.import().unwrap();
    let gemm = network.layers.iter().position(|layer| layer.operator.kind() == "gemm").unwrap();
    assert_eq!(*network.parameter(gemm, 0).unwrap(), [0.0, 2.0, 0.0, 3.0, 1.0, 0.0]);
}

#[test]
fn blocks_of_sparse_constants_lie_side_by_side() {
    // 2 × 4 in blocks of 1 × 2: the second block of the first row, and the first of the second. A level that lists its
    // indices states no size.
    let mut model = Model::default();
    let x = model.input(&[1, 4]);
    let data = (1..=4).flat_map(|value| (value as f32).to_le_bytes()).collect();
    let levels = vec![(2, None), (0, Some([vec![0, 1, 2], vec![1, 0]])), (2, None)];
    let sparsity = Some(Sparsity { order: vec![0, 1, 2], cut: vec![1], levels });
    let weights = model.tensor(Tensor { shape: vec![2, 4], data: Some(data), sparsity, ..Tensor::default() });
    let y = model.made(&[1, 2]);
    model.operator("FULLY_CONNECTED", &[x, weights, -1], &[y], &[]);
    model.outputs = vec![y];
    assert_eq!(*model.import().unwrap().parameter(1, 0).unwrap(), [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0]);
}
