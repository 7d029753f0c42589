//! The attributes that each operator may have.

use crate::import::error::{Fault, fault};
use crate::import::node::Node;

/// The attributes that all windows have.
const WINDOW: [&str; 5] = ["auto_pad", "dilations", "kernel_shape", "pads", "strides"];

/// Checks that a node has only attributes that ONNX knows for its operator. Any other might change what it computes.
pub(super) fn expect_known(node: &Node) -> Result<(), Fault> {
    let (windows, own) = attributes_of(node.operator);
    let is_known = |name: &str| own.contains(&name) || (windows && WINDOW.contains(&name));
    let names = node.proto.attribute.iter().map(|attribute| attribute.name.as_deref().unwrap_or_default());
    match names.into_iter().find(|name| !is_known(name)) {
        Some(name) => fault!("ONNX has no attribute {name:?} for {}", node.operator),
        None => Ok(()),
    }
}

/// Whether an operator has the attributes of windows, and its other attributes. They are those of opset 7 and later,
/// including those that do not affect what csdfc computes.
fn attributes_of(operator: &str) -> (bool, &'static [&'static str]) {
    let own: &[&str] = match operator {
        "ArgMax" | "ArgMin" => &["axis", "keepdims", "select_last_index"],
        "Attention" => &[
            "is_causal",
            "kv_num_heads",
            "left_window_size",
            "q_num_heads",
            "qk_matmul_output_mode",
            "right_window_size",
            "scale",
            "softcap",
            "softmax_precision",
        ],
        "AveragePool" => return (true, &["ceil_mode", "count_include_pad"]),
        "BatchNormalization" => &["epsilon", "momentum", "spatial", "training_mode"],
        "Cast" => &["to", "saturate", "round_mode"],
        "CastLike" => &["saturate", "round_mode"],
        "Clip" => &["min", "max"],
        "Concat" | "Flatten" | "Gather" | "GatherElements" | "LogSoftmax" | "OneHot" | "Softmax" => &["axis"],
        "Constant" => &[
            "sparse_value",
            "value",
            "value_float",
            "value_floats",
            "value_int",
            "value_ints",
            "value_string",
            "value_strings",
        ],
        "ConstantOfShape" => &["value"],
        "Conv" | "ConvInteger" => return (true, &["group"]),
        "ConvTranspose" => return (true, &["group", "output_padding", "output_shape"]),
        "CumSum" => &["exclusive", "reverse"],
        "DepthToSpace" | "SpaceToDepth" => &["blocksize", "mode"],
        "DequantizeLinear" => &["axis", "block_size", "output_dtype"],
        "Dropout" => &["ratio", "seed"],
        "Einsum" => &["equation"],
        "Celu" | "Elu" | "LeakyRelu" | "QuickGelu" | "Swish" | "ThresholdedRelu" => &["alpha"],
        "EyeLike" => &["dtype", "k"],
        "FusedConv" => return (true, &["activation", "activation_params", "group"]),
        "FusedGemm" => &[
            "activation",
            "activation_alpha",
            "activation_beta",
            "activation_gamma",
            "alpha",
            "beta",
            "transA",
            "transB",
        ],
        "FusedMatMul" => &["alpha", "transA", "transB", "transBatchA", "transBatchB"],
        "Gelu" => &["approximate"],
        "Gemm" => &["alpha", "beta", "transA", "transB"],
        "GlobalLpPool" => &["p"],
        "GridSample" => &["align_corners", "mode", "padding_mode"],
        "GroupNormalization" => &["epsilon", "num_groups", "stash_type"],
        "HardSigmoid" => &["alpha", "beta"],
        "InstanceNormalization" => &["epsilon"],
        "LayerNormalization" => &["axis", "epsilon", "stash_type"],
        "LSTM" => &[
            "activation_alpha",
            "activation_beta",
            "activations",
            "clip",
            "direction",
            "hidden_size",
            "input_forget",
            "layout",
        ],
        "LRN" => &["alpha", "beta", "bias", "size"],
        "LpNormalization" => &["axis", "p"],
        "LpPool" => return (true, &["ceil_mode", "p"]),
        "MaxUnpool" => &["kernel_shape", "pads", "strides"],
        "MaxPool" => return (true, &["ceil_mode", "storage_order"]),
        "Mod" => &["fmod"],
        "NonMaxSuppression" => &["center_point_box"],
        "Pad" => &["mode", "pads", "value"],
        "QGemm" => &["alpha", "transA", "transB"],
        "QLinearAveragePool" => return (true, &["ceil_mode", "channels_last", "count_include_pad"]),
        "QLinearConcat" => &["axis"],
        "QLinearConv" => return (true, &["channels_last", "group"]),
        "QLinearGlobalAveragePool" => &["channels_last"],
        "QLinearLeakyRelu" => &["alpha"],
        "QLinearSoftmax" => &["axis", "opset"],
        "QuantizeLinear" => &["axis", "block_size", "output_dtype", "precision", "saturate"],
        "RMSNormalization" => &["axis", "epsilon", "stash_type"],
        "Reshape" => &["allowzero"],
        "Resize" => &[
            "antialias",
            "axes",
            "coordinate_transformation_mode",
            "cubic_coeff_a",
            "exclude_outside",
            "extrapolation_value",
            "keep_aspect_ratio_policy",
            "mode",
            "nearest_mode",
        ],
        "ScatterND" => &["reduction"],
        "Selu" => &["alpha", "gamma"],
        "Shape" => &["start", "end"],
        "Shrink" => &["bias", "lambd"],
        "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization" => &["epsilon"],
        "Slice" => &["axes", "ends", "starts"],
        "Split" => &["axis", "num_outputs", "split"],
        "Squeeze" | "Unsqueeze" => &["axes"],
        "TopK" => &["axis", "k", "largest", "sorted"],
        "Transpose" => &["perm"],
        "Trilu" => &["upper"],
        "Upsample" => &["mode", "scales"],
        reduction if reduction.starts_with("Reduce") => &["axes", "keepdims", "noop_with_empty_axes"],
        _ => &[],
    };
    (false, own)
}
