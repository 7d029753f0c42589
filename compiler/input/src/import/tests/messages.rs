//! What rten-onnx does not read: functions that a model defines, and sparse tensors.

use rten_onnx::protobuf::{EncodeMessage, ValueWriter};

use super::bytes::{field, varint};
use super::*;

fn text_field(number: usize, text: &str) -> Vec<u8> {
    field(number, text.as_bytes())
}

/// An attribute of a function's node that refers to one of the call.
fn reference(name: &str, of: &str) -> Vec<u8> {
    let kind = [varint(20 << 3), varint(1)].concat();
    field(5, &[text_field(1, name), text_field(21, of), kind].concat())
}

/// A node of a function.
fn node(domain: &str, operator: &str, inputs: &[&str], output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let inputs = inputs.iter().map(|name| text_field(1, name)).collect::<Vec<_>>().concat();
    let named = [text_field(2, output), text_field(4, operator), text_field(7, domain)].concat();
    field(7, &[inputs, named, attributes.concat()].concat())
}

/// A function of the domain `own`. The version of its operators is 13.
fn function(name: &str, inputs: &[&str], output: &str, rest: &[Vec<u8>]) -> Vec<u8> {
    let inputs = inputs.iter().map(|name| text_field(4, name)).collect::<Vec<_>>().concat();
    let opset = field(9, &[2 << 3, 13]);
    let named = [text_field(1, name), inputs, text_field(5, output), opset, text_field(10, "own")].concat();
    field(25, &[named, rest.concat()].concat())
}

/// A model with a call of a function of two operands.
fn call(attributes: Vec<AttributeProto>) -> Model {
    let mut model = Model::new(17, &[1, 4], &["y"]).node("Outer", &["x", "x"], &["y"], attributes);
    model.graph().node[0].domain = Some("own".into());
    model
}

fn import(model: &Model, functions: &[Vec<u8>]) -> Result<Network, ImportError> {
    let bytes = [model.bytes(), functions.concat()].concat();
    import_bytes(&bytes, None, &ImportOptions::default()).map(|imported| imported.network)
}

/// `Outer(a, b) = Inner(a) + b`, where `Inner(a)` is a leaky ReLU whose slope is an attribute of the calls, 0.5 by default.
/// The third operand of `Outer` may be left out.
fn functions() -> [Vec<u8>; 2] {
    let slope = AttributeProto { name: Some("slope".into()), ..float("slope", 0.5) };
    let mut default = Vec::new();
    slope.encode(ValueWriter::new(&mut default)).unwrap();
    let inner = [node("", "LeakyRelu", &["a"], "r", &[reference("alpha", "slope")]), field(11, &default)];
    let outer = [
        node("own", "Inner", &["a"], "s", &[reference("slope", "slope")]),
        node("", "Clip", &["s", "least"], "t", &[]),
        node("", "Add", &["t", "b"], "c", &[]),
    ];
    [function("Inner", &["a"], "r", &inner), function("Outer", &["a", "b", "least"], "c", &outer)]
}

#[test]
fn functions_are_inlined() {
    let check = |attributes: Vec<AttributeProto>, slope: &str| {
        let network = import(&call(attributes), &functions()).unwrap();
        let names: Vec<&str> = network.layers.iter().map(|layer| layer.name.as_str()).collect();
        assert_eq!(names, ["x", "node_y/s/r", "node_y/t", "node_y/c"]);
        let operator = format!("{:?}", network.layers[1].operator);
        assert!(operator.contains(slope), "{operator}");
        assert_eq!(network.layers[3].output, "y");
    };
    check(vec![float("slope", 0.25)], "alpha: 0.25");
    check(vec![], "alpha: 0.5");
}

#[test]
fn functions_that_do_not_end_are_refused() {
    let endless = function("Outer", &["a", "b"], "c", &[node("own", "Outer", &["a", "b"], "c", &[])]);
    let error = import(&call(vec![]), &[endless]).unwrap_err().to_string();
    assert!(error.contains("bodies and functions run each other more than 32 deep"), "{error}");
    let unknown = function("Outer", &["a", "b"], "c", &[node("", "Unknown", &["a"], "c", &[])]);
    let error = import(&call(vec![]), &[unknown]).unwrap_err().to_string();
    assert!(error.contains("node_y/c (Unknown)"), "{error}");
    let twice = import(&call(vec![]), &[functions(), functions()].concat()).unwrap_err().to_string();
    assert!(twice.contains("several functions of this name"), "{twice}");
    let error = import(&call(vec![]), &[]).unwrap_err().to_string();
    assert!(error.contains("node_y (own.Outer)"), "{error}");
}

/// A sparse tensor of two rows of three elements as a field of a graph.
fn sparse(indices: TensorProto) -> Vec<u8> {
    let values = TensorProto {
        name: Some("w".into()),
        dims: vec![2],
        data_type: Some(DataType::FLOAT),
        float_data: vec![5.0, 7.0],
        ..Default::default()
    };
    let [mut first, mut second] = [Vec::new(), Vec::new()];
    values.encode(ValueWriter::new(&mut first)).unwrap();
    indices.encode(ValueWriter::new(&mut second)).unwrap();
    field(15, &[field(1, &first), field(2, &second), vec![3 << 3, 2, 3 << 3, 3]].concat())
}

fn indices(dims: &[i64], values: &[i64]) -> TensorProto {
    TensorProto {
        dims: dims.to_vec(),
        data_type: Some(DataType::INT64),
        int64_data: values.to_vec(),
        ..Default::default()
    }
}

#[test]
fn sparse_initializers_are_read() {
    let import = |indices: TensorProto| {
        let mut model = Model::new(13, &[2, 3], &["y"]).node("Add", &["x", "w"], &["y"], vec![]);
        model.graph().input = vec![value("x", DataType::FLOAT, &[1, 3])];
        let mut graph = Vec::new();
        model.proto.graph.take().unwrap().encode(ValueWriter::new(&mut graph)).unwrap();
        let bytes = [model.bytes(), field(7, &[graph, sparse(indices)].concat())].concat();
        import_bytes(&bytes, None, &ImportOptions::default()).map(|imported| imported.network)
    };
    for given in [indices(&[2], &[1, 5]), indices(&[2, 2], &[0, 1, 1, 2])] {
        let network = import(given).unwrap();
        assert_eq!(network.layers[1].parameters[0].values().unwrap(), [0.0, 5.0, 0.0, 0.0, 0.0, 7.0]);
    }
    for (given, words) in [
        (indices(&[2], &[1, 6]), "[6] is out of its range"),
        (indices(&[2], &[1, -1]), "[-1] is out of its range"),
        (indices(&[1], &[1]), "2 elements and 1 indices"),
        (indices(&[2, 3], &[0; 6]), "its indices have dimensions [2, 3]"),
    ] {
        let error = import(given).unwrap_err().to_string();
        assert!(error.contains("tensor w: ") && error.contains(words), "{error}");
    }
}
