use csdfc_plan::operator::{Conv, Function, Operator, Slice};
use csdfc_plan::shape::{Order, Shape};
use rten_onnx::onnx::AttributeProto;

use super::*;
use csdfc_network::Layer;

/// A model of one node that reads `x` and the constants named.
pub(super) fn one(
    opset: i64,
    input: &[i64],
    operator: &str,
    constants: Model,
    attributes: Vec<AttributeProto>,
) -> Model {
    let mut model = constants;
    model.proto.opset_import[0].version = Some(opset);
    model.graph().input = vec![value("x", DataType::FLOAT, input)];
    let mut inputs = vec!["x".to_string()];
    inputs.extend(model.graph().initializer.iter().map(|tensor| tensor.name.clone().unwrap()));
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    model.node(operator, &inputs, &["y"], attributes)
}

/// The layer that this node becomes.
pub(super) fn single(
    opset: i64,
    input: &[i64],
    operator: &str,
    constants: Model,
    attributes: Vec<AttributeProto>,
) -> Layer {
    let network = one(opset, input, operator, constants, attributes).import().unwrap();
    let output = &network.outputs[0].operand;
    assert_eq!(network.layer(output.layer).shape, output.shape);
    network.layer(output.layer).clone()
}

pub(super) fn none() -> Model {
    Model::new(13, &[1], &["y"])
}

#[test]
fn padding_of_convolutions_is_made_explicit() {
    let check = |attributes: Vec<AttributeProto>, pads: [usize; 4], output: [usize; 2]| {
        let layer = single(13, &[1, 3, 8, 7], "Conv", none().floats("w", &[4, 3, 3, 3]), attributes);
        let Operator::Conv(Conv { pads: found, .. }) = layer.operator else { panic!() };
        assert_eq!(found, pads);
        assert_eq!(layer.shape, Shape::image(4, output[0], output[1]));
    };
    check(vec![], [0; 4], [6, 5]);
    check(vec![ints("pads", &[0, 1, 1, 2])], [0, 1, 1, 2], [7, 8]);
    check(vec![text("auto_pad", "VALID"), ints("strides", &[2, 2])], [0; 4], [3, 3]);
    check(vec![text("auto_pad", "SAME_UPPER"), ints("strides", &[2, 2])], [0, 1, 1, 1], [4, 4]);
    check(vec![text("auto_pad", "SAME_LOWER"), ints("strides", &[2, 2])], [1, 1, 0, 1], [4, 4]);
    check(vec![text("auto_pad", "SAME_UPPER"), ints("dilations", &[2, 2])], [2; 4], [8, 7]);
}

#[test]
fn output_shapes_follow_each_opset() {
    let check = |opset, input: &[i64], operator, constants, attributes, dims: &[usize]| {
        let layer = single(opset, input, operator, constants, attributes);
        assert_eq!(layer.shape.dims, dims, "{operator} of opset {opset}");
    };
    let image = [1, 4, 6, 5];
    check(
        13,
        &image,
        "ConvTranspose",
        none().floats("w", &[4, 2, 3, 3]),
        vec![ints("strides", &[2, 2])],
        &[1, 2, 13, 11],
    );
    check(
        13,
        &image,
        "ConvTranspose",
        none().floats("w", &[4, 1, 3, 3]),
        vec![ints("strides", &[2, 2]), ints("output_shape", &[12, 10]), int("group", 4)],
        &[1, 4, 12, 10],
    );
    check(
        13,
        &image,
        "MaxPool",
        none(),
        vec![ints("kernel_shape", &[3, 3]), ints("strides", &[2, 2]), int("ceil_mode", 1)],
        &[1, 4, 3, 2],
    );
    check(13, &image, "GlobalAveragePool", none(), vec![], &[1, 4, 1, 1]);
    check(11, &image, "ReduceMean", none(), vec![ints("axes", &[-1, 2]), int("keepdims", 0)], &[1, 4]);
    check(18, &image, "ReduceMean", none().ints("axes", &[2, 3]), vec![], &[1, 4, 1, 1]);
    check(11, &image, "ReduceSum", none(), vec![ints("axes", &[1])], &[1, 1, 6, 5]);
    check(13, &image, "ReduceSum", none().ints("axes", &[1]), vec![], &[1, 1, 6, 5]);
    check(13, &image, "ArgMax", none(), vec![int("axis", 2), int("keepdims", 0)], &[1, 4, 5]);
    check(
        9,
        &image,
        "Slice",
        none(),
        vec![ints("starts", &[1, -3]), ints("ends", &[99, -1]), ints("axes", &[1, 2])],
        &[1, 3, 2, 5],
    );
    let slice = none().ints("s", &[-1]).ints("e", &[-99]).ints("a", &[3]).ints("t", &[-2]);
    check(13, &image, "Slice", slice, vec![], &[1, 4, 6, 3]);
    check(10, &image, "Pad", none(), vec![ints("pads", &[0, 0, 1, 2, 0, 0, 3, 4])], &[1, 4, 10, 11]);
    check(
        13,
        &image,
        "Pad",
        none().ints("p", &[0, 0, 1, 2, 0, 0, 3, 4]),
        vec![text("mode", "edge")],
        &[1, 4, 10, 11],
    );
    let scales = || {
        none().tensor(TensorProto {
            name: Some("s".into()),
            dims: vec![4],
            data_type: Some(DataType::FLOAT),
            float_data: vec![1.0, 1.0, 2.0, 1.5],
            ..Default::default()
        })
    };
    check(9, &image, "Upsample", scales(), vec![], &[1, 4, 12, 7]);
    check(10, &image, "Resize", scales(), vec![text("mode", "linear")], &[1, 4, 12, 7]);
    check(13, &image, "DepthToSpace", none(), vec![int("blocksize", 2)], &[1, 1, 12, 10]);
    check(13, &[1, 4, 6, 2], "SpaceToDepth", none(), vec![int("blocksize", 2)], &[1, 16, 3, 1]);
    check(13, &[1, 8], "Gemm", none().floats("w", &[8, 3]).floats("b", &[1]), vec![], &[1, 3]);
    check(13, &[1, 8], "Gemm", none().floats("w", &[3, 8]), vec![int("transB", 1)], &[1, 3]);
    check(13, &[1, 5, 8], "MatMul", none().floats("w", &[8, 3]), vec![], &[1, 5, 3]);
    check(13, &image, "Transpose", none(), vec![ints("perm", &[0, 1, 3, 2])], &[1, 4, 5, 6]);
    check(13, &[1, 3], "Add", none().floats("c", &[2, 1]), vec![], &[2, 3]);
}

#[test]
fn attributes_are_normalised() {
    let softmax =
        |opset, attributes| match single(opset, &[1, 4, 6, 5], "Softmax", none(), attributes).operator {
            Operator::Softmax(softmax) => softmax.axes,
            other => panic!("{other:?}"),
        };
    assert_eq!(softmax(12, vec![]), [1, 2, 3]);
    assert_eq!(softmax(13, vec![]), [3]);
    assert_eq!(softmax(13, vec![int("axis", -3)]), [1]);

    let clip =
        |opset, constants, attributes| match single(opset, &[1, 4], "Clip", constants, attributes).operator {
            Operator::ElementWise(element_wise) => element_wise.function,
            other => panic!("{other:?}"),
        };
    let bounds = |min, max| Function::Clip { min, max };
    assert_eq!(clip(10, none(), vec![float("min", 0.0), float("max", 6.0)]), bounds(Some(0.0), Some(6.0)));
    assert_eq!(clip(10, none(), vec![float("max", f32::MAX)]), bounds(None, None));
    assert_eq!(clip(11, none().floats("min", &[]).floats("max", &[1]), vec![]), bounds(Some(1.0), Some(1.0)));
}

#[test]
fn batch_norm_is_a_scale_and_a_shift() {
    let model = none().floats("s", &[2]).floats("b", &[2]).floats("m", &[2]).floats("v", &[2]);
    let layer = single(13, &[1, 2, 4, 4], "BatchNormalization", model, vec![float("epsilon", 0.0)]);
    let close = |found: Vec<f32>, wanted: [f32; 2]| {
        assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?} {wanted:?}");
    };
    close(layer.parameters[0].values().unwrap(), [1.0, 2.0f32.sqrt()]);
    close(layer.parameters[1].values().unwrap(), [0.0, 2.0 - 2.0 * 2.0f32.sqrt()]);
}

#[test]
fn gemm_scales_its_weights_and_bias() {
    let model = none().floats("w", &[2, 2]).floats("b", &[1, 2]);
    let layer = single(13, &[1, 2], "Gemm", model, vec![float("alpha", 2.0), float("beta", 3.0)]);
    assert_eq!(layer.parameters[0].values().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(layer.parameters[1].values().unwrap(), [3.0, 6.0]);
    assert_eq!(layer.parameters[1].dims, [2]);
}

#[test]
fn views_are_no_layers() {
    let network = Model::new(13, &[0, 2, 3, 4], &["z"])
        .ints("shape", &[0, -1])
        .floats("w", &[24, 5])
        .node("Relu", &["x"], &["a"], vec![])
        .node("Reshape", &["a", "shape"], &["b"], vec![])
        .node("Identity", &["b"], &["c"], vec![])
        .node("MatMul", &["c", "w"], &["y"], vec![])
        .node("Unsqueeze", &["y", "axis"], &["z"], vec![])
        .ints("axis", &[0])
        .import()
        .unwrap();
    let names: Vec<&str> = network.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["x", "node_a", "node_y"]);
    assert_eq!(network.layers[2].onnx_nodes, ["node_b", "node_c", "node_y"]);
    assert_eq!(network.layers[2].inputs[0].shape, Shape::new([1, 24]));
    assert_eq!(network.outputs[0].operand.shape, Shape::new([1, 1, 5]));
}

/// More boxes than an image may have rows.
#[test]
fn a_long_list_is_one_row() {
    let network = Model::new(13, &[1, 100_000, 4], &["y"])
        .ints("shape", &[-1, 4])
        .node("Reshape", &["x", "shape"], &["a"], vec![])
        .node("Relu", &["a"], &["y"], vec![])
        .import()
        .unwrap();
    let relu = &network.layers[1];
    assert_eq!((&relu.shape, relu.shape.rows()), (&Shape::new([100_000, 4]), 1));
}

#[test]
fn a_transpose_between_orders_moves_nothing() {
    let (first, last) = ([0, 3, 1, 2], [0, 2, 3, 1]);
    let network = Model::new(13, &[1, 6, 5, 3], &["e", "f"])
        .floats("w", &[4, 3, 1, 1])
        .node("Transpose", &["x"], &["a"], vec![ints("perm", &first)])
        .node("Conv", &["a", "w"], &["b"], vec![])
        .node("Transpose", &["b"], &["c"], vec![ints("perm", &last)])
        .node("Softmax", &["c"], &["d"], vec![])
        .node("Transpose", &["d"], &["e"], vec![ints("perm", &first)])
        .node("ReduceMean", &["d"], &["f"], vec![ints("axes", &[1, 2])])
        .import()
        .unwrap();
    let kinds: Vec<&str> = network.layers.iter().map(|layer| layer.operator.kind()).collect();
    assert_eq!(kinds, ["input", "conv", "softmax", "reduce"]);
    let channels_last = |dims: [usize; 4]| Shape { dims: dims.into(), order: Order::ChannelsLast };
    assert_eq!(network.layers[0].shape, channels_last([1, 6, 5, 3]));
    assert_eq!(network.layers[1].inputs[0].shape, Shape::image(3, 6, 5));
    assert_eq!(network.layers[2].shape, channels_last([1, 6, 5, 4]));
    assert_eq!(network.outputs[0].operand.shape, Shape::image(4, 6, 5));
    assert_eq!(network.outputs[1].operand.shape, channels_last([1, 1, 1, 4]));
}

#[test]
fn a_flattened_channels_last_view_is_moved_first() {
    let network = Model::new(13, &[1, 3, 6, 5], &["d"])
        .floats("w", &[90, 2])
        .node("Relu", &["x"], &["a"], vec![])
        .node("Transpose", &["a"], &["b"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("Flatten", &["b"], &["c"], vec![])
        .node("MatMul", &["c", "w"], &["d"], vec![])
        .import()
        .unwrap();
    let moved = &network.layers[2];
    assert_eq!(
        (moved.operator.kind(), moved.name.as_str(), moved.output.as_str()),
        ("transpose", "node_b", "b")
    );
    assert_eq!(moved.shape, Shape::new([1, 6, 5, 3]));
    assert_eq!(network.layers[3].inputs[0].shape, Shape::new([1, 90]));
    assert_eq!(network.layers[3].onnx_nodes, ["node_c", "node_d"]);
}

#[test]
fn split_makes_a_slice_of_each_output_that_is_read() {
    let network = Model::new(13, &[1, 6, 2, 2], &["b", "c"])
        .ints("sizes", &[1, 2, 3])
        .node("Split", &["x", "sizes"], &["a", "b", "c"], vec![int("axis", 1)])
        .import()
        .unwrap();
    let outputs: Vec<(&str, &[usize])> = network.layers[1..]
        .iter()
        .map(|layer| (layer.output.as_str(), layer.shape.dims.as_slice()))
        .collect();
    assert_eq!(outputs, [("b", [1, 2, 2, 2].as_slice()), ("c", &[1, 3, 2, 2])]);
    let Operator::Slice(Slice { starts, .. }) = &network.layers[2].operator else { panic!() };
    assert_eq!(starts, &[0, 3, 0, 0]);
}

#[test]
fn many_operands_become_a_chain_that_ends_in_the_models_tensor() {
    let network = Model::new(13, &[1, 6], &["y"])
        .floats("c", &[6])
        .node("Relu", &["x"], &["a"], vec![])
        .node("Max", &["x", "a", "c"], &["y"], vec![])
        .import()
        .unwrap();
    let layers: Vec<(&str, &str, usize)> = network.layers[2..]
        .iter()
        .map(|layer| (layer.name.as_str(), layer.output.as_str(), layer.parameters.len()))
        .collect();
    assert_eq!(layers, [("node_y", "y_2", 0), ("node_y_2", "y", 1)]);
}

#[test]
fn what_no_output_depends_on_is_left_out() {
    let network = Model::new(13, &[1, 4], &["y"])
        .node("NoSuchOperator", &["x"], &["dead"], vec![])
        .node("Sigmoid", &["x"], &["seen_for_its_shape"], vec![])
        .node("Shape", &["seen_for_its_shape"], &["s"], vec![])
        .node("Reshape", &["r", "s"], &["y"], vec![])
        .node("Relu", &["x"], &["r"], vec![])
        .import()
        .unwrap();
    let names: Vec<&str> = network.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["x", "node_r"]);
}

/// Operators of the layers that a node becomes, after the input.
pub(super) fn kinds(model: &Model) -> Vec<&'static str> {
    let network = model.import().unwrap();
    network.layers.iter().skip(1).map(|layer| layer.operator.kind()).collect()
}

#[test]
fn one_node_may_become_several_layers() {
    let gather = |indices: &[i64], expected: &[&str]| {
        let model = Model::new(13, &[1, 3, 8], &["y"]).ints("i", indices);
        let model = model.node("Gather", &["x", "i"], &["y"], vec![int("axis", 2)]);
        assert_eq!(kinds(&model), expected, "{indices:?}");
    };
    gather(&[1, 3, 5], &["slice"]);
    gather(&[7, 6, 5], &["slice"]);
    gather(&[0, 1, 2, 3, 5, 7], &["slice", "slice", "concat"]);
    gather(&[2, 2, -1], &["slice", "slice", "concat"]);
    // Each index twice.
    gather(&[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7], &["resize"]);

    let product = |dims: &[i64], expected: &[&str]| {
        let model = Model::new(13, &[2, 4, 3], &["y"]).floats("b", dims);
        assert_eq!(kinds(&model.node("MatMul", &["x", "b"], &["y"], vec![])), expected, "{dims:?}");
    };
    product(&[3, 5], &["gemm"]);
    product(&[1, 3, 5], &["gemm"]);
    product(&[2, 3, 5], &["slice", "gemm", "slice", "gemm", "concat"]);

    let constant_first = Model::new(13, &[2, 4, 3], &["y"]).floats("b", &[5, 4]);
    let constant_first = constant_first.node("MatMul", &["b", "x"], &["y"], vec![]);
    assert_eq!(kinds(&constant_first), ["transpose", "gemm", "transpose"]);

    let empty = Model::new(13, &[1, 4], &["y"])
        .ints("s", &[4, 0])
        .node("Split", &["x", "s"], &["a", "b"], vec![int("axis", 1)])
        .node("Relu", &["a"], &["c"], vec![])
        .node("Concat", &["c", "b"], &["y"], vec![int("axis", 1)]);
    assert_eq!(kinds(&empty), ["element_wise"]);
}

/// Ratios of sizes are not rounded, and a common one is the least or the greatest of them.
#[test]
fn sizes_of_a_resize_are_ratios() {
    let resize_to = |sizes: [i64; 2], attributes: Vec<AttributeProto>| {
        let attributes = [vec![ints("axes", &[2, 3])], attributes].concat();
        let model = Model::new(18, &[1, 4, 14, 10], &["y"]).ints("s", &sizes);
        let network = model.node("Resize", &["x", "", "", "s"], &["y"], attributes).import().unwrap();
        match &network.layers[1].operator {
            Operator::Resize(resize) => (resize.scales.map(|scale| scale.to_string()).join(" "), resize.size),
            other => panic!("{other:?}"),
        }
    };
    let resize = |attributes| resize_to([19, 7], attributes);
    assert_eq!(resize(vec![]), ("19/14 7/10".into(), [19, 7]));
    let policy = |policy| vec![text("keep_aspect_ratio_policy", policy)];
    // 14 · 7/10 = 9.8, and 10 · 19/14 = 13.57…
    assert_eq!(resize(policy("not_larger")), ("7/10 7/10".into(), [10, 7]));
    assert_eq!(resize(policy("not_smaller")), ("19/14 19/14".into(), [19, 14]));
    assert_eq!(resize_to([7, 19], policy("not_larger")), ("7/14 7/14".into(), [7, 5]));
    assert_eq!(resize_to([7, 19], policy("not_smaller")), ("19/10 19/10".into(), [27, 19]));
}

#[test]
fn a_resize_to_the_same_size_does_nothing() {
    let model = Model::new(13, &[1, 3, 4, 4], &["y"])
        .tensor(TensorProto {
            name: Some("s".into()),
            dims: vec![4],
            data_type: Some(DataType::FLOAT),
            float_data: vec![1.0, 1.0, 1.2, 1.1],
            ..Default::default()
        })
        .node("Resize", &["x", "", "s"], &["a"], vec![text("mode", "linear")])
        .node("Relu", &["a"], &["y"], vec![]);
    assert_eq!(kinds(&model), ["element_wise"]);
}

/// If a resize changes the dimensions of width and channels, they are first transposed to the height and width of an
/// image.
#[test]
fn a_resize_of_the_last_dimensions_of_a_transposed_image() {
    let model = Model::new(13, &[1, 3, 4, 5], &["y"])
        .ints("s", &[1, 4, 10, 6])
        .node("Transpose", &["x"], &["a"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("Resize", &["a", "", "", "s"], &["y"], vec![]);
    assert_eq!(kinds(&model), ["transpose", "resize"]);
}
