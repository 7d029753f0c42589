//! What each operator of TFLite becomes: a table from names to functions, with a file for each family of operators.

mod batches;
mod dense;
mod detection;
mod elements;
mod movement;
mod recurrent;
mod reduce;
mod views;
mod windows;

use super::codes::OperatorCode;
use super::op::Op;
use crate::import::error::{Fault, fault};
use crate::import::node::Value;

/// The TFLite operators that are imported, by name.
pub const SUPPORTED: &[&str] = &names();

type Import = fn(&mut Op) -> Result<Vec<Value>, Fault>;

/// Imports an operator: one value for each of its outputs.
pub(super) fn import(op: &mut Op, kind: OperatorCode) -> Result<Vec<Value>, Fault> {
    match (row(kind), op.part) {
        (Some((_, import)), None) => import(op),
        (Some((_, import)), Some(part)) => batches::part(op, part, *import),
        (None, _) => fault!("its operator is not supported"),
    }
}

pub(super) fn is_supported(kind: OperatorCode) -> bool {
    row(kind).is_some()
}

fn row(kind: OperatorCode) -> Option<&'static (&'static str, Import)> {
    let (name, is_own) = match kind {
        OperatorCode::Own(name) => (name, true),
        OperatorCode::Custom(name) => (name, false),
        OperatorCode::Newer(_) => return None,
    };
    // TFLite's own names have no small letters; the known names of others do.
    let is_in_capitals = !name.contains(char::is_lowercase);
    let found = TABLE.binary_search_by(|row| row.0.cmp(name)).ok().map(|i| &TABLE[i]);
    found.filter(|_| is_own == is_in_capitals)
}

/// By name, as [`row`] searches it.
static TABLE: &[(&str, Import)] = ROWS;

const ROWS: &[(&str, Import)] = &[
    ("ABS", elements::abs),
    ("ADD", elements::add),
    ("ADD_N", elements::add_n),
    ("ARG_MAX", reduce::arg_max),
    ("ARG_MIN", reduce::arg_min),
    ("AVERAGE_POOL_2D", windows::average_pool),
    ("BATCH_MATMUL", dense::batch_mat_mul),
    ("BATCH_TO_SPACE_ND", batches::alone),
    ("BROADCAST_TO", views::broadcast_to),
    ("CAST", views::cast),
    ("CEIL", elements::ceil),
    ("CONCATENATION", movement::concatenation),
    ("CONV_2D", windows::conv),
    ("COS", elements::cos),
    ("CUMSUM", reduce::cumulative_sum),
    ("Convolution2DTransposeBias", windows::transpose_conv_bias),
    ("DENSIFY", views::densify),
    ("DEPTHWISE_CONV_2D", windows::depthwise_conv),
    ("DEPTH_TO_SPACE", movement::depth_to_space),
    ("DEQUANTIZE", views::dequantize),
    ("DIV", elements::div),
    ("ELU", elements::elu),
    ("EQUAL", elements::equal),
    ("EXP", elements::exp),
    ("EXPAND_DIMS", views::expand_dims),
    ("FLOOR", elements::floor),
    ("FLOOR_MOD", elements::floor_mod),
    ("FULLY_CONNECTED", dense::fully_connected),
    ("GATHER", movement::gather),
    ("GATHER_ND", movement::gather_nd),
    ("GELU", elements::gelu),
    ("GREATER", elements::greater),
    ("GREATER_EQUAL", elements::greater_equal),
    ("HARD_SWISH", elements::hard_swish),
    ("L2_NORMALIZATION", reduce::l2_normalization),
    ("L2_POOL_2D", windows::l2_pool),
    ("LEAKY_RELU", elements::leaky_relu),
    ("LESS", elements::less),
    ("LESS_EQUAL", elements::less_equal),
    ("LOCAL_RESPONSE_NORMALIZATION", windows::local_response_normalization),
    ("LOG", elements::log),
    ("LOGICAL_AND", elements::logical_and),
    ("LOGICAL_NOT", elements::logical_not),
    ("LOGICAL_OR", elements::logical_or),
    ("LOGISTIC", elements::logistic),
    ("LOG_SOFTMAX", reduce::log_softmax),
    ("MAXIMUM", elements::maximum),
    ("MAX_POOL_2D", windows::max_pool),
    ("MEAN", reduce::mean),
    ("MINIMUM", elements::minimum),
    ("MIRROR_PAD", movement::mirror_pad),
    ("MUL", elements::mul),
    ("NEG", elements::neg),
    ("NOT_EQUAL", elements::not_equal),
    ("PACK", movement::pack),
    ("PAD", movement::pad),
    ("PADV2", movement::pad),
    ("POW", elements::pow),
    ("PRELU", elements::p_relu),
    ("QUANTIZE", views::quantize),
    ("REDUCE_MAX", reduce::max),
    ("REDUCE_MIN", reduce::min),
    ("REDUCE_PROD", reduce::prod),
    ("RELU", elements::relu),
    ("RELU6", elements::relu_6),
    ("RELU_0_TO_1", elements::relu_0_to_1),
    ("RELU_N1_TO_1", elements::relu_n1_to_1),
    ("RESHAPE", views::reshape),
    ("RESIZE_BILINEAR", windows::resize_bilinear),
    ("RESIZE_NEAREST_NEIGHBOR", windows::resize_nearest),
    ("REVERSE_V2", movement::reverse),
    ("ROUND", elements::round),
    ("RSQRT", elements::rsqrt),
    ("SELECT", elements::select),
    ("SELECT_V2", elements::select_v2),
    ("SHAPE", views::shape),
    ("SIGN", elements::sign),
    ("SIN", elements::sin),
    ("SLICE", movement::slice),
    ("SOFTMAX", reduce::softmax),
    ("SPACE_TO_BATCH_ND", batches::alone),
    ("SPACE_TO_DEPTH", movement::space_to_depth),
    ("SPLIT", movement::split),
    ("SPLIT_V", movement::split_v),
    ("SQRT", elements::sqrt),
    ("SQUARE", elements::square),
    ("SQUARED_DIFFERENCE", elements::squared_difference),
    ("SQUEEZE", views::squeeze),
    ("STRIDED_SLICE", movement::strided_slice),
    ("SUB", elements::sub),
    ("SUM", reduce::sum),
    ("SVDF", recurrent::svdf),
    ("TANH", elements::tanh),
    ("TFLite_Detection_PostProcess", detection::post_process),
    ("TILE", movement::tile),
    ("TOPK_V2", reduce::top_k),
    ("TRANSPOSE", views::transpose),
    ("TRANSPOSE_CONV", windows::transpose_conv),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", recurrent::sequence_lstm),
    ("UNPACK", movement::unpack),
];

const fn names() -> [&'static str; ROWS.len()] {
    let mut names = [""; ROWS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = ROWS[i].0;
        i += 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::SUPPORTED;

    #[test]
    fn the_table_is_in_the_order_that_the_search_needs() {
        assert!(SUPPORTED.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
