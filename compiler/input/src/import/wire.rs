//! Reads the bytes of an ONNX model, after a walk that proves them well-formed.
//!
//! The protobuf decoder trusts lengths: it allocates as many bytes as a field claims, adds lengths without a check for
//! overflow, seeks backwards over a field that claims a negative length, and descends as deep as messages nest. The
//! walk here visits exactly the messages into which the decoder descends. It checks that each field lies within its
//! message, that each packed array has whole elements, that the depth is at most [`MAX_DEPTH`], and that there are at
//! most [`MAX_MESSAGES`] messages.

use std::io::{BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

use rten_onnx::onnx::ModelProto;
use rten_onnx::protobuf::{DecodeMessage, OwnedValues, ReadPos, ValueReader};

use super::error::OnnxError;
use super::messages::{Function, Model, SparseTensor, refer};

/// Deepest nesting of messages. An attribute's tensor is at depth 5, and each graph within a graph adds 3.
const MAX_DEPTH: usize = 32;

/// Maximum number of messages in a file. A decoded message takes a few hundred bytes, however few it takes in the file.
const MAX_MESSAGES: usize = 4_000_000;

/// Decodes a model from the start of a source. The bytes of its weights are read once, and are never in memory twice.
///
/// # Errors
/// What is wrong with the bytes.
pub(super) fn decode(mut source: impl BufRead + Seek) -> Result<Model, OnnxError> {
    let end = source.seek(SeekFrom::End(0))?;
    if end == 0 {
        return Err(OnnxError::Empty);
    }
    source.rewind()?;
    let mut walk = Walk {
        source,
        at: 0,
        messages: 0,
        functions: Vec::new(),
        sparse: Vec::new(),
        in_function: false,
        references: Vec::new(),
    };
    walk.message(end, Message::Model, 0)?;
    let Walk { mut source, functions, sparse, references, .. } = walk;
    let mut functions: Vec<Function> = decoded(&mut source, &functions)?;
    let mut references = references.into_iter();
    for function in &mut functions {
        refer(&mut function.nodes, &mut references)?;
    }
    if references.next().is_some() {
        return Err(OnnxError::Twice("a body"));
    }
    let sparse: Vec<SparseTensor> = decoded(&mut source, &sparse)?;
    source.rewind()?;
    let proto = ModelProto::decode(ValueReader::new(ReadPos::new(source)))?;
    Ok(Model { proto, functions, sparse })
}

/// The messages at these places.
fn decoded<M: DecodeMessage<Types = OwnedValues>>(
    source: &mut (impl Read + Seek),
    places: &[Range<u64>],
) -> Result<Vec<M>, OnnxError> {
    let message = |place: &Range<u64>| {
        let mut bytes = Vec::new();
        source.seek(SeekFrom::Start(place.start))?;
        let mut part = source.by_ref().take(place.end - place.start);
        part.read_to_end(&mut bytes)?;
        Ok(M::decode(ValueReader::from_buf(bytes))?)
    };
    places.iter().map(message).collect()
}

/// The messages that the decoder knows.
#[derive(Clone, Copy)]
enum Message {
    Model,
    Graph,
    Function,
    SparseTensor,
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

/// How the decoder treats the bytes of a field.
enum Content {
    Message(Message),
    PackedVarints,
    PackedFixed(u64),
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
            (Message::Model, 25) => Message::Function,
            (Message::Function, 9) => Message::Flat,
            (Message::Function, 11) => Message::Attribute,
            (Message::Graph, 1) | (Message::Function, 7) => Message::Node,
            (Message::Graph, 15) => Message::SparseTensor,
            (Message::Graph, 5) | (Message::Attribute, 5) | (Message::SparseTensor, 1 | 2) => Message::Tensor,
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

/// A walk through the bytes of a model.
struct Walk<R> {
    source: R,
    /// Bytes read or passed over.
    at: u64,
    messages: usize,
    /// The functions, and the sparse initializers of the model's graph.
    functions: Vec<Range<u64>>,
    sparse: Vec<Range<u64>>,
    /// Whether this is within a node of a function.
    in_function: bool,
    /// For each attribute there, the attribute of the function's call to which it refers, if it does.
    references: Vec<Option<String>>,
}

/// The field of an attribute that names another.
const REFERENCE: u64 = 21;

impl<R: BufRead + Seek> Walk<R> {
    fn message(&mut self, end: u64, message: Message, depth: usize) -> Result<(), OnnxError> {
        if depth > MAX_DEPTH {
            return Err(OnnxError::Depth(MAX_DEPTH));
        }
        self.messages += 1;
        if self.messages > MAX_MESSAGES {
            return Err(OnnxError::TooManyMessages(MAX_MESSAGES));
        }
        let reference = self.references.len();
        let refers = self.in_function && matches!(message, Message::Attribute);
        if refers {
            self.references.push(None);
        }
        while self.at < end {
            let tag = self.varint(end)?;
            let length = match tag & 7 {
                0 => {
                    self.varint(end)?;
                    continue;
                }
                1 => 8,
                2 => self.varint(end)?,
                5 => 4,
                wire => return Err(OnnxError::WireType(wire)),
            };
            let next = self.at.checked_add(length).filter(|next| *next <= end).ok_or(OnnxError::BeyondEnd)?;
            if tag & 7 == 2 {
                match message.content(tag >> 3) {
                    Content::Message(inner) => {
                        match (message, inner) {
                            (_, Message::Function) => self.functions.push(self.at..next),
                            (_, Message::SparseTensor) if depth == 1 => self.sparse.push(self.at..next),
                            (Message::Function, _) => self.in_function = matches!(inner, Message::Node),
                            (Message::Model, _) => self.in_function = false,
                            _ => {}
                        }
                        self.message(next, inner, depth + 1)?;
                    }
                    Content::Opaque if refers && tag >> 3 == REFERENCE => {
                        self.references[reference] = Some(self.text(length)?);
                    }
                    Content::PackedVarints if length > 0 => {
                        self.pass(next - 1)?;
                        if self.byte()? & 0x80 != 0 {
                            return Err(OnnxError::CutNumber);
                        }
                    }
                    Content::PackedFixed(size) if length % size != 0 => {
                        return Err(OnnxError::CutNumber);
                    }
                    _ => {}
                }
            }
            self.pass(next)?;
        }
        Ok(())
    }

    /// Goes on to a later byte.
    fn pass(&mut self, next: u64) -> Result<(), OnnxError> {
        // No file is longer than a signed offset.
        let distance = i64::try_from(next - self.at).map_err(|_| OnnxError::BeyondEnd)?;
        if distance > 0 {
            self.source.seek_relative(distance)?;
            self.at = next;
        }
        Ok(())
    }

    fn text(&mut self, length: u64) -> Result<String, OnnxError> {
        let mut bytes = Vec::new();
        self.source.by_ref().take(length).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        String::from_utf8(bytes).map_err(|_| OnnxError::NoText)
    }

    fn byte(&mut self) -> Result<u8, OnnxError> {
        let mut byte = [0];
        self.source.read_exact(&mut byte)?;
        self.at += 1;
        Ok(byte[0])
    }

    fn varint(&mut self, end: u64) -> Result<u64, OnnxError> {
        let mut value = 0u64;
        for i in 0..10 {
            if self.at == end {
                return Err(OnnxError::BeyondEnd);
            }
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte & 0x80 == 0 {
                return if i == 9 && byte > 1 { Err(OnnxError::LongNumber) } else { Ok(value) };
            }
        }
        Err(OnnxError::LongNumber)
    }
}
