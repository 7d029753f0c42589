use rten_onnx::onnx::AttributeProto;

use super::*;

/// A node of constants, and the values that come of it.
fn check(operator: &str, operands: &[(&[i64], &[f32])], attributes: Vec<AttributeProto>, wanted: &[f32]) {
    let mut model = Model::new(13, &[1], &["y"]);
    let mut names = Vec::new();
    for (i, (dims, values)) in operands.iter().enumerate() {
        names.push(format!("c{i}"));
        model = model.tensor(TensorProto {
            name: Some(names[i].clone()),
            dims: dims.to_vec(),
            data_type: Some(DataType::FLOAT),
            float_data: values.to_vec(),
            ..Default::default()
        });
    }
    values_of(model, operator, &names.iter().map(String::as_str).collect::<Vec<_>>(), attributes, wanted);
}

fn values_of(model: Model, operator: &str, inputs: &[&str], attributes: Vec<AttributeProto>, wanted: &[f32]) {
    let network = model
        .node(operator, inputs, &["folded"], attributes)
        .node("Cast", &["folded"], &["floats"], vec![int("to", 1)])
        .node("Add", &["x", "floats"], &["y"], vec![])
        .import()
        .unwrap();
    assert_eq!(network.layers.len(), 2, "{operator}");
    assert_eq!(network.layers[1].parameters[0].values().unwrap(), wanted, "{operator}");
}

#[test]
fn constants_of_floats_fold() {
    let (row, column) = ((&[1, 2][..], &[1.0, 2.0][..]), (&[2, 1][..], &[10.0, 20.0][..]));
    check("Add", &[row, column], vec![], &[11.0, 12.0, 21.0, 22.0]);
    check("Sub", &[column, row], vec![], &[9.0, 8.0, 19.0, 18.0]);
    check("Max", &[row, column, (&[], &[15.0])], vec![], &[15.0, 15.0, 20.0, 20.0]);
    check("Sqrt", &[(&[2], &[4.0, 9.0])], vec![], &[2.0, 3.0]);
    check("Concat", &[row, (&[1, 1], &[5.0])], vec![int("axis", 1)], &[1.0, 2.0, 5.0]);
    check(
        "Concat",
        &[column, (&[2, 2], &[1.0, 2.0, 3.0, 4.0])],
        vec![int("axis", -1)],
        &[10.0, 1.0, 2.0, 20.0, 3.0, 4.0],
    );
    let block: (&[i64], &[f32]) = (&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    check("Transpose", &[block], vec![], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    check("ReduceProd", &[block], vec![ints("axes", &[0])], &[4.0, 10.0, 18.0]);
    check("ReduceMean", &[block], vec![ints("axes", &[1]), int("keepdims", 0)], &[2.0, 5.0]);
    check("Less", &[row, (&[], &[2.0])], vec![], &[1.0, 0.0]);
}

#[test]
fn constants_of_integers_fold() {
    let model = || {
        Model::new(13, &[1], &["y"])
            .ints("a", &[7, -7, 5])
            .ints("b", &[2, 2, -3])
            .ints("zero", &[0])
            .ints("two", &[2])
            .ints("three", &[3])
            .ints("minus", &[-1])
    };
    let check = |operator, inputs: &[&str], attributes, wanted: &[f32]| {
        values_of(model(), operator, inputs, attributes, wanted);
    };
    check("Div", &["a", "b"], vec![], &[3.0, -3.0, -1.0]);
    check("Mod", &["a", "b"], vec![], &[1.0, 1.0, -1.0]);
    check("Gather", &["a", "minus"], vec![], &[5.0]);
    check("Slice", &["a", "minus", "zero", "zero", "minus"], vec![], &[5.0, -7.0]);
    check("Expand", &["two", "three"], vec![], &[2.0, 2.0, 2.0]);
    check("Tile", &["a", "two"], vec![], &[7.0, -7.0, 5.0, 7.0, -7.0, 5.0]);
    check("ConstantOfShape", &["three"], vec![], &[0.0, 0.0, 0.0]);
    check("Equal", &["b", "two"], vec![], &[1.0, 1.0, 0.0]);
    check("Range", &["zero", "three", "two"], vec![], &[0.0, 2.0]);
    check("Shape", &["a"], vec![], &[3.0]);
    check("Constant", &[], vec![ints("value_ints", &[4, 2])], &[4.0, 2.0]);
    let select = model().node("Equal", &["b", "two"], &["same"], vec![]);
    values_of(select, "Where", &["same", "a", "zero"], vec![], &[7.0, -7.0, 0.0]);
}

#[test]
fn the_shape_of_a_tensor_is_computed_with() {
    // The batch of x, joined with −1, flattens what was pooled.
    let network = Model::new(12, &[0, 3, 4, 4], &["y"])
        .ints("zero", &[0])
        .ints("one", &[1])
        .ints("rest", &[-1])
        .node("Shape", &["x"], &["shape"], vec![])
        .node("Slice", &["shape", "zero", "one"], &["batch"], vec![])
        .node("Cast", &["batch"], &["batch32"], vec![int("to", 6)])
        .node("Concat", &["batch32", "rest"], &["flat"], vec![int("axis", 0)])
        .node("GlobalMaxPool", &["x"], &["p"], vec![])
        .node("Reshape", &["p", "flat"], &["r"], vec![])
        .node("Relu", &["r"], &["y"], vec![])
        .import()
        .unwrap();
    assert_eq!(network.layers[2].shape.dims, [1, 3]);
}

#[test]
fn weights_through_a_chain_of_constants_stay_where_they_are() {
    let network = Model::new(13, &[1, 2, 4, 4], &["y"])
        .floats("w", &[8])
        .ints("shape", &[2, 2, 2, 1])
        .node("Identity", &["w"], &["same"], vec![])
        .node("Reshape", &["same", "shape"], &["filters"], vec![])
        .node("Conv", &["x", "filters"], &["y"], vec![])
        .import()
        .unwrap();
    let filters = &network.layers[1].parameters[0];
    assert!(matches!(filters.source, csdfc_network::weights::WeightSource::Bytes { .. }));
    assert_eq!(filters.values().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
}
