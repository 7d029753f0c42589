//! Attributes of ONNX nodes, for the modules that make such nodes: the TFLite importer and `export`.

use rten_onnx::onnx::{AttributeProto, AttributeType};

pub(crate) fn int(name: &str, value: impl TryInto<i64>) -> AttributeProto {
    AttributeProto { i: value.try_into().ok(), ..attribute(name, AttributeType::INT) }
}

pub(crate) fn flag(name: &str, value: bool) -> AttributeProto {
    int(name, i64::from(value))
}

pub(crate) fn ints<V: TryInto<i64>>(name: &str, values: impl IntoIterator<Item = V>) -> AttributeProto {
    // Attributes are below 2³², as shape inference has seen, or 64-bit integers already.
    let ints = values.into_iter().filter_map(|value| value.try_into().ok()).collect();
    AttributeProto { ints, ..attribute(name, AttributeType::INTS) }
}

pub(crate) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, AttributeType::FLOAT) }
}

pub(crate) fn text(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.into()), ..attribute(name, AttributeType::STRING) }
}

fn attribute(name: &str, of: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(of), ..AttributeProto::default() }
}
