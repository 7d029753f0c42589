//! The bytes of a model. The encoder's own graph has no name, but ONNX asks for one.

use rten_onnx::onnx::{GraphProto, OperatorSetIdProto};
use rten_onnx::protobuf::{EncodeMessage, MessageWriter, ProtobufError, ValueWriter, WriteValue};

use super::{ExportError, MAX_BYTES, OPSET};

/// Version of the file format that has operator set [`OPSET`].
const IR_VERSION: i64 = 9;

/// A model of one graph. Its fields have the numbers of onnx.proto.
struct Model {
    graph: NamedGraph,
    opset: OperatorSetIdProto,
}

struct NamedGraph(GraphProto);

impl EncodeMessage for Model {
    fn encode_fields<W: WriteValue>(&self, fields: &mut MessageWriter<W>) -> Result<(), ProtobufError> {
        fields.write_int64(1, IR_VERSION)?;
        fields.write_string(2, "csdfc")?;
        fields.write_string(3, env!("CARGO_PKG_VERSION"))?;
        fields.write_message(7, &self.graph)?;
        fields.write_message(8, &self.opset)
    }
}

impl EncodeMessage for NamedGraph {
    fn encode_fields<W: WriteValue>(&self, fields: &mut MessageWriter<W>) -> Result<(), ProtobufError> {
        fields.write_string(2, "network")?;
        self.0.encode_fields(fields)
    }
}

/// The bytes of a model of this graph.
pub(super) fn bytes(graph: GraphProto) -> Result<Vec<u8>, ExportError> {
    let opset = OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) };
    let model = Model { graph: NamedGraph(graph), opset };
    let failed = |error: ProtobufError| ExportError::Encoding(error.to_string());
    let length = model.encoded_len().map_err(failed)?;
    if length > MAX_BYTES {
        return Err(ExportError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(length as usize);
    model.encode(ValueWriter::new(&mut bytes)).map_err(failed)?;
    Ok(bytes)
}
