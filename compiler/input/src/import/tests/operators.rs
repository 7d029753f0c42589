//! Operators whose layers depend on attributes and operands, and operators that are refused.

use csdfc_plan::operator::{
    Conv, ConvTranspose, Coordinates, Crop, NonMaxSuppression, Operator, Pad, PadMode, PoolKind, Reduce,
    ReduceFunction, Resize, ResizeMode, Rounding, TopK,
};

use super::layers::{kinds, none, one, single};
use super::*;

/// Floats of these values, in one dimension.
pub fn list(name: &str, values: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: vec![values.len() as i64],
        data_type: Some(DataType::FLOAT),
        float_data: values.to_vec(),
        ..Default::default()
    }
}

#[test]
fn padding_of_transposed_convolutions_by_their_output_shape() {
    // Without padding, 13×11.
    let check = |more: Vec<AttributeProto>, pads: [usize; 4], added: [usize; 2], output: [usize; 2]| {
        let attributes = [vec![ints("strides", &[2, 2])], more].concat();
        let layer = single(13, &[1, 4, 6, 5], "ConvTranspose", none().floats("w", &[4, 2, 3, 3]), attributes);
        let Operator::ConvTranspose(ConvTranspose { pads: found, output_padding, .. }) = layer.operator
        else {
            panic!()
        };
        assert_eq!((found, output_padding), (pads, added));
        assert_eq!(layer.shape.dims, [1, 2, output[0], output[1]]);
    };
    let shape = |dims: &[i64]| ints("output_shape", dims);
    check(vec![], [0; 4], [0; 2], [13, 11]);
    check(vec![shape(&[])], [0; 4], [0; 2], [13, 11]);
    check(vec![shape(&[13, 11])], [0; 4], [0; 2], [13, 11]);
    check(vec![shape(&[12, 10])], [1, 1, 0, 0], [0; 2], [12, 10]);
    check(vec![shape(&[1, 2, 12, 10])], [1, 1, 0, 0], [0; 2], [12, 10]);
    check(vec![shape(&[10, 9])], [2, 1, 1, 1], [0; 2], [10, 9]);
    let upper = || text("auto_pad", "SAME_UPPER");
    check(vec![shape(&[12, 10]), upper()], [0, 0, 1, 1], [0; 2], [12, 10]);
    check(vec![upper()], [0, 0, 1, 1], [0; 2], [12, 10]);
    check(vec![text("auto_pad", "SAME_LOWER")], [1, 1, 0, 0], [0; 2], [12, 10]);
    check(vec![ints("output_padding", &[1, 0]), shape(&[13, 11])], [1, 0, 0, 0], [1, 0], [13, 11]);
    // Rows and columns that no filter writes are added at the end.
    check(vec![shape(&[14, 11])], [0; 4], [1, 0], [14, 11]);
    check(vec![ints("output_padding", &[0, 1]), shape(&[14, 12])], [0; 4], [1, 1], [14, 12]);
}

#[test]
fn convolutions_that_are_refused() {
    let conv = |attributes| one(13, &[1, 4, 6, 5], "Conv", none().floats("w", &[4, 4, 3, 3]), attributes);
    refused(&conv(vec![int("group", 0)]), "(Conv): 0 groups");
    refused(&conv(vec![int("group", -1)]), "(Conv): -1 groups");
    refused(&conv(vec![ints("kernel_shape", &[3, 2])]), "kernel_shape [3, 2] contradicts filters of 3×3");
    for attributes in [vec![], vec![ints("kernel_shape", &[])], vec![ints("kernel_shape", &[3, 3])]] {
        let layer = single(13, &[1, 4, 6, 5], "Conv", none().floats("w", &[4, 4, 3, 3]), attributes);
        assert!(matches!(layer.operator, Operator::Conv(Conv { kernel: [3, 3], .. })));
    }
    let pool = |kernel: &[i64], dilations: &[i64]| {
        let attributes =
            vec![ints("kernel_shape", kernel), ints("dilations", dilations), text("auto_pad", "SAME_UPPER")];
        one(13, &[1, 4, 6, 5], "MaxPool", none(), attributes)
    };
    refused(&pool(&[3, 0], &[1, 1]), "a kernel of size 0 with dilation 1 reads nothing");
    refused(&pool(&[3, 3], &[0, 1]), "a kernel of size 3 with dilation 0 reads nothing");
}

#[test]
fn pools_over_whole_images_reduce() {
    let function = |operator: &str, input: &[i64]| match single(13, input, operator, none(), vec![]).operator
    {
        Operator::Reduce(Reduce { function, axes, keep_dims: true }) => (function, axes),
        other => panic!("{other:?}"),
    };
    let image = [1, 4, 6, 5];
    assert_eq!(function("GlobalAveragePool", &image), (ReduceFunction::Mean, vec![2, 3]));
    assert_eq!(function("GlobalMaxPool", &image), (ReduceFunction::Max, vec![2, 3]));
    assert_eq!(function("GlobalLpPool", &image), (ReduceFunction::Lp { p: 2 }, vec![2, 3]));
    assert_eq!(function("GlobalMaxPool", &[1, 4, 6]), (ReduceFunction::Max, vec![2]));
    refused(&one(13, &[1, 4], "GlobalMaxPool", none(), vec![]), "and no height or width");
    let exponent = |p: i64| one(13, &image, "GlobalLpPool", none(), vec![int("p", p)]);
    assert!(exponent(1).import().is_ok());
    refused(&exponent(0), "(GlobalLpPool): p is 0");
    refused(&exponent(-2), "(GlobalLpPool): p is -2");
    let window = vec![ints("kernel_shape", &[2, 2])];
    let kind = |operator| match single(13, &image, operator, none(), window.clone()).operator {
        Operator::Pool(pool) => pool.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind("MaxPool"), PoolKind::Max);
    assert_eq!(kind("AveragePool"), PoolKind::Average { count_include_pad: false });
    assert_eq!(kind("LpPool"), PoolKind::Lp { p: 2 });
}

#[test]
fn norms() {
    // 1 / √(v + 0.25), and b − m of that.
    let vectors = [("s", [1.0, 2.0]), ("b", [0.5, 1.0]), ("m", [3.0, 1.0]), ("v", [0.75, 3.75])];
    let model = || vectors.iter().fold(none(), |model, (name, values)| model.tensor(list(name, values)));
    let norm = |opset, more: Vec<AttributeProto>| {
        let attributes = [vec![float("epsilon", 0.25)], more].concat();
        one(opset, &[1, 2, 3, 3], "BatchNormalization", model(), attributes)
    };
    let network = norm(15, vec![]).import().unwrap();
    let parameters: Vec<Vec<f32>> =
        network.layers[1].parameters.iter().map(|weights| weights.values().unwrap()).collect();
    assert_eq!(parameters, [[1.0, 1.0], [-2.5, 0.0]]);
    // The attribute went with opset 9.
    refused(&norm(8, vec![int("spatial", 0)]), "spatial = 0 is not supported");
    assert!(norm(9, vec![int("spatial", 0)]).import().is_ok());

    let lrn = |size| one(13, &[1, 4, 3, 3], "LRN", none(), vec![int("size", size)]);
    assert!(lrn(1).import().is_ok());
    refused(&lrn(0), "(LRN): size is 0");
    refused(&lrn(-1), "(LRN): size is -1");
    let log = |operator| match single(13, &[1, 4], operator, none(), vec![]).operator {
        Operator::Softmax(softmax) => softmax.log,
        other => panic!("{other:?}"),
    };
    assert_eq!([log("Softmax"), log("LogSoftmax")], [false, true]);
}

#[test]
fn bounds_of_a_clip() {
    let clip = |min: f32, max: f32| {
        one(13, &[1, 4], "Clip", none().tensor(list("min", &[min])).tensor(list("max", &[max])), vec![])
    };
    assert!(clip(f32::NEG_INFINITY, f32::INFINITY).import().is_ok());
    refused(&clip(f32::INFINITY, 1.0), "its min is infinite");
    refused(&clip(0.0, f32::NEG_INFINITY), "its max is infinite");
    refused(&clip(0.0, f32::NAN), "its max is not a number");
}

#[test]
fn pads_of_some_dimensions() {
    let image = [1, 2, 6, 5];
    let pad = |model: &Model| match &model.import().unwrap().layers[1].operator {
        Operator::Pad(Pad { mode, before, after }) => format!("{mode:?} {before:?} {after:?}"),
        other => panic!("{other:?}"),
    };
    // Since opset 18 a list of dimensions may be given.
    let of = |opset, pads: &[i64], axes: &[i64], value: f32| {
        let constants = none().ints("pads", pads).tensor(list("value", &[value])).ints("axes", axes);
        one(opset, &image, "Pad", constants, vec![])
    };
    let some = "Constant { value: Some(1.5) } [0, 0, 2, 1] [0, 0, 4, 3]";
    assert_eq!(pad(&of(18, &[1, 2, 3, 4], &[-1, 2], 1.5)), some);
    assert_eq!(pad(&of(17, &[0, 0, 2, 1, 0, 0, 4, 3], &[-1, 2], 1.5)), some);
    refused(&of(18, &[0, 0, 2, 1, 0, 0, 4, 3], &[-1, 2], 1.5), "it has 8 pads for 2 dimensions");
    refused(&of(18, &[1, 1, 1, 1], &[2, -2], 1.5), "name a dimension twice");
    assert_eq!(
        pad(&of(18, &[1, 1], &[2], f32::NEG_INFINITY)),
        "Constant { value: None } [0, 0, 1, 0] [0, 0, 1, 0]"
    );
    refused(&of(18, &[1, 1], &[2], f32::INFINITY), "it pads with inf");
    refused(&of(18, &[1, 1], &[2], f32::NAN), "it pads with NaN");
    // Nothing added is no layer.
    let mut nothing = of(18, &[0, 0], &[2], 1.5);
    nothing.graph().node[0].output[0] = "a".into();
    assert_eq!(kinds(&nothing.node("Relu", &["a"], &["y"], vec![])), ["element_wise"]);
    // The value is an attribute up to opset 10.
    let pads = [0, 0, 1, 1, 0, 0, 1, 1];
    let value = |layer: csdfc_network::Layer| match layer.operator {
        Operator::Pad(Pad { mode: PadMode::Constant { value }, .. }) => value,
        other => panic!("{other:?}"),
    };
    let attributes = vec![ints("pads", &pads), float("value", 2.5)];
    assert_eq!(value(single(10, &image, "Pad", none(), attributes)), Some(2.5));
    let operands = none().ints("pads", &pads).tensor(list("value", &[2.5]));
    assert_eq!(value(single(11, &image, "Pad", operands, vec![])), Some(2.5));
}

#[test]
fn blocks_of_space() {
    for (operator, block) in [("DepthToSpace", 0), ("SpaceToDepth", 0), ("SpaceToDepth", -1)] {
        let model = one(13, &[1, 4, 6, 6], operator, none(), vec![int("blocksize", block)]);
        refused(&model, &format!("({operator}): blocksize is {block}"));
    }
    assert!(one(13, &[1, 4, 6, 6], "SpaceToDepth", none(), vec![int("blocksize", 1)]).import().is_ok());
    // In the other mode the places of a block, of which there are 9, change places with the channels.
    let attributes = vec![int("blocksize", 3), text("mode", "CRD")];
    let network = one(13, &[1, 2, 3, 6], "SpaceToDepth", none(), attributes).import().unwrap();
    let slices = network.layers.iter().filter_map(|layer| match &layer.operator {
        Operator::Slice(slice) => Some([slice.starts[1] as i64, slice.steps[1], slice.lengths[1] as i64]),
        _ => None,
    });
    assert_eq!(slices.collect::<Vec<_>>(), [[0, 2, 9], [1, 2, 9]]);
    assert_eq!(network.outputs[0].operand.shape.dims, [1, 18, 1, 2]);
}

/// The layer that a resize of `[1, 3, 4, 5]` becomes.
fn resized(model: &Model) -> Resize {
    match &model.import().unwrap().layers[1].operator {
        Operator::Resize(resize) => resize.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn resizes_of_every_opset() {
    let image = || Model::new(13, &[1, 3, 4, 5], &["y"]).tensor(list("scales", &[1.0, 1.0, 2.0, 3.0]));
    let of = |opset: i64, operator: &str, inputs: &[&str]| {
        let mut model = image().ints("sizes", &[1, 3, 8, 15]).ints("none", &[]).tensor(list("nothing", &[]));
        model.proto.opset_import[0].version = Some(opset);
        resized(&model.node(operator, inputs, &["y"], vec![]))
    };
    let check = |found: Resize, coordinates: Coordinates, rounding: Rounding| {
        assert_eq!((found.coordinates, found.mode), (coordinates, ResizeMode::Nearest { rounding }));
        assert_eq!(found.size, [8, 15]);
    };
    let (half, prefer_floor) = (Coordinates::HalfPixel, Rounding::RoundPreferFloor);
    check(of(10, "Resize", &["x", "scales"]), Coordinates::Asymmetric, Rounding::Floor);
    check(of(11, "Resize", &["x", "", "scales"]), half, prefer_floor);
    check(of(13, "Resize", &["x", "", "scales", "none"]), half, prefer_floor);
    check(of(13, "Resize", &["x", "", "nothing", "sizes"]), half, prefer_floor);
    check(of(9, "Upsample", &["x", "scales"]), Coordinates::Asymmetric, Rounding::Floor);
    let scales = AttributeProto {
        name: Some("scales".into()),
        floats: vec![1.0, 1.0, 2.0, 3.0],
        r#type: Some(AttributeType::FLOATS),
        ..Default::default()
    };
    for opset in [7, 8] {
        let found = resized(&one(opset, &[1, 3, 4, 5], "Upsample", none(), vec![scales.clone()]));
        check(found, Coordinates::Asymmetric, Rounding::Floor);
    }
    let neither = image().node("Resize", &["x"], &["y"], vec![]);
    refused(&neither, "it has neither scales nor sizes");
}

#[test]
fn any_dimensions_are_resized() {
    let by_sizes = |input: &[i64], sizes: &[i64]| {
        let model = Model::new(13, input, &["y"]).ints("sizes", sizes);
        model.node("Resize", &["x", "", "", "sizes"], &["y"], vec![])
    };
    assert_eq!(resized(&by_sizes(&[1, 3, 4, 5], &[1, 3, 8, 5])).size, [8, 5]);
    assert_eq!(resized(&by_sizes(&[1, 3, 4, 5], &[1, 3, 4, 9])).size, [4, 9]);
    // Others than height and width one after another, as rows.
    let rows = |model: &Model| -> Vec<[usize; 2]> {
        let network = model.import().unwrap();
        let size = |layer: &csdfc_network::Layer| match &layer.operator {
            Operator::Resize(resize) => resize.size,
            other => panic!("{other:?}"),
        };
        network.layers[1..].iter().map(size).collect()
    };
    assert_eq!(rows(&by_sizes(&[1, 3, 4, 5], &[1, 6, 8, 5])), [[6, 20], [8, 5]]);
    assert_eq!(rows(&by_sizes(&[1, 3, 4], &[1, 3, 8])), [[8, 1]]);
    assert_eq!(rows(&by_sizes(&[1, 3, 4, 5, 6], &[1, 3, 8, 10, 12])), [[8, 30], [10, 6], [12, 1]]);
    for size in [0, -1, 1 << 32] {
        let words = format!("a dimension of 4 cannot be resized to {size}");
        refused(&by_sizes(&[1, 3, 4, 5], &[1, 3, size, 5]), &words);
    }
    // 3 channels by 1.2 are 3 again, but others.
    let model = Model::new(13, &[1, 3, 4, 5], &["y"]).tensor(list("scales", &[1.0, 1.2, 2.0, 1.0]));
    let model = model.node("Resize", &["x", "", "scales"], &["y"], vec![]);
    assert_eq!(rows(&model), [[3, 20], [8, 5]]);
}

#[test]
fn only_height_and_width_are_cropped() {
    let by = |region: &[f32], more: Vec<AttributeProto>| {
        let attributes = vec![text("coordinate_transformation_mode", "tf_crop_and_resize")];
        let model = Model::new(18, &[1, 3, 4, 5], &["y"]).tensor(list("region", region));
        let model = model.ints("sizes", &[1, 3, 4, 5][4 - region.len() / 2..]);
        model.node("Resize", &["x", "region", "", "sizes"], &["y"], [attributes, more].concat())
    };
    // Of the same size, but not the same image.
    let all = [0.0, 0.0, 0.25, 0.5, 1.0, 1.0, 0.75, 1.0];
    let crop = Crop { from: [0.25, 0.5], to: [0.75, 1.0], outside: 2.5 };
    let found = resized(&by(&all, vec![float("extrapolation_value", 2.5)]));
    assert_eq!(found.coordinates, Coordinates::TfCropAndResize(crop));
    // Axes in another order.
    let found =
        resized(&by(&[0.5, 0.25, 1.0, 0.75], vec![ints("axes", &[3, 2]), float("extrapolation_value", 2.5)]));
    assert_eq!(found.coordinates, Coordinates::TfCropAndResize(crop));
    refused(&by(&[0.0, 0.5, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0], vec![]), "csdfc crops only height and width");
    refused(&by(&all[..6], vec![]), "its region has 6 numbers for 4 dimensions");
    refused(
        &by(&[0.0, 0.0, 0.75, 0.0, 1.0, 1.0, 0.25, 1.0], vec![]),
        "a resize of the part from [0.75, 0.0]",
    );
}

#[test]
fn the_largest_of_every_opset() {
    let of = |opset: i64, inputs: &[&str], attributes: Vec<AttributeProto>| {
        let model = Model::new(opset, &[1, 3, 5], &["v", "i"]).ints("k", &[2]).ints("all", &[4]);
        model.node("TopK", inputs, &["v", "i"], attributes)
    };
    let found = |model: Model| {
        let network = model.import().unwrap();
        let layers = network.layers[1..].iter();
        layers.map(|layer| (layer.operator.clone(), layer.shape.dims.clone())).collect::<Vec<_>>()
    };
    let top =
        |axis, largest, indices| Operator::TopK(TopK { axis, count: 2, largest, indices, floats: false });
    let last = [(top(2, true, false), vec![1, 3, 2]), (top(2, true, true), vec![1, 3, 2])];
    assert_eq!(found(of(9, &["x"], vec![int("k", 2)])), last);
    assert_eq!(found(of(10, &["x", "k"], vec![])), last);
    let least = vec![int("axis", 1), int("largest", 0), int("sorted", 0)];
    let first = [(top(1, false, false), vec![1, 2, 5]), (top(1, false, true), vec![1, 2, 5])];
    assert_eq!(found(of(11, &["x", "k"], least)), first);
    refused(&of(11, &["x", "all"], vec![int("axis", 1)]), "it takes 4 of 3 elements");
    refused(&of(9, &["x"], vec![]), "it takes [0] elements");
}

#[test]
fn suppressions_keep_at_most_the_boxes_that_there_are() {
    let with_score = |most: i64, overlap: f32, score: f32, given: usize| {
        let model = Model::new(13, &[1, 5, 4], &["y"]).floats("scores", &[1, 3, 5]).ints("most", &[most]);
        let model = model.tensor(list("overlap", &[overlap])).tensor(list("score", &[score]));
        let inputs = ["x", "scores", "most", "overlap", "score"];
        model.node("NonMaxSuppression", &inputs[..given], &["y"], vec![int("center_point_box", 1)])
    };
    let of = |most, overlap, given| with_score(most, overlap, 0.25, given);
    let found = |model: Model| {
        let network = model.import().unwrap();
        let layer = network.layers.last().unwrap();
        (layer.operator.clone(), layer.shape.dims.clone())
    };
    let suppression = |most, overlap, score| {
        Operator::NonMaxSuppression(NonMaxSuppression { most, overlap, score, centred: true, floats: false })
    };
    assert_eq!(found(of(2, 0.5, 5)), (suppression(2, 0.5, Some(0.25)), vec![6, 3]));
    assert_eq!(found(of(i64::MAX, 0.5, 4)), (suppression(5, 0.5, None), vec![15, 3]));
    assert_eq!(found(of(1, 0.5, 3)), (suppression(1, 0.0, None), vec![3, 3]));
    refused(&of(1, 0.5, 2), "it keeps 0 boxes of a class");
    refused(&of(-1, 0.5, 5), "it keeps -1 boxes of a class");
    refused(&of(1, 1.5, 5), "boxes overlap by 1.5, which is not from 0 to 1");
    refused(&of(1, f32::NAN, 5), "boxes overlap by NaN, which is not from 0 to 1");
    // A plan would keep no such number.
    refused(&with_score(1, 0.5, f32::INFINITY, 5), "the least score of a box is inf");
}

/// Integers of a tensor, and updates of it that are constants.
#[test]
fn integers_are_scattered() {
    let model = Model::of(18, DataType::INT64, &[1, 4], &["y"]);
    let stored = |name: &str, values: &[i64]| {
        let tensor = none().ints(name, values).graph().initializer.remove(0);
        TensorProto { dims: vec![1, values.len() as i64], ..tensor }
    };
    let model = model.tensor(stored("at", &[2, -1])).tensor(stored("u", &[7, 9]));
    let model = model.node("ScatterElements", &["x", "at", "u"], &["y"], vec![int("axis", 1)]);
    assert!(model.import().is_ok());
}

#[test]
fn what_new_operators_refuse() {
    let image = &[1, 2, 4, 4];
    let scatter = |at: &[i64], dims: &[i64], reduction| {
        let stored =
            TensorProto { dims: dims.to_vec(), ..none().ints("at", at).graph().initializer.remove(0) };
        let model = Model::new(18, image, &["y"]).tensor(stored).floats("u", &[2, 4, 4]);
        model.node("ScatterND", &["x", "at", "u"], &["y"], vec![text("reduction", reduction)])
    };
    assert!(scatter(&[0, 1, 0, 0], &[2, 2], "none").import().is_ok());
    // No grid: the last update of a place counts.
    assert!(scatter(&[0, 1, 0, 1], &[2, 2], "none").import().is_ok());
    assert!(scatter(&[0, 1, 0, 0], &[2, 2], "add").import().is_ok());
    refused(&scatter(&[0, 1, 0, 2], &[2, 2], "none"), "index 2 is out of range: dimension 1 is 2");
    refused(&scatter(&[0, 1, 0, 0], &[2, 2], "sub"), "reduction sub is unknown");

    let einsum = |equation| one(13, image, "Einsum", none(), vec![text("equation", equation)]);
    assert!(einsum("abcd->adb").import().is_ok());
    refused(&einsum("abcc->abc"), "takes a diagonal");
    refused(&einsum("abc->abc"), "does not fit operands of ranks [4]");
    refused(&einsum("abcd->e"), "does not fit operands of ranks [4]");

    let tile = |times: &[i64]| one(13, image, "Tile", none().ints("n", times), vec![]);
    refused(&tile(&[1, 1, 0, 1]), "it repeats");
    refused(&tile(&[1, 1, 300, 1]), "it joins more than 256 parts along dimension 2");

    let lstm = |steps: i64, more: Vec<AttributeProto>| {
        let model = Model::new(14, &[steps, 1, 2], &["y"]).floats("w", &[1, 12, 2]).floats("r", &[1, 12, 3]);
        model.node("LSTM", &["x", "w", "r"], &["y"], [vec![int("hidden_size", 3)], more].concat())
    };
    refused(&lstm(1, vec![float("clip", 0.0)]), "its clip is 0, not above 0");
    refused(&lstm(1, vec![text("direction", "both")]), "direction both is unknown");

    let attention = |heads| {
        let attributes = vec![int("q_num_heads", heads), int("kv_num_heads", heads)];
        Model::new(23, &[1, 3, 4], &["y"]).node("Attention", &["x", "x", "x"], &["y"], attributes)
    };
    assert!(attention(2).import().is_ok());
    refused(&attention(3), "its operand 0 has 4 elements for 3 heads");
}
