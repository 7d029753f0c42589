//! Models of a fixed batch are imported as one of its frames, unless frames may mix.

use super::Field::Int;
use super::{Model, import_bytes};
use crate::import::ImportOptions;

/// Two images, each of which becomes a line.
fn lines() -> (Model, i32) {
    let mut model = Model::default();
    let x = model.input(&[2, 4, 6, 8]);
    let (kept, seen, y) = (model.made(&[2, 4, 6, 8]), model.made(&[2, 192]), model.made(&[2, 5]));
    let (shape, weights) = (model.list(&[2, 192]), model.floats(&[5, 192]));
    model.operator("RELU", &[x], &[kept], &[]);
    model.operator("RESHAPE", &[kept, shape], &[seen], &[]);
    model.operator("FULLY_CONNECTED", &[seen, weights, -1], &[y], &[]);
    (model, y)
}

#[test]
fn each_frame_is_alone() {
    let (mut model, y) = lines();
    model.outputs = vec![y];
    let imported = import_bytes(&model.bytes(), None, &ImportOptions::default()).unwrap();
    let dims: Vec<_> = imported.network.layers.iter().map(|layer| layer.shape.dims.clone()).collect();
    assert_eq!((imported.batch, dims.first(), dims.last()), (2, Some(&vec![1, 4, 6, 8]), Some(&vec![1, 5])));
}

#[test]
fn frames_that_may_mix_are_refused() {
    let refused = |model: &Model, words: &str| {
        let error = model.import().unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let (mut model, y) = lines();
    let all = model.made(&[4, 5]);
    model.operator("CONCATENATION", &[y, y], &[all], &[(0, Int(0))]);
    model.outputs = vec![all];
    refused(&model, "(CONCATENATION): it may mix the 2 frames of the batch");
    let (mut model, y) = lines();
    let (sum, axes) = (model.made(&[5]), model.list(&[0]));
    model.operator("SUM", &[y, axes], &[sum], &[]);
    model.outputs = vec![sum];
    refused(&model, "(SUM): it may mix the 2 frames of the batch");
    // The shape of two frames, in which one has no whole row.
    let (mut model, y) = lines();
    let (seen, shape) = (model.made(&[5, 2]), model.list(&[5, 2]));
    model.operator("RESHAPE", &[y, shape], &[seen], &[]);
    model.outputs = vec![seen];
    refused(&model, "it makes [5, 2], whose first dimension is not the batch of 2");
}
