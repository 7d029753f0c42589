//! Operators into which ONNX Runtime fuses others. The numbers are those of ONNX Runtime.

use super::constants::{check, quarters};
use super::*;

fn minus(constant: &Constant, less: f32) -> Constant {
    let values = constant.to_floats().unwrap();
    Constant::floats(constant.dims.clone(), values.iter().map(|value| value - less).collect())
}

fn times(constant: &Constant, factor: f32) -> Constant {
    let values = constant.to_floats().unwrap();
    Constant::floats(constant.dims.clone(), values.iter().map(|value| value * factor).collect())
}

#[test]
fn gaussian_units() {
    let (x, bias) = (quarters(&[1, 3]), quarters(&[3]));
    check(
        17,
        "QuickGelu",
        std::slice::from_ref(&x),
        vec![float("alpha", 1.5)],
        &[0.148_166_66, 0.339_589_36, 0.566_186_25],
    );
    check(17, "QuickGelu", std::slice::from_ref(&x), vec![], &[0.151_199_65, 0.350_388_4, 0.586_390_1]);
    check(17, "FastGelu", std::slice::from_ref(&x), vec![], &[0.149_675_35, 0.345_714, 0.579_960_6]);
    check(17, "FastGelu", &[x.clone(), bias.clone()], vec![], &[0.345_714, 0.841_192, 1.399_571_5]);
    check(17, "BiasGelu", &[x.clone(), bias], vec![], &[0.345_731_23, 0.841_344_7, 1.399_789_2]);
    check(17, "Gelu", &[x], vec![], &[0.149_676_58, 0.345_731_23, 0.580_029_5]);
}

#[test]
fn convolutions_with_activations() {
    let check = |activation: &str, parameters: &[f32], wanted: [f32; 4]| {
        let operands = [
            minus(&quarters(&[1, 1, 2, 2]), 0.5),
            times(&quarters(&[1, 1, 1, 1]), 4.0),
            minus(&quarters(&[1]), 0.5),
        ];
        let parameters = AttributeProto {
            floats: parameters.to_vec(),
            r#type: Some(AttributeType::FLOATS),
            ..float("activation_params", 0.0)
        };
        check(17, "FusedConv", &operands, vec![text("activation", activation), parameters], &wanted);
    };
    check("Relu", &[], [0.0, 0.0, 0.0, 0.25]);
    check("LeakyRelu", &[0.25], [-0.125, -0.0625, 0.0, 0.25]);
    check("HardSigmoid", &[0.25, 0.5], [0.375, 0.4375, 0.5, 0.5625]);
    check("Clip", &[-1.0, 0.5], [-0.5, -0.25, 0.0, 0.25]);
    check("Tanh", &[], [-0.462_117_17, -0.244_918_66, 0.0, 0.244_918_66]);
    check("Sigmoid", &[], [0.377_540_7, 0.437_823_5, 0.5, 0.562_176_47]);
}

/// The fourth operand is added before the activation.
#[test]
fn a_convolution_to_which_a_tensor_is_added() {
    let network = Model::new(17, &[1, 1, 2, 2], &["y"])
        .floats("w", &[1, 1, 1, 1])
        .node("Tanh", &["x"], &["z"], vec![])
        .node("FusedConv", &["x", "w", "", "z"], &["y"], vec![text("activation", "Relu")]);
    let mut network = network;
    network.graph().node[1].domain = Some("com.microsoft".into());
    let network = network.import().unwrap();
    let operators: Vec<String> = network.layers.iter().map(|layer| format!("{:?}", layer.operator)).collect();
    assert!(operators[3].starts_with("Binary"), "{operators:?}");
    assert_eq!(network.layers[3].inputs.len(), 2);
    assert!(operators[4].contains("Relu"), "{operators:?}");
}

#[test]
fn products() {
    let product = [0.6875, 1.53125, 2.375, 3.21875, 0.875, 2.0, 3.125, 4.25];
    let flags = vec![int("transA", 1), int("transB", 1), float("alpha", 0.5)];
    check(17, "FusedMatMul", &[quarters(&[3, 2]), quarters(&[4, 3])], flags, &product);
    let product =
        [0.4375, 0.625, 1.9375, 2.875, 2.6875, 3.125, 7.1875, 8.375, 6.9375, 7.625, 14.4375, 15.875];
    let operands = [quarters(&[2, 3, 2]), quarters(&[3, 2, 2])];
    check(17, "FusedMatMul", &operands, vec![int("transBatchA", 1)], &product);
    let product = [
        2.5, 3.375, 2.75, 3.75, 3.0, 4.125, 3.25, 4.5, 9.0, 10.375, 9.75, 11.25, 10.5, 12.125, 11.25, 13.0,
        19.5, 21.375, 20.75, 22.75, 22.0, 24.125, 23.25, 25.5,
    ];
    let operands = [quarters(&[2, 3, 4]), quarters(&[3, 2, 2])];
    check(17, "FusedMatMul", &operands, vec![int("transBatchA", 1), int("transA", 1)], &product);
    let product = [0.9375, 1.125, 1.9375, 2.375, 4.3125, 5.0, 5.8125, 6.75, 9.6875, 10.875, 11.6875, 13.125];
    let operands = [quarters(&[3, 2, 2]), quarters(&[2, 3, 2])];
    check(17, "FusedMatMul", &operands, vec![int("transBatchB", 1)], &product);
    let operands = [minus(&quarters(&[1, 2]), 0.5), quarters(&[2, 2]), times(&quarters(&[2]), -3.0)];
    let attributes = vec![text("activation", "LeakyRelu"), float("activation_alpha", 0.5)];
    check(17, "FusedGemm", &operands, attributes, &[-0.406_25, -0.8125]);
}

#[test]
fn norms_of_sums() {
    let x = quarters(&[1, 2, 2]);
    let squares = x.to_floats().unwrap().iter().map(|value| value * value).collect();
    let skip = Constant::floats([1, 2, 2], squares);
    let vector = || quarters(&[2]);
    let operands = [x.clone(), skip.clone(), vector(), vector(), vector()];
    check(17, "SkipLayerNormalization", &operands, vec![], &[0.0, 1.0, 0.0, 1.0]);
    let made = fold_all(17, "SkipSimplifiedLayerNormalization", &[x, skip, vector()], vec![], 1).unwrap();
    assert_eq!(made[3].to_floats().unwrap(), [0.3125, 0.75, 1.3125, 2.0]);
    let wanted = [0.135_982_07, 0.652_713_95, 0.193_979_34, 0.591_175_14];
    let made = made[0].to_floats().unwrap();
    assert!(made.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{made:?}");
}

/// Other operators that ONNX Runtime fuses.
#[test]
fn the_help_for_others_names_the_option() {
    let mut model = Model::new(17, &[1, 3], &["y"]).node("BiasSplitGelu", &["x"], &["y"], vec![]);
    model.graph().node[0].domain = Some("com.microsoft".into());
    let help = miette::Diagnostic::help(&model.import().unwrap_err()).unwrap().to_string();
    assert!(help.contains("ORT_ENABLE_BASIC"), "{help}");
}
