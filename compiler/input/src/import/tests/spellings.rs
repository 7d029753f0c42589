//! The same network in two spellings: in operators that go by rows, and as exporters write it. Both give the same
//! numbers, and the second takes hardly more memory than the first.

use csdfc_runtime::run::{Data, Value};
use rten_onnx::onnx::{AttributeProto, TensorProto};

use super::operators::list;
use super::*;

/// Checks that both models make the same, by rows and without, and that the second needs at most a fifth more memory by
/// rows than the first, apart from an input that is not an image and thus whole.
fn alike(plain: &Model, spelled: &Model) {
    let run = |model: &Model, rows| run(model.import().unwrap(), rows).unwrap();
    let (expected, least) = run(plain, RowsChoice::All);
    let (found, bytes) = run(spelled, RowsChoice::All);
    let layers = spelled.import().unwrap().layers;
    let is_whole = |layer: &&csdfc_network::Layer| layer.is_input() && layer.shape.rank() != 4;
    let whole = layers.iter().filter(is_whole).map(csdfc_network::Layer::tensor_bytes);
    let enough = least + whole.sum::<u64>();
    assert!(5 * bytes <= 6 * enough, "{bytes} bytes where {enough} are enough");
    for outputs in [&found, &run(spelled, RowsChoice::None).0] {
        assert_eq!(outputs.len(), expected.len());
        for (output, other) in outputs.iter().zip(&expected) {
            compare(output, other);
        }
    }
}

fn compare(output: &Value, other: &Value) {
    match (&output.data, &other.data) {
        (Data::F32(output), Data::F32(other)) => {
            let largest = other.iter().fold(0f32, |largest, value| largest.max(value.abs()));
            let is_near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * largest;
            assert!(
                output.len() == other.len() && output.iter().zip(other).all(is_near),
                "{output:?} {other:?}"
            );
        }
        (output, other) => assert_eq!(output, other),
    }
}

/// Numbers from -1 to 1.
fn small(name: &str, dims: &[i64]) -> TensorProto {
    let count = dims.iter().product::<i64>();
    let values: Vec<f32> = (0..count).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    TensorProto { dims: dims.to_vec(), ..list(name, &values) }
}

/// Windows of three elements twice, and then a pool, on lines of so many elements, or on the columns of images.
fn windows(length: i64, is_image: bool) -> Model {
    let dims = |of_line: &[i64]| if is_image { [of_line, &[1]].concat() } else { of_line.to_vec() };
    let pads = if is_image { vec![1, 0, 1, 0] } else { vec![1, 1] };
    let four = if is_image { vec![4, 1] } else { vec![4] };
    Model::new(13, &dims(&[1, 2, length]), &["y"])
        .tensor(small("v", &dims(&[4, 2, 3])))
        .tensor(small("w", &dims(&[4, 4, 3])))
        .node("Conv", &["x", "v"], &["a"], vec![ints("pads", &pads)])
        .node("Relu", &["a"], &["r"], vec![])
        .node("Conv", &["r", "w"], &["b"], vec![ints("pads", &pads)])
        .node("MaxPool", &["b"], &["y"], vec![ints("kernel_shape", &four), ints("strides", &four)])
}

#[test]
fn long_lines_go_by_rows() {
    alike(&windows(6000, true), &windows(6000, false));
    let lines = windows(200_000, false).import().unwrap();
    assert_eq!(lines.layers.last().unwrap().shape.dims, [1, 4, 50_000, 1]);
}

/// A reduction over channels behind a convolution.
fn reduced(operator: &str, keep: i64, channels_last: bool) -> Model {
    let model = Model::new(13, &[1, 3, 24, 20], &["y"]).tensor(small("w", &[5, 3, 3, 3])).node(
        "Conv",
        &["x", "w"],
        &["a"],
        vec![],
    );
    let model = match channels_last {
        true => model.node("Transpose", &["a"], &["b"], vec![ints("perm", &[0, 2, 3, 1])]),
        false => model.node("Identity", &["a"], &["b"], vec![]),
    };
    let axis = if channels_last { 3 } else { 1 };
    let axis = if operator == "ArgMax" { int("axis", axis) } else { ints("axes", &[axis]) };
    model.node(operator, &["b"], &["y"], vec![axis, int("keepdims", keep)])
}

#[test]
fn reductions_without_their_dimensions_go_by_rows() {
    for operator in ["ArgMax", "ReduceMax", "ReduceMean"] {
        for channels_last in [false, true] {
            alike(&reduced(operator, 1, channels_last), &reduced(operator, 0, channels_last));
        }
    }
}

/// A block of ConvNeXt, in convolutions or as PyTorch writes it, in products of matrices on channels-last images.
fn block(is_product: bool) -> Model {
    let model = Model::new(20, &[1, 8, 24, 24], &["y"])
        .tensor(small("d", &[8, 1, 7, 7]))
        .tensor(small("s", &[8]))
        .tensor(small("b", &[32]));
    let perm = |perm: &[i64]| vec![ints("perm", perm)];
    let model = model
        .node("Conv", &["x", "d"], &["a"], vec![int("group", 8), ints("pads", &[3; 4])])
        .node("Transpose", &["a"], &["l"], perm(&[0, 2, 3, 1]))
        .node("LayerNormalization", &["l", "s", "s"], &["n"], vec![]);
    let [wide, narrow] = [[8, 32], [32, 8]];
    let model = if is_product {
        model
            .tensor(small("u", &wide))
            .tensor(small("v", &narrow))
            .node("MatMul", &["n", "u"], &["m"], vec![])
            .node("Add", &["m", "b"], &["k"], vec![])
            .node("Gelu", &["k"], &["g"], vec![])
            .node("MatMul", &["g", "v"], &["p"], vec![])
            .node("Mul", &["p", "s"], &["q"], vec![])
            .node("Transpose", &["q"], &["t"], perm(&[0, 3, 1, 2]))
    } else {
        let filters = |name: &str, [inner, units]: [i64; 2]| {
            let matrix = |unit: i64, channel: i64| (channel * units + unit) * 37 % 101;
            let places = (0..units).flat_map(|unit| (0..inner).map(move |channel| (unit, channel)));
            let values: Vec<f32> = places.map(|(u, c)| matrix(u, c) as f32 / 50.0 - 1.0).collect();
            TensorProto { dims: vec![units, inner, 1, 1], ..list(name, &values) }
        };
        model
            .tensor(filters("u", wide))
            .tensor(filters("v", narrow))
            .tensor(small("scale", &[8, 1, 1]))
            .node("Transpose", &["n"], &["f"], perm(&[0, 3, 1, 2]))
            .node("Conv", &["f", "u", "b"], &["k"], vec![])
            .node("Gelu", &["k"], &["g"], vec![])
            .node("Conv", &["g", "v"], &["p"], vec![])
            .node("Mul", &["p", "scale"], &["t"], vec![])
    };
    model.node("Add", &["x", "t"], &["y"], vec![])
}

#[test]
fn products_of_channels_are_convolutions() {
    alike(&block(false), &block(true));
}

/// A resize of lines, or of the columns of images, behind a convolution.
fn resized(by: &[f32], is_image: bool, attributes: &[AttributeProto]) -> Model {
    let one = |dims: &[i64]| if is_image { [dims, &[1]].concat() } else { dims.to_vec() };
    let scales = if is_image { [by, &[1.0]].concat() } else { by.to_vec() };
    Model::new(13, &one(&[1, 3, 40]), &["y"])
        .tensor(small("w", &one(&[4, 3, 3])))
        .tensor(list("scales", &scales))
        .node("Conv", &["x", "w"], &["a"], vec![])
        .node("Resize", &["a", "", "scales"], &["y"], attributes.to_vec())
}

#[test]
fn lines_are_resized_as_columns() {
    let corners = text("coordinate_transformation_mode", "align_corners");
    for mode in ["nearest", "linear", "cubic"] {
        for scale in [2.0, 1.7, 0.6] {
            for attributes in [vec![text("mode", mode)], vec![text("mode", mode), corners.clone()]] {
                let of = |is_image| resized(&[1.0, 1.0, scale], is_image, &attributes);
                alike(&of(true), &of(false));
            }
        }
    }
}

/// What a model makes of an input whose elements are -3, -2, ..., 3, -3, ...
fn outputs(model: &Model) -> Vec<f32> {
    let (outputs, _) = run(model.import().unwrap(), RowsChoice::All).unwrap();
    match &outputs[0].data {
        Data::F32(values) => values.clone(),
        other => panic!("{other:?}"),
    }
}

fn near(found: &[f32], expected: &[f32]) {
    let is_near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(is_near), "{found:?}");
}

#[test]
fn corners_are_aligned_by_any_scale() {
    let of = |scale: f32| {
        let model = Model::new(13, &[1, 1, 1, 7], &["y"]).tensor(list("scales", &[1.0, 1.0, 1.0, scale]));
        let attributes =
            vec![text("mode", "linear"), text("coordinate_transformation_mode", "align_corners")];
        outputs(&model.node("Resize", &["x", "", "scales"], &["y"], attributes))
    };
    // The elements are a straight line from -3 to 3.
    near(&of(1.3), &[-3.0, -2.25, -1.5, -0.75, 0.0, 0.75, 1.5, 2.25, 3.0]);
    near(&of(0.6), &[-3.0, -1.0, 1.0, 3.0]);
    near(&of(0.2), &[-3.0]);
}

#[test]
fn nearest_neighbours_before_opset_11_lie_above_where_an_image_shrinks() {
    let of = |opset: i64, dims: &[i64], scales: &[f32]| {
        let model = Model::new(opset, dims, &["y"]).tensor(list("scales", scales));
        let operator = if opset < 10 { "Upsample" } else { "Resize" };
        outputs(&model.node(operator, &["x", "scales"], &["y"], vec![]))
    };
    // These are ONNX Runtime's.
    near(&of(10, &[1, 1, 2, 4], &[1.0, 1.0, 0.6, 0.6]), &[-3.0, -1.0]);
    near(
        &of(10, &[1, 1, 1, 20], &[1.0, 1.0, 1.0, 0.7]),
        &[-3.0, -1.0, 0.0, 2.0, 3.0, -2.0, -1.0, 0.0, 2.0, 3.0, -2.0, -1.0, 1.0, 2.0],
    );
    near(&of(10, &[1, 1, 7], &[1.0, 1.0, 0.5]), &[-3.0, -1.0, 1.0]);
    // One axis shrinks, and one grows.
    near(&of(10, &[1, 1, 2, 4], &[1.0, 1.0, 1.5, 0.6]), &[-3.0, -1.0, -3.0, -1.0, 1.0, 3.0]);
    near(&of(9, &[1, 1, 1, 3], &[1.0, 1.0, 1.0, 1.7]), &[-3.0, -3.0, -2.0, -2.0, -1.0]);
}

/// How a line is written: as one, as an image of one row, as one for each window, or with channels last between windows,
/// as Keras writes it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    Line,
    Row,
    RowForWindow,
    ChannelsLast,
}

/// Adds windows of `k` elements and what activates them.
fn window(model: Model, way: Way, operator: &str, [x, y]: [&str; 2], filters: &[&str], k: i64) -> Model {
    let is_pool = operator == "MaxPool";
    let is_column = is_pool && way == Way::ChannelsLast;
    let sides = |size: i64, one: i64| match way {
        Way::Line => vec![size],
        _ if is_column => vec![size, one],
        _ => vec![one, size],
    };
    let (stride, pad) = if is_pool { (k, 0) } else { (1, k / 2) };
    let attributes = vec![
        ints("kernel_shape", &sides(k, 1)),
        ints("strides", &sides(stride, 1)),
        ints("pads", &[sides(pad, 0), sides(pad, 0)].concat()),
    ];
    let name = |step: &str| format!("{y}_{step}");
    let [image, first, made, active, last] = ["image", "first", "made", "active", "last"].map(name);
    let inputs = |x: &str| -> Vec<String> { [x].iter().chain(filters).map(|name| (*name).into()).collect() };
    let add = |model: Model, x: &str, y: &str| {
        let inputs = inputs(x);
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let model = model.node(operator, &inputs, &[&made], attributes.clone());
        model.node("Relu", &[&made], &[y], vec![])
    };
    let axis = |axis: i64| vec![ints("axes", &[axis])];
    match way {
        Way::Line | Way::Row => add(model, x, y),
        Way::RowForWindow => {
            let model = add(model.node("Unsqueeze", &[x], &[&image], axis(2)), &image, &active);
            model.node("Squeeze", &[&active], &[y], axis(2))
        }
        Way::ChannelsLast => {
            let one = axis(if is_column { 2 } else { 1 });
            let perm = |perm: [i64; 4]| vec![ints("perm", &perm)];
            let model = model.node("Unsqueeze", &[x], &[&image], one.clone());
            let model = model.node("Transpose", &[&image], &[&first], perm([0, 3, 1, 2]));
            let model = add(model, &first, &active);
            let model = model.node("Transpose", &[&active], &[&last], perm([0, 2, 3, 1]));
            model.node("Squeeze", &[&last], &[y], one)
        }
    }
}

fn line(way: Way) -> Model {
    let dims: &[i64] = match way {
        Way::Line | Way::RowForWindow => &[1, 1, 600],
        Way::Row => &[1, 1, 1, 600],
        Way::ChannelsLast => &[1, 600, 1],
    };
    let filters = |inputs: i64| if way == Way::Line { vec![4, inputs, 5] } else { vec![4, inputs, 1, 5] };
    let model = Model::new(12, dims, &["y"]).tensor(small("v", &filters(1))).tensor(small("w", &filters(4)));
    let model = window(model, way, "Conv", ["x", "a"], &["v"], 5);
    let model = window(model, way, "Conv", ["a", "b"], &["w"], 5);
    let model = window(model, way, "MaxPool", ["b", "c"], &[], 2);
    let model = window(model, way, "Conv", ["c", "d"], &["w"], 5);
    let axes: &[i64] = match way {
        Way::Line | Way::RowForWindow => &[2],
        Way::Row => &[2, 3],
        Way::ChannelsLast => &[1],
    };
    model.node("ReduceMean", &["d"], &["y"], vec![ints("axes", axes), int("keepdims", 0)])
}

#[test]
fn images_of_one_row_go_by_columns() {
    for way in [Way::Row, Way::RowForWindow, Way::ChannelsLast] {
        alike(&line(Way::Line), &line(way));
    }
}

#[test]
fn what_leads_to_windows_goes_by_columns() {
    let model = Model::new(12, &[1, 4, 1, 600], &["y"])
        .tensor(small("w", &[4, 4, 1, 5]))
        .ints("order", &[2, 3, 0, 1])
        .node("Tanh", &["x"], &["t"], vec![])
        .node("Gather", &["t", "order"], &["g"], vec![int("axis", 1)]);
    let model = window(model, Way::Row, "Conv", ["g", "y"], &["w"], 5);
    let network = normalise(model.import().unwrap(), Fusion::Full);
    let made = network.layers.iter().filter(|layer| !layer.is_input());
    assert!(made.clone().all(|layer| layer.shape.dims[2..] == [600, 1]), "{:?}", made.collect::<Vec<_>>());
}

/// Concats along the length, slices, pads and an addition between windows on lines, which are images for the windows.
fn joined(is_image: bool) -> Model {
    let way = if is_image { Way::RowForWindow } else { Way::Line };
    let dims: &[i64] = if is_image { &[4, 4, 1, 5] } else { &[4, 4, 5] };
    let model = Model::new(12, &[1, 4, 300], &["y"])
        .tensor(small("w", dims))
        .ints("from", &[10])
        .ints("to", &[290])
        .ints("axis", &[2])
        .ints("pads", &[0, 0, 5, 0, 0, 5]);
    let model = window(model, way, "Conv", ["x", "a"], &["w"], 5);
    let model = model
        .node("Tanh", &["a"], &["t"], vec![])
        .node("Add", &["a", "t"], &["s"], vec![])
        .node("Slice", &["s", "from", "to", "axis"], &["c"], vec![])
        .node("Pad", &["c", "pads"], &["p"], vec![])
        .node("Concat", &["p", "t"], &["j"], vec![int("axis", 2)]);
    window(model, way, "Conv", ["j", "y"], &["w"], 5)
}

#[test]
fn columns_go_through_operators_on_lines() {
    alike(&joined(false), &joined(true));
}

#[test]
fn lines_are_reduced_as_columns() {
    let reduced = |way: Way, operator: &str, attributes: &[AttributeProto]| {
        let (dims, filters): (&[i64], &[i64]) = match way {
            Way::Line => (&[1, 4, 600], &[4, 4, 5]),
            Way::Row => (&[1, 4, 1, 600], &[4, 4, 1, 5]),
            _ => (&[1, 4, 600], &[4, 4, 1, 5]),
        };
        // Since opset 13, a softmax has one axis, and Unsqueeze reads its own.
        let opset = if way == Way::RowForWindow { 12 } else { 13 };
        let model = Model::new(opset, dims, &["y"]).tensor(small("w", filters));
        let model = window(model, way, "Conv", ["x", "a"], &["w"], 5);
        let model = window(model, way, "Conv", ["a", "b"], &["w"], 5);
        model.node(operator, &["b"], &["y"], attributes.to_vec())
    };
    for keep in [0, 1] {
        for (operator, attribute) in [("ReduceMax", ints("axes", &[1])), ("ArgMax", int("axis", 1))] {
            let attributes = [attribute, int("keepdims", keep)];
            let row = reduced(Way::Row, operator, &attributes);
            alike(&row, &reduced(Way::Line, operator, &attributes));
            alike(&row, &reduced(Way::RowForWindow, operator, &attributes));
        }
        let mean =
            |way, axes: &[i64]| reduced(way, "ReduceMean", &[ints("axes", axes), int("keepdims", keep)]);
        alike(&mean(Way::Row, &[2, 3]), &mean(Way::RowForWindow, &[2]));
        alike(&mean(Way::Row, &[0, 1, 2, 3]), &mean(Way::Line, &[0, 1, 2]));
    }
    let softmax = |way| reduced(way, "Softmax", &[int("axis", 1)]);
    alike(&softmax(Way::Row), &softmax(Way::Line));
}
