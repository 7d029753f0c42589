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
    for data_type in [DataType::FLOAT16, DataType::BFLOAT16, DataType::UINT64, DataType::STRING, DataType(77)]
    {
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
    wrong(of(DataType::FLOAT16, &[3], "0", "6"), "its elements are float16");
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
