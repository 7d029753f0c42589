//! Reads the bytes of an ONNX model, after a walk that proves them well-formed.
//!
//! The protobuf decoder trusts lengths: it allocates as many bytes as a field claims, adds lengths without a check
//! for overflow, seeks backwards over a field that claims a negative length, and descends as deep as messages nest.
//! The walk here visits exactly the messages that the decoder descends into and holds each field to its message,
//! each packed array to whole elements, the depth to [`MAX_DEPTH`] and the number of messages to [`MAX_MESSAGES`].

use rten_onnx::onnx::ModelProto;

/// Deepest nesting of messages: an attribute's tensor is at depth 5, and subgraphs are not supported.
const MAX_DEPTH: usize = 32;

/// Most messages in a file: each takes a few hundred bytes once decoded, however few it has in the file.
const MAX_MESSAGES: usize = 4_000_000;

/// Decodes a model.
///
/// # Errors
/// What is wrong with the bytes, in words.
pub(super) fn decode(bytes: &[u8]) -> Result<ModelProto, String> {
    if bytes.is_empty() {
        return Err("the file is empty".into());
    }
    let mut messages = 0;
    walk(bytes, Message::Model, 0, &mut messages)?;
    ModelProto::parse_buf(bytes).map_err(|error| error.to_string())
}

/// The messages that the decoder knows.
#[derive(Clone, Copy)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    ValueInfo,
    Type,
    TensorType,
    SequenceType,
    TensorShape,
    /// Messages of numbers and strings only.
    Flat,
}

/// What the decoder makes of the bytes of a field.
enum Content {
    Message(Message),
    PackedVarints,
    PackedFixed(usize),
    /// A string, bytes, or a field that it skips.
    Opaque,
}

impl Message {
    /// By the field numbers of onnx.proto.
    fn content(self, field: u64) -> Content {
        use Content::{PackedFixed, PackedVarints};
        let message = match (self, field) {
            (Message::Model, 7) | (Message::Attribute, 6) => Message::Graph,
            (Message::Model, 8 | 14) | (Message::Tensor, 13) | (Message::TensorShape, 1) => Message::Flat,
            (Message::Graph, 1) => Message::Node,
            (Message::Graph, 5) | (Message::Attribute, 5) => Message::Tensor,
            (Message::Graph, 11..=13) => Message::ValueInfo,
            (Message::Node, 5) => Message::Attribute,
            (Message::ValueInfo, 2) | (Message::SequenceType, 1) => Message::Type,
            (Message::Type, 1) => Message::TensorType,
            (Message::Type, 4) => Message::SequenceType,
            (Message::TensorType, 2) => Message::TensorShape,
            (Message::Tensor, 4) => return PackedFixed(4),
            (Message::Tensor, 10) => return PackedFixed(8),
            (Message::Tensor, 5 | 7) => return PackedVarints,
            _ => return Content::Opaque,
        };
        Content::Message(message)
    }
}

fn walk(mut bytes: &[u8], message: Message, depth: usize, messages: &mut usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("messages nest deeper than {MAX_DEPTH}"));
    }
    *messages += 1;
    if *messages > MAX_MESSAGES {
        return Err(format!("more than {MAX_MESSAGES} messages"));
    }
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let length = match tag & 7 {
            0 => {
                varint(&mut bytes)?;
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)?).map_err(|_| BEYOND)?,
            5 => 4,
            wire => return Err(format!("a field of wire type {wire}")),
        };
        let field = bytes.get(..length).ok_or(BEYOND)?;
        bytes = &bytes[length..];
        if tag & 7 == 2 {
            match message.content(tag >> 3) {
                Content::Message(inner) => walk(field, inner, depth + 1, messages)?,
                Content::PackedVarints if field.last().is_some_and(|byte| byte & 0x80 != 0) => {
                    return Err("an array ends within a number".into());
                }
                Content::PackedFixed(size) if field.len() % size != 0 => {
                    return Err("an array ends within a number".into());
                }
                _ => {}
            }
        }
    }
    Ok(())
}

const BEYOND: &str = "a field reaches beyond the end";

fn varint(bytes: &mut &[u8]) -> Result<u64, &'static str> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            *bytes = &bytes[i + 1..];
            return if i == 9 && byte > 1 { Err("a number is too long") } else { Ok(value) };
        }
    }
    Err(if bytes.len() < 10 { BEYOND } else { "a number is too long" })
}
