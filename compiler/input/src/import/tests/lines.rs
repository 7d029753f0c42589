//! Windows on lines, and operators that are composed of others.

use csdfc_plan::operator::Operator;

use super::{Model, float, int, ints, text};
use crate::import::ImportOptions;
use csdfc_network::pass::{Fusion, normalise};

/// The kinds of layers after the input, and the shapes of their tensors.
fn layers(model: &Model) -> Vec<String> {
    let network = model.import().unwrap();
    let layers = network.layers.iter().filter(|layer| !layer.is_input());
    layers.map(|layer| format!("{} {}", layer.operator.kind(), layer.shape)).collect()
}

fn error(model: &Model) -> String {
    model.import().unwrap_err().to_string()
}

/// Two convolutions of 8 elements, by 3 each, with what lies between such in models.
fn chain() -> Model {
    Model::new(15, &[1, 4, 8], &["y"])
        .floats("w", &[6, 4, 3])
        .floats("v", &[2, 6, 3])
        .floats("c", &[6])
        .floats("b", &[6, 1])
        .node("Conv", &["x", "w"], &["a"], vec![ints("pads", &[2, 0]), ints("strides", &[2])])
        .node("BatchNormalization", &["a", "c", "c", "c", "c"], &["n"], vec![])
        .node("Relu", &["n"], &["r"], vec![])
        .node("Mul", &["r", "b"], &["m"], vec![])
        .node("Conv", &["m", "v"], &["o"], vec![text("auto_pad", "SAME_UPPER")])
        .node("GlobalAveragePool", &["o"], &["y"], vec![])
}

#[test]
fn lines_are_images_of_a_column() {
    let [one, four] = ["1×6×4×1", "1×2×4×1"];
    let all = layers(&chain());
    let kinds: Vec<&str> = all.iter().filter_map(|layer| layer.split(' ').next()).collect();
    assert_eq!(kinds, ["conv", "batch_norm", "element_wise", "binary", "conv", "reduce"], "{all:?}");
    let shapes: Vec<String> = all.iter().map(|layer| layer.replace(' ', "×")).collect();
    assert!(shapes[..4].iter().all(|shape| shape.ends_with(one)), "{shapes:?}");
    assert!(shapes[4].ends_with(four), "{shapes:?}");
    let network = chain().import().unwrap();
    let Operator::Conv(conv) = &network.layers[1].operator else { panic!("{:?}", network.layers[1]) };
    assert_eq!((conv.kernel, conv.stride, conv.pads), ([3, 1], [2, 1], [2, 0, 0, 0]));
    let fused = normalise(network, Fusion::Full);
    // An input of lines has a row for each channel, so its elements move once.
    let kinds: Vec<&str> = fused.layers.iter().skip(1).map(|layer| layer.operator.kind()).collect();
    assert_eq!(kinds, ["transpose", "conv", "conv", "reduce"]);
}

#[test]
fn a_layer_norm_of_channels_stays_where_they_lie() {
    let model = Model::new(17, &[1, 4, 6, 6], &["y"])
        .floats("s", &[4])
        .floats("b", &[4])
        .node("Transpose", &["x"], &["t"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("LayerNormalization", &["t", "s", "b"], &["n"], vec![float("epsilon", 1e-6)])
        .node("Transpose", &["n"], &["y"], vec![ints("perm", &[0, 3, 1, 2])]);
    let all = layers(&model);
    assert!(all.iter().all(|layer| !layer.starts_with("transpose")), "{all:?}");
    assert!(all.last().is_some_and(|layer| layer.starts_with("batch_norm")), "{all:?}");
}

#[test]
fn impossible_norms_are_refused() {
    let group = |groups| {
        let model = Model::new(21, &[1, 4, 6, 6], &["y"]).floats("s", &[4]);
        error(&model.node("GroupNormalization", &["x", "s", "s"], &["y"], vec![int("num_groups", groups)]))
    };
    for groups in [0, 3, -2] {
        assert!(group(groups).contains("groups of 4 channels"), "{}", group(groups));
    }
    let layer = Model::new(17, &[1, 4], &["y"]).floats("s", &[3, 4]);
    let layer = error(&layer.node("LayerNormalization", &["x", "s"], &["y"], vec![]));
    assert!(layer.contains("larger than its input"), "{layer}");
    let lp = Model::new(17, &[1, 4], &["y"]);
    let lp = error(&lp.node("LpNormalization", &["x"], &["y"], vec![int("p", 3)]));
    assert!(lp.contains("p is 3"), "{lp}");
}

#[test]
fn constants_join_tensors() {
    let model = Model::new(13, &[1, 2, 4, 4], &["y"]).floats("c", &[1, 3, 4, 4]);
    let network = model.node("Concat", &["c", "x"], &["y"], vec![int("axis", 1)]).import().unwrap();
    let last = network.layers.last().unwrap();
    assert_eq!((last.operator.kind(), last.shape.dims.as_slice()), ("concat", [1, 5, 4, 4].as_slice()));
    let other = Model::new(13, &[1, 2, 4, 4], &["y"]).floats("c", &[3, 4, 4]);
    let other = error(&other.node("Concat", &["c", "x"], &["y"], vec![int("axis", 1)]));
    assert!(other.contains("a constant of [3, 4, 4] beside"), "{other}");
}

#[test]
fn tensors_are_expanded() {
    let expanded = |dims: &[i64], to: &[i64]| {
        let model = Model::new(13, dims, &["y"]).ints("to", to);
        let network =
            model.node("Expand", &["x", "to"], &["y"], vec![]).import_with(&ImportOptions::default());
        network.map(|network| (network.layers.len() - 1, network.outputs[0].operand.shape.dims.clone()))
    };
    assert_eq!(expanded(&[1, 3, 1, 1], &[1, 1, 4, 5]).unwrap(), (1, vec![1, 3, 4, 5]));
    assert_eq!(expanded(&[1, 3], &[2, 4, 1]).unwrap(), (2, vec![2, 4, 3]));
    assert!(expanded(&[1, 3], &[2]).unwrap_err().to_string().contains("3"));
    assert!(expanded(&[1, 3], &[1 << 40, 3]).is_err());
}

#[test]
fn views_of_inputs_are_copied_into_outputs() {
    let model = Model::new(13, &[1, 2, 4, 4], &["y"]).node("Flatten", &["x"], &["y"], vec![]);
    assert_eq!(layers(&model).len(), 1);
}
