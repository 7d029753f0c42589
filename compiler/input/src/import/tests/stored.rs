//! Stored tensors: every type and place of elements, and the limits.

use std::path::Path;

use rten_onnx::onnx::{DataLocation, StringStringEntryProto};

use super::*;
use crate::import::constant::{MAX_ELEMENTS, MAX_RANK, MAX_READ, count, read, type_name};

fn tensor(data_type: DataType, dims: &[i64]) -> TensorProto {
    TensorProto { dims: dims.to_vec(), data_type: Some(data_type), ..Default::default() }
}

fn raw(data_type: DataType, dims: &[i64], bytes: &[u8]) -> TensorProto {
    TensorProto { raw_data: Some(RefCell::new(bytes.to_vec())), ..tensor(data_type, dims) }
}

fn check(tensor: &TensorProto, wanted: &str) {
    assert_eq!(shown(&read(tensor, None).unwrap()), wanted, "{:?}", tensor.data_type);
}

fn wrong(tensor: &TensorProto, wanted: &str) {
    assert_eq!(read(tensor, None).unwrap_err().reason, wanted, "{:?}", tensor.data_type);
}

#[test]
fn raw_bytes_of_every_type() {
    check(&raw(DataType::FLOAT, &[2], &[0, 0, 192, 63, 0, 0, 0, 192]), "[2] [1.5, -2.0]");
    let doubles: Vec<u8> = [1.5f64, -2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    check(&raw(DataType::DOUBLE, &[2], &doubles), "[2] [1.5, -2.0]");
    check(&raw(DataType::BOOL, &[3], &[0, 1, 2]), "[3] [false, true, true]");
    check(&raw(DataType::UINT8, &[2], &[1, 255]), "[2] [1, 255]");
    check(&raw(DataType::INT8, &[3], &[1, 255, 128]), "[3] [1, -1, -128]");
    check(&raw(DataType::UINT16, &[2], &[1, 2, 255, 255]), "[2] [513, 65535]");
    check(&raw(DataType::INT16, &[2], &[1, 2, 254, 255]), "[2] [513, -2]");
    check(&raw(DataType::UINT32, &[2], &[1, 0, 0, 1, 255, 255, 255, 255]), "[2] [16777217, 4294967295]");
    check(&raw(DataType::INT32, &[2], &[1, 0, 0, 1, 0, 0, 0, 128]), "[2] [16777217, -2147483648]");
    let longs: Vec<u8> = [i64::MAX, i64::MIN].iter().flat_map(|v| v.to_le_bytes()).collect();
    check(&raw(DataType::INT64, &[2], &longs), &format!("[2] [{}, {}]", i64::MAX, i64::MIN));
    check(&raw(DataType::FLOAT16, &[2], &[0, 0x3e, 0, 0xc0]), "[2] [1.5, -2.0]");
    check(&raw(DataType::BFLOAT16, &[2], &[0xc0, 0x3f, 0, 0xc0]), "[2] [1.5, -2.0]");
    // Two in a byte, the first in its lower half.
    check(&raw(DataType::UINT4, &[3], &[0xf1, 0x08]), "[3] [1, 15, 8]");
    check(&raw(DataType::INT4, &[3], &[0xf1, 0x08]), "[3] [1, -1, -8]");
}

#[test]
fn typed_elements_of_every_type() {
    check(&TensorProto { float_data: vec![1.5], ..tensor(DataType::FLOAT, &[1]) }, "[1] [1.5]");
    check(
        &TensorProto { double_data: vec![1.5, 2.5], ..tensor(DataType::DOUBLE, &[2, 1]) },
        "[2, 1] [1.5, 2.5]",
    );
    check(&TensorProto { int64_data: vec![-7], ..tensor(DataType::INT64, &[]) }, "[] [-7]");
    check(&TensorProto { int32_data: vec![0, 1], ..tensor(DataType::BOOL, &[2]) }, "[2] [false, true]");
    for data_type in [DataType::INT8, DataType::UINT8, DataType::INT16, DataType::UINT16, DataType::INT32] {
        check(&TensorProto { int32_data: vec![5, 100], ..tensor(data_type, &[2]) }, "[2] [5, 100]");
    }
    let halves =
        |data_type, bits: [i32; 2]| TensorProto { int32_data: bits.into(), ..tensor(data_type, &[2]) };
    check(&halves(DataType::FLOAT16, [0x3e00, 0xc000]), "[2] [1.5, -2.0]");
    check(&halves(DataType::BFLOAT16, [0x3fc0, 0xc000]), "[2] [1.5, -2.0]");
    check(&TensorProto { int32_data: vec![0xf1, 8], ..tensor(DataType::INT4, &[3]) }, "[3] [1, -1, -8]");
}

#[test]
fn elements_as_many_as_the_dimensions_say() {
    wrong(&raw(DataType::FLOAT, &[2], &[0; 7]), "7 bytes are stored where its dimensions need 8");
    wrong(&raw(DataType::DOUBLE, &[2], &[0; 8]), "8 bytes are stored where its dimensions need 16");
    wrong(&raw(DataType::INT16, &[2], &[0; 5]), "5 bytes are stored where its dimensions need 4");
    let two = vec![1.0, 2.0];
    let floats = TensorProto { float_data: two.clone(), ..tensor(DataType::FLOAT, &[3]) };
    wrong(&floats, "2 elements are stored where its dimensions need 3");
    let integers = TensorProto { int64_data: vec![1, 2], ..tensor(DataType::INT64, &[1]) };
    wrong(&integers, "2 elements are stored where its dimensions need 1");
    wrong(&tensor(DataType::INT32, &[1]), "0 elements are stored where its dimensions need 1");
    wrong(&tensor(DataType::FLOAT, &[2, -1]), "a tensor of [2, -1] has a negative dimension");
    wrong(&raw(DataType::FLOAT16, &[2], &[0; 5]), "5 bytes are stored where its dimensions need 4");
    wrong(&raw(DataType::INT4, &[3], &[0; 3]), "3 bytes are stored where its dimensions need 2");
    for data_type in [DataType::UINT64, DataType::STRING, DataType(77)] {
        let fault = read(&raw(data_type, &[1], &[0, 0]), None).unwrap_err();
        assert_eq!(fault.reason, format!("its elements are {}", type_name(data_type)));
        assert_eq!(fault.help.as_deref(), Some("convert the model to float32 precision and import that"));
    }
    assert_eq!(type_name(DataType::FLOAT16), "float16");
    assert_eq!(type_name(DataType(23)), "float4e2m1");
    assert_eq!(type_name(DataType(77)), "type 77");
}

#[test]
fn elements_in_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let doubles = [0.5f64, 1.5, -2.0].iter().flat_map(|v| v.to_le_bytes());
    let longs = [3i64, -4, i64::MAX].iter().flat_map(|v| v.to_le_bytes());
    std::fs::write(folder.path().join("w.bin"), doubles.chain(longs).collect::<Vec<u8>>()).unwrap();
    let external = |data_type, dims: &[i64], entries: &[(&str, &str)], folder: Option<&Path>| {
        let entry = |&(key, value): &(&str, &str)| StringStringEntryProto {
            key: Some(key.into()),
            value: Some(value.into()),
        };
        let tensor = TensorProto {
            data_location: Some(DataLocation::EXTERNAL),
            external_data: entries.iter().map(entry).collect(),
            ..tensor(data_type, dims)
        };
        read(&tensor, folder).map(|constant| shown(&constant)).map_err(|fault| fault.reason)
    };
    let of = |data_type, dims: &[i64], offset: &str, length: &str| {
        let entries = [("location", "w.bin"), ("offset", offset), ("length", length)];
        external(data_type, dims, &entries, Some(folder.path()))
    };
    assert_eq!(of(DataType::DOUBLE, &[3], "0", "24").as_deref(), Ok("[3] [0.5, 1.5, -2.0]"));
    assert_eq!(of(DataType::DOUBLE, &[1], "8", "8").as_deref(), Ok("[1] [1.5]"));
    assert_eq!(of(DataType::FLOAT, &[3], "0", "12").as_deref(), Ok("[3] [0.0, 1.75, 0.0]"));
    let longs = "[3] [3, -4, 9223372036854775807]";
    assert_eq!(of(DataType::INT64, &[3], "24", "24").as_deref(), Ok(longs));
    assert_eq!(of(DataType::INT8, &[2], "31", "2").as_deref(), Ok("[2] [0, -4]"));
    assert_eq!(of(DataType::BOOL, &[2], "23", "2").as_deref(), Ok("[2] [true, true]"));

    let wrong = |found: Result<String, String>, words: &str| assert_eq!(found.unwrap_err(), words);
    wrong(of(DataType::DOUBLE, &[3], "0", "23"), "23 bytes of external data where its dimensions need 24");
    wrong(of(DataType::INT64, &[2], "0", "24"), "24 bytes of external data where its dimensions need 16");
    wrong(of(DataType::INT64, &[2], "0", "-1"), "the length of its external data is no number");
    let beyond = "its 24 bytes at 25 reach beyond the end of w.bin (48 bytes)";
    wrong(of(DataType::INT64, &[3], "25", "24"), beyond);
    assert_eq!(of(DataType::FLOAT16, &[2], "6", "4").as_deref(), Ok("[2] [1.96875, 0.0]"));
    assert_eq!(of(DataType::BFLOAT16, &[2], "6", "4").as_deref(), Ok("[2] [1.75, 0.0]"));
    assert_eq!(of(DataType::UINT4, &[3], "6", "2").as_deref(), Ok("[3] [0, 14, 15]"));
    wrong(of(DataType::UINT64, &[3], "0", "24"), "its elements are uint64");
    let from_memory = external(DataType::INT64, &[3], &[("location", "w.bin")], None);
    wrong(from_memory, "its data are in another file, but the model was not read from a file");
    let unnamed = external(DataType::INT64, &[3], &[], Some(folder.path()));
    wrong(unnamed, "its data are in another file that is not named");
}

#[test]
fn limits_of_tensors() {
    assert_eq!(count(&[1; MAX_RANK]).unwrap(), 1);
    let reason = |dims: &[usize]| count(dims).unwrap_err().reason;
    assert_eq!(reason(&[1; MAX_RANK + 1]), "a tensor of rank 9; at most 8 is supported");
    assert_eq!(count(&[2, MAX_ELEMENTS / 2]).unwrap(), MAX_ELEMENTS);
    assert!(reason(&[MAX_ELEMENTS + 1]).ends_with("has more than 2147483648 elements"));
    assert_eq!(count(&[5, 0]).unwrap(), 0);
    assert!(count(&[0, MAX_ELEMENTS + 1]).is_err());

    // The most elements that are computed with. The limit is checked before the elements are read, so the test leaves
    // them out.
    let claimed = |elements: usize| Constant::ints([elements], Vec::new()).to_floats();
    assert!(claimed(MAX_READ).is_ok());
    let error = claimed(MAX_READ + 1).unwrap_err().reason;
    assert_eq!(error, "a constant of 134217729 elements is too large to compute with");

    let mut builder = Builder::new(Vec::new());
    builder.charge(MAX_READ - 1).unwrap();
    builder.charge(1).unwrap();
    let error = builder.charge(1).unwrap_err().reason;
    assert_eq!(error, "the model's constants need more than 134217728 elements to be computed at import");
}

#[test]
fn truth_values_are_no_parameters() {
    let model = Model::new(13, &[1, 2], &["y"]).tensor(TensorProto {
        name: Some("c".into()),
        int32_data: vec![0, 1],
        ..tensor(DataType::BOOL, &[2])
    });
    refused(
        &model.node("Add", &["x", "c"], &["y"], vec![]),
        "a constant holds truth values where numbers are needed",
    );
}

/// A model of 16-bit floats is computed with floats of 32 bits, which the caller holds.
#[test]
fn models_of_halves_are_imported() {
    for (element, one) in [(DataType::FLOAT16, [0, 0x3c]), (DataType::BFLOAT16, [0x80, 0x3f])] {
        let weights = TensorProto { name: Some("w".into()), ..raw(element, &[1], &one) };
        let network = Model::of(13, element, &[1, 3], &["y"])
            .tensor(weights)
            .node("Mul", &["x", "w"], &["m"], vec![])
            .node("Cast", &["m"], &["f"], vec![int("to", 1)])
            .node("Cast", &["f"], &["h"], vec![int("to", i64::from(element.0))])
            .node("Relu", &["h"], &["y"], vec![])
            .import()
            .unwrap();
        let kinds: Vec<&str> = network.layers.iter().map(|layer| layer.operator.kind()).collect();
        assert_eq!(kinds, ["input", "binary", "element_wise"]);
        assert_eq!(network.layers[1].parameters[0].values().unwrap(), [1.0]);
    }
}

/// Integers of 4 bits with a scale and a zero point for each, or for each block of two.
#[test]
fn integers_of_4_bits_are_dequantized() {
    let of = |scales: (&[i64], &[f32]), zeros: Option<(&[i64], &[u8])>, attributes: Vec<AttributeProto>| {
        let bytes: Vec<u8> = scales.1.iter().flat_map(|scale| scale.to_le_bytes()).collect();
        let mut model = Model::new(21, &[1, 4], &["y"])
            .tensor(TensorProto {
                name: Some("w".into()),
                ..raw(DataType::INT4, &[2, 4], &[0x21, 0x87, 0xf0, 0x43])
            })
            .tensor(TensorProto { name: Some("s".into()), ..raw(DataType::FLOAT, scales.0, &bytes) });
        let mut inputs = vec!["w", "s"];
        if let Some((dims, zeros)) = zeros {
            model = model.tensor(TensorProto { name: Some("z".into()), ..raw(DataType::INT4, dims, zeros) });
            inputs.push("z");
        }
        let network = model
            .node("DequantizeLinear", &inputs, &["d"], attributes)
            .node("Gemm", &["x", "d"], &["y"], vec![int("transB", 1)])
            .import()
            .unwrap();
        network.layers[1].parameters[0].values().unwrap()
    };
    let one = of((&[], &[0.5]), None, vec![]);
    assert_eq!(one, [0.5, 1.0, 3.5, -4.0, 0.0, -0.5, 1.5, 2.0]);
    let rows = of((&[2], &[0.5, 2.0]), Some((&[2], &[0xf1])), vec![int("axis", 0)]);
    assert_eq!(rows, [0.0, 0.5, 3.0, -4.5, 2.0, 0.0, 8.0, 10.0]);
    let blocks = vec![int("axis", 1), int("block_size", 2)];
    let blocks = of((&[2, 2], &[0.5, 1.0, 2.0, 4.0]), Some((&[2, 2], &[0x10, 0x00])), blocks);
    assert_eq!(blocks, [0.5, 1.0, 6.0, -9.0, 0.0, -2.0, 12.0, 16.0]);
}

/// Weights that are cast from one kind of floats to another are not read.
#[test]
fn weights_through_a_cast_stay_where_they_are() {
    let network = Model::new(13, &[1, 3], &["y"])
        .floats("w", &[3])
        .node("Cast", &["w"], &["c"], vec![int("to", 1)])
        .node("Add", &["x", "c"], &["y"], vec![])
        .import()
        .unwrap();
    let source = &network.layers[1].parameters[0].source;
    assert!(matches!(source, csdfc_network::weights::WeightSource::Bytes { .. }));
}
