//! Tensors seen in other shapes and orders: what moves, and what does not.

use csdfc_plan::format::Quantization;

use super::layers::kinds;
use super::*;

/// The kinds of the layers between a model's input and its output, and the dimensions of the output.
fn path(model: &Model) -> (Vec<&'static str>, Vec<usize>) {
    let network = model.import().unwrap();
    (kinds(model), network.outputs[0].operand.shape.dims.clone())
}

/// A tensor `d` that lies channels-last, `[1, 6, 5, 4]`, after a convolution and a softmax.
fn channels_last() -> Model {
    Model::new(13, &[1, 6, 5, 3], &["y"])
        .floats("w", &[4, 3, 1, 1])
        .node("Transpose", &["x"], &["a"], vec![ints("perm", &[0, 3, 1, 2])])
        .node("Conv", &["a", "w"], &["b"], vec![])
        .node("Transpose", &["b"], &["c"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("Softmax", &["c"], &["d"], vec![])
}

#[test]
fn a_channels_last_tensor_is_seen_in_other_ranks_where_it_lies() {
    let check = |shapes: &[&[i64]], wanted: &[&str]| {
        let mut model = channels_last();
        let mut last = "d".to_string();
        for (i, shape) in shapes.iter().enumerate() {
            let (to, from) = (format!("r{i}"), std::mem::replace(&mut last, format!("r{i}")));
            model = model.ints(&format!("s{i}"), shape);
            model = model.node("Reshape", &[&from, &format!("s{i}")], &[&to], vec![]);
        }
        let (kinds, dims) = path(&model.node("Relu", &[&last], &["y"], vec![]));
        assert_eq!(kinds, [&["conv", "softmax"], wanted].concat(), "{shapes:?}");
        let dims: Vec<i64> = dims.iter().map(|dim| *dim as i64).collect();
        assert_eq!(&dims, shapes[shapes.len() - 1]);
    };
    check(&[&[1, 30, 4]], &["element_wise"]);
    check(&[&[1, 30, 4], &[1, 120]], &["element_wise"]);
    check(&[&[1, 6, 5, 4]], &["element_wise"]);
    // Four other dimensions would read as those of the other order.
    check(&[&[1, 5, 6, 4]], &["transpose", "element_wise"]);
}

#[test]
fn a_constant_may_have_more_channels_than_the_pixels_that_it_is_added_to() {
    let wider = Model::new(13, &[1, 6, 5, 3], &["y"])
        .floats("w", &[1, 3, 1, 1])
        .floats("c", &[2])
        .ints("s", &[1, 30, 1])
        .node("Transpose", &["x"], &["a"], vec![ints("perm", &[0, 3, 1, 2])])
        .node("Conv", &["a", "w"], &["b"], vec![])
        .node("Transpose", &["b"], &["d"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("Reshape", &["d", "s"], &["e"], vec![])
        .node("Add", &["e", "c"], &["y"], vec![]);
    assert_eq!(path(&wider), (vec!["conv", "transpose", "binary"], vec![1, 30, 2]));
}

#[test]
fn rows_in_one_order_are_moved_before_what_reads_the_other() {
    let flattened = Model::new(13, &[1, 6, 5, 3], &["y"])
        .floats("w", &[90, 2])
        .node("Transpose", &["x"], &["a"], vec![ints("perm", &[0, 3, 1, 2])])
        .node("Flatten", &["a"], &["b"], vec![])
        .node("MatMul", &["b", "w"], &["y"], vec![]);
    assert_eq!(path(&flattened), (vec!["transpose", "gemm"], vec![1, 2]));
    let pooled = channels_last().node("MaxPool", &["d"], &["y"], vec![ints("kernel_shape", &[5, 4])]);
    assert_eq!(path(&pooled), (vec!["conv", "softmax", "transpose", "pool"], vec![1, 6, 1, 1]));
    // Reductions work along any dimensions.
    let reduced = channels_last().node("GlobalMaxPool", &["d"], &["y"], vec![]);
    assert_eq!(path(&reduced), (vec!["conv", "softmax", "reduce"], vec![1, 6, 1, 1]));
}

#[test]
fn a_transpose_of_what_is_no_image_in_memory_moves_it() {
    let check = |input: &[i64], shape: &[i64], wanted: [usize; 4]| {
        let model = Model::new(13, input, &["y"])
            .ints("s", shape)
            .node("Reshape", &["x", "s"], &["a"], vec![])
            .node("Transpose", &["a"], &["y"], vec![ints("perm", &[0, 2, 3, 1])]);
        assert_eq!(path(&model), (vec!["transpose"], wanted.to_vec()));
    };
    check(&[1, 24], &[1, 2, 3, 4], [1, 3, 4, 2]);
    check(&[1, 2, 3, 4], &[1, 4, 3, 2], [1, 3, 2, 4]);
}

#[test]
fn a_transpose_moves_nothing_past_dimensions_of_one() {
    let check = |input: &[i64], perm: &[i64], wanted: &[&str], dims: &[usize]| {
        let model = Model::new(13, input, &["y"]);
        let model = model.node("Transpose", &["x"], &["t"], vec![ints("perm", perm)]);
        let (kinds, found) = path(&model.node("Relu", &["t"], &["y"], vec![]));
        assert_eq!((kinds.as_slice(), found.as_slice()), (wanted, dims), "{perm:?}");
    };
    check(&[1, 4, 6], &[0, 2, 1], &["transpose", "element_wise"], &[1, 6, 4]);
    check(&[1, 4, 6], &[1, 0, 2], &["element_wise"], &[4, 1, 6]);
    check(&[1, 4, 6], &[1, 2, 0], &["element_wise"], &[4, 6, 1]);
}

#[test]
fn reductions_of_a_channels_last_tensor_move_it_only_if_its_result_would_be_permuted() {
    let check = |axes: &[i64], keep: i64, wanted: &[&str], dims: &[usize]| {
        let attributes = vec![ints("axes", axes), int("keepdims", keep)];
        let (kinds, found) = path(&channels_last().node("ReduceMean", &["d"], &["y"], attributes));
        assert_eq!((&kinds[2..], found.as_slice()), (wanted, dims), "{axes:?}, keepdims {keep}");
    };
    check(&[1, 2], 1, &["reduce"], &[1, 1, 1, 4]);
    check(&[1, 2], 0, &["reduce"], &[1, 4]);
    check(&[1], 1, &["reduce"], &[1, 1, 5, 4]);
    check(&[1], 0, &["transpose", "reduce"], &[1, 5, 4]);
    check(&[3], 0, &["reduce"], &[1, 6, 5]);
}

#[test]
fn a_tensor_is_cast_between_kinds_of_floats_and_integers_that_floats_hold() {
    let cast = |operator: &str, to: DataType| {
        let model = Model::new(13, &[1, 3, 4, 4], &["y"]).node(operator, &["x"], &["a"], vec![]);
        model.node("Cast", &["a"], &["y"], vec![int("to", i64::from(to.0))])
    };
    for to in [DataType::FLOAT, DataType::DOUBLE, DataType::FLOAT16, DataType::BFLOAT16] {
        assert_eq!(kinds(&cast("Relu", to)), ["element_wise"]);
        assert_eq!(kinds(&cast("ArgMax", to)), ["arg_max"]);
    }
    for to in [DataType::INT32, DataType::INT64] {
        assert_eq!(kinds(&cast("ArgMax", to)), ["arg_max"]);
        let truncated = ["element_wise", "element_wise", "element_wise", "element_wise", "binary"];
        assert_eq!(kinds(&cast("Relu", to)), truncated);
    }
    assert_eq!(kinds(&cast("Relu", DataType::BOOL)), ["element_wise", "binary", "binary"]);
    // The places of three channels are bytes as they are, and so are floats that become truth values.
    assert_eq!(kinds(&cast("ArgMax", DataType::UINT8)), ["arg_max"]);
    let integers = |operator: &str, to: DataType| {
        cast(operator, to).with_outputs_of(to).import().unwrap().outputs.remove(0).integers
    };
    for (operator, to) in [("ArgMax", DataType::UINT8), ("Relu", DataType::BOOL)] {
        assert_eq!(integers(operator, to), Some(Quantization::IDENTITY), "{operator}");
    }
    for to in [DataType::INT32, DataType::FLOAT] {
        assert_eq!(integers("Relu", to), None);
    }
    refused(&cast("Relu", DataType::UINT8), "a tensor of float32 cannot become uint8");
}

#[test]
fn an_expansion_of_a_tensor_leaves_it_as_it_is() {
    let expand = |shape: &[i64]| {
        let model = Model::new(13, &[1, 3, 4], &["y"]).ints("s", shape);
        let model = model.node("Expand", &["x", "s"], &["a"], vec![]);
        model.node("Relu", &["a"], &["y"], vec![])
    };
    for shape in [&[1, 3, 4][..], &[1, 1, 1], &[3, 1], &[4], &[]] {
        assert_eq!(path(&expand(shape)), (vec!["element_wise"], vec![1, 3, 4]), "{shape:?}");
    }
    assert_eq!(path(&expand(&[1, 1, 3, 4])), (vec!["element_wise"], vec![1, 1, 3, 4]));
    for shape in [&[1, 4, 4][..], &[5]] {
        assert!(expand(shape).import().is_err(), "{shape:?}");
    }
}

#[test]
fn a_gather_by_one_index_loses_its_dimension() {
    let model = Model::new(13, &[1, 4, 6], &["y"]).tensor(TensorProto {
        name: Some("i".into()),
        data_type: Some(DataType::INT64),
        int64_data: vec![-1],
        ..Default::default()
    });
    let model = model.node("Gather", &["x", "i"], &["y"], vec![int("axis", 1)]);
    assert_eq!(path(&model), (vec!["slice"], vec![1, 6]));
}

#[test]
fn a_gather_becomes_at_most_256_slices() {
    // An index repeated begins a new slice.
    let gather = |indices: usize| {
        let model = Model::new(13, &[1, 4], &["y"]).ints("i", &vec![2; indices]);
        model.node("Gather", &["x", "i"], &["y"], vec![int("axis", 1)])
    };
    let (kinds, dims) = path(&gather(256));
    assert_eq!((kinds.len(), dims), (257, vec![1, 256]));
    refused(&gather(257), "its 257 indices make 257 slices; csdfc takes 1 to 256");
    refused(&gather(0), "its 0 indices make 0 slices; csdfc takes 1 to 256");
}

/// A slice of all there is is no layer, however short the dimension.
#[test]
fn a_slice_of_everything_is_no_layer() {
    let slice = |end: i64, axis: i64| {
        let model =
            Model::new(13, &[1, 3], &["y"]).ints("start", &[0]).ints("end", &[end]).ints("axis", &[axis]);
        let model = model.node("Slice", &["x", "start", "end", "axis"], &["a"], vec![]);
        kinds(&model.node("Relu", &["a"], &["y"], vec![]))
    };
    assert_eq!(slice(1, 0), ["element_wise"]);
    assert_eq!(slice(3, 1), ["element_wise"]);
    assert_eq!(slice(2, 1), ["slice", "element_wise"]);
}

/// A Transpose of a tensor in these dimensions, between Reshapes: each step has a name, dimensions and a perm.
fn moved(model: Model, from: &str, to: &str, steps: &[(&[i64], &[i64])], seen: &[i64]) -> Model {
    let (mut model, mut last) = (model, from.to_owned());
    for (i, (dims, perm)) in steps.iter().enumerate() {
        let [shape, cut, turned] = ["s", "c", "t"].map(|name| format!("{to}_{name}{i}"));
        model = model.ints(&shape, dims).node("Reshape", &[&last, &shape], &[&cut], vec![]);
        model = model.node("Transpose", &[&cut], &[&turned], vec![ints("perm", perm)]);
        last = turned;
    }
    let shape = format!("{to}_s");
    model.ints(&shape, seen).node("Reshape", &[&last, &shape], &[to], vec![])
}

#[test]
fn movements_become_layers_by_rows_so_that_what_follows_reads_images() {
    let shuffle: (&[i64], &[i64]) = (&[1, 4, 2, 6, 5], &[0, 2, 1, 3, 4]);
    let shuffled = ["slice", "slice", "concat"];
    // A shuffle before a product of channels-last pixels: no Transpose is left.
    let model = Model::new(13, &[1, 8, 6, 5], &["y"]).floats("w", &[8, 3]);
    let model = moved(model, "x", "m", &[shuffle], &[1, 8, 6, 5])
        .node("Transpose", &["m"], &["l"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("MatMul", &["l", "w"], &["p"], vec![])
        .node("Transpose", &["p"], &["y"], vec![ints("perm", &[0, 3, 1, 2])]);
    let (kinds, dims) = path(&model);
    assert_eq!(
        (kinds[..3].to_vec(), kinds.len(), dims),
        (shuffled.to_vec(), 4, vec![1, 3, 6, 5]),
        "{kinds:?}"
    );
    // Of a channels-last tensor, whose pixels a softmax reads.
    let last = (&[1i64, 6, 5, 2, 2][..], &[0i64, 1, 2, 4, 3][..]);
    let model =
        moved(channels_last(), "d", "m", &[last], &[1, 6, 5, 4]).node("Softmax", &["m"], &["y"], vec![]);
    assert_eq!(
        path(&model),
        ([&["conv", "softmax"][..], &shuffled, &["softmax"]].concat(), vec![1, 6, 5, 4])
    );
    // Of lines that are images, and of lines that are not.
    let lines = (&[1i64, 4, 2, 30][..], &[0i64, 2, 1, 3][..]);
    let model =
        Model::new(13, &[1, 3, 32], &["y"]).floats("w", &[8, 3, 3]).node("Conv", &["x", "w"], &["a"], vec![]);
    let model = moved(model, "a", "m", &[lines], &[1, 8, 30]).node("Relu", &["m"], &["y"], vec![]);
    assert_eq!(path(&model).0, [&["conv"][..], &shuffled, &["element_wise"]].concat());
    assert_eq!(model.import().unwrap().layers.last().unwrap().shape.dims, [1, 8, 30, 1]);
    let model = moved(Model::new(13, &[1, 8, 30], &["y"]), "x", "m", &[lines], &[1, 8, 30]);
    let model = model.node("Relu", &["m"], &["y"], vec![]);
    assert_eq!(path(&model).0, [&shuffled[..], &["element_wise"]].concat());
    assert_eq!(model.import().unwrap().layers.last().unwrap().shape.dims, [1, 8, 30]);
    // A shuffle and the one that undoes it.
    let back: (&[i64], &[i64]) = (&[1, 2, 4, 6, 5], &[0, 2, 1, 3, 4]);
    let model = moved(Model::new(13, &[1, 8, 6, 5], &["y"]), "x", "m", &[shuffle, back], &[1, 8, 6, 5]);
    assert_eq!(path(&model.node("Relu", &["m"], &["y"], vec![])).0, ["element_wise"]);
    // Its pixels are read in another order than they lie.
    let model = Model::new(13, &[1, 8, 6, 5], &["y"])
        .ints("s", &[1, 4, 2, 30])
        .ints("t", &[1, 8, 6, 5])
        .node("Reshape", &["x", "s"], &["a"], vec![])
        .node("Transpose", &["a"], &["b"], vec![ints("perm", &[0, 2, 1, 3])])
        .node("Transpose", &["b"], &["c"], vec![ints("perm", &[0, 2, 3, 1])])
        .node("Reshape", &["c", "t"], &["y"], vec![]);
    assert!(!path(&model).0.contains(&"concat"));
    // Rows and columns that change places have no rows.
    let turned: (&[i64], &[i64]) = (&[1, 8, 2, 3, 5], &[0, 1, 3, 2, 4]);
    let model = moved(Model::new(13, &[1, 8, 6, 5], &["y"]), "x", "m", &[turned], &[1, 8, 6, 5]);
    assert_eq!(path(&model.node("Relu", &["m"], &["y"], vec![])).0, ["transpose", "element_wise"]);
}
