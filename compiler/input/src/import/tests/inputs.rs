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

/// A lookup by an input in a large table has help of its own.
#[test]
fn lookups_in_large_tables_are_refused() {
    let lookup = |rows: i64| {
        let model = Model::of(13, DataType::INT64, &[1, 5], &["y"]).floats("table", &[rows, 4]);
        model.node("Gather", &["table", "x"], &["y"], vec![])
    };
    assert!(lookup(7).import().is_ok());
    let error = lookup(70_000).import_with(&ImportOptions::default()).unwrap_err();
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

/// An input that is one number is a constant, which decides what depends on it.
#[test]
fn values_are_constants() {
    let model = |element: DataType, dims: &[i64]| {
        let mut model = Model::new(13, &[1, 4], &["y"])
            .ints("rate", &[16000])
            .node("Cast", &["sr"], &["number"], vec![int("to", 7)])
            .node("Equal", &["number", "rate"], &["is_wide"], vec![])
            .node("Where", &["is_wide", "wide", "narrow"], &["factor"], vec![])
            .floats("wide", &[1])
            .floats("narrow", &[1])
            .node("Mul", &["x", "factor"], &["y"], vec![]);
        model.graph().input.push(value("sr", element, dims));
        model
    };
    let given = |values: &[(&str, f64)]| ImportOptions {
        values: values.iter().map(|(name, value)| ((*name).to_string(), *value)).collect(),
        ..ImportOptions::default()
    };
    for (element, dims) in [(DataType::INT64, &[][..]), (DataType::INT32, &[1]), (DataType::FLOAT, &[1, 1])] {
        let network = model(element, dims).import_with(&given(&[("sr", 16000.0)])).unwrap();
        let kinds: Vec<_> = network.layers.iter().map(|layer| layer.operator.kind()).collect();
        assert_eq!(kinds, ["input", "binary"], "{element:?} {dims:?}");
    }
    let model = model(DataType::INT64, &[]);
    let refused = |values: &[(&str, f64)]| model.import_with(&given(values)).unwrap_err().to_string();
    let message = refused(&[("sr", 0.5)]);
    assert!(message.contains("input sr: its elements are int64, which do not hold 0.5"), "{message}");
    assert_eq!(refused(&[("rs", 1.0)]), "model: no input named rs");
    // Without a value, the caller hands it over.
    let network = model.import().unwrap();
    assert_eq!(network.layers.iter().filter(|layer| layer.is_input()).count(), 2);
}

/// A dimension that has one name in two inputs has one size.
#[test]
fn a_named_dimension_has_one_size() {
    let mut model = Model::new(13, &[0, -1], &["y"]).node("Add", &["x", "state"], &["y"], vec![]);
    model.graph().input.push(value("state", DataType::FLOAT, &[1, -1]));
    let shapes = [("x".to_string(), vec![1, 9])].into();
    let network = model.import_with(&ImportOptions { shapes, ..ImportOptions::default() }).unwrap();
    assert_eq!(network.layers[1].shape.dims, [1, 9]);
}
