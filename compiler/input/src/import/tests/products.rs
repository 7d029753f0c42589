//! Products of matrices by constants and by tensors.

use csdfc_plan::operator::Operator;

use super::layers::{kinds, none, one, single};
use super::*;

/// A model in which `x`, seen as `dims`, is `a`.
fn of(dims: &[i64]) -> Model {
    let input = if dims.len() == 1 { dims.to_vec() } else { vec![1, dims.iter().product()] };
    let model = Model::new(13, &input, &["y"]).ints("dims", dims);
    model.node("Reshape", &["x", "dims"], &["a"], vec![])
}

/// Where each product of a `MatMul` by a constant starts in the tensor, which matrix of the constant it takes, and the
/// dimensions of the whole. The constant's elements count up from 1.
fn products(a: &[i64], b: &[i64]) -> (Vec<(Vec<usize>, usize)>, Vec<usize>) {
    let network = of(a).floats("b", b).node("MatMul", &["a", "b"], &["y"], vec![]).import().unwrap();
    let mut products = Vec::new();
    for layer in network.layers.iter().filter(|layer| layer.operator.kind() == "gemm") {
        let weights = layer.parameters[0].values().unwrap();
        let size = weights.len() as f32;
        assert!(weights.windows(2).all(|pair| pair[1] == pair[0] + 1.0), "{weights:?}");
        let start = match &network.layer(layer.inputs[0].layer).operator {
            Operator::Slice(slice) => slice.starts.clone(),
            _ => Vec::new(),
        };
        products.push((start, ((weights[0] - 1.0) / size) as usize));
    }
    (products, network.outputs[0].operand.shape.dims.clone())
}

#[test]
fn a_product_by_several_matrices_takes_each_with_its_own() {
    let six = |start: fn(usize) -> Vec<usize>, place: fn(usize) -> usize| -> Vec<(Vec<usize>, usize)> {
        (0..6).map(|i| (start(i), place(i))).collect()
    };
    let each = |i: usize| vec![i / 3, i % 3, 0, 0];
    assert_eq!(products(&[2, 3, 1, 2], &[2, 3, 2, 1]), (six(each, |i| i), vec![2, 3, 1, 1]));
    assert_eq!(products(&[2, 3, 1, 2], &[3, 2, 2]), (six(each, |i| i % 3), vec![2, 3, 1, 2]));
    assert_eq!(products(&[2, 3, 4, 2], &[2, 1, 2, 3]), (six(each, |i| i / 3), vec![2, 3, 4, 3]));
    // The tensor repeats.
    let rows = |i: usize| vec![i / 3, 0, 0, 0];
    assert_eq!(products(&[2, 1, 1, 2], &[3, 2, 5]), (six(rows, |i| i % 3), vec![2, 3, 1, 5]));
    let columns = |i: usize| vec![i % 3, 0, 0];
    assert_eq!(products(&[3, 1, 2], &[2, 1, 2, 5]), (six(columns, |i| i / 3), vec![2, 3, 1, 5]));
    // One matrix, or a vector, by each of two.
    let two = vec![(vec![], 0), (vec![], 1)];
    assert_eq!(products(&[4, 3], &[2, 3, 5]), (two.clone(), vec![2, 4, 5]));
    assert_eq!(products(&[3], &[2, 3, 5]), (two, vec![2, 5]));
}

#[test]
fn a_product_by_one_matrix_or_vector() {
    let whole = vec![(vec![], 0)];
    assert_eq!(products(&[4, 3], &[3, 5]), (whole.clone(), vec![4, 5]));
    assert_eq!(products(&[3], &[3, 5]), (whole.clone(), vec![5]));
    assert_eq!(products(&[4, 3], &[3]), (whole.clone(), vec![4]));
    assert_eq!(products(&[2, 4, 3], &[3]), (whole.clone(), vec![2, 4]));
    assert_eq!(products(&[4, 3], &[1, 3, 5]), (whole, vec![1, 4, 5]));
    let one = of(&[4, 3]).floats("b", &[1, 3, 5]).node("MatMul", &["a", "b"], &["y"], vec![]);
    assert_eq!(kinds(&one), ["gemm"]);
    // A vector is read as one row.
    let vector = of(&[3]).floats("b", &[3, 5]).node("MatMul", &["a", "b"], &["y"], vec![]).import().unwrap();
    assert_eq!(vector.layers[1].inputs[0].shape.dims, [1, 3]);
}

#[test]
fn a_product_takes_at_most_256_matrices() {
    let product = |matrices: i64| {
        let model = of(&[matrices, 1, 1]).floats("b", &[matrices, 1, 1]);
        model.node("MatMul", &["a", "b"], &["y"], vec![])
    };
    assert_eq!(kinds(&product(256)).len(), 2 * 256 + 1);
    refused(&product(257), "it has 257 products by constant matrices; csdfc takes at most 256");
}

#[test]
fn a_constant_matrix_times_a_tensor() {
    let product = |a: &[i64]| of(a).floats("b", &[5, 4]).node("MatMul", &["b", "a"], &["y"], vec![]);
    let check = |a: &[i64], wanted: &[usize]| {
        let network = product(a).import().unwrap();
        assert_eq!(kinds(&product(a)), ["transpose", "gemm", "transpose"]);
        assert_eq!(network.outputs[0].operand.shape.dims, wanted);
    };
    check(&[4, 3], &[5, 3]);
    check(&[2, 3, 4, 6], &[2, 3, 5, 6]);
    refused(
        &product(&[4]),
        "its left operand is a constant of dimensions [5, 4], and its right one has rank 1",
    );
}

#[test]
fn products_of_tensors() {
    let check = |a: &[i64], b: &[i64], wanted: &[usize]| {
        let mut model = of(a).ints("dims_b", b);
        model.graph().input.push(value("z", DataType::FLOAT, &[1, b.iter().product()]));
        let model = model.node("Reshape", &["z", "dims_b"], &["b"], vec![]);
        let network = model.node("MatMul", &["a", "b"], &["y"], vec![]).import().unwrap();
        assert_eq!(network.outputs[0].operand.shape.dims, wanted, "{a:?} by {b:?}");
    };
    check(&[4, 3], &[3, 5], &[4, 5]);
    check(&[3], &[3, 5], &[5]);
    check(&[3], &[2, 3, 5], &[2, 5]);
    check(&[4, 3], &[3], &[4]);
    check(&[2, 4, 3], &[3], &[2, 4]);
    check(&[3], &[3], &[]);
}

#[test]
fn gemm_scales_its_weights_stored_either_way() {
    for (transposed, dims) in [(0, [3, 2]), (1, [2, 3])] {
        let attributes = vec![float("alpha", 0.5), int("transB", transposed)];
        let layer = single(13, &[1, 3], "Gemm", none().floats("w", &dims), attributes);
        let halves: Vec<f32> = (1..=6u8).map(|i| f32::from(i) / 2.0).collect();
        assert_eq!(layer.parameters[0].values().unwrap(), halves);
        // Factors of other layers may follow, one for each unit.
        assert_eq!(layer.parameters[0].scale.as_ref().unwrap().axis, usize::from(transposed == 0));
    }
}

#[test]
fn gemm_adds_a_bias_of_each_unit_at_once_and_others_after() {
    let check = |bias: &[i64], wanted: &[&str]| {
        let model = of(&[2, 3]).floats("w", &[3, 2]).floats("c", bias);
        assert_eq!(kinds(&model.node("Gemm", &["a", "w", "c"], &["y"], vec![])), wanted, "{bias:?}");
    };
    check(&[2], &["gemm"]);
    check(&[1, 2], &["gemm"]);
    check(&[], &["gemm"]);
    check(&[2, 1], &["gemm", "binary"]);
    check(&[2, 2], &["gemm", "binary"]);
    let tensor = one(13, &[1, 2], "Gemm", none().floats("w", &[2, 2]), vec![]);
    assert_eq!(kinds(&tensor), ["gemm"]);
    let model = Model::new(13, &[1, 2], &["y"]).floats("w", &[2, 2]);
    assert_eq!(kinds(&model.node("Gemm", &["x", "w", "x"], &["y"], vec![])), ["gemm", "binary"]);
}

#[test]
fn gemm_of_two_tensors_is_a_product_times_alpha() {
    let kinds = |alpha: f32| {
        let model = of(&[2, 2]).node("Gemm", &["a", "a"], &["y"], vec![float("alpha", alpha)]);
        kinds(&model)
    };
    assert_eq!(kinds(1.0), ["mat_mul"]);
    assert_eq!(kinds(0.5), ["mat_mul", "binary"]);
}

/// A filled constant takes no memory, but a factor or a bias for each of its units would.
#[test]
fn units_of_a_gemm_are_counted_before_they_are_computed() {
    let gemm = |bias: bool, alpha: f32| {
        let model = Model::new(13, &[1, 1], &["y"]).ints("many", &[1, 1 << 28]).floats("c", &[1]);
        let model = model.node("ConstantOfShape", &["many"], &["w"], vec![]);
        let operands: &[&str] = if bias { &["x", "w", "c"] } else { &["x", "w"] };
        model.node("Gemm", operands, &["y"], vec![float("alpha", alpha)])
    };
    assert!(gemm(false, 1.0).import().is_ok());
    refused(&gemm(false, 0.5), "to be computed at import");
    refused(&gemm(true, 1.0), "to be computed at import");
}
