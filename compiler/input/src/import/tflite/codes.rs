//! The numbers of operators and element types in TFLite's schema.

use std::fmt;

use rten_onnx::onnx::DataType;

use super::flat::{Record, Stored};
use crate::import::error::Fault;

/// What an operator computes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OperatorCode<'a> {
    /// An operator of TFLite, by its name in the schema.
    Own(&'static str),
    /// An operator of TFLite that is newer than the schema here.
    Newer(i32),
    /// An operator of somebody else.
    Custom(&'a str),
}

/// The code of operators of somebody else.
const CUSTOM: &str = "CUSTOM";

impl<'a> OperatorCode<'a> {
    pub fn read(code: &Record<'a>) -> Result<Self, Fault> {
        // Files from the time when there were fewer than 127 operators have the code in a field of 8 bits.
        let number = code.int(3, 0)?.max(i32::from(code.code(0)?));
        let name = usize::try_from(number).ok().and_then(|number| OPERATORS.get(number).copied());
        Ok(match name {
            Some(CUSTOM) => {
                let name = code.field::<Stored>(1)?.map_or(&[][..], |name| name.bytes);
                OperatorCode::Custom(std::str::from_utf8(&name[..name.len().min(100)]).unwrap_or("?"))
            }
            Some(name) => OperatorCode::Own(name),
            None => OperatorCode::Newer(number),
        })
    }
}

impl fmt::Display for OperatorCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OperatorCode::Own(name) => f.write_str(name),
            OperatorCode::Newer(number) => write!(f, "operator {number}"),
            OperatorCode::Custom(name) => write!(f, "custom {name}"),
        }
    }
}

/// ONNX's number of a type of elements.
pub(super) fn element(code: i8) -> DataType {
    match code {
        0 => DataType::FLOAT,
        1 => DataType::FLOAT16,
        2 => DataType::INT32,
        3 => DataType::UINT8,
        4 => DataType::INT64,
        5 => DataType::STRING,
        6 => DataType::BOOL,
        7 => DataType::INT16,
        8 => DataType::COMPLEX64,
        9 => DataType::INT8,
        10 => DataType::DOUBLE,
        11 => DataType::COMPLEX128,
        12 => DataType::UINT64,
        15 => DataType::UINT32,
        16 => DataType::UINT16,
        17 => DataType::INT4,
        18 => DataType::BFLOAT16,
        _ => DataType(0),
    }
}

/// The operators in the order of their codes.
const OPERATORS: &[&str] = &[
    "ADD",
    "AVERAGE_POOL_2D",
    "CONCATENATION",
    "CONV_2D",
    "DEPTHWISE_CONV_2D",
    "DEPTH_TO_SPACE",
    "DEQUANTIZE",
    "EMBEDDING_LOOKUP",
    "FLOOR",
    "FULLY_CONNECTED",
    "HASHTABLE_LOOKUP",
    "L2_NORMALIZATION",
    "L2_POOL_2D",
    "LOCAL_RESPONSE_NORMALIZATION",
    "LOGISTIC",
    "LSH_PROJECTION",
    "LSTM",
    "MAX_POOL_2D",
    "MUL",
    "RELU",
    "RELU_N1_TO_1",
    "RELU6",
    "RESHAPE",
    "RESIZE_BILINEAR",
    "RNN",
    "SOFTMAX",
    "SPACE_TO_DEPTH",
    "SVDF",
    "TANH",
    "CONCAT_EMBEDDINGS",
    "SKIP_GRAM",
    "CALL",
    "CUSTOM",
    "EMBEDDING_LOOKUP_SPARSE",
    "PAD",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
    "GATHER",
    "BATCH_TO_SPACE_ND",
    "SPACE_TO_BATCH_ND",
    "TRANSPOSE",
    "MEAN",
    "SUB",
    "DIV",
    "SQUEEZE",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "STRIDED_SLICE",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "EXP",
    "TOPK_V2",
    "SPLIT",
    "LOG_SOFTMAX",
    "DELEGATE",
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "CAST",
    "PRELU",
    "MAXIMUM",
    "ARG_MAX",
    "MINIMUM",
    "LESS",
    "NEG",
    "PADV2",
    "GREATER",
    "GREATER_EQUAL",
    "LESS_EQUAL",
    "SELECT",
    "SLICE",
    "SIN",
    "TRANSPOSE_CONV",
    "SPARSE_TO_DENSE",
    "TILE",
    "EXPAND_DIMS",
    "EQUAL",
    "NOT_EQUAL",
    "LOG",
    "SUM",
    "SQRT",
    "RSQRT",
    "SHAPE",
    "POW",
    "ARG_MIN",
    "FAKE_QUANT",
    "REDUCE_PROD",
    "REDUCE_MAX",
    "PACK",
    "LOGICAL_OR",
    "ONE_HOT",
    "LOGICAL_AND",
    "LOGICAL_NOT",
    "UNPACK",
    "REDUCE_MIN",
    "FLOOR_DIV",
    "REDUCE_ANY",
    "SQUARE",
    "ZEROS_LIKE",
    "FILL",
    "FLOOR_MOD",
    "RANGE",
    "RESIZE_NEAREST_NEIGHBOR",
    "LEAKY_RELU",
    "SQUARED_DIFFERENCE",
    "MIRROR_PAD",
    "ABS",
    "SPLIT_V",
    "UNIQUE",
    "CEIL",
    "REVERSE_V2",
    "ADD_N",
    "GATHER_ND",
    "COS",
    "WHERE",
    "RANK",
    "ELU",
    "REVERSE_SEQUENCE",
    "MATRIX_DIAG",
    "QUANTIZE",
    "MATRIX_SET_DIAG",
    "ROUND",
    "HARD_SWISH",
    "IF",
    "WHILE",
    "NON_MAX_SUPPRESSION_V4",
    "NON_MAX_SUPPRESSION_V5",
    "SCATTER_ND",
    "SELECT_V2",
    "DENSIFY",
    "SEGMENT_SUM",
    "BATCH_MATMUL",
    "PLACEHOLDER_FOR_GREATER_OP_CODES",
    "CUMSUM",
    "CALL_ONCE",
    "BROADCAST_TO",
    "RFFT2D",
    "CONV_3D",
    "IMAG",
    "REAL",
    "COMPLEX_ABS",
    "HASHTABLE",
    "HASHTABLE_FIND",
    "HASHTABLE_IMPORT",
    "HASHTABLE_SIZE",
    "REDUCE_ALL",
    "CONV_3D_TRANSPOSE",
    "VAR_HANDLE",
    "READ_VARIABLE",
    "ASSIGN_VARIABLE",
    "BROADCAST_ARGS",
    "RANDOM_STANDARD_NORMAL",
    "BUCKETIZE",
    "RANDOM_UNIFORM",
    "MULTINOMIAL",
    "GELU",
    "DYNAMIC_UPDATE_SLICE",
    "RELU_0_TO_1",
    "UNSORTED_SEGMENT_PROD",
    "UNSORTED_SEGMENT_MAX",
    "UNSORTED_SEGMENT_SUM",
    "ATAN2",
    "UNSORTED_SEGMENT_MIN",
    "SIGN",
    "BITCAST",
    "BITWISE_XOR",
    "RIGHT_SHIFT",
    "STABLEHLO_LOGISTIC",
    "STABLEHLO_ADD",
    "STABLEHLO_DIVIDE",
    "STABLEHLO_MULTIPLY",
    "STABLEHLO_MAXIMUM",
    "STABLEHLO_RESHAPE",
    "STABLEHLO_CLAMP",
    "STABLEHLO_CONCATENATE",
    "STABLEHLO_BROADCAST_IN_DIM",
    "STABLEHLO_CONVOLUTION",
    "STABLEHLO_SLICE",
    "STABLEHLO_CUSTOM_CALL",
    "STABLEHLO_REDUCE",
    "STABLEHLO_ABS",
    "STABLEHLO_AND",
    "STABLEHLO_COSINE",
    "STABLEHLO_EXPONENTIAL",
    "STABLEHLO_FLOOR",
    "STABLEHLO_LOG",
    "STABLEHLO_MINIMUM",
    "STABLEHLO_NEGATE",
    "STABLEHLO_OR",
    "STABLEHLO_POWER",
    "STABLEHLO_REMAINDER",
    "STABLEHLO_RSQRT",
    "STABLEHLO_SELECT",
    "STABLEHLO_SUBTRACT",
    "STABLEHLO_TANH",
    "STABLEHLO_SCATTER",
    "STABLEHLO_COMPARE",
    "STABLEHLO_CONVERT",
    "STABLEHLO_DYNAMIC_SLICE",
    "STABLEHLO_DYNAMIC_UPDATE_SLICE",
    "STABLEHLO_PAD",
    "STABLEHLO_IOTA",
    "STABLEHLO_DOT_GENERAL",
    "STABLEHLO_REDUCE_WINDOW",
    "STABLEHLO_SORT",
    "STABLEHLO_WHILE",
    "STABLEHLO_GATHER",
    "STABLEHLO_TRANSPOSE",
    "DILATE",
    "STABLEHLO_RNG_BIT_GENERATOR",
    "REDUCE_WINDOW",
    "STABLEHLO_COMPOSITE",
    "STABLEHLO_SHIFT_LEFT",
    "STABLEHLO_CBRT",
];

#[cfg(test)]
pub(super) mod tests {
    use super::OPERATORS;

    /// The code of an operator.
    pub fn code(name: &str) -> i32 {
        let place = OPERATORS.iter().position(|other| *other == name);
        i32::try_from(place.expect("a name of the schema")).expect("a code")
    }

    /// The operator of a code.
    pub fn name(code: i32) -> &'static str {
        OPERATORS[code as usize]
    }

    #[test]
    fn codes_are_those_of_the_schema() {
        let some = [
            ("CONV_2D", 3),
            ("CUSTOM", 32),
            ("PRELU", 54),
            ("HARD_SWISH", 117),
            ("GELU", 150),
            ("DILATE", 203),
        ];
        some.iter().for_each(|(name, number)| assert_eq!(code(name), *number, "{name}"));
    }
}
