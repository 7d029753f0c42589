//! Messages of ONNX that rten-onnx does not read: functions that a model defines, and sparse tensors.

use rten_onnx::onnx::{
    AttributeProto, AttributeType, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
};
use rten_onnx::protobuf::{DecodeMessage, Fields, OwnedValues, ProtobufError, ReadValue};

use super::error::OnnxError;

/// A decoded model.
#[derive(Default)]
pub(super) struct Model {
    pub proto: ModelProto,
    pub functions: Vec<Function>,
    /// The sparse initializers of its graph.
    pub sparse: Vec<SparseTensor>,
}

/// A function that the model defines.
#[derive(Default)]
pub(super) struct Function {
    pub domain: String,
    pub name: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub nodes: Vec<NodeProto>,
    pub opsets: Vec<OperatorSetIdProto>,
    /// The attributes that a call may leave out.
    pub defaults: Vec<AttributeProto>,
}

/// A tensor of which only some elements are stored. The others are 0.
#[derive(Default)]
pub(super) struct SparseTensor {
    pub dims: Vec<i64>,
    /// The elements, in one dimension. They have the tensor's name.
    pub values: TensorProto,
    /// Where they are: the index of each, or its index along each dimension.
    pub indices: TensorProto,
}

/// The type of an attribute that refers to one of the function's call. No file has it.
const REFERENCE: AttributeType = AttributeType(-1);

/// The attribute of a function's call to which an attribute refers.
pub(super) fn referred(attribute: &AttributeProto) -> Option<&str> {
    let name = attribute.strings.first()?;
    (attribute.r#type == Some(REFERENCE)).then_some(name)
}

/// Makes attributes references. `names` has an entry for each attribute of these nodes and of the nodes in bodies, in the
/// order of the file.
///
/// # Errors
/// When there are fewer names than attributes.
pub(super) fn refer(
    nodes: &mut [NodeProto],
    names: &mut impl Iterator<Item = Option<String>>,
) -> Result<(), OnnxError> {
    for attribute in nodes.iter_mut().flat_map(|node| &mut node.attribute) {
        match names.next() {
            Some(None) => {}
            Some(Some(name)) => (attribute.strings, attribute.r#type) = (vec![name], Some(REFERENCE)),
            None => return Err(OnnxError::Twice("an attribute")),
        }
        if let Some(body) = &mut attribute.g {
            refer(&mut body.node, names)?;
        }
    }
    Ok(())
}

impl DecodeMessage for Function {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = OwnedValues>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut function = Function::default();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                1 => function.name = field.read_string()?,
                4 => function.inputs.push(field.read_string()?),
                5 => function.outputs.push(field.read_string()?),
                7 => function.nodes.push(NodeProto::decode_field(&mut field)?),
                9 => function.opsets.push(OperatorSetIdProto::decode_field(&mut field)?),
                10 => function.domain = field.read_string()?,
                11 => function.defaults.push(AttributeProto::decode_field(&mut field)?),
                _ => field.skip()?,
            }
        }
        Ok(function)
    }
}

impl DecodeMessage for SparseTensor {
    type Types = OwnedValues;

    fn decode_fields<R: ReadValue<Types = OwnedValues>>(
        mut fields: Fields<R>,
    ) -> Result<Self, ProtobufError> {
        let mut tensor = SparseTensor::default();
        while let Some(mut field) = fields.next()? {
            match field.number() {
                1 => tensor.values = TensorProto::decode_field(&mut field)?,
                2 => tensor.indices = TensorProto::decode_field(&mut field)?,
                3 => tensor.dims.push(field.get_int64()?),
                _ => field.skip()?,
            }
        }
        Ok(tensor)
    }
}
