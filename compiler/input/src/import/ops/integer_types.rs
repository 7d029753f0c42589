//! Types of integers: which one a zero point states, and the range of each.

use rten_onnx::onnx::DataType;

use crate::import::constant::{Constant, type_name};
use crate::import::error::{Fault, fault};
use crate::import::node::Node;

/// The type of integers with this zero point.
pub(super) fn element(node: &Node, zero_point: Option<&Constant>) -> Result<DataType, Fault> {
    match zero_point.and_then(|stated| stated.stored) {
        Some(element) => Ok(element),
        None => Ok(match node.int("output_dtype", 0)? {
            0 => DataType::UINT8,
            stated => DataType(i32::try_from(stated).unwrap_or(0)),
        }),
    }
}

/// Checks that zero points of at most 16 bits are in the range of their type, since a file may store them in more bits.
pub(super) fn expect_in_range(stated: &Constant) -> Result<(), Fault> {
    let Some((element, [low, high])) = stated.stored.and_then(|element| Some((element, ends(element)?)))
    else {
        return Ok(());
    };
    match stated.to_ints()?.iter().find(|value| !(low..=high).contains(*value)) {
        Some(value) => fault!("a zero point is {value}, out of the range of {}", type_name(element)),
        None => Ok(()),
    }
}

/// The least and the greatest integer of a type of at most 16 bits.
pub(super) fn ends(element: DataType) -> Option<[i64; 2]> {
    match element {
        DataType::UINT4 => Some([0, 15]),
        DataType::INT4 => Some([-8, 7]),
        DataType::UINT8 => Some([0, 255]),
        DataType::INT8 => Some([-128, 127]),
        DataType::UINT16 => Some([0, 65_535]),
        DataType::INT16 => Some([-32_768, 32_767]),
        _ => None,
    }
}

/// The range of 8-bit integers.
pub(super) fn range(element: DataType) -> Result<[i64; 2], Fault> {
    match (element, ends(element)) {
        (DataType::UINT8 | DataType::INT8, Some(ends)) => Ok(ends),
        (other, _) => fault!("its integers are {}; int8 and uint8 are supported", type_name(other)),
    }
}
