//! What each ONNX operator becomes: a table from names to functions, with a file for each family of operators.

mod attention;
mod attributes;
pub(super) mod binary;
mod computed_filters;
mod convolution;
mod deformable;
mod dense;
mod einsum;
pub(super) mod element_wise;
mod fused;
pub(super) mod gather;
mod integer_types;
pub(super) mod integers;
pub(super) mod layout;
pub(super) mod line;
mod logic;
mod normalise;
mod parts;
mod patterns;
mod pool;
mod quantized;
pub(super) mod recurrent;
pub(super) mod reduce;
mod reshape;
mod resize;
mod rotary;
mod scatter;
mod signal;
mod trigonometry;
mod volume;

use super::builder::Builder;
use super::constant::Constant;
use super::error::{Fault, fault};
use super::fold::{self, arithmetic, index, kernels, patterns as constant_patterns};
use super::node::{Node, Tensor, Value};

pub(super) use reshape::{VIEWS, viewed};

/// The ONNX operators that are imported, by name.
pub const SUPPORTED: &[&str] = &names();

/// Imports a node: one value for each of its outputs that csdfc computes.
pub(super) fn import(builder: &mut Builder, node: &Node) -> Result<Vec<Value>, Fault> {
    let Some(row) = row(node.operator) else { return fault!("its operator is not supported") };
    attributes::expect_known(node)?;
    let import = |builder: &mut Builder, node: &Node| match row.import {
        Import::One(import) => Ok(vec![Value::Tensor(import(builder, node)?)]),
        Import::Many(import) => import(builder, node),
        Import::None => Ok(Vec::new()),
    };
    if !node.is_constant() && !matches!(row.import, Import::None) {
        return import(builder, node);
    }
    match row.fold {
        Fold::One(fold) => Ok(vec![Value::Constant(fold(builder, node)?)]),
        Fold::Many(fold) => fold(builder, node),
        Fold::Kernels => kernels::compute(builder, node, &import),
    }
}

/// Whether csdfc imports an operator of this domain.
pub(super) fn is_supported(domain: Option<&str>, operator: &str) -> bool {
    let is_known = row(operator).is_some();
    match domain {
        // ONNX Runtime writes these when it quantizes or optimises a model.
        Some("com.microsoft") => {
            let is_fused = operator == "Gelu" || fused::OPERATORS.contains(&operator);
            is_known && (is_fused || quantized::OF_MICROSOFT.contains(&operator))
        }
        domain => {
            let others = [quantized::ONLY_OF_MICROSOFT, fused::OPERATORS];
            is_known && is_onnx(domain) && others.iter().all(|others| !others.contains(&operator))
        }
    }
}

/// Whether this is the domain of ONNX's own operators.
pub(super) fn is_onnx(domain: Option<&str>) -> bool {
    matches!(domain, None | Some("" | "ai.onnx"))
}

/// An operator, the function that adds it to the network, and the function that computes it if all its operands are
/// constants.
struct OperatorRow {
    name: &'static str,
    import: Import,
    fold: Fold,
}

enum Import {
    /// Only constants are computed.
    None,
    One(fn(&mut Builder, &Node) -> Result<Tensor, Fault>),
    Many(fn(&mut Builder, &Node) -> Result<Vec<Value>, Fault>),
}

enum Fold {
    /// csdfc's own kernels compute it.
    Kernels,
    One(fn(&mut Builder, &Node) -> Result<Constant, Fault>),
    Many(fn(&mut Builder, &Node) -> Result<Vec<Value>, Fault>),
}

fn row(operator: &str) -> Option<&'static OperatorRow> {
    TABLE.binary_search_by(|row| row.name.cmp(operator)).ok().map(|i| &TABLE[i])
}

const fn tensors(
    name: &'static str,
    import: fn(&mut Builder, &Node) -> Result<Tensor, Fault>,
) -> OperatorRow {
    OperatorRow { name, import: Import::One(import), fold: Fold::Kernels }
}

const fn constants(
    name: &'static str,
    fold: fn(&mut Builder, &Node) -> Result<Constant, Fault>,
) -> OperatorRow {
    OperatorRow { name, import: Import::None, fold: Fold::One(fold) }
}

const fn from_both_formats(
    name: &'static str,
    import: fn(&mut Builder, &Node) -> Result<Tensor, Fault>,
    fold: fn(&mut Builder, &Node) -> Result<Constant, Fault>,
) -> OperatorRow {
    OperatorRow { name, import: Import::One(import), fold: Fold::One(fold) }
}

const fn function(name: &'static str) -> OperatorRow {
    OperatorRow { name, import: Import::One(element_wise::function), fold: Fold::Many(arithmetic::function) }
}

const fn arithmetic(name: &'static str) -> OperatorRow {
    from_both_formats(name, binary::binary, arithmetic::binary)
}

const fn reduction(name: &'static str) -> OperatorRow {
    from_both_formats(name, reduce::reduce, arithmetic::reduce)
}

/// By name, as [`row`] searches it.
static TABLE: &[OperatorRow] = ROWS;

const ROWS: &[OperatorRow] = &[
    function("Abs"),
    from_both_formats("Acos", trigonometry::inverse, arithmetic::only_of_constants),
    from_both_formats("Acosh", trigonometry::inverse, arithmetic::only_of_constants),
    arithmetic("Add"),
    from_both_formats("And", logic::logic, arithmetic::logic),
    tensors("ArgMax", reduce::arg_max),
    tensors("ArgMin", reduce::arg_min),
    from_both_formats("Asin", trigonometry::inverse, arithmetic::only_of_constants),
    from_both_formats("Asinh", trigonometry::inverse, arithmetic::only_of_constants),
    from_both_formats("Atan", trigonometry::inverse, arithmetic::only_of_constants),
    from_both_formats("Atanh", trigonometry::inverse, arithmetic::only_of_constants),
    OperatorRow { name: "Attention", import: Import::Many(attention::attention), fold: Fold::Kernels },
    tensors("AveragePool", pool::pool),
    tensors("BatchNormalization", normalise::batch_norm),
    tensors("BiasGelu", fused::gelu),
    from_both_formats("Cast", reshape::cast, arithmetic::cast),
    OperatorRow {
        name: "CastLike",
        import: Import::Many(reshape::cast_like),
        fold: Fold::Many(reshape::cast_like),
    },
    function("Ceil"),
    tensors("Celu", element_wise::celu),
    from_both_formats("Clip", element_wise::clip, arithmetic::clip),
    from_both_formats("Concat", layout::concat, index::concat),
    constants("Constant", fold::constant),
    constants("ConstantOfShape", fold::constant_of_shape),
    tensors("Conv", volume::conv),
    tensors("ConvInteger", integers::conv),
    tensors("ConvTranspose", volume::conv_transpose),
    function("Cos"),
    from_both_formats("Cosh", trigonometry::hyperbolic_cosine, arithmetic::only_of_constants),
    from_both_formats("CumSum", patterns::cumulative_sum, constant_patterns::cumulative_sum),
    tensors("DFT", signal::dft),
    tensors("DeformConv", deformable::deform_conv),
    tensors("DepthToSpace", layout::depth_to_space),
    from_both_formats("DequantizeLinear", quantized::dequantize, quantized::dequantize_constant),
    arithmetic("Div"),
    from_both_formats("Dropout", reshape::dropout, reshape::dropout_constant),
    OperatorRow {
        name: "DynamicQuantizeLinear",
        import: Import::Many(integers::dynamic_quantize),
        fold: Fold::Many(integers::dynamic_quantize_constant),
    },
    tensors("Einsum", einsum::einsum),
    function("Elu"),
    from_both_formats("Equal", logic::compare, arithmetic::compare),
    function("Erf"),
    function("Exp"),
    from_both_formats("Expand", reshape::expand, index::expand),
    constants("EyeLike", constant_patterns::eye_like),
    tensors("FastGelu", fused::gelu),
    from_both_formats("Flatten", reshape::view, reshape::view_constant),
    function("Floor"),
    tensors("FusedConv", fused::conv),
    tensors("FusedGemm", fused::gemm),
    tensors("FusedMatMul", fused::mat_mul),
    OperatorRow { name: "GRU", import: Import::Many(recurrent::gru), fold: Fold::Kernels },
    from_both_formats("Gather", gather::gather, index::gather),
    tensors("GatherElements", gather::gather_elements),
    OperatorRow {
        name: "GatherND",
        import: Import::Many(gather::gather_nd),
        fold: Fold::Many(gather::gather_nd),
    },
    function("Gelu"),
    tensors("Gemm", dense::gemm),
    tensors("GlobalAveragePool", pool::global_pool),
    tensors("GlobalLpPool", pool::global_pool),
    tensors("GlobalMaxPool", pool::global_pool),
    from_both_formats("Greater", logic::compare, arithmetic::compare),
    from_both_formats("GreaterOrEqual", logic::compare, arithmetic::compare),
    tensors("GridSample", resize::grid_sample),
    tensors("GroupNormalization", normalise::group_norm),
    function("HardSigmoid"),
    function("HardSwish"),
    tensors("Hardmax", patterns::hard_max),
    from_both_formats("Identity", reshape::identity, reshape::identity_constant),
    tensors("InstanceNormalization", normalise::instance_norm),
    tensors("IsInf", logic::is_infinite),
    tensors("IsNaN", logic::is_nan),
    tensors("LRN", normalise::lrn),
    OperatorRow { name: "LSTM", import: Import::Many(recurrent::lstm), fold: Fold::Kernels },
    tensors("LayerNormalization", normalise::layer_norm),
    function("LeakyRelu"),
    from_both_formats("Less", logic::compare, arithmetic::compare),
    from_both_formats("LessOrEqual", logic::compare, arithmetic::compare),
    function("Log"),
    tensors("LogSoftmax", normalise::softmax),
    tensors("LpNormalization", normalise::lp_norm),
    tensors("LpPool", pool::pool),
    tensors("MatMul", dense::mat_mul),
    tensors("MatMulInteger", integers::mat_mul),
    arithmetic("Max"),
    OperatorRow { name: "MaxPool", import: Import::Many(pool::max_pool), fold: Fold::Kernels },
    tensors("MaxUnpool", pool::max_unpool),
    tensors("Mean", binary::mean),
    tensors("MeanVarianceNormalization", normalise::mean_variance),
    arithmetic("Min"),
    function("Mish"),
    arithmetic("Mod"),
    arithmetic("Mul"),
    function("Neg"),
    tensors("NonMaxSuppression", reduce::non_max_suppression),
    constants("NonZero", constant_patterns::non_zero),
    from_both_formats("Not", logic::logic, arithmetic::logic),
    from_both_formats("OneHot", patterns::one_hot, constant_patterns::one_hot),
    from_both_formats("Or", logic::logic, arithmetic::logic),
    tensors("PRelu", element_wise::p_relu),
    tensors("Pad", layout::pad),
    arithmetic("Pow"),
    tensors("QGemm", quantized::gemm),
    tensors("QLinearAdd", quantized::binary),
    tensors("QLinearAveragePool", quantized::unary),
    tensors("QLinearConcat", quantized::concat),
    tensors("QLinearConv", quantized::conv),
    tensors("QLinearGlobalAveragePool", quantized::unary),
    tensors("QLinearLeakyRelu", quantized::unary),
    tensors("QLinearMatMul", quantized::mat_mul),
    tensors("QLinearMul", quantized::binary),
    tensors("QLinearSigmoid", quantized::unary),
    tensors("QLinearSoftmax", quantized::unary),
    from_both_formats("QuantizeLinear", quantized::quantize, quantized::quantize_constant),
    tensors("QuickGelu", fused::quick_gelu),
    tensors("RMSNormalization", normalise::rms_norm),
    OperatorRow { name: "RNN", import: Import::Many(recurrent::rnn), fold: Fold::Kernels },
    constants("Range", fold::range),
    function("Reciprocal"),
    reduction("ReduceL1"),
    reduction("ReduceL2"),
    reduction("ReduceLogSum"),
    reduction("ReduceLogSumExp"),
    reduction("ReduceMax"),
    reduction("ReduceMean"),
    reduction("ReduceMin"),
    reduction("ReduceProd"),
    reduction("ReduceSum"),
    reduction("ReduceSumSquare"),
    function("Relu"),
    from_both_formats("Reshape", reshape::view, reshape::view_constant),
    tensors("Resize", resize::resize),
    tensors("RotaryEmbedding", rotary::rotary_embedding),
    function("Round"),
    tensors("STFT", signal::stft),
    tensors("ScatterElements", scatter::scatter_elements),
    tensors("ScatterND", scatter::scatter_nd),
    function("Selu"),
    constants("Shape", fold::shape),
    tensors("Shrink", element_wise::shrink),
    function("Sigmoid"),
    function("Sign"),
    function("Sin"),
    from_both_formats("Sinh", trigonometry::hyperbolic_sine, arithmetic::only_of_constants),
    constants("Size", fold::size),
    OperatorRow {
        name: "SkipLayerNormalization",
        import: Import::Many(fused::skip_norm),
        fold: Fold::Kernels,
    },
    OperatorRow {
        name: "SkipSimplifiedLayerNormalization",
        import: Import::Many(fused::skip_norm),
        fold: Fold::Kernels,
    },
    from_both_formats("Slice", layout::slice, index::slice),
    tensors("Softmax", normalise::softmax),
    function("Softplus"),
    function("Softsign"),
    tensors("SpaceToDepth", layout::space_to_depth),
    OperatorRow { name: "Split", import: Import::Many(layout::split), fold: Fold::Many(index::split) },
    function("Sqrt"),
    from_both_formats("Squeeze", reshape::view, reshape::view_constant),
    arithmetic("Sub"),
    arithmetic("Sum"),
    tensors("Swish", element_wise::swish),
    from_both_formats("Tan", trigonometry::tangent, arithmetic::only_of_constants),
    function("Tanh"),
    function("ThresholdedRelu"),
    from_both_formats("Tile", reshape::tile, index::tile),
    OperatorRow { name: "TopK", import: Import::Many(reduce::top_k), fold: Fold::Kernels },
    from_both_formats("Transpose", layout::transpose, index::transpose),
    from_both_formats("Trilu", patterns::triangle, constant_patterns::triangle),
    from_both_formats("Unsqueeze", reshape::view, reshape::view_constant),
    tensors("Upsample", resize::upsample),
    from_both_formats("Where", logic::choose, index::select),
    from_both_formats("Xor", logic::logic, arithmetic::logic),
];

const fn names() -> [&'static str; ROWS.len()] {
    let mut names = [""; ROWS.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = ROWS[i].name;
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
