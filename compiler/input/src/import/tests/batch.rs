//! Models of a fixed batch are imported as one of its frames, unless frames may mix.

use super::*;

/// The dimensions of the layers of one frame of a model, whose batch is 4.
fn frame(model: &Model) -> Vec<Vec<usize>> {
    let imported = import_bytes(&model.bytes(), None, &ImportOptions::default()).unwrap();
    assert_eq!(imported.batch, 4);
    imported.network.layers.into_iter().map(|layer| layer.shape.dims).collect()
}

/// A model of four frames `[3, 8]`, each of which its nodes turn into a line `y`.
fn lines() -> Model {
    Model::new(17, &[4, 3, 8], &["y"]).floats("per_line", &[8]).floats("matrix", &[8, 8])
}

fn images() -> Model {
    Model::new(13, &[4, 3, 2, 2], &["y"]).floats("w", &[3, 3, 1, 1]).node("Conv", &["x", "w"], &["a"], vec![])
}

#[test]
fn each_frame_is_alone() {
    let conv = [vec![1, 3, 2, 2], vec![1, 3, 2, 2]];
    let relu = |model: Model, from: &str| model.node("Relu", &[from], &["y"], vec![]);
    assert_eq!(frame(&relu(images(), "a")), [&conv[..], &[vec![1, 3, 2, 2]]].concat());
    // Views that count with four frames.
    for seen in [&[4, 12][..], &[4, -1], &[-1, 12], &[0, -1]] {
        let model = images().ints("seen", seen).node("Reshape", &["a", "seen"], &["flat"], vec![]);
        assert_eq!(frame(&relu(model, "flat")).last(), Some(&vec![1, 12]), "{seen:?}");
    }
    // The shape says how many there are.
    let model = images()
        .node("Shape", &["a"], &["shape"], vec![])
        .ints("first", &[0])
        .node("Gather", &["shape", "first"], &["four"], vec![])
        .ints("rest", &[12])
        .node("Concat", &["four", "rest"], &["seen"], vec![int("axis", 0)])
        .node("Reshape", &["a", "seen"], &["flat"], vec![]);
    assert_eq!(frame(&relu(model, "flat")).last(), Some(&vec![1, 12]));
    // Pixels of all frames as rows of a matrix, and back.
    let model = images()
        .node("Transpose", &["a"], &["last"], vec![ints("perm", &[0, 2, 3, 1])])
        .ints("rows", &[-1, 3])
        .node("Reshape", &["last", "rows"], &["r"], vec![])
        .floats("m", &[3, 4])
        .node("MatMul", &["r", "m"], &["p"], vec![])
        .ints("all", &[4, 16])
        .node("Reshape", &["p", "all"], &["flat"], vec![])
        // A matrix with as many rows as there are frames.
        .ints("columns", &[4, 4, 4])
        .node("Reshape", &["flat", "columns"], &["cube"], vec![])
        .floats("four", &[4, 4])
        .node("MatMul", &["cube", "four"], &["seen"], vec![]);
    assert_eq!(frame(&relu(model, "seen")).last(), Some(&vec![1, 4, 4]));
    let model = Model::new(13, &[4, 4], &["y"]).floats("four", &[4, 4]);
    assert_eq!(frame(&model.node("MatMul", &["x", "four"], &["y"], vec![])).last(), Some(&vec![1, 4]));
}

/// Heads of attention, and a mask that is the same for all frames.
#[test]
fn attention_is_within_a_frame() {
    let attention = |inputs: &[&str]| {
        let model = Model::new(23, &[4, 2, 3, 8], &["y"]).floats("mask", &[1, 1, 3, 3]);
        model.node("Attention", inputs, &["y"], vec![])
    };
    assert_eq!(frame(&attention(&["x", "x", "x", "mask"])).last(), Some(&vec![1, 2, 3, 8]));
    let keys = attention(&["x", "keys", "keys"]).floats("keys", &[4, 2, 3, 8]);
    refused(&keys, "it may mix the 4 frames of the batch");
}

#[test]
fn a_constant_for_each_frame_is_the_same() {
    let same = |values: &[i64]| {
        let mut model = Model::new(13, &[4, 2], &["y"]).ints("c", values);
        model.graph().initializer[0].dims = vec![4, 2];
        model.node("Cast", &["c"], &["f"], vec![int("to", 1)]).node("Add", &["x", "f"], &["y"], vec![])
    };
    assert_eq!(frame(&same(&[5, 6, 5, 6, 5, 6, 5, 6])).last(), Some(&vec![1, 2]));
    refused(&same(&[5, 6, 5, 6, 5, 6, 5, 7]), "a constant of [4, 2] differs from frame to frame");
}

/// None of these would be an error for a batch of 1.
#[test]
fn frames_that_may_mix_are_refused() {
    let axis = |axis| vec![int("axis", axis)];
    let images = |operator: &str, attributes| images().node(operator, &["a"], &["y"], attributes);
    for model in [
        images("Softmax", axis(0)),
        images("ReduceMean", vec![ints("axes", &[-4]), int("keepdims", 1)]),
        images("ReduceMax", vec![int("keepdims", 1)]),
        images("Flatten", axis(0)),
        images("ArgMax", axis(0)),
        images("Transpose", vec![ints("perm", &[1, 0, 2, 3])]),
        images("MeanVarianceNormalization", vec![]),
        images("DynamicQuantizeLinear", vec![]),
        images("Split", axis(0)),
    ] {
        refused(
            &model,
            "input x: its batch is 4, and csdfc cannot compute its frames one after another: node node_y",
        );
    }
    for model in [
        lines().node("Concat", &["x", "x"], &["y"], axis(0)),
        lines().ints("k", &[1]).node("TopK", &["x", "k"], &["y", ""], axis(0)),
        lines().ints("zero", &[0]).node("Gather", &["x", "zero"], &["y"], axis(0)),
        lines().ints("zero", &[0]).node("CumSum", &["x", "zero"], &["y"], vec![]),
        lines().node("Transpose", &["x"], &["t"], vec![ints("perm", &[2, 1, 0])]).node(
            "MatMul",
            &["x", "t"],
            &["y"],
            vec![],
        ),
        lines().ints("from", &[1]).ints("to", &[4]).node("Slice", &["x", "from", "to"], &["y"], vec![]),
        lines().ints("pads", &[1, 0, 0, 0, 0, 0]).node("Pad", &["x", "pads"], &["y"], vec![]),
        lines().ints("shape", &[2, 4, 3, 8]).node("Expand", &["x", "shape"], &["y"], vec![]),
        lines().ints("seen", &[2, 48]).node("Reshape", &["x", "seen"], &["y"], vec![]),
        lines().ints("seen", &[8, 12]).node("Reshape", &["x", "seen"], &["y"], vec![]),
        lines().ints("zero", &[0]).node("Unsqueeze", &["x", "zero"], &["y"], vec![]),
    ] {
        let options = ImportOptions { batch: Some(4), ..ImportOptions::default() };
        let error = model.import_with(&options).unwrap_err().to_string();
        assert!(
            error.contains("its batch is 4, and csdfc cannot compute its frames one after another"),
            "{error}"
        );
    }
    // A matrix times itself.
    let square = Model::new(13, &[4, 4], &["y"]);
    let square = square.node("Transpose", &["x"], &["t"], vec![]).node("MatMul", &["x", "t"], &["y"], vec![]);
    refused(&square, "it may mix the 4 frames of the batch");
    let square = Model::new(13, &[4, 1], &["y"]).node("MatMul", &["x", "x"], &["y"], vec![]);
    refused(&square, "it may mix the 4 frames of the batch");
}

/// Frames that a call takes of a model that leaves its batch open, or has none.
#[test]
fn a_batch_is_asked_for() {
    let imported = |model: &Model, batch| {
        let options = ImportOptions { batch, ..ImportOptions::default() };
        import_bytes(&model.bytes(), None, &options)
            .map(|imported| (imported.batch, imported.network.layers[0].shape.dims.clone()))
    };
    let relu = |dims: &[i64]| Model::new(13, dims, &["y"]).node("Relu", &["x"], &["y"], vec![]);
    for (dims, batch, expected) in [
        (&[0, 3][..], None, (1, vec![1, 3])),
        (&[0, 3], Some(5), (5, vec![1, 3])),
        (&[1, 3], Some(5), (5, vec![1, 3])),
        (&[4, 3], None, (4, vec![1, 3])),
        (&[4, 3], Some(4), (4, vec![1, 3])),
        // Three dimensions may as well have no batch, unless it is asked for.
        (&[4, 3, 2], None, (1, vec![4, 3, 2])),
        (&[4, 3, 2], Some(5), (5, vec![4, 3, 2])),
        (&[4, 3, 2], Some(4), (4, vec![1, 3, 2])),
    ] {
        assert_eq!(imported(&relu(dims), batch).unwrap(), expected, "{dims:?} {batch:?}");
    }
    let error = imported(&relu(&[4, 3]), Some(2)).unwrap_err().to_string();
    assert_eq!(error, "model: input x: its batch is 4, but a call is to take 2 frames");
    // A batch of 1 in place of the model's.
    let shapes = |batch| ImportOptions {
        shapes: [("x".into(), vec![1, 3])].into(),
        batch,
        ..ImportOptions::default()
    };
    for batch in [1, 4] {
        let options = shapes(Some(batch));
        assert_eq!(import_bytes(&relu(&[4, 3]).bytes(), None, &options).unwrap().batch, batch);
    }
    // All inputs have the same.
    let mut two = Model::new(13, &[4, 3], &["y"]).node("Add", &["x", "z"], &["y"], vec![]);
    two.graph().input.push(value("z", DataType::FLOAT, &[1, 3]));
    refused(&two, "input z has a batch of 1");
}
