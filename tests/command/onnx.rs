//! A small ONNX model, written with the decoder's own writer.

use std::cell::RefCell;

use rten_onnx::onnx::{
    DataType, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, TypeProtoTensor, ValueInfoProto,
};

/// A node as operator, inputs and output; it is named after its output.
pub type Node<'a> = (&'a str, &'a [&'a str], &'a str);

/// A model with the input `x`, 1×3×16×16, and the output `y`; filters `w` have these dimensions, and a scale `s` is ½.
pub fn model(filters: &[i64], nodes: &[Node<'_>]) -> Vec<u8> {
    let weights = (0..filters.iter().product::<i64>()).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let node = |(operator, inputs, output): &Node<'_>| NodeProto {
        op_type: Some((*operator).into()),
        name: Some(format!("node_{output}")),
        input: inputs.iter().map(|name| (*name).to_string()).collect(),
        output: vec![(*output).to_string()],
        ..Default::default()
    };
    let graph = GraphProto {
        input: vec![value("x", &[1, 3, 16, 16])],
        output: vec![value("y", &[])],
        initializer: vec![constant("w", filters, weights), constant("s", &[], 0.5f32.to_le_bytes().into())],
        node: nodes.iter().map(node).collect(),
        ..Default::default()
    };
    let proto = ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(13) }],
        graph: Some(graph),
        ..Default::default()
    };
    proto.write_buf().unwrap()
}

/// An activation between 8-bit integers.
pub fn quantized() -> Vec<u8> {
    let nodes: [Node<'_>; 5] = [
        ("QuantizeLinear", &["x", "s"], "q"),
        ("DequantizeLinear", &["q", "s"], "d"),
        ("Sigmoid", &["d"], "h"),
        ("QuantizeLinear", &["h", "s"], "p"),
        ("DequantizeLinear", &["p", "s"], "y"),
    ];
    model(&[4, 3, 3, 3], &nodes)
}

fn constant(name: &str, dims: &[i64], floats: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(DataType::FLOAT),
        raw_data: Some(RefCell::new(floats)),
        ..Default::default()
    }
}

/// A convolution, an activation and a pool.
pub fn good() -> Vec<u8> {
    let nodes: [Node<'_>; 3] =
        [("Conv", &["x", "w"], "a"), ("Relu", &["a"], "b"), ("GlobalAveragePool", &["b"], "y")];
    model(&[4, 3, 3, 3], &nodes)
}

/// A tensor of floats of these dimensions.
pub fn value(name: &str, dims: &[i64]) -> ValueInfoProto {
    let dim = dims.iter().map(|&dim| Dimension { dim_value: Some(dim), dim_param: None }).collect();
    let shape = Some(TensorShapeProto { dim });
    let tensor_type = Some(TypeProtoTensor { elem_type: Some(DataType::FLOAT), shape });
    ValueInfoProto { name: Some(name.into()), r#type: Some(TypeProto { tensor_type, ..Default::default() }) }
}
