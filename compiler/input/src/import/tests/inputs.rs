//! Inputs of the network: types of elements, and shapes that the user gives.

use csdfc_plan::operator::Operator;

use super::*;

/// A model that reads `x` by a `Cast` to floats.
fn cast(element: DataType) -> Model {
    let model = Model::of(13, element, &[1, 3], &["y"]);
    let to = |to: DataType| vec![int("to", i64::from(to.0))];
    model.node("Cast", &["x"], &["f"], to(DataType::FLOAT)).node("Relu", &["f"], &["y"], vec![])
}

/// Floats hold integers, and a double is a float with more digits than csdfc computes with.
#[test]
fn numbers_of_any_type_become_floats() {
    for element in [
        DataType::DOUBLE,
        DataType::BOOL,
        DataType::INT8,
        DataType::UINT8,
        DataType::INT16,
        DataType::UINT16,
        DataType::INT32,
        DataType::UINT32,
        DataType::INT64,
        DataType::UINT64,
    ] {
        let network = cast(element).import().unwrap();
        let kinds: Vec<_> = network.layers.iter().map(|layer| layer.operator.kind()).collect();
        assert_eq!(kinds, ["input", "element_wise"], "{element:?}");
    }
}

/// On the way to floats, integers may become those of a type that holds all of them.
#[test]
fn integers_become_wider() {
    for (from, to, is_wider) in [
        (DataType::INT32, DataType::INT64, true),
        (DataType::UINT8, DataType::INT16, true),
        (DataType::BOOL, DataType::INT32, true),
        (DataType::INT64, DataType::INT32, false),
        (DataType::INT8, DataType::UINT8, false),
        (DataType::UINT32, DataType::INT32, false),
    ] {
        let cast = |to: DataType| vec![int("to", i64::from(to.0))];
        let model = Model::of(13, from, &[1, 3], &["y"])
            .node("Cast", &["x"], &["i"], cast(to))
            .node("Cast", &["i"], &["f"], cast(DataType::FLOAT))
            .node("Relu", &["f"], &["y"], vec![]);
        assert_eq!(model.import_with(&ImportOptions::default()).is_ok(), is_wider, "{from:?} {to:?}");
    }
}

/// A lookup by an input has help of its own.
#[test]
fn lookups_are_refused() {
    let model = Model::of(13, DataType::INT64, &[1, 5], &["y"]).floats("table", &[7, 4]);
    let model = model.node("Gather", &["table", "x"], &["y"], vec![]);
    let error = model.import_with(&ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("operand 1, its indices (x), is computed by the network"), "{error}");
    let help = miette::Diagnostic::help(&error).unwrap().to_string();
    assert!(help.contains("look up what it reads before the run"), "{help}");
}

/// A shape is given by the name of the input, by names of its dimensions, or without a name for the only input.
#[test]
fn shapes_are_given_by_any_name() {
    // Its dimensions are `batch`, 3, `side` and `side`.
    let model = Model::new(13, &[0, 3, -1, -1], &["y"]).node("Relu", &["x"], &["y"], vec![]);
    let shape = |shapes: &[(&str, &[usize])]| {
        let shapes = shapes.iter().map(|(name, dims)| ((*name).to_string(), dims.to_vec())).collect();
        let network = model.import_with(&ImportOptions { shapes, ..ImportOptions::default() }).unwrap();
        assert!(matches!(network.layers[0].operator, Operator::Input(_)));
        network.layers[0].shape.dims.clone()
    };
    assert_eq!(shape(&[("x", &[1, 3, 8, 9])]), [1, 3, 8, 9]);
    assert_eq!(shape(&[("", &[1, 3, 8, 9])]), [1, 3, 8, 9]);
    assert_eq!(shape(&[("side", &[8])]), [1, 3, 8, 8]);
    assert_eq!(shape(&[("side", &[8]), ("batch", &[1])]), [1, 3, 8, 8]);
}
