//! Which operators compute each frame of a batch by itself.

use super::codes::OperatorCode;
use crate::import::batch;
use crate::import::error::{Fault, fault};
use crate::import::node::Value;

/// The operators that [`batch::import`] imports frame by frame, since all that they compute are nodes and views of images.
const BY_FRAME: &[&str] = &[
    "ABS",
    "ADD",
    "ARG_MAX",
    "ARG_MIN",
    "AVERAGE_POOL_2D",
    "CAST",
    "CEIL",
    "CONCATENATION",
    "CONV_2D",
    "COS",
    "DEPTHWISE_CONV_2D",
    "DEPTH_TO_SPACE",
    "DEQUANTIZE",
    "DIV",
    "ELU",
    "EXP",
    "FLOOR",
    "FULLY_CONNECTED",
    "GELU",
    "HARD_SWISH",
    "L2_NORMALIZATION",
    "LEAKY_RELU",
    "LOCAL_RESPONSE_NORMALIZATION",
    "LOG",
    "LOGISTIC",
    "LOG_SOFTMAX",
    "MAXIMUM",
    "MAX_POOL_2D",
    "MEAN",
    "MINIMUM",
    "MIRROR_PAD",
    "MUL",
    "NEG",
    "PAD",
    "PADV2",
    "POW",
    "PRELU",
    "QUANTIZE",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "REDUCE_PROD",
    "RELU",
    "RELU6",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "RESHAPE",
    "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR",
    "ROUND",
    "RSQRT",
    "SIGN",
    "SIN",
    "SLICE",
    "SOFTMAX",
    "SPACE_TO_DEPTH",
    "SQRT",
    "SQUARE",
    "SQUARED_DIFFERENCE",
    "STRIDED_SLICE",
    "SUB",
    "SUM",
    "TANH",
    "TRANSPOSE",
    "TRANSPOSE_CONV",
];

/// Checks that an operator with operands of a batch makes frames of what the file states.
///
/// # Errors
/// When it does not, or may mix them.
pub(super) fn expect(kind: OperatorCode, value: &Value, stated: &[i32], batch: usize) -> Result<(), Fault> {
    let dims: Vec<usize> = stated.iter().filter_map(|dim| usize::try_from(*dim).ok()).collect();
    let is_batch = batch::batched(value).is_some_and(|y| y.batch == batch);
    let is_by_frame = matches!(kind, OperatorCode::Own(name) if BY_FRAME.contains(&name));
    match is_by_frame && is_batch && batch::all_dims(value) == dims {
        true => Ok(()),
        false => fault!("it may mix the {batch} frames of the batch"),
    }
}
