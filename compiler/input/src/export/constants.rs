//! Constants as the tensors of an ONNX file: their bytes are little-endian, in the order of their dimensions.

use std::cell::RefCell;

use rten_onnx::onnx::{DataType, TensorProto};

use csdfc_network::weights::{Integers, WeightSource, Weights};

/// A tensor of floats.
pub(super) fn of_floats(name: &str, dims: &[usize], values: &[f32]) -> TensorProto {
    tensor(name, dims, DataType::FLOAT, values.iter().flat_map(|value| value.to_le_bytes()).collect())
}

/// A list of 64-bit integers.
pub(super) fn of_ints(name: &str, values: &[impl Copy + TryInto<i64>]) -> TensorProto {
    // Dimensions and axes are below 2³⁶.
    let bytes = values.iter().filter_map(|value| (*value).try_into().ok()).flat_map(i64::to_le_bytes);
    tensor(name, &[values.len()], DataType::INT64, bytes.collect())
}

/// One 8-bit integer.
pub(super) fn of_byte(name: &str, value: u8) -> TensorProto {
    tensor(name, &[], DataType::UINT8, vec![value])
}

/// One signed 8-bit integer.
pub(super) fn of_signed_byte(name: &str, value: i8) -> TensorProto {
    tensor(name, &[], DataType::INT8, vec![value.cast_unsigned()])
}

/// Integers that stand for numbers: the operands of a DequantizeLinear, and its axis.
pub(super) struct Dequantized {
    pub tensors: Vec<TensorProto>,
    pub axis: Option<usize>,
}

/// Bytes that weights take in the file, at most.
pub(super) fn bytes(weights: &Weights) -> usize {
    let is_short = integers("", weights).is_some_and(|it| it.tensors.len() == 3);
    weights.elements() * if is_short { 1 } else { 4 }
}

/// Weights that are integers, if ONNX has a type for them: 8 bits with zero points, or 32 without.
pub(super) fn integers(name: &str, weights: &Weights) -> Option<Dequantized> {
    let WeightSource::Integers(integers) = &weights.source else { return None };
    let Integers { values, inner, scales, zero_points } = &**integers;
    if weights.scale.is_some() {
        return None;
    }
    // One scale for all, or one for each index of a dimension.
    let (axis, dealt) = match scales.len() {
        1 => (None, vec![]),
        count => {
            let mut axes = 0..weights.dims.len();
            let is_axis =
                |i: &usize| (weights.dims[*i], weights.dims[i + 1..].iter().product()) == (count, *inner);
            (Some(axes.find(is_axis)?), vec![count])
        }
    };
    let element = element(values.iter().chain(zero_points), zero_points)?;
    let bytes = |values: &[i32]| match element {
        DataType::INT32 => values.iter().flat_map(|q| q.to_le_bytes()).collect(),
        // In two's complement, the lowest byte is that of the shorter integer.
        _ => values.iter().map(|q| q.to_le_bytes()[0]).collect(),
    };
    let mut tensors = vec![
        tensor(&format!("{name}_quantized"), &weights.dims, element, bytes(values)),
        of_floats(&format!("{name}_scale"), &dealt, scales),
    ];
    if element != DataType::INT32 {
        tensors.push(tensor(&format!("{name}_zero_point"), &dealt, element, bytes(zero_points)));
    }
    Some(Dequantized { tensors, axis })
}

/// The type that holds all these integers.
fn element<'a>(all: impl Iterator<Item = &'a i32>, zero_points: &[i32]) -> Option<DataType> {
    let (low, high) = all.fold((0, 0), |(low, high), &q| (q.min(low), q.max(high)));
    match (low, high) {
        (-128.., ..=127) => Some(DataType::INT8),
        (0, ..=255) => Some(DataType::UINT8),
        _ => zero_points.iter().all(|zero_point| *zero_point == 0).then_some(DataType::INT32),
    }
}

fn tensor(name: &str, dims: &[usize], element: DataType, bytes: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.iter().map(|dim| *dim as i64).collect(),
        data_type: Some(element),
        raw_data: Some(RefCell::new(bytes)),
        ..TensorProto::default()
    }
}
