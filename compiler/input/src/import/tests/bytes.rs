//! The walk that proves a file's bytes well-formed, message by message.

use std::io::Cursor;

use crate::import::messages::Model;
use crate::import::wire;

pub(super) fn varint(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field of bytes.
pub(super) fn field(number: usize, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len()), content.to_vec()].concat()
}

/// Content within messages, whose field numbers lead from the model inwards.
fn within(path: &[usize], content: &[u8]) -> Vec<u8> {
    path.iter().rev().fold(content.to_vec(), |inner, number| field(*number, &inner))
}

/// The model, or what is wrong, in words.
fn decode(source: Cursor<impl AsRef<[u8]>>) -> Result<Model, String> {
    wire::decode(source).map_err(|error| error.to_string())
}

fn reason(bytes: &[u8]) -> String {
    decode(Cursor::new(bytes)).map(|_| ()).unwrap_err()
}

/// By the field numbers of onnx.proto.
const MESSAGES: [&[usize]; 26] = [
    &[7],
    &[8],
    &[14],
    &[7, 1],
    &[7, 1, 5],
    &[7, 1, 5, 5],
    &[7, 1, 5, 6],
    &[7, 5],
    &[7, 5, 13],
    &[7, 11],
    &[7, 12],
    &[7, 13],
    &[7, 11, 2],
    &[7, 11, 2, 1],
    &[7, 11, 2, 1, 2],
    &[7, 11, 2, 1, 2, 1],
    &[7, 11, 2, 4],
    &[7, 11, 2, 4, 1],
    &[7, 11, 2, 4, 1, 1],
    &[7, 15],
    &[7, 15, 1],
    &[7, 15, 2],
    &[25],
    &[25, 7],
    &[25, 9],
    &[25, 11],
];

#[test]
fn fields_lie_within_their_messages() {
    for path in MESSAGES {
        // Field 30, of which no message is known, claims five bytes and has one.
        assert_eq!(reason(&within(path, &[0xf2, 1, 5, 0])), "a field reaches beyond the end", "{path:?}");
        assert!(decode(Cursor::new(within(path, &[0xf2, 1, 1, 0]))).is_ok(), "{path:?}");
        // A fixed field of eight bytes, and of four.
        assert_eq!(reason(&within(path, &[0xf1, 1, 0, 0])), "a field reaches beyond the end", "{path:?}");
        assert_eq!(reason(&within(path, &[0xf5, 1, 0, 0])), "a field reaches beyond the end", "{path:?}");
    }
    assert_eq!(reason(&[15 << 3 | 3]), "it has a field of unknown wire type 3");
    assert_eq!(reason(&[]), "the file is empty");
}

#[test]
fn packed_arrays_have_whole_elements() {
    let array = |number: usize, content: &[u8]| {
        decode(Cursor::new(within(&[7, 5, number], content))).map(|model| {
            let tensor = model.proto.graph.unwrap().initializer.remove(0);
            let lengths = [
                tensor.float_data.len(),
                tensor.int32_data.len(),
                tensor.int64_data.len(),
                tensor.double_data.len(),
            ];
            lengths.into_iter().sum::<usize>()
        })
    };
    let cut = Err("an array ends within a number".to_string());
    // Floats of 4 bytes, doubles of 8, integers of any number.
    for (number, size) in [(4, 4), (10, 8)] {
        assert_eq!(array(number, &[]), Ok(0));
        assert_eq!(array(number, &vec![0; size]), Ok(1));
        assert_eq!(array(number, &vec![0; 3 * size]), Ok(3));
        assert_eq!(array(number, &vec![0; 3 * size - 1]), cut);
        assert_eq!(array(number, &[0]), cut);
    }
    for number in [5, 7] {
        assert_eq!(array(number, &[]), Ok(0));
        assert_eq!(array(number, &[1]), Ok(1));
        assert_eq!(array(number, &[0x80, 1, 2]), Ok(2));
        assert_eq!(array(number, &[1, 0x80]), cut);
        assert_eq!(array(number, &[0x80]), cut);
    }
}

#[test]
fn numbers_have_at_most_64_bits() {
    let number =
        |bytes: &[u8]| decode(Cursor::new([&[8], bytes].concat())).map(|model| model.proto.ir_version);
    let nine = |last: u8| [[0xff; 9].as_slice(), &[last]].concat();
    assert_eq!(number(&nine(1)), Ok(Some(-1)));
    assert_eq!(number(&nine(0)), Ok(Some(i64::MAX)));
    assert_eq!(number(&nine(2)), Err("a number is too long".into()));
    assert_eq!(number(&[0xff; 11]), Err("a number is too long".into()));
    assert_eq!(number(&[0xff]), Err("a field reaches beyond the end".into()));
}

#[test]
fn messages_nest_32_deep() {
    // Sequences of sequences of an input's type.
    let path = |depth: usize| {
        [7, 11, 2].into_iter().chain([4, 1].into_iter().cycle()).take(depth).collect::<Vec<_>>()
    };
    assert!(decode(Cursor::new(within(&path(32), &[]))).is_ok());
    assert_eq!(reason(&within(&path(33), &[])), "messages nest deeper than 32");
    assert_eq!(reason(&within(&path(34), &[])), "messages nest deeper than 32");
}

/// The model is a message itself. Its first field has the wrong type, so that the decoder makes nothing of the rest.
#[test]
fn a_file_has_at_most_four_million_messages() {
    let of = |messages: usize| [vec![8 << 3, 0], [8 << 3 | 2, 0].repeat(messages - 1)].concat();
    let few = reason(&of(4_000_000));
    assert!(few.contains("field 8"), "{few}");
    assert_eq!(reason(&of(4_000_001)), "more than 4000000 messages");
}
